"""AdaSum gradient reduction for Huawei Ascend NPUs.

    import adasum

    with adasum.World.from_environment(devices_per_server=1) as world:      # a rank table, or the variables of torchrun or msrun
        with adasum.GradientReducer(world, gradients) as reducer:
            reducer.reduce(gradients)                                       # in place, on every rank alike

AdaSum combines servers, whose own ranks are averaged first; with devices_per_server=1 each rank counts as a server.
`adasum.torch` and `adasum.mindspore` bring this into trainings with PyTorch and MindSpore.

Arrays of the host (NumPy, CPU tensors, anything with a writable buffer of floats) are copied to the device and back, so a call
returns with the result. Tensors on the device are reduced where they are, in the order of a stream, and nobody waits.

Without an NPU everything runs over the mock of ACL and HCCL that the library carries.

Threads: a World may be used from any thread, a reducer by one thread at a time. "Collective" means that all ranks call,
in the same order. Wrong arguments are TypeError or ValueError and name the argument; every failure of the library is an
`adasum.Error` with its sentence. Log records go to the logger "adasum" of `logging`."""

from pathlib import Path

from adasum._calls import TensorPart
from adasum._library import (
    DEFAULT_TIMEOUT, ArgumentError, Error, WaitError, backend, library, set_log_level, version,
)
from adasum._options import OptionValues
from adasum.device import Stream
from adasum.helpers import GradientAccumulator, Journal, NormClip
from adasum.options import Options, WorldOptionValues
from adasum.reducers import DeltaWeightReducer, GradientReducer, MeanReducer, TensorStatistics
from adasum.sparse import SparseReducer, SparseRows
from adasum.tensors import BF16, F16, F32, LAYERWISE, TensorSpec, View, fusion_flag, specs, view
from adasum.world import World, root_info

__all__ = [
    "BF16", "DEFAULT_TIMEOUT", "F16", "F32", "LAYERWISE", "ArgumentError", "DeltaWeightReducer", "Error", "GradientAccumulator",
    "GradientReducer", "Journal", "MeanReducer", "NormClip", "OptionValues", "Options", "SparseReducer", "SparseRows", "Stream",
    "TensorPart", "TensorSpec", "TensorStatistics", "View", "WaitError", "World", "WorldOptionValues", "backend", "fusion_flag",
    "include_dir", "library", "root_info", "set_log_level", "specs", "version", "view",
]


def include_dir() -> str:
    """The folder of `adasum.h` and `adasum.hpp`, for extensions in C and C++."""
    installed = Path(__file__).resolve().parent / "include"
    return str(installed if installed.exists() else installed.parents[2] / "include")
