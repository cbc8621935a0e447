"""Runs a torch_npu program over the mock, which has no operators that compute: those of the CPU take their place.

    torchrun --nproc-per-node N cpu_operators.py PROGRAM.py ARGUMENTS...

On the mock device memory is memory of the host. So each operator that torch_npu registers for its device is replaced by the one of
the CPU, on CPU tensors that share the memory. Autograd, optimizers, DistributedDataParallel and HCCL stay torch_npu's own, and
allocation, copies and views do too. For tests: it says nothing about torch_npu's operators."""

import ctypes
import runpy
import sys
import warnings
from pathlib import Path

import torch
import torch_npu
from torch.utils._pytree import tree_map_only

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


def alias_of(tensor):
    """A CPU tensor with the memory of one on the device."""
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    memory = (ctypes.c_char * size).from_address(storage.data_ptr())
    count = size // tensor.element_size()
    flat = torch.frombuffer(memory, dtype=tensor.dtype, count=count)
    return flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def on_device(tensor, device):
    """A new tensor of the device with the values, sizes and strides of one of the CPU."""
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
    if tensor.numel() > 0:
        alias_of(made).copy_(tensor)
    return made


def replacement(operator):
    """The operator on the CPU, for tensors of the device."""

    def run(*arguments, **options):
        # What is queued has to be done before the host reads or writes the memory.
        torch.npu.current_stream().synchronize()
        device = torch.device("npu", torch.npu.current_device())
        given = {}

        def to_cpu(tensor):
            if tensor.device.type != "npu":
                return tensor
            alias = alias_of(tensor)
            given[id(alias)] = (tensor, alias)
            return alias

        def to_npu(tensor):
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


def views_without_writing(schema):
    """Whether a result is an argument's memory and nothing is written: a view."""
    return any(result.alias_info and not result.alias_info.is_write for result in schema.returns)


def install():
    """Replaces the operators of this process; returns the library, which must stay alive, and how many they are."""
    library = torch.library.Library("aten", "IMPL")
    count = 0
    for name in sorted(torch._C._dispatch_get_registrations_for_dispatch_key(KEY)):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if space != "aten" or base in OWN:
            continue
        operator = getattr(getattr(torch.ops.aten, base), overload or "default")
        if views_without_writing(operator._schema):
            continue
        library.impl(rest, replacement(operator), KEY)
        count += 1
    return library, count


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = install()
    assert kept[1] > 500, f"only {kept[1]} operators were found to replace"
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(program).resolve().parent))
    runpy.run_path(program, run_name="__main__")
