#!/bin/sh
# The programs about the C interface under valgrind, or under AddressSanitizer and UndefinedBehaviorSanitizer.
#   sh tests/c/capi.sh valgrind|sanitizers PREFIX ADASUM_RUN WORK
# PREFIX is where packaging/install.sh has put the library, ADASUM_RUN the program that carries the mock, WORK a folder.
set -eu
mode=$1 prefix=$2 run=$3 work=$4
cd "$(dirname "$0")"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
# valgrind has little address space to give.
export ASCEND_MOCK_HBM_MB=256
unset RANK_TABLE_FILE MINDSPORE_HCCL_CONFIG_PATH RANK WORLD_SIZE
# shellcheck disable=SC2046 # flags are words
for program in capi.c capi_nulls.c capi_order.c capi_profile.c capi.cpp; do
    case $program in
        *.cpp) set -- g++ -std=c++17 ;;
        *) set -- gcc -std=c99 ;;
    esac
    if [ "$mode" = sanitizers ]; then
        set -- "$@" -fsanitize=address,undefined -fno-sanitize-recover=all
    fi
    binary=$work/$mode-$program.out
    "$@" -O1 -g -Wall -Wextra -Werror -pthread $(pkg-config --cflags adasum) $("$run" config --cflags) "$program" \
        -o "$binary" $(pkg-config --libs adasum) $("$run" config --libs) -lm -Wl,-rpath,"$prefix/lib"
    if [ "$mode" = sanitizers ]; then
        nm "$binary" | grep -q __asan_init
        (cd "$work" && "$binary")
    else
        # What lives until the end of the process is no leak; what nothing points to is.
        (cd "$work" && valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
            --errors-for-leak-kinds=definite,indirect "$binary")
    fi
    echo "$program: clean under $mode"
done
