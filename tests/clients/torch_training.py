"""Trainings with adasum.torch, beside the same training of all ranks in one process: for fp32 all of it in float64, for bf16 with ranks'
own arithmetic in bf16 and combinations in float64, which are rounded once.

    torchrun --nproc-per-node N torch_training.py cpu
    torchrun --nproc-per-node N -m adasum.torch.cpu_operators torch_training.py npu

Each test is a function; further arguments choose some by name. N is a power of two."""

import contextlib
import copy
import gc
import inspect
import io
import logging
import math
import os
import sys
import warnings
from fractions import Fraction

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import adasum
import adasum.torch

DEVICE = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
STEPS = 4
#: Largest difference of a weight to the reference, relative to the largest weight, after STEPS steps.
TOLERANCES = {torch.float32: 2e-6, torch.bfloat16: 0.01}
#: In which type a rank's own arithmetic of the reference is done.
REFERENCE_TYPES = {torch.float32: torch.float64, torch.bfloat16: torch.bfloat16}
TESTS = []
HOST = None


def test(body):
    TESTS.append(body)
    return body


def pair(a, b):
    ab, aa, bb = (a * b).sum(), (a * a).sum(), (b * b).sum()
    if aa == 0 or bb == 0:
        return a + b
    return (1 - ab / (2 * aa)) * a + (1 - ab / (2 * bb)) * b


