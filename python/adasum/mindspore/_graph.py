"""Reductions inside compiled graphs: tensors go through a function of Python as one vector of fp32."""

from __future__ import annotations

import fcntl
import itertools
import math
import os
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

import mindspore as ms
from mindspore import context, nn, ops

import adasum
from adasum.device import copy_on_device

#: Changes tensors where they lie, on a stream where that is the device.
Change = Callable[[list[Any], Optional[int]], None]

#: Seconds that a process waits for another one that builds the operator.
_BUILD_LIMIT = 600
_FP32_BYTES = 4
_OUTSIDE = (
    "use PyNative mode (mindspore.set_context(mode=mindspore.PYNATIVE_MODE)), compile the function of the gradients with "
    "mindspore.jit, and call this cell outside of it"
)

#: The graph operator for Ascend, once it is loaded.
_operator: Any = None
_numbers = itertools.count()
#: Who is called by the graph operator.
_called: weakref.WeakValueDictionary[int, OnDevice] = weakref.WeakValueDictionary()


def check_mode() -> str:
    """Why a cell that is made now cannot be part of a graph; empty if it can. In graph mode it must be: there this loads the graph
    operator, and raises RuntimeError where that cannot be."""
    target = context.get_context("device_target")
    if target == "CPU":
        return ""
    if context.get_context("mode") == context.GRAPH_MODE:
        load_graph_operator()
    if _operator is None:
        return f"this cell was made before adasum.mindspore.load_graph_operator() was called: call it first, or {_OUTSIDE}"
    return ""


def load_graph_operator() -> None:
    """Builds the graph operator for Ascend, if it is not there yet, and loads it. In graph mode cells do this when they are made; in
    PyNative mode it is for those who call cells in functions under mindspore.jit. The build takes some 20 seconds once, a C++ compiler,
    and the packages ninja and pyyaml; it lies where MindSpore has such things: in MS_COMPILER_CACHE_PATH, by default ./kernel_meta.

    Raises RuntimeError where it cannot be built, or for another target than Ascend."""
    global _operator
    target = context.get_context("device_target")
    if target != "Ascend":
        raise RuntimeError(f"adasum.mindspore has no graph operator for {target}: {_OUTSIDE}")
    if _operator is not None:
        return
    folder = Path(os.environ.get("MS_COMPILER_CACHE_PATH", "kernel_meta")).resolve() / "adasum_graph"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # MindSpore writes there each time: one process at once.
        with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            _lock(lock)
            # MindSpore's own lock, left by a process that was killed, would have it wait for ever.
            (folder / "build.lock").unlink(missing_ok=True)
            loaded = _builder(folder).load()
            loaded.so_module.set_function(_call)
    except Exception as error:
        raise RuntimeError(
            f"adasum.mindspore could not build its graph operator in {folder}: {error}\nIt needs a C++ compiler and the packages ninja and "
            f"pyyaml. Without it {_OUTSIDE}"
        ) from error
    # The module shows either by the mode of the context, which may change.
    _operator = loaded.func_module.adasum_change


def _call(number: int, source: int, target: int, stream: int) -> None:
    _called[number].call(source, target, stream)


def _builder(folder: Path) -> Any:
    here, libraries = Path(__file__).parent, Path(ms.__file__).parent / "lib"
    linked = ["-lmindspore_core", "-lmindspore_hardware_abstract", "-lmindspore_ops_ascend"]
    return ops.CustomOpBuilder(
        "adasum_graph", str(here / "graph_operator.cpp"), op_def=str(here / "graph_operator.yaml"), build_dir=str(folder),
        # MindSpore's own flags name libraries before the objects that need them, which some linkers leave out.
        ldflags=" ".join(["-Wl,--no-as-needed", f"-L{libraries}", f"-L{libraries / 'plugin'}", *linked]),
    )


def _lock(file: Any) -> None:
    deadline = time.monotonic() + _BUILD_LIMIT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another process has held {file.name} for {_BUILD_LIMIT} s") from None
            time.sleep(0.1)


class Through(nn.Cell):
    """For compiled graphs: some of several tensors go through a function of Python, which may overwrite what it is given; the others
    are handed on."""

    def __init__(self, shapes: Sequence[Sequence[int]], kept: Sequence[int], change: Change, refusal: str = ""):
        """For tensors of these shapes; `kept` are the numbers of those that go through. `refusal` says why that cannot be;
        compiling raises it."""
        super().__init__(auto_prefix=False)
        sizes = [math.prod(shapes[i]) for i in kept]
        starts = [sum(sizes[:at]) for at in range(len(sizes))]
        self.kept = tuple(kept)
        self.all = tuple(range(len(shapes)))
        # By number of the tensor: where it lies in the vector, and its shape; -1 for those that do not go through.
        place = {i: (start, start + size) for i, start, size in zip(kept, starts, sizes)}
        self.starts = tuple(place.get(i, (-1, -1))[0] for i in self.all)
        self.ends = tuple(place.get(i, (-1, -1))[1] for i in self.all)
        self.shapes = tuple(tuple(shape) for shape in shapes)
        self.refusal = refusal
        self.through: Any = None
        if not refusal:
            made = _on_host if context.get_context("device_target") == "CPU" else OnDevice
            self.through = made(list(place.values()), change)

    def construct(self, tensors: Any) -> Any:
        if self.refusal:
            raise RuntimeError(self.refusal)
        parts = [ops.reshape(ops.cast(tensors[i], ms.float32), (-1,)) for i in self.kept]
        vector = self.through(ops.concat(parts))
        return tuple([self.part(vector, tensors[i], i) for i in self.all])

    def part(self, vector: Any, tensor: Any, i: Any) -> Any:
        if self.starts[i] < 0:
            return tensor
        return ops.cast(ops.reshape(vector[self.starts[i] : self.ends[i]], self.shapes[i]), tensor.dtype)


def _on_host(places: Sequence[tuple[int, int]], change: Change) -> Any:
    def through(vector: Any) -> Any:
        changed = vector.copy()
        change([changed[start:end] for start, end in places], None)
        return changed

    return ops.Custom(through, lambda shape: shape, lambda dtype: dtype, func_type="pyfunc")


class OnDevice(nn.Cell):
    """A vector on an NPU goes through a function of Python, which queues its work on the graph's stream."""

    def __init__(self, places: Sequence[tuple[int, int]], change: Change):
        super().__init__(auto_prefix=False)
        self.places, self.change = list(places), change
        self.number = next(_numbers)
        self.operator = _operator
        _called[self.number] = self

    def construct(self, vector: Any) -> Any:
        return self.operator(vector, self.number)

    def call(self, source: int, target: int, stream: int) -> None:
        """Called when the graph runs."""
        last = self.places[-1][1]
        copy_on_device(target, source, _FP32_BYTES * last, stream)
        parts = [adasum.View(target + _FP32_BYTES * start, end - start, adasum.F32, True) for start, end in self.places]
        self.change(parts, stream)
