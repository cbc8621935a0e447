"""This process's membership of a job."""

from __future__ import annotations

import ctypes
import itertools
import os
import weakref
from contextlib import ExitStack, suppress
from ctypes import byref, c_int32, c_uint8, c_uint32
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, SupportsIndex, Union

from adasum import _abi
from adasum._arguments import INT32, UINT32, UINT64, array, milliseconds, path as file_path, whole, wholes
from adasum._library import DEFAULT_TIMEOUT, Error, Handle, call
from adasum.device import HostCopies, KeptStreams, Stream
from adasum.options import Options, WorldOptionValues, check_world_choices, chosen
from adasum.tensors import F32, type_name, view_for

if TYPE_CHECKING:
    from typing_extensions import Unpack


def root_info(device: SupportsIndex) -> bytes:
    """Bytes by which ranks find each other: one rank makes them on its device and hands them to all others, and all call
    `World.from_root_info`. The process that made them must live until all have joined."""
    out = (c_uint8 * _abi.ROOT_INFO_BYTES)()
    call("adasum_root_info_create", whole("device", device, INT32), out, len(out))
    return bytes(out)


def stream_address(stream: Union[int, Stream]) -> int:
    """The aclrtStream of a stream."""
    if isinstance(stream, Stream):
        return stream.handle
    if isinstance(stream, bool) or not hasattr(stream, "__index__"):
        raise TypeError(f"stream is a {type(stream).__name__}: it must be adasum.Stream or the address of an aclrtStream")
    return whole("stream", stream, UINT64)


def check_world(world: Any) -> None:
    """Refuses what is no world."""
    if not isinstance(world, World):
        raise TypeError(f"world is a {type(world).__name__}: it must be adasum.World")


def refuse_stream(stream: Optional[Union[int, Stream]]) -> None:
    """Refuses a stream beside tensors of the host: whoever gives one means something else, as work to wait for, or a limit."""
    if stream is not None:
        raise ValueError(f"stream is {stream!r}, but the tensors are on the host, where a call takes none; a limit is given as timeout=seconds")


