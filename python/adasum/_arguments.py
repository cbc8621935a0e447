"""Arguments as the library takes them. What is wrong is refused by an error that names the argument: ctypes would name a function of C
and the position, or take a number modulo its range."""

from __future__ import annotations

import operator
import os
from typing import Any, Collection, Optional

#: The whole numbers of C's types.
INT32, UINT32, UINT64 = range(-(2**31), 2**31), range(2**32), range(2**64)
#: Numbers of elements: their bytes are of 64 bits, too.
COUNTS = range(2**62)
#: Seconds of the longest wait: milliseconds that the library's type has.
_LONGEST = (2**64 - 1) // 1000


def whole(name: str, value: Any, allowed: range) -> int:
    """The argument `name`, a whole number of Python, NumPy or another library."""
    number: Optional[int]
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is {_shown(value)}: it must be a whole number")
    if number not in allowed:
        raise ValueError(f"{name} is {number}: it must be {allowed[0]} to {allowed[-1]}")
    return number


def real(name: str, value: Any, what: str = "a number") -> float:
    """The argument `name`, a number of Python, NumPy or another library, or a tensor of one element."""
    # float() itself takes text, too.
    if is_number(value) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{name} is {_shown(value)}: it is larger than any float") from None
        except (TypeError, ValueError, RuntimeError):
            # An array or a tensor of several.
            pass
    raise TypeError(f"{name} is {_shown(value)}: it must be {what}")


def is_number(value: Any) -> bool:
    """Whether this says that it is a number, or can be one."""
    return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")


def scalar(value: Any) -> Any:
    """A scalar of NumPy or torch as Python has it: NumPy's True is neither a bool nor a number. Anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def truth(name: str, value: Any) -> int:
    """The argument `name`, which is True or False, as 1 or 0; these are taken, too."""
    given = scalar(value)
    if not (isinstance(given, int) and given in (0, 1)):
        raise TypeError(f"{name} is {_shown(given)}: it must be True or False")
    return int(given)


def milliseconds(name: str, seconds: Any) -> int:
    """What the library takes for a limit of so many seconds."""
    limit = real(name, seconds, "a number of seconds")
    # Compared, not computed with: NaN is no limit, either.
    if not 0 < limit <= _LONGEST:
        raise ValueError(f"{name} is {limit!r}: it must be a number of seconds above 0, and at most {_LONGEST}")
    return max(1, round(limit * 1000))


def text(name: str, value: Any) -> bytes:
    """The argument `name`, which is text, as the library takes it."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {_shown(value)}: it must be a str")
    return _without_nul(name, value.encode())


def path(name: str, value: Any) -> bytes:
    """The argument `name`, which is the path of a file or folder, as the library takes it."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is {_shown(value)}: it must be a path")
    return _without_nul(name, os.fsencode(value))


def _without_nul(name: str, value: bytes) -> bytes:
    if b"\0" in value:
        raise ValueError(f"{name} is {value!r}: it must not have a NUL")
    return value


def items(name: str, values: Any, what: str) -> list[Any]:
    """The argument `name`, which is several `what`, as a list."""
    try:
        one_by_one = iter(values)
    except TypeError:
        raise TypeError(f"{name} is {_shown(values)}: it must be a list of {what}") from None
    return list(one_by_one)


def wholes(name: str, values: Any, allowed: range) -> list[int]:
    """The argument `name`, which is several whole numbers."""
    return [whole(f"{name}[{i}]", value, allowed) for i, value in enumerate(items(name, values, "whole numbers"))]


def array(kind: Any, values: Collection[Any]) -> Any:
    """Arguments that were checked as an array of a ctypes type."""
    return (kind * len(values))(*values)


def _shown(value: Any) -> str:
    """A value in an error: what is short as it is, of all else the type."""
    return repr(value) if isinstance(value, (bool, int, float, str, bytes, type(None))) else f"a {type(value).__name__}"
