"""AdaSum in MindSpore: the wrap cells, the gradient reducer and boost's switch, by the names that MindSpore has for them.
Nothing here has run on an NPU yet; run `adasum-run qualify` first.

    from adasum.mindspore import AdaSumByGradWrapCell               # in the place of mindspore.nn

    optimizer = AdaSumByGradWrapCell(nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9))
    model = ms.train.Model(net, loss_fn=loss, optimizer=optimizer)

    adasum-run launch --rank-table rank_table.json --server-id auto -- python3 train.py      # on each machine

Each rank sets its NPU first, `mindspore.set_device("Ascend", int(os.environ["DEVICE_ID"]))`, unless msrun has started it: without a number
MindSpore takes NPU 0 (mindspore/device_manager.py). In a container, or with ASCEND_RT_VISIBLE_DEVICES, MindSpore counts its NPUs from 0, and
the table has their numbers on the server: take LOCAL_RANK there, if the table has the NPUs that the process sees, in ascending order.

The ranks of a server are averaged, AdaSum combines the servers, then the optimizer steps. The world is that of the environment and
is made with the first cell; `close`, or the end of the process, ends it. Cells are made and called by all ranks alike.

What runs:

| target | PyNative, also with the gradient function under `ms.jit` | graph mode, and cells under `ms.jit` |
|---|---|---|
| Ascend | yes; reductions are queued on MindSpore's stream, the host does not wait | with the operator of `load_graph_operator` |
| CPU, over the mock of ACL and HCCL | yes | yes: the graph calls back into Python |

`Model.train` takes the wrap cells in both modes. Leave MindSpore's parallel mode at stand_alone with them: in data parallel mode
MindSpore's training cells average gradients before the optimizer, which wants `mindspore.communication.init()` and servers of 8.

With stand_alone MindSpore's loss scaling looks at a rank's own gradients, and a rank that leaves its step out is a step behind the others.
So take `FixedLossScaleManager(scale, drop_overflow_update=False)` with cells of overflow="vote", or a loop of your own with `all_finite`."""

from adasum.mindspore._boost import boost
from adasum.mindspore._cells import AdaSumByDeltaWeightWrapCell, AdaSumByGradWrapCell
from adasum.mindspore._graph import load_graph_operator
from adasum.mindspore._grad_reducer import DistributedGradReducer
from adasum.mindspore._scaling import all_finite
from adasum.mindspore._tensors import current_stream
from adasum.mindspore._world import close, world

__all__ = [
    "AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell", "DistributedGradReducer", "all_finite", "boost", "close", "current_stream",
    "load_graph_operator", "world",
]