class World(Handle):
    """This process's membership of a job. Made by one of the `from_` functions, all of which are collective. Their options are
    keywords, devices_per_server and create_timeout_ms, or `options`, of which these two count.

    At the end of a `with` statement it is finished, unless there was an exception. May be used from any thread."""

    _destroy = "adasum_world_destroy"

    def __init__(self, pointer: Any):
        super().__init__(pointer)
        # What `finish` closes, and the streams that the library may still look at.
        self._users: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self._numbers = itertools.count()
        self._streams = KeptStreams()
        self._owned.append(self._streams)
        # A part keeps its whole.
        self._whole: Optional[World] = None
        self._finished = False

    @classmethod
    def _from(cls, source: str, options: Optional[Options], choices: Any, *arguments: Any) -> World:
        check_world_choices(choices)
        made = ctypes.POINTER(_abi.adasum_world)()
        call(f"adasum_world_from_{source}", *arguments, chosen(options, choices), byref(made))
        return cls(made)

    @classmethod
    def from_environment(cls, options: Optional[Options] = None, **choices: Unpack[WorldOptionValues]) -> World:
        """The world that the environment describes: RANK_TABLE_FILE and RANK_ID, or the variables of torchrun or of msrun (several
        machines want its --node_rank, or `adasum.mindspore.world`). With a table of version 2.0, and on Ascend 950, MASTER_ADDR and MASTER_PORT, or
        ADASUM_ROOTINFO_FILE, must be set, too, as `adasum-run launch` does: ranks meet there."""
        return cls._from("environment", options, choices)

    @classmethod
    def from_rank_table(
        cls, path: Union[str, os.PathLike[str]], rank: SupportsIndex, options: Optional[Options] = None, **choices: Unpack[WorldOptionValues]
    ) -> World:
        """The world of the rank table in the file `path`, as its rank `rank`. With a table of version 2.0, and on Ascend 950, ranks meet as
        `from_environment` says."""
        return cls._from("rank_table", options, choices, file_path("path", path), whole("rank", rank, UINT32))

    @classmethod
    def from_root_info(
        cls, device: SupportsIndex, info: Union[bytes, bytearray, memoryview, Sequence[int]], size: SupportsIndex, rank: SupportsIndex,
        options: Optional[Options] = None, **choices: Unpack[WorldOptionValues],
    ) -> World:
        """The world of `size` ranks that share `info`, as rank `rank` on device `device`; ranks of a server are consecutive."""
        try:
            # bytes() takes a number for as many zeros.
            content = None if hasattr(info, "__index__") else bytes(info)
        except (TypeError, ValueError):
            content = None
        if content is None:
            raise TypeError(f"info is a {type(info).__name__}: it must be the bytes of adasum.root_info")
        copy = (c_uint8 * len(content)).from_buffer_copy(content)
        number, ranks, own = whole("device", device, INT32), whole("size", size, UINT32), whole("rank", rank, UINT32)
        return cls._from("root_info", options, choices, number, copy, len(copy), ranks, own)

    @classmethod
    def from_comm(cls, comm: SupportsIndex, options: Optional[Options] = None, **choices: Unpack[WorldOptionValues]) -> World:
        """A world of the ranks of an HcclComm of somebody else's, which is borrowed for this call only: no other work may be under way
        on it, so synchronise the device after its last collective (torch.npu.synchronize(); `adasum.torch.world` does). The device is
        the calling thread's current one."""
        return cls._from("comm", options, choices, whole("comm", comm, UINT64))

    def _ask(self, what: str, answer: Any) -> int:
        call(f"adasum_world_{what}", self, byref(answer))
        value: int = answer.value
        return value

    @property
    def rank(self) -> int:
        """This process's rank."""
        return self._ask("rank", c_uint32())

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._ask("size", c_uint32())

    @property
    def servers(self) -> int:
        """Number of servers."""
        return self._ask("servers", c_uint32())

    @property
    def devices_per_server(self) -> int:
        """Ranks of each server."""
        return self._ask("devices_per_server", c_uint32())

    @property
    def device(self) -> int:
        """Number of the device that this world uses."""
        return self._ask("device", c_int32())

    def _made(self, kind: str, create: Callable[[Any, Any], None]) -> Any:
        """The pointer to a `kind` that `create(world, out)` makes of this world."""
        out = ctypes.POINTER(getattr(_abi, kind))()
        create(self, byref(out))
        return out

    def _keep(self, user: Handle) -> None:
        """Has `finish` close what was made of this world."""
        self._users[next(self._numbers)] = user

    def part(self, ranks: Sequence[SupportsIndex], devices_per_server: SupportsIndex) -> World:
        """The world of `ranks`, some of this one's in ascending order, with `devices_per_server` consecutive ones a server: of one
        server, one pipeline stage, one shard of a model. It shares device, streams and order of work with this world, and a
        failure of one is a failure of both. Collective among `ranks` only, which make the parts that they share in the same order."""
        members = wholes("ranks", ranks, UINT32)
        numbers = array(c_uint32, members)
        per_server = whole("devices_per_server", devices_per_server, UINT32)
        part = World(self._made("adasum_world", lambda world, out: call(
            "adasum_world_part", world, numbers, len(numbers), per_server, out)))
        part._whole = self
        self._keep(part)
        return part

    def barrier(self, stream: Union[int, Stream]) -> None:
        """Holds back the stream until every rank has come here; the host goes on. Collective, stream-ordered. The first one of a world
        builds links, for which the host waits, at most HCCL_CONNECT_TIMEOUT."""
        address = stream_address(stream)
        call("adasum_world_barrier", self, address)
        if isinstance(stream, Stream):
            self._streams[address] = stream.kept

    def all_reduce_sum(self, values: Any, stream: Optional[Union[int, Stream]] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Replaces fp32 numbers by their sums over all ranks: for figures like a loss. HCCL chooses the order of the sum, so this is not
        AdaSum, and not bit for bit the same in every run. Collective.

        On the device: enqueued on `stream`. On the host: done when it returns, which takes at most `timeout` seconds; a wait that reaches
        this limit gives the world up. The first call of a world builds links, for which the host waits before that, at most
        HCCL_CONNECT_TIMEOUT."""
        limit = milliseconds("timeout", timeout)
        seen = view_for("values", self.device, values)
        if seen.dtype != F32:
            raise TypeError(f"values has elements of type {type_name(seen.dtype)}: they must be fp32")
        if seen.device:
            if stream is None:
                raise ValueError("stream is missing: numbers on the device need the stream that they are ready on")
            address = stream_address(stream)
            call("adasum_world_all_reduce_sum", self, seen.address, seen.count, address)
            if isinstance(stream, Stream):
                self._streams[address] = stream.kept
            return
        refuse_stream(stream)
        with self.in_use():
            copies = HostCopies(self.device, [seen.bytes])
            # After a failure work may be left on the stream: the copies stay until the world ends.
            self._owned.append(copies)
            copies.upload({0: seen.address})
            call("adasum_world_all_reduce_sum", self, copies.addresses[0], seen.count, copies.stream.handle)
            self._wait_for(copies.stream, limit)
            copies.download({0: seen.address})
            self.forget_stream(copies.stream)
            self._owned.remove(copies)
            copies.close()

    def _wait_for(self, stream: Stream, limit: int) -> None:
        """Waits until what a stream of copies holds is done, at most `limit` milliseconds. A wait that fails gives the world up, as those
        of reducers do: what is left on the stream would meet a later call of the other ranks, and closing would wait for it."""
        try:
            stream.synchronize(limit / 1000)
        except Error:
            # Somebody may have closed it meanwhile.
            with suppress(ValueError):
                self.abort()
            raise

    def forget_stream(self, stream: Union[int, Stream]) -> None:
        """Lets go of a stream of `barrier` or `all_reduce_sum` without work, so that its owner may destroy it before this world ends. Local."""
        address = stream_address(stream)
        call("adasum_world_forget_stream", self, address)
        self._streams.pop(address, None)

    def abort(self) -> None:
        """Gives the world up, from any thread: its reducers' calls return and fail. Local."""
        call("adasum_world_abort", self)

    def stop_on_failure(self) -> None:
        """Lets the first task that fails stop all streams of the world's context, for good. On A3 HCCL asks for it with its first
        operation, unless HCCL_OP_EXPANSION_MODE is HOST. Local."""
        call("adasum_world_stop_on_failure", self)

    @property
    def last_vendor_code(self) -> int:
        """The aclError or HcclResult of the failure that made the world unusable; 0 if there is none."""
        return self._ask("last_vendor_code", c_int32())

    def finish(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Closes what was made of this world, reducers and others, finishes its parts, waits for its work, at most `timeout` seconds, and
        leaves it in good order. All ranks should call it. Ctrl-C takes effect when it returns. A second time does nothing."""
        limit = milliseconds("timeout", timeout)
        if self._finished:
            return
        # The last first, in the same order on all ranks.
        for user in reversed(list(self._users.values())):
            if isinstance(user, World) and not user.closed:
                user.finish(timeout)
            user.close()
        call("adasum_world_finish", self, limit)
        self._finished = True
        self.close()

    def close(self) -> None:
        """Closes what was made of this world and ends this process's part without waiting for others, who may see that as a failure:
        see `finish`."""
        # The last first, and all, also if one cannot.
        with ExitStack() as ends:
            ends.callback(super().close)
            for user in list(self._users.values()):
                ends.callback(user.close)

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            # After an exception the others may never come.
            if kind is None and not self.closed:
                self.finish()
        finally:
            self.close()
