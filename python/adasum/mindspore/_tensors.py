"""Tensors of MindSpore: copies that may be overwritten, and streams."""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple, Optional, Sequence

import mindspore as ms
from mindspore import context

import adasum

if [int(part) for part in re.findall(r"\d+", ms.__version__)[:3]] < [2, 7, 1]:
    # In 2.7.0 tensors made from arrays have no addresses.
    raise ImportError(f"adasum.mindspore needs MindSpore 2.7.1 or newer: this is {ms.__version__}")

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_on_device(tensor: ms.Tensor) -> bool:
    """Whether a tensor lies on an NPU."""
    return bool(tensor.device != "CPU")


def current_stream(tensor: Optional[ms.Tensor] = None) -> Optional[int]:
    """MindSpore's current aclrtStream; none if `tensor` lies on the host. Operators that were called before are on it once the
    addresses of their results have been asked for, which reducers do."""
    if tensor is not None and not is_on_device(tensor):
        return None
    # Releases before 2.10 have no stream_ptr(), but all have this, which is for their profiler.
    address: Optional[int] = _pointer(ms.runtime.current_stream().device_stream(), None)
    return address


def wait_for_all() -> None:
    """Until all that MindSpore has queued is done, compiled functions included, which may still be in the library."""
    # Asking for an address waits for the queue of the host; the CPU has no other.
    ms.Tensor(0.0).data_ptr()
    if context.get_context("device_target") != "CPU":
        ms.runtime.synchronize()


def on_target(tensor: ms.Tensor) -> ms.Tensor:
    """The tensor, on the NPU if that is the target: one that no operator has used yet is on the host."""
    return tensor.to("Ascend") if context.get_context("device_target") == "Ascend" and not is_on_device(tensor) else tensor


def copied(gradient: ms.Tensor) -> ms.Tensor:
    """A tensor with memory of its own, on the target. Gradients must not be overwritten: MindSpore may hand out the same memory for two
    of them, or a constant of a compiled function."""
    if is_on_device(gradient):
        return gradient.clone() if gradient.is_contiguous() else gradient.contiguous()
    # The host has no operator for it.
    return on_target(ms.Tensor(gradient.asnumpy()))


def on_one_side(parameters: Sequence[ms.Parameter]) -> None:
    """Brings parameters that no operator has used yet to the target, where the others are."""
    for parameter in parameters:
        moved = on_target(parameter)
        if moved is not parameter:
            parameter.set_data(moved)


class Rows(NamedTuple):
    """A sparse gradient: numbers of rows, the rows, and the shape of the whole tensor."""

    indices: ms.Tensor
    values: ms.Tensor
    shape: Sequence[int]


def rows_of(gradient: Any) -> Optional[Rows]:
    """The rows of a sparse gradient; none of a dense one. Compiled functions hand out a tuple for a RowTensor."""
    if isinstance(gradient, ms.Tensor):
        return None
    if isinstance(gradient, (tuple, list)):
        return Rows(*gradient) if len(gradient) == 3 and isinstance(gradient[2], (tuple, list)) else None
    return Rows(gradient.indices, gradient.values, gradient.dense_shape) if hasattr(gradient, "dense_shape") else None


def row_tensor(rows: Rows) -> ms.RowTensor:
    """What optimizers take."""
    return ms.RowTensor(rows.indices, rows.values, tuple(rows.shape))


def listed(gradients: Any) -> list[Any]:
    """The gradients that a cell was given: one, or several in a tuple or list."""
    if isinstance(gradients, ms.Tensor) or rows_of(gradients) is not None:
        return [gradients]
    if not isinstance(gradients, (tuple, list)):
        raise TypeError(f"grads is a {type(gradients).__name__}: it must be a Tensor, a RowTensor or a tuple of them")
    return list(gradients)
