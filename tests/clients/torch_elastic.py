"""A rank dies in the middle of a training; torchrun starts all ranks again, and they go on from a checkpoint in a new world.

    torchrun --max-restarts 1 --nproc-per-node N torch_elastic.py cpu FOLDER
    torchrun --max-restarts 1 --nproc-per-node N -m adasum.torch.cpu_operators torch_elastic.py npu FOLDER

TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 must be set: otherwise torch keeps the store of the ranks that were ended, and the next ones take
their addresses and root info from it. Prints "right" only after the restart; weights are those of a training that nothing has stopped."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch_training
from torch_training import DEVICE, RANK, SIZE, STEPS, Network, adam, delta_reference, loss, same, start

import adasum.torch

CHECKPOINT = Path(sys.argv[2]) / f"rank{RANK}.pt"
RESTARTS = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
DIES = STEPS // 2


def main():
    start()
    model = Network().to(DEVICE)
    # Not closed when torchrun ends this process, and none of the next ranks' business.
    optimizer = adasum.torch.DistributedOptimizer(adam(model), model.named_parameters())
    first = 0
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT)
        first = saved["step"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    assert first == (DIES if RESTARTS else 0), f"{RESTARTS} restarts, the checkpoint is of step {first}"
    for step in range(first, STEPS):
        optimizer.zero_grad()
        loss(model, RANK, step).backward()
        if step == DIES and RESTARTS == 0 and RANK == SIZE - 1:
            # The others are in the reduction, or come to it.
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        written = CHECKPOINT.with_suffix(".new")
        torch.save({"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, written)
        written.rename(CHECKPOINT)
        dist.barrier(group=torch_training.HOST)
    assert RESTARTS == 1
    same("after a restart", model, delta_reference(adam))
    optimizer.close()
    dist.destroy_process_group()
    print(f"{DEVICE}: rank {RANK} of {SIZE} right after a restart", flush=True)


if __name__ == "__main__":
    main()
