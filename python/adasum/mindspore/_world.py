"""The world that the cells of a process share."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Optional

import mindspore as ms
from mindspore.communication import GlobalComm, get_group_size, get_rank

import adasum
from adasum.mindspore._tensors import wait_for_all
from adasum.options import check_world_choices, of_world

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Seconds that the end of a process waits for the other ranks.
_LAST_WAIT = 60.0
_world: Optional[adasum.World] = None


def world(options: Optional[adasum.Options] = None, **choices: Unpack[adasum.WorldOptionValues]) -> adasum.World:
    """The world that the environment describes: RANK_TABLE_FILE and RANK_ID, or the variables of torchrun or msrun. Made in the first call, which
    is collective and whose options count, and shared by all cells of this process; HCCL makes one from a rank table and no second.
    Without devices_per_server a server has the ranks that the table gives it, or LOCAL_WORLD_SIZE.

    Under msrun on several machines without --node_rank `mindspore.communication.init` must come first: it gives ranks their numbers.

    msrun runs the program in its scheduler, too, which has no part in the world: there this ends the process.

    Raises ValueError if `devices_per_server` is another than that of the world there is."""
    global _world
    _end_scheduler()
    check_world_choices(choices)
    if _world is None or _world.closed:
        _set_rank_of_msrun()
        # Of both, `options` makes the world; the check below holds it against the other.
        _world = adasum.World.from_environment(options) if options else adasum.World.from_environment(**choices)
        atexit.register(_end)
    asked = choices.get("devices_per_server")
    if asked not in (None, "auto", _world.devices_per_server):
        raise ValueError(
            f"devices_per_server is {asked}, but the world of this process has {_world.devices_per_server} ranks in a server: give the "
            "first cell the option, or make the world with adasum.mindspore.world"
        )
    return _world


def world_of_reducer(options: Optional[adasum.Options], choices: adasum.OptionValues) -> adasum.World:
    """The same for a reducer with these options, which are checked before anything is made."""
    _end_scheduler()
    return world(options or adasum.Options(**choices), **of_world(choices))


def _end_scheduler() -> None:
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        # MindSpore keeps it in communication.init(); whoever comes here has not called that.
        raise SystemExit(0)


def _set_rank_of_msrun() -> None:
    """Sets RANK_ID, RANK_SIZE and DEVICE_ID by what MindSpore knows, where msrun has not told this process its rank.

    On several machines without --node_rank msrun has no MS_NODE_ID for its workers, and those beside the scheduler inherit the scheduler's
    RANK_ID, 0 (mindspore/parallel/cluster/process_entity/_api.py: start_scheduler, _start_single_worker). communication.init
    changes the variables only with RANK_TABLE_FILE (mindspore/communication/management.py: _set_envs)."""
    if os.environ.get("MS_ROLE") != "MS_WORKER" or os.environ.get("RANK_TABLE_FILE") or os.environ.get("MS_NODE_ID"):
        return
    if not GlobalComm.INITED:
        raise RuntimeError("msrun has not told this process its rank: call mindspore.communication.init first, or give msrun --node_rank")
    os.environ["RANK_ID"] = str(get_rank())
    os.environ["RANK_SIZE"] = str(get_group_size())
    os.environ["DEVICE_ID"] = str(ms.get_context("device_id"))


def close(timeout: float = adasum.DEFAULT_TIMEOUT) -> None:
    """Finishes the world that `world` has made, and with it the reducers of all cells: waits at most `timeout` seconds for their work.
    All ranks should call it. The end of the process does it, too."""
    global _world
    ending, _world = _world, None
    atexit.unregister(_end)
    if ending is not None and not ending.closed:
        wait_for_all()
        ending.finish(timeout)


def _end() -> None:
    # After an exception the others may never come. Python leaves it here, whatever was done about it.
    if not hasattr(sys, "last_value"):
        close(_LAST_WAIT)
    elif _world is not None:
        _world.close()
