#!/usr/bin/env bash
# Type-checks the kernels for every chip against the vendor's real headers, by g++ in their CPU mode.
#   bash tests/kernels/vendor_headers.sh ASC_DEVKIT [CANN_8_1]
# ASC_DEVKIT is a checkout of the vendor's open asc-devkit (CANN 9.x), CANN_8_1 one with the headers of CANN 8.1. They are
# read where they are; nothing of them is kept. Ends with 1 if there is an error or a warning in our files, or an error that
# one of their own rules raises at a call of ours.
#
# The headers lean on closed ones. closed.h stands for the types of those; their functions are declared as the open headers
# call them, whatever they take. High-level interfaces, which the kernels do not use, are left empty.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."
devkit=$(realpath "${1:?"usage: bash tests/kernels/vendor_headers.sh ASC_DEVKIT [CANN_8_1]"}")
older=${2:+$(realpath "$2")}
ours=$PWD/csrc/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# empty FOLDER PATTERN HEADERS...: an empty file under FOLDER for each header that matches and that HEADERS include.
empty() {
    local name
    grep -rhoE "#include \"$2[^\"]*\"" "${@:3}" | sed 's/#include "//; s/"//' | sort -u | while read -r name; do
        mkdir -p "$1/$(dirname "$name")"
        : > "$1/$name"
    done
}

# stand_ins FOLDER: the closed headers.
stand_ins() {
    local name
    mkdir -p "$1/kernel_tiling"
    cp tests/kernels/closed.h "$1"
    # Only kernels for Ascend 950 call it, where no wrapper does.
    echo 'CLOSED_FUNCTION(dci)' > "$1/closed_functions.h"
    for name in stub_def.h stub_fun.h kernel_fp16.h kernel_bf16.h simt_stub.h kernel_tiling/kernel_tiling.h; do
        echo '#include "closed.h"' > "$1/$name"
    done
}

# compile SOURCES...: what g++ says, with the flags of the version and the chip.
compile() {
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c 'g++ -std=c++17 -fsyntax-only -fmax-errors=0 -Wall -Wextra \
        -Wno-unknown-pragmas -DASCENDC_CPU_DEBUG=1 -DASCENDC_DUMP=0 "$@" > "$0/$(basename {}).log" 2>&1 {} || true' \
        "$work" "${flags[@]}" "-DADASUM_NPU_ARCH=$arch" -I "$ours"
    for source in "$@"; do cat "$work/$(basename "$source").log"; done
}

# messages: of what g++ says on standard input, the messages, behind "OURS " or "THEIRS ".
messages() {
    awk -v ours="$ours/" '
        /In instantiation of|required from/ { if (index($0, ours)) called = 1 }
        /: (fatal error|error|warning): / {
            own = index($0, ours) == 1 || (called && /static assertion failed/)
            print (own ? "OURS " : "THEIRS ") $0
            called = 0
        }'
}

# check NAME ARCH FLAGS...: all kernels for a chip by the headers that FLAGS name.
check() {
    local name=$1 source sources folder=$work/$1-$2
    arch=$2
    flags=("${@:3}")
    stand_ins "$folder"
    flags+=(-I "$folder")
    echo '#include "kernel_operator.h"' > "$folder/headers.cpp"
    # Functions that the open headers call and do not declare: those alone, then what the kernels make of them.
    for source in headers kernels kernels kernels; do
        sources=("$folder/headers.cpp")
        [ $source = headers ] || sources=("$ours"/*.cpp)
        compile "${sources[@]}" > "$folder/log"
        { grep -v "^$ours" "$folder/log" || true; } |
            { grep -oE "(no arguments to|error:) '[A-Za-z_][A-Za-z_0-9]*' (that depend|was not declared)" || true; } |
            sed "s/[^']*'//; s/'.*//; s/.*/CLOSED_FUNCTION(&)/" | sort -u > "$folder/more"
        [ -s "$folder/more" ] || [ $source = headers ] || break
        sort -u -o "$folder/closed_functions.h" "$folder/closed_functions.h" "$folder/more"
    done
    messages < "$folder/log" | sort -u > "$folder/messages"
    count() { grep -cE "^$1 .*: (fatal )?$2: " "$folder/messages" || true; }
    printf '%-8s %s: in our files %d errors, %d warnings; in theirs %d errors, %d warnings; %d closed functions\n' \
        "$name" "$arch" "$(count OURS error)" "$(count OURS warning)" "$(count THEIRS error)" "$(count THEIRS warning)" \
        "$(wc -l < "$folder/closed_functions.h")"
    sed -n 's/^OURS /    ours: /p' "$folder/messages"
    sed -nE '/: (fatal )?error: /s/^THEIRS /    theirs: /p' "$folder/messages" | head -20
    ! grep -q '^OURS ' "$folder/messages" || bad=1
}

# CANN 9: headers by number of the chip.
view=$work/view
mkdir -p "$view/include"
ln -s "$devkit/include/basic_api" "$devkit/include/utils" "$view/include"
ln -s "$devkit/impl" "$devkit/include/kernel_operator.h" "$view"
empty "$view" '(include/)?(adv_api|simt_api)/' "$view/include/basic_api" "$view/include/utils" "$view/impl/basic_api" \
    "$view/impl/utils"
includes=(-I "$view" -I "$view/include" -I "$view/include/basic_api" -I "$view/impl/basic_api")
version=$(sed -nE 's/^set_cann_package\(.*VERSION "([0-9.]+)".*/\1/p' "$devkit/version.cmake")
for arch in 2201 1001 3510; do
    check "${version:-devkit}" $arch "${includes[@]}" -D__NPU_ARCH__=$arch -D__DAV_VEC__ -DADASUM_WITHOUT_WRAPPER
done

# CANN 8.1: by the compiler's name of the core.
if [ -z "$older" ]; then
    echo '!!! SKIPPED CANN 8.1: no second folder was given'
else
    header=$(find "$older" -path '*/include/basic_api/kernel_operator.h' -print -quit)
    api=$(dirname "${header:?"there is no include/basic_api/kernel_operator.h below $2"}")
    empty "$work/lib" 'lib/' "$api"
    includes=(-I "$work/lib" -I "$api" -I "$api/impl" -I "$api/interface")
    check 8.1 2201 "${includes[@]}" -D__NPU_ARCH__=2201 -D__CCE_AICORE__=220 -D__DAV_C220_VEC__
    check 8.1 1001 "${includes[@]}" -D__NPU_ARCH__=1001 -D__CCE_AICORE__=100
    if [ -d "$api/impl/dav_c310" ]; then
        check 8.1 3510 "${includes[@]}" -D__NPU_ARCH__=3510 -D__CCE_AICORE__=310 -D__DAV_C310_VEC__ -DADASUM_WITHOUT_WRAPPER
    else
        echo '!!! NOT CHECKED: 8.1 3510: these headers know no Ascend 950 (no impl/dav_c310)'
    fi
fi
exit $bad
