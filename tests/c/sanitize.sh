#!/usr/bin/env bash
# Builds the mock and its C++ tests with a sanitizer and runs them: sanitize.sh address,undefined|thread FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
sanitizer=$1
out=$2/sanitized-${sanitizer%%,*}
mkdir -p "$out"

compile() {
    g++ -fvisibility=hidden -std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize="$sanitizer" -pthread -Icsrc/cann -Icsrc/mock "$@"
}

compile -shared -fPIC csrc/mock/acl/*.cpp -Wl,-soname,libascendcl.so -o "$out/libascendcl.so" -ldl &
compile -fvisibility=default -shared -fPIC tests/c/kernel_binary.cpp -o "$out/kernel_binary.so"
wait $!
compile -shared -fPIC csrc/mock/hccl/*.cpp -Wl,-soname,libhccl.so -o "$out/libhccl.so" -L"$out" -lascendcl
for test in mock_collectives mock_faults mock_runtime; do
    compile "tests/c/$test.cpp" -o "$out/$test" -L"$out" -Wl,-rpath,"$out" -lhccl -lascendcl
done

# A sanitizer's shadow takes a share of the address space: devices are smaller here.
export ASCEND_MOCK_HBM_MB=1024 HARNESS_KERNEL=$out/kernel_binary.so HARNESS_SECONDS=300
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
for test in mock_collectives mock_faults mock_runtime; do
    echo "--- $test under $sanitizer"
    "$out/$test"
done
