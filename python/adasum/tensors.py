"""What tensors are and where they lie: views of arrays and tensors of all kinds."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Sequence, SupportsIndex, Union

from adasum import _dlpack
from adasum._abi import CONSTANTS
from adasum._arguments import COUNTS, INT32, UINT32, UINT64, whole

F32, F16, BF16 = (CONSTANTS[name] for name in ("F32", "F16", "BF16"))
_BYTES = {F32: 4, F16: 2, BF16: 2}
_TYPE_NAMES = {"float32": F32, "float16": F16, "bfloat16": BF16}
_BUFFER_FORMATS = {"f": F32, "e": F16}
#: Where tensors lie, by the names of torch and MindSpore: whether that is the device.
_PLACES = {"cpu": False, "npu": True, "ascend": True}
#: Storage formats of torch_npu whose memory is what sizes and strides say: undefined, NCHW, NHWC, ND and NCDHW (Ascend/pytorch:
#: torch_npu/npu/_format.py, and IsBaseFormatType of torch_npu/csrc/framework/FormatHelper.cpp). Others are in tiles or in another order.
_BASE_FORMATS = {-1, 0, 1, 2, 30}


#: A flag of TensorSpec for mean reducers: the tensor is another one on each rank, and its gradient is left as it is.
LAYERWISE = CONSTANTS["TENSOR_LAYERWISE"]


def fusion_flag(fusion: SupportsIndex) -> int:
    """Flags of TensorSpec for mean reducers that give a tensor the fusion id `fusion` (MindSpore's comm_fusion), of 24 bits: tensors
    with equal ids travel together, and 0 travels alone."""
    return CONSTANTS["TENSOR_FUSION"] | whole("fusion", fusion, range(2**24)) << CONSTANTS["TENSOR_FUSION_SHIFT"]


def type_name(dtype: int) -> str:
    """The name of an element type, as float32."""
    return next((name for name, number in _TYPE_NAMES.items() if number == dtype), f"number {dtype}")


def element_bytes(dtype: int) -> int:
    """Bytes of an element of type F32, F16 or BF16."""
    try:
        return _BYTES[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"dtype is {dtype!r}: it must be adasum.F32, adasum.F16 or adasum.BF16") from None


def _make_whole(made: Any, of: str, **fields: range) -> None:
    """Makes fields of a dataclass whole numbers of Python."""
    for name, allowed in fields.items():
        value = getattr(made, name)
        # Nearly all are so already.
        if type(value) is not int or value not in allowed:
            object.__setattr__(made, name, whole(f"{name}{of}", value, allowed))


@dataclass(frozen=True)
class TensorSpec:
    """Name (for messages), number of elements and type (F32, F16 or BF16) of a tensor; flags for mean reducers: LAYERWISE,
    `fusion_flag(id)`, or both."""

    name: str
    count: int
    dtype: int
    flags: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name is {self.name!r}: it must be a str")
        if "\0" in self.name:
            raise ValueError(f"name is {self.name!r}: it must not have a NUL")
        element_bytes(self.dtype)
        _make_whole(self, f" of tensor {self.name!r}", count=COUNTS, dtype=INT32, flags=UINT32)

    @property
    def bytes(self) -> int:
        """Length in bytes."""
        return self.count * element_bytes(self.dtype)


@dataclass(frozen=True)
class View:
    """Where a tensor lies. `device` says that `address` is memory of the world's device, which has the number `device_id`.

    Other libraries make a flat tensor of it, without a copy: `torch.from_dlpack(view)` one on the NPU with torch_npu, `numpy.from_dlpack(view)`
    an array of memory of the host. A view of `view` keeps what it was made of, its `owner`. What other libraries make of the view
    does not: there whoever allocated the memory must live longer."""

    address: int
    count: int
    dtype: int
    device: bool
    device_id: int = 0
    #: What holds the memory; nothing where the caller sees to that.
    owner: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        element_bytes(self.dtype)
        _make_whole(self, " of a View", address=UINT64, count=COUNTS, dtype=INT32, device_id=INT32)

    @property
    def bytes(self) -> int:
        """Length in bytes."""
        return self.count * element_bytes(self.dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.EXTENSION, self.device_id) if self.device else (_dlpack.CPU, 0)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Optional[tuple[int, int]] = None, dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule for one user. Nothing is waited for, on no stream."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a view is given as it is: not as a copy, and not on another device")
        code = _dlpack.BFLOAT if self.dtype == BF16 else _dlpack.FLOAT
        return _dlpack.capsule(self.address, self.count, code, 8 * element_bytes(self.dtype), self.__dlpack_device__())


def view(tensor: Any) -> View:
    """What lies behind a tensor of torch or MindSpore, a NumPy array, or an object with a writable buffer of floats; a View is itself.

    The order of axes does not matter where it is the same on all ranks (torch's channels_last). Raises TypeError or ValueError
    for other types, for memory that is not contiguous, and for torch_npu's internal formats."""
    if isinstance(tensor, View):
        return tensor
    if hasattr(tensor, "data_ptr"):
        # torch's, of any sparse layout.
        layout = type_text(getattr(tensor, "layout", ""))
        if layout.startswith("sparse"):
            raise TypeError(
                f"the tensor is sparse ({layout}): it must be dense, as tensor.to_dense() gives it; adasum.SparseReducer gathers sparse rows"
            )
        if not _is_dense(tensor.shape, tensor.stride()):
            raise ValueError("the tensor has gaps or overlaps: it is not contiguous in any order of its axes")
        refuse_internal_format(tensor)
        return View(address_of(tensor), tensor.numel(), _type_of(tensor.dtype), *place_of(tensor), owner=tensor)
    if hasattr(tensor, "ctypes") and hasattr(tensor, "dtype"):
        flags = tensor.flags
        if not (flags.c_contiguous and flags.writeable):
            raise ValueError("the array is not contiguous or not writable")
        return View(tensor.ctypes.data, tensor.size, _type_of(tensor.dtype), False, owner=tensor)
    try:
        buffer = memoryview(tensor)
    except TypeError:
        raise TypeError(f"a {type(tensor).__name__} is neither a tensor of torch or MindSpore nor a buffer") from None
    if buffer.readonly or not buffer.c_contiguous:
        raise ValueError("the buffer is not contiguous or not writable")
    # ctypes says the order of bytes, too.
    dtype = _BUFFER_FORMATS.get((buffer.format or "").lstrip("@=<"))
    if dtype is None:
        raise TypeError(f"a buffer of format {buffer.format!r} is neither fp32 ('f') nor fp16 ('e')")
    if buffer.nbytes == 0:
        return View(0, 0, dtype, False)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    return View(address, buffer.nbytes // buffer.itemsize, dtype, False, owner=buffer)


def view_for(name: str, device: int, tensor: Any) -> View:
    """The view of the argument `name` for a world on NPU `device`; a tensor on another NPU is refused."""
    try:
        seen = view(tensor)
        # A View says itself that it is for the world's device.
        if seen.device and seen is not tensor:
            check_npu(device, seen.device_id)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error
    return seen


def check_npu(device: int, number: int) -> None:
    """Refuses a tensor on NPU `number` for a world on NPU `device`."""
    if number != device:
        raise ValueError(f"the tensor is on NPU {number}, the world uses NPU {device}")


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory, in whatever order of the axes."""
    expected = 1
    for stride, length in sorted((stride, length) for stride, length in zip(strides, shape) if length != 1):
        if stride != expected and 0 not in shape:
            return False
        expected *= length
    return True


def refuse_internal_format(tensor: Any) -> None:
    """Refuses a tensor of torch_npu in an internal format. With torch.npu.config.allow_internal_format torch_npu gives weights FRACTAL_NZ
    and the like (Ascend/pytorch: torch_npu/utils/_module.py, cast_weight); sizes and strides stay those of before."""
    torch_npu = sys.modules.get("torch_npu")
    # MindSpore's place is a str.
    if torch_npu is None or getattr(tensor.device, "type", None) != "npu":
        return
    storage_format = torch_npu.get_npu_format(tensor)
    if storage_format not in _BASE_FORMATS:
        raise ValueError(
            f"the tensor has torch_npu's internal format {storage_format}, whose memory is in another order than its elements: set "
            "torch.npu.config.allow_internal_format = False before the model is moved to the NPU"
        )


def place_of(tensor: Any) -> tuple[bool, int]:
    """Whether a tensor of torch or MindSpore is on an NPU, and the number of that."""
    # As text torch's places are "cpu" or "npu:0", MindSpore's "CPU" or "Ascend:0".
    kind, _, number = str(tensor.device).lower().partition(":")
    if kind not in _PLACES:
        raise ValueError(f"the tensor is on {kind}, not on the CPU or an NPU")
    return _PLACES[kind], int(number or 0)


def address_of(tensor: Any) -> int:
    """Where a tensor of torch or MindSpore lies."""
    address: int = tensor.data_ptr()
    if address == 0 and tensor.numel() > 0:
        raise ValueError("the tensor has no memory yet")
    return address


def type_text(dtype: Any) -> str:
    """The name of an element type of torch ("torch.float32") or MindSpore ("Float32"), as "float32"."""
    return str(dtype).rpartition(".")[2].lower()


def _type_of(dtype: Any) -> int:
    name = type_text(dtype)
    if name not in _TYPE_NAMES:
        raise TypeError(f"type {dtype} is not float32, float16 or bfloat16")
    return _TYPE_NAMES[name]


def listed(name: str, tensors: Any) -> Union[Mapping[str, Any], list[Any]]:
    """The argument `name`, which is several tensors, as a mapping or a list. One tensor is refused: its rows would pass for tensors."""
    if isinstance(tensors, Mapping):
        return tensors
    if not isinstance(tensors, Iterable) or _is_tensor(tensors):
        raise TypeError(f"{name} is a {type(tensors).__name__}: it must be a list or a mapping of tensors; of one tensor it is [tensor]")
    return list(tensors)


def _is_tensor(value: Any) -> bool:
    if hasattr(value, "data_ptr") or hasattr(value, "dtype"):
        return True
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def specs(tensors: Union[Mapping[str, Any], Iterable[Any]]) -> list[TensorSpec]:
    """Specs of tensors with names, or without: then "0", "1", ..."""
    given = listed("tensors", tensors)
    return specs_of(given.items() if isinstance(given, Mapping) else ((str(i), tensor) for i, tensor in enumerate(given)))


def specs_of(named: Iterable[tuple[str, Any]]) -> list[TensorSpec]:
    """Specs of pairs of a name and a tensor; ValueError or TypeError names the tensor."""
    found = []
    for name, tensor in named:
        try:
            seen = view(tensor)
        except (TypeError, ValueError) as error:
            raise type(error)(f"tensor {name!r}: {error}") from error
        found.append(TensorSpec(name, seen.count, seen.dtype))
    return found
