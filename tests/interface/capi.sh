#!/bin/sh
# The programs about the C interface under valgrind, or under AddressSanitizer and UndefinedBehaviorSanitizer.
#   sh tests/interface/capi.sh valgrind|sanitizers PREFIX ADASUM_RUN WORK [PROGRAM...]
# All programs unless some are named. PREFIX is where packaging/install.sh has put the library, ADASUM_RUN the program that carries the mock, WORK a folder.
set -eu
mode=$1 prefix=$2 run=$3 work=$4
shift 4
programs=${*:-capi.c capi_helpers.c capi_nulls.c capi_order.c capi_places.c capi_profile.c capi.cpp}
cd "$(dirname "$0")"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
# valgrind has little address space to give, and looks for pointers in all device memory.
export ASCEND_MOCK_HBM_MB=256 HCCL_BUFFSIZE=8
unset RANK_TABLE_FILE MINDSPORE_HCCL_CONFIG_PATH RANK WORLD_SIZE ADASUM_STATISTICS_DIR

# Runs a program; leaks=no in the environment looks for none. What lives until the end of the process is no leak.
check() (
    cd "$work"
    if [ "$mode" = sanitizers ]; then
        [ "${leaks:-}" != no ] || export ASAN_OPTIONS=detect_leaks=0
        "$@"
    elif [ "${leaks:-}" = no ]; then
        valgrind --quiet --error-exitcode=99 "$@"
    else
        valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
            --errors-for-leak-kinds=definite,indirect "$@"
    fi
)

# shellcheck disable=SC2046 # flags are words
for program in $programs; do
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
    [ "$mode" = valgrind ] || nm "$binary" | grep -q __asan_init
    case $program in
        # What the queued work of an aborted world may still use is never freed: no leaks are looked for there.
        capi_order.c) check "$binary" orderly; (leaks=no; check "$binary" aborted) ;;
        *) check "$binary" ;;
    esac
    echo "$program: clean under $mode"
done
