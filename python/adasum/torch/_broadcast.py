"""What one rank has, on all ranks, over torch's process group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import torch
import torch.distributed as dist

from adasum.torch.groups import check_group, global_rank, is_hccl, npu


def broadcast_parameters(
    params: Union[Mapping[str, Any], Iterable[Any]], root_rank: int, group: Optional[dist.ProcessGroup] = None
) -> None:
    """Gives all ranks the values that rank `root_rank` of the group has: of a `state_dict()`, `named_parameters()` or `parameters()`, whose tensors
    are changed in place. A pair of name and tensor may be a list. Entries of a `state_dict()` that hold no tensors are left alone. Collective:
    the same tensors on all ranks."""
    _check_root(root_rank, group)
    if isinstance(params, (torch.Tensor, torch.nn.Module)) or not isinstance(params, Iterable):
        raise TypeError(f"params is a {type(params).__name__}: it must be a state_dict, or tensors, or pairs of name and tensor")
    if isinstance(params, Mapping):
        for name, value in params.items():
            if not isinstance(value, torch.Tensor) and _holds_tensor(value):
                raise TypeError(
                    f"params[{name!r}] is a {type(value).__name__} that holds tensors: they would stay as they are, so give a model's state_dict by "
                    "itself; an optimizer's state goes by broadcast_optimizer_state"
                )
        tensors = [value for value in params.values() if isinstance(value, torch.Tensor)]
        if params and not tensors:
            raise TypeError(
                f"params has no tensor in its entries ({', '.join(map(str, params))}): it must be a model's state_dict; an optimizer's state goes "
                "by broadcast_optimizer_state"
            )
    else:
        # All are looked at before the first is sent, so that a wrong one leaves no rank waiting.
        tensors = [_tensor_of(entry, position) for position, entry in enumerate(params)]
    for tensor in tensors:
        _broadcast(tensor.detach(), root_rank, group)


def _holds_tensor(value: Any) -> bool:
    """Whether a tensor is somewhere in nested containers."""
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, torch.Tensor) or (isinstance(value, (list, tuple)) and any(map(_holds_tensor, value)))


def _check_root(root_rank: int, group: Optional[dist.ProcessGroup]) -> None:
    check_group(group)
    # Below 0 where this rank is not of the group: torch then does nothing.
    size = dist.get_world_size(group)
    if size > 0 and root_rank not in range(size):
        raise ValueError(f"root_rank is {root_rank!r}: it must be a rank of the group, 0 to {size - 1}")


def _tensor_of(entry: Any, position: int) -> torch.Tensor:
    """The tensor of an entry of params: itself, or the second of a pair."""
    if isinstance(entry, torch.Tensor):
        return entry
    if not isinstance(entry, (tuple, list)):
        raise TypeError(f"params[{position}] is a {type(entry).__name__}: it must be a tensor, or a pair of name and tensor")
    kinds = [type(item).__name__ for item in entry]
    if len(entry) != 2 or isinstance(entry[0], torch.Tensor) or not isinstance(entry[1], torch.Tensor):
        raise TypeError(f"params[{position}] is a {type(entry).__name__} of ({', '.join(kinds)}): it must be a tensor, or a pair of name and tensor")
    tensor: torch.Tensor = entry[1]
    return tensor


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, group: Optional[dist.ProcessGroup] = None
) -> Any:
    """What rank `root_rank` of the group has for `obj`, pickled, on all ranks. `name` is Horovod's and has no effect. Collective."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is a {type(name).__name__}: it must be a str or None; a process group is passed by name, group=...")
    _check_root(root_rank, group)
    box = [obj]
    dist.broadcast_object_list(box, src=global_rank(group, root_rank), group=group)
    return box[0]


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, group: Optional[dist.ProcessGroup] = None) -> None:
    """Gives the optimizers of all ranks the state and the groups' values (learning rate, ...) that rank `root_rank` of the group has. An optimizer
    that has not stepped has no state: then only the values. Collective."""
    _check_root(root_rank, group)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer is a {type(optimizer).__name__}: it must be an optimizer of torch, or one that adasum.torch has wrapped")
    mine = optimizer.state_dict()
    here = dist.get_rank(group) == root_rank
    device = torch.device("npu", npu().current_device()) if is_hccl(group) else torch.device("cpu")
    tensors: list[torch.Tensor] = []

    def leave(tensor: torch.Tensor) -> Any:
        # Small ones, as counts of steps, which may be on the host beside an NPU, go with the description.
        if tensor.device.type != device.type or tensor.dim() == 0:
            return tensor.cpu()
        tensors.append(tensor)
        return _Place(tuple(tensor.shape), tensor.dtype)

    described = broadcast_object(_replaced(mine, torch.Tensor, leave) if here else None, root_rank, group=group)

    def receive(place: _Place) -> torch.Tensor:
        tensor = tensors.pop(0) if here else torch.empty(place.shape, dtype=place.dtype, device=device)
        _broadcast(tensor, root_rank, group)
        return tensor

    found = _replaced(described, _Place, receive)
    if not here:
        optimizer.load_state_dict(found)


@dataclass(frozen=True)
class _Place:
    """Where a tensor belongs that follows."""

    shape: tuple[int, ...]
    dtype: Any


def _replaced(value: Any, kind: type, by: Callable[[Any], Any]) -> Any:
    """A copy of nested containers in which everything of a kind is replaced."""
    if isinstance(value, kind):
        return by(value)
    if isinstance(value, dict):
        return {name: _replaced(item, kind, by) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(item, kind, by) for item in value])
    return value


def _broadcast(tensor: torch.Tensor, root_rank: int, group: Optional[dist.ProcessGroup]) -> None:
    if tensor.numel() == 0:
        return
    carried = tensor.to("npu") if is_hccl(group) and tensor.device.type == "cpu" else tensor
    # As bytes, so that every type can travel.
    flat = carried.contiguous().reshape(-1).view(torch.uint8)
    dist.broadcast(flat, src=global_rank(group, root_rank), group=group)
    if flat.data_ptr() != tensor.data_ptr():
        tensor.copy_(flat.view(tensor.dtype).reshape(tensor.shape))
