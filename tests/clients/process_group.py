"""torch_npu's own HCCL process group: every collective on the world and on a group, with results known beforehand; what the mock has
of operators, and DistributedDataParallel's constructor.

    torchrun --nproc-per-node N tests/clients/process_group.py"""

import datetime
import os

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  (registers the device and the backend)

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.npu.set_device(rank)
dist.init_process_group("hccl", timeout=datetime.timedelta(seconds=60))


def expect(what, found, wanted):
    found = found.cpu()
    assert torch.equal(found, wanted), f"rank {rank}: {what}: {found} instead of {wanted}"


def collectives(group, members):
    """All collectives of `group`, whose ranks are `members`; this rank is one of them."""
    me, count = members.index(rank), len(members)
    total = float(sum(member + 1 for member in members))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        x = torch.full((1000,), rank + 1, dtype=dtype).npu()
        dist.all_reduce(x, group=group)
        expect(f"all_reduce {dtype}", x, torch.full((1000,), total).to(dtype))
    x = torch.full((7,), float(rank)).npu()
    dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)
    expect("all_reduce max", x, torch.full((7,), float(max(members))))
    x = torch.full((5,), float(rank)).npu()
    dist.broadcast(x, src=members[-1], group=group)
    expect("broadcast", x, torch.full((5,), float(members[-1])))
    out = torch.empty(3 * count, device="npu")
    dist.all_gather_into_tensor(out, torch.full((3,), float(rank)).npu(), group=group)
    expect("all_gather_into_tensor", out, torch.tensor(members, dtype=torch.float32).repeat_interleave(3))
    parts = [torch.empty(4, device="npu") for _ in members]
    dist.all_gather(parts, torch.full((4,), float(rank)).npu(), group=group)
    for part, member in zip(parts, members):
        expect("all_gather", part, torch.full((4,), float(member)))
    out = torch.empty(2, device="npu")
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * count).npu(), group=group)
    expect("reduce_scatter_tensor", out, count * torch.arange(2.0 * me, 2.0 * me + 2))
    following, before = members[(me + 1) % count], members[me - 1]
    out = torch.empty(6, device="npu")
    operations = [dist.P2POp(dist.isend, torch.full((6,), float(rank)).npu(), following, group=group),
                  dist.P2POp(dist.irecv, out, before, group=group)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    expect("batch_isend_irecv", out, torch.full((6,), float(before)))
    dist.barrier(group=group)


def operators():
    """The few operators that DistributedDataParallel's constructor, `print` and common tests of collectives ask for, beside the CPU's."""
    whole, real = torch.tensor([[1, -2, 300], [4, 5, 6]]), torch.tensor([[1e-5, 2.5, -3.0], [1e6, float("nan"), float("inf")]])
    for tensor in (whole, real, real.bfloat16(), real.half(), whole > 2, torch.tensor(3.5), torch.tensor([]), torch.arange(3000.0)):
        shown, wanted = repr(tensor.npu()), repr(tensor)
        # The device may have taken a line.
        same = shown.replace(f", device='npu:{rank}'", "").split() == wanted.split()
        assert same, f"rank {rank}: {shown} instead of {wanted}"
    x, y = torch.tensor([1.5, -2.0, 3.0]), torch.tensor([[2.0], [0.25]])
    for tensor in (x, x.bfloat16(), x.half()):
        on_device = tensor.npu()
        expect("product", on_device * y.to(tensor.dtype).npu(), tensor * y.to(tensor.dtype))
        expect("product with a number", on_device * 3, tensor * 3)
        expect("product in place", on_device.clone().mul_(2), tensor * 2)
        expect("quotient", on_device.clone().div_(3), tensor / 3)
        expect("quotient with a number", on_device / 3, tensor / 3)
        expect("finite", torch.isfinite(on_device), torch.isfinite(tensor))
        expect("joined", torch.cat([on_device, on_device[1:]]), torch.cat([tensor, tensor[1:]]))
        expect("another type", on_device.double().float(), tensor.double().float())
    expect("joined in the second axis", torch.cat([whole.npu(), whole.npu().t()[:2, :1]], dim=1), torch.cat([whole, whole.t()[:2, :1]], dim=1))
    expect("filled", torch.full((2, 3), 2.5, device="npu"), torch.full((2, 3), 2.5))
    expect("filled in place", torch.empty(4, dtype=torch.int32, device="npu").fill_(-7), torch.full((4,), -7, dtype=torch.int32))
    mean = torch.full((3,), float(rank)).npu()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    expect("mean over ranks", mean, torch.full((3,), (size - 1) / 2))


def constructor():
    """DistributedDataParallel unmodified: it compares shapes, and gives all ranks the weights and buffers of rank 0."""
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    torch.manual_seed(0)
    of_rank_0 = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    model = torch.nn.parallel.DistributedDataParallel(model.npu())
    for found, wanted in zip(model.module.state_dict().values(), of_rank_0.state_dict().values()):
        expect("DistributedDataParallel", found, wanted)


operators()
constructor()
collectives(None, list(range(size)))
if rank == 0:
    dist.send(torch.arange(100.0).npu(), 1)
elif rank == 1:
    got = torch.empty(100, device="npu")
    dist.recv(got, 0)
    expect("recv", got, torch.arange(100.0))
everyone = dist.new_group(list(range(size)))
collectives(everyone, list(range(size)))
if size > 2:
    for members in (list(range(0, size, 2)), list(range(1, size, 2))):
        group = dist.new_group(members)
        if rank in members:
            collectives(group, members)
torch.npu.synchronize()
dist.destroy_process_group()
print(f"rank {rank} of {size}: right", flush=True)
