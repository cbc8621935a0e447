#!/usr/bin/env python3
"""What many tensors cost against one of the same bytes: tensors.py [PAIRS], 30 by default.

Runs `adasum-run bench` with 398 tensors and with 1 in turn, 2 ranks and 102,228,128 bytes of fp32 each, and prints the ratio
of the shortest times of each pair, and the median of all. ADASUM_RUN names the program (default:
target/release/adasum-run), REPS the repetitions of a run, ARGUMENTS further arguments of both.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
RUN = os.environ.get("ADASUM_RUN", str(HERE.parent / "target/release/adasum-run"))
REPS = os.environ.get("REPS", "10")
ARGUMENTS = os.environ.get("ARGUMENTS", "").split()


def shortest(tensors):
    command = [RUN, "bench", "--json", "--ranks", "2", "--tensors", str(tensors), "--reps", REPS, *ARGUMENTS]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[0])["min_s"]


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    ratios = []
    for pair in range(pairs):
        # Whoever is first changes from pair to pair.
        order = (398, 1) if pair % 2 == 0 else (1, 398)
        times = {tensors: shortest(tensors) for tensors in order}
        ratios.append(times[398] / times[1])
        print(f"{ratios[-1]:.3f} ", end="", flush=True)
    print(f"\nmedian of {pairs} pairs: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
