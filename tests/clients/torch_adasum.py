"""adasum.torch beside torch's own process group: worlds of groups, streams, types, and the wrapper for optimizers.

    torchrun --nproc-per-node N torch_adasum.py cpu
    torchrun --nproc-per-node N -m adasum.torch.cpu_operators torch_adasum.py npu [reversed]

With `reversed` the last rank has device 0, and torch's process group has no backend's name. What comes out is compared with AdaSum in
the arithmetic of digits_reference.py, bit for bit in fp32."""

import gc
import os
import sys
import weakref
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parent))

import adasum  # noqa: E402
import adasum.torch as adasum_torch  # noqa: E402
from adasum.torch import groups  # noqa: E402
from digits_reference import adasum as reference  # noqa: E402
from digits_reference import device_dot  # noqa: E402

DEVICE = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SHAPES = [(1,), (7, 3), (64, 64), (10000,), (2, 3, 5, 4)]


def values(rank, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    made = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
    # Layouts in which axes have another order are tensors, too.
    return [tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor for tensor in made]


def expect(what, found, wanted, tolerance=0.0):
    for index, (x, y) in enumerate(zip(found, wanted)):
        worst = (x.cpu().double() - y.double()).abs().max().item()
        assert worst <= tolerance, f"rank {RANK}: {what}, tensor {index}: off by {worst}"


def combined(of_ranks, locals_=1):
    """AdaSum of one tensor of all ranks, its scalars summed in the order of memory, in fp32."""
    if of_ranks[0].dim() < 4:
        return reference([x.float() for x in of_ranks], locals_, device_dot)
    return reference([x.float().permute(0, 2, 3, 1) for x in of_ranks], locals_, device_dot).permute(0, 3, 1, 2)


def expected(ranks, locals_=1, seed=0):
    return [combined(of_ranks, locals_) for of_ranks in zip(*(values(rank, seed=seed) for rank in ranks))]


def reduces(world, ranks, what):
    assert (world.rank, world.size) == (ranks.index(RANK), len(ranks)), what
    tensors = [tensor.to(DEVICE) for tensor in values(RANK)]
    with adasum.GradientReducer(world, tensors) as reducer:
        reducer.reduce(tensors, adasum_torch.current_stream(tensors[0]))
        expect(what, tensors, expected(ranks, world.devices_per_server))


def worlds():
    """On all ranks, on a group of all, and on groups of every second rank; torch's collectives go on between and after."""
    everyone, evens, odds = list(range(SIZE)), list(range(0, SIZE, 2)), list(range(1, SIZE, 2))
    with adasum_torch.world() as world:
        reduces(world, everyone, "all ranks")
    if SIZE % 2 == 0 and SIZE > 2:
        with adasum_torch.world(devices_per_server=2) as world:
            reduces(world, everyone, "two ranks a server")
    with adasum_torch.world(dist.new_group(everyone)) as world:
        reduces(world, everyone, "a group of all ranks")
        total = torch.ones(3).to(DEVICE)
        dist.all_reduce(total)
        expect("all_reduce beside the world", [total], [torch.full((3,), float(SIZE))])
    groups = [dist.new_group(members) for members in (evens, odds)]
    members = evens if RANK % 2 == 0 else odds
    if len(members) > 1:
        with adasum_torch.world(groups[RANK % 2]) as world:
            reduces(world, members, f"group {members}")
    dist.barrier()


def types(world):
    """16-bit types: the result of the values as they are, rounded at the end."""
    for dtype, tolerance in ((torch.bfloat16, 0.06), (torch.float16, 0.008)):
        tensors = [tensor.to(DEVICE) for tensor in values(RANK, dtype)]
        exact = [values(rank, dtype) for rank in range(SIZE)]
        wanted = [combined(of_ranks) for of_ranks in zip(*exact)]
        with adasum.GradientReducer(world, tensors) as reducer:
            reducer.reduce(tensors, adasum_torch.current_stream(tensors[0]))
            expect(f"{dtype}", tensors, wanted, tolerance)


def streams(world):
    """Reductions are ordered with what torch queues before and after on the stream, without a wait of the host."""
    if DEVICE != "npu":
        return
    side = torch.npu.Stream()
    with torch.npu.stream(side):
        with adasum.GradientReducer(world, adasum.specs(values(RANK))) as reducer:
            for seed in range(3):
                host = [tensor.pin_memory() for tensor in values(RANK, seed=seed)]
                tensors = [tensor.to(DEVICE, non_blocking=True) for tensor in host]
                reducer.reduce(tensors, adasum_torch.current_stream(tensors[0]))
                copies = [tensor.clone() for tensor in tensors]
                side.synchronize()
                expect(f"side stream, {seed}", copies, expected(range(SIZE), seed=seed))


def refuses_an_old_torch_npu(world):
    """Gradients in buffers need torch_npu's from_dlpack."""
    import torch_npu

    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).to(DEVICE).parameters(), lr=0.1)
    function = torch_npu._C._npu_from_dlpack
    del torch_npu._C._npu_from_dlpack
    try:
        adasum_torch.GradientOptimizer(optimizer, world, gradient_buffers=True, exchange="shared")
    except RuntimeError as error:
        assert "gradient_buffers needs a newer torch_npu" in str(error), error
    else:
        raise AssertionError("a torch_npu without _npu_from_dlpack is not refused")
    finally:
        torch_npu._C._npu_from_dlpack = function


