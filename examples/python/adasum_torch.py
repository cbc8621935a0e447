"""AdaSum in torch: a communication hook for DistributedDataParallel, and a wrapper for optimizers.

    import adasum_torch                                             # after torch.distributed.init_process_group

    world = adasum_torch.world()
    state = adasum_torch.State(world)
    model = DistributedDataParallel(model)
    model.register_comm_hook(state, adasum_torch.hook)
    ... ordinary training ...
    state.close()
    world.finish()

CPU tensors (over the mock of ACL and HCCL that the library carries) and tensors of torch_npu work alike. For torch_npu over the
mock, `LD_LIBRARY_PATH=$(adasum-run config --mock-lib-dir)` must be set before Python starts; on an NPU, `set_env.sh` of CANN.

Streams. On an NPU nothing here waits: reductions are queued on torch's current stream. Their communicators are this world's own,
so they need no order relative to torch's collectives but the one that the program gives both on every rank alike."""

import itertools
import os
from typing import Optional

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

import adasum

_numbers = itertools.count()


def world(devices_per_server: Optional[int] = None) -> adasum.World:
    """The world of all ranks of torch.distributed, on torch's current NPU or, without one, on a device of the mock.

    Collective. `devices_per_server`: how many consecutive ranks are combined by their mean before AdaSum combines servers;
    without it LOCAL_WORLD_SIZE (as torchrun sets it), but 1 if there is one server only: its ranks then are combined by
    AdaSum. The ranks meet through torch's store."""
    rank, size = dist.get_rank(), dist.get_world_size()
    device = current_device()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if devices_per_server is None:
        devices_per_server = 1 if local == size else local
    # The n-th world of every rank is the same.
    key = f"adasum/root_info/{next(_numbers)}"
    store = distributed_c10d._get_default_store()
    if rank == 0:
        store.set(key, adasum.root_info(device))
    return adasum.World.from_root_info(device, store.get(key), size, rank, devices_per_server)


def current_device() -> int:
    """Torch's current NPU if its processes talk through HCCL; else the local rank."""
    if "hccl" in dist.get_backend():
        return torch.npu.current_device()
    return int(os.environ.get("LOCAL_RANK", "0"))


def current_stream(tensor: torch.Tensor) -> Optional[int]:
    """torch's current aclrtStream for a tensor on an NPU; none for a tensor of the host. What torch has queued for it before is
    on the stream when this returns, so it must be asked anew before every call."""
    return torch.npu.current_stream(tensor.device).npu_stream if tensor.device.type == "npu" else None


class State:
    """What `hook` keeps for a DistributedDataParallel model: a reducer for each bucket.

    The first backward pass makes them, which is collective as the pass itself; another one follows when DDP has arranged its
    buckets anew. Reducers whose bucket did not come in a pass are ended."""

    def __init__(self, world: adasum.World, options: Optional[adasum.Options] = None):
        self._world = world
        self._options = options
        self._reducers: dict[tuple[int, ...], adasum.Reducer] = {}
        self._seen: set[tuple[int, ...]] = set()

    def reduce(self, bucket: dist.GradBucket) -> None:
        """Replaces the gradients of a bucket by their reductions, tensor by tensor."""
        gradients = bucket.gradients()
        key = tuple(id(parameter) for parameter in bucket.parameters())
        if key not in self._reducers:
            self._reducers[key] = adasum.Reducer(self._world, adasum.specs(gradients), self._options)
        self._seen.add(key)
        self._reducers[key].reduce(gradients, current_stream(bucket.buffer()))
        if bucket.is_last():
            self._drop_unseen(bucket.buffer())

    def _drop_unseen(self, tensor: torch.Tensor) -> None:
        gone = [key for key in self._reducers if key not in self._seen]
        if gone and tensor.device.type == "npu":
            # Their buffers may still be at work.
            torch.npu.synchronize()
        for key in gone:
            self._reducers.pop(key).close()
        self._seen.clear()

    def nonfinite(self) -> bool:
        """Whether any gradient of the last pass held a NaN or an infinity on any rank; the same on all. Waits."""
        return any(any(reducer.nonfinite()) for reducer in self._reducers.values())

    def close(self) -> None:
        """Waits for the device and ends the reducers. To be called before `World.finish`."""
        if "hccl" in dist.get_backend():
            torch.npu.synchronize()
        while self._reducers:
            self._reducers.popitem()[1].close()


def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `DistributedDataParallel.register_comm_hook(state, hook)`: AdaSum instead of the mean."""
    state.reduce(bucket)
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    # The result is on the current stream, where DDP goes on; nothing has to wait.
    future.set_result(bucket.buffer())
    return future
