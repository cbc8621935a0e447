#!/usr/bin/env bash
# Starts the ranks of machine 2: run_node2.sh optdigits.csv [ARGUMENTS OF train.py]
# RANK_TABLE_FILE names another rank table, PYTHON another Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$(realpath "$1")
shift
exec adasum-run launch --rank-table "${RANK_TABLE_FILE:-$here/../../rank_tables/rank_table_16pcs.json}" --server-id 1 \
    --job "${JOB:-tutorial}" -- "${PYTHON:-python3}" "$here/train.py" --data_path "$data" "$@"
