#!/usr/bin/env bash
# The tutorial's two machines on one: two network namespaces with a cable between them, a launcher in each, 16 ranks; before
# that, four ranks that share nothing but the bytes of a root info.
# namespaces.sh ADASUM_RUN FOLDER: needs root and iproute2; ends with 77 where namespaces cannot be made.
set -euo pipefail
program=$(realpath "$1")
work=$2/namespaces
mkdir -p "$work"
a=adasum-a-$$
b=adasum-b-$$

make() {
    ip netns add "$a" && ip netns add "$b" &&
        ip -n "$a" link add cable type veth peer name cable netns "$b" &&
        ip -n "$a" address add 10.77.0.1/24 dev cable && ip -n "$b" address add 10.77.0.2/24 dev cable &&
        ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
        ip -n "$a" link set cable up && ip -n "$b" link set cable up
}

clean() {
    # Only what this script started: the launchers end their ranks.
    [ -z "${first:-}" ] || kill "$first" 2> /dev/null || true
    [ -z "${second:-}" ] || kill "$second" 2> /dev/null || true
    wait || true
    ip netns del "$a" 2> /dev/null || true
    ip netns del "$b" 2> /dev/null || true
}
trap clean EXIT

if ! make 2> "$work/make.txt"; then
    cat "$work/make.txt" >&2
    exit 77
fi

# A program that knows HCCL only, two ranks per machine: the root info says where the root listens.
root_info() {
    local flags libraries rank pids=() code=0 bytes
    flags=$("$program" config --cflags)
    libraries=$("$program" config --libs)
    # shellcheck disable=SC2086 # flags are words, and the compiler may have a wrapper before it
    ${CXX:-c++} -std=c++17 -O1 -pthread $flags "$(dirname "$0")/../mock/launched_ranks.cpp" -o "$work/launched_ranks" $libraries
    rm -f "$work/root-info"
    for rank in 0 1 2 3; do
        env -u HCCL_MOCK_NET HCCL_CONNECT_TIMEOUT=30 ROOT_INFO_FILE="$work/root-info" OMPI_COMM_WORLD_RANK=$rank \
            OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=$((rank % 2)) \
            ip netns exec "$([ $rank -lt 2 ] && echo "$a" || echo "$b")" "$work/launched_ranks" > "$work/rank$rank.txt" &
        pids+=($!)
    done
    for rank in 0 1 2 3; do
        wait "${pids[$rank]}" || code=1
        cat "$work/rank$rank.txt"
        # Two peers of three are on the other machine; over TCP alone it would be 2.2 MB at least.
        bytes=$(awk '{ print $NF }' "$work/rank$rank.txt")
        [ "${bytes:-0}" -gt 100000 ] && [ "$bytes" -lt 2100000 ] || code=1
    done
    return $code
}
root_info || { echo "ranks of a root info over two machines FAILED" >&2; exit 1; }

table() {
    local server device rank
    printf '{"version": "1.0", "server_count": "2", "server_list": ['
    for server in 0 1; do
        printf '{"server_id": "10.77.0.%d", "device": [' $((server + 1))
        for device in 0 1 2 3 4 5 6 7; do
            rank=$((server * 8 + device))
            printf '{"device_id": "%d", "device_ip": "192.%d.27.%d", "rank_id": "%d"}' $device $((device + 1)) $((server + 6)) $rank
            [ $device = 7 ] || printf ', '
        done
        printf ']}'
        [ $server = 1 ] || printf ', '
    done
    printf '], "status": "completed"}\n'
}
table > "$work/table.json"

# server NAMESPACE INDEX EPOCHS REDUCTION...: becomes one launcher.
server() {
    local namespace=$1 index=$2 epochs=$3 reduction options=()
    shift 3
    for reduction in "$@"; do
        options+=(--reduction "$reduction")
    done
    # A shell lets what it starts in the background ignore ^C.
    exec env -u HCCL_MOCK_NET --default-signal=INT ADASUM_BACKEND=mock HCCL_CONNECT_TIMEOUT=120 \
        ip netns exec "$namespace" "$program" launch \
        --rank-table "$work/table.json" --server-id "$index" --job "namespaces-$$" -- \
        "$program" demo-rank --epochs "$epochs" "${options[@]}"
}

