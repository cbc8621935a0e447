#!/usr/bin/env python3
"""Writes numpy_{0,1}.npz and safetensors_{0,1}.safetensors with the NumPy and safetensors packages.

Element k (in C order) of the tensor number t on rank r is ((7 k + 3 r + t) % 11 - 5) / 4, which every dtype here holds
exactly. Rank 1's files are deflated, big-endian and in Fortran order where rank 0's are not, and the other way round.
"""
import numpy as np
import safetensors

# Name, shape, dtype.
TENSORS = [
    ("layer.0.weight", (3, 4), "f4"),
    ("ends.in.npy", (6,), "f4"),
    ("scope/scalar", (), "f4"),
    ("half", (2, 3, 2), "f2"),
    ("empty", (0, 5), "f4"),
    ("big", (41, 103), "f4"),
]


def values(shape, tensor, rank):
    k = np.arange(int(np.prod(shape)))
    return (((7 * k + 3 * rank + tensor) % 11 - 5) / 4).reshape(shape)


for rank in (0, 1):
    arrays = {}
    for number, (name, shape, dtype) in enumerate(TENSORS):
        array = values(shape, number, rank).astype("<" + dtype)
        if (number + rank) % 2 == 0:
            array = array.astype(">" + dtype)
        if number % 3 != rank:
            array = np.asfortranarray(array).reshape(shape, order="F")
        arrays[name] = array
    save = (np.savez, np.savez_compressed)[rank]
    save(f"numpy_{rank}.npz", **arrays)

    tensors, alive = {}, []
    for number, (name, shape, dtype) in enumerate(TENSORS):
        array = values(shape, number, rank).astype("<f4")
        kind = {"f4": "float32", "f2": "float16"}[dtype]
        if name == "big":
            # bf16 is the upper half of an fp32 number; these values have no lower one.
            array = (array.reshape(-1).view(np.uint32) >> 16).astype("<u2")
            kind = "bfloat16"
        else:
            array = array.astype("<" + dtype)
        alive.append(array)
        tensors[name] = safetensors.TensorSpec(
            dtype=kind, shape=shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
    safetensors.serialize_file(tensors, f"safetensors_{rank}.safetensors", None)
