"""The communication hook for DistributedDataParallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import torch
import torch.distributed as dist

import adasum
from adasum.torch.groups import Reducing, current_stream

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket  # dist.GradBucket, where torch's types have it

    from typing_extensions import Unpack


class State(Reducing):
    """What `hook` keeps for one DistributedDataParallel model: its reducer. To be made before the first backward pass. Collective.

        with adasum.torch.State(world, model) as state:
            ddp.register_comm_hook(state, adasum.torch.hook)

    `model` is the module that DistributedDataParallel wraps; its parameters that need gradients are reduced. Without a world it makes one of all
    ranks, which ends with it. Gradients come in buckets, whose first pass and whose first pass after DDP has arranged them anew
    wait for all ranks. Sparse gradients are refused."""

    def __init__(
        self, world: Optional[adasum.World], model: torch.nn.Module, *, process_group: Optional[dist.ProcessGroup] = None,
        **choices: Unpack[adasum.OptionValues],
    ) -> None:
        """`process_group` is the group that a world of its own is made of; `choices` are options of the reducer and of that world."""
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"model is a {type(model).__name__}: it must be a torch.nn.Module, as in State(world, model)")
        _refuse_sparse(model)
        named = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        if not named:
            raise ValueError("model has no parameter that needs a gradient")
        # Kept, so that no other tensor gets the identity of one of these.
        self._parameters = list(named.values())
        self._indices = {id(tensor): index for index, tensor in enumerate(self._parameters)}
        self._start(
            world, process_group, choices, lambda in_world, options: adasum.GradientReducer(in_world, named, **options), self._parameters[0]
        )

    def reduce(self, bucket: GradBucket) -> None:
        """Replaces the gradients of a bucket by their reductions, tensor by tensor."""
        parameters = bucket.parameters()
        if bucket.buffer().is_sparse:
            raise ValueError(f"parameter {self._name(parameters[0])} has a sparse gradient. {_SPARSE_ADVICE}")
        indices = [self._indices.get(id(parameter)) for parameter in parameters]
        if None in indices:
            missing = parameters[indices.index(None)]
            raise ValueError(
                f"bucket {bucket.index()} has a parameter of shape {tuple(missing.shape)} that the model of this State does not have: "
                "the State must be made of the module that DistributedDataParallel wraps, with the parameters that need gradients now"
            )
        self._reducer.reduce_some(indices, bucket.gradients(), current_stream(bucket.buffer()))

    def _name(self, parameter: torch.Tensor) -> str:
        index = self._indices.get(id(parameter))
        return f"of shape {tuple(parameter.shape)}" if index is None else repr(self._reducer.specs[index].name)


_SPARSE_ADVICE = (
    "The hook reduces dense gradients: make the embedding with sparse=False, or use adasum.torch.DistributedOptimizer, "
    "whose steps are dense"
)


def _refuse_sparse(model: torch.nn.Module) -> None:
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if getattr(module, "sparse", False) is True and weight is not None and weight.requires_grad:
            raise ValueError(f"parameter {f'{name}.weight'.lstrip('.')!r} has sparse gradients. {_SPARSE_ADVICE}")


def hook(state: State, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `DistributedDataParallel.register_comm_hook(state, hook)`: AdaSum instead of the mean."""
    state.reduce(bucket)
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    # The result is on the current stream, where DDP goes on; nothing has to wait.
    future.set_result(bucket.buffer())
    return future


# DistributedDataParallel compares the types themselves, which this module has as text.
hook.__annotations__ = {"state": State, "bucket": getattr(dist, "GradBucket"), "return": torch.futures.Future[torch.Tensor]}


def register(model: Any, world: Optional[adasum.World] = None, **choices: Unpack[adasum.OptionValues]) -> State:
    """Has a DistributedDataParallel model combine gradients by AdaSum: makes a State, in a world of the model's process group unless one is
    given, and registers the hook. The State is to be closed at the end. Before the first backward pass. Collective."""
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TypeError(f"model is a {type(model).__name__}: it must be a DistributedDataParallel")
    state = State(world, model.module, process_group=model.process_group, **choices)
    model.register_comm_hook(state, hook)
    return state
