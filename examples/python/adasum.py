"""AdaSum gradient reduction for Huawei Ascend NPUs, from Python.

Needs the library (`cargo build --release`, or `cargo cinstall`) and nothing else; NumPy, torch and torch_npu are used where
they are. Copy this file with `adasum_abi.py` and `adasum_device.py` beside it, and `adasum_torch.py` for torch.

    import adasum

    with adasum.World.from_environment() as world:                 # RANK_TABLE_FILE and RANK_ID
        with adasum.GradientReducer(world, adasum.specs(gradients)) as reducer:
            reducer.reduce(gradients)                              # in place, on every rank alike

Arrays of the host (NumPy, CPU tensors, anything with a writable buffer of floats) are copied to the device and back, so a call
returns with the result. Tensors on the device are reduced where they are, in the order of a stream, and nobody waits.

Without an NPU everything runs over the mock of ACL and HCCL that the library carries.

Threads: a World may be used from any thread, a reducer by one thread at a time. "Collective" means that all ranks call,
in the same order. Every failure is an `adasum.Error` with the sentence of the library."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_double, c_int32, c_size_t, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any, Optional, Sequence

import adasum_abi as abi
from adasum_device import BF16, F16, F32, Stage, Stream, TensorSpec, View, specs, view

__all__ = [
    "BF16", "DEFAULT_TIMEOUT", "F16", "F32", "DeltaWeightReducer", "Error", "GradientReducer", "MeanReducer", "Options", "Stream",
    "TensorSpec", "TensorStatistics", "View", "World", "backend", "library", "root_info", "specs", "version", "view",
]

#: Seconds that a wait lasts at most where no timeout is passed.
DEFAULT_TIMEOUT = 1800.0

_library: Optional[ctypes.CDLL] = None


class Error(RuntimeError):
    """A call that failed. `status` is the name of its adasum_status without ADASUM_, `vendor_code` the aclError or HcclResult
    behind it (0 if there is none)."""

    def __init__(self, message: str, status: int, vendor_code: int):
        super().__init__(message)
        names = (name for name, value in abi.STATUSES.items() if value == status)
        self.status = next(names, f"status {status}")
        self.vendor_code = vendor_code


def library() -> ctypes.CDLL:
    """The loaded library, for calls that this module does not wrap."""
    global _library
    if _library is None:
        _library = abi.load()
    return _library


def _call(function: str, *arguments: Any) -> None:
    status = getattr(library(), function)(*arguments)
    if status != 0:
        message = (library().adasum_last_error() or b"").decode(errors="replace")
        raise Error(message, status, library().adasum_last_vendor_code())


def backend() -> str:
    """Loads ACL and HCCL if that has not happened: "cann" or "mock". ADASUM_BACKEND=cann|mock|auto decides."""
    name = c_char_p()
    _call("adasum_backend", byref(name))
    return (name.value or b"").decode()


def version() -> str:
    """Version of the library, as "0.1.0"."""
    return library().adasum_version().decode()


class _Handle:
    """A handle of the library, ended by `close` or a `with` statement."""

    _destroy: str

    def __init__(self, pointer: Any):
        self._pointer = pointer

    def _get(self) -> Any:
        if self._pointer is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer

    def close(self) -> None:
        """Ends it; a second time does nothing."""
        if self._pointer is not None:
            getattr(library(), self._destroy)(self._pointer)
            self._pointer = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Options(_Handle):
    """Choices of worlds and reducers, the same on all ranks: one keyword per option of adasum_options_set in the header, where
    they are described. Values are texts, numbers, bools, or sequences for lists; None leaves the default.

        Options(devices_per_server=8, radix="auto", wire="f32", group=[0, 1], allow_plain_mean=True)"""

    _destroy = "adasum_options_destroy"

    def __init__(self, **choices: Any):
        pointer = ctypes.POINTER(abi.adasum_options)()
        _call("adasum_options_create", byref(pointer))
        super().__init__(pointer)
        for name, value in choices.items():
            self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, bool):
            value = int(value)
        elif not isinstance(value, str) and hasattr(value, "__iter__"):
            value = ",".join(str(item) for item in value)
        _call("adasum_options_set", self._get(), name.encode(), str(value).encode())

    @classmethod
    def from_environment(cls, **choices: Any) -> "Options":
        """What the ADASUM_... variables say (adasum_options_load_environment lists them); `choices` win."""
        options = cls()
        _call("adasum_options_load_environment", options._get())
        for name, value in choices.items():
            options._set(name, value)
        return options

    def load_boost(self, path: str, level: str = "O2") -> None:
        """Takes over MindSpore's boost configuration in the JSON file `path`."""
        _call("adasum_options_load_boost", self._get(), str(path).encode(), level.encode())

    def __del__(self) -> None:
        # A failed __init__ may have made no handle.
        if getattr(self, "_pointer", None) is not None:
            self.close()


