"""AdaSum in torch: a communication hook for DistributedDataParallel, and optimizers whose steps all ranks combine.
Nothing here has run on an NPU yet; run `adasum-run qualify` first.

    import adasum.torch                                             # after torch.distributed.init_process_group

    model = DistributedDataParallel(model)
    state = adasum.torch.register(model)                            # gradients: AdaSum in the place of DDP's mean
    ... ordinary training ...
    state.close()

or, as with Horovod and without DistributedDataParallel,

    optimizer = adasum.torch.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    adasum.torch.broadcast_parameters(model.state_dict(), root_rank=0)
    ... ordinary training ...
    optimizer.close()

CPU tensors (over the mock of ACL and HCCL that the library carries) and tensors of torch_npu work alike. For torch_npu over the
mock, `LD_LIBRARY_PATH=$(adasum-run config --mock-lib-dir)` must be set before Python starts; on an NPU, `set_env.sh` of CANN.
Where torch_npu is installed but only CPU tensors are used, `TORCH_DEVICE_BACKEND_AUTOLOAD=0` lets torch start without either.

Streams. On an NPU, once an object is made, nothing here waits but broadcasts, the overflow vote, the first passes of the hook (see `State`), figures and `close`: reductions are
queued on torch's current stream. Their communicators are this world's own, so they need no order relative to torch's collectives but the one
that the program gives both on every rank alike."""

import re
from typing import TYPE_CHECKING

import torch

if [int(part) for part in re.findall(r"\d+", torch.__version__)[:2]] < [2, 3]:
    # torch.amp.GradScaler is new in 2.3.
    raise ImportError(f"adasum.torch needs torch 2.3 or newer: this is {torch.__version__}")

from adasum.torch._broadcast import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from adasum.torch.groups import current_stream, world
from adasum.torch.hook import State, hook, register
from adasum.torch.optimizers import (
    Adasum, Average, Compression, DeltaOptimizer, DistributedOptimizer, GradientOptimizer, Op, Sum,
)
from adasum.torch.scaler import GradScaler

__all__ = [
    "Adasum", "Average", "Compression", "DeltaOptimizer", "DistributedOptimizer", "GradScaler", "GradientOptimizer", "Op", "State",
    "Sum", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "current_stream", "hook", "register", "world",
]

_MEAN = "divided by the number of ranks for Horovod's default, the mean"
# What programs written for Horovod look for here, and where it is.
_ELSEWHERE = {
    **dict.fromkeys(("init", "is_initialized", "shutdown"), "torch.distributed.init_process_group and its like"),
    **dict.fromkeys(("rank", "size"), "torch.distributed.get_rank and get_world_size"),
    **dict.fromkeys(("local_rank", "local_size"), "the variables LOCAL_RANK and LOCAL_WORLD_SIZE of torchrun"),
    **dict.fromkeys(("cross_rank", "cross_size"), "the variables GROUP_RANK and GROUP_WORLD_SIZE of torchrun"),
    **dict.fromkeys(
        (
            "allreduce", "allreduce_", "allreduce_async", "allreduce_async_",
            "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
        ),
        f"adasum.GradientReducer for AdaSum, else torch.distributed.all_reduce, {_MEAN}",
    ),
    **dict.fromkeys(
        ("reducescatter", "reducescatter_async", "grouped_reducescatter", "grouped_reducescatter_async"),
        f"torch.distributed.reduce_scatter_tensor, {_MEAN}",
    ),
    **dict.fromkeys(("Min", "Max", "Product"), "torch.distributed.ReduceOp, in torch.distributed.all_reduce"),
    **dict.fromkeys(
        (
            "allgather", "allgather_async", "allgather_object", "alltoall", "alltoall_async", "barrier",
            "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "grouped_allgather", "grouped_allgather_async",
        ),
        "torch.distributed",
    ),
    **dict.fromkeys(("poll", "synchronize"), "is_completed and wait of what torch.distributed gives with async_op=True"),
    "sparse_allreduce_async": "adasum.SparseReducer, or DistributedOptimizer, whose steps are dense",
    "join": "drop_last=True, or join() of a DistributedDataParallel model that was given to adasum.torch.register",
    **dict.fromkeys(("ProcessSet", "add_process_set"), "adasum.torch.world(group)"),
    "global_process_set": "no group and no world, which is all ranks",
    "remove_process_set": "World.finish",
    **dict.fromkeys(
        (
            "ccl_built", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled", "mpi_built", "mpi_enabled",
            "mpi_threads_supported", "nccl_built", "rocm_built",
        ),
        "torch.distributed.get_backend and adasum.backend",
    ),
    **dict.fromkeys(("start_timeline", "stop_timeline"), "torch.profiler"),
    "run": "torchrun, adasum-run launch or torch.multiprocessing.spawn",
    "HorovodInternalError": "adasum.Error",
    "SyncBatchNorm": "torch.nn.SyncBatchNorm",
    "elastic": "torchrun --max-restarts",
}

# Types would take a module that has it for one with any attribute.
if not TYPE_CHECKING:

    def __getattr__(name):
        place = f": instead of Horovod's take {_ELSEWHERE[name]} (docs/from-horovod.md)" if name in _ELSEWHERE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{place}")
