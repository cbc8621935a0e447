"""One rank of the tests of adasum.mindspore with MindSpore's CPU target, started by `adasum-run launch`.

    mindspore_cells.py FOLDER modes     every way to run a cell, against a model of the training in double precision
    mindspore_cells.py FOLDER cells     what the cells take, and what they refuse; with one server, what that means

FOLDER is one that all ranks share. The model here is written from the paper and from Momentum's definition; it shares no code with the
library."""

import logging
import os
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, context, nn, ops

import adasum
import adasum.mindspore as adasum_ms

RANK, SIZE, LOCALS = (int(os.environ[name]) for name in ("RANK_ID", "RANK_SIZE", "DEVICE_NUM"))
STEPS, BATCH, RATE, MOMENTUM = 20, 4, 0.05, 0.9


# The training in double precision: two dense layers with tanh, mean squared error, Momentum.

def digits(rank, step):
    """A rank's batch: exact in fp32."""
    generator = np.random.default_rng(1000 * step + rank)
    return (generator.integers(-64, 65, (BATCH, width)) / 64 for width in (6, 3))


def first_weights():
    generator = np.random.default_rng(7)
    return [generator.integers(-64, 65, shape) / 64 for shape in ((5, 6), (5,), (3, 5), (3,))]


def gradients_of(weights, rank, step):
    inputs, labels = digits(rank, step)
    w1, b1, w2, b2 = weights
    hidden = np.tanh(inputs @ w1.T + b1)
    error = 2 * (hidden @ w2.T + b2 - labels) / labels.size
    back = (error @ w2) * (1 - hidden**2)
    return [back.T @ inputs, back.sum(0), error.T @ hidden, error.sum(0)]


def pair(a, b):
    dot, aa, bb = (a * b).sum(), (a * a).sum(), (b * b).sum()
    if aa == 0 or bb == 0:
        return a + b
    return (1 - dot / (2 * aa)) * a + (1 - dot / (2 * bb)) * b


def adasum_of(vectors):
    """AdaSum of neighbours, of a power of two of servers."""
    while len(vectors) > 1:
        vectors = [pair(vectors[i], vectors[i + 1]) for i in range(0, len(vectors), 2)]
    return vectors[0]


def each_tensor(function, lists):
    return [function(list(tensors)) for tensors in zip(*lists)]


def mean(tensors):
    return sum(tensors) / len(tensors)


class Momentum:
    def __init__(self):
        self.moments = [0.0] * 4

    def step(self, weights, gradients):
        self.moments = [MOMENTUM * m + g for m, g in zip(self.moments, gradients)]
        return [w - RATE * m for w, m in zip(weights, self.moments)]


def model(kind):
    """The weights after the training."""
    weights = first_weights()
    servers = [range(first, first + LOCALS) for first in range(0, SIZE, LOCALS)]
    optimizers = [Momentum() for _ in servers]
    for step in range(STEPS):
        of_servers = [each_tensor(mean, [gradients_of(weights, rank, step) for rank in server]) for server in servers]
        if kind == "delta":
            stepped = [optimizer.step(weights, means) for optimizer, means in zip(optimizers, of_servers)]
            deltas = [[old - new for old, new in zip(weights, news)] for news in stepped]
            weights = [old - delta for old, delta in zip(weights, each_tensor(adasum_of, deltas))]
        else:
            combine = adasum_of if kind == "gradient" else mean
            weights = optimizers[0].step(weights, each_tensor(combine, of_servers))
    return weights


# The same training in MindSpore.

class TrainingWrapper(nn.Cell):
    """As the reference of DistributedGradReducer shows it."""

    def __init__(self, network, optimizer, reducer):
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = optimizer.parameters
        self.optimizer = optimizer
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_reducer = reducer

    def construct(self, *args):
        loss = self.network(*args)
        sens = ops.fill(loss.dtype, loss.shape, 1.0)
        grads = self.grad(self.network, self.weights)(*args, sens)
        grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))


