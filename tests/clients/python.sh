#!/usr/bin/env bash
# The Python package as it is installed: the wheel, its declarations beside the header, its types, and reductions of ranks as processes.
#   bash tests/clients/python.sh WORK
# WORK is a folder for what comes up. Builds the wheel and installs it into an environment of its own. setuptools, NumPy, pycparser,
# mypy and auditwheel are had from pip; parts that need one which cannot be had are left out, with a line that says SKIPPED. Without
# setuptools the package is used from the source tree. Ends with 77 if there are no environments.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$1/python
mkdir -p "$work"
unset ADASUM_LIBRARY PYTHONPATH

start=$SECONDS
if ! python3 -m venv "$work/venv" > "$work/why" 2>&1; then
    tail -1 "$work/why"
    exit 77
fi
python=$work/venv/bin/python
pip=("$python" -m pip --quiet --disable-pip-version-check)
if "${pip[@]}" install --only-binary=:all: "setuptools>=75" > "$work/why" 2>&1; then
    "${pip[@]}" wheel --no-deps --no-build-isolation --wheel-dir "$work" .
    "${pip[@]}" install --no-index "$work"/adasum-*.whl
    echo "$((SECONDS - start)) s for the wheel: $(cd "$work" && du -k adasum-*.whl | tr '\t' ' ') (KB)"
else
    echo "!!! SKIPPED the wheel: $(tail -1 "$work/why")"
    cargo build --quiet --release
    export PYTHONPATH=$PWD/python PATH=$(realpath "${CARGO_TARGET_DIR:-target}")/release:$PATH
fi
for package in pycparser numpy mypy auditwheel; do
    "${pip[@]}" install --only-binary=:all: "$package" > "$work/why" 2>&1 ||
        echo "!!! SKIPPED what needs $package: $(tail -1 "$work/why")"
done

# has PACKAGE: whether it could be installed.
has() { "$python" -c "import $1" 2> "$work/why"; }
! has pycparser || "$python" tests/clients/signatures.py
! has mypy || "$work/venv/bin/mypy"
if has auditwheel && ls "$work"/adasum-*.whl > "$work/why"; then
    "$work/venv/bin/auditwheel" show "$work"/adasum-*.whl | tee "$work/audit"
    grep -q manylinux "$work/audit"
fi
"$python" tests/clients/import_time.py

# Nothing of the source tree is needed from here on.
mkdir "$work/elsewhere"
awk '/^```python$/ { block = 1; next } /^```$/ && block { exit } block' python/README.md > "$work/elsewhere/program.py"
cp tests/clients/adasum_module.py "$work/elsewhere"
cd "$work/elsewhere"
export PATH=$work/venv/bin:$PATH ADASUM_CACHE_DIR=$work/cache
if has numpy; then
    python - <<'PYTHON'
import array, numpy, adasum
values = array.array("f", [1, 2, 3])
seen = numpy.from_dlpack(adasum.view(values))
values[1] = 7
assert seen.dtype == numpy.float32 and seen.tolist() == [1, 7, 3], seen
halves = numpy.array([0.5, 4], numpy.float16)
assert numpy.from_dlpack(adasum.view(halves)).tolist() == [0.5, 4]
PYTHON
    # The AdaSum of equal vectors is the vector: 64 * 10 ones.
    adasum-run launch -n 4 --timeout 300 -- python program.py > said
    cat said
    [ "$(grep -c '^\[r[0-3]\] 25\.298221' said)" = 4 ]
fi
for shape in "4 1" "2 2"; do
    read -r servers locals <<< "$shape"
    mkdir "shared-${servers}x$locals"
    adasum-run launch --servers "$servers" --devices-per-server "$locals" --timeout 300 -- python adasum_module.py "shared-${servers}x$locals"
done
