"""Loss scaling in which all ranks decide alike."""

from __future__ import annotations

from array import array
from typing import Any, Optional

import mindspore as ms
from mindspore import amp

import adasum
from adasum.mindspore._world import world as environment_world
from adasum.world import check_world


def all_finite(grads: Any, world: Optional[adasum.World] = None) -> ms.Tensor:
    """`mindspore.amp.all_finite` for all ranks: whether no gradient of any rank has a NaN or an infinity, the same answer on each.

    Where a program steps only if gradients are finite, each rank must ask this: with the parallel mode at stand_alone MindSpore asks for
    its own gradients alone, and a rank that left its step out would be a step behind the others. `world` is by default that of the
    environment. Collective; waits. For PyNative mode."""
    if world is not None:
        check_world(world)
    found = array("f", [0.0 if amp.all_finite(grads) else 1.0])
    (world or environment_world()).all_reduce_sum(found)
    return ms.Tensor(found[0] == 0)