def buffers(world):
    """Gradients in the reducer's buffers, where the other ranks read them."""
    if DEVICE != "npu":
        # Not for CPU tensors, with or without torch_npu.
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
        adasum_torch.GradientOptimizer(optimizer, world, gradient_buffers=True, exchange="shared").close()
        return
    refuses_an_old_torch_npu(world)
    shared = {"exchange": "shared", "gradient_buffers": True}
    for dtype, tolerance in ((torch.float32, 0.0), (torch.bfloat16, 0.06)):
        own = values(RANK, dtype)
        with adasum.GradientReducer(world, adasum.specs(own), **shared) as reducer:
            gradients = []
            for place, x in zip(reducer.gradient_buffers(), own):
                # 16-bit tensors with few elements travel as fp32.
                assert (place is None) == (dtype != torch.float32 and x.numel() < 64)
                gradient = torch.empty_like(x, device=DEVICE) if place is None else torch.from_dlpack(place)
                assert (gradient.dtype, gradient.device.type, gradient.device.index) == (dtype, "npu", world.device)
                gradients.append(gradient.as_strided(x.size(), x.stride()).copy_(x))
            reducer.reduce(gradients, adasum_torch.current_stream(gradients[0]))
            exact = [values(rank, dtype) for rank in range(SIZE)]
            expect(f"buffers of {dtype}", gradients, [combined(of_ranks) for of_ranks in zip(*exact)], tolerance)

    def trained(**choices):
        torch.manual_seed(7)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 2), torch.nn.Flatten(), torch.nn.Linear(27, 3))
        model = model.to(DEVICE)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with adasum_torch.GradientOptimizer(sgd, world, model, **choices) as optimizer:
            before = [parameter.grad is not None and parameter.grad.data_ptr() for parameter in model.parameters()]
            for step in range(3):
                optimizer.zero_grad()
                generator = torch.Generator().manual_seed(100 * step + RANK)
                (model(torch.randn(5, 1, 4, 4, generator=generator).to(DEVICE)) ** 2).mean().backward()
                optimizer.step()
            after = [parameter.grad.data_ptr() for parameter in model.parameters()]
            assert not choices or before == after, "gradients have left the reducer's buffers"
        # Nothing looks into freed memory.
        assert not choices or not set(after) & {parameter.grad.data_ptr() for parameter in model.parameters()}
        return [parameter.detach().cpu() for parameter in [*model.parameters(), *(p.grad for p in model.parameters())]]

    expect("optimizer with gradients in buffers", trained(**shared), trained())
    # Gradients of an optimizer that nobody has closed keep the memory.
    model = torch.nn.Linear(9, 9).to(DEVICE)
    optimizer = adasum_torch.GradientOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), world, model, **shared)
    reducer = weakref.ref(optimizer._reducer)
    del optimizer
    gc.collect()
    assert reducer() is not None, "the buffers are gone, their gradients are not"
    model(torch.ones(9).to(DEVICE)).sum().backward()
    model.zero_grad()
    gc.collect()
    assert reducer() is None, "nobody uses the buffers any more"


def rows(world):
    """Rows of all ranks, with numbers of both types. On an NPU they are in the reducer's memory, of which torch makes a tensor."""
    for name in ("int32", "int64"):
        indices, values_ = torch.tensor([RANK, 7], dtype=getattr(torch, name)).to(DEVICE), torch.full((2, 3), float(RANK)).to(DEVICE)
        with adasum.SparseReducer(world, "rows", 3, 2, index=name, exact=True, reduction="sum") as reducer:
            found = reducer.gather(indices, values_, adasum_torch.current_stream(values_))
            gathered = torch.from_dlpack(found.values) if DEVICE == "npu" else torch.frombuffer(found.values, dtype=torch.float32)
            assert gathered.device == values_.device, gathered.device
            expect(f"rows with numbers of {name}", [gathered], [torch.arange(SIZE).repeat_interleave(6).float()])


