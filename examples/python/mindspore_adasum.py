"""A communicator that MindSpore and AdaSum share.

    msrun --worker_num 2 --local_worker_num 2 --join True mindspore_adasum.py

The program makes an HcclComm by root info, which MindSpore's own broadcast carries. MindSpore adopts it as a group and adds tensors
over it; AdaSum borrows it to make its world, reduces a tensor of MindSpore's where it lies, and has a gradient reducer. All of it is
queued on MindSpore's stream: nobody waits.

On the mock this is as far as MindSpore's Ascend target goes: training needs operators (aclnn) that the mock has not."""

import ctypes

import mindspore
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.communication import create_group, get_group_size, get_rank, init
from mindspore.communication.comm_func import all_reduce, broadcast

try:
    from mindspore._c_expression import GroupOptions
except ImportError as error:
    raise SystemExit("this MindSpore cannot adopt communicators: it has no GroupOptions") from error

import adasum
import adasum.mindspore as adasum_ms
from adasum._abi import ROOT_INFO_BYTES


def on_device(values):
    return Tensor(values).to("Ascend")


def make_comm(rank, size):
    """An HcclComm of all ranks."""
    hccl = ctypes.CDLL("libhccl.so")
    info = np.zeros(ROOT_INFO_BYTES, np.int8)
    if rank == 0:
        check(hccl.HcclGetRootInfo(info.ctypes.data_as(ctypes.c_void_p)))
    info = broadcast(on_device(info), 0).asnumpy().copy()
    comm = ctypes.c_void_p()
    check(hccl.HcclCommInitRootInfo(ctypes.c_uint32(size), info.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(rank),
                                    ctypes.byref(comm)))
    return comm.value


def check(code):
    if code != 0:
        raise RuntimeError(f"HCCL failed with {code}")


def main():
    mindspore.set_device("Ascend")
    init("hccl")
    rank, size = get_rank(), get_group_size()

    total = result(all_reduce(on_device(np.full(8, rank + 1, np.float32))))
    print(f"rank {rank}: MindSpore's world: {total.asnumpy()[0]}", flush=True)

    comm = make_comm(rank, size)
    options = GroupOptions()
    options.hccl_config = {"hccl_comm": comm}
    create_group("shared", list(range(size)), options)
    total = result(all_reduce(on_device(np.full(8, rank + 1, np.float32)), group="shared"))
    print(f"rank {rank}: the shared communicator: {total.asnumpy()[0]}", flush=True)

    gradient = on_device(np.eye(size, dtype=np.float32)[rank])
    with adasum.World.from_comm(comm, devices_per_server=1) as world:
        with adasum.GradientReducer(world, [gradient]) as reducer:
            stream = adasum_ms.current_stream()
            for _ in range(20):
                # Gradients at right angles are added, equal ones are averaged: after the first time nothing changes.
                reducer.reduce([gradient], stream)
                # MindSpore's next operator follows on the same stream.
                total = result(all_reduce(gradient))
            reducer.synchronize(stream)
            reducer.forget_stream(stream)
        assert np.allclose(gradient.asnumpy(), 1), gradient.asnumpy()
        assert np.allclose(total.asnumpy(), size), total.asnumpy()
        print(f"rank {rank}: AdaSum: {gradient.asnumpy()}", flush=True)

        means = adasum_ms.DistributedGradReducer([Parameter(gradient, name="weight")], mean=True, world=world)
        given = on_device(np.full(8, rank, np.float32))
        (mean,) = means((given,))
        assert np.allclose(mean.asnumpy(), (size - 1) / 2), mean.asnumpy()
        assert np.allclose(given.asnumpy(), rank), "a gradient was overwritten"
        means.close()
        print(f"rank {rank}: the mean: {mean.asnumpy()[0]}", flush=True)


def result(answer):
    """Newer versions give a handle beside the tensor."""
    return answer[0] if isinstance(answer, tuple) else answer


if __name__ == "__main__":
    main()
