"""What examples/python/train_digits.py has to arrive at: the same training of all ranks in this one process, on the CPU,
without DistributedDataParallel and without adasum. The difference to the weights that the ranks saved must be 0.

    digits_reference.py FOLDER SIZE EPOCHS [LOCALS [mean]]

AdaSum here is the paper's, in the arithmetic of fp32 pairs on the device, which has no double precision (csrc/kernels/gram_lanes.h):
a product and a sum are rounded to fp32 each, and scalars are sums over 4096 elements in 64 lanes for each 512 of them, which
are joined by halves. Beside it the same with scalars in double precision, to which the difference is a rounding."""

import sys
from pathlib import Path

import torch

# One thread adds in one order.
torch.set_num_threads(1)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python"))

import train_digits  # noqa: E402


def wide_dot(a, b):
    return (a.double() * b.double()).sum()


def device_dot(a, b):
    total = torch.zeros((), dtype=torch.float64)
    for products in (a * b).flatten().split(4096):
        steps = torch.nn.functional.pad(products, (0, 4096 - len(products))).view(8, 8, 64).unbind(1)
        sums = steps[0]
        for step in steps[1:]:
            sums = sums + step
        sums = sums.flatten()
        while len(sums) > 8:
            half = len(sums) // 2
            sums = sums[:half] + sums[half:]
        while len(sums) > 1:
            sums = sums[0::2] + sums[1::2]
        total += sums[0].double()
    return total


def pair(a, b, dot):
    ab, aa, bb = dot(a, b), dot(a, a), dot(b, b)
    if aa == 0 or bb == 0:
        return a + b
    x, y = 1 - ab / (2 * aa), 1 - ab / (2 * bb)
    if ab < 0 and 2 * ab * ab > aa * bb and (x != x.float() or y != y.float()):
        # A pair that nearly cancels is summed in two fp32 numbers (csrc/kernels/tree.h), rounded once like this.
        return (x * a.double() + y * b.double()).float()
    return x.float() * a + y.float() * b


def mean(vectors):
    weight = torch.tensor(1 / len(vectors), dtype=torch.float32)
    total = weight * vectors[0]
    for vector in vectors[1:]:
        total = total + weight * vector
    return total


def adasum(vectors, locals_, dot):
    """The mean of each server's `locals_` ranks, then neighbours; the number of servers is a power of two."""
    level = [mean(vectors[first : first + locals_]) for first in range(0, len(vectors), locals_)]
    while len(level) > 1:
        level = [pair(level[i], level[i + 1], dot) for i in range(0, len(level), 2)]
    return level[0]


def train(size, epochs, combine, batch=8):
    model = train_digits.network()
    parameters = list(model.parameters())
    optimizer = train_digits.make_optimizer(parameters)
    loss_of = torch.nn.CrossEntropyLoss()
    pixels, digits = train_digits.load()
    first = last = None
    for epoch in range(epochs):
        per_rank = [train_digits.batches(epoch, rank, size, batch) for rank in range(size)]
        losses = []
        for step in zip(*per_rank):
            gradients = []
            for images in step:
                loss = loss_of(model(pixels[images]), digits[images])
                losses.append(loss.item())
                gradients.append(torch.autograd.grad(loss, parameters))
            for parameter, of_ranks in zip(parameters, zip(*gradients)):
                parameter.grad = combine(of_ranks)
            optimizer.step()
        last = sum(losses) / len(losses)
        first = last if first is None else first
    return model.state_dict(), first, last


def main():
    folder, size, epochs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    locals_ = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    plain = sys.argv[5:] == ["mean"]
    if plain:
        # DDP adds gradients for the mean in an order of its own.
        check(folder, size, epochs, "mean", mean, 1e-4)
        return
    name = f"AdaSum, {locals_} a server"
    check(folder, size, epochs, f"{name}, scalars as on the device", lambda of: adasum(of, locals_, device_dot), 0.0)
    check(folder, size, epochs, f"{name}, scalars in double precision", lambda of: adasum(of, locals_, wide_dot), 1e-4)


def check(folder, size, epochs, name, combine, tolerance):
    wanted, first, last = train(size, epochs, combine)
    worst = 0.0
    for rank in range(size):
        found = torch.load(folder / f"rank{rank}.pt")
        assert found.keys() == wanted.keys()
        for key, weight in wanted.items():
            worst = max(worst, (found[key].double() - weight.double()).abs().max().item())
    print(f"{size} ranks, {name}: largest difference of a weight {worst}; loss {first:.4f} -> {last:.4f}", flush=True)
    assert worst <= tolerance, f"more than {tolerance}"
    assert last < first / 2, "the loss did not fall to half"


if __name__ == "__main__":
    main()