def formats(world):
    """Tensors in torch_npu's internal formats are refused: their memory is not what sizes and strides say."""
    if DEVICE != "npu":
        return
    import torch_npu

    for number, shape in ((29, (33, 17)), (29, (32, 16)), (3, (2, 16, 4, 4)), (4, (16, 16, 3, 3))):
        tensor = torch_npu.empty_with_format(shape, dtype=torch.float16, device=DEVICE, acl_format=number)
        assert torch_npu.get_npu_format(tensor) == number and tensor.is_contiguous(), (number, shape)
        for call in (lambda: adasum.view(tensor), lambda: adasum.GradientReducer(world, {"w": torch.nn.Parameter(tensor)})):
            try:
                call()
            except ValueError as error:
                assert "torch.npu.config.allow_internal_format = False" in str(error), error
            else:
                raise AssertionError(f"format {number} of {shape} is not refused")
    for number, shape in ((0, (2, 3, 4, 5)), (2, (3, 5)), (30, (2, 3, 4, 5, 6))):
        tensor = torch_npu.empty_with_format(shape, dtype=torch.float16, device=DEVICE, acl_format=number)
        assert torch_npu.get_npu_format(tensor) == number, (number, shape)
        assert adasum.view(tensor).count == tensor.numel()


def delta(world, form):
    """Three steps of Adam in which each rank keeps a state of its own, beside the same in one process."""
    def model():
        torch.manual_seed(7)
        return torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    def loss(network, rank, step, device):
        generator = torch.Generator().manual_seed(100 * step + rank)
        x, y = torch.randn(5, 12, generator=generator), torch.randn(5, 3, generator=generator)
        return ((network(x.to(device)) - y.to(device)) ** 2).mean()

    mine = model().to(DEVICE)
    adam = torch.optim.Adam(mine.parameters(), lr=0.01)
    optimizer = adasum_torch.DeltaOptimizer(adam, world, mine, delta_form=form)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    others = [model() for _ in range(SIZE)]
    adams = [torch.optim.Adam(other.parameters(), lr=0.01) for other in others]
    for step in range(3):
        optimizer.zero_grad()
        loss(mine, RANK, step, DEVICE).backward()
        optimizer.step()
        schedule.step()
        deltas = []
        for rank, (other, adam) in enumerate(zip(others, adams)):
            old = [parameter.detach().clone() for parameter in other.parameters()]
            adam.zero_grad()
            loss(other, rank, step, "cpu").backward()
            adam.step()
            for group in adam.param_groups:
                group["lr"] *= 0.5
            deltas.append([before - after.detach() for before, after in zip(old, other.parameters())])
        changes = [combined(of_ranks) for of_ranks in zip(*deltas)]
        with torch.no_grad():
            for other in others:
                for parameter, before, change in zip(other.parameters(), old, changes):
                    parameter.copy_(before - change)
    optimizer.close()
    expect(f"delta {form}", [p.detach() for p in mine.parameters()], [p.detach() for p in others[0].parameters()])


def main():
    reverse = sys.argv[2:] == ["reversed"]
    if DEVICE == "npu":
        local = int(os.environ["LOCAL_RANK"])
        torch.npu.set_device(SIZE - 1 - local if reverse else local)
    dist.init_process_group(None if reverse else "hccl" if DEVICE == "npu" else "gloo")
    assert groups.is_hccl() == (DEVICE == "npu")
    worlds()
    if DEVICE == "npu":
        # Ranks of a group without HCCL meet on torch's current NPU, too.
        gloo = dist.new_group(list(range(SIZE)), backend="gloo")
        assert not groups.is_hccl(gloo)
        with adasum_torch.world(gloo) as world:
            assert world.device == torch.npu.current_device()
            reduces(world, list(range(SIZE)), "a group of gloo")
    with adasum_torch.world() as world:
        types(world)
        streams(world)
        buffers(world)
        rows(world)
        formats(world)
        for form in ("server_mean", "local"):
            delta(world, form)
    dist.barrier()
    dist.destroy_process_group()
    print(f"{DEVICE}: rank {RANK} of {SIZE} right", flush=True)


main()
