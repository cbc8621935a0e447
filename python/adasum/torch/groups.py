"""Worlds of torch's process groups, and what has a reducer in one."""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Any, Callable, Optional

import torch
import torch.distributed as dist

import adasum
from adasum.options import check_choices, check_world_choices, of_world
from adasum.world import check_world

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_LOGGER = logging.getLogger("adasum")


def world(group: Optional[dist.ProcessGroup] = None, /, **choices: Unpack[adasum.WorldOptionValues]) -> adasum.World:
    """The world of the ranks of a process group, or of all ranks: on torch's current NPU if the program has set or used one or sees only
    one, else on device LOCAL_RANK, which is one of the mock's where there is no NPU. Where LOCAL_RANK is not set, as under
    torch.multiprocessing.spawn, ranks of a host count from 0. Collective among the group.

    `choices` are options. `devices_per_server` says how many consecutive ranks are combined by their mean before AdaSum
    combines servers. Without it that is LOCAL_WORLD_SIZE (as torchrun sets it), but 1 if the group is not larger or no multiple of
    it: then AdaSum combines all ranks. Rank 0 logs which of them it is, as a warning where means are taken without being asked for.

    With HCCL the group's communicator is borrowed for this call, which waits for all work of the device first; no collective of the
    group may be started on another thread meanwhile. Nothing of it is used afterwards."""
    _refuse_options(choices)
    check_world_choices(choices)
    check_group(group)
    size = dist.get_world_size(group)
    if size < 1:
        raise ValueError("group: this rank is not one of its ranks")
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    chosen = choices.get("devices_per_server") is not None
    if not chosen:
        choices["devices_per_server"] = 1 if size <= local or size % local else local
    made = _made(group, size, choices)
    if made.rank == 0:
        _say_how_ranks_are_combined(made, local, chosen)
    return made


def check_group(group: Any) -> None:
    """Refuses what is no process group."""
    # torch gives NON_GROUP_MEMBER to ranks that are not of a group.
    if not isinstance(group, (dist.ProcessGroup, type(None))) and group is not dist.GroupMember.NON_GROUP_MEMBER:
        raise TypeError(f"group is a {type(group).__name__}: it must be a process group of torch.distributed, or None for all ranks")


def _refuse_options(choices: Any) -> None:
    """What is made here has options of its own, which adasum.Options could contradict unseen."""
    if "options" in choices:
        raise TypeError("options: adasum.torch takes options as keywords, as radix=4, and none of adasum.Options or of variables")


def _made(group: Optional[dist.ProcessGroup], size: int, choices: adasum.WorldOptionValues) -> adasum.World:
    backend = _hccl(group)
    if backend is not None:
        npu().synchronize()
        # torch_npu takes the number for that of a rank, modulo the number of devices, and asks for the communicator of that device
        # (torch_npu/csrc/distributed/ProcessGroupHCCL.cpp, getDeviceForRank).
        return adasum.World.from_comm(backend.get_hccl_comm(npu().current_device()), **choices)
    rank = dist.get_rank(group)
    hosts = [""] * size
    dist.all_gather_object(hosts, socket.gethostname(), group=group)
    device = _device(hosts[:rank].count(hosts[rank]))
    info = [adasum.root_info(device) if rank == 0 else b""]
    dist.broadcast_object_list(info, src=global_rank(group, 0), group=group)
    return adasum.World.from_root_info(device, info[0], size, rank, **choices)


def _say_how_ranks_are_combined(made: adasum.World, local: int, chosen: bool) -> None:
    size, servers, per_server = made.size, made.servers, made.devices_per_server
    if per_server > 1:
        _LOGGER.log(
            logging.INFO if chosen else logging.WARNING,
            "%d ranks: the mean of the %d ranks of each server, AdaSum of the %d servers%s", size, per_server, servers,
            "" if chosen else "; devices_per_server=1 combines all ranks by AdaSum",
        )
    elif not chosen and size > local and local > 1:
        _LOGGER.warning("%d ranks: AdaSum of all of them, as LOCAL_WORLD_SIZE %d does not divide their number", size, local)
    else:
        _LOGGER.info("%d ranks: AdaSum of all of them", size)


