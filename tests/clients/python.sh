#!/usr/bin/env bash
# The Python module over the mock: its declarations beside the header, and reductions of ranks as processes.
#   bash tests/clients/python.sh ADASUM_RUN LIBRARY WORK
# ADASUM_RUN is the program, LIBRARY libadasum.so, WORK a folder for what comes up. NumPy and pycparser are had from pip; parts
# that need one which cannot be had are left out, with a line that says SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/../.."
run=$1 work=$3/python
export ADASUM_LIBRARY=$2 PYTHONDONTWRITEBYTECODE=1
mkdir -p "$work"

for package in pycparser numpy; do
    if ! python3 -c "import $package" 2> "$work/why" &&
        ! python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --only-binary=:all: \
            --target "$work/packages" "$package" > "$work/why" 2>&1; then
        echo "!!! SKIPPED what needs $package: $(tail -1 "$work/why")"
    fi
done
export PYTHONPATH=$work/packages

if python3 -c 'import pycparser' 2> /dev/null; then
    python3 tests/clients/signatures.py
fi
for shape in "4 1" "2 2"; do
    read -r servers locals <<< "$shape"
    table=$work/table-${servers}x$locals.json
    mkdir "$work/shared-${servers}x$locals"
    python3 tests/clients/rank_table.py "$servers" "$locals" "$table"
    "$run" launch --rank-table "$table" --timeout 120 -- \
        python3 tests/clients/adasum_module.py "$work/shared-${servers}x$locals"
done
