#!/usr/bin/env bash
# Unpacks the headers and libraries of three torch-npu wheels, one per generation of CANN, into FOLDER/<version>:
#   bash tests/clients/vendor_wheels.sh FOLDER
# Any Python will do: nothing is installed or imported. Ends with 77 if a wheel cannot be had.
# Their headers are under the CANN Open Software License: FOLDER is for a check, and to be deleted afterwards.
set -euo pipefail
folder=${1:?"usage: bash tests/clients/vendor_wheels.sh FOLDER"}
mkdir -p "$folder"

for version in 2.6.0.post5 2.7.1.post11 2.14.0; do
    download=$folder/download-$version
    if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --implementation cp --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
        --dest "$download" "torch-npu==$version"; then
        echo "torch-npu $version cannot be downloaded" >&2
        exit 77
    fi
    python3 - "$download"/*.whl "$folder/$version" <<'PYTHON'
import sys, zipfile
wheel, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    wanted = ("/include/third_party/acl/", "/include/third_party/hccl/")
    archive.extractall(target, [name for name in archive.namelist()
                                if name.endswith(".so") or any(part in name for part in wanted)])
PYTHON
    rm -r "$download"
done