def tree(vectors, servers=None):
    """AdaSum in float64: neighbours first, after the mean of each server's ranks."""
    level = [vector.double() for vector in vectors]
    per_server = len(level) // (servers or len(level))
    level = [sum(level[i : i + per_server]) / per_server for i in range(0, len(level), per_server)]
    while len(level) > 1:
        level = [pair(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return level[0]


def average(vectors):
    return sum(vector.double() for vector in vectors) / len(vectors)


def total(vectors):
    return sum(vector.double() for vector in vectors)


class Network(torch.nn.Module):
    """The same on every rank. `idle` is in no result."""

    def __init__(self, idle=False):
        super().__init__()
        torch.manual_seed(7)
        self.first, self.last = torch.nn.Linear(12, 8), torch.nn.Linear(8, 3)
        if idle:
            self.idle = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def data(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(5, 12, generator=generator), torch.randn(5, 3, generator=generator)


def loss(network, rank, step):
    weight = next(network.parameters())
    x, y = (part.to(weight.dtype).to(weight.device) for part in data(rank, step))
    return ((network(x) - y) ** 2).mean()


def two_groups(network, kind=torch.optim.SGD, **values):
    """An optimizer with a learning rate for each layer."""
    first, *others = network.children()
    rest = [parameter for layer in others for parameter in layer.parameters()]
    return kind([{"params": first.parameters(), "lr": 0.05}, {"params": rest, "lr": 0.02}], **values)


def weights(network):
    return {name: tensor.detach().cpu().double() for name, tensor in network.named_parameters()}


def gradient_reference(make, combine, passes=1, steps=STEPS, dtype=torch.float32):
    """Weights after steps on combined gradients; a step has `passes` backward passes of each rank."""
    model = Network().to(REFERENCE_TYPES[dtype])
    optimizer = make(model)
    parameters = list(model.parameters())
    for step in range(steps):
        of_ranks = []
        for rank in range(SIZE):
            value = sum(loss(model, rank, step * passes + i) for i in range(passes))
            of_ranks.append(torch.autograd.grad(value, parameters))
        for parameter, gradients in zip(parameters, zip(*of_ranks)):
            parameter.grad = combine(gradients).to(parameter.dtype)
        optimizer.step()
    return weights(model)


def delta_reference(make, passes=1, steps=STEPS, dtype=torch.float32):
    """Weights after AdaSum of the steps of optimizers that see their own rank's gradients only."""
    models = [Network().to(REFERENCE_TYPES[dtype]) for _ in range(SIZE)]
    optimizers = [make(model) for model in models]
    for step in range(steps):
        old = [parameter.detach().clone() for parameter in models[0].parameters()]
        for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
            optimizer.zero_grad()
            for i in range(passes):
                loss(model, rank, step * passes + i).backward()
            optimizer.step()
        with torch.no_grad():
            for before, *of_ranks in zip(old, *(model.parameters() for model in models)):
                new = before - tree([before.double() - parameter for parameter in of_ranks])
                for parameter in of_ranks:
                    parameter.copy_(new)
    return weights(models[0])


def same(what, network, wanted, tolerance=TOLERANCES[torch.float32]):
    found = weights(network)
    largest = max(tensor.abs().max().item() for tensor in wanted.values())
    worst = max((found[name] - tensor).abs().max().item() for name, tensor in wanted.items()) / largest
    if RANK == 0:
        print(f"{what}: off by {worst:.1e}", flush=True)
    assert worst <= tolerance, f"rank {RANK}: {what}: off by {worst}, more than {tolerance}"
    everyone = [None] * SIZE
    dist.all_gather_object(everyone, {name: tensor.tolist() for name, tensor in found.items()}, group=HOST)
    assert all(others == everyone[0] for others in everyone), f"{what}: weights differ between ranks"


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"the error does not say {missing}: {error}"
        return
    raise AssertionError(f"no {kind.__name__}")


def train_ddp(model, optimizer, passes=1, steps=STEPS):
    for step in range(steps):
        optimizer.zero_grad()
        for i in range(passes - 1):
            with model.no_sync():
                loss(model, RANK, step * passes + i).backward()
        loss(model, RANK, step * passes + passes - 1).backward()
        optimizer.step()


def ddp(network, **values):
    return DistributedDataParallel(network.to(DEVICE), **values)


def sgd(network):
    return two_groups(network, momentum=0.9)


def adam(network):
    return two_groups(network, torch.optim.Adam)


# The hook


@test
def hook_types():
    for dtype, tolerance in TOLERANCES.items():
        model = ddp(Network().to(dtype))
        with adasum.torch.register(model):
            train_ddp(model, sgd(model.module))
            same(f"hook, {dtype}", model.module, gradient_reference(sgd, tree, dtype=dtype), tolerance)


@test
def hook_no_sync():
    """Gradients of passes without synchronisation are added before they are combined."""
    model = ddp(Network())
    with adasum.torch.register(model):
        train_ddp(model, sgd(model.module), passes=3)
        same("hook, no_sync", model.module, gradient_reference(sgd, tree, passes=3))


@test
def hook_static_graph():
    model = ddp(Network(), static_graph=True)
    with adasum.torch.register(model):
        train_ddp(model, sgd(model.module))
        same("hook, static_graph", model.module, gradient_reference(sgd, tree))


@test
def hook_idle():
    """Parameters that no loss reaches, and a frozen one."""
    def frozen():
        made = Network(idle=True)
        made.last.bias.requires_grad_(False)
        return made

    def make(network):
        return torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.05)

    model = ddp(frozen(), find_unused_parameters=True)
    with adasum.torch.register(model) as state:
        assert "last.bias" not in [spec.name for spec in state.reducer.specs]
        train_ddp(model, make(model.module))
        wanted = frozen().double()
        parameters = [p for p in wanted.parameters() if p.requires_grad]
        optimizer = make(wanted)
        for step in range(STEPS):
            found = [torch.autograd.grad(loss(wanted, rank, step), parameters, allow_unused=True) for rank in range(SIZE)]
            for parameter, of_ranks in zip(parameters, zip(*found)):
                parameter.grad = None if of_ranks[0] is None else tree(of_ranks)
            optimizer.step()
        same("hook, idle and frozen", model.module, weights(wanted))


@test
def hook_small_buckets():
    """A bucket for each parameter, arranged anew after the first pass."""
    model = ddp(Network(), bucket_cap_mb=1e-5, gradient_as_bucket_view=True)
    with adasum.torch.register(model):
        train_ddp(model, sgd(model.module))
        same("hook, small buckets", model.module, gradient_reference(sgd, tree))


@test
def hook_uneven():
    """DDP's join: a rank whose data has ended takes part with zeros, which leave the others' AdaSum as it is."""
    def of_others(vectors):
        return tree([torch.zeros_like(vectors[0]), *vectors[1:]])

    model = ddp(Network())
    with adasum.torch.register(model):
        optimizer = sgd(model.module)
        with model.join():
            for step in range(STEPS if RANK > 0 else 0):
                optimizer.zero_grad()
                loss(model, RANK, step).backward()
                optimizer.step()
        same("hook, uneven data", model.module, gradient_reference(sgd, of_others))


@test
def hook_in_a_world():
    """A world of the program's, with servers of two ranks, and figures of the last reduction."""
    if SIZE < 4:
        return
    model = ddp(Network())
    with adasum.torch.world(devices_per_server=2) as world:
        with adasum.torch.State(world, model.module) as state:
            model.register_comm_hook(state, adasum.torch.hook)
            train_ddp(model, sgd(model.module))
            same("hook, servers", model.module, gradient_reference(sgd, lambda vectors: tree(vectors, SIZE // 2)))
        assert not world.closed


@test
def hook_figures():
    """Cosine and gain: with several rounds only of observed reductions."""
    model = ddp(Network())
    with adasum.torch.register(model, radix=2) as state:
        train_ddp(model, sgd(model.module), steps=2)
        figures = state.reducer.statistics()
        assert all(math.isfinite(each.norm) for each in figures)
    assert math.isnan(figures[-1].gain) == (SIZE > 2), figures[-1]


@test
def hook_checkpoint():
    """Two steps, a checkpoint, two more in a new model: as four."""
    model = ddp(Network())
    with adasum.torch.register(model):
        optimizer = sgd(model.module)
        train_ddp(model, optimizer, steps=2)
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    resumed = ddp(Network())
    optimizer = sgd(resumed.module)
    resumed.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    with adasum.torch.register(resumed):
        for step in range(2, STEPS):
            optimizer.zero_grad()
            loss(resumed, RANK, step).backward()
            optimizer.step()
        same("hook, resumed", resumed.module, gradient_reference(sgd, tree))


@test
def hook_scaler():
    """torch's own GradScaler: an infinity on one rank has all skip the step, and scales stay equal."""
    model = ddp(Network())
    optimizer, scaler = sgd(model.module), torch.amp.GradScaler(DEVICE, init_scale=1024.0)
    with adasum.torch.register(model):
        for step in (0, None, 1, 2, 3):
            optimizer.zero_grad()
            value = loss(model, RANK, step or 0)
            scaler.scale(value * math.inf if step is None and RANK == SIZE - 1 else value).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 512.0
        same("hook, GradScaler", model.module, gradient_reference(sgd, tree))


@test
def hook_errors():
    """Each error says which parameter it is about."""
    module = Network().to(DEVICE)
    with adasum.torch.world() as world:
        other = DistributedDataParallel(Network().to(DEVICE))
        with adasum.torch.State(world, module) as state:
            other.register_comm_hook(state, adasum.torch.hook)
            raises(ValueError, ["bucket 0", "of shape (", "State"], lambda: loss(other, RANK, 0).backward())
        sparse = torch.nn.Sequential(torch.nn.Embedding(4, 3, sparse=True))
        raises(ValueError, ["'0.weight'", "sparse=False"], lambda: adasum.torch.State(world, sparse))
        raises(TypeError, ["'first.weight'", "float64"], lambda: adasum.torch.State(world, Network().double()))
        raises(ValueError, ["no parameter"], lambda: adasum.torch.State(world, torch.nn.Tanh()))
        raises(TypeError, ["DistributedDataParallel", "Network"], lambda: adasum.torch.register(module, world))
        raises(TypeError, ["world is a Network"], lambda: adasum.torch.State(module, module))
        reducer = adasum.GradientReducer(world, dict(module.named_parameters()))
        wrong = [p.detach().to(torch.bfloat16) for p in module.parameters()]
        raises(ValueError, ["'first.weight'", "bfloat16", "float32"], lambda: reducer.reduce(wrong, 0))
        # On the CPU: not every backend has sparse tensors.
        wrong[0] = torch.eye(2).to_sparse()
        raises(TypeError, ["'first.weight'", "the tensor is sparse (sparse_coo)", "to_dense()"], lambda: reducer.reduce(wrong, 0))
        reducer.close()


# Optimizers


def train(network, optimizer, passes=1, steps=STEPS, first=0):
    for step in range(first, first + steps):
        optimizer.zero_grad()
        for i in range(passes):
            loss(network, RANK, step * passes + i).backward()
        optimizer.step()


@test
def delta_types():
    for make in (sgd, adam):
        for dtype, tolerance in TOLERANCES.items():
            model = Network().to(dtype).to(DEVICE)
            with adasum.torch.DistributedOptimizer(make(model), model.named_parameters()) as optimizer:
                train(model, optimizer)
                same(f"steps of {make.__name__}, {dtype}", model, delta_reference(make, dtype=dtype), tolerance)


@test
def delta_passes():
    """Gradients of up to backward_passes_per_step passes are added; one more is an error that names a parameter."""
    model = Network().to(DEVICE)
    optimizer = adasum.torch.DistributedOptimizer(adam(model), model.named_parameters(), backward_passes_per_step=2)
    with optimizer:
        train(model, optimizer, passes=2)
        same("two passes a step", model, delta_reference(adam, passes=2))
        loss(model, RANK, 0).backward()
        loss(model, RANK, 0).backward()
        raises(AssertionError, ["backward_passes_per_step", "is 2", "'last."], lambda: loss(model, RANK, 0).backward())
        optimizer.zero_grad()
        optimizer.set_backward_passes_per_step(1)
        loss(model, RANK, 0).backward()
        raises(AssertionError, ["is 1"], lambda: loss(model, RANK, 0).backward())
    loss(model, RANK, 0).backward()


@test
def delta_checkpoint():
    """Each rank has its own checkpoint; two steps and two resumed ones are as four."""
    first = Network().to(DEVICE)
    with adasum.torch.DistributedOptimizer(adam(first)) as optimizer:
        train(first, optimizer, steps=2)
        saved = [part.state_dict() for part in (first, optimizer)]
    second = Network().to(DEVICE)
    second.load_state_dict(saved[0])
    with adasum.torch.DistributedOptimizer(adam(second)) as optimizer:
        optimizer.load_state_dict(saved[1])
        train(second, optimizer, steps=2, first=2)
        same("steps, resumed", second, delta_reference(adam))


@test
def delta_scaler():
    """An infinity on one rank: all skip the step and lower the scale alike; also with gradients that the program unscales."""
    for unscales in (False, True):
        model = Network().to(DEVICE)
        scaler = adasum.torch.GradScaler(DEVICE, init_scale=1024.0)
        with adasum.torch.DistributedOptimizer(adam(model)) as optimizer:
            for step in (0, None, 1, 2, 3):
                optimizer.zero_grad()
                value = loss(model, RANK, step or 0)
                scaler.scale(value * math.inf if step is None and RANK == SIZE - 1 else value).backward()
                if unscales:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e6)
                scaler.step(optimizer)
                scaler.update()
            assert scaler.get_scale() == 512.0, scaler.get_scale()
            same("steps, GradScaler", model, delta_reference(adam))


@test
def other_scalers():
    """torch's own GradScaler is refused on all ranks, whoever has an infinity; but not for gradients that are reduced already."""
    # As in a program that has made none of ours.
    adasum.torch.optimizers._Wrapper._has_scaler = False
    for op in adasum.torch.Adasum, adasum.torch.Average:
        model = Network().to(DEVICE)
        with adasum.torch.DistributedOptimizer(sgd(model), op=op) as optimizer:
            scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0)
            scaler.scale(loss(model, RANK, 0) * (math.inf if RANK == 0 else 1)).backward()
            raises(RuntimeError, ["adasum.torch.GradScaler"], lambda: scaler.step(optimizer))
            torch.amp.GradScaler(DEVICE, enabled=False).step(optimizer)
    # Horovod's way.
    for skips in (True, False):
        model = Network().to(DEVICE)
        scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0)
        with adasum.torch.DistributedOptimizer(sgd(model), op=adasum.torch.Average) as optimizer:
            for step in (0, None, 1, 2, 3):
                optimizer.zero_grad()
                value = loss(model, RANK, step or 0)
                scaler.scale(value * math.inf if step is None and RANK == SIZE - 1 else value).backward()
                optimizer.synchronize()
                scaler.unscale_(optimizer)
                with optimizer.skip_synchronize() if skips else contextlib.nullcontext():
                    scaler.step(optimizer)
                scaler.update()
            assert scaler.get_scale() == 512.0, scaler.get_scale()
            same("average, torch's GradScaler", model, gradient_reference(sgd, average))
    with adasum.torch.world(devices_per_server=1) as world, world.part([RANK], 1) as alone:
        model = Network().to(DEVICE)
        with adasum.torch.DeltaOptimizer(sgd(model), alone) as optimizer:
            scaler = torch.amp.GradScaler(DEVICE)
            scaler.scale(loss(model, RANK, 0)).backward()
            scaler.step(optimizer)


@test
def delta_idle():
    """A parameter without a gradient on any rank stays; one that only rank 0 has a gradient for moves as there."""
    class Halves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mine, self.common, self.idle = (torch.nn.Parameter(torch.full((3,), 2.0)) for _ in range(3))

        def forward(self):
            return (self.common * self.common).sum() + ((self.mine * 3).sum() if RANK == 0 else 0)

    model = Halves().to(DEVICE)
    with adasum.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.25)) as optimizer:
        optimizer.zero_grad()
        model().backward()
        optimizer.step()
        found = {name: tensor.tolist() for name, tensor in weights(model).items()}
    # All steps of `common` are equal, so their AdaSum is one of them.
    assert found == {"mine": [1.25] * 3, "common": [1.0] * 3, "idle": [2.0] * 3}, found


