#!/usr/bin/env bash
# Starts the eight ranks of machine 2: run_node2.sh RANK_TABLE CONFIG [OPTIONS OF adasum-run launch]
set -euo pipefail
table=$1
config=$2
shift 2
exec adasum-run launch --rank-table "$table" --server-id 1 --job "${JOB:-tutorial}" "$@" -- \
    target/release/examples/tutorial "$config"
