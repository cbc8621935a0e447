"""What calls on tensors share: streams that are kept, tensors of the host that travel by copies on the device."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from ctypes import c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from adasum import _abi
from adasum._arguments import UINT64, array, items, milliseconds, whole
from adasum._library import Error, Handle, call
from adasum.device import HostCopies, KeptStreams, Stream
from adasum.tensors import TensorSpec, View, listed, specs, type_name, view_for
from adasum.world import World, check_world, refuse_stream, stream_address

if TYPE_CHECKING:
    from typing_extensions import Self

#: Tensors of any kind that `view` knows, in the order of the specs; of a mapping, its values.
Tensors = Union[Mapping[str, Any], Sequence[Any]]
#: What something is made for: specs, or tensors whose specs are taken.
Specs = Union[Mapping[str, Any], Iterable[Any]]
#: The address of an aclrtStream, or a Stream.
AnyStream = Union[int, Stream]


def described(tensors: Specs) -> list[TensorSpec]:
    """The specs of tensors; specs are themselves."""
    given = listed("tensors", tensors)
    if isinstance(given, list) and all(isinstance(tensor, TensorSpec) for tensor in given):
        return given
    return specs(given)


def _named(name: str, tensors: Mapping[str, Any], wanted: str) -> Any:
    """The tensor of that name: the order of a mapping may differ between ranks."""
    if wanted not in tensors:
        raise ValueError(f"{name} lacks {wanted!r}")
    return tensors[wanted]


def tensor_array(tensors: Sequence[TensorSpec]) -> Any:
    """Specs as the library takes them."""
    fields = ((spec.name.encode(), spec.count, spec.dtype, spec.flags) for spec in tensors)
    return (_abi.adasum_tensor * len(tensors))(*(_abi.adasum_tensor(*values) for values in fields))


@dataclass(frozen=True)
class TensorPart:
    """Elements of a tensor: its index, the first of them, and how many."""

    tensor: int
    start: int
    length: int


def part_arrays(parts: Iterable[TensorPart]) -> tuple[Any, Any, Any, int]:
    """Parts as the library takes them: indices, starts, lengths, how many."""
    given_parts = items("parts", parts, "adasum.TensorPart")
    for i, part in enumerate(given_parts):
        if not isinstance(part, TensorPart):
            raise TypeError(f"parts[{i}] is a {type(part).__name__}: it must be adasum.TensorPart")

    def column(field: str, kind: Any) -> Any:
        return array(kind, [whole(f"parts[{i}].{field}", getattr(part, field), UINT64) for i, part in enumerate(given_parts)])

    return column("tensor", c_size_t), column("start", c_uint64), column("length", c_uint64), len(given_parts)


class StreamUser(Handle):
    """What enqueues work of a world on streams that it is given."""

    #: The beginning of the names of its functions.
    _prefix: str

    def __init__(self, world: World, create: Callable[[Any, Any], None]):
        """Lets `create(world, out)` make it."""
        check_world(world)
        self._destroy = f"{self._prefix}_destroy"
        super().__init__(world._made(self._prefix, create))
        # A world must not end before its users, nor a stream that they look at.
        self._world = world
        self._streams = KeptStreams()
        self._owned.append(self._streams)
        self._device = world.device
        # Copies of tensors of the host that are kept for the next call, and whether a thread has them.
        self._copies: dict[str, HostCopies] = {}
        self._busy = threading.Lock()
        world._keep(self)

    def _stream(self, stream: Optional[AnyStream]) -> int:
        """The address of a stream, which is kept."""
        if stream is None:
            raise ValueError("stream is missing: tensors on the device need the stream that they are ready on")
        address = stream_address(stream)
        if isinstance(stream, Stream):
            self._streams[address] = stream.kept
        return address

    def _device_copies(self, sizes: Sequence[int]) -> HostCopies:
        """Device memory for arrays of the host, which ends with this object."""
        copies = HostCopies(self._device, sizes)
        self._owned.append(copies)
        return copies

    def _kept_copies(self, key: str, sizes: Sequence[int]) -> HostCopies:
        """The same, made when it is needed first. For `_alone`."""
        if key not in self._copies:
            self._copies[key] = self._device_copies(sizes)
        return self._copies[key]

    @contextmanager
    def _alone(self, stream: Optional[AnyStream]) -> Iterator[None]:
        """A call on tensors of the host. Refuses a stream; and a second thread, as the library does, before anything is copied. A close
        waits."""
        refuse_stream(stream)
        with self.in_use():
            if not self._busy.acquire(blocking=False):
                raise Error(f"another thread is using this {type(self).__name__}", "INVALID_STATE", 0)
            try:
                yield
            finally:
                self._busy.release()

    def _synchronize(self, stream: Stream, limit: int) -> None:
        """Waits until what a stream of copies holds is done, at most `limit` milliseconds."""
        try:
            self._wait(stream, limit)
        except BaseException:
            # Work may be left on the copies: the next call makes others, and these stay until the end.
            self._copies.clear()
            raise

    def _wait(self, stream: Stream, limit: int) -> None:
        self._world._wait_for(stream, limit)

    def forget_stream(self, stream: AnyStream) -> None:
        """Lets go of a stream without work, so that its owner may destroy it before this ends. Local."""
        address = stream_address(stream)
        call(f"{self._prefix}_forget_stream", self, address)
        self._streams.pop(address, None)

    def close(self) -> None:
        """Ends it, behind calls that other threads are in; a second time does nothing. Work on the device must be done."""
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class TensorUser(StreamUser):
    """What works on a fixed list of tensors."""

    def __init__(self, world: World, tensors: Specs, create: Callable[[Any, Any, int, Any], None]):
        """Lets `create(world, tensors, count, out)` make it for these tensors (specs, or tensors whose specs are taken)."""
        self.specs = described(tensors)
        passed = tensor_array(self.specs)
        super().__init__(world, lambda owner, out: create(owner, passed, len(passed), out))

    def _views(self, name: str, tensors: Tensors, wanted: Sequence[TensorSpec]) -> tuple[list[View], bool]:
        """What the argument `name` is, and whether it is on the device; it must be as `wanted`."""
        given = listed(name, tensors)
        if len(given) != len(wanted):
            raise ValueError(f"{name} has {len(given)} tensors, expected are {len(wanted)}")
        ordered = [_named(name, given, spec.name) for spec in wanted] if isinstance(given, Mapping) else given
        views = []
        for spec, tensor in zip(wanted, ordered):
            seen = view_for(f"{name}, tensor {spec.name!r}", self._device, tensor)
            if (seen.count, seen.dtype) != (spec.count, spec.dtype):
                raise ValueError(
                    f"{name}, tensor {spec.name!r} has {seen.count} elements of type {type_name(seen.dtype)}, "
                    f"it was made for {spec.count} of type {type_name(spec.dtype)}"
                )
            views.append(seen)
        places = {seen.device for seen in views}
        if len(places) > 1:
            raise ValueError(f"{name}: some tensors are on the device and some on the host")
        return views, places == {True}

    def _host_copies(self, key: str) -> HostCopies:
        """Device memory for all tensors, made when it is needed first."""
        return self._kept_copies(key, [spec.bytes for spec in self.specs])

    def _in_place(
        self, name: str, tensors: Tensors, indices: Sequence[int], stream: Optional[AnyStream], timeout: float,
        enqueue: Callable[[Any, int], None], writes: bool = True,
    ) -> None:
        """Lets `enqueue(addresses, stream)` work on the tensors, or on copies of those of the host, which it waits for."""
        limit = milliseconds("timeout", timeout)
        if self.closed:
            raise self._is_closed()
        views, on_device = self._views(name, tensors, [self.specs[index] for index in indices])
        if on_device:
            enqueue(array(c_void_p, [seen.address for seen in views]), self._stream(stream))
            return
        # No tensors are in no place.
        with self._alone(stream if views else None):
            self._by_copies(views, indices, limit, enqueue, writes)

    def _by_copies(
        self, views: Sequence[View], indices: Sequence[int], limit: int, enqueue: Callable[[Any, int], None], writes: bool
    ) -> None:
        copies = self._host_copies("tensors")
        parts = dict(zip(indices, (seen.address for seen in views)))
        copies.upload(parts)
        enqueue(array(c_void_p, [copies.addresses[index] for index in indices]), copies.stream.handle)
        self._synchronize(copies.stream, limit)
        if writes:
            copies.download(parts)
