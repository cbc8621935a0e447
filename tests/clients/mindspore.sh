#!/usr/bin/env bash
# MindSpore's Ascend plugin over the mock: it starts, reduces, adopts a communicator of ours; and AdaSum on its tensors, in graphs too. Then
# adasum.mindspore with the CPU target: the cells on 4 ranks and, with the newest release, on 16 and in the tutorial's program.
#   bash tests/clients/mindspore.sh ADASUM_RUN LIBRARY WORK
# ADASUM_RUN is the program, LIBRARY libadasum.so, WORK a folder for an environment of 3 GB, then another one, which are deleted at the end. Ends
# with 77 if the wheel of the newest release cannot be had; the older one is left out, with a line that says SKIPPED, if it cannot.
# ADASUM_MINDSPORE_PYTHON names a Python that has a wheel already: then it is the only one.
set -euo pipefail
cd "$(dirname "$0")/../.."
run=$(realpath "$1") library=$(realpath "$2") work=$3/mindspore
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

newest=2.10.0 older=2.7.1

# install RELEASE: makes an environment with the pinned wheel and names its Python; fails where that cannot be done. The wheel's operators need
# NumPy 1, and building one ninja and pyyaml.
install() {
    local free base
    free=$(df --output=avail -B1G "$work" | tail -1)
    [ "$free" -ge 5 ] || { echo "only $free GB are free" >&2; return 1; }
    for base in python3.11 python3.10 python3.12 python3.9; do
        "$base" -m venv "$work/venv" 2> "$work/why" || continue
        python=$work/venv/bin/python
        "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --only-binary=:all: "mindspore==$1" "numpy<2" ninja pyyaml
        return
    done
    echo "no Python 3.9 to 3.12 that makes environments: $(tail -1 "$work/why")" >&2
    return 1
}

start=$SECONDS
python=${ADASUM_MINDSPORE_PYTHON:-}
if [ -z "$python" ] && ! install $newest; then
    echo "the wheel of MindSpore cannot be installed" >&2
    exit 77
fi
echo "$((SECONDS - start)) s for the wheel"
export ADASUM_LIBRARY=$library ADASUM_BACKEND=mock PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python
export OMP_NUM_THREADS=1 GLOG_v=3
unset RANK_TABLE_FILE

# What the Ascend target does, on 2 and 4 ranks: the part of every release.
ascend() (
    "$python" tests/clients/mindspore_companions.py "$("$run" config --mock-lib-dir)" "$work/vendor"
    export LD_LIBRARY_PATH=$work/vendor/latest/lib64 ASCEND_OPP_PATH=$work/vendor/latest/opp
    export PYTHONPATH=$PYTHONPATH:$work/vendor/python PATH=$(dirname "$python"):$PATH
    for size in 2 4; do
        began=$SECONDS
        port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
        code=0
        timeout 300 msrun --worker_num $size --local_worker_num $size --master_port "$port" --join True \
            --log_dir "$work/log-$size" examples/python/mindspore_adasum.py > "$work/said" 2>&1 || code=$?
        total=$((size * (size + 1) / 2)).0
        for line in "MindSpore's world: $total" "the shared communicator: $total" "AdaSum: \[1\. 1\..*\]" \
            "the mean: $(((size - 1) / 2)).5"; do
            if [ $code = 0 ] && [ "$(cat "$work/log-$size"/worker_*.log | grep -c "^rank [0-9]*: $line$")" != $size ]; then
                echo "not every rank says: $line"
                code=1
            fi
        done
        if [ $code != 0 ]; then
            cat "$work/said" "$work/log-$size"/worker_*.log
            echo "$size ranks of MindSpore FAILED"
            exit 1
        fi
        echo "$((SECONDS - began)) s: $size ranks of examples/python/mindspore_adasum.py"
    done
    # Graphs of the Ascend target: the operator is refused where it cannot be built, built once by all ranks together, and reduces.
    for size in 2 4; do
        began=$SECONDS
        port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
        code=0
        # MindSpore writes what it could not compile into the current directory.
        (cd "$work" && MS_COMPILER_CACHE_PATH=$work/graphs exec timeout 300 msrun --worker_num $size --local_worker_num $size \
            --master_port "$port" --join True --log_dir "$work/graphs-$size" "$OLDPWD/tests/clients/mindspore_graph.py") > "$work/said" 2>&1 || code=$?
        if [ $code != 0 ] || [ "$(cat "$work/graphs-$size"/worker_*.log | grep -c "^rank [0-9]*: the mean and AdaSum in graphs$")" != $size ]; then
            cat "$work/said" "$work/graphs-$size"/worker_*.log
            echo "graphs of $size ranks FAILED"
            exit 1
        fi
        echo "$((SECONDS - began)) s: graphs of $size ranks on MindSpore's Ascend target"
    done
    rm -r "$work/vendor" "$work/graphs"*
)

