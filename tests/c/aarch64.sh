#!/usr/bin/env bash
# Kernels on aarch64, the usual host of an Ascend device: both twins must give the bits that they give here.
# Needs Debian's g++-aarch64-linux-gnu and qemu-user: aarch64.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1/aarch64
mkdir -p "$out"
cross=aarch64-linux-gnu-g++
kernels=(gram fold coefficients weighted_sum)

# build COMPILER OUTPUT FLAGS SOURCES...: a static driver.
build() {
    "$1" -std=c++17 -O2 -ffp-contract=off -static -DADASUM_TWIN -Icsrc/kernels "${@:3}" csrc/kernels/*.cpp \
        tests/c/kernel_driver.cpp -o "$2"
}

build g++ "$out/here"
build "$cross" "$out/fast" &
build "$cross" "$out/strict" -DADASUM_TWIN_STRICT csrc/kernels/strict/engine.cpp
wait $!
"$out/here" "${kernels[@]}" > "$out/expected"
cat "$out/expected"
for twin in fast strict; do
    echo "--- $twin twin under qemu-aarch64"
    qemu-aarch64 "$out/$twin" "${kernels[@]}" | diff - "$out/expected"
done

echo "--- the mock's libraries compile"
for library in acl hccl; do
    for source in csrc/mock/"$library"/*.cpp; do
        "$cross" -std=c++17 -fsyntax-only -Wall -Wextra -pthread -Icsrc/cann -Icsrc/mock "$source"
    done
done