class Batches:
    """For GeneratorDataset."""

    def __len__(self):
        return STEPS

    def __getitem__(self, step):
        inputs, labels = digits(RANK, step)
        return inputs.astype(np.float32), labels.astype(np.float32)


def network():
    net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 3))
    for parameter, values in zip(net.trainable_params(), first_weights()):
        parameter.set_data(Tensor(values.astype(np.float32)))
    return net


def momentum(parameters, rate=RATE):
    return nn.Momentum(parameters, rate, MOMENTUM)


def train(kind, way):
    """Trains and gives the weights."""
    context.set_context(mode=context.GRAPH_MODE if "graph" in way else context.PYNATIVE_MODE)
    net = network()
    optimizer = momentum(net.trainable_params())
    reducer = None
    if kind == "gradient":
        optimizer = adasum_ms.AdaSumByGradWrapCell(optimizer)
    elif kind == "delta":
        optimizer = adasum_ms.AdaSumByDeltaWeightWrapCell(optimizer)
    else:
        reducer = adasum_ms.DistributedGradReducer(optimizer.parameters, mean=True)
    loss = nn.MSELoss()
    batches = ([Tensor(part) for part in Batches()[step]] for step in range(STEPS))
    if way.startswith("functional"):
        def forward(inputs, labels):
            return loss(net(inputs), labels)

        grad = ms.value_and_grad(forward, None, optimizer.parameters)

        def step(inputs, labels):
            return grad(inputs, labels)

        step = ms.jit(step) if way == "functional, gradients under jit" else step

        reduce = reducer or nn.Identity()

        def whole(inputs, labels):
            value, grads = step(inputs, labels)
            return ops.depend(value, optimizer(reduce(grads)))

        whole = ms.jit(whole) if way == "functional, all under jit" else whole
        for inputs, labels in batches:
            whole(inputs, labels)
    else:
        cell = nn.WithLossCell(net, loss)
        if reducer is not None:
            cell = TrainingWrapper(cell, optimizer, reducer)
        elif way.startswith("cell"):
            cell = nn.TrainOneStepCell(cell, optimizer)
        if way.startswith("cell"):
            for inputs, labels in batches:
                cell(inputs, labels)
        else:
            trained = ms.train.Model(cell) if reducer else ms.train.Model(net, loss_fn=loss, optimizer=optimizer)
            trained.train(1, ms.dataset.GeneratorDataset(Batches(), ["inputs", "labels"], shuffle=False), dataset_sink_mode=False)
    found = [parameter.asnumpy().copy() for parameter in net.trainable_params()]
    (optimizer if reducer is None else reducer).close()
    context.set_context(mode=context.PYNATIVE_MODE)
    return found


WAYS = (
    "functional", "functional, gradients under jit", "functional, all under jit", "functional, graph", "cell, PyNative", "cell, graph",
    "Model.train, PyNative", "Model.train, graph",
)


#: Where there are many ranks: MindSpore takes long to start and compile.
FEW_WAYS = ("functional, gradients under jit", "Model.train, PyNative", "Model.train, graph")


def modes(folder):
    for kind in ("gradient", "delta", "mean"):
        wanted = model(kind)
        length = np.sqrt(sum((w**2).sum() for w in wanted))
        moved = np.sqrt(sum(((w - first) ** 2).sum() for w, first in zip(wanted, first_weights())))
        assert moved > 0.1 * length, f"{kind}: this training does not train"
        for way in FEW_WAYS if SIZE > 8 else WAYS:
            found = train(kind, way)
            far = np.sqrt(sum(((w - f) ** 2).sum() for w, f in zip(wanted, found))) / length
            assert far < 1e-6, f"{kind}, {way}: {far} from the model"
            shared = folder / f"{kind}, {way}"
            same_on_all_ranks(shared, b"".join(f.tobytes() for f in found))
            if RANK == 0:
                print(f"{kind:8} | {way:32} | {far:.1e} from the model in double precision, weights of {SIZE} ranks equal", flush=True)


def same_on_all_ranks(path, data):
    """Rank 0 writes, all compare: bits, not numbers."""
    Path(f"{path}.{RANK}").write_bytes(data)
    barrier()
    assert Path(f"{path}.0").read_bytes() == data, f"{path.name}: rank {RANK} has other weights than rank 0"