def _chosen(options: Optional[Options]) -> Any:
    return None if options is None else options._get()


def root_info(device: int) -> bytes:
    """Bytes by which ranks find each other: one rank makes them on its device and hands them to all others, and all call
    `World.from_root_info`. The process that made them must live until all have joined."""
    out = (c_uint8 * abi.ROOT_INFO_BYTES)()
    _call("adasum_root_info_create", device, out, len(out))
    return bytes(out)


class World(_Handle):
    """This process's membership of a job. Made by one of the `from_` functions, all of which are collective; their options
    count for devices_per_server and create_timeout_ms.

    At the end of a `with` statement it is finished, unless there was an exception."""

    _destroy = "adasum_world_destroy"

    @classmethod
    def _from(cls, source: str, *arguments: Any) -> "World":
        pointer = ctypes.POINTER(abi.adasum_world)()
        _call(f"adasum_world_from_{source}", *arguments, byref(pointer))
        return cls(pointer)

    @classmethod
    def from_environment(cls, options: Optional[Options] = None) -> "World":
        """The world that the environment describes: RANK_TABLE_FILE and RANK_ID, or the variables of torchrun or
        msrun (call mindspore.communication.init first)."""
        return cls._from("environment", _chosen(options))

    @classmethod
    def from_rank_table(cls, path: str, rank: int, options: Optional[Options] = None) -> "World":
        """The world of the rank table in the file `path`, as its rank `rank`."""
        return cls._from("rank_table", str(path).encode(), rank, _chosen(options))

    @classmethod
    def from_root_info(
        cls, device: int, info: bytes, size: int, rank: int, options: Optional[Options] = None
    ) -> "World":
        """The world of `size` ranks that share `info`; ranks of a server are consecutive."""
        copy = (c_uint8 * len(info)).from_buffer_copy(info)
        return cls._from("root_info", device, copy, len(info), size, rank, _chosen(options))

    @classmethod
    def from_comm(cls, comm: int, options: Optional[Options] = None) -> "World":
        """A world of the ranks of an HcclComm of somebody else's, which is borrowed for this call only. The device is the
        calling thread's current one."""
        return cls._from("comm", comm, _chosen(options))

    def _ask(self, what: str, answer: Any) -> int:
        _call(f"adasum_world_{what}", self._get(), byref(answer))
        return answer.value

    @property
    def rank(self) -> int:
        return self._ask("rank", c_uint32())

    @property
    def size(self) -> int:
        return self._ask("size", c_uint32())

    @property
    def servers(self) -> int:
        return self._ask("servers", c_uint32())

    @property
    def devices_per_server(self) -> int:
        return self._ask("devices_per_server", c_uint32())

    @property
    def device(self) -> int:
        """Number of the device that this world uses."""
        return self._ask("device", c_int32())

    def barrier(self, stream: int) -> None:
        """Holds back the aclrtStream until every rank has come here; the host goes on. Collective."""
        _call("adasum_world_barrier", self._get(), stream)

    def forget_stream(self, stream: int) -> None:
        """Lets go of a stream of `barrier` without work, so that its owner may destroy it before this world ends."""
        _call("adasum_world_forget_stream", self._get(), stream)

    def abort(self) -> None:
        """Gives the world up, from any thread: its reducers' calls return and fail."""
        _call("adasum_world_abort", self._get())

    def stop_on_failure(self) -> None:
        """Lets the first task that fails stop all streams of the world's context, for good."""
        _call("adasum_world_stop_on_failure", self._get())

    def finish(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Waits for the work of this world, at most `timeout` seconds, and leaves it in good order. All ranks should call
        it, after their reducers were closed."""
        _call("adasum_world_finish", self._get(), _milliseconds(timeout))
        self.close()

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            # After an exception the others may never come.
            if kind is None and self._pointer is not None:
                self.finish()
        finally:
            self.close()


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * len(values))(*values)


class _AnyReducer(_Handle):
    """What all reducers can do. Lists of tensors that lie on the host travel by a stage of their own."""

    _destroy = "adasum_reducer_destroy"
    _create: str

    def __init__(self, world: World, tensors: Sequence[TensorSpec], options: Optional[Options] = None):
        """Plans for these tensors, allocates buffers and warms up every link. Collective."""
        pointer = ctypes.POINTER(abi.adasum_reducer)()
        described = (abi.adasum_tensor * len(tensors))(
            *(abi.adasum_tensor(spec.name.encode(), spec.count, spec.dtype, spec.flags) for spec in tensors)
        )
        _call(self._create, world._get(), described, len(tensors), _chosen(options), byref(pointer))
        super().__init__(pointer)
        self._device = world.device
        self._servers = world.servers
        self._specs = list(tensors)
        self._stages: dict[Any, Stage] = {}

    def _views(self, tensors: Sequence[Any], wanted: Sequence[TensorSpec]) -> tuple[list[View], bool]:
        """What the tensors are, and whether they are on the device; they must be as `wanted`."""
        if len(tensors) != len(wanted):
            raise ValueError(f"{len(tensors)} tensors were given, the reducer has {len(wanted)}")
        views = [view(tensor) for tensor in tensors]
        for spec, seen in zip(wanted, views):
            if (seen.count, seen.dtype) != (spec.count, spec.dtype):
                raise ValueError(
                    f"tensor {spec.name!r} has {seen.count} elements of type {seen.dtype}, "
                    f"the reducer was made for {spec.count} of type {spec.dtype}"
                )
        places = {seen.device for seen in views}
        if len(places) > 1:
            raise ValueError("some tensors are on the device and some on the host")
        return views, places == {True}

    def _stage(self, key: Any, wanted: Sequence[TensorSpec]) -> Stage:
        if key not in self._stages:
            self._stages[key] = Stage(self._device, [spec.bytes for spec in wanted])
        return self._stages[key]

    def _in_place(
        self, tensors: Sequence[Any], wanted: Sequence[TensorSpec], key: Any, stream: Optional[int], timeout: float, enqueue: Any
    ) -> None:
        """Lets `enqueue(addresses, stream)` work on the tensors, or on copies of those of the host, which it waits for."""
        views, on_device = self._views(tensors, wanted)
        addresses = [seen.address for seen in views]
        if on_device:
            if stream is None:
                raise ValueError("tensors on the device need the stream (an aclrtStream) that they are ready on")
            enqueue(_array(c_void_p, addresses), stream)
            return
        stage = self._stage(key, wanted)
        stage.upload(addresses)
        enqueue(_array(c_void_p, stage.addresses), stage.stream)
        self.synchronize(stage.stream, timeout)
        stage.download(addresses)

    def synchronize(self, stream: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Waits until what `stream` holds is done, at most `timeout` seconds, and raises the first failure of that work."""
        _call("adasum_reducer_synchronize", self._get(), stream, _milliseconds(timeout))

    def forget_stream(self, stream: int) -> None:
        """Lets go of a stream without work, so that its owner may destroy it before this reducer ends."""
        _call("adasum_reducer_forget_stream", self._get(), stream)

    def nonfinite(self) -> list[bool]:
        """Whether each tensor held a NaN or an infinity on any rank in the last reduction; waits for it."""
        flags = (c_uint8 * len(self._specs))()
        _call("adasum_reducer_nonfinite", self._get(), flags, len(flags))
        return [flag != 0 for flag in flags]

    def close(self) -> None:
        super().close()
        while self._stages:
            self._stages.popitem()[1].close()


@dataclass(frozen=True)
class TensorStatistics:
    """Figures of a tensor in a reduction: the norm of the result, the cosine between servers, the gain |result| / |mean|, kappa
    (how far weighted vectors cancelled), and whether anything was not finite; the norm of each server's vector. NaN where there
    is no number: of a tensor that is not finite, and cosine and gain where servers were combined in several rounds."""

    norm: float
    cosine: float
    gain: float
    kappa: float
    nonfinite: bool
    servers: tuple[float, ...]


class GradientReducer(_AnyReducer):
    """Replaces gradients by their AdaSum (or, by an option, mean or sum) over all ranks of a world."""

    _create = "adasum_reducer_create"

    def reduce(self, tensors: Sequence[Any], stream: Optional[int] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Replaces each tensor by its reduction. Collective.

        On the device: enqueued on `stream`, an aclrtStream; the memory must not be freed before that work is done.
        On the host: done when it returns; `timeout` in seconds."""

        def enqueue(addresses: Any, stream: int) -> None:
            _call("adasum_reducer_reduce", self._get(), addresses, len(addresses), stream)

        self._in_place(tensors, self._specs, None, stream, timeout, enqueue)

    def reduce_some(
        self, indices: Sequence[int], tensors: Sequence[Any], stream: Optional[int] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """As `reduce`, for the tensors with these indices in the list of creation. Collective: the same indices on all ranks. The
        first call with them plans, and waits for all ranks."""
        wanted = [self._specs[index] for index in indices]
        numbers = _array(c_size_t, indices)

        def enqueue(addresses: Any, stream: int) -> None:
            _call("adasum_reducer_reduce_some", self._get(), numbers, addresses, len(addresses), stream)

        self._in_place(tensors, wanted, tuple(indices), stream, timeout, enqueue)

    def observe(self, on: bool = True) -> None:
        """Whether the next reductions keep their gradients, for the cosine and gain of several rounds. Local, the same on
        all ranks."""
        _call("adasum_reducer_observe", self._get(), int(on))

    def statistics(self) -> list[TensorStatistics]:
        """Figures of the last reduction for each tensor, the same on all ranks. Collective; waits. With several rounds
        (more servers than the radix) cosine and gain are NaN, unless the reduction was observed."""
        width, count = abi.CONSTANTS["STATISTICS"], len(self._specs)
        figures, norms = (c_double * (width * count))(), (c_double * (self._servers * count))()
        _call("adasum_reducer_statistics", self._get(), figures, len(figures), norms, len(norms))
        rows = (figures[width * i : width * (i + 1)] for i in range(count))
        of_servers = (tuple(norms[self._servers * i : self._servers * (i + 1)]) for i in range(count))
        return [
            TensorStatistics(norm, cosine, gain, kappa, nonfinite != 0, servers)
            for (norm, cosine, gain, kappa, nonfinite), servers in zip(rows, of_servers)
        ]

    def plan(self) -> str:
        """What this rank does in a reduction, a line a step."""
        length = c_size_t()
        _call("adasum_reducer_plan", self._get(), None, 0, byref(length))
        text = ctypes.create_string_buffer(length.value + 1)
        _call("adasum_reducer_plan", self._get(), text, len(text), byref(length))
        return text.value.decode()


class MeanReducer(_AnyReducer):
    """Replaces gradients by their mean over the ranks of the option `group` (all, without it): MindSpore's
    DistributedGradReducer."""

    _create = "adasum_reducer_create_mean"
    reduce = GradientReducer.reduce


class DeltaWeightReducer(_AnyReducer):
    """AdaSum of what an optimizer does to weights, for optimizers that are not linear in the gradients.

    A step is `begin`, the optimizer, `end`. Weights that are equal on all ranks before are equal after it."""

    _create = "adasum_reducer_create_delta"

    def begin(
        self, weights: Sequence[Any], gradients: Optional[Sequence[Any]], stream: Optional[int] = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Saves the weights and replaces the gradients by their mean over the server. With the option delta_form="local", or
        one rank a server, gradients are left alone and may be None. Collective. Streams as in `GradientReducer.reduce`."""
        views, on_device = self._views(weights, self._specs)
        addresses = [seen.address for seen in views]
        if on_device:
            replaced = None if gradients is None else [seen.address for seen in self._views(gradients, self._specs)[0]]
            if stream is None:
                raise ValueError("tensors on the device need the stream (an aclrtStream) that they are ready on")
            self._begin(replaced, addresses, stream)
            return
        saved = self._stage("weights", self._specs)
        saved.upload(addresses)
        if gradients is None:
            self._begin(None, saved.addresses, saved.stream)
            self.synchronize(saved.stream, timeout)
            return
        sources = [seen.address for seen in self._views(gradients, self._specs)[0]]
        means = self._stage("gradients", self._specs)
        means.upload(sources)
        self._begin(means.addresses, saved.addresses, saved.stream)
        self.synchronize(saved.stream, timeout)
        means.download(sources)

    def _begin(self, gradients: Optional[Sequence[int]], weights: Sequence[int], stream: int) -> None:
        replaced = None if gradients is None else _array(c_void_p, gradients)
        _call("adasum_reducer_delta_begin", self._get(), replaced, _array(c_void_p, weights), len(weights), stream)

    def end(self, weights: Sequence[Any], stream: Optional[int] = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Replaces weights, which the optimizer has changed, by old - AdaSum of (old - new). Collective."""

        def enqueue(addresses: Any, stream: int) -> None:
            _call("adasum_reducer_delta_end", self._get(), addresses, len(addresses), stream)

        self._in_place(weights, self._specs, "weights", stream, timeout, enqueue)

    def reset(self) -> None:
        """Gives up an open step, as after weights were loaded. All ranks must do the same."""
        _call("adasum_reducer_delta_reset", self._get())
