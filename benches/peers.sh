#!/usr/bin/env bash
# Measures this project beside Horovod's AdaSum core and OpenMPI's plain sum, in paired rounds on one machine.
#   peers.sh PEERS [RANKS...]
# PEERS is a folder with the programs bench_peer and bench_peer_fast: drivers of Horovod's adasum_mpi.cc (built with -O3
# and with -Ofast) that take `bench DTYPE BYTES LAYERS REPS SECONDS adasum|sum` under mpirun and print lines with the keys
# of `adasum-run bench`. A row for each case and peer: our figures, the peer's time, and the median and quartiles of the ratios.
# RANKS: 2 4 8 16 by default. ADASUM_RUN names the program (default: target/release/adasum-run); ROUNDS, REPS and SECONDS_EACH how
# often and how long each is measured (REPS: 20, or what reduces 512 MiB, as the first repetitions of ranks that share cores
# are slow); BYTES, DTYPES and PEER (horovod, horovod-Ofast or openmpi-sum) what is measured; EXCHANGE how our exchanges are made.
set -euo pipefail
peers=$(printf %q "${1:?usage: peers.sh PEERS [RANKS...]}")
shift
here=$(cd "$(dirname "$0")" && pwd)
run=${ADASUM_RUN:-$here/../target/release/adasum-run}
export OMPI_MCA_btl=self,vader OMP_NUM_THREADS=1

# row NAME PROGRAM WHAT RANKS DTYPE BYTES
row() {
    [ "${PEER:-$1}" = "$1" ] || return 0
    local least=$((536870912 / $6))
    local reps=${REPS:-$((least > 20 ? least : 20))}
    local mpirun="mpirun --allow-run-as-root --oversubscribe -np $4 $peers/$2"
    "$run" bench --ranks "$4" --dtype "$5" --bytes "$6" --tensors 161 --exchange "${EXCHANGE:-auto}" --reps "$reps" --rounds "${ROUNDS:-9}" \
        --compare "$mpirun bench $5 $6 161 $reps ${SECONDS_EACH:-6} $3" | grep -v '^# [^ ]' |
        while IFS= read -r line; do
            case $line in
                '#'*) [ -n "${head:-}" ] || printf '%-16s %5s %s\n' "# peer" ranks "${line#?}" ;;
                *) printf '%-16s %5s %s\n' "$1" "$4" "$line" ;;
            esac
        done
    head=printed
}

for ranks in ${*:-2 4 8 16}; do
    for bytes in ${BYTES:-1048576 16777216 102228128}; do
        for dtype in ${DTYPES:-f32 f16}; do
            row horovod bench_peer adasum "$ranks" "$dtype" "$bytes"
            row horovod-Ofast bench_peer_fast adasum "$ranks" "$dtype" "$bytes"
            row openmpi-sum bench_peer sum "$ranks" "$dtype" "$bytes"
        done
    done
done