@test
def delta_sparse():
    """A sparse embedding: each rank steps on its rows, the steps are combined."""
    def model():
        torch.manual_seed(3)
        return torch.nn.Embedding(9, 4, sparse=True)

    def loss_of(network, rank, device):
        numbers = torch.tensor([rank % 9, (2 * rank + 1) % 9, 8], device=device)
        return (network(numbers) ** 2).sum()

    mine = model().to(DEVICE)
    with adasum.torch.DistributedOptimizer(torch.optim.SGD(mine.parameters(), lr=0.1), mine.named_parameters()) as optimizer:
        optimizer.zero_grad()
        loss_of(mine, RANK, DEVICE).backward()
        assert mine.weight.grad.is_sparse
        assert not optimizer.overflow()
        optimizer.step()
        deltas = []
        for rank in range(SIZE):
            other = model().double()
            loss_of(other, rank, "cpu").backward()
            deltas.append(0.1 * other.weight.grad.to_dense())
        same("steps, sparse", mine, {"weight": model().weight.detach().double() - tree(deltas)})
    with adasum.torch.DistributedOptimizer(
        torch.optim.SGD(mine.parameters(), lr=0.1), mine.named_parameters(), op=adasum.torch.Average
    ) as optimizer:
        raises(ValueError, ["'weight'", "sparse_as_dense"], optimizer.step)
    before = mine.weight.detach().cpu().double()
    with adasum.torch.DistributedOptimizer(
        torch.optim.SGD(mine.parameters(), lr=0.1), op=adasum.torch.Sum, sparse_as_dense=True
    ) as optimizer:
        optimizer.zero_grad()
        loss_of(mine, RANK, DEVICE).backward()
        optimizer.step()
        gradients = torch.zeros_like(before)
        for rank in range(SIZE):
            for row in (rank % 9, (2 * rank + 1) % 9, 8):
                gradients[row] += 2 * before[row]
        same("sum of sparse gradients", mine, {"weight": before - 0.1 * gradients})


