"""The C interface of adasum (include/adasum.h) as ctypes declarations, and how the library is found.

The other modules wrap these functions for programs. A test compares every declaration here with the header."""

from __future__ import annotations

import ctypes
import os
import shutil
from ctypes import (
    POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p,
)
from pathlib import Path
from typing import Any, Iterator

ABI_VERSION = 2
ROOT_INFO_BYTES = 4108

#: Constants of the header, by their names there without ADASUM_.
CONSTANTS: dict[str, int] = {
    "ABI_VERSION": ABI_VERSION,
    "TENSOR_LAYERWISE": 1,
    "TENSOR_FUSION": 2,
    "TENSOR_FUSION_SHIFT": 8,
    "F32": 0,
    "F16": 1,
    "BF16": 27,
    "ROOT_INFO_BYTES": ROOT_INFO_BYTES,
    "STATISTICS": 5,
    "STATISTIC_NORM": 0,
    "STATISTIC_COSINE": 1,
    "STATISTIC_GAIN": 2,
    "STATISTIC_KAPPA": 3,
    "STATISTIC_NONFINITE": 4,
    "INDEX_I32": 0,
    "INDEX_I64": 1,
}

#: The numbers of adasum_status, likewise.
STATUSES: dict[str, int] = {
    "OK": 0,
    "INVALID_ARGUMENT": 1,
    "NULL_ARGUMENT": 2,
    "INVALID_STATE": 3,
    "UNSUPPORTED": 4,
    "OUT_OF_MEMORY": 5,
    "ACL": 6,
    "HCCL": 7,
    "MISMATCH": 8,
    "TIMEOUT": 9,
    "POISONED": 10,
    "PANIC": 11,
    "IO": 12,
}


class adasum_options(ctypes.Structure):
    """Opaque."""


class adasum_world(ctypes.Structure):
    """Opaque."""


class adasum_reducer(ctypes.Structure):
    """Opaque."""


class adasum_norm_clip(ctypes.Structure):
    """Opaque."""


class adasum_gradient_accumulator(ctypes.Structure):
    """Opaque."""


class adasum_journal(ctypes.Structure):
    """Opaque."""


class adasum_tensor(ctypes.Structure):
    """A tensor to reduce."""

    _fields_ = [("name", c_char_p), ("count", c_uint64), ("dtype", c_int32), ("flags", c_uint32)]


adasum_log_callback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)

_STATUS = c_int32
_OPTIONS = POINTER(adasum_options)
_WORLD = POINTER(adasum_world)
_REDUCER = POINTER(adasum_reducer)
_CLIP = POINTER(adasum_norm_clip)
_ACCUMULATOR = POINTER(adasum_gradient_accumulator)
_JOURNAL = POINTER(adasum_journal)
_STREAM = c_void_p
_SPECS = [POINTER(adasum_tensor), c_size_t]
_ADDRESSES = POINTER(c_void_p)
_INDICES = POINTER(c_size_t)
_NAMES = POINTER(c_char_p)


def _option(*arguments: Any) -> tuple[Any, list[Any]]:
    return _STATUS, [_OPTIONS, *arguments]


def _world(*arguments: Any) -> tuple[Any, list[Any]]:
    return _STATUS, [_WORLD, *arguments]


