"""A communicator that MindSpore and AdaSum share.

    msrun --worker_num 2 --local_worker_num 2 --join True mindspore_adasum.py

The program makes an HcclComm by root info, which MindSpore's own broadcast carries. MindSpore adopts it as a group and adds tensors
over it; AdaSum borrows it to make its world and reduces a tensor of MindSpore's where it lies.

On the mock this is as far as MindSpore goes: training needs operators (aclnn) that the mock has not."""

import ctypes

import mindspore
import numpy as np
from mindspore import Tensor
from mindspore.communication import create_group, get_group_size, get_rank, init
from mindspore.communication.comm_func import all_reduce, broadcast

try:
    from mindspore._c_expression import GroupOptions
except ImportError as error:
    raise SystemExit("this MindSpore cannot adopt communicators: it has no GroupOptions") from error

import adasum
from adasum._abi import ROOT_INFO_BYTES


def on_device(values):
    return Tensor(values).to("Ascend")


def view(tensor):
    """The device memory of an fp32 tensor, for adasum."""
    assert tensor.dtype == mindspore.float32
    return adasum.View(tensor.data_ptr(), tensor.size, adasum.F32, device=True)


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
        with adasum.GradientReducer(world, [adasum.TensorSpec("gradient", gradient.size, adasum.F32)]) as reducer:
            # MindSpore's streams have no address in Python: its work has to be done before another stream goes on.
            mindspore.runtime.synchronize()
            with adasum.Stream(world.device) as stream:
                reducer.reduce([view(gradient)], stream)
                reducer.synchronize(stream)
                reducer.forget_stream(stream)
    # Gradients at right angles are added.
    assert np.allclose(gradient.asnumpy(), 1), gradient.asnumpy()
    print(f"rank {rank}: AdaSum: {gradient.asnumpy()}", flush=True)


def result(answer):
    """Newer versions give a handle beside the tensor."""
    return answer[0] if isinstance(answer, tuple) else answer


if __name__ == "__main__":
    main()