@test
def delta_failed_step():
    """A step of the wrapped optimizer that fails leaves no open step."""
    model = Network().to(DEVICE)
    with adasum.torch.DistributedOptimizer(adam(model)) as optimizer:
        def fail(*_):
            raise KeyError("before the step")

        registered = optimizer.register_step_pre_hook(fail)
        loss(model, RANK, 0).backward()
        raises(KeyError, ["before the step"], optimizer.step)
        registered.remove()
        train(model, optimizer)
        same("steps after a failed one", model, delta_reference(adam))


@test
def delta_closure():
    model = Network().to(DEVICE)
    with adasum.torch.DistributedOptimizer(adam(model)) as optimizer:
        for step in range(STEPS):
            def closure():
                optimizer.zero_grad()
                value = loss(model, RANK, step)
                value.backward()
                return value.item()

            assert optimizer.step(closure) > 0
        same("steps with a closure", model, delta_reference(adam))


class Rebinding(torch.optim.Optimizer):
    """Gives parameters other memory in each step."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data = parameter.data - group["lr"] * parameter.grad


@test
def delta_rebound():
    model = Network().to(DEVICE)
    with adasum.torch.DistributedOptimizer(two_groups(model, lambda groups: Rebinding(groups, {}))) as optimizer:
        train(model, optimizer)
        same("parameters in other memory", model, delta_reference(lambda copy: two_groups(copy, torch.optim.SGD)))


@test
def dropped_batch():
    """A reduction whose step is left out is none of the next step's, nor are its backward passes."""
    for forget in ("optimizer", "model", None):
        model = Network().to(DEVICE)
        with adasum.torch.DistributedOptimizer(sgd(model), op=adasum.torch.Average, backward_passes_per_step=2) as optimizer:
            loss(model, RANK, 9).backward()
            optimizer.synchronize()
            if forget == "optimizer":
                optimizer.zero_grad()
            elif forget == "model":
                model.zero_grad()
            else:
                for parameter in model.parameters():
                    parameter.grad = None
            loss(model, RANK, 0).backward()
            optimizer.step()
            same(f"a dropped batch, {forget}", model, gradient_reference(sgd, average, steps=1))