def _reducer(*arguments: Any) -> tuple[Any, list[Any]]:
    return _STATUS, [_REDUCER, *arguments]


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
    "adasum_options_set": _option(c_char_p, c_char_p),
    "adasum_options_load_environment": _option(),
    "adasum_options_load_boost": _option(c_char_p, c_char_p),
    "adasum_world_from_rank_table": (_STATUS, [c_char_p, c_uint32, _OPTIONS, POINTER(_WORLD)]),
    "adasum_world_from_environment": (_STATUS, [_OPTIONS, POINTER(_WORLD)]),
    "adasum_root_info_create": (_STATUS, [c_int32, POINTER(c_uint8), c_size_t]),
    "adasum_world_from_root_info": (
        _STATUS,
        [c_int32, POINTER(c_uint8), c_size_t, c_uint32, c_uint32, _OPTIONS, POINTER(_WORLD)],
    ),
    "adasum_world_from_comm": (_STATUS, [c_void_p, _OPTIONS, POINTER(_WORLD)]),
    "adasum_world_part": _world(POINTER(c_uint32), c_size_t, c_uint32, POINTER(_WORLD)),
    "adasum_world_rank": _world(POINTER(c_uint32)),
    "adasum_world_size": _world(POINTER(c_uint32)),
    "adasum_world_servers": _world(POINTER(c_uint32)),
    "adasum_world_devices_per_server": _world(POINTER(c_uint32)),
    "adasum_world_device": _world(POINTER(c_int32)),
    "adasum_world_barrier": _world(_STREAM),
    "adasum_world_all_reduce_sum": _world(c_void_p, c_uint64, _STREAM),
    "adasum_world_forget_stream": _world(_STREAM),
    "adasum_world_abort": _world(),
    "adasum_world_stop_on_failure": _world(),
    "adasum_world_last_vendor_code": _world(POINTER(c_int32)),
    "adasum_world_finish": _world(c_uint64),
    "adasum_world_destroy": (None, [_WORLD]),
    "adasum_reducer_create": _world(*_SPECS, _OPTIONS, POINTER(_REDUCER)),
    "adasum_reducer_create_delta": _world(*_SPECS, _OPTIONS, POINTER(_REDUCER)),
    "adasum_reducer_create_mean": _world(*_SPECS, _OPTIONS, POINTER(_REDUCER)),
    "adasum_reducer_create_sparse": _world(
        c_char_p, c_uint64, c_int32, c_int32, c_uint64, c_int32, _OPTIONS, POINTER(_REDUCER)
    ),
    "adasum_reducer_reduce": _reducer(_ADDRESSES, c_size_t, _STREAM),
    "adasum_reducer_reduce_flat": _reducer(c_void_p, c_uint64, _STREAM),
    "adasum_reducer_reduce_some": _reducer(_INDICES, _ADDRESSES, c_size_t, _STREAM),
    "adasum_reducer_reduce_some_flat": _reducer(_INDICES, c_size_t, c_void_p, c_uint64, _STREAM),
    "adasum_reducer_prepare_some": _reducer(_INDICES, c_size_t),
    "adasum_reducer_delta_begin": _reducer(_ADDRESSES, _ADDRESSES, c_size_t, _STREAM),
    "adasum_reducer_delta_end": _reducer(_ADDRESSES, c_size_t, _STREAM),
    "adasum_reducer_delta_reset": _reducer(),
    "adasum_reducer_gather": _reducer(
        c_void_p, c_void_p, c_uint64, _STREAM, POINTER(c_uint64), _ADDRESSES, _ADDRESSES
    ),
    "adasum_reducer_synchronize": _reducer(_STREAM, c_uint64),
    "adasum_reducer_forget_stream": _reducer(_STREAM),
    "adasum_reducer_gradient_buffers": _reducer(POINTER(c_void_p), c_size_t),
    "adasum_reducer_nonfinite": _reducer(POINTER(c_uint8), c_size_t),
    "adasum_reducer_overflow": _reducer(_ADDRESSES, c_size_t, _STREAM, c_uint64, POINTER(c_int32)),
    "adasum_reducer_observe": _reducer(c_int32),
    "adasum_reducer_statistics": _reducer(POINTER(c_double), c_size_t, POINTER(c_double), c_size_t),
    "adasum_reducer_plan": _reducer(c_char_p, c_size_t, POINTER(c_size_t)),
    "adasum_reducer_owned_count": _reducer(POINTER(c_size_t)),
    "adasum_reducer_owned": _reducer(POINTER(c_size_t), POINTER(c_uint64), POINTER(c_uint64), c_size_t),
    "adasum_reducer_collect": _reducer(_ADDRESSES, c_size_t, _STREAM),
    "adasum_reducer_abort": _reducer(),
    "adasum_reducer_destroy": (None, [_REDUCER]),
    "adasum_norm_clip_create": _world(*_SPECS, c_float, POINTER(_CLIP)),
    "adasum_norm_clip_create_of_parts": _world(
        *_SPECS, _INDICES, POINTER(c_uint64), POINTER(c_uint64), c_size_t, c_float, c_uint64, POINTER(_CLIP)
    ),
    "adasum_norm_clip_clip": (_STATUS, [_CLIP, _ADDRESSES, c_size_t, _STREAM]),
    "adasum_norm_clip_last_norm": (_STATUS, [_CLIP, POINTER(c_float)]),
    "adasum_norm_clip_forget_stream": (_STATUS, [_CLIP, _STREAM]),
    "adasum_norm_clip_destroy": (None, [_CLIP]),
    "adasum_gradient_accumulator_create": _world(*_SPECS, POINTER(_ACCUMULATOR)),
    "adasum_gradient_accumulator_add": (_STATUS, [_ACCUMULATOR, _ADDRESSES, c_size_t, _STREAM]),
    "adasum_gradient_accumulator_steps": (_STATUS, [_ACCUMULATOR, POINTER(c_uint32)]),
    "adasum_gradient_accumulator_take": (_STATUS, [_ACCUMULATOR, _ADDRESSES, c_size_t, c_float, _STREAM]),
    "adasum_gradient_accumulator_forget_stream": (_STATUS, [_ACCUMULATOR, _STREAM]),
    "adasum_gradient_accumulator_destroy": (None, [_ACCUMULATOR]),
    "adasum_journal_open": (_STATUS, [c_char_p, c_uint32, POINTER(_JOURNAL)]),
    "adasum_journal_from_env": (_STATUS, [c_uint32, POINTER(_JOURNAL)]),
    "adasum_journal_record": (
        _STATUS,
        [
            _JOURNAL, c_char_p, c_uint64, c_double, _NAMES, POINTER(c_double), c_size_t, _NAMES, POINTER(c_double),
            c_size_t,
        ],
    ),
    "adasum_journal_destroy": (None, [_JOURNAL]),
}


