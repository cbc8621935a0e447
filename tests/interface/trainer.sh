#!/bin/sh
# The C++ examples from an installed library, the whole way: the trainer is built with CMake and with pkg-config, shared and static, and
# launched from the rank table; its losses are those of the demo, which trains the same in Rust.
#   sh tests/interface/trainer.sh PREFIX ADASUM_RUN WORK
# PREFIX is where packaging/install.sh has put the library; it is moved, and what is installed must not mind.
set -eu
run=$(realpath "$2") work=$(realpath "$3")
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
mkdir -p "$work/bin"
ln -sf "$run" "$work/bin/adasum-run"
export PATH="$work/bin:$PATH"
unset ASCEND_HOME_PATH
mv "$1" "$work/moved"
prefix=$work/moved

cmake -S "$examples/cpp" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS=-Werror > "$work/cmake.log" \
    || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/build" > "$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
# Another minor version is another interface.
mkdir -p "$work/other"
printf 'cmake_minimum_required(VERSION 3.19)\nproject(other NONE)\nfind_package(adasum 0.1 QUIET)\nif(adasum_FOUND)\n  message(FATAL_ERROR "0.1 is not there")\nendif()\n' \
    > "$work/other/CMakeLists.txt"
cmake -S "$work/other" -B "$work/other/build" -DCMAKE_PREFIX_PATH="$prefix" > "$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
flags="-std=c++17 -O2 -ffp-contract=off $(pkg-config --cflags adasum) $(adasum-run config --cflags)"
libraries=$(adasum-run config --libs)
# shellcheck disable=SC2086,SC2046 # flags are words
g++ $flags "$examples/cpp/train_digits.cpp" -o "$work/shared" $(pkg-config --libs adasum) $libraries -Wl,-rpath,"$prefix/lib"
# shellcheck disable=SC2086,SC2046 # flags are words
g++ $flags "$examples/cpp/train_digits.cpp" -o "$work/static" \
    $(pkg-config --static --libs adasum | sed 's/-ladasum/-l:libadasum.a/') $libraries

said=$(adasum-run launch -n 2 --prefix none --timeout 300 -- "$work/build/gradient")
[ "$said" = "1 1 0 0
1 1 0 0" ] || { echo "gradient: $said"; exit 1; }

epochs=4
train() {
    adasum-run launch --rank-table "$examples/rank_tables/rank_table_16pcs.json" --timeout 300 -- "$1" \
        --data "$examples/data/optdigits.csv" --epochs $epochs --mode "$2" --json "$work/$3.json"
}
train "$work/build/train_digits" gradient cmake
train "$work/build/train_digits" delta delta
train "$work/shared" gradient shared
train "$work/static" gradient static
adasum-run demo --epochs $epochs --reduction adasum --json > "$work/demo.json"

python3 - "$work" <<'PYTHON'
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/{name}.json"))
demo, delta = read("demo"), read("delta")
for name in ("cmake", "shared", "static"):
    own = read(name)
    assert own["accuracy"] == demo["accuracy"], f"{name}: accuracy {own['accuracy']}, demo {demo['accuracy']}"
    # The weights are the same bits; the sum of the ranks' losses is taken in another order.
    apart = max(abs(a / b - 1) for a, b in zip(own["loss"], demo["loss"], strict=True))
    assert apart < 1e-6, f"{name}: {own['loss']} is not {demo['loss']}"
    print(f"{name}: losses of the demo to {apart:.1e}, accuracy {own['accuracy']:.4f}")
loss = delta["loss"]
assert all(b < a for a, b in zip(loss, loss[1:])) and loss[-1] < loss[0] / 2, f"delta: {loss}"
assert delta["accuracy"] > 0.85, delta["accuracy"]
print(f"delta: loss {loss[0]:.4f} -> {loss[-1]:.4f}, accuracy {delta['accuracy']:.4f}")
PYTHON