@test
def forgotten_optimizer():
    """One that nobody closed counts no more, and a scaler that leaves a step out starts the count anew."""
    model = Network().to(DEVICE)
    first = adasum.torch.DistributedOptimizer(sgd(model), model.named_parameters())
    loss(model, RANK, 0).backward()
    del first
    gc.collect()
    with adasum.torch.DistributedOptimizer(sgd(model), model.named_parameters()) as optimizer:
        scaler = adasum.torch.GradScaler(DEVICE.partition(":")[0], init_scale=2.0)
        for step in range(2):
            model.zero_grad()
            value = loss(model, RANK, step) * (float("inf") if step == 0 else 1.0)
            scaler.scale(value).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 1.0


@test
def unfit_options():
    """What would leave ranks with different weights, or would not hold."""
    model = Network().to(DEVICE)
    with adasum.torch.world(devices_per_server=1) as world:
        for make in (adasum.torch.GradientOptimizer, adasum.torch.DeltaOptimizer):
            raises(ValueError, ["scattered leaves each result on one rank"], lambda: make(sgd(model), world, scattered=True))
            raises(ValueError, ["devices_per_server is 2", "has 1 ranks"], lambda: make(sgd(model), world, devices_per_server=2))
        raises(ValueError, ["scattered"], lambda: adasum.torch.State(world, model, scattered=True))
        adasum.torch.GradientOptimizer(sgd(model), world, devices_per_server=1).close()


@test
def means_and_sums():
    for op, combine in ((adasum.torch.Average, average), (adasum.torch.Sum, total)):
        for dtype, tolerance in TOLERANCES.items():
            model = Network().to(dtype).to(DEVICE)
            with adasum.torch.DistributedOptimizer(sgd(model), model.named_parameters(), op=op) as optimizer:
                train(model, optimizer)
                same(f"{op}, {dtype}", model, gradient_reference(sgd, combine, dtype=dtype), tolerance)
    model = Network().to(DEVICE)
    with adasum.torch.DistributedOptimizer(
        sgd(model), op=adasum.torch.Average, gradient_predivide_factor=Fraction(4), backward_passes_per_step=2
    ) as optimizer:
        train(model, optimizer, passes=2)
        same("average, divided before", model, gradient_reference(sgd, average, passes=2))


@test
def clipped():
    """Gradients may be changed between reduction and step, in Horovod's words and without them."""
    def halved(vectors):
        return average(vectors) / 2

    for skips in (False, True):
        model = Network().to(DEVICE)
        with adasum.torch.DistributedOptimizer(sgd(model), op=adasum.torch.Average) as optimizer:
            for step in range(STEPS):
                optimizer.zero_grad()
                loss(model, RANK, step).backward()
                optimizer.synchronize()
                for parameter in model.parameters():
                    parameter.grad.mul_(0.5)
                if skips:
                    with optimizer.skip_synchronize():
                        optimizer.step()
                else:
                    optimizer.step()
            same("changed gradients", model, gradient_reference(sgd, halved))


