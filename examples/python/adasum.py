"""AdaSum gradient reduction for Huawei Ascend NPUs, from Python.

Needs the library (`cargo build --release`, or `cargo cinstall`) and nothing else; NumPy, torch and torch_npu are used where
they are. Copy this file with `adasum_abi.py` and `adasum_device.py` beside it, and `adasum_torch.py` for torch.

    import adasum

    with adasum.World.from_environment() as world:                 # RANK_TABLE_FILE and RANK_ID
        with adasum.Reducer(world, adasum.specs(gradients)) as reducer:
            reducer.reduce(gradients)                              # in place, on every rank alike

Arrays of the host (NumPy, CPU tensors, anything with a writable buffer of floats) are copied to the device and back, so a call
returns with the result. Tensors on the device are reduced where they are, in the order of a stream, and nobody waits.

Without an NPU everything runs over the mock of ACL and HCCL that the library carries.

Threads: a World may be used from any thread, a Reducer by one thread at a time. "Collective" means that all ranks call,
in the same order. Every failure is an `adasum.Error` with the sentence of the library."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_float, c_int32, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import adasum_abi as abi
from adasum_device import Stage

F32, F16, BF16 = (abi.CONSTANTS[f"ADASUM_{name}"] for name in ("F32", "F16", "BF16"))
_BYTES = {F32: 4, F16: 2, BF16: 2}
_TYPE_NAMES = {"float32": F32, "float16": F16, "bfloat16": BF16}
_BUFFER_FORMATS = {"f": F32, "e": F16}
#: How long waits last that were given no limit, in seconds.
PATIENCE = 1800.0

_library: Optional[ctypes.CDLL] = None


class Error(RuntimeError):
    """A call that failed. `status` is the name of its adasum_status, `vendor_code` the aclError or HcclResult behind it
    (0 if there is none)."""

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


@dataclass(frozen=True)
class TensorSpec:
    """Name (for messages), number of elements and type (F32, F16 or BF16) of a tensor."""

    name: str
    count: int
    dtype: int


@dataclass(frozen=True)
class View:
    """Where a tensor lies. `device` says that `address` is memory of the world's device."""

    address: int
    count: int
    dtype: int
    device: bool

    @property
    def bytes(self) -> int:
        return self.count * _BYTES[self.dtype]


