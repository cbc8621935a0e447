"""Cells in compiled graphs on MindSpore's Ascend target, over the mock: mindspore_graph.py under msrun.

The mock has too few operators for whole cells. So these graphs are the part of a cell that is the library's: its graph operator, between
what makes one vector of all gradients and what cuts it. With the CPU target mindspore_cells.py runs whole ones."""

import os
import subprocess
import sys

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn

import adasum
import adasum.mindspore as adasum_ms

STEPS = 5
#: A process that cannot build the operator, as there is no ninja on its path.
WITHOUT_NINJA = """
import mindspore, adasum.mindspore
mindspore.set_device("Ascend")
try:
    adasum.mindspore.load_graph_operator()
except RuntimeError as error:
    assert "the packages ninja and pyyaml" in str(error) and "use PyNative mode" in str(error), error
else:
    raise AssertionError("it was built without ninja")
"""


class Reduces(nn.Cell):
    """The operator of a cell."""

    def __init__(self, cell):
        super().__init__(auto_prefix=False)
        self.through = cell.through.through

    def construct(self, vector):
        return self.through(vector)


def main():
    mindspore.set_device("Ascend")
    world = adasum_ms.world(devices_per_server=1)
    rank, size = world.rank, world.size

    weight = Parameter(Tensor(np.zeros(size, np.float32)).to("Ascend"), name="weight")
    gradient = Tensor(np.eye(size, dtype=np.float32)[rank]).to("Ascend")

    # In PyNative mode a cell is no part of a graph before the operator is there.
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    early = adasum_ms.DistributedGradReducer([weight], mean=True)

    @mindspore.jit
    def too_early(value):
        return early((value,))

    try:
        too_early(gradient)
    except RuntimeError as error:
        assert "load_graph_operator" in str(error), error
    else:
        raise AssertionError("a graph without its operator was compiled")
    early.close()

    if rank == 0:
        elsewhere = f"{os.environ.get('MS_COMPILER_CACHE_PATH', 'kernel_meta')}-without-ninja"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
        variables |= {"PATH": "/usr/sbin", "MS_COMPILER_CACHE_PATH": elsewhere}
        subprocess.run([sys.executable, "-c", WITHOUT_NINJA], env=variables, check=True)

    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    two = [weight, Parameter(Tensor(np.zeros(3, np.float32)), name="bias")]
    vector = np.concatenate([np.eye(size)[rank], [rank, 0, 1]]).astype(np.float32)
    given = Tensor(vector).to("Ascend")
    mean = adasum_ms.DistributedGradReducer(two, mean=True)
    cell = adasum_ms.AdaSumByGradWrapCell(nn.Momentum(two, 0.1, 0.9))
    # The first tensors are at right angles and are added.
    expected = np.concatenate([np.ones(size), adasum_of([[k, 0, 1] for k in range(size)])])
    for reduces, wanted in ((Reduces(mean), [1 / size] * size + [(size - 1) / 2, 0, 1]), (Reduces(cell), expected)):
        for _ in range(STEPS):
            found = reduces(given).asnumpy()
            assert np.allclose(found, wanted, rtol=1e-6), (found, wanted)
    assert np.array_equal(given.asnumpy(), vector), "what was given was overwritten"
    print(f"rank {rank}: the mean and AdaSum in graphs", flush=True)
    cell.close()
    mean.close()


def adasum_of(vectors):
    """AdaSum of 2 or 4 vectors in double precision."""
    vectors = np.array(vectors, float)
    while len(vectors) > 1:
        a, b = vectors[0::2], vectors[1::2]
        dot, aa, bb = ((x * y).sum(1, keepdims=True) for x, y in ((a, b), (a, a), (b, b)))
        vectors = (1 - dot / (2 * aa)) * a + (1 - dot / (2 * bb)) * b
    return vectors[0]


if __name__ == "__main__":
    main()
