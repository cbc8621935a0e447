"""The loaded library: calls with their errors, handles that end themselves, log records."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import threading
import weakref
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_char_p
from typing import Any, Callable, Iterator, NoReturn, Optional, Protocol

from adasum import _abi

#: Seconds that a wait lasts at most where no timeout is passed.
DEFAULT_TIMEOUT = 1800.0

_LOGGER = logging.getLogger("adasum")
#: Python's levels for the library's 1 (error) to 5 (trace).
_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG, 5: 5}

_library: Optional[ctypes.CDLL] = None
_loading = threading.Lock()


class Error(RuntimeError):
    """A call of the library that failed, with its sentence. `status` is the name of its adasum_status without ADASUM_,
    `vendor_code` the aclError or HcclResult behind it (0 if there is none).

    Wrong arguments, options, variables and files are `ArgumentError`, which is a ValueError, too; waits that reached their limit are
    `WaitError`, which is a TimeoutError, too."""

    def __init__(self, message: str, status: str, vendor_code: int):
        super().__init__(message)
        self.status = status
        self.vendor_code = vendor_code

    def __reduce__(self) -> Any:
        # Pools of processes hand on errors of their workers by pickling.
        return type(self), (str(self), self.status, self.vendor_code)


class ArgumentError(Error, ValueError):
    """An argument, option, environment variable or file is wrong."""


class WaitError(Error, TimeoutError):
    """A wait reached its limit."""


# Tracebacks name them as programs do.
Error.__module__ = ArgumentError.__module__ = WaitError.__module__ = "adasum"

_KINDS = {"INVALID_ARGUMENT": ArgumentError, "NULL_ARGUMENT": ArgumentError, "TIMEOUT": WaitError}


def library() -> ctypes.CDLL:
    """The loaded library, for calls that this package does not wrap."""
    global _library
    with _loading:
        if _library is None:
            loaded = _abi.load()
            _send_log_records(loaded)
            # No record may come once the interpreter is gone.
            atexit.register(loaded.adasum_set_log_callback, _abi.adasum_log_callback(), None, 1)
            _library = loaded
        return _library


def call(function: str, *arguments: Any) -> None:
    """Calls a function that gives a status; raises what it says. Handles are passed as such, so that they live as long as the call."""
    loaded = library()
    handles = [part for part in arguments if isinstance(part, Handle)]
    with ExitStack() as uses:
        for handle in handles:
            uses.enter_context(handle.in_use())
        status = getattr(loaded, function)(*(part.pointer if isinstance(part, Handle) else part for part in arguments))
        message = b"" if status == 0 else loaded.adasum_last_error() or b""
        vendor_code = 0 if status == 0 else loaded.adasum_last_vendor_code()
    if status != 0:
        names = (name for name, value in _abi.STATUSES.items() if value == status)
        fail(next(names, f"status {status}"), message, vendor_code)


def fail(status: str, message: bytes, vendor_code: int) -> NoReturn:
    """Raises the error of a status, by its name."""
    raise _KINDS.get(status, Error)(message.decode(errors="replace"), status, vendor_code)


def _log(level: int, message: bytes, _: Any) -> None:
    _LOGGER.log(_LEVELS.get(level, logging.DEBUG), "%s", message.decode(errors="replace"))


#: Held for as long as the process lives: the library calls it.
_LOG = _abi.adasum_log_callback(_log)


def _send_log_records(loaded: ctypes.CDLL) -> None:
    """Has the library's records come to `logging`, from the level on that its logger has now. Left alone if the process has
    another logger for them."""
    level = max((ours for ours, theirs in _LEVELS.items() if theirs >= _LOGGER.getEffectiveLevel()), default=1)
    loaded.adasum_set_log_callback(_LOG, None, level)


def set_log_level(level: int) -> None:
    """Sets the level of the logger "adasum" and from which level on the library makes records at all: a level of `logging`, as
    logging.INFO. Without it that is the logger's level when the library is loaded, by default logging.WARNING."""
    _LOGGER.setLevel(level)
    _send_log_records(library())


def backend() -> str:
    """Loads ACL and HCCL if that has not happened: "cann" or "mock". ADASUM_BACKEND=cann|mock|auto decides."""
    name = c_char_p()
    call("adasum_backend", byref(name))
    return (name.value or b"").decode()


def version() -> str:
    """Version of the library, as "0.2.0"."""
    text: bytes = library().adasum_version()
    return text.decode()


class Closable(Protocol):
    """What can be ended."""

    def close(self) -> None: ...


class _Uses:
    """The threads that are in calls of a handle, and whether it ends behind them."""

    def __init__(self) -> None:
        # Reentrant: a handler of a signal may make calls and close handles wherever a thread is.
        self._lock = threading.RLock()
        self._depths: dict[int, int] = {}
        #: Whether no new thread may come in.
        self.closing = False
        #: Whether somebody was told to end the handle.
        self.ending = False

    def begin(self) -> bool:
        """Counts a call; `end` must follow. Whether it may be made: after a close only inside of one of the same thread."""
        thread = threading.get_ident()
        with self._lock:
            # Counted before it looks, for a handler that closes in between.
            self._depths[thread] = self._depths.get(thread, 0) + 1
            return not self.closing or self._depths[thread] > 1

    def end(self) -> bool:
        """Ends a call. Whether the caller has to end the handle."""
        thread = threading.get_ident()
        with self._lock:
            self._depths[thread] -= 1
            if self._depths[thread] == 0:
                del self._depths[thread]
            return self._last()

    def close(self) -> bool:
        """Lets no new thread in. Whether the caller has to end the handle."""
        with self._lock:
            self.closing = True
            return self._last()

    def _last(self) -> bool:
        last = self.closing and not self._depths and not self.ending
        self.ending = self.ending or last
        return last

    @property
    def left(self) -> bool:
        """Whether threads are in calls and nobody was told to end the handle."""
        return bool(self._depths) and not self.ending


def _end(process: int, destroy: Callable[[Any], None], pointer: Any, uses: _Uses, owned: list[Closable]) -> None:
    if uses.left or os.getpid() != process:
        # The process ends while daemon threads are in calls: it takes along what they use. What a forked child has is its parent's.
        return
    # All end, also if one cannot.
    with ExitStack() as ends:
        for part in reversed(owned):
            ends.callback(part.close)
        ends.callback(destroy, pointer)


class Handle:
    """A handle of the library. It ends with `close`, with a `with` statement, or when nothing refers to it any more; then what it
    owns ends, too. If it is closed while other threads are in calls of it, it ends with the last of these."""

    _destroy: str

    def __init__(self, pointer: Any):
        self._pointer = pointer
        self._uses = _Uses()
        self._owned: list[Closable] = []
        self._end = weakref.finalize(self, _end, os.getpid(), getattr(library(), self._destroy), pointer, self._uses, self._owned)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects belong to their process: they can be neither copied nor pickled")

    @property
    def pointer(self) -> Any:
        """What the library knows it by."""
        if not self._end.alive:
            raise self._is_closed()
        return self._pointer

    def _is_closed(self) -> ValueError:
        return ValueError(f"this {type(self).__name__} is closed")

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps what the library knows, and what the handle owns, for as long as a call takes; calls inside of it are part of it."""
        may = self._uses.begin()
        try:
            if not may:
                raise self._is_closed()
            yield
        finally:
            if self._uses.end():
                self._end()

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._uses.closing or not self._end.alive

    def close(self) -> None:
        """Ends it; a second time does nothing."""
        if self._uses.close():
            self._end()