def barrier():
    world = adasum_ms.world()
    with adasum.MeanReducer(world, [adasum.TensorSpec("barrier", 1, adasum.F32)]) as reducer:
        reducer.reduce([np.zeros(1, np.float32)])


# What the cells take, and what they refuse.

def parameters(*shapes, dtype=ms.float32):
    return [Parameter(Tensor(np.zeros(shape), dtype), name=f"p{i}") for i, shape in enumerate(shapes)]


def values(rank, shape):
    """Exact in all types."""
    return np.random.default_rng([rank, *shape]).integers(-8, 9, shape) / 8


def truth(*shape):
    """The mean in servers and AdaSum across them."""
    servers = range(0, SIZE, LOCALS)
    return adasum_of([mean([values(rank, shape) for rank in range(first, first + LOCALS)]) for first in servers])


def stepped(cell, grads, rate=1.0):
    """What the cell's plain gradient descent, from zeros, was given."""
    cell(grads)
    return [-parameter.asnumpy().astype(np.float64) / rate for parameter in cell.parameters]


def descent(parameters):
    return nn.SGD(parameters, learning_rate=1.0)


class Seen(nn.Cell):
    """In the place of an optimizer: gives back what it is called with."""

    def construct(self, grads):
        return grads


class Fails(nn.Cell):
    def construct(self, grads):
        return 1 / 0


def near(what, found, wanted, tolerance=1e-6):
    far = np.linalg.norm(np.asarray(found, np.float64) - wanted)
    assert far <= tolerance * max(np.linalg.norm(wanted), 1e-30), f"{what}: {found} instead of {wanted}"