start=$(date +%s.%N)
server "$a" 0 10 adasum mean > "$work/first.txt" 2> "$work/first.err" &
first=$!
server "$b" 1 10 adasum mean > "$work/second.txt" 2> "$work/second.err" &
second=$!
if ! wait $first || ! wait $second; then
    tail -n 20 "$work"/*.err >&2
    exit 1
fi
first= second=
end=$(date +%s.%N)
grep '"event":"done"' "$work/first.txt"
sent=$(ip -n "$a" -s link show cable | awk 'take { print $1; exit } /TX:/ { take = 1 }')
printf 'trained over the cable in %.1f s, %d MB left the first server\n' "$(echo "$end $start" | awk '{ print $1 - $2 }')" $((sent >> 20))
[ "$sent" -gt 1000000 ] || { echo "nothing went over the cable" >&2; exit 1; }

# Both launchers, until training is under way.
begin() {
    server "$a" 0 100000 adasum > "$work/first.txt" 2> "$work/first.err" &
    first=$!
    server "$b" 1 100000 adasum > "$work/second.txt" 2> "$work/second.err" &
    second=$!
    for _ in $(seq 600); do
        ! grep -q '"event":"epoch"' "$work/first.txt" || return 0
        sleep 0.1
    done
    wrong "training did not start"
}

wrong() {
    echo "$1" >&2
    tail -n 20 "$work"/*.err >&2
    exit 1
}

# ended CODE_OF_FIRST CODE_OF_SECOND: what the launchers end with ("fails": anything but 0), and that no process is left.
ended() {
    local code=0 other=0 namespace left start=$SECONDS
    wait $first || code=$?
    wait $second || other=$?
    first= second=
    for _ in $(seq 100); do
        left=
        for namespace in "$a" "$b"; do
            left+=$(ip netns pids "$namespace")
        done
        [ -n "$left" ] || break
        sleep 0.1
    done
    [ -z "$left" ] || wrong "processes are left: $left"
    [ "$1" = "$code" ] || { [ "$1" = fails ] && [ $code != 0 ]; } || wrong "the first launcher ended with $code, not $1"
    [ "$2" = "$other" ] || { [ "$2" = fails ] && [ $other != 0 ]; } || wrong "the second launcher ended with $other, not $2"
    printf '%s: ended with %d and %d after %d s, no process is left\n' "$3" $code $other $((SECONDS - start))
}

# says FILE TEXT: the first sentence of a launcher.
says() {
    local sentence
    sentence=$(grep -m 1 '^adasum-run: ' "$work/$1.err" || true)
    case $sentence in *"$2"*) ;; *) wrong "the $1 launcher says \"$sentence\" and not first \"$2\"" ;; esac
}

rank_process() {
    local pid
    for pid in $(ip netns pids "$1"); do
        if tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "RANK_ID=$2" 2> /dev/null; then
            echo "$pid"
            return
        fi
    done
}

# A rank, a launcher and a whole job are killed: what is left on either server ends by itself and names the cause.
for rank in 0 3 11; do
    begin
    side=first other=second namespace=$a codes=(137 fails)
    [ $rank -lt 8 ] || { side=second other=first namespace=$b codes=(fails 137); }
    kill -KILL "$(rank_process "$namespace" $rank)"
    ended "${codes[@]}" "kill -9 of rank $rank"
    # The launcher of the killed rank names it; the other one has only victims, and points to the first.
    says $side "cause: rank $rank died"
    grep -q '^adasum-run:   ranks\? [0-9, -]*: started by another launcher' "$work/$other.err" ||
        grep -q "^adasum-run: cause: rank $rank " "$work/$other.err" || wrong "the $other launcher blames its own ranks"
done
begin
kill -KILL $second
ended fails 137 "kill -9 of a launcher"
grep -q '^adasum-run:   ranks\? [0-9, -]*: started by another launcher' "$work/first.err" ||
    wrong "the first launcher blames its own ranks"
begin
kill -INT $first
ended 130 fails "^C at the first launcher"
says first "SIGINT: stopping all ranks"

# The cable is pulled in the middle: both sides end, and say which peer is gone.
begin
ip -n "$a" link set cable down
start=$SECONDS
wait $first && { echo "the first launcher did not fail" >&2; exit 1; }
wait $second && { echo "the second launcher did not fail" >&2; exit 1; }
first= second=
for side in first second; do
    if ! grep -m 1 -o 'the connection to rank [0-9]* ([0-9.:]*) was lost ([A-Za-z ]*)' "$work/$side.err"; then
        echo "the $side server's ranks do not name a lost peer:" >&2
        tail -n 20 "$work/$side.err" >&2
        exit 1
    fi
done
printf 'the cable was missed after %d s\n' $((SECONDS - start))
