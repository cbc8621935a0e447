#!/usr/bin/env bash
# Kernels on aarch64, the usual host of an Ascend device: the twin must give the bits that it gives here.
# Needs Debian's g++-aarch64-linux-gnu and qemu-user: aarch64.sh FOLDER [all]      (all: the strict twin, too)
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1/aarch64
mkdir -p "$out"
cross=aarch64-linux-gnu-g++
twins=fast
[ "${2-}" != all ] || twins="fast strict"
mapfile -t kernels < <(basename -s .cpp csrc/kernels/*.cpp)

# Everything compiles at once on all cores: "FLAGS SOURCE OBJECT" of a line.
compile() {
    xargs -P "$(nproc)" -I{} sh -c '{}'
}

# objects NAME COMPILER FLAGS...: the command lines for the objects of a driver.
objects() {
    local name=$1 source
    mkdir -p "$out/$name.d"
    for source in csrc/kernels/*.cpp tests/kernels/kernel_driver.cpp ${strict:+csrc/kernels/strict/engine.cpp}; do
        echo "${*:2} -std=c++17 -O2 -ffp-contract=off -DADASUM_TWIN -Icsrc/kernels -c $source" \
            "-o $out/$name.d/$(basename "$source" .cpp).o"
    done
}

{
    objects here g++
    objects fast "$cross"
    [[ $twins != *strict* ]] || strict=1 objects strict "$cross" -DADASUM_TWIN_STRICT
    for source in csrc/mock/{acl,hccl}/*.cpp; do
        echo "$cross -std=c++17 -fsyntax-only -Wall -Wextra -Werror -pthread -Icsrc/cann -Icsrc/mock $source"
    done
} | compile
echo "the mock's libraries compile, and the kernels ($twins)"

g++ "$out"/here.d/*.o -o "$out/here"
"$out/here" "${kernels[@]}" --far > "$out/expected"
cat "$out/expected"
# run TWIN KERNEL...: compares what it gives with what is expected.
run() {
    "$cross" -static "$out/$1".d/*.o -o "$out/$1"
    qemu-aarch64 "$out/$1" "${@:2}" --far | diff - "$out/expected"
    echo "--- $1 twin under qemu-aarch64: the same"
}
export -f run
export cross out
# Both at a time: each uses one core.
# shellcheck disable=SC2086 # twins are words
printf '%s\n' $twins | xargs -P 2 -I{} bash -euo pipefail -c 'run {} "$@"' run "${kernels[@]}"