def is_hccl(group: Optional[dist.ProcessGroup] = None) -> bool:
    """Whether a process group talks through HCCL."""
    return _hccl(group) is not None


def npu() -> Any:
    """torch_npu's module in torch, which torch's own types do not have."""
    return getattr(torch, "npu")


def _hccl(group: Optional[dist.ProcessGroup]) -> Any:
    """The backend of a process group for tensors on an NPU, if it is torch_npu's of HCCL."""
    if not hasattr(torch, "npu"):
        return None
    # `init_process_group()` without a name has the backend "undefined", and one for each kind of device.
    try:
        of: Any = group or dist.group.WORLD
        backend = of._get_backend(torch.device("npu"))
    except RuntimeError:
        # The group has none for NPUs.
        return None
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL torch has it in a wrapper (torch/distributed/distributed_c10d.py, _create_process_group_wrapper).
    backend = getattr(backend, "wrapped_pg", backend)
    return backend if hasattr(backend, "get_hccl_comm") else None


def _device(number: int) -> int:
    """The device of this rank: torch's current NPU if the program has set or used one, or if this process sees only one; else LOCAL_RANK, as
    without set_device every rank's current NPU would be 0; or `number`, for programs that start their ranks themselves."""
    if hasattr(torch, "npu") and npu().is_available() and (npu().is_initialized() or npu().device_count() == 1):
        return int(npu().current_device())
    return int(os.environ.get("LOCAL_RANK", number))


def global_rank(group: Optional[dist.ProcessGroup], rank: int) -> int:
    """The number among all ranks of rank `rank` of a group."""
    return rank if group is None else dist.get_global_rank(group, rank)


def current_stream(tensor: torch.Tensor) -> Optional[int]:
    """torch's current aclrtStream for a tensor on an NPU; none for a tensor of the host. What torch has queued for it before is
    on the stream when this returns, so it must be asked anew before every call."""
    return npu().current_stream(tensor.device).npu_stream if tensor.device.type == "npu" else None


class Reducing:
    """Has a reducer in a world, and that world for its own if it was given none. Ends both, by `close` or a `with` statement."""

    _reducer: Any

    def _start(
        self, world_: Optional[adasum.World], group: Optional[dist.ProcessGroup], choices: adasum.OptionValues,
        make: Callable[[adasum.World, Any], Any], example: Optional[torch.Tensor],
    ) -> None:
        """Makes the reducer by `make(world, options)`, in a world of `group` if `world_` is none. `example` is one of its tensors."""
        _refuse_options(choices)
        if world_ is not None:
            check_world(world_)
        check_choices(choices, world_)
        self._owns_world = world_ is None
        self._example = example
        options: Any = dict(choices)
        if world_ is None:
            world_ = world(group, **of_world(options))
        self._world = world_
        try:
            self._reducer = make(world_, options)
        except BaseException:
            self._end_world(in_good_order=False)
            raise

    @property
    def world(self) -> adasum.World:
        """The world whose ranks are combined."""
        return self._world

    @property
    def reducer(self) -> Any:
        """The reducer, for what it knows of the last reduction. `reducer.statistics()` is collective: call it on all ranks, then print on one.
        So is `reducer.nonfinite()`, but after AdaSum of several servers it is local. After AdaSum of gradients or of steps there are a cosine
        and a gain where servers were combined in one round; in several rounds (more servers than the option radix) both are NaN unless
        `reducer.observe()` was called before."""
        return self._reducer

    def _end_world(self, in_good_order: bool) -> None:
        if not self._owns_world or self._world.closed:
            return
        if in_good_order:
            self._world.finish()
        self._world.close()

    def close(self) -> None:
        """Waits for the device and ends the reducer, and the world if it is its own: then all ranks should call it. Otherwise to be
        called before `World.finish`. A second time does nothing."""
        if self._reducer.closed:
            return
        if self._example is not None and self._example.device.type == "npu":
            npu().synchronize(self._example.device)
        self._reducer.close()
        self._end_world(in_good_order=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
            return
        # The others may never come, so nobody is waited for.
        if self._owns_world and not self._world.closed:
            self._world.abort()
        self._reducer.close()
        self._end_world(in_good_order=False)
