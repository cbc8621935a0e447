#!/usr/bin/env bash
# Unpacks the kernel binaries of a published vllm-ascend wheel (operators for Atlas A2) into FOLDER:
#   bash tests/clients/vendor_kernels.sh FOLDER
# Any Python and any machine will do: nothing is installed or run. Ends with 77 if the wheel cannot be had, with 1 if it is
# not the one that is pinned. FOLDER is for a check, and to be deleted afterwards.
set -euo pipefail
folder=${1:?"usage: bash tests/clients/vendor_kernels.sh FOLDER"}
mkdir -p "$folder"
download=$folder/download
trap 'rm -rf "$download"' EXIT
mkdir "$download"

cat > "$download/list" <<'LIST'
vllm-ascend==0.13.0 --hash=sha256:b2cac71d96c655af316dbdb2dd52ec5461c69dda5dc9c1835893d00318cd6e31
LIST
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
    --python-version 3.11 --platform manylinux_2_24_aarch64 --require-hashes --dest "$download" \
    --requirement "$download/list" 2> "$download/why"; then
    cat "$download/why" >&2
    ! grep -q 'DO NOT MATCH THE HASHES' "$download/why" || exit 1
    echo "vllm-ascend 0.13.0 cannot be downloaded" >&2
    exit 77
fi
python3 - "$download"/*.whl "$folder" <<'PYTHON'
import sys, zipfile
wheel, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(target, [name for name in archive.namelist()
                                if "/op_impl/ai_core/tbe/kernel/" in name and name.endswith(".o")])
PYTHON
