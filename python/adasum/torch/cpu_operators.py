"""Runs a torch_npu program over the mock, which has hardly any operators that compute: those of the CPU take their place.

    python -m adasum.torch.cpu_operators PROGRAM.py ARGUMENTS...
    torchrun --nproc-per-node N -m adasum.torch.cpu_operators PROGRAM.py ARGUMENTS...

On the mock device memory is memory of the host. So each operator that torch_npu registers for its device is replaced by the one of
the CPU, on CPU tensors that share the memory. Autograd, optimizers, DistributedDataParallel and HCCL stay torch_npu's own, and
allocation, copies and views do too. For trials and tests: it says nothing about torch_npu's operators. On an NPU it refuses to start.
LD_LIBRARY_PATH must name the mock, see `adasum.torch`."""

from __future__ import annotations

import ctypes
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

import torch
import torch_npu  # noqa: F401  (registers the device)
from torch.utils._pytree import tree_map_only

from adasum.torch.groups import npu

KEY = "PrivateUse1"

#: Operators that stay torch_npu's: they allocate, copy between devices, read a scalar, or change no data.
OWN = set(
    """empty empty_strided empty_like new_empty new_empty_strided resize_ resize_as_ set_ copy_ _to_copy to clone contiguous
    _copy_from _copy_from_and_resize _local_scalar_dense item as_strided as_strided_ view view_as reshape _reshape_alias
    _unsafe_view expand expand_as select slice split split_with_sizes chunk narrow detach detach_ alias lift_fresh unfold
    transpose transpose_ t t_ permute squeeze squeeze_ unsqueeze unsqueeze_ diagonal unbind real imag view_as_real view_as_complex
    is_set_to is_pinned pin_memory _pin_memory record_stream _has_compatible_shallow_copy_type _nested_view_from_buffer
    npu_format_cast""".split()
)


def alias_of(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor with the memory of one on the device."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    memory = (ctypes.c_char * size).from_address(storage.data_ptr())
    count = size // tensor.element_size()
    flat = torch.frombuffer(memory, dtype=tensor.dtype, count=count)
    return flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A new tensor of the device with the values, sizes and strides of one of the CPU."""
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    if tensor.numel() > 0:
        alias_of(made).copy_(tensor)
    return made


def replacement(operator: Any) -> Callable[..., Any]:
    """The operator on the CPU, for tensors of the device."""

    def run(*arguments: Any, **options: Any) -> Any:
        # What is queued has to be done before the host reads or writes the memory.
        npu().current_stream().synchronize()
        device = torch.device("npu", npu().current_device())
        given: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

        def to_cpu(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.device.type != "npu":
                return tensor
            alias = alias_of(tensor)
            given[id(alias)] = (tensor, alias)
            return alias

        def to_npu(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) in given:
                # In place, or into a given output: the very tensor, with the size that it has now.
                original = given[id(tensor)][0]
                if original.size() != tensor.size():
                    original.resize_(tensor.size())
                    alias_of(original).copy_(tensor)
                return original
            return on_device(tensor, device)

        cpu = torch.device("cpu")
        arguments, options = tree_map_only(torch.Tensor, to_cpu, (arguments, options))
        arguments, options = tree_map_only(torch.device, lambda _: cpu, (arguments, options))
        options.pop("pin_memory", None)
        return tree_map_only(torch.Tensor, to_npu, operator(*arguments, **options))

    return run


def views_without_writing(schema: Any) -> bool:
    """Whether a result is an argument's memory and nothing is written: a view."""
    return any(result.alias_info and not result.alias_info.is_write for result in schema.returns)


def install() -> tuple[torch.library.Library, int]:
    """Replaces the operators of this process; returns the library, which must stay alive, and how many they are."""
    library = torch.library.Library("aten", "IMPL")
    count = 0
    for name in sorted(torch._C._dispatch_get_registrations_for_dispatch_key(KEY)):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if space != "aten" or base in OWN:
            continue
        # torch_npu also registers operators that only another version of torch has.
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if operator is None or views_without_writing(operator._schema):
            continue
        library.impl(rest, replacement(operator), KEY)
        count += 1
    return library, count


def over_mock() -> bool:
    """Whether the libascendcl that torch_npu has loaded is the mock."""
    loaded = ctypes.CDLL("libascendcl.so")
    return hasattr(loaded, "adasum_mock_version")


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m adasum.torch.cpu_operators PROGRAM.py ARGUMENTS...")
    if not over_mock():
        raise SystemExit("adasum.torch.cpu_operators: memory of an NPU is not memory of the host: LD_LIBRARY_PATH must name the mock")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = install()
    if kept[1] <= 500:
        raise SystemExit(f"adasum.torch.cpu_operators: only {kept[1]} operators were found to replace: this torch_npu is another one")
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(program).resolve().parent))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
