"""Reducers: of gradients, of an optimizer's steps, of means.

All are made collectively, with the same tensors and options on all ranks, and used by one thread at a time. Tensors on the device are
reduced where they are, in the order of the stream that is given, and nobody waits; their memory must not be freed before that work is
done. Arrays of the host are copied to the device and back, and the call returns with the result.

While a call waits Python handles no signals, so Ctrl-C takes effect when the call returns: `timeout` bounds that, too. Making a reducer
has the limit of the option create_timeout_ms, and so have other waits where the call says so."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_double, c_int32, c_size_t, c_uint8, c_uint64, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence, SupportsIndex

from adasum import _abi
from adasum._arguments import UINT64, array, milliseconds, truth, wholes
from adasum._calls import AnyStream, Specs, StreamUser, TensorPart, Tensors, TensorUser
from adasum._library import DEFAULT_TIMEOUT, call
from adasum._options import OptionValues
from adasum.device import Stream
from adasum.options import Options, check_servers, chosen
from adasum.tensors import View, type_name, view_for
from adasum.world import World, stream_address

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _addresses(views: Sequence[View]) -> dict[int, int]:
    return {index: seen.address for index, seen in enumerate(views)}


class AnyReducer(StreamUser):
    """What all reducers can do."""

    _prefix = "adasum_reducer"

    def _wait(self, stream: Stream, limit: int) -> None:
        # The library looks at the world's own streams as well.
        call("adasum_reducer_synchronize", self, stream.handle, limit)

    def synchronize(self, stream: AnyStream, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Waits until what `stream` holds is done, at most `timeout` seconds, and raises the first failure of that work. Local, but with
        the option checksum collective.

        Ctrl-C and other signals are handled when it returns, at the latest after `timeout`: the library does not wait in parts, since a
        wait that reaches its limit gives the world up. `abort` on another thread ends it at once."""
        call("adasum_reducer_synchronize", self, stream_address(stream), milliseconds("timeout", timeout))

    def abort(self) -> None:
        """Gives the reducer's world up, from any thread: calls that wait in it return and fail. Local."""
        call("adasum_reducer_abort", self)


class _TensorReducer(AnyReducer, TensorUser):
    """A reducer of a fixed list of tensors."""

    _create: str

    def __init__(self, world: World, tensors: Specs, options: Optional[Options] = None, **choices: Unpack[OptionValues]):
        """Plans for these tensors (specs, or tensors whose specs are taken), allocates buffers and warms up every link. Collective."""

        def create(owner: World, described: Any, count: int, out: Any) -> None:
            check_servers(choices, owner)
            call(self._create, owner, described, count, chosen(options, choices), out)

        TensorUser.__init__(self, world, tensors, create)

    def nonfinite(self) -> list[bool]:
        """Whether each tensor (of a delta reducer: its delta) was not finite on any rank in the last reduction, the same on all ranks.
        Waits for it, at most stall_timeout_ms. Local after AdaSum of several servers; collective after means and sums, and with a single server.

        AdaSum looks at the vectors of its rounds: an element that the last round takes out of the range of a 16-bit type is not found. Means and
        sums are looked at before result_scale, and where ranks send fp32 (wire="f32", `MeanReducer`, 16-bit tensors of fewer than 64 elements)
        before they are rounded to a 16-bit type. A vote (`overflow`) on the results finds all of it."""
        flags = (c_uint8 * len(self.specs))()
        call("adasum_reducer_nonfinite", self, flags, len(flags))
        return [flag != 0 for flag in flags]


@dataclass(frozen=True)
class TensorStatistics:
    """Figures of a tensor in a reduction: the norm of the result, the cosine between servers, the gain |result| / |mean|, kappa
    (how far weighted vectors cancelled), and whether anything was not finite; the norm of each server's vector. NaN where there
    is no number: of a tensor that is not finite, and cosine and gain where servers were combined in several rounds.

    An element that the last round takes out of the range of a 16-bit type is not found, as with the reducer's `nonfinite`, and the norm is finite."""

    norm: float
    cosine: float
    gain: float
    kappa: float
    nonfinite: bool
    servers: tuple[float, ...]


