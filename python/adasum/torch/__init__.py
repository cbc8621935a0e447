"""AdaSum in torch: a communication hook for DistributedDataParallel, and a wrapper for optimizers.

    import adasum.torch                                             # after torch.distributed.init_process_group

    world = adasum.torch.world()
    state = adasum.torch.State(world, model)
    model = DistributedDataParallel(model)
    model.register_comm_hook(state, adasum.torch.hook)
    ... ordinary training ...
    state.close()
    world.finish()

CPU tensors (over the mock of ACL and HCCL that the library carries) and tensors of torch_npu work alike. For torch_npu over the
mock, `LD_LIBRARY_PATH=$(adasum-run config --mock-lib-dir)` must be set before Python starts; on an NPU, `set_env.sh` of CANN.

Streams. On an NPU nothing here waits: reductions are queued on torch's current stream. Their communicators are this world's own,
so they need no order relative to torch's collectives but the one that the program gives both on every rank alike."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional

import torch
import torch.distributed as dist

import adasum

if TYPE_CHECKING:
    from typing_extensions import Unpack


def world(group: Optional[dist.ProcessGroup] = None, /, **choices: Unpack[adasum.OptionValues]) -> adasum.World:
    """The world of the ranks of a process group, or of all ranks: on torch's current NPU where the group talks through HCCL, else
    on device LOCAL_RANK, which is one of the mock's where there is no NPU. Collective among the group.

    `choices` are options. `devices_per_server` says how many consecutive ranks are combined by their mean before AdaSum
    combines servers; without it LOCAL_WORLD_SIZE (as torchrun sets it), but 1 if the group is not larger: then AdaSum
    combines all ranks.

    With HCCL the group's communicator is borrowed for this call, so no collective of the group may be under way on another
    thread. Nothing of it is used afterwards."""
    size = dist.get_world_size(group)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    choices.setdefault("devices_per_server", 1 if size <= local or size % local else local)
    if _is_hccl(group):
        torch.npu.synchronize()
        backend = (group or dist.group.WORLD)._get_backend(torch.device("npu"))
        return adasum.World.from_comm(backend.get_hccl_comm(dist.get_rank()), **choices)
    device = int(os.environ.get("LOCAL_RANK", "0"))
    rank = dist.get_rank(group)
    info = [adasum.root_info(device) if rank == 0 else b""]
    dist.broadcast_object_list(info, src=0 if group is None else dist.get_global_rank(group, 0), group=group)
    return adasum.World.from_root_info(device, info[0], size, rank, **choices)


def _is_hccl(group: Optional[dist.ProcessGroup] = None) -> bool:
    return "hccl" in dist.get_backend(group)


def current_stream(tensor: torch.Tensor) -> Optional[int]:
    """torch's current aclrtStream for a tensor on an NPU; none for a tensor of the host. What torch has queued for it before is
    on the stream when this returns, so it must be asked anew before every call."""
    return torch.npu.current_stream(tensor.device).npu_stream if tensor.device.type == "npu" else None


def _wait_for_device(tensor: torch.Tensor) -> None:
    if tensor.device.type == "npu":
        torch.npu.synchronize(tensor.device)


class State:
    """What `hook` keeps for one DistributedDataParallel model: its reducer. To be made before the first backward pass. Collective.

        model.register_comm_hook(adasum.torch.State(world, model), adasum.torch.hook)

    Gradients come in buckets, whose first pass and whose first pass after DDP has arranged them anew wait for all ranks."""

    def __init__(self, world: adasum.World, model: torch.nn.Module, **choices: Unpack[adasum.OptionValues]):
        named = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        self._indices = {id(tensor): index for index, tensor in enumerate(named.values())}
        # Kept, so that no other tensor gets the identity of one of these.
        self._parameters = list(named.values())
        self._reducer = adasum.GradientReducer(world, named, **choices)

    def reduce(self, bucket: dist.GradBucket) -> None:
        """Replaces the gradients of a bucket by their reductions, tensor by tensor."""
        indices = [self._indices[id(parameter)] for parameter in bucket.parameters()]
        self._reducer.reduce_some(indices, bucket.gradients(), current_stream(bucket.buffer()))

    @property
    def reducer(self) -> adasum.GradientReducer:
        """For what it knows of the last reduction."""
        return self._reducer

    def close(self) -> None:
        """Waits for the device and ends the reducer. To be called before `World.finish`."""
        if self._parameters:
            _wait_for_device(self._parameters[0])
        self._reducer.close()


def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `DistributedDataParallel.register_comm_hook(state, hook)`: AdaSum instead of the mean."""
    state.reduce(bucket)
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    # The result is on the current stream, where DDP goes on; nothing has to wait.
    future.set_result(bucket.buffer())
    return future


class DeltaOptimizer(torch.optim.Optimizer):
    """Wraps an optimizer: each rank's step becomes the AdaSum of all ranks' steps (the paper's way for optimizers that are not
    linear in the gradients, as Adam). Instead of DistributedDataParallel, not beside it. Making one is collective.

        optimizer = adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters()), world, model)

    Weights must be equal on all ranks at first, and stay so. With several ranks a server the optimizer steps on the mean of
    their gradients; with the option delta_form="local" each rank on its own. Groups, state and defaults are those of the
    wrapped optimizer, so schedulers and checkpoints are as usual. After weights were loaded in the middle of a step call
    `reset`."""

    # The base class keeps groups and state of its own, so it is not initialised.
    def __init__(
        self, optimizer: torch.optim.Optimizer, world: adasum.World, model: torch.nn.Module,
        **choices: Unpack[adasum.OptionValues],
    ):
        self.optimizer = optimizer
        stepped = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        named = {name: tensor for name, tensor in model.named_parameters() if id(tensor) in stepped}
        if len(named) != len(stepped):
            raise ValueError(f"the optimizer has {len(stepped)} parameters, {len(named)} of them are the model's")
        self._parameters = list(named.values())
        self._reducer = adasum.DeltaWeightReducer(world, {n: t.detach() for n, t in named.items()}, **choices)

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:
        return self.optimizer.state

    @property
    def defaults(self) -> Any:
        return self.optimizer.defaults

    def step(self, closure: None = None) -> None:
        """One step of all ranks. Collective. Parameters without a gradient count as such with zeros."""
        if closure is not None:
            raise ValueError("a closure would compute gradients that nobody has reduced")
        weights = [tensor.detach() for tensor in self._parameters]
        for tensor in self._parameters:
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
        gradients = [tensor.grad for tensor in self._parameters]
        self._reducer.begin(weights, gradients, current_stream(weights[0]))
        self.optimizer.step()
        # Asked anew: that also hands on what the optimizer has queued.
        self._reducer.end(weights, current_stream(weights[0]))

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> Any:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: Any) -> None:
        self.optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: Any) -> None:
        raise RuntimeError("the reducer was made for the parameters that the optimizer had: make a new DeltaOptimizer")

    def reset(self) -> None:
        """Forgets the saved weights of an open step. All ranks must do the same."""
        self._reducer.reset()

    def close(self) -> None:
        """Waits for the device and ends the reducer. To be called before `World.finish`."""
        _wait_for_device(self._parameters[0])
        self._reducer.close()

    def __repr__(self) -> str:
        return f"DeltaOptimizer({self.optimizer!r})"

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":
            raise AttributeError(name)
        return getattr(self.optimizer, name)
