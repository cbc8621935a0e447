"""Where tensors lie: views of arrays and tensors of all kinds, and device memory for those of the host.

Tensors that are on the device already need none of the latter."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence, Union

from adasum_abi import CONSTANTS

F32, F16, BF16 = (CONSTANTS[name] for name in ("F32", "F16", "BF16"))
_BYTES = {F32: 4, F16: 2, BF16: 2}
_TYPE_NAMES = {"float32": F32, "float16": F16, "bfloat16": BF16}
_BUFFER_FORMATS = {"f": F32, "e": F16}

_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_HUGE_FIRST = 0
#: Tensors start at multiples of so many bytes, as the vendor aligns allocations.
_ALIGNMENT = 512

_SIGNATURES = {
    "aclrtGetDevice": [POINTER(c_int32)],
    "aclrtSetDevice": [c_int32],
    "aclrtMalloc": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtFree": [c_void_p],
    "aclrtMemcpy": [c_void_p, c_size_t, c_void_p, c_size_t, c_int],
    "aclrtCreateStream": [POINTER(c_void_p)],
    "aclrtDestroyStream": [c_void_p],
}


@dataclass(frozen=True)
class TensorSpec:
    """Name (for messages), number of elements and type (F32, F16 or BF16) of a tensor; flags as in the header."""

    name: str
    count: int
    dtype: int
    flags: int = 0

    @property
    def bytes(self) -> int:
        return self.count * _BYTES[self.dtype]


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

    The order of axes does not matter where it is the same on all ranks (torch's channels_last). Raises TypeError or ValueError
    for other types, and for memory that is not contiguous."""
    if isinstance(tensor, View):
        return tensor
    if hasattr(tensor, "data_ptr"):
        if not _is_dense(tensor.shape, tensor.stride()):
            raise ValueError("the tensor has gaps or overlaps: it is not contiguous in any order of its axes")
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


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory, in whatever order of the axes."""
    expected = 1
    for stride, length in sorted((stride, length) for stride, length in zip(strides, shape) if length != 1):
        if stride != expected and 0 not in shape:
            return False
        expected *= length
    return True


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


class _Acl:
    """libascendcl as this process has loaded it: the vendor's or the mock."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        self._library.aclGetRecentErrMsg.restype = c_char_p
        for name, arguments in _SIGNATURES.items():
            getattr(self._library, name).argtypes = arguments

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            message = self._library.aclGetRecentErrMsg() or b""
            raise OSError(code, f"{name} failed with {code}: {message.decode(errors='replace').strip()}")

    def use(self, device: int) -> None:
        """Makes the device the calling thread's. Left alone if it is that already: each setting is counted."""
        current = c_int32(-1)
        if self._library.aclrtGetDevice(byref(current)) != 0 or current.value != device:
            self.call("aclrtSetDevice", device)


class Stream:
    """An aclrtStream of a device, for programs whose framework does not give theirs. Ended by `close` or `with`, when no work is
    left on it and reducers that used it are closed or have forgotten it."""

    def __init__(self, device: int):
        self._acl = _Acl()
        self._device = device
        self._stream = c_void_p()
        self._acl.use(device)
        self._acl.call("aclrtCreateStream", byref(self._stream))

    @property
    def handle(self) -> int:
        """The address that calls take."""
        return self._stream.value or 0

    def close(self) -> None:
        if self._stream.value:
            self._acl.use(self._device)
            self._acl.call("aclrtDestroyStream", self._stream)
            self._stream = c_void_p()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Stage:
    """One block of memory on a device that holds copies of host arrays, and a stream. Freed by `close`."""

    def __init__(self, device: int, sizes: Sequence[int]):
        """For arrays of `sizes` bytes. The libraries must be loaded, as they are once there is a world."""
        self._acl = _Acl()
        self._device = device
        self._sizes = list(sizes)
        self._block = c_void_p()
        offsets, total = [], 0
        for size in sizes:
            offsets.append(total)
            total += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        self._acl.use(device)
        self._acl.call("aclrtMalloc", byref(self._block), max(total, _ALIGNMENT), _HUGE_FIRST)
        self._stream = Stream(device)
        base = self._block.value or 0
        #: Addresses of the copies.
        self.addresses = [base + offset for offset in offsets]

    @property
    def stream(self) -> int:
        """An aclrtStream for work on the copies."""
        return self._stream.handle

    def upload(self, addresses: Sequence[int]) -> None:
        """Copies arrays of the host at `addresses` to the device; they are there when it returns."""
        self._acl.use(self._device)
        for copy, array, size in zip(self.addresses, addresses, self._sizes):
            if size > 0:
                self._acl.call("aclrtMemcpy", copy, size, array, size, _HOST_TO_DEVICE)

    def download(self, addresses: Sequence[int]) -> None:
        """Copies them back. Work on the stream must have been synchronised."""
        self._acl.use(self._device)
        for copy, array, size in zip(self.addresses, addresses, self._sizes):
            if size > 0:
                self._acl.call("aclrtMemcpy", array, size, copy, size, _DEVICE_TO_HOST)

    def close(self) -> None:
        """Frees memory and stream, on which no work may be left."""
        self._stream.close()
        if self._block.value:
            self._acl.use(self._device)
            self._acl.call("aclrtFree", self._block)
            self._block = c_void_p()