@test
def broadcasts():
    """Weights, buffers and states of all kinds come from the root."""
    torch.manual_seed(RANK)
    root = SIZE - 1
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).to(DEVICE)
    model.register_buffer("brain", torch.full((2, 3), float(RANK), dtype=torch.bfloat16, device=DEVICE).t())
    adasum.torch.broadcast_parameters(model.state_dict(), root_rank=root)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (RANK + 1))
    if RANK == root:
        model(torch.ones(6, 4, device=DEVICE)).sum().backward()
        optimizer.step()
    adasum.torch.broadcast_parameters(model.named_parameters(), root_rank=root)
    adasum.torch.broadcast_parameters(list(model.buffers()), root_rank=root)
    adasum.torch.broadcast_optimizer_state(optimizer, root_rank=root)
    assert optimizer.param_groups[0]["lr"] == 0.1 * SIZE
    mine = [tensor.tolist() for tensor in model.state_dict().values()]
    mine += [value.tolist() for of_one in optimizer.state_dict()["state"].values() for value in of_one.values()]
    assert len(optimizer.state) == 4 and mine[-1] != mine[-2]
    everyone = [None] * SIZE
    dist.all_gather_object(everyone, mine, group=HOST)
    assert all(other == mine for other in everyone)
    assert model.brain[0, 0].item() == root
    assert adasum.torch.broadcast_object(RANK, root) == root
    assert adasum.torch.broadcast_object(obj=RANK, root_rank=root, name="rank", group=HOST) == root
    raises(TypeError, ["name is a ProcessGroup", "group="], lambda: adasum.torch.broadcast_object(RANK, root, HOST))
    for call in (
        lambda: adasum.torch.broadcast_parameters([], 0, group="all"),
        lambda: adasum.torch.broadcast_optimizer_state(optimizer, 0, group="all"),
        lambda: adasum.torch.broadcast_object(1, 0, group="all"),
    ):
        raises(TypeError, ["group is a str: it must be a process group of torch.distributed, or None for all ranks"], call)
    raises(TypeError, ["params is a Tensor"], lambda: adasum.torch.broadcast_parameters(torch.ones(2), 0))
    raises(TypeError, ["params is a Sequential"], lambda: adasum.torch.broadcast_parameters(model, 0))
    for kind in (list, tuple):
        weight = torch.full((2,), float(RANK), device=DEVICE)
        adasum.torch.broadcast_parameters([kind(["w", weight])], root_rank=root)
        assert weight.tolist() == [root] * 2, weight
    # Extra state, which is no tensor.
    adasum.torch.broadcast_parameters({"w": weight, "_extra_state": {"step": RANK}}, root_rank=0)
    for wrong, says in (
        ("w", "params[1] is a str"),
        (None, "params[1] is a NoneType"),
        (["w", 3], "params[1] is a list of (str, int)"),
        ([weight, weight], "params[1] is a list of (Tensor, Tensor)"),
        (("w", weight, 0), "params[1] is a tuple of (str, Tensor, int)"),
        ([], "params[1] is a list of ()"),
    ):
        weight.fill_(RANK)
        raises(TypeError, [says], lambda: adasum.torch.broadcast_parameters([weight, wrong], 0))
        assert weight.tolist() == [RANK] * 2, (wrong, weight)
    state = optimizer.state_dict()
    raises(TypeError, ["params['state'] is a dict", "broadcast_optimizer_state"], lambda: adasum.torch.broadcast_parameters(state, 0))
    state = sgd(model).state_dict()
    raises(TypeError, ["params has no tensor", "state, param_groups", "broadcast_optimizer_state"], lambda: adasum.torch.broadcast_parameters(state, 0))
    adasum.torch.broadcast_parameters({}, root_rank=0)
    for nested in ({"w": weight}, [weight], {"state": [(0, weight)]}):
        says = [f"params['model'] is a {type(nested).__name__} that holds tensors", "by itself"]
        raises(TypeError, says, lambda: adasum.torch.broadcast_parameters({"w": weight, "model": nested}, 0))
    for wrong in (SIZE, -1, "0", None):
        for call in (
            lambda: adasum.torch.broadcast_parameters([weight], wrong),
            lambda: adasum.torch.broadcast_optimizer_state(optimizer, wrong),
            lambda: adasum.torch.broadcast_object(1, wrong),
        ):
            raises(ValueError, [f"root_rank is {wrong!r}", f"0 to {SIZE - 1}"], call)
    raises(TypeError, ["model is a NoneType", "State(world, model)"], lambda: adasum.torch.State(model, None))
    raises(TypeError, ["optimizer is a dict"], lambda: adasum.torch.broadcast_optimizer_state(state, 0))


