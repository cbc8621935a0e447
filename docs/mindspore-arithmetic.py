#!/usr/bin/env python3
"""Prints the tables of mindspore-arithmetic.md: how far results of `adasum-run reduce` lie from AdaSum in float64.

    python3 mindspore-arithmetic.py path/to/adasum-run

Needs nothing but Python.
"""
import math
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SIZE = 4096
DRAWS = 9


def normal(rng, size):
    return [rng.gauss(0, 1) for _ in range(size)]


def shared(rng, n, size, scale=lambda i, rank: 1.0):
    """Gradients with a common part: cosines are about 1/2."""
    common = normal(rng, size)
    return [[scale(i, r) * (c + rng.gauss(0, 1)) for i, c in enumerate(common)] for r in range(n)]


def negative_with_zero(rng, n):
    out = [[-abs(x) - 0.1 for x in g] for g in shared(rng, n, SIZE)]
    out[0][-1] = 0.0
    return out


def sparse(rng, n):
    """The second half never positive, half of it zero."""
    out = shared(rng, n, SIZE)
    for g in out:
        for i in range(SIZE // 2, SIZE):
            g[i] = -abs(g[i]) if rng.random() < 0.5 else 0.0
    return out


def disagree(rng, n):
    """The first halves agree, the second ones oppose."""
    common = normal(rng, SIZE)
    sign = lambda r, i: -1.0 if r % 2 and i >= SIZE // 2 else 1.0
    return [[sign(r, i) * c + 0.3 * rng.gauss(0, 1) for i, c in enumerate(common)] for r in range(n)]


FAMILIES = {
    "independent, N(0, 1)": lambda rng, n: [normal(rng, SIZE) for _ in range(n)],
    "a common part, cosine 1/2": lambda rng, n: shared(rng, n, SIZE),
    "the same, of 16 elements": lambda rng, n: shared(rng, n, 16),
    "the halves of the tensor differ by 1000": lambda rng, n: shared(
        rng, n, SIZE, lambda i, r: 1.0 if i < SIZE // 2 else 1e-3
    ),
    "the servers differ by powers of 10": lambda rng, n: shared(rng, n, SIZE, lambda i, r: 10.0**r),
    "a sixteenth 1000 times larger": lambda rng, n: shared(
        rng, n, SIZE, lambda i, r: 1.0 if i < SIZE // 16 else 1e-3
    ),
    "first halves agree, second halves oppose": disagree,
    "all negative but for one 0": negative_with_zero,
    "second half never positive, often 0": sparse,
    "a common part, times 1e-8": lambda rng, n: shared(rng, n, SIZE, lambda i, r: 1e-8),
    "a common part, times 1e-20": lambda rng, n: shared(rng, n, SIZE, lambda i, r: 1e-20),
}
# What goes wrong by design, with its own inputs by server.
SMALL = {
    "one element, the first server's 0": [[0.0]] + [[8.0]] * 3,
    "two elements, equal on all servers": [[1.0, 10.0]] * 4,
}


def as_fp32(values):
    return list(struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values)))


def write(path, tensors):
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in tensors.items():
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
            header = header.ljust(117) + "\n"
            data = struct.pack(f"<{len(values)}f", *values)
            start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
            archive.writestr(name + ".npy", start + header.encode() + data)


def read(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            data = data[10 + struct.unpack("<H", data[8:10])[0] :]
            yield name[: -len(".npy")], struct.unpack(f"<{len(data) // 4}f", data)


def pair(a, b):
    ab, aa, bb = (math.fsum(x * y for x, y in zip(u, v)) for u, v in ((a, b), (a, a), (b, b)))
    ca = 1 - (ab / (2 * aa) if aa else 0)
    cb = 1 - (ab / (2 * bb) if bb else 0)
    return [ca * x + cb * y for x, y in zip(a, b)]


def paper(vectors):
    while len(vectors) > 1:
        vectors = [pair(a, b) for a, b in zip(vectors[::2], vectors[1::2])]
    return vectors[0]


def norm(vector):
    return math.sqrt(math.fsum(x * x for x in vector))


def reduce(program, folder, servers, arithmetic):
    """Results of the command by tensor; `servers` are dictionaries of tensors."""
    files = [folder / f"server{number}.npz" for number in range(len(servers))]
    for path, tensors in zip(files, servers):
        write(path, tensors)
    out = folder / "out.npz"
    command = [program, "reduce", *map(str, files), "-o", str(out), "--arithmetic", arithmetic]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return dict(read(out))


def errors(program, folder, n):
    """For each family and arithmetic, the relative errors of all draws."""
    servers = [{} for _ in range(n)]
    for family, make in FAMILIES.items():
        for draw in range(DRAWS):
            for server, vector in zip(servers, make(random.Random(f"{family} {n} {draw}"), n)):
                server[f"{family}/{draw}"] = as_fp32(vector)
    truth = {name: paper([server[name] for server in servers]) for name in servers[0]}
    found = {}
    for arithmetic in ("paper", "mindspore"):
        results = reduce(program, folder, servers, arithmetic)
        for name, true in truth.items():
            error = norm([x - y for x, y in zip(results[name], true)]) / norm(true)
            found.setdefault((name.rsplit("/", 1)[0], arithmetic), []).append(error)
    return found


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        by_count = {n: errors(program, folder, n) for n in (2, 4, 8)}
        print("| gradients | paper: 2 / 4 / 8 servers | mindspore: 2 / 4 / 8 servers |\n|---|---|---|")
        for family in FAMILIES:
            cells = [
                " / ".join(f"{statistics.median(by_count[n][family, a]):.0e}" for n in by_count)
                for a in ("paper", "mindspore")
            ]
            print(f"| {family} | {cells[0]} | {cells[1]} |")
        print("\n| gradients | paper | mindspore |\n|---|---|---|")
        for name, vectors in SMALL.items():
            servers = [{name: vector} for vector in vectors]
            cells = [str(list(reduce(program, folder, servers, a)[name])) for a in ("paper", "mindspore")]
            print(f"| {name} | {cells[0]} | {cells[1]} |")


main()
