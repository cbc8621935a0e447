"""Trains the network of train_digits.py as with Horovod: an optimizer whose steps all ranks combine, without DistributedDataParallel.

    torchrun --nproc-per-node 4 train_optimizer.py                  # CPU tensors, over the mock of ACL and HCCL
    torchrun --nproc-per-node 8 train_optimizer.py --device npu     # torch_npu

The comments at the ends of lines say what a program for Horovod has there."""

import argparse
import os

import torch
import torch.distributed as dist
from train_digits import TRAINED, batches, load, network

import adasum.torch  # import horovod.torch as hvd


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", choices=["cpu", "npu"], default="cpu")
    arguments.add_argument("--epochs", type=int, default=5)
    options = arguments.parse_args()

    if options.device == "npu":
        import torch_npu  # noqa: F401  (registers the device)

        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))  # hvd.local_rank()
    dist.init_process_group("hccl" if options.device == "npu" else "gloo")  # hvd.init()
    rank, size = dist.get_rank(), dist.get_world_size()  # hvd.rank(), hvd.size()

    model = network().to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
    optimizer = adasum.torch.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())  # ..., op=hvd.Adasum)
    adasum.torch.broadcast_parameters(model.state_dict(), root_rank=0)  # hvd.broadcast_parameters
    adasum.torch.broadcast_optimizer_state(optimizer, root_rank=0)  # hvd.broadcast_optimizer_state

    loss_of = torch.nn.CrossEntropyLoss()
    pixels, digits = (part.to(options.device) for part in load())
    for epoch in range(options.epochs):
        for images in batches(epoch, rank, size, 8).to(options.device):
            optimizer.zero_grad()
            loss_of(model(pixels[images]), digits[images]).backward()
            optimizer.step()

    with torch.no_grad():
        right = (model(pixels[TRAINED:]).argmax(1) == digits[TRAINED:]).float().mean().item()
    print(f"rank {rank}: accuracy {right:.3f}", flush=True)
    optimizer.close()  # hvd.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