@test
def optimizer_errors():
    model = Network().to(DEVICE)
    plain = sgd(model)

    def wrap(**arguments):
        adasum.torch.DistributedOptimizer(plain, **arguments)

    named = list(model.named_parameters())
    raises(ValueError, ["op is 'adasum'"], lambda: wrap(op="adasum"))
    raises(ValueError, ["compression", "fp16"], lambda: wrap(compression=adasum.torch.Compression.fp16))
    raises(ValueError, ["num_groups", "bucket_bytes"], lambda: wrap(num_groups=2))
    raises(ValueError, ["groups", "bucket_bytes"], lambda: wrap(groups=[[]]))
    raises(ValueError, ["process_set", "adasum.torch.world"], lambda: wrap(process_set=object()))
    raises(ValueError, ["gradient_predivide_factor", "Average"], lambda: wrap(gradient_predivide_factor=2.0))
    raises(ValueError, ["gradient_predivide_factor is 0", "above 0"], lambda: wrap(op=adasum.torch.Average, gradient_predivide_factor=0))
    factor = dict(op=adasum.torch.Average, gradient_predivide_factor=2.0)
    raises(ValueError, ["gradient_predivide_factor and scale"], lambda: wrap(scale=0.5, **factor))
    raises(ValueError, ["reduction is 'sum'", "op asks for 'mean'"], lambda: wrap(op=adasum.torch.Average, reduction="sum"))
    for wrong in ("2", None, True):
        raises(TypeError, [f"gradient_predivide_factor is {wrong!r}"], lambda: wrap(op=adasum.torch.Average, gradient_predivide_factor=wrong))
    raises(ValueError, ["is inf", "finite"], lambda: wrap(op=adasum.torch.Average, gradient_predivide_factor=float("inf")))
    raises(ValueError, ["pairs (name, parameter)"], lambda: wrap(named_parameters=model.parameters()))
    raises(TypeError, ["named_parameters is a int"], lambda: wrap(named_parameters=3))
    raises(ValueError, ["lacks", "group 0, parameter 0"], lambda: wrap(named_parameters=dict(named[1:])))
    raises(ValueError, ["lacks", "group 0, parameter 0", "(8, 12)"], lambda: wrap(named_parameters=named[1:]))
    raises(ValueError, ["several times: first.bias"], lambda: wrap(named_parameters=named + [named[1]]))
    raises(TypeError, ["'no_option'"], lambda: wrap(no_option=1))
    raises(TypeError, ["world is a int"], lambda: wrap(world=3))
    raises(TypeError, ["takes options as keywords"], lambda: wrap(options=adasum.Options()))
    raises(TypeError, ["takes options as keywords"], lambda: adasum.torch.world(options=adasum.Options()))
    raises(TypeError, ["group is a int", "process group"], lambda: adasum.torch.world(1))
    raises(TypeError, ["radix is an option of reducers"], lambda: adasum.torch.world(radix=4))
    # Also where a module of the package could have the name.
    for name, place in adasum.torch._ELSEWHERE.items():
        raises(AttributeError, [f"{name!r}: instead of Horovod's take {place} (docs/from-horovod.md)"], lambda: getattr(adasum.torch, name))
    raises(AttributeError, ["no attribute 'no_such_name'"], lambda: adasum.torch.no_such_name)
    raises(TypeError, ["Network"], lambda: adasum.torch.DistributedOptimizer(model))
    raises(TypeError, ["LBFGS"], lambda: adasum.torch.DistributedOptimizer(torch.optim.LBFGS(model.parameters())))
    raises(ValueError, ["backward_passes_per_step is 0"], lambda: wrap(backward_passes_per_step=0))
    with adasum.torch.DistributedOptimizer(plain, named_parameters=dict(named)) as optimizer:
        raises(TypeError, ["DeltaOptimizer"], lambda: adasum.torch.DistributedOptimizer(optimizer))
        raises(AssertionError, ["skip_synchronize"], lambda: optimizer.skip_synchronize())
        raises(RuntimeError, ["wrap the optimizer again"], lambda: optimizer.add_param_group({"params": []}))
        raises(AttributeError, ["nothing"], lambda: optimizer.nothing)
        # The base class of optimizers would save and copy what lacks the wrapped one.
        raises(TypeError, ["DeltaOptimizer", "state_dict()"], lambda: torch.save(optimizer, io.BytesIO()))
        raises(TypeError, ["DeltaOptimizer", "state_dict()"], lambda: copy.deepcopy(optimizer))
        assert isinstance(optimizer, torch.optim.Optimizer) and optimizer.param_groups is plain.param_groups
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        steps = []
        optimizer.register_step_post_hook(lambda *_: steps.append(1))
        train(model, optimizer, steps=2)
        assert len(steps) == 2
    wrapped = ddp(Network())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        adasum.torch.DistributedOptimizer(sgd(wrapped.module), wrapped.named_parameters()).close()
        said = [str(warning.message) for warning in seen if "DistributedDataParallel" in str(warning.message)]
        assert len(said) == 1 and "adasum.torch.register" in said[0], said
        adasum.torch.DistributedOptimizer(sgd(wrapped.module), wrapped.module.named_parameters()).close()
        assert len(seen) == len(said), seen[len(said)]
    wide = Network().double()
    raises(TypeError, ["'first.weight'", "float64"], lambda: adasum.torch.DistributedOptimizer(sgd(wide), wide.named_parameters()))


