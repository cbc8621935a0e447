"""The C interface of adasum (include/adasum.h) as ctypes declarations, and how the library is found.

`adasum.py` is what programs import. A test compares every declaration here with the header."""

from __future__ import annotations

import ctypes
import os
import shutil
from ctypes import POINTER, c_char_p, c_float, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Iterator

ABI_VERSION = 1
ROOT_INFO_BYTES = 4108

#: Constants of the header, by their names there.
CONSTANTS: dict[str, int] = {
    "ADASUM_ABI_VERSION": ABI_VERSION,
    "ADASUM_F32": 0,
    "ADASUM_F16": 1,
    "ADASUM_BF16": 27,
    "ADASUM_REDUCTION_ADASUM": 0,
    "ADASUM_REDUCTION_MEAN": 1,
    "ADASUM_REDUCTION_SUM": 2,
    "ADASUM_WIRE_NATIVE": 0,
    "ADASUM_WIRE_F32": 1,
    "ADASUM_ROOT_INFO_BYTES": ROOT_INFO_BYTES,
}

#: The numbers of adasum_status.
STATUSES: dict[str, int] = {
    "ADASUM_OK": 0,
    "ADASUM_INVALID_ARGUMENT": 1,
    "ADASUM_NULL_ARGUMENT": 2,
    "ADASUM_INVALID_STATE": 3,
    "ADASUM_UNSUPPORTED": 4,
    "ADASUM_OUT_OF_MEMORY": 5,
    "ADASUM_ACL": 6,
    "ADASUM_HCCL": 7,
    "ADASUM_MISMATCH": 8,
    "ADASUM_TIMEOUT": 9,
    "ADASUM_POISONED": 10,
    "ADASUM_PANIC": 11,
    "ADASUM_IO": 12,
}


class adasum_options(ctypes.Structure):
    """Opaque."""


class adasum_world(ctypes.Structure):
    """Opaque."""


class adasum_reducer(ctypes.Structure):
    """Opaque."""


class adasum_tensor(ctypes.Structure):
    """A tensor to reduce."""

    _fields_ = [("name", c_char_p), ("count", c_uint64), ("dtype", c_int32), ("flags", c_uint32)]


adasum_log_callback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)

_STATUS = c_int32
_OPTIONS = POINTER(adasum_options)
_WORLD = POINTER(adasum_world)
_REDUCER = POINTER(adasum_reducer)
_STREAM = c_void_p


def _setter(*arguments: Any) -> tuple[Any, list[Any]]:
    return _STATUS, [_OPTIONS, *arguments]


def _question(answer: Any) -> tuple[Any, list[Any]]:
    return _STATUS, [_WORLD, POINTER(answer)]


#: Result and arguments of every function, by name.
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "adasum_last_error": (c_char_p, []),
    "adasum_last_vendor_code": (c_int32, []),
    "adasum_status_string": (c_char_p, [c_int32]),
    "adasum_abi_version": (c_uint32, []),
    "adasum_version": (c_char_p, []),
    "adasum_backend": (_STATUS, [POINTER(c_char_p)]),
    "adasum_set_log_callback": (_STATUS, [adasum_log_callback, c_void_p, c_int32]),
    "adasum_options_create": (_STATUS, [POINTER(_OPTIONS)]),
    "adasum_options_destroy": (None, [_OPTIONS]),
    "adasum_options_set_reduction": _setter(c_int32),
    "adasum_options_set_radix": _setter(c_uint32),
    "adasum_options_set_allow_plain_mean": _setter(c_int32),
    "adasum_options_set_create_timeout": _setter(c_uint64),
    "adasum_options_set_wire": _setter(c_int32),
    "adasum_options_set_scale": _setter(c_float),
    "adasum_options_set_bucket_bytes": _setter(c_uint64),
    "adasum_options_set_pipeline_depth": _setter(c_uint32),
    "adasum_options_set_barrier": _setter(c_int32),
    "adasum_world_from_rank_table": (_STATUS, [c_char_p, c_uint32, POINTER(_WORLD)]),
    "adasum_world_from_environment": (_STATUS, [POINTER(_WORLD)]),
    "adasum_root_info_create": (_STATUS, [c_int32, POINTER(c_uint8), c_size_t]),
    "adasum_world_from_root_info": (
        _STATUS,
        [c_int32, POINTER(c_uint8), c_size_t, c_uint32, c_uint32, c_uint32, POINTER(_WORLD)],
    ),
    "adasum_world_rank": _question(c_uint32),
    "adasum_world_size": _question(c_uint32),
    "adasum_world_servers": _question(c_uint32),
    "adasum_world_devices_per_server": _question(c_uint32),
    "adasum_world_device": _question(c_int32),
    "adasum_world_barrier": (_STATUS, [_WORLD, _STREAM]),
    "adasum_world_finish": (_STATUS, [_WORLD, c_uint64]),
    "adasum_world_destroy": (None, [_WORLD]),
    "adasum_reducer_create": (
        _STATUS,
        [_WORLD, POINTER(adasum_tensor), c_size_t, _OPTIONS, POINTER(_REDUCER)],
    ),
    "adasum_reducer_reduce": (_STATUS, [_REDUCER, POINTER(c_void_p), c_size_t, _STREAM]),
    "adasum_reducer_synchronize": (_STATUS, [_REDUCER, _STREAM, c_uint64]),
    "adasum_reducer_forget_stream": (_STATUS, [_REDUCER, _STREAM]),
    "adasum_reducer_nonfinite": (_STATUS, [_REDUCER, POINTER(c_uint8), c_size_t]),
    "adasum_reducer_destroy": (None, [_REDUCER]),
}


def _places() -> Iterator[Path]:
    """Where the library may lie, best first."""
    named = os.environ.get("ADASUM_LIBRARY")
    if named:
        # Nothing else: who names a library does not want another one.
        yield Path(named)
        return
    here = Path(__file__).resolve().parent
    folders = [here]
    program = shutil.which("adasum-run")
    if program:
        binary = Path(program).resolve().parent
        folders += [binary, binary.parent / "lib"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", here.parent.parent / "target"))
    folders += [target / "release", target / "debug"]
    for folder in folders:
        yield folder / "libadasum.so"


def find_library() -> str:
    """The library that ADASUM_LIBRARY names; else the one beside this file, beside `adasum-run` (or in the `lib` folder
    next to it) or in the build's `target` folder; else the loader's own search."""
    if "ADASUM_LIBRARY" in os.environ:
        return str(next(_places()))
    for place in _places():
        if place.exists():
            return str(place)
    return "libadasum.so"


def load() -> ctypes.CDLL:
    """The library with all functions declared.

    Raises OSError if it cannot be loaded, ImportError if it has another version of the interface."""
    name = find_library()
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise OSError(f"{name}: {error}. Build it (cargo build --release) or set ADASUM_LIBRARY to libadasum.so") from error
    library.adasum_abi_version.restype = c_uint32
    found = library.adasum_abi_version()
    if found != ABI_VERSION:
        raise ImportError(f"{name} has version {found} of the C interface, this module is for {ABI_VERSION}")
    for function, (result, arguments) in SIGNATURES.items():
        declared = getattr(library, function)
        declared.restype = result
        declared.argtypes = arguments
    return library
