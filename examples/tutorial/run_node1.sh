#!/usr/bin/env bash
# Starts the eight ranks of machine 1: run_node1.sh RANK_TABLE CONFIG [OPTIONS OF adasum-run launch]
set -euo pipefail
table=$1
config=$2
shift 2
exec adasum-run launch --rank-table "$table" --server-id 0 --job "${JOB:-tutorial}" "$@" -- \
    target/release/examples/tutorial "$config"