def view(tensor: Any) -> View:
    """What lies behind a torch tensor, a NumPy array, or an object with a writable buffer of floats; a View is itself.

    Raises TypeError or ValueError for other types, and for memory that is not contiguous."""
    if isinstance(tensor, View):
        return tensor
    if hasattr(tensor, "data_ptr"):
        if not tensor.is_contiguous():
            raise ValueError("the tensor is not contiguous")
        kind = tensor.device.type
        if kind not in ("cpu", "npu"):
            raise ValueError(f"the tensor is on {kind}, not on the CPU or an NPU")
        return View(tensor.data_ptr(), tensor.numel(), _type_of(tensor.dtype), kind == "npu")
    if hasattr(tensor, "ctypes") and hasattr(tensor, "dtype"):
        flags = tensor.flags
        if not (flags.c_contiguous and flags.writeable):
            raise ValueError("the array is not contiguous or not writable")
        return View(tensor.ctypes.data, tensor.size, _type_of(tensor.dtype), False)
    buffer = memoryview(tensor)
    if buffer.readonly or not buffer.c_contiguous:
        raise ValueError("the buffer is not contiguous or not writable")
    if buffer.format not in _BUFFER_FORMATS:
        raise TypeError(f"a buffer of format {buffer.format!r} is neither fp32 ('f') nor fp16 ('e')")
    if buffer.nbytes == 0:
        return View(0, 0, _BUFFER_FORMATS[buffer.format], False)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    return View(address, buffer.nbytes // buffer.itemsize, _BUFFER_FORMATS[buffer.format], False)


def _type_of(dtype: Any) -> int:
    name = str(dtype).rpartition(".")[2]
    if name not in _TYPE_NAMES:
        raise TypeError(f"type {dtype} is not float32, float16 or bfloat16")
    return _TYPE_NAMES[name]


def specs(tensors: Union[Mapping[str, Any], Iterable[Any]]) -> list[TensorSpec]:
    """Specs of tensors with names, or without: then "0", "1", ..."""
    named = tensors.items() if isinstance(tensors, Mapping) else ((str(i), t) for i, t in enumerate(tensors))
    found = ((name, view(tensor)) for name, tensor in named)
    return [TensorSpec(name, seen.count, seen.dtype) for name, seen in found]


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


#: Words for the options that are numbers in the header.
_WORDS = {
    "reduction": {"adasum": 0, "mean": 1, "sum": 2},
    "wire": {"native": 0, "f32": 1},
}


class Options(_Handle):
    """Choices of a reducer, the same on all ranks: one keyword per adasum_options_set_... of the header.

        Options(reduction="adasum", radix=4, wire="f32", bucket_bytes=1 << 20, allow_plain_mean=True)"""

    _destroy = "adasum_options_destroy"

    def __init__(self, **choices: Any):
        pointer = ctypes.POINTER(abi.adasum_options)()
        _call("adasum_options_create", byref(pointer))
        super().__init__(pointer)
        for name, value in choices.items():
            function = f"adasum_options_set_{name}"
            if function not in abi.SIGNATURES:
                self.close()
                raise TypeError(f"there is no option {name!r}")
            words = _WORDS.get(name, {})
            if isinstance(value, str) and value not in words:
                self.close()
                raise ValueError(f"{name}={value!r}: not one of {', '.join(words)}")
            _call(function, pointer, words.get(value, value))

    def __del__(self) -> None:
        self.close()


def root_info(device: int) -> bytes:
    """Bytes by which ranks find each other: one rank makes them on its device and hands them to all others, and all call
    `World.from_root_info`. The process that made them must live until all have joined."""
    out = (c_uint8 * abi.ROOT_INFO_BYTES)()
    _call("adasum_root_info_create", device, out, len(out))
    return bytes(out)


class World(_Handle):
    """This process's membership of a job. Made by one of the `from_` functions, all of which are collective."""

    _destroy = "adasum_world_destroy"

    @classmethod
    def from_environment(cls) -> "World":
        """The world that the environment describes: RANK_TABLE_FILE and RANK_ID."""
        pointer = ctypes.POINTER(abi.adasum_world)()
        _call("adasum_world_from_environment", byref(pointer))
        return cls(pointer)

    @classmethod
    def from_rank_table(cls, path: str, rank: int) -> "World":
        """The world of the rank table in the file `path`, as its rank `rank`."""
        pointer = ctypes.POINTER(abi.adasum_world)()
        _call("adasum_world_from_rank_table", str(path).encode(), rank, byref(pointer))
        return cls(pointer)

    @classmethod
    def from_root_info(cls, device: int, info: bytes, size: int, rank: int, devices_per_server: int = 1) -> "World":
        """The world of `size` ranks that share `info`; ranks of a server are consecutive."""
        pointer = ctypes.POINTER(abi.adasum_world)()
        copy = (c_uint8 * len(info)).from_buffer_copy(info)
        _call("adasum_world_from_root_info", device, copy, len(info), size, rank, devices_per_server, byref(pointer))
        return cls(pointer)

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

    def finish(self, timeout: float = PATIENCE) -> None:
        """Waits for the work of this world, at most `timeout` seconds, and leaves it in good order. All ranks should call
        it, after their reducers were closed."""
        _call("adasum_world_finish", self._get(), _milliseconds(timeout))

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            # After an exception the others may never come.
            if kind is None and self._pointer is not None:
                self.finish()
        finally:
            self.close()


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


class _Staged(_Handle):
    """A reducer whose tensors may lie on the host: then they travel by a stage of their own."""

    def __init__(self, pointer: Any, world: World, tensors: Sequence[TensorSpec]):
        super().__init__(pointer)
        self._device = world.device
        self._specs = list(tensors)
        self._stages: list[Stage] = []

    def _views(self, tensors: Sequence[Any]) -> tuple[list[View], bool]:
        """What the tensors are, and whether they are on the device; they must be those of the creation."""
        if len(tensors) != len(self._specs):
            raise ValueError(f"{len(tensors)} tensors were given, the reducer has {len(self._specs)}")
        views = [view(tensor) for tensor in tensors]
        for spec, seen in zip(self._specs, views):
            if (seen.count, seen.dtype) != (spec.count, spec.dtype):
                raise ValueError(
                    f"tensor {spec.name!r} has {seen.count} elements of type {seen.dtype}, "
                    f"the reducer was made for {spec.count} of type {spec.dtype}"
                )
        places = {seen.device for seen in views}
        if len(places) > 1:
            raise ValueError("some tensors are on the device and some on the host")
        return views, places == {True}

    def _stage(self, number: int) -> Stage:
        """The stage of that number: one for each list of tensors that a call takes."""
        while len(self._stages) <= number:
            sizes = [spec.count * _BYTES[spec.dtype] for spec in self._specs]
            self._stages.append(Stage(self._device, sizes))
        return self._stages[number]

    def close(self) -> None:
        super().close()
        while self._stages:
            self._stages.pop().close()


def _pointers(addresses: Sequence[int]) -> Any:
    return (c_void_p * len(addresses))(*addresses)


def _need_stream(stream: Optional[int]) -> int:
    if stream is None:
        raise ValueError("tensors on the device need the stream (an aclrtStream) that they are ready on")
    return stream


class Reducer(_Staged):
    """Replaces gradients by their AdaSum (or mean, or sum) over all ranks of a world."""

    _destroy = "adasum_reducer_destroy"

    def __init__(self, world: World, tensors: Sequence[TensorSpec], options: Optional[Options] = None):
        """Plans the reduction, allocates its buffers and warms up every link. Collective."""
        pointer = ctypes.POINTER(abi.adasum_reducer)()
        list_of = (abi.adasum_tensor * len(tensors))(
            *(abi.adasum_tensor(spec.name.encode(), spec.count, spec.dtype, 0) for spec in tensors)
        )
        chosen = None if options is None else options._get()
        _call("adasum_reducer_create", world._get(), list_of, len(tensors), chosen, byref(pointer))
        super().__init__(pointer, world, tensors)

    def reduce(self, tensors: Sequence[Any], stream: Optional[int] = None, timeout: float = PATIENCE) -> None:
        """Replaces each tensor by its reduction. Collective.

        On the device: enqueued on `stream`, an aclrtStream; the memory must not be freed before that work is done.
        On the host: done when it returns; `timeout` in seconds."""
        views, on_device = self._views(tensors)
        addresses = [seen.address for seen in views]
        if on_device:
            self._enqueue(addresses, _need_stream(stream))
            return
        stage = self._stage(0)
        stage.upload(addresses)
        self._enqueue(stage.addresses, stage.stream)
        self.synchronize(stage.stream, timeout)
        stage.download(addresses)

    def _enqueue(self, addresses: Sequence[int], stream: int) -> None:
        _call("adasum_reducer_reduce", self._get(), _pointers(addresses), len(addresses), stream)

    def synchronize(self, stream: int, timeout: float = PATIENCE) -> None:
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
