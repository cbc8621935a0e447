"""Gathering of sparse gradients."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Optional, SupportsIndex

from adasum._abi import CONSTANTS
from adasum._arguments import UINT64, milliseconds, text, truth, whole
from adasum._calls import AnyStream
from adasum._library import DEFAULT_TIMEOUT, call
from adasum._options import OptionValues
from adasum.device import HostCopies
from adasum.options import Options, check_servers, chosen
from adasum.reducers import AnyReducer
from adasum.tensors import F32, View, address_of, check_npu, element_bytes, place_of, refuse_internal_format, type_name, type_text, view_for
from adasum.world import World

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Types of row numbers: the format of memoryviews, the number in C, bytes.
_INDEX_TYPES: dict[str, tuple[Literal["i", "q"], int, int]] = {"int32": ("i", CONSTANTS["INDEX_I32"], 4), "int64": ("q", CONSTANTS["INDEX_I64"], 8)}


@dataclass(frozen=True)
class SparseRows:
    """Rows of all ranks, in the order of the ranks; a number that several ranks have occurs several times.

    Of the device: the address of their numbers and a View of their elements, in memory of the reducer until its next call. Of the host:
    memoryviews, of format "i" or "q" and, one row behind the other, "f", or "H" with the bits of fp16 and bf16."""

    count: int
    indices: Any
    values: Any


@dataclass(frozen=True)
class _RowNumbers:
    """Where row numbers lie, and what holds that memory."""

    address: int
    count: int
    on_device: bool
    holder: Any


def _row_numbers(indices: Any, wanted: str, device: int) -> _RowNumbers:
    """Row numbers of type `wanted`: of a tensor of torch or MindSpore, for a world on NPU `device`, or of a buffer, which is copied."""
    if hasattr(indices, "data_ptr"):
        kind, contiguous = type_text(indices.dtype), indices.is_contiguous()
    else:
        try:
            buffer = memoryview(indices)
        except TypeError:
            raise TypeError(f"indices is a {type(indices).__name__}: it must be a tensor or a buffer of whole numbers") from None
        whole = (buffer.format or "").lstrip("@=<") in ("i", "l", "q")
        kind, contiguous = f"int{8 * buffer.itemsize}" if whole else f"format {buffer.format!r}", buffer.c_contiguous
    if kind != wanted:
        raise TypeError(f"indices has numbers of type {kind}, the reducer was made for {wanted}")
    if not contiguous:
        raise ValueError("indices is not contiguous")
    if hasattr(indices, "data_ptr"):
        refuse_internal_format(indices)
        on_device, npu = place_of(indices)
        if on_device:
            check_npu(device, npu)
        return _RowNumbers(address_of(indices), indices.numel(), on_device, indices)
    copied = (ctypes.c_char * buffer.nbytes).from_buffer_copy(buffer)
    return _RowNumbers(ctypes.addressof(copied), buffer.nbytes // buffer.itemsize, False, copied)


def _refuse_other_order(values: Any, rows: int) -> None:
    """Refuses values that are not row behind row in memory: a transposed tensor is dense, too."""
    if hasattr(values, "is_contiguous") and not values.is_contiguous():
        raise ValueError("values is not contiguous: its rows must lie one behind the other")
    shape = tuple(getattr(values, "shape", ()))
    if len(shape) > 1 and shape[0] != rows:
        raise ValueError(f"values has the shape {shape}, its {rows} rows are not its first axis")


class SparseReducer(AnyReducer):
    """Gathers rows of sparse gradients from the ranks of the option `group`, by default all, and multiplies them by 1 / degree (unless
    reduction="sum"), as MindSpore's DistributedGradReducer does with a RowTensor. Only the ranks of the group make and use it."""

    def __init__(
        self, world: World, name: str, width: SupportsIndex, rows: SupportsIndex, dtype: int = F32, index: str = "int64", exact: bool = False,
        options: Optional[Options] = None, **choices: Unpack[OptionValues],
    ):
        """For rows of `width` elements of type `dtype`, with numbers of type `index` ("int32" or "int64"). Every rank brings `rows` rows
        in every call if `exact`, else any number up to that. Collective. Device memory: room for the rows of all ranks."""
        if not isinstance(index, str) or index not in _INDEX_TYPES:
            raise ValueError(f"index is {index!r}: it must be 'int32' or 'int64'")
        self._format, number, self._index_bytes = _INDEX_TYPES[index]
        self._index = index
        element_bytes(dtype)
        self._dtype, self._width, self._rows = int(dtype), whole("width", width, UINT64), whole("rows", rows, UINT64)
        named, same = text("name", name), truth("exact", exact)

        def create(owner: World, out: Any) -> None:
            check_servers(choices, owner)
            given = chosen(options, choices)
            call("adasum_reducer_create_sparse", owner, named, self._width, self._dtype, number, self._rows, same, given, out)

        super().__init__(world, create)

    def gather(self, indices: Any, values: Any, stream: Optional[AnyStream] = None, timeout: float = DEFAULT_TIMEOUT) -> SparseRows:
        """Gathers the rows of all ranks. `values` has rows times width elements, row behind row; `indices` is a contiguous buffer or tensor with a
        number for each row, of the reducer's type and in the place of `values`. Collective. On the device stream-ordered if `exact`, else it
        waits once for the others' numbers of rows, at most stall_timeout_ms; on the host it then waits at most `timeout` seconds."""
        limit = milliseconds("timeout", timeout)
        seen = view_for("values", self._device, values)
        if seen.dtype != self._dtype or seen.count % self._width != 0:
            raise ValueError(
                f"values has {seen.count} elements of type {type_name(seen.dtype)}, the reducer was made for rows of "
                f"{self._width} elements of type {type_name(self._dtype)}"
            )
        rows = seen.count // self._width
        _refuse_other_order(values, rows)
        if rows > self._rows:
            raise ValueError(f"values has {rows} rows, the reducer was made for at most {self._rows}")
        numbers = _row_numbers(indices, self._index, self._device)
        if numbers.count != rows:
            raise ValueError(f"indices has {numbers.count} numbers, values has {rows} rows")
        if numbers.on_device != seen.device:
            place, other = ("device", "host") if seen.device else ("host", "device")
            raise ValueError(f"values is on the {place} and indices on the {other}: both must be in one place")
        if seen.device:
            return self._gather(numbers.address, seen.address, rows, self._stream(stream))
        lengths = {0: rows * self._index_bytes, 1: seen.bytes}
        sizes = [self._rows * self._index_bytes, self._rows * self._width * element_bytes(self._dtype)]
        with self._alone(stream):
            copies = self._kept_copies("rows", sizes)
            copies.upload({0: numbers.address, 1: seen.address}, lengths)
            found = self._gather(copies.addresses[0], copies.addresses[1], rows, copies.stream.handle)
            self._synchronize(copies.stream, limit)
            return self._on_host(found, copies)

    def _gather(self, indices: int, values: int, rows: int, stream: int) -> SparseRows:
        count, numbers, elements = c_uint64(), c_void_p(), c_void_p()
        call(
            "adasum_reducer_gather", self, indices, values, rows, stream, byref(count), byref(numbers), byref(elements)
        )
        found = View(elements.value or 0, count.value * self._width, self._dtype, True, self._device)
        return SparseRows(count.value, numbers.value or 0, found)

    def _on_host(self, rows: SparseRows, copies: HostCopies) -> SparseRows:
        indices, values = bytearray(rows.count * self._index_bytes), bytearray(rows.values.bytes)
        for out, source in ((indices, rows.indices), (values, rows.values.address)):
            copies.read(out, source)
        elements = memoryview(values).cast("f") if self._dtype == F32 else memoryview(values).cast("H")
        return SparseRows(rows.count, memoryview(indices).cast(self._format), elements)