def refused(kind, words, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert words in str(error), f"{error!r} does not say {words!r}"
        return
    raise AssertionError(f"nothing was refused with {words!r}")


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def wrong_arguments():
    net = network()
    # Refused before the world is made.
    refused(
        TypeError, "options and overflow, radix are both given: give all of them as keywords", adasum_ms.AdaSumByGradWrapCell,
        descent(net.trainable_params()), options=adasum.Options(), overflow="vote", radix=2,
    )
    trained = net.trainable_params()
    refused(TypeError, "world is a int", adasum_ms.AdaSumByGradWrapCell, descent(trained), world=0)
    refused(TypeError, "world is a str", adasum_ms.AdaSumByDeltaWeightWrapCell, descent(trained), world="hccl_world_group", devices_per_server=1)
    refused(TypeError, "world is a int", adasum_ms.DistributedGradReducer, trained, world=0)
    refused(TypeError, "world is a bool", adasum_ms.all_finite, (Tensor([1.0]),), False)
    refused(TypeError, "world is a list", adasum_ms.boost, descent(trained), {}, world=[])
    assert sys.modules["adasum.mindspore._world"]._world is None
    for cell in (adasum_ms.AdaSumByGradWrapCell, adasum_ms.AdaSumByDeltaWeightWrapCell):
        refused(TypeError, "The type of 'optimizer' should be 'Optimizer', but got type 'int'.", cell, 3)
        assert issubclass(cell, getattr(nn, cell.__name__))
    for degree in (0, -1, 2.5, "8"):
        refused(
            ValueError,
            "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 and be int, "
            f"degree: {degree}.",
            adasum_ms.DistributedGradReducer, net.trainable_params(), degree=degree,
        )
    refused(ValueError, "fusion_type is -1", adasum_ms.DistributedGradReducer, net.trainable_params(), fusion_type=-1)
    cell = adasum_ms.AdaSumByGradWrapCell(descent(net.trainable_params()))
    refused(ValueError, "grads has 1 gradients, the optimizer has 4 parameters", cell, Tensor([1.0]))
    refused(TypeError, "grads is a float", cell, 1.0)
    refused(TypeError, "tensor 'p0': type Int32", adasum_ms.AdaSumByGradWrapCell(descent(parameters((2,)))), Tensor([1, 2], ms.int32))
    cell.close()
    refused(TypeError, "radicks", adasum_ms.AdaSumByGradWrapCell, descent(net.trainable_params()), radicks=2)
    for cell in (adasum_ms.AdaSumByGradWrapCell, adasum_ms.AdaSumByDeltaWeightWrapCell):
        refused(ValueError, "scattered leaves each result on one rank", cell, descent(net.trainable_params()), scattered=True)
        refused(
            ValueError, f"devices_per_server is {SIZE}, but the world that was given has {LOCALS} ranks in a server", cell,
            descent(net.trainable_params()), world=adasum_ms.world(), devices_per_server=SIZE,
        )
    refused(
        ValueError, f"devices_per_server is {SIZE}, but the world of this process has {LOCALS} ranks in a server",
        adasum_ms.AdaSumByGradWrapCell, descent(net.trainable_params()), devices_per_server=SIZE,
    )


def mindspores_limits():
    """The conditions of MindSpore's cells, which the profile asks for."""
    heard = Warnings()
    logging.getLogger("adasum").addHandler(heard)
    words = {
        "stand alone": ("stand_alone", False, 1, 16, "Stand alone mode is not supported to apply adasum."),
        "sharded": ("semi_auto_parallel", True, 1, 16, "Currently, the optimizer shard is not supported with applying adasum."),
        "stages": ("semi_auto_parallel", False, 2, 32, "Currently, the pipeline parallel is not supported with applying adasum."),
        "few": ("semi_auto_parallel", False, 1, 8, "The device_num must be at least 16 and must be the power of 2 when applying adasum."),
        "not 2^k": ("auto_parallel", False, 1, 24, "The device_num must be at least 16 and must be the power of 2 when applying adasum."),
    }
    optimizer = descent(parameters((2, 3)))
    for mode, sharded, stages, devices, sentence in words.values():
        context.set_auto_parallel_context(
            parallel_mode=mode, enable_parallel_optimizer=sharded, pipeline_stages=stages, device_num=devices
        )
        for cell in (adasum_ms.AdaSumByGradWrapCell, adasum_ms.AdaSumByDeltaWeightWrapCell):
            refused(RuntimeError, sentence, cell, optimizer, profile="mindspore")
    context.reset_auto_parallel_context()
    assert not heard.said, heard.said
    # The option says what MindSpore's context is; the warning comes before an error.
    refused(
        RuntimeError, "Currently, the optimizer shard", adasum_ms.AdaSumByGradWrapCell, optimizer, profile="mindspore",
        mindspore_context="data_parallel,1,1,16",
    )
    warning = "For data parallel mode or hybrid parallel mode, it is recommended to using mindspore.boost to enable adasum."
    assert heard.said == [warning], heard.said
    logging.getLogger("adasum").removeHandler(heard)
    # MindSpore's training cells would average over 8 ranks first.
    context.set_auto_parallel_context(parallel_mode="data_parallel", device_num=16)
    if LOCALS != 8:
        refused(RuntimeError, "MindSpore's training cells average gradients over 8 ranks", adasum_ms.AdaSumByGradWrapCell, optimizer)
    context.reset_auto_parallel_context()


def kinds_of_gradients():
    for dtype, tolerance in ((ms.float32, 1e-6), (ms.float16, 2e-3), (ms.bfloat16, 1.2e-2)):
        cell = adasum_ms.AdaSumByGradWrapCell(descent(parameters((3, 4), (5,), (1,))))
        grads = tuple(Tensor(values(RANK, shape), dtype) for shape in ((3, 4), (5,), (1,)))
        before = [grad.asnumpy().copy() for grad in grads]
        # The optimizer takes fp32 only.
        cell.optimizer = Seen()
        for grad, old, (new, shape) in zip(grads, before, zip(cell(grads), ((3, 4), (5,), (1,)))):
            assert new.dtype == dtype and new.shape == shape
            near(f"{dtype} {shape}", new.asnumpy().astype(np.float64), truth(*shape), tolerance)
            assert (grad.asnumpy() == old).all(), "a gradient was overwritten"
        cell.close()

    # One tensor that stands for two gradients, a constant of a compiled function, and one that is not contiguous.
    w = Parameter(Tensor(np.zeros((3, 4), np.float32)), name="w")

    def total():
        return w.sum() * 2

    grad = ms.value_and_grad(total, None, [w])

    @ms.jit
    def compiled():
        return grad()

    reducer = adasum_ms.DistributedGradReducer([w], mean=False)
    for _ in range(3):
        found = reducer(compiled()[1])[0].asnumpy()
        assert (found == 2 * SIZE).all(), f"{found}: the constant of a compiled function was overwritten"
    reducer.close()
    same = Tensor(values(RANK, (3, 4)), ms.float32)
    twice = adasum_ms.AdaSumByGradWrapCell(descent(parameters((3, 4), (3, 4), (4, 3))))
    found = stepped(twice, (same, same, same.T))
    for part in (*found[:2], found[2].T):
        near("a tensor that is there twice", part, truth(3, 4))
    twice.close()

    # Without a tuple; and other sizes, for which all ranks make a new reducer.
    reducer = adasum_ms.DistributedGradReducer(parameters((4,)), mean=True)
    for shape in ((4,), (2, 3), (4,)):
        found = reducer(Tensor(values(RANK, shape), ms.float32))
        assert isinstance(found, Tensor)
        near("mean", found.asnumpy(), mean([values(rank, shape) for rank in range(SIZE)]))
    found = reducer([Tensor(values(RANK, (4,)), ms.float64)])
    assert isinstance(found, tuple) and found[0].dtype == ms.float64
    reducer.close()


def reducers():
    total = sum(values(rank, (4,)) for rank in range(SIZE))
    grad = Tensor(values(RANK, (4,)), ms.float32)
    neighbours = [RANK // 2 * 2, RANK // 2 * 2 + 1]
    for keywords, wanted in (
        ({}, total), ({"mean": False}, total), ({"mean": True}, total / SIZE), ({"mean": True, "degree": 3}, total / np.float32(3)),
        ({"mean": True, "fusion_type": 0}, total / SIZE), ({"mean": True, "group": "hccl_world_group"}, total / SIZE),
        ({"mean": True, "group": neighbours}, mean([values(rank, (4,)) for rank in neighbours])),
    ):
        reducer = adasum_ms.DistributedGradReducer(parameters((4,)), **keywords)
        near(f"{keywords}", reducer(grad).asnumpy(), wanted)
        reducer.close()
    context.set_auto_parallel_context(gradients_mean=True)
    near("the context's mean", adasum_ms.DistributedGradReducer(parameters((4,)))(grad).asnumpy(), total / SIZE)
    context.reset_auto_parallel_context()

    fused = parameters((4,), (4,), (4,))
    fused[0].comm_fusion, fused[1].comm_fusion = 0, 3
    reducer = adasum_ms.DistributedGradReducer(fused, mean=True)
    for index, found in enumerate(reducer((grad, grad, grad))):
        near(f"fusion of its own, {index}", found.asnumpy(), total / SIZE)
    assert [spec.flags for spec in reducer.reducers.reducer.specs] == [adasum.fusion_flag(fusion) for fusion in (0, 3, 1)]
    reducer.close()

    own = parameters((4,), (4,))
    own[0].layerwise_parallel = True
    for reducer, wanted in (
        (adasum_ms.DistributedGradReducer(own, mean=True), total / SIZE), (adasum_ms.AdaSumByGradWrapCell(descent(own)), truth(4)),
    ):
        if isinstance(reducer, adasum_ms.AdaSumByGradWrapCell):
            reducer.optimizer = Seen()
        found = reducer((grad, grad))
        assert (found[0].asnumpy() == grad.asnumpy()).all()
        near("beside a layerwise one", found[1].asnumpy(), wanted)
        reducer.close()


def sparse_gradients():
    """Two rows of each rank; row 1 is everybody's."""
    rows = ms.RowTensor(Tensor([1, 2 + RANK], ms.int32), Tensor(values(RANK, (2, 4)), ms.float32), (2 + SIZE, 4))
    dense = Tensor(values(RANK, (3, 4)), ms.float32)
    everybodys = np.concatenate([values(rank, (2, 4)) for rank in range(SIZE)])
    table = parameters((2 + SIZE, 4), (3, 4))
    cell = adasum_ms.AdaSumByGradWrapCell(descent(table))
    cell.optimizer = Seen()
    reducer = adasum_ms.DistributedGradReducer(table, mean=True)
    for found, wanted in ((cell((rows, dense)), truth(3, 4)), (reducer((rows, dense)), mean([values(rank, (3, 4)) for rank in range(SIZE)]))):
        assert isinstance(found[0], ms.RowTensor) and found[0].dense_shape == (2 + SIZE, 4)
        assert found[0].indices.asnumpy().tolist() == [row for rank in range(SIZE) for row in (1, 2 + rank)]
        near("rows", found[0].values.asnumpy(), everybodys / SIZE)
        near("beside rows", found[1].asnumpy(), wanted)
    cell.close()
    reducer.close()
    refused(
        ValueError, "gradient 'p0' is sparse", adasum_ms.AdaSumByDeltaWeightWrapCell(descent(parameters((2 + SIZE, 4), (3, 4)))),
        (rows, dense),
    )


def parameter_groups():
    net = network()
    weights = [p for p in net.trainable_params() if "weight" in p.name]
    biases = [p for p in net.trainable_params() if "bias" in p.name]
    optimizer = nn.Momentum([{"params": weights, "lr": 0.5}, {"params": biases, "lr": 0.25}], 0.1, 0.0)
    cell = adasum_ms.AdaSumByGradWrapCell(optimizer)
    before = [p.asnumpy().astype(np.float64) for p in cell.parameters]
    cell(tuple(Tensor(values(RANK, p.shape), ms.float32) for p in cell.parameters))
    for old, parameter in zip(before, cell.parameters):
        rate = 0.5 if "weight" in parameter.name else 0.25
        near(parameter.name, parameter.asnumpy(), old - rate * truth(*parameter.shape))
    cell.close()


def accumulation():
    """The mean of micro-batches is reduced once."""
    cell = adasum_ms.AdaSumByGradWrapCell(descent(parameters((3, 4))))
    total = Tensor(np.zeros((3, 4), np.float32))
    for part in (0.25, 0.75):
        total = total + Tensor(values(RANK, (3, 4)) * part, ms.float32)
    near("accumulated", stepped(cell, (total,))[0], truth(3, 4))
    cell.close()


def overflow():
    """One rank's infinity has all skip the step; the scale goes down, and the next step is taken."""
    for wrap in (adasum_ms.AdaSumByGradWrapCell, adasum_ms.AdaSumByDeltaWeightWrapCell):
        cell = wrap(descent(parameters((3, 4), (5,))), overflow="vote")
        scaler = ms.amp.DynamicLossScaler(scale_value=1024, scale_factor=2, scale_window=10)
        good = tuple(Tensor(values(RANK, shape), ms.float32) for shape in ((3, 4), (5,)))
        bad = (good[0], Tensor(np.full(5, np.inf if RANK == SIZE - 1 else 1.0, np.float32)))
        cell(bad)
        assert cell.overflowed, f"rank {RANK} did not hear of the overflow"
        assert all((parameter.asnumpy() == 0).all() for parameter in cell.parameters)
        scaler.adjust(Tensor(not cell.overflowed))
        assert scaler.scale_value.asnumpy() == 512
        cell(good)
        assert not cell.overflowed
        near("after an overflow", -cell.parameters[1].asnumpy(), truth(5))
        cell.close()
    for grads in (good, bad):
        assert bool(adasum_ms.all_finite(grads)) == (grads is good), f"rank {RANK} answers for itself"


def delta_weights():
    # An optimizer that fails leaves no open step.
    cell = adasum_ms.AdaSumByDeltaWeightWrapCell(descent(parameters((3, 4))))
    optimizer = cell.optimizer
    cell.optimizer = Fails()
    refused(ZeroDivisionError, "division", cell, (Tensor(values(RANK, (3, 4)), ms.float32),))
    cell.optimizer = optimizer
    near("after a failure", stepped(cell, (Tensor(values(RANK, (3, 4)), ms.float32),))[0], truth(3, 4))
    cell.close()


def one_server():
    """One server is refused, unless each rank counts as one: then everybody steps alone, and no gradients are averaged."""
    grad = Tensor(values(RANK, (3, 4)), ms.float32)
    cell = adasum_ms.AdaSumByDeltaWeightWrapCell(descent(parameters((3, 4))), devices_per_server=1)
    near("each rank a server", stepped(cell, (grad,))[0], adasum_of([values(rank, (3, 4)) for rank in range(SIZE)]))
    adasum_ms.close()
    refused(ValueError, "AdaSum combines servers", adasum_ms.AdaSumByGradWrapCell, descent(parameters((3, 4))))
    cell = adasum_ms.AdaSumByGradWrapCell(descent(parameters((3, 4))), allow_plain_mean=True)
    near("plain mean", stepped(cell, (grad,))[0], mean([values(rank, (3, 4)) for rank in range(SIZE)]))


TUTORIAL = {"mode": "manual", "less_bn": False, "grad_freeze": False, "adasum": True, "grad_accumulation": False, "dim_reduce": False}


def boost(folder):
    # The first cell of a program makes the world.
    adasum_ms.close()
    plain = descent(parameters((3, 4)))
    wrap = adasum_ms.boost
    cell = wrap(plain, {"boost": TUTORIAL, "common": {"device_number": LOCALS}})
    assert type(cell) is adasum_ms.AdaSumByDeltaWeightWrapCell
    near("boost", stepped(cell, (Tensor(values(RANK, (3, 4)), ms.float32),))[0], truth(3, 4))
    cell.close()
    for off in ({"boost": TUTORIAL | {"adasum": False}}, {"boost": {"mode": "disable_all"}}):
        assert wrap(plain, off) is plain
    assert wrap(plain, {"boost": TUTORIAL}, "O0") is plain
    file = folder / f"boost-{RANK}.json"
    file.write_text('{"boost": {"mode": "enable_all"}}')
    for config, switch in ((None, "grad_freeze is on"), (file, "dim_reduce is on"), ({"boost": TUTORIAL | {"less_bn": True}}, "less_bn is on")):
        refused(adasum.Error, switch, wrap, plain, config)
    mode = "The boost mode must be in ['auto', 'manual', 'enable_all', 'disable_all'], but got some"
    refused(ValueError, mode, wrap, plain, {"boost": {"mode": "some"}})
    refused(TypeError, "boost_config_dict is a int", wrap, plain, 3)
    refused(TypeError, "The type of 'optimizer'", wrap, 3)
    refused(ValueError, "devices_per_server is 8, but the world", wrap, plain, {"boost": TUTORIAL})
    refused(TypeError, "radix is an option of reducers", adasum_ms.world, radix=4)
    refused(ValueError, "common.device_number is 8, but the world", wrap, plain, {"boost": TUTORIAL}, world=adasum_ms.world())


def graphs():
    """What a graph cannot do is said when it is made."""
    context.set_context(mode=context.GRAPH_MODE)
    refused(RuntimeError, "use PyNative mode", adasum_ms.AdaSumByGradWrapCell, descent(parameters((2,))), overflow="vote")
    context.set_context(mode=context.PYNATIVE_MODE)


def cells(folder):
    parts = (
        wrong_arguments, mindspores_limits, kinds_of_gradients, reducers, sparse_gradients, parameter_groups, accumulation, overflow,
        delta_weights, graphs, boost,
    )
    for part in (one_server,) if SIZE == LOCALS else parts:
        part(*[folder][: part is boost])
        if RANK == 0:
            print(f"{part.__name__}: right", flush=True)
    adasum_ms.close()


if __name__ == "__main__":
    {"modes": modes, "cells": cells}[sys.argv[2]](Path(sys.argv[1]))
