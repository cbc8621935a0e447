#!/usr/bin/env bash
# Builds the mock and its C++ tests with a sanitizer and runs them:
# sanitize.sh address,undefined|thread FOLDER [all]      (all: the conformance programs, too)
set -euo pipefail
cd "$(dirname "$0")/../.."
sanitizer=$1
out=$2/sanitized-${sanitizer%%,*}
mkdir -p "$out"
relaxed=
# What C passes for an enumeration is any int: cases pass wrong ones on purpose.
[[ $sanitizer != *undefined* ]] || relaxed=-fno-sanitize=enum

# Checks that end the program are compiled in half the time of those that go on.
compile() {
    ${CXX:-g++} -fvisibility=hidden -std=c++17 -O1 -g1 -fno-omit-frame-pointer -fsanitize="$sanitizer" -fno-sanitize-recover=all $relaxed \
        -pthread -Icsrc/cann -Icsrc/mock "$@"
}

# each FOLDER FLAGS...: compiles the sources that stdin names, two at a time, to FOLDER/NAME.
each() {
    mkdir -p "$1"
    xargs -P 2 -I{} bash -c 'compile "$1" -o "$2/$(basename "$1" .cpp)" "${@:3}"' each {} "$@"
}
export -f compile
export sanitizer relaxed out

objects() { printf '%s\n' csrc/mock/"$1"/*.cpp | each "$out/$1" -fPIC -c; }

objects acl
compile -shared "$out"/acl/* -Wl,-soname,libascendcl.so -o "$out/libascendcl.so" -ldl
# Empty, as that of the build: clients look operators up in it.
compile -shared -fPIC -x c++ /dev/null -Wl,-soname,libopapi.so -o "$out/libopapi.so" -L"$out" -Wl,--no-as-needed -lascendcl
objects hccl
compile -shared "$out"/hccl/* -Wl,-soname,libhccl.so -o "$out/libhccl.so" -L"$out" -lascendcl
compile -fvisibility=default -shared -fPIC tests/mock/kernel_binary.cpp -o "$out/kernel_binary.so"
gcc -std=c99 -O1 -g -fsanitize="$sanitizer" -pthread -Icsrc/cann tests/mock/conform.c -o "$out/conform" -L"$out" -Wl,-rpath,"$out" -lascendcl
tests="mock_collectives mock_exchanges mock_faults mock_inject mock_network mock_order mock_peers mock_runtime"
if [ "${3-}" = all ]; then
    tests="$tests mock_deviate $(cd tests/mock && ls conform_*.cpp | sed 's/\.cpp$//' | tr '\n' ' ')"
fi
printf 'tests/mock/%s.cpp\n' $tests | each "$out" -L"$out" -Wl,-rpath,"$out" -lhccl -lascendcl

# A sanitizer's shadow takes a share of the address space: devices are smaller here.
export ASCEND_MOCK_HBM_MB=1024 HCCL_BUFFSIZE=16 HARNESS_KERNEL=$out/kernel_binary.so HARNESS_SECONDS=300 HARNESS_ROUNDS=1000
# A sanitizer opens libraries in the program's place: what the program names as their folder does not count then.
export LD_LIBRARY_PATH=$out
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
# run TEST: what it prints is shown when it has ended.
run() {
    local cases= log=$out/$1.txt code=0
    [ "$1" != mock_exchanges ] || cases="-t1 -t4 -t5" # the other processors have no code of their own
    # shellcheck disable=SC2086 # cases are words
    "$out/$1" $cases > "$log" 2>&1 || code=$?
    printf -- "--- %s under %s\n%s\n" "$1" "$sanitizer" "$(cat "$log")"
    return $code
}
export -f run
# Two at a time: they wait for a good part of their time.
printf '%s\n' conform $tests | xargs -P 2 -I{} bash -c 'run {}'
if [ "$sanitizer" = thread ]; then
    for barrier in "before reads" "behind reads"; do
        echo "--- mock_peers without the barrier $barrier: a race"
        HARNESS_DROP=$barrier "$out/mock_peers" > "$out/race.txt" 2>&1 || true
        grep -q "SUMMARY: ThreadSanitizer: data race .* in \(sum_vectors\|add_step\)$" "$out/race.txt"
    done
fi
echo "--- mock_collectives over TCP under $sanitizer"
HCCL_MOCK_NET=tcp "$out/mock_collectives" random -t4 -t5 sub-p16
HCCL_MOCK_NET=tcp "$out/mock_exchanges" -t4
