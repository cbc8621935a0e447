"""Device memory for arrays of the host: the few calls of ACL that NumPy arrays and CPU tensors need on their way.

Tensors that are on the device already do not come here."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p
from typing import Any, Sequence

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


class Stage:
    """One block of memory on a device that holds copies of host arrays, and a stream. Freed by `close`."""

    def __init__(self, device: int, sizes: Sequence[int]):
        """For arrays of `sizes` bytes. The libraries must be loaded, as they are once there is a world."""
        self._acl = _Acl()
        self._device = device
        self._sizes = list(sizes)
        self._block, self._stream = c_void_p(), c_void_p()
        offsets, total = [], 0
        for size in sizes:
            offsets.append(total)
            total += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        self._acl.use(device)
        self._acl.call("aclrtMalloc", byref(self._block), max(total, _ALIGNMENT), _HUGE_FIRST)
        self._acl.call("aclrtCreateStream", byref(self._stream))
        base = self._block.value or 0
        #: Addresses of the copies.
        self.addresses = [base + offset for offset in offsets]

    @property
    def stream(self) -> int:
        """An aclrtStream for work on the copies."""
        return self._stream.value or 0

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
        if self._stream.value:
            self._acl.use(self._device)
            self._acl.call("aclrtDestroyStream", self._stream)
            self._acl.call("aclrtFree", self._block)
            self._stream, self._block = c_void_p(), c_void_p()
