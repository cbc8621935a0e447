"""Device memory for arrays of the host, and streams: for programs whose framework has neither."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, SupportsIndex

from adasum._arguments import INT32, milliseconds, whole
from adasum._library import DEFAULT_TIMEOUT, fail

_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3
_HUGE_FIRST = 0
#: Copies start at multiples of so many bytes, as the vendor aligns allocations.
_ALIGNMENT = 512

_SIGNATURES: dict[str, list[Any]] = {
    "aclrtSetDevice": [c_int32],
    "aclrtGetCurrentContext": [POINTER(c_void_p)],
    "aclrtSetCurrentContext": [c_void_p],
    "aclrtMalloc": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtFree": [c_void_p],
    "aclrtMemcpy": [c_void_p, c_size_t, c_void_p, c_size_t, c_int],
    "aclrtMemcpyAsync": [c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p],
    "aclrtCreateStream": [POINTER(c_void_p)],
    "aclrtDestroyStream": [c_void_p],
    "aclrtSynchronizeStreamWithTimeout": [c_void_p, c_int32],
}

#: Statuses of ACL_ERROR_RT_MEMORY_ALLOCATION, _DEVICE_OOM and _STREAM_SYNC_TIMEOUT; of all other codes it is ACL.
_STATUSES = {207001: "OUT_OF_MEMORY", 207018: "OUT_OF_MEMORY", 507046: "TIMEOUT"}

#: The contexts of the devices that this process keeps until it ends.
_contexts: dict[int, Optional[int]] = {}
_setting = threading.Lock()


class _Acl:
    """libascendcl as this process has loaded it: the vendor's or the mock."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:
            fail("INVALID_STATE", b"the libraries of the device are not loaded: make a world first", 0)
        self._library.aclGetRecentErrMsg.restype = c_char_p
        for name, arguments in _SIGNATURES.items():
            getattr(self._library, name).argtypes = arguments

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            message = (self._library.aclGetRecentErrMsg() or b"").strip()
            fail(_STATUSES.get(code, "ACL"), b"%s failed with %d: %s" % (name.encode(), code, message), code)

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """The device is the calling thread's inside, and behind it what was so before; a thread that had none keeps it. The device is set
        once and kept: the library resets its own setting with its last object, and streams and copies may live longer."""
        before = self._context()
        with _setting:
            if device not in _contexts:
                self.call("aclrtSetDevice", device)
                _contexts[device] = self._context()
        self.call("aclrtSetCurrentContext", _contexts[device])
        try:
            yield
        finally:
            if before is not None:
                self.call("aclrtSetCurrentContext", before)

    def _context(self) -> Optional[int]:
        """The calling thread's context, if it has one."""
        found = c_void_p()
        return found.value if self._library.aclrtGetCurrentContext(byref(found)) == 0 else None


class AclStream:
    """An aclrtStream. It ends when nothing refers to this any more."""

    def __init__(self, acl: _Acl, device: int):
        stream = c_void_p()
        with acl.on(device):
            acl.call("aclrtCreateStream", byref(stream))
        self.address = stream.value or 0
        end = weakref.finalize(self, _end_stream, os.getpid(), acl, device, self.address)
        # At the end of the process reducers may still need it, and the process takes it along.
        end.atexit = False


class Stream:
    """An aclrtStream of a device, for programs whose framework does not give theirs. It ends with `close`, with a `with` statement,
    or when nothing refers to it any more; worlds and reducers that were given it keep it until they have forgotten it or end.
    No work may be left on it when it ends."""

    def __init__(self, device: SupportsIndex):
        self._device = whole("device", device, INT32)
        self._acl = _Acl()
        self._stream: Optional[AclStream] = AclStream(self._acl, self._device)

    @property
    def kept(self) -> AclStream:
        """What worlds and reducers keep of it."""
        if self._stream is None:
            raise ValueError("this Stream is closed")
        return self._stream

    @property
    def handle(self) -> int:
        """The address that calls take."""
        return self.kept.address

    def synchronize(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Waits until what it holds is done, at most `timeout` seconds; raises WaitError if it was not by then."""
        limit = milliseconds("timeout", timeout)
        with self._acl.on(self._device):
            self._acl.call("aclrtSynchronizeStreamWithTimeout", self.handle, min(limit, 2**31 - 1))

    def close(self) -> None:
        """Ends it, once no world or reducer keeps it; a second time does nothing."""
        self._stream = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class KeptStreams(Dict[int, AclStream]):
    """Streams that the library may look at, by their addresses. Whoever owns this keeps them until its end."""

    def close(self) -> None:
        """Lets go of them."""
        self.clear()


def _end_stream(process: int, acl: _Acl, device: int, address: int) -> None:
    # What a forked child has is its parent's.
    if os.getpid() == process:
        _free(acl, device, "aclrtDestroyStream", address)


def _free(acl: _Acl, device: int, function: str, what: int) -> None:
    with acl.on(device):
        acl.call(function, what)


def copy_on_device(target: int, source: int, size: int, stream: int) -> None:
    """Queues a copy of `size` bytes of the calling thread's device, from one address to another, on a stream."""
    _Acl().call("aclrtMemcpyAsync", target, size, source, size, _DEVICE_TO_DEVICE, stream)


class HostCopies:
    """One block of memory on a device that holds copies of host arrays, and a stream. Ended by `close`."""

    def __init__(self, device: int, sizes: Sequence[int]):
        """For arrays of `sizes` bytes. The libraries must be loaded, as they are once there is a world."""
        self._acl = _Acl()
        self._device = device
        self._sizes = list(sizes)
        offsets, total = [], 0
        for size in sizes:
            offsets.append(total)
            total += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        block = c_void_p()
        with self._acl.on(device):
            self._acl.call("aclrtMalloc", byref(block), max(total, _ALIGNMENT), _HUGE_FIRST)
        self._block = block.value or 0
        #: For work on the copies.
        self.stream = Stream(device)
        #: Addresses of the copies.
        self.addresses = [self._block + offset for offset in offsets]

    def upload(self, arrays: Mapping[int, int], lengths: Mapping[int, int] = {}) -> None:
        """Copies arrays of the host to the device, by number their addresses; they are there when it returns. `lengths` has the bytes of
        those that are shorter than their copies."""
        with self._acl.on(self._device):
            for number, address in arrays.items():
                size = lengths.get(number, self._sizes[number])
                if size > 0:
                    self._acl.call("aclrtMemcpy", self.addresses[number], size, address, size, _HOST_TO_DEVICE)

    def download(self, arrays: Mapping[int, int]) -> None:
        """Copies them back. Work on the stream must have been synchronised."""
        with self._acl.on(self._device):
            for number, address in arrays.items():
                size = self._sizes[number]
                if size > 0:
                    self._acl.call("aclrtMemcpy", address, size, self.addresses[number], size, _DEVICE_TO_HOST)

    def read(self, out: bytearray, address: int) -> None:
        """Fills `out` with what lies at an address of the device."""
        if out:
            target = (ctypes.c_char * len(out)).from_buffer(out)
            with self._acl.on(self._device):
                self._acl.call("aclrtMemcpy", ctypes.addressof(target), len(out), address, len(out), _DEVICE_TO_HOST)

    def close(self) -> None:
        """Frees memory and stream, on which no work may be left; a second time does nothing."""
        self.stream.close()
        if self._block:
            _free(self._acl, self._device, "aclrtFree", self._block)
            self._block = 0
