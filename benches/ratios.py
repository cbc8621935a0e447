#!/usr/bin/env python3
"""Ratios of our times to those of the peers, from the lines that peers.sh wrote: ratios.py FILE.

For each number of ranks, type and size: ours over the faster of Horovod's two builds, and over OpenMPI's plain sum; shortest
times over all runs, and medians of the runs' medians. Below 1 is faster. `*` marks a ratio above its target.
"""

import json
import statistics
import sys

# The most that the ratio to the faster build should be, by bytes; 2 ranks have one of their own.
TARGETS = {1048576: 1.0, 16777216: 0.5, 102228128: 0.5}
TARGET_OF_TWO = {16777216: 0.65}


def times(lines, key):
    """The shortest time and the median of medians of each program for a case, in milliseconds."""
    programs = {}
    for line in lines:
        if (line["ranks"], line["dtype"], line["bytes"]) == key:
            programs.setdefault(line["peer"], []).append(line)
    return {
        name: (
            1e3 * min(run["min_s"] for run in runs),
            1e3 * statistics.median(run["median_s"] for run in runs),
        )
        for name, runs in programs.items()
    }


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines = [line for line in lines if "min_s" in line]
    print("ranks type  MB   ours ms (median)    peer ms (median)    ratio (median)  sum ms   ratio (median)")
    for key in sorted({(line["ranks"], line["dtype"], line["bytes"]) for line in lines}):
        found = times(lines, key)
        peers = [found[name] for name in found if name.startswith("horovod")]
        if "adasum" not in found or not peers:
            continue
        ours = found["adasum"]
        best = [min(peer[i] for peer in peers) for i in range(2)]
        target = (TARGET_OF_TWO if key[0] == 2 and key[2] in TARGET_OF_TWO else TARGETS).get(key[2], 1.0)
        mark = "*" if ours[0] / best[0] > target else " "
        row = f"{key[0]:5} {key[1]:4} {key[2] / 1e6:4.0f} {ours[0]:9.3f} ({ours[1]:8.3f}) {best[0]:9.3f} ({best[1]:8.3f})"
        row += f"  {ours[0] / best[0]:6.2f}{mark}({ours[1] / best[1]:5.2f})"
        plain = found.get("mpi-allreduce-sum")
        if plain:
            row += f" {plain[0]:9.3f} {ours[0] / plain[0]:6.2f} ({ours[1] / plain[1]:5.2f})"
        print(row)


if __name__ == "__main__":
    main()
