"""What belongs to a training step beside the reduction: clipping, accumulation, and the journal of figures."""

from __future__ import annotations

import ctypes
import math
import os
from ctypes import byref, c_char_p, c_double, c_float, c_uint32
from typing import Any, Mapping, Optional, Sequence, SupportsIndex, Union

from adasum import _abi
from adasum._arguments import UINT32, UINT64, array, milliseconds, path, real, text, whole
from adasum._calls import AnyStream, Specs, TensorPart, Tensors, TensorUser, part_arrays
from adasum._library import DEFAULT_TIMEOUT, Handle, call
from adasum.reducers import TensorStatistics
from adasum.world import World


class NormClip(TensorUser):
    """Scales tensors so that the Euclidean norm of all of them together is at most `max_norm`: for between reduction and optimizer.

    Without `parts` each rank takes the norm of its own tensors, which are the same on all ranks after a reduction; local. With
    `parts`, those of this rank (`GradientReducer.owned` after a scattered reduction), the norm is that of all parts of all ranks of
    `world`; then making one and `clip` are collective, and `timeout` seconds bound each wait for other ranks, in `clip`, too. A NaN or an
    infinity makes all tensors NaN. Device memory: a copy of the tensors or parts."""

    _prefix = "adasum_norm_clip"

    def __init__(
        self, world: World, tensors: Specs, max_norm: float, parts: Optional[Sequence[TensorPart]] = None,
        timeout: float = DEFAULT_TIMEOUT,
    ):
        limit, most = milliseconds("timeout", timeout), real("max_norm", max_norm)
        columns = None if parts is None else part_arrays(parts)

        def create(owner: Any, described: Any, count: int, out: Any) -> None:
            if columns is None:
                call("adasum_norm_clip_create", owner, described, count, most, out)
            else:
                call("adasum_norm_clip_create_of_parts", owner, described, count, *columns, most, limit, out)

        super().__init__(world, tensors, create)

    def clip(self, tensors: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Clips the tensors in place. Streams as in `GradientReducer.reduce`; on the host a wait that reaches `timeout` gives the world up."""

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_norm_clip_clip", self, addresses, len(addresses), stream)

        self._in_place("tensors", tensors, range(len(self.specs)), stream, timeout, enqueue)

    def last_norm(self) -> float:
        """The norm of all tensors together before they were last clipped, 0 before the first time; NaN if there was a NaN or an
        infinity. The caller has synchronised the stream of `clip`."""
        norm = c_float()
        call("adasum_norm_clip_last_norm", self, byref(norm))
        return norm.value


class GradientAccumulator(TensorUser):
    """Sums gradients over micro-steps in fp32, before one reduction. Local. Device memory: two fp32 copies of the tensors."""

    _prefix = "adasum_gradient_accumulator"

    def __init__(self, world: World, tensors: Specs):
        """An empty sum."""
        super().__init__(world, tensors, lambda *arguments: call("adasum_gradient_accumulator_create", *arguments))

    def add(self, gradients: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Adds gradients to the sum: for after each backward pass. A wait that fails gives the world up."""

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_gradient_accumulator_add", self, addresses, len(addresses), stream)

        self._in_place("gradients", gradients, range(len(self.specs)), stream, timeout, enqueue, writes=False)

    @property
    def steps(self) -> int:
        """How many gradients the sum has."""
        count = c_uint32()
        call("adasum_gradient_accumulator_steps", self, byref(count))
        return count.value

    def take(
        self, gradients: Tensors, factor: Optional[float] = None, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """Replaces `gradients` by `factor` times the sum (without one by the mean), rounded once to their types, and empties the sum:
        for before the reducer. A wait that fails gives the world up."""
        by = 1.0 / max(1, self.steps) if factor is None else real("factor", factor)

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_gradient_accumulator_take", self, addresses, len(addresses), by, stream)

        self._in_place("gradients", gradients, range(len(self.specs)), stream, timeout, enqueue)


def _names(name: str, mapping: Any) -> Any:
    """The names in the argument `name`, which is a mapping from them, as the library takes them."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"{name} is a {type(mapping).__name__}: it must be a mapping, as {{name: value}}")
    return array(c_char_p, [text(f"a name in {name}", each) for each in mapping])


def _figures(name: str, mapping: Mapping[str, Any]) -> Any:
    """The numbers in the argument `name`."""
    # What is true or false is a figure of 1 or 0 here.
    figures = ((key, int(value) if isinstance(value, bool) else value) for key, value in mapping.items())
    return array(c_double, [real(f"{name}[{key!r}]", value) for key, value in figures])


class Journal(Handle):
    """One rank's file of what a training records over time, for `adasum-run launch --report`. From any thread. Local."""

    _destroy = "adasum_journal_destroy"

    def __init__(self, folder: Union[str, os.PathLike[str]], rank: SupportsIndex):
        """Opens rank_R.jsonl in the folder, which must exist; what the file holds already is kept."""
        out = ctypes.POINTER(_abi.adasum_journal)()
        call("adasum_journal_open", path("folder", folder), whole("rank", rank, UINT32), byref(out))
        super().__init__(out)

    @classmethod
    def from_environment(cls, rank: SupportsIndex) -> Optional[Journal]:
        """As `Journal`, in the folder that ADASUM_STATISTICS_DIR names, which a launcher that makes a report sets; None without it."""
        out = ctypes.POINTER(_abi.adasum_journal)()
        call("adasum_journal_from_env", whole("rank", rank, UINT32), byref(out))
        if not out:
            return None
        journal = cls.__new__(cls)
        Handle.__init__(journal, out)
        return journal

    def record(
        self, step: SupportsIndex, values: Mapping[str, float], statistics: Optional[Mapping[str, TensorStatistics]] = None,
        epoch: float = math.nan, run: str = "",
    ) -> None:
        """Appends a record, which is in the file when this returns.

        `step` counts from 1; a later record of the same step completes or replaces an earlier one. `values` are figures as loss and
        accuracy; where several ranks record one, the mean over them is drawn. `statistics` are the reduction's by name of the tensor: one
        rank is enough. `epoch` is how many epochs have passed, and `run` which of several trainings of a job it is about."""
        tensors = {} if statistics is None else statistics
        names = [_names("values", values), _names("statistics", tensors)]
        for name, each in tensors.items():
            if not isinstance(each, TensorStatistics):
                raise TypeError(f"statistics[{name!r}] is a {type(each).__name__}: it must be adasum.TensorStatistics")
        columns = [
            figure for each in tensors.values() for figure in (each.norm, each.cosine, each.gain, each.kappa, float(each.nonfinite))
        ]
        call(
            "adasum_journal_record", self, text("run", run), whole("step", step, UINT64), real("epoch", epoch), names[0],
            _figures("values", values), len(values), names[1], array(c_double, columns), len(tensors),
        )

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
