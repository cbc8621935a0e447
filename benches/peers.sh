#!/usr/bin/env bash
# Measures this project beside Horovod's AdaSum core and OpenMPI's plain sum, in turn on one machine.
#   peers.sh PEERS OUT [RANKS...]
# PEERS is a folder with the programs bench_peer and bench_peer_fast: drivers of Horovod's adasum_mpi.cc (built with -O3
# and with -Ofast) that take `bench DTYPE BYTES LAYERS REPS SECONDS adasum|sum` under mpirun and print lines with the keys
# of `adasum-run bench`. OUT is written: all lines of peers and ours. The ratios are printed (ratios.py). RANKS: 2 4 8 16 by
# default. ADASUM_RUN names the program (default: target/release/adasum-run); REPS, ROUNDS and SECONDS_EACH how often and how
# long a run of a peer may be; BYTES and DTYPES what is measured.
set -euo pipefail
peers=${1:?usage: peers.sh PEERS OUT [RANKS...]}
out=${2:?usage: peers.sh PEERS OUT [RANKS...]}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
run=${ADASUM_RUN:-$here/../target/release/adasum-run}
reps=${REPS:-20}
export OMPI_MCA_btl=self,vader OMP_NUM_THREADS=1
: > "$out"

peer() { # PROGRAM RANKS DTYPE BYTES WHAT
  mpirun --allow-run-as-root --oversubscribe -np "$2" "$peers/$1" bench "$3" "$4" 161 "$reps" "${SECONDS_EACH:-6}" "$5"
}

for ranks in ${*:-2 4 8 16}; do
  for bytes in ${BYTES:-1048576 16777216 102228128}; do
    for dtype in ${DTYPES:-f32 f16}; do
      # In turn, so that whatever else the machine does meets all of them.
      for _ in $(seq "${ROUNDS:-3}"); do
        {
          peer bench_peer "$ranks" "$dtype" "$bytes" adasum
          PEER_TAG=-fast peer bench_peer_fast "$ranks" "$dtype" "$bytes" adasum
          "$run" bench --json --ranks "$ranks" --dtype "$dtype" --bytes "$bytes" --tensors 161 --reps "$reps"
          peer bench_peer "$ranks" "$dtype" "$bytes" sum
        } >> "$out"
      done
      echo "$ranks ranks, $dtype, $bytes bytes: done" >&2
    done
  done
done
python3 "$here/ratios.py" "$out"