def _places() -> Iterator[Path]:
    """Where the library may lie, best first."""
    here = Path(__file__).resolve().parent
    yield here / "libadasum.so"
    program = shutil.which("adasum-run")
    if program:
        binary = Path(program).resolve().parent
        yield binary / "libadasum.so"
        yield binary.parent / "lib/libadasum.so"
    # A source tree: the package lies in its folder `python`.
    target = Path(os.environ.get("CARGO_TARGET_DIR", here.parents[1] / "target"))
    yield target / "release/libadasum.so"
    yield target / "debug/libadasum.so"


def find_library() -> str:
    """The library that ADASUM_LIBRARY names; else the one in this package, beside `adasum-run` (or in the `lib` folder next to
    its own) or in a source tree's `target` folder; else the loader's own search."""
    named = os.environ.get("ADASUM_LIBRARY")
    if named:
        # Nothing else: who names a library does not want another one.
        return named
    return next((str(place) for place in _places() if place.exists()), "libadasum.so")


def load() -> ctypes.CDLL:
    """The library with all functions declared.

    Raises OSError if it cannot be loaded, ImportError if it has another version of the interface."""
    name = find_library()
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise OSError(f"{error}. Install the package (pip install . in the source tree), build it (cargo build --release) or set ADASUM_LIBRARY to libadasum.so") from error
    library.adasum_abi_version.restype = c_uint32
    found = library.adasum_abi_version()
    if found != ABI_VERSION:
        raise ImportError(f"{name} has version {found} of the C interface, this module is for {ABI_VERSION}")
    for function, (result, arguments) in SIGNATURES.items():
        declared = getattr(library, function)
        declared.restype = result
        declared.argtypes = arguments
    return library
