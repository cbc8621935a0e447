#!/bin/sh
# Installs the C interface by copying: headers, libraries, a pkg-config file and a CMake package.
#
#   sh packaging/install.sh --prefix DIR [--from DIR]
#
# Builds the library in release mode, unless --from names a folder that has libadasum.so and libadasum.a already. DESTDIR is
# put before the prefix. What is installed can be moved as a whole: nothing in it holds the prefix.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

usage() {
    echo "usage: sh packaging/install.sh --prefix DIR [--from DIR]" >&2
    exit 2
}

prefix= from=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
        --prefix) prefix=$2 ;;
        --from) from=$2 ;;
        *) usage ;;
    esac
    shift 2
done
[ -n "$prefix" ] || usage

if [ -z "$from" ]; then
    (cd "$root" && cargo build --quiet --release --locked --lib)
    # Relative paths in the variable are relative to where cargo ran.
    from=$(cd "$root" && cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
fi
for file in libadasum.so libadasum.a; do
    [ -f "$from/$file" ] || { echo "$from/$file is missing" >&2; exit 1; }
done

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
# As build.rs sets it.
soversion=${version%.*}
target=${DESTDIR:-}$prefix
install -d "$target/include" "$target/lib/pkgconfig" "$target/lib/cmake/adasum"
install -m 644 "$root/include/adasum.h" "$root/include/adasum.hpp" "$target/include/"
install -m 755 "$from/libadasum.so" "$target/lib/libadasum.so.$version"
ln -sf "libadasum.so.$version" "$target/lib/libadasum.so.$soversion"
ln -sf "libadasum.so.$soversion" "$target/lib/libadasum.so"
install -m 644 "$from/libadasum.a" "$target/lib/libadasum.a"

fill() {
    sed "s/@VERSION@/$version/g; s/@SOVERSION@/$soversion/g" "$here/$1.in" > "$2/$1"
    chmod 644 "$2/$1"
}
fill adasum.pc "$target/lib/pkgconfig"
fill adasumConfig.cmake "$target/lib/cmake/adasum"
fill adasumConfigVersion.cmake "$target/lib/cmake/adasum"
echo "adasum $version is in $target"
