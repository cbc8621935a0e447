#!/usr/bin/env bash
# The torch_npu wheels, unmodified, over the mock; and adasum.torch, on CPU tensors and on torch_npu's.
#   bash tests/clients/torch_npu.sh ADASUM_RUN LIBRARY WORK
# ADASUM_RUN is the program, LIBRARY libadasum.so, WORK a folder for an environment of 6 GB, then one of 7 GB, which are deleted at the end. Ends
# with 77 if the wheels of the first pair cannot be had; the second pair is left out, with a line that says SKIPPED, if it cannot.
# ADASUM_TORCH_PYTHON names a Python that has torch and torch_npu already: then it is the only one.
set -euo pipefail
cd "$(dirname "$0")/../.."
run=$(realpath "$1") library=$(realpath "$2") work=$3/torch_npu
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

# The pairs: torch, torch-npu, GB of space. From 2.10 on torch_npu cannot be loaded beside torch as PyPI has it for x86-64, a build for CUDA:
# both register the same settings of an allocator, "Duplicated key 'pinned_reserve_segment_size_mb'" (seen with 2.10.0 and 2.14.0).
first="2.7.1 2.7.1.post11 9" second="2.9.0 2.9.0.post9 11"

# install TORCH TORCH_NPU SPACE: makes an environment with the pinned wheels and names its Python; fails where that cannot be done.
# torch-npu's metadata asks for a build of torch that PyPI has not, hence --no-deps.
install() {
    local free base
    free=$(df --output=avail -B1G "$work" | tail -1)
    [ "$free" -ge "$3" ] || { echo "only $free GB are free, $3 are needed" >&2; return 1; }
    for base in python3.11 python3.10 python3.9; do
        "$base" -m venv "$work/venv" 2> "$work/why" || continue
        python=$work/venv/bin/python
        local pip=("$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --only-binary=:all:)
        "${pip[@]}" "torch==$1" numpy==2.2.6 pyyaml==6.0.2 || return 1
        "${pip[@]}" --no-deps "torch-npu==$2"
        return
    done
    echo "no Python 3.9 to 3.11 that makes environments: $(tail -1 "$work/why")" >&2
    return 1
}

start=$SECONDS
python=${ADASUM_TORCH_PYTHON:-}
# shellcheck disable=SC2086  # a pair is three words
if [ -z "$python" ] && ! install $first; then
    echo "the wheels of torch and torch-npu cannot be installed" >&2
    exit 77
fi
echo "$((SECONDS - start)) s for the wheels"

mock=$("$run" config --mock-lib-dir)
export ADASUM_LIBRARY=$library ADASUM_BACKEND=mock OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PWD/python ASCEND_MOCK_SOC=Ascend950PR_9599
# Otherwise ranks that torchrun starts again find what their predecessors left in torch's store.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
unset RANK_TABLE_FILE

# ranks N PROGRAM ARGUMENTS...: torchrun on a port of its own; prints what it said only if it fails.
ranks() {
    local count=$1 began=$SECONDS
    shift
    if ! timeout 600 "$python" -m torch.distributed.run --nproc-per-node "$count" --rdzv-backend c10d \
        --rdzv-endpoint localhost:0 ${restarts:+--max-restarts "$restarts"} "$@" > "$work/said" 2>&1; then
        cat "$work/said"
        echo "$count ranks of $* FAILED"
        return 1
    fi
    echo "$((SECONDS - began)) s: $count ranks of ${RANK_TABLE_FILE:+(with RANK_TABLE_FILE) }$*"
}
npu() { LD_LIBRARY_PATH=$mock ranks "$@"; }
cpu() { TORCH_DEVICE_BACKEND_AUTOLOAD=0 ranks "$@"; }

clients=tests/clients trainer=examples/python/train_digits.py operators="-m adasum.torch.cpu_operators"

# What every pair of wheels must do.
# shellcheck disable=SC2086  # an option and its value
pair() {
    local size table device weights
    for size in 2 4; do
        # The table that the launcher makes for ranks of one machine.
        table=$("$run" launch -n $size --prefix none -- printenv RANK_TABLE_FILE | sed -n 1p)
        npu $size $clients/process_group.py
        # Root info fails here, so that communicators must come from the table.
        HCCL_MOCK_FAULT="0:HcclGetRootInfo:*:error=4" RANK_TABLE_FILE=$table npu $size $clients/process_group.py
        npu $size $operators $clients/torch_adasum.py npu
        TORCH_DISTRIBUTED_DEBUG=DETAIL npu $size $operators $clients/torch_adasum.py npu reversed
        RANK_TABLE_FILE=$table npu $size $operators $clients/torch_adasum.py npu
        cpu $size $clients/torch_adasum.py cpu
        npu $size $operators $clients/torch_training.py npu
        cpu $size $clients/torch_training.py cpu
        for device in npu cpu; do
            weights=$work/weights-$size-$device
            rm -rf "$weights"
            mkdir -p "$weights/elastic"
            if [ $device = npu ]; then
                npu $size $operators $trainer --device npu --epochs 3 --save "$weights"
                npu $size $operators examples/python/train_optimizer.py --device npu
                restarts=1 npu $size $operators $clients/torch_elastic.py npu "$weights/elastic"
            else
                cpu $size $trainer --epochs 3 --save "$weights"
                cpu $size examples/python/train_optimizer.py
                restarts=1 cpu $size $clients/torch_elastic.py cpu "$weights/elastic"
            fi
            TORCH_DEVICE_BACKEND_AUTOLOAD=0 "$python" $clients/digits_reference.py "$weights" $size 3
        done
    done
}
pair

# The trainer without its lines for AdaSum is an ordinary one, with the mean.
added=$(grep -c '# AdaSum$' $trainer)
echo "$added lines of $trainer are for AdaSum"
# The import is one of them.
[ "$added" -le 5 ]
mkdir -p "$work/plain/python" "$work/plain/data" "$work/plain/weights"
grep -v '# AdaSum$' $trainer > "$work/plain/python/train_digits.py"
"$python" - "$work/plain/python/train_digits.py" <<'PYTHON'
import ast, sys
tree = ast.parse(open(sys.argv[1]).read())
assert "adasum" in ast.get_docstring(tree).lower()
tree.body = tree.body[1:]
assert "adasum" not in ast.unparse(tree).lower(), "lines for AdaSum without the mark"
PYTHON
cp examples/data/optdigits.csv "$work/plain/data"
cpu 2 "$work/plain/python/train_digits.py" --epochs 3 --save "$work/plain/weights"
TORCH_DEVICE_BACKEND_AUTOLOAD=0 "$python" $clients/digits_reference.py "$work/plain/weights" 2 3 1 mean

if [ -n "${ADASUM_TORCH_PYTHON:-}" ]; then
    echo "!!! SKIPPED the second pair of wheels: ADASUM_TORCH_PYTHON is set"
else
    rm -rf "$work/venv"
    # shellcheck disable=SC2086
    if install $second; then
        echo "torch and torch-npu $second (GB)"
        pair
    else
        echo "!!! SKIPPED the second pair of wheels, $second (GB): it cannot be installed"
    fi
fi
echo "$((SECONDS - start)) s in all"