@test
def left_by_an_error():
    """A `with` that an exception leaves waits for nobody and ends the world."""
    model = Network().to(DEVICE)
    try:
        with adasum.torch.DistributedOptimizer(sgd(model)) as optimizer:
            if RANK == 0:
                raise KeyError("on one rank only")
            # The others come to the end, too, but rank 0 takes part in nothing.
            raise KeyError("there")
    except KeyError:
        pass
    assert optimizer.world.closed and optimizer.reducer.closed
    # Passes are not counted any more.
    for _ in range(2):
        loss(model, RANK, 0).backward()
    dist.barrier(group=HOST)


# Worlds


@test
def after_a_collective():
    """A world right after a collective of torch's own, without a synchronisation of the program."""
    for _ in range(4):
        tensor = torch.ones(1 << 16).to(DEVICE)
        dist.all_reduce(tensor)
        with adasum.torch.world() as world:
            assert world.size == SIZE
        assert tensor[0].item() == SIZE


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append((record.levelname, record.getMessage()))


@test
def options_of_a_world_of_its_own():
    """Options that count for the world count for the reducer, too."""
    given = {"create_timeout_ms": 70000, "devices_per_server": SIZE // 2, "radix": 2}
    seen, made = {}, adasum.GradientReducer

    def make(*arguments, **options):
        seen.update(options)
        return made(*arguments, **options)

    adasum.GradientReducer = make
    try:
        with adasum.torch.State(None, Network().to(DEVICE), **given) as state:
            assert state.world.servers == 2 and seen == given, seen
    finally:
        adasum.GradientReducer = made


@test
def started_by_the_program():
    """Ranks that torch.multiprocessing.spawn starts have no LOCAL_RANK: each has a device of its own."""
    number = os.environ.pop("LOCAL_RANK")
    try:
        with adasum.torch.world(HOST) as world:
            assert world.device == RANK, world.device
    finally:
        os.environ["LOCAL_RANK"] = number


@test
def grouping_is_said():
    """How ranks are combined: a warning where means are taken that nobody asked for."""
    logger, records = logging.getLogger("adasum"), Records()
    logger.addHandler(records)
    logger.setLevel(logging.INFO)
    before = os.environ["LOCAL_WORLD_SIZE"]

    def said(local=before, **options):
        records.texts.clear()
        os.environ["LOCAL_WORLD_SIZE"] = str(local)
        adasum.torch.world(**options).finish()
        os.environ["LOCAL_WORLD_SIZE"] = before
        return [each for each in records.texts if " ranks: " in each[1]]

    rank_0 = RANK == 0
    assert said() == [("INFO", f"{SIZE} ranks: AdaSum of all of them")] * rank_0
    if SIZE == 4:
        means = "4 ranks: the mean of the 2 ranks of each server, AdaSum of the 2 servers"
        assert said(2) == [("WARNING", f"{means}; devices_per_server=1 combines all ranks by AdaSum")] * rank_0
        assert said(devices_per_server=2) == [("INFO", means)] * rank_0
        assert said(3)[0:1] == [
            ("WARNING", "4 ranks: AdaSum of all of them, as LOCAL_WORLD_SIZE 3 does not divide their number")
        ] * rank_0
    logger.removeHandler(records)
    logger.setLevel(logging.NOTSET)


# What a user writes


def users_ddp(model):
    model = DistributedDataParallel(model)
    state = adasum.torch.register(model)  # AdaSum
    optimizer = sgd(model.module)
    train_ddp(model, optimizer)
    state.close()  # AdaSum


def users_optimizer(model):
    optimizer = adam(model)
    optimizer = adasum.torch.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())  # AdaSum
    adasum.torch.broadcast_parameters(model.state_dict(), root_rank=0)  # AdaSum
    adasum.torch.broadcast_optimizer_state(optimizer, root_rank=0)  # AdaSum
    train(model, optimizer)
    optimizer.close()  # AdaSum


@test
def few_lines():
    """At most four lines of a training are for AdaSum, and it is one without them."""
    for program, wanted in ((users_ddp, gradient_reference(sgd, tree)), (users_optimizer, delta_reference(adam))):
        model = Network().to(DEVICE)
        program(model)
        same(program.__name__, model, wanted)
        lines = inspect.getsource(program).splitlines()
        marked = [line for line in lines if line.endswith("# AdaSum")]
        rest = "\n".join(line for line in lines if line not in marked)
        assert 0 < len(marked) <= 4 and "adasum" not in rest, lines
        compile(rest, program.__name__, "exec")


def start():
    """Process groups: torch's own, and one for what tests compare."""
    global HOST
    if DEVICE == "npu":
        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl" if DEVICE == "npu" else "gloo")
    HOST = dist.new_group(backend="gloo")


def main():
    warnings.simplefilter("error", UserWarning)
    warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")
    if DEVICE == "npu":
        warnings.simplefilter("default", UserWarning)
    start()
    chosen = [body for body in TESTS if not sys.argv[2:] or body.__name__ in sys.argv[2:]]
    assert chosen, f"no test is called {sys.argv[2:]}"
    for body in chosen:
        body()
    dist.barrier()
    dist.destroy_process_group()
    print(f"{DEVICE}: rank {RANK} of {SIZE} right, {len(chosen)} tests", flush=True)


if __name__ == "__main__":
    main()