# cells SERVERS DEVICES PART: a part of mindspore_cells.py on the ranks of so many servers. Here and in the tutorial MindSpore computes on the
# CPU; only this library is over the mock.
cells() {
    local began=$SECONDS
    mkdir -p "$work/shared"
    "$run" launch --servers "$1" --devices-per-server "$2" --timeout 1800 -- "$python" tests/clients/mindspore_cells.py "$work/shared" "$3" 2>&1 |
        tee "$work/said" | grep '^\[r0\] .*[|:]' || { cat "$work/said"; return 1; }
    echo "$((SECONDS - began)) s: $3 on $1 servers of $2"
    rm -r "$work/shared"
}

# What every release must do.
release() {
    ascend
    cells 2 2 modes
    cells 2 2 cells
    cells 1 4 cells
}
release

cells 2 8 modes

# As on two machines without --node_rank.
two_msrun() {
    local began=$SECONDS port first code=0
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
    local msrun=(env PATH="$(dirname "$python"):$PATH" timeout 300 msrun --worker_num 2 --local_worker_num 1 --master_port "$port" --join True)
    "${msrun[@]}" --log_dir "$work/msrun-1" tests/clients/mindspore_msrun.py > "$work/one" 2>&1 &
    first=$!
    # Whoever comes second has no scheduler: its address is taken.
    sleep 5
    "${msrun[@]}" --log_dir "$work/msrun-2" tests/clients/mindspore_msrun.py > "$work/two" 2>&1 || code=$?
    wait $first || code=$?
    if [ "$(cat "$work"/msrun-?/worker_*.log | grep -c '^rank [01] of two msrun$')" != 2 ]; then
        cat "$work/one" "$work/two" "$work"/msrun-?/worker_*.log
        echo "two msrun FAILED with $code"
        exit 1
    fi
    rm -r "$work"/msrun-?
    echo "$((SECONDS - began)) s: two msrun"
}
two_msrun

# tutorial REDUCER: the tutorial's program on two machines of eight; the loss of rank 0 must fall to a half.
tutorial() {
    local began=$SECONDS one two=0
    export JOB=mindspore-$$-$1 PYTHON=$python
    bash examples/tutorial/mindspore/run_node1.sh examples/data/optdigits.csv --reducer "$1" > "$work/one" 2>&1 &
    one=$!
    bash examples/tutorial/mindspore/run_node2.sh examples/data/optdigits.csv --reducer "$1" > "$work/two" 2>&1 || two=$?
    wait $one || two=$?
    if [ $two != 0 ] || ! grep '^\[r0\] epoch: [0-9]* step: [0-9]*, loss is ' "$work/one" |
        awk '{ print; last = $NF } NR == 1 { first = $NF } END { exit !(NR >= 2 && last < first / 2) }'; then
        cat "$work/one" "$work/two"
        echo "the tutorial with --reducer $1 FAILED"
        exit 1
    fi
    echo "$((SECONDS - began)) s: examples/tutorial/mindspore with --reducer $1"
}

PATH=$(dirname "$run"):$PATH
for reducer in gradient delta boost mean; do
    tutorial $reducer
done

if [ -n "${ADASUM_MINDSPORE_PYTHON:-}" ]; then
    echo "!!! SKIPPED MindSpore $older: ADASUM_MINDSPORE_PYTHON is set"
else
    rm -rf "$work/venv"
    if install $older; then
        echo "MindSpore $older"
        release
    else
        echo "!!! SKIPPED MindSpore $older: its wheel cannot be installed"
    fi
fi
echo "$((SECONDS - start)) s in all"
