"""What examples/python/train_digits.py has to arrive at: the same training of all ranks in this one process, on the CPU, without
DistributedDataParallel and without adasum. The difference to the weights that the ranks saved must be 0.

    digits_reference.py FOLDER SIZE EPOCHS [LOCALS [mean]]

AdaSum here is the paper's, with scalars in double precision. Its two products and one sum are of fp32, as the library documents
for the device, where they cannot be anything else; vectors are rounded to fp32 between the levels of the tree."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python"))

import train_digits  # noqa: E402


def pair(a, b):
    wide_a, wide_b = a.double(), b.double()
    dot, aa, bb = (wide_a * wide_b).sum(), (wide_a * wide_a).sum(), (wide_b * wide_b).sum()
    if aa == 0 or bb == 0:
        return a + b
    return (1 - dot / (2 * aa)).float() * a + (1 - dot / (2 * bb)).float() * b


def mean(vectors):
    weight = torch.tensor(1 / len(vectors), dtype=torch.float32)
    total = weight * vectors[0]
    for vector in vectors[1:]:
        total = total + weight * vector
    return total


def adasum(vectors, locals_):
    """The mean of each server's `locals_` ranks, then neighbours; the number of servers is a power of two."""
    level = [mean(vectors[first : first + locals_]) for first in range(0, len(vectors), locals_)]
    while len(level) > 1:
        level = [pair(level[i], level[i + 1]) for i in range(0, len(level), 2)]
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
    # One thread adds in one order.
    torch.set_num_threads(1)
    combine = mean if plain else lambda vectors: adasum(vectors, locals_)
    wanted, first, last = train(size, epochs, combine)
    worst = 0.0
    for rank in range(size):
        found = torch.load(folder / f"rank{rank}.pt")
        assert found.keys() == wanted.keys()
        for name, weight in wanted.items():
            worst = max(worst, (found[name].double() - weight.double()).abs().max().item())
    print(f"{size} ranks, {locals_} a server: largest difference of a weight {worst}; loss {first:.4f} -> {last:.4f}")
    # DDP adds gradients for the mean in an order of its own.
    assert worst <= (1e-4 if plain else 0.0)
    assert last < first / 2, "the loss did not fall to half"


main()
