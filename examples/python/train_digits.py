"""Trains a small network on handwritten digits with DistributedDataParallel, its gradients combined by AdaSum.

    torchrun --nproc-per-node 4 train_digits.py                  # CPU tensors, over the mock of ACL and HCCL
    torchrun --nproc-per-node 8 train_digits.py --device npu     # torch_npu

The lines that end with "# AdaSum" are all that this takes: without them it is an ordinary training with the mean of
gradients, and a test runs it so."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import adasum.torch  # AdaSum

DATA = Path(__file__).resolve().parent.parent / "data/optdigits.csv"
TRAINED = 1500  # the other images are for the test


def load():
    """Pixels (0 to 1) and digits of all images."""
    rows = [[int(cell) for cell in line.split(",")] for line in DATA.read_text().splitlines()]
    table = torch.tensor(rows)
    return table[:, :64].float() / 16, table[:, 64]


def network():
    """The same on every rank."""
    torch.manual_seed(2020)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def batches(epoch, rank, size, batch):
    """This rank's images for each step of an epoch."""
    order = torch.randperm(TRAINED, generator=torch.Generator().manual_seed(epoch))
    steps = TRAINED // (size * batch)
    return order[: steps * size * batch].view(steps, size, batch)[:, rank]


def make_optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", choices=["cpu", "npu"], default="cpu")
    arguments.add_argument("--epochs", type=int, default=5)
    arguments.add_argument("--batch", type=int, default=8, help="images of a rank in a step")
    arguments.add_argument("--save", type=Path, help="folder for the weights of each rank")
    options = arguments.parse_args()

    if options.device == "npu":
        import torch_npu  # noqa: F401  (registers the device)

        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl" if options.device == "npu" else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    model = DistributedDataParallel(network().to(options.device))
    state = adasum.torch.register(model)  # AdaSum
    optimizer = make_optimizer(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    pixels, digits = (part.to(options.device) for part in load())

    for epoch in range(options.epochs):
        total, steps = 0.0, batches(epoch, rank, size, options.batch).to(options.device)
        for images in steps:
            optimizer.zero_grad()
            loss = loss_of(model(pixels[images]), digits[images])
            loss.backward()
            optimizer.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch + 1} loss {total / len(steps):.4f}", flush=True)

    with torch.no_grad():
        right = (model.module(pixels[TRAINED:]).argmax(1) == digits[TRAINED:]).float().mean().item()
    if rank == 0:
        print(f"accuracy {right:.3f}", flush=True)
    if options.save:
        torch.save(model.module.cpu().state_dict(), options.save / f"rank{rank}.pt")
    state.close()  # AdaSum
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