class _AdasumReducer(_TensorReducer):
    """What reducers of gradients and of an optimizer's steps share: the overflow vote, and figures."""

    def overflow(self, gradients: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> bool:
        """Whether any rank has a NaN or an infinity in its gradients, which are not changed: the same answer on all ranks. For loss
        scaling: skip reduction and optimizer if so. Needs the option overflow="vote". Collective; waits."""
        found = c_int32()

        def vote(addresses: Any, stream: int) -> None:
            limit = milliseconds("timeout", timeout)
            call("adasum_reducer_overflow", self, addresses, len(addresses), stream, limit, byref(found))

        self._in_place("gradients", gradients, range(len(self.specs)), stream, timeout, vote, writes=False)
        return found.value != 0

    def observe(self, on: bool = True) -> None:
        """Whether the next reductions keep what they reduce, for the cosine and gain of several rounds. Local, the same on all ranks.
        Device memory: as much as the tensors have."""
        call("adasum_reducer_observe", self, truth("on", on))

    def statistics(self) -> list[TensorStatistics]:
        """Figures of the last reduction for each tensor, the same on all ranks; of a delta reducer those of the deltas of the last step.
        Collective; waits, at most stall_timeout_ms each time. With several rounds (more servers than the radix) cosine and gain are NaN,
        unless the reduction was observed."""
        width, count, servers = _abi.CONSTANTS["STATISTICS"], len(self.specs), self._world.servers
        figures, norms = (c_double * (width * count))(), (c_double * (servers * count))()
        call("adasum_reducer_statistics", self, figures, len(figures), norms, len(norms))
        rows = (figures[width * i : width * (i + 1)] for i in range(count))
        of_servers = (tuple(norms[servers * i : servers * (i + 1)]) for i in range(count))
        return [
            TensorStatistics(norm, cosine, gain, kappa, nonfinite != 0, each)
            for (norm, cosine, gain, kappa, nonfinite), each in zip(rows, of_servers)
        ]


class GradientReducer(_AdasumReducer):
    """Replaces gradients by their AdaSum (or, by the option reduction, mean or sum) over all ranks of a world.

        with adasum.GradientReducer(world, gradients, radix="auto") as reducer:
            reducer.reduce(gradients)"""

    _create = "adasum_reducer_create"

    def reduce(self, tensors: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Replaces each tensor by its reduction. Collective.

        On the device: enqueued on `stream`. On the host: done when it returns, which takes at most `timeout` seconds."""

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_reducer_reduce", self, addresses, len(addresses), stream)

        self._in_place("tensors", tensors, range(len(self.specs)), stream, timeout, enqueue)

    def gradient_buffers(self) -> list[Optional[View]]:
        """Places for gradients in the reducer's own buffers on the device: gradients that lie there are reduced where they are. They are
        there until the reducer is closed, also for tensors that were made of them (`torch.from_dlpack`). None for a tensor that is sent as
        another type, as 16-bit tensors of fewer than 64 elements are. Needs the option gradient_buffers. Local."""
        places = (c_void_p * len(self.specs))()
        call("adasum_reducer_gradient_buffers", self, places, len(places))
        device = self._world.device
        views = (View(place or 0, spec.count, spec.dtype, True, device) for place, spec in zip(places, self.specs))
        return [seen if seen.address or not seen.count else None for seen in views]

    def reduce_some(
        self, indices: Sequence[SupportsIndex], tensors: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """As `reduce`, for the tensors with these indices in the list of creation. Collective: the same indices on all ranks. The
        first call with them plans, and waits for all ranks, at most create_timeout_ms each time (`prepare_some` does so in advance)."""
        picked = self._indices(indices)

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_reducer_reduce_some", self, array(c_size_t, picked), addresses, len(addresses), stream)

        self._in_place("tensors", tensors, picked, stream, timeout, enqueue)

    def reduce_flat(self, buffer: Any, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """As `reduce`, for all tensors one right behind the other in `buffer`, in the order of creation and without gaps. The buffer's elements
        have the type of the tensors; if these have several, only its bytes count."""
        self._flat(None, buffer, stream, timeout)

    def reduce_some_flat(
        self, indices: Sequence[SupportsIndex], buffer: Any, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """As `reduce_some`, for tensors one right behind the other in `buffer`, in the order of `indices` and without gaps. The buffer's
        elements have the type of these tensors; if these have several, only its bytes count."""
        self._flat(self._indices(indices), buffer, stream, timeout)

    def _flat(self, indices: Optional[list[int]], buffer: Any, stream: Optional[AnyStream], timeout: float) -> None:
        limit = milliseconds("timeout", timeout)
        seen = view_for("buffer", self._device, buffer)
        if indices is None:
            function, numbers, wanted = "adasum_reducer_reduce_flat", [], list(self.specs)
        else:
            function, numbers = "adasum_reducer_reduce_some_flat", [array(c_size_t, indices), len(indices)]
            wanted = [self.specs[index] for index in indices]
        types = {spec.dtype for spec in wanted}
        if len(types) == 1 and seen.dtype not in types:
            raise ValueError(f"buffer has elements of type {type_name(seen.dtype)}, the tensors of type {type_name(types.pop())}")
        if seen.device:
            call(function, self, *numbers, seen.address, seen.bytes, self._stream(stream))
            return
        with self._alone(stream):
            copies = self._device_copies([seen.bytes])
            copies.upload({0: seen.address})
            call(function, self, *numbers, copies.addresses[0], seen.bytes, copies.stream.handle)
            self._synchronize(copies.stream, limit)
            copies.download({0: seen.address})
            # After a failure work may be left on the stream: the copies stay until the reducer ends.
            self.forget_stream(copies.stream)
            self._owned.remove(copies)
            copies.close()

    def prepare_some(self, indices: Sequence[SupportsIndex]) -> None:
        """Plans the reduction of these tensors, so that the first `reduce_some` of them does not wait. Collective; waits, at most
        create_timeout_ms each time."""
        picked = self._indices(indices)
        call("adasum_reducer_prepare_some", self, array(c_size_t, picked), len(picked))

    def _indices(self, indices: Sequence[SupportsIndex]) -> list[int]:
        found = wholes("indices", indices, UINT64)
        for i, index in enumerate(found):
            if index >= len(self.specs):
                raise ValueError(f"indices[{i}] is {index}: the reducer has {len(self.specs)} tensors")
        return found

    def owned(self) -> list[TensorPart]:
        """The parts of tensors that this rank owns: with the option scattered they are the results of a reduction on this rank, and what
        its sharded optimizer steps. The parts of all ranks tile all tensors. Local."""
        count = c_size_t()
        call("adasum_reducer_owned_count", self, byref(count))
        kinds = (c_size_t, c_uint64, c_uint64)
        tensors, starts, lengths = columns = tuple((kind * count.value)() for kind in kinds)
        call("adasum_reducer_owned", self, *columns, count.value)
        return [TensorPart(*row) for row in zip(tensors, starts, lengths)]

    def collect(self, tensors: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Brings the owned parts of tensors to all ranks: of weights, say, that a sharded optimizer has stepped. Sizes and types are
        those of the gradients. With the option scattered. Collective; streams as in `reduce`."""

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_reducer_collect", self, addresses, len(addresses), stream)

        self._in_place("tensors", tensors, range(len(self.specs)), stream, timeout, enqueue)

    def plan(self) -> str:
        """What this rank does in a reduction, a line a step. Local."""
        length = c_size_t()
        call("adasum_reducer_plan", self, None, 0, byref(length))
        text = ctypes.create_string_buffer(length.value + 1)
        call("adasum_reducer_plan", self, text, len(text), byref(length))
        return text.value.decode()


class MeanReducer(_TensorReducer):
    """Replaces gradients by their mean (with reduction="sum": their sum) over the ranks of the option `group`, by default all:
    MindSpore's DistributedGradReducer. Only the ranks of the group make and use it.

    `nonfinite` looks at sums in fp32, before they are divided and rounded: a sum of fp16 that is beyond 65504 becomes an infinity that it does not
    find. The results, equal on all ranks, show it."""

    _create = "adasum_reducer_create_mean"
    reduce = GradientReducer.reduce


class DeltaWeightReducer(_AdasumReducer):
    """AdaSum of what an optimizer does to weights, for optimizers that are not linear in the gradients.

    A step is `begin`, the optimizer, `end`. Weights that are equal on all ranks before are equal after it.

        with adasum.DeltaWeightReducer(world, weights) as reducer:
            reducer.begin(weights=weights, gradients=gradients)
            ...                                         # the optimizer changes the weights
            reducer.end(weights)"""

    _create = "adasum_reducer_create_delta"

    def begin(
        self, *, weights: Tensors, gradients: Optional[Tensors], stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """Saves the weights and replaces the gradients by their mean over the server. With the option delta_form="local", or
        one rank a server, gradients are left alone and may be None. Collective. Streams as in `GradientReducer.reduce`.

        Arguments are passed by name: other languages have gradients before weights."""
        limit = milliseconds("timeout", timeout)
        sources, on_device = self._views("weights", weights, self.specs)
        means = None
        if gradients is not None:
            means, means_on_device = self._views("gradients", gradients, self.specs)
            if means_on_device != on_device:
                place, other = ("device", "host") if on_device else ("host", "device")
                raise ValueError(f"weights are on the {place} and gradients on the {other}: both must be in one place")
        if on_device:
            replaced = None if means is None else [seen.address for seen in means]
            self._begin(replaced, [seen.address for seen in sources], self._stream(stream))
            return
        with self._alone(stream if sources else None):
            self._begin_by_copies(sources, means, limit)

    def _begin_by_copies(self, sources: Sequence[View], means: Optional[Sequence[View]], limit: int) -> None:
        saved = self._host_copies("tensors")
        saved.upload(_addresses(sources))
        if means is None:
            self._begin(None, saved.addresses, saved.stream.handle)
        else:
            copied = self._host_copies("gradients")
            copied.upload(_addresses(means))
            self._begin(copied.addresses, saved.addresses, saved.stream.handle)
        self._synchronize(saved.stream, limit)
        if means is not None:
            copied.download(_addresses(means))

    def _begin(self, gradients: Optional[Sequence[int]], weights: Sequence[int], stream: int) -> None:
        replaced = None if gradients is None else array(c_void_p, gradients)
        call("adasum_reducer_delta_begin", self, replaced, array(c_void_p, weights), len(weights), stream)

    def end(self, weights: Tensors, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Replaces weights, which the optimizer has changed, by old - AdaSum of (old - new). Collective."""

        def enqueue(addresses: Any, stream: int) -> None:
            call("adasum_reducer_delta_end", self, addresses, len(addresses), stream)

        self._in_place("weights", weights, range(len(self.specs)), stream, timeout, enqueue)

    def reset(self) -> None:
        """Gives up an open step, as after weights were loaded. Local, but all ranks must do the same."""
        call("adasum_reducer_delta_reset", self)
