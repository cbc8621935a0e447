"""DLPack capsules (version 0 of its ABI, dmlc/dlpack, dlpack.h): how one library gives another one a tensor without a copy."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

#: Kinds of devices: memory of the host; of a device that DLPack has no name for, which torch_npu takes for an NPU
#: (torch_npu/csrc/aten/common/DLConvertor.cpp).
CPU, EXTENSION = 1, 12

#: Codes of element types.
FLOAT, BFLOAT = 2, 4

#: The capsule has a pointer to it.
_NAME = b"dltensor"


class _Device(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("number", c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device", _Device), ("axes", c_int32), ("type", _Type), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.argtypes, _new_capsule.restype = [c_void_p, c_char_p, c_void_p], ctypes.py_object


def capsule(address: int, count: int, code: int, bits: int, device: tuple[int, int]) -> Any:
    """A capsule of a tensor with one axis. It does not keep the tensor's memory.

    Its description, of some hundred bytes, is never freed: whoever takes it looks at it once more when done, which may be after the
    end of everything here."""
    managed = _Managed()
    managed.tensor.data = address
    managed.tensor.device = _Device(*device)
    managed.tensor.axes = 1
    managed.tensor.type = _Type(code, bits, 1)
    managed.tensor.shape = (c_int64 * 1)(count)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(managed))
    return _new_capsule(ctypes.addressof(managed), _NAME, None)
