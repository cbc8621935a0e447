"""One rank of a test of the Python package, started by `adasum-run launch`. Needs nothing but Python; NumPy's part is left out,
loudly, where there is none.

    adasum_module.py FOLDER     a folder that all ranks share

What comes out is compared with AdaSum in double precision, written here from the paper."""

import array
import copy
import ctypes
import gc
import json
import logging
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from fractions import Fraction
from pathlib import Path

import adasum
from adasum._abi import ROOT_INFO_BYTES
from adasum.device import HostCopies

RANK, SIZE = int(os.environ["RANK_ID"]), int(os.environ["RANK_SIZE"])
LOCALS = int(os.environ["DEVICE_NUM"])
COUNTS = [1, 7, 300, 20000]


def tensor(rank, index, step=0):
    """Values of a rank's tensor, the same in every process: exact in fp16."""
    state = 1 + rank + 64 * index + 4096 * step
    values = []
    for _ in range(COUNTS[index]):
        state = (state * 1103515245 + 12345) % 2**31
        values.append((state >> 20) / 1024 - 1.0)
    return values


def pair(a, b):
    dot, aa, bb = math.fsum(map(mul, a, b)), math.fsum(map(mul, a, a)), math.fsum(map(mul, b, b))
    if aa == 0 or bb == 0:
        return [x + y for x, y in zip(a, b)]
    return [(1 - dot / (2 * aa)) * x + (1 - dot / (2 * bb)) * y for x, y in zip(a, b)]


def mul(x, y):
    return x * y


def mean(vectors):
    return [math.fsum(values) / len(vectors) for values in zip(*vectors)]


def truth(vectors, locals_):
    """The mean in each server of `locals_` ranks, then AdaSum of neighbours; the number of servers is a power of two."""
    level = [mean(vectors[first : first + locals_]) for first in range(0, len(vectors), locals_)]
    while len(level) > 1:
        level = [pair(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return level[0]


def near(what, found, wanted, tolerance=3e-6):
    size = max(map(abs, wanted)) + 1e-30
    worst = max(abs(x - y) for x, y in zip(found, wanted)) / size
    assert len(found) == len(wanted) and worst <= tolerance, f"rank {RANK}: {what}: off by {worst} of the largest element"


def inputs(step=0):
    return [array.array("f", tensor(RANK, index, step)) for index in range(len(COUNTS))]


def expected(index, step=0, locals_=LOCALS):
    return truth([tensor(rank, index, step) for rank in range(SIZE)], locals_)


def refuses(kind, part, action):
    try:
        action()
    except kind as error:
        assert part in str(error), f"{part!r} is not in {error}"
        return error
    raise AssertionError(f"rank {RANK}: nothing was refused, expected {kind.__name__} with {part!r}")


class Whole:
    """A whole number of another library."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value


class Truth:
    """As NumPy has True and False: no numbers of Python."""

    shape = ()

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value


class Tensor:
    """As torch has them, in memory of an array, whatever `device` says."""

    def __init__(self, values, dtype, device="cpu", strides=(1,), shape=None):
        self._values, self.dtype, self.device, self._strides = values, f"torch.{dtype}", device, strides
        self.shape = shape or (len(values),)

    def data_ptr(self):
        return self._values.buffer_info()[0]

    def numel(self):
        return len(self._values)

    def stride(self):
        return self._strides

    def is_contiguous(self):
        return self._strides == tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))


def reduces_buffers_of_the_host(world):
    named = dict(zip("abcd", inputs()))
    with adasum.GradientReducer(world, named) as reducer:
        for step in range(2):
            data = inputs(step)
            reducer.reduce(data)
            for index, found in enumerate(data):
                near(f"tensor {index}, step {step}", found, expected(index, step))
        assert reducer.nonfinite() == [False] * 4


def takes_mappings_by_name(world):
    """In another order on each rank."""
    named = dict(zip("abcd", inputs()))
    with adasum.GradientReducer(world, named) as reducer:
        turned = list(named)[RANK % 4 :] + list(named)[: RANK % 4]
        reducer.reduce({name: named[name] for name in turned})
        for index, name in enumerate("abcd"):
            near(f"tensor {name}", named[name], expected(index))
        refuses(ValueError, "lacks 'b'", lambda: reducer.reduce({"x" if name == "b" else name: named[name] for name in named}))


def is_pickled_or_refuses(world):
    error = refuses(adasum.ArgumentError, "radix", lambda: adasum.Options(radix=9))
    other = pickle.loads(pickle.dumps(error))
    assert str(type(other)) == "<class 'adasum.ArgumentError'>" and (str(other), other.status) == (str(error), error.status), other
    refuses(TypeError, "World objects belong to their process", lambda: pickle.dumps(world))
    refuses(TypeError, "Options objects belong to their process", lambda: copy.deepcopy({"options": adasum.Options()}))


def ends_nothing_in_a_forked_child():
    """What a child has of its parent's handles is the parent's: its end says nothing and calls nothing."""
    program = """import adasum, array, os, sys
world = adasum.World.from_root_info(0, adasum.root_info(0), 1, 0)
values, stream = array.array("f", [1, 2]), adasum.Stream(world.device)
reducer = adasum.GradientReducer(world, [values], allow_plain_mean=True)
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
reducer.reduce([values])
del stream
world.finish()"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and "panicked" not in ended.stderr and "rror" not in ended.stderr, ended


def reduces_on_the_device(world):
    data = inputs()
    views = [adasum.view(x) for x in data]
    addresses = dict(enumerate(seen.address for seen in views))
    stage = HostCopies(world.device, [seen.bytes for seen in views])
    stage.upload(addresses)
    on_device = [adasum.View(place, seen.count, seen.dtype, True) for place, seen in zip(stage.addresses, views)]
    with adasum.GradientReducer(world, data) as reducer:
        refuses(ValueError, "stream is missing", lambda: reducer.reduce(on_device))
        reducer.reduce(on_device, stage.stream)
        world.barrier(stage.stream)
        reducer.synchronize(stage.stream, 60)
        world.forget_stream(stage.stream)
        reducer.forget_stream(stage.stream)
    stage.download(addresses)
    stage.close()
    for index, found in enumerate(data):
        near(f"tensor {index} on the device", found, expected(index))


def reduces_in_its_own_buffers(world):
    """Ranks read each other's memory; this one has its gradients where they do."""
    data = inputs()
    views = [adasum.view(x) for x in data]
    addresses = dict(enumerate(seen.address for seen in views))
    stage = HostCopies(world.device, [seen.bytes for seen in views])
    with adasum.GradientReducer(world, data, exchange="shared", gradient_buffers=True) as reducer:
        places = reducer.gradient_buffers()
        assert [(place.count, place.dtype, place.device) for place in places] == \
            [(seen.count, seen.dtype, True) for seen in views]
        # 12: as torch_npu has its tensors.
        assert {place.__dlpack_device__() for place in places} == {(12, world.device)}
        stage.addresses = [place.address for place in places]
        stage.upload(addresses)
        reducer.reduce(places, stage.stream)
        reducer.synchronize(stage.stream, 60)
        stage.download(addresses)
        reducer.forget_stream(stage.stream)
    stage.close()
    for index, found in enumerate(data):
        near(f"tensor {index} in the reducer's buffers", found, expected(index))


def reduces_to_mean_and_sum(world):
    for name, factor in (("mean", 1 / SIZE), ("sum", 1)):
        data = inputs()
        choices = dict(reduction=name, bucket_bytes=4096, wire="f32", pipeline_depth=2)
        with adasum.GradientReducer(world, data, **choices) as reducer:
            reducer.reduce(data)
        for index, found in enumerate(data):
            values = zip(*(tensor(rank, index) for rank in range(SIZE)))
            near(f"{name} of tensor {index}", found, [factor * math.fsum(of_ranks) for of_ranks in values])


def reduces_some(world):
    """Two subsets, the second twice, and statistics of the whole."""
    everything = inputs()
    # One round for all servers: cosine and gain are not known after several.
    with adasum.GradientReducer(world, everything, radix=4) as reducer:
        for indices in ([2, 0], [3], [3]):
            data = inputs()
            reducer.reduce_some(indices, [data[index] for index in indices])
            for index, found in enumerate(data):
                near(f"some: tensor {index}", found, expected(index) if index in indices else tensor(RANK, index))
        reducer.reduce(everything)
        for index, (figures, found) in enumerate(zip(reducer.statistics(), everything)):
            norm = math.sqrt(math.fsum(x * x for x in found))
            assert abs(figures.norm / norm - 1) < 1e-5 and not figures.nonfinite, (index, figures, norm)
            assert len(figures.servers) == world.servers and figures.gain > 0, figures
        assert len(reducer.plan().splitlines()) > 3, reducer.plan()


def reduces_steps_of_an_optimizer(world):
    """The step of every rank is weights -= 0.5 * gradients: new weights are old - AdaSum(0.5 * gradients)."""
    for form in ("server_mean", "local"):
        old = [[0.25] * count for count in COUNTS]
        weights, gradients = [array.array("f", values) for values in old], inputs()
        with adasum.DeltaWeightReducer(world, weights, delta_form=form) as reducer:
            refuses(TypeError, "positional", lambda: reducer.begin(weights, gradients))
            on_device = [adasum.View(seen.address, seen.count, seen.dtype, True) for seen in map(adasum.view, gradients)]
            refuses(ValueError, "weights are on the host and gradients on the device",
                    lambda: reducer.begin(weights=weights, gradients=on_device))
            refuses(ValueError, "weights are on the device and gradients on the host",
                    lambda: reducer.begin(weights=on_device, gradients=gradients, stream=8))
            reducer.begin(weights=weights, gradients=gradients)
            reducer.reset()
            gradients = inputs()
            reducer.observe()
            reducer.begin(weights=weights, gradients=gradients if form == "server_mean" else None)
            refuses(adasum.Error, "begin", lambda: reducer.begin(weights=weights, gradients=gradients))
            for tensor_, gradient in zip(weights, gradients):
                for i, value in enumerate(gradient):
                    tensor_[i] -= 0.5 * value
            reducer.end(weights)
            figures = reducer.statistics()
            assert reducer.nonfinite() == [False] * 4
        for index, (found, seen) in enumerate(zip(weights, figures)):
            wanted = [0.25 - 0.5 * value for value in expected(index)]
            near(f"delta {form}, tensor {index}", found, wanted)
            # Of the deltas. Observed, so cosine and gain are there after two rounds, too.
            norm = 0.5 * math.sqrt(math.fsum(x * x for x in expected(index)))
            assert abs(seen.norm / norm - 1) < 1e-5 and not seen.nonfinite, (form, index, seen, norm)
            assert len(seen.servers) == world.servers and -1 <= seen.cosine <= 1 and seen.gain > 0, (form, index, seen)


def takes_the_mean_of_a_group(world):
    members = [rank for rank in range(SIZE) if rank % 2 == RANK % 2]
    data = inputs()
    with adasum.MeanReducer(world, data, group=members) as reducer:
        reducer.reduce(data)
    for index, found in enumerate(data):
        near(f"mean of {members}", found, mean([tensor(rank, index) for rank in members]))
    # Only reducers with AdaSum have a vote and figures.
    assert not any(hasattr(reducer, name) for name in ("overflow", "observe", "statistics"))


def keeps_tensors_that_only_the_call_holds(world):
    """Of a generator, a `map`, and a mapping that makes them when it is asked: small arrays, whose memory the next one would take, and
    large ones, whose memory would go back to the system."""
    class Loaded(dict):
        def __getitem__(self, name):
            return array.array("f", [float(name)]) * count

    for count in (5000, 2_000_000):
        names = ["1", "2", "3"]
        specs = [adasum.TensorSpec(name, count, adasum.F32) for name in names]
        with adasum.GradientAccumulator(world, specs) as accumulator:
            for given in ((array.array("f", [float(name)]) * count for name in names),
                          map(lambda name: array.array("f", [float(name)]) * count, names), Loaded.fromkeys(names)):
                accumulator.add(given)
            sums = [array.array("f", bytes(4 * count)) for _ in names]
            accumulator.take(sums, 1.0)
        for name, found in zip(names, sums):
            assert set(found) == {3 * float(name)}, (RANK, count, name, set(found))
        with adasum.GradientReducer(world, specs, overflow="vote") as reducer:
            assert not reducer.overflow(array.array("f", [float(name)]) * count for name in names)
            assert reducer.overflow(array.array("f", [math.nan if name == "2" else 0.0]) * count for name in names)
    values = array.array("f", [1, 2])
    seen, held = adasum.view(values), weakref.ref(values)
    assert seen == adasum.View(seen.address, 2, adasum.F32, False), seen
    del values
    assert held() is not None
    del seen
    assert held() is None


def refuses_streams_of_tensors_of_the_host(world):
    """As a limit that is given by its place: it would count for nothing."""
    data, votes, stream = inputs(), {"overflow": "vote"}, adasum.Stream(world.device)
    flat = array.array("f", [value for values in data for value in values])
    numbers, values = array.array("q", [1]), array.array("f", [1])
    part = world.part([RANK], 1)
    for made in (world, part):
        with adasum.GradientReducer(made, data, **votes) as reducer, adasum.DeltaWeightReducer(made, data) as deltas, \
                adasum.SparseReducer(made, "x", 1, 1) as rows, adasum.NormClip(made, data, 1.0) as clip, \
                adasum.GradientAccumulator(made, data) as accumulator, adasum.GradientReducer(made, []) as nothing:
            for call in (
                lambda given: reducer.reduce(data, given), lambda given: reducer.reduce_some([0], data[:1], given),
                lambda given: reducer.overflow(data, given), lambda given: reducer.reduce_flat(flat, given),
                lambda given: reducer.reduce_some_flat([1], data[1], given),
                lambda given: deltas.begin(weights=data, gradients=None, stream=given), lambda given: deltas.end(data, given),
                lambda given: rows.gather(numbers, values, given), lambda given: clip.clip(data, given),
                lambda given: accumulator.add(data, given), lambda given: accumulator.take(data, 1.0, given),
                lambda given: made.all_reduce_sum(values, given),
            ):
                for given in (2, stream):
                    refuses(ValueError, f"stream is {given!r}, but the tensors are on the host", lambda: call(given))
            # These are nowhere.
            nothing.reduce([], stream)
            nothing.reduce([])
            nothing.forget_stream(stream)
    assert data == inputs()
    part.finish()


def sums_figures(world):
    """Of the host, and of the device."""
    values, total = array.array("f", [RANK + 1.0, 0.5]), [SIZE * (SIZE + 1) / 2, 0.5 * SIZE]
    world.all_reduce_sum(values)
    assert list(values) == total, list(values)
    values = array.array("f", [RANK + 1.0, 0.5])
    address = {0: adasum.view(values).address}
    stage = HostCopies(world.device, [8])
    stage.upload(address)
    on_device = adasum.View(stage.addresses[0], 2, adasum.F32, True)
    refuses(ValueError, "stream is missing", lambda: world.all_reduce_sum(on_device))
    world.all_reduce_sum(on_device, stage.stream)
    stage.stream.synchronize(60)
    world.forget_stream(stage.stream)
    stage.download(address)
    stage.close()
    assert list(values) == total, list(values)
    refuses(TypeError, "must be fp32", lambda: world.all_reduce_sum(adasum.View(0, 0, adasum.F16, False)))


def finds_what_is_not_finite(world):
    data = inputs()
    if RANK == SIZE - 1:
        data[2][5] = math.nan
    with adasum.GradientReducer(world, data) as reducer:
        reducer.reduce(data)
        assert reducer.nonfinite() == [False, False, True, False]


def votes_on_overflow(world):
    data = inputs()
    with adasum.GradientReducer(world, data, overflow="vote") as reducer:
        assert not reducer.overflow(data)
        if RANK == SIZE - 1:
            data[1][3] = math.inf
        assert reducer.overflow(data)
        assert list(data[0]) == tensor(RANK, 0), "a vote changed a gradient"


def reduces_flat_buffers(world):
    """All tensors, and some, one behind the other."""
    with adasum.GradientReducer(world, inputs()) as reducer:
        reducer.prepare_some([3, 1])
        for indices in (None, [3, 1]):
            order = range(len(COUNTS)) if indices is None else indices
            buffer = array.array("f", [value for index in order for value in tensor(RANK, index)])
            if indices is None:
                reducer.reduce_flat(buffer)
            else:
                reducer.reduce_some_flat(indices, buffer)
            start = 0
            for index in order:
                near(f"flat, tensor {index}", buffer[start : start + COUNTS[index]], expected(index))
                start += COUNTS[index]


def refuses_tensors_of_other_devices(world):
    other = (world.device + 1) % SIZE
    data, sentence = inputs(), f"on NPU {other}, the world uses NPU {world.device}"
    here, there = ([Tensor(x, "float32", f"npu:{device}") for x in data] for device in (world.device, other))
    assert [adasum.view(tensor).device_id for tensor in here] == [world.device] * len(data)
    with adasum.GradientReducer(world, data) as reducer:
        refuses(ValueError, f"tensors, tensor '0': the tensor is {sentence}", lambda: reducer.reduce(there, 8))
        refuses(ValueError, sentence, lambda: reducer.reduce_some_flat([1], there[1], 8))
    refuses(ValueError, sentence, lambda: world.all_reduce_sum(there[0], 8))
    # A place of the reducer's has the number, too.
    with adasum.SparseReducer(world, "x", 1, 1, exact=True) as rows:
        stage = HostCopies(world.device, [8, 4])
        numbers, values = array.array("q", [RANK]), array.array("f", [RANK])
        stage.upload({0: numbers.buffer_info()[0], 1: values.buffer_info()[0]})
        on_device = adasum.View(stage.addresses[1], 1, adasum.F32, True)
        indices = Tensor(numbers, "int64", f"npu:{world.device}")
        indices.data_ptr = lambda: stage.addresses[0]
        found = rows.gather(indices, on_device, stage.stream)
        assert found.values.__dlpack_device__() == (12, world.device), found
        rows.synchronize(stage.stream, 60)
        rows.forget_stream(stage.stream)
    stage.close()


def leaves_the_device_of_a_thread(world):
    """Of a thread that has another device, whatever is called; what the collector ends in it, too."""
    acl = ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    seen = []

    def look(after):
        number = ctypes.c_int32(-1)
        seen.append((after, acl.aclrtGetDevice(ctypes.byref(number)), number.value))

    def work():
        acl.aclrtSetDevice(other)
        data = inputs()
        with adasum.GradientReducer(world, data) as reducer:
            reducer.reduce(data)
            look("reduce of arrays of the host")
        look("end of a reducer")
        with adasum.Stream(world.device) as stream:
            look("Stream")
            stream.synchronize(60)
            look("Stream.synchronize")
        look("Stream.close")
        held = adasum.Stream(world.device)
        del held
        gc.collect()
        look("end of a stream that nobody holds")
        acl.aclrtResetDevice(other)

    other = (world.device + 1) % LOCALS
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(seen) == 6 and all((code, number) == (0, other) for _, code, number in seen), seen


def scatters_and_collects(world):
    """Each rank has its parts of the results, and all have all after they were collected."""
    data = inputs()
    with adasum.GradientReducer(world, data, scattered=True) as reducer:
        reducer.reduce(data)
        weights = [array.array("f", bytes(4 * count)) for count in COUNTS]
        for part in reducer.owned():
            found = data[part.tensor][part.start : part.start + part.length]
            near(f"own part of {part.tensor}", found, expected(part.tensor)[part.start : part.start + part.length], 2e-5)
            weights[part.tensor][part.start : part.start + part.length] = found
        reducer.collect(weights)
        for index, found in enumerate(weights):
            near(f"collected {index}", found, expected(index))


def gathers_rows(world):
    """Two rows of rank 0, one of each other rank but the last, whose number of rows is zero."""
    width, rows = 3, 2 if RANK == 0 else int(RANK < SIZE - 1)
    with adasum.SparseReducer(world, "embedding", width, 2, reduction="sum") as reducer:
        for _ in range(2):
            indices = array.array("q", [10 * RANK + row for row in range(rows)])
            values = array.array("f", [100.0 * RANK + i for i in range(rows * width)])
            found = reducer.gather(indices, values)
            numbers = [10 * rank + row for rank in range(SIZE - 1) for row in range(2 if rank == 0 else 1)]
            assert list(found.indices) == numbers, list(found.indices)
            wanted = [100.0 * rank + i for rank in range(SIZE - 1) for i in range((2 if rank == 0 else 1) * width)]
            assert list(found.values) == wanted, list(found.values)
        refuses(ValueError, "values has 3 rows", lambda: reducer.gather(indices, array.array("f", bytes(36))))
        # Tensors of frameworks: on the host they are gathered, too.
        values = array.array("f", [RANK] * rows * width)
        found = reducer.gather(Tensor(indices, "int64"), Tensor(values, "float32"))
        assert list(found.indices) == numbers, list(found.indices)
        one = array.array("f", bytes(4 * width))
        other = (world.device + 1) % SIZE
        for kind, part, wrong in (
            (TypeError, "type int32, the reducer was made for int64", array.array("i", [1])),
            (TypeError, "indices is a list", [1]),
            (TypeError, "type format 'f'", array.array("f", [1, 1])),
            (TypeError, "type int32", Tensor(array.array("i", [1]), "int32")),
            (ValueError, "indices is not contiguous", memoryview(array.array("q", [1, 1, 1]))[::2]),
            (ValueError, "indices is not contiguous", Tensor(array.array("q", [1]), "int64", strides=(2,))),
            (ValueError, "indices has 2 numbers, values has 1 rows", array.array("q", [1, 1])),
            (ValueError, "values is on the host and indices on the device", Tensor(array.array("q", [1]), "int64", f"npu:{world.device}")),
            (ValueError, f"on NPU {other}, the world uses NPU {world.device}", Tensor(array.array("q", [1]), "int64", f"npu:{other}")),
        ):
            refuses(kind, part, lambda: reducer.gather(wrong, one))
        # Of two rows: what is dense, but not row behind row.
        two = array.array("f", bytes(8 * width))
        for part, strides, shape in (
            ("values is not contiguous: its rows must lie one behind the other", (1, 2), (2, width)),
            (f"values has the shape ({width}, 2), its 2 rows are not its first axis", (2, 1), (width, 2)),
        ):
            refuses(ValueError, part, lambda: reducer.gather(array.array("q", [0, 1]), Tensor(two, "float32", "cpu", strides, shape)))
        on_device = Tensor(one, "float32", f"npu:{world.device}")
        refuses(ValueError, "values is on the device and indices on the host", lambda: reducer.gather(array.array("q", [1]), on_device, 8))


def clips_norms(world):
    """Whole tensors, and the parts of a scattered reduction: the norm that all ranks share."""
    limit = 2.0
    data = inputs()
    wanted = [expected(index) for index in range(len(COUNTS))]
    norm = math.sqrt(math.fsum(x * x for values in wanted for x in values))
    with adasum.GradientReducer(world, data) as reducer, adasum.NormClip(world, data, limit) as clip:
        assert clip.last_norm() == 0
        reducer.reduce(data)
        clip.clip(data)
        assert abs(clip.last_norm() / norm - 1) < 1e-5, (clip.last_norm(), norm)
        for index, found in enumerate(data):
            near(f"clipped {index}", found, [x * limit / norm for x in wanted[index]], 1e-5)
    data = inputs()
    with adasum.GradientReducer(world, data, scattered=True) as reducer:
        with adasum.NormClip(world, data, limit, reducer.owned()) as clip:
            reducer.reduce(data)
            clip.clip(data)
            assert abs(clip.last_norm() / norm - 1) < 1e-5, (clip.last_norm(), norm)
    refuses(ValueError, "max_norm", lambda: adasum.NormClip(world, data, -1.0))


def accumulates(world):
    data = inputs()
    with adasum.GradientAccumulator(world, data) as accumulator:
        refuses(adasum.Error, "", lambda: accumulator.take(data))
        for step in range(3):
            accumulator.add(inputs(step))
        assert accumulator.steps == 3
        accumulator.take(data)
        assert accumulator.steps == 0
    for index, found in enumerate(data):
        near(f"accumulated {index}", found, mean([tensor(RANK, index, step) for step in range(3)]), 1e-6)


def makes_parts(world):
    """Two stages of a pipeline: AdaSum among the even ranks, and among the odd ones. `with` ends parts and their reducers."""
    ranks = list(range(RANK % 2, SIZE, 2))
    part = world.part(ranks, 1)
    assert (part.rank, part.size, part.servers) == (RANK // 2, len(ranks), len(ranks))
    data = inputs()
    reducer = adasum.GradientReducer(part, data)
    reducer.reduce(data)
    for index, found in enumerate(data):
        near(f"part, tensor {index}", found, truth([tensor(rank, index) for rank in ranks], 1))
    part.finish()
    part.finish()
    assert reducer.closed
    refuses(ValueError, "is closed", lambda: part.rank)
    refuses(ValueError, "ranks", lambda: world.part([SIZE - 1, 0], 1))


def fuses_by_parameter(world):
    data = inputs()
    flags = [0, adasum.fusion_flag(0), adasum.fusion_flag(7), adasum.LAYERWISE]
    specs = [adasum.TensorSpec(f"t{i}", COUNTS[i], adasum.F32, flags[i]) for i in range(4)]
    with adasum.MeanReducer(world, specs) as reducer:
        reducer.reduce(data)
    for index in range(3):
        near(f"fused {index}", data[index], mean([tensor(rank, index) for rank in range(SIZE)]))
    assert list(data[3]) == tensor(RANK, 3), "a layerwise tensor was changed"


def keeps_a_journal(world, folder):
    everything = inputs()
    with adasum.GradientReducer(world, everything, radix=4) as reducer, adasum.Journal(folder, RANK) as journal:
        reducer.reduce(everything)
        statistics = dict(zip("abcd", reducer.statistics()))
        refuses(ValueError, "step is -1", lambda: journal.record(-1, {}))
        refuses(TypeError, "statistics is a list", lambda: journal.record(1, {}, reducer.statistics()))
        refuses(TypeError, "a name in values is 3", lambda: journal.record(1, {3: 1.0}))
        refuses(ValueError, "a name in values is b'a", lambda: journal.record(1, {"a\0b": 1.0}))
        refuses(ValueError, "run is b'a", lambda: journal.record(1, {}, run="a\0"))
        refuses(TypeError, "step is '1'", lambda: journal.record("1", {}))
        refuses(TypeError, "epoch is None: it must be a number", lambda: journal.record(1, {}, epoch=None))
        refuses(TypeError, "values['loss'] is '1': it must be a number", lambda: journal.record(1, {"loss": "1"}))
        refuses(TypeError, "statistics['a'] is a tuple", lambda: journal.record(1, {}, {"a": (1, 2)}))
        journal.record(Whole(1), {"loss": Fraction(1, 2), "count": Whole(3), "overflow": True}, statistics, epoch=Fraction(1, 4))
    record = json.loads((folder / f"rank_{RANK}.jsonl").read_text())
    assert record["step"] == 1 and record["epoch"] == 0.25 and "0.5" in json.dumps(record), record
    assert all(f'"{name}"' in json.dumps(record) for name in "abcd"), record


def ends_what_nobody_holds(world):
    """A reducer that is dropped frees itself; one that is still held is closed by the world's end."""
    reducer = adasum.GradientReducer(world, inputs())
    reducer.reduce(inputs())
    del reducer
    gc.collect()


def loads_and_logs():
    """Records of the library come to `logging`: the first say which library was loaded, and nothing comes below the level."""
    records, logger, handler = [], logging.getLogger("adasum"), logging.Handler()
    handler.emit = lambda record: records.append((record.levelno, record.getMessage()))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    assert adasum.backend() == "mock", adasum.backend()
    assert any(level == logging.INFO and "mock" in text for level, text in records), records
    assert all(level >= logging.INFO for level, _ in records), records
    adasum.set_log_level(logging.WARNING)
    logger.removeHandler(handler)


def refuses_what_is_wrong(world):
    data = inputs()
    refuses(TypeError, "'colour' is no option", lambda: adasum.Options(colour=1))
    refuses(TypeError, "both given", lambda: adasum.GradientReducer(world, data, adasum.Options(), radix=2))
    refuses(TypeError, "must be adasum.Options", lambda: adasum.GradientReducer(world, data, {"radix": 2}))
    refuses(TypeError, "world is a list", lambda: adasum.GradientReducer(data, data))
    refuses(ValueError, 'reduction is "max", must be adasum, mean or sum', lambda: adasum.Options(reduction="max"))
    error = refuses(adasum.Error, "radix", lambda: adasum.Options(radix=9))
    assert error.status == "INVALID_ARGUMENT" and error.vendor_code == 0, error.status
    refuses(TypeError, "neither fp32", lambda: adasum.view(array.array("d", [1.0])))
    refuses(ValueError, "not writable", lambda: adasum.view(b"1234"))
    for option in ("bucket_bytes", "subset_plans", "devices_per_server", "create_timeout_ms"):
        refuses(ValueError, "whole", lambda: adasum.Options(**{option: 25e6}))
    assert adasum.view((ctypes.c_float * 3)()).count == 3
    refuses(ValueError, "dtype is 99", lambda: adasum.TensorSpec("x", 3, 99))
    refuses(ValueError, "dtype is ['float32']", lambda: adasum.TensorSpec("x", 3, ["float32"]))
    refuses(ValueError, "RANK_TABLE_FILE", lambda: adasum.World.from_rank_table("/nowhere/RANK_TABLE_FILE", 0))
    refuses(TypeError, "radix is an option of reducers", lambda: adasum.World.from_environment(radix=4))
    refuses(TypeError, "radixx is no option", lambda: adasum.World.from_environment(radixx=4))
    with adasum.GradientReducer(world, data) as reducer:
        refuses(ValueError, "has 3 tensors, expected are 4", lambda: reducer.reduce(data[:3]))
        refuses(ValueError, "was made for 7", lambda: reducer.reduce([data[0], data[2], data[2], data[3]]))
        refuses(TypeError, "tensors, tensor '1': ", lambda: reducer.reduce([data[0], array.array("d", [0] * 7), *data[2:]]))
        refuses(ValueError, "timeout is -1", lambda: reducer.reduce(data, timeout=-1))
        refuses(TypeError, "timeout is '1'", lambda: reducer.reduce(data, timeout="1"))
        refuses(ValueError, "indices[0] is 4: the reducer has 4 tensors", lambda: reducer.reduce_some([4], data[:1]))
        refuses(TypeError, "stream is a str", lambda: world.barrier("0"))
        refuses(TypeError, "on is 'off': it must be True or False", lambda: reducer.observe("off"))
        refuses(TypeError, "indices is 3: it must be a list of whole numbers", lambda: reducer.reduce_some(3, data[:1]))
        refuses(TypeError, "indices[1] is 'a': it must be a whole number", lambda: reducer.reduce_some_flat([0, "a"], data[0]))
        refuses(TypeError, "indices is None: it must be a list of whole numbers", lambda: reducer.reduce_some_flat(None, data[0]))
        refuses(ValueError, "indices[0] is -1", lambda: reducer.prepare_some([-1]))
    assert reducer.closed
    refuses(ValueError, "is closed", lambda: reducer.reduce(data))
    refuses(ValueError, f"devices_per_server is {LOCALS + 1}, but the world", lambda: adasum.GradientReducer(world, data, devices_per_server=LOCALS + 1))
    adasum.MeanReducer(world, data, devices_per_server=LOCALS).close()
    # One tensor: its rows would pass for tensors, and each be reduced for itself.
    matrix = memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3))
    for one in (data[1], matrix, Tensor(data[1], "float32"), adasum.TensorSpec("x", 7, adasum.F32)):
        refuses(TypeError, f"tensors is a {type(one).__name__}: ", lambda: adasum.GradientReducer(world, one))
    refuses(TypeError, "tensors is a NoneType", lambda: adasum.specs(None))
    refuses(TypeError, "tensor '0': a tuple is neither a tensor of torch or MindSpore nor a buffer", lambda: adasum.specs([("x", data[1])]))
    with adasum.MeanReducer(world, [data[1], data[1]]) as reducer:
        refuses(TypeError, "tensors is a memoryview", lambda: reducer.reduce(matrix))
        refuses(ValueError, "tensors has 1 tensors, expected are 2", lambda: reducer.reduce(part for part in data[1:2]))
    refuses(TypeError, "values: a list is neither", lambda: world.all_reduce_sum([1.0]))
    refuses(TypeError, "name is 3", lambda: adasum.SparseReducer(world, 3, 4, 4))
    for what, call in (("width", lambda wrong: adasum.SparseReducer(world, "x", wrong, 4)),
                       ("rows", lambda wrong: adasum.SparseReducer(world, "x", 4, wrong)),
                       ("device", lambda wrong: adasum.World.from_root_info(wrong, b"", 1, 0)),
                       ("size", lambda wrong: adasum.World.from_root_info(0, b"", wrong, 0)),
                       ("rank", lambda wrong: adasum.World.from_root_info(0, b"", 1, wrong)),
                       ("device", adasum.root_info), ("comm", adasum.World.from_comm),
                       ("devices_per_server", lambda wrong: world.part([0], wrong)),
                       ("ranks[1]", lambda wrong: world.part([0, wrong], 1)),
                       ("rank", adasum.Journal.from_environment), ("fusion", adasum.fusion_flag),
                       ("count of tensor 'x'", lambda wrong: adasum.TensorSpec("x", wrong, adasum.F32)),
                       ("flags of tensor 'x'", lambda wrong: adasum.TensorSpec("x", 1, adasum.F32, wrong))):
        for wrong, shown in (("1", "'1'"), (1.0, "1.0"), (True, "True"), (None, "None"), ([1], "a list")):
            refuses(TypeError, f"{what} is {shown}: it must be a whole number", lambda: call(wrong))
    refuses(TypeError, "info is a str", lambda: adasum.World.from_root_info(0, "", 1, 0))
    refuses(TypeError, "ranks is 3: it must be a list of whole numbers", lambda: world.part(3, 1))
    refuses(TypeError, "path is 3: it must be a path", lambda: adasum.World.from_rank_table(3, 0))
    refuses(TypeError, "folder is None: it must be a path", lambda: adasum.Journal(None, 0))
    refuses(TypeError, "path is a list: it must be a path", lambda: adasum.Options.from_boost([]))
    refuses(TypeError, "exact is 'off': it must be True or False", lambda: adasum.SparseReducer(world, "x", 4, 4, exact="off"))
    refuses(TypeError, "world is a NoneType", lambda: adasum.GradientReducer(None, data, devices_per_server=1))
    refuses(TypeError, "world is a str", lambda: adasum.SparseReducer("world", "x", 4, 4, devices_per_server=1))
    refuses(TypeError, "world is a int", lambda: adasum.NormClip(3, data, 1.0))
    for wrong, shown in (("1", "'1'"), (b"1", "b'1'"), (True, "True"), (1j, "a complex")):
        refuses(TypeError, f"max_norm is {shown}: it must be a number", lambda: adasum.NormClip(world, data, wrong))
    refuses(ValueError, "larger than any float", lambda: adasum.NormClip(world, data, 10**400))
    for wrong, shown in (((0, 0, 1), "parts[0] is a tuple: it must be adasum.TensorPart"), (adasum.TensorPart("0", 0, 1), "parts[0].tensor is '0'")):
        refuses(TypeError, shown, lambda: adasum.NormClip(world, data, 1.0, [wrong]))
    refuses(TypeError, "parts is 3: it must be a list of adasum.TensorPart", lambda: adasum.NormClip(world, data, 1.0, 3))
    with adasum.GradientAccumulator(world, data) as accumulator:
        accumulator.add(data)
        refuses(TypeError, "factor is '2': it must be a number", lambda: accumulator.take(data, "2"))
    refuses(ValueError, "dtype is 99", lambda: adasum.SparseReducer(world, "x", 4, 4, 99))
    refuses(TypeError, "rank is '0': it must be a whole number", lambda: adasum.World.from_rank_table("table", "0"))
    refuses(TypeError, "device is '0': it must be a whole number", lambda: adasum.Stream("0"))
    refuses(ValueError, "count of tensor 'x'", lambda: adasum.TensorSpec("x", 2**64 + 4, adasum.F32))
    refuses(ValueError, "flags of tensor 'x'", lambda: adasum.TensorSpec("x", 4, adasum.F32, 2**32))
    refuses(ValueError, "must not have a NUL", lambda: adasum.TensorSpec("a\0b", 4, adasum.F32))
    refuses(ValueError, "must not have a NUL", lambda: adasum.Options(radix="2\0x"))
    refuses(ValueError, f"is {2**32 + 1}", lambda: adasum.World.from_root_info(0, adasum.root_info(0), 2**32 + 1, 0))
    refuses(ValueError, f"ranks[0] is {2**32}: it must be 0 to", lambda: world.part([2**32], 1))
    refuses(TypeError, "ranks[0] is '0': it must be a whole number", lambda: world.part("01", 1))
    for seconds in (1e300, 10**400, 2**64 / 1000, math.nan, math.inf, 0):
        refuses(ValueError, f"timeout is {seconds!r}", lambda: world.finish(timeout=seconds))
    refuses(ValueError, "rank is -1: it must be 0 to", lambda: adasum.Journal(".", -1))
    refuses(ValueError, "must not have a NUL", lambda: adasum.Journal("a\0b", 0))
    refuses(ValueError, f"device is {2**32}: it must be", lambda: adasum.Stream(2**32))
    refuses(ValueError, f"stream is {2**64 + 8}: it must be", lambda: world.barrier(2**64 + 8))
    refuses(ValueError, f"address of a View is {2**64 + 64}", lambda: adasum.View(2**64 + 64, 1, adasum.F32, True))
    refuses(TypeError, "address of a View is None", lambda: adasum.View(None, 1, adasum.F32, True))
    refuses(ValueError, f"parts[0].tensor is {2**64}", lambda: adasum.NormClip(world, data, 1.0, [adasum.TensorPart(2**64, 0, 1)]))
    types = (adasum.F16, adasum.F16, adasum.F32)
    with adasum.GradientReducer(world, [adasum.TensorSpec("x", 4, dtype) for dtype in types[:2]]) as reducer:
        refuses(ValueError, "of type float32, the tensors of type float16", lambda: reducer.reduce_flat(array.array("f", [0] * 4)))
    with adasum.GradientReducer(world, [adasum.TensorSpec("x", 4, dtype) for dtype in types]) as reducer:
        buffer = array.array("f", [1] * 4)
        refuses(ValueError, "of type float32, the tensors of type float16", lambda: reducer.reduce_some_flat([0, 1], buffer))
        reducer.reduce_some_flat([2], buffer)
        # Several types: bytes count.
        reducer.reduce_flat(array.array("f", [1] * 8))


def takes_numbers_of_other_libraries(world):
    takes_numbers(world, Whole, Fraction, Truth)
    try:
        import numpy as np
    except ImportError:
        return
    for whole, fraction in ((np.int64, np.float32), (np.uint8, np.float64), (np.int32, np.float16)):
        takes_numbers(world, whole, fraction, np.bool_)
    takes_numbers(world, np.array, np.array, np.array)
    adasum.Options(group=np.array([0, 2]), scale=np.array(0.5), fusion=np.array([1, 3]), degree=np.array(2))


def takes_numbers(world, whole, fraction, truth):
    """Whole numbers, fractions, True and False of a library's own types."""
    info = adasum.root_info(whole(world.device))
    refuses(TypeError, "info is a int", lambda: adasum.World.from_root_info(world.device, 5, 1, 0))
    alone = adasum.World.from_root_info(whole(world.device), list(info), whole(1), whole(0), create_timeout_ms=whole(250))
    assert (alone.rank, alone.size) == (0, 1)
    assert adasum.fusion_flag(whole(7)) == adasum.fusion_flag(7)
    specs = [adasum.TensorSpec(name, whole(4), adasum.F32, whole(0)) for name in "xy"]
    assert specs == [adasum.TensorSpec(name, 4, adasum.F32) for name in "xy"]
    own = alone.part([whole(0)], whole(1))
    data = [array.array("f", [1, 2, 3, 4]) for _ in specs]
    with adasum.GradientReducer(own, specs, allow_plain_mean=truth(True), scale=fraction(0.5), bucket_bytes=whole(64)) as reducer:
        reducer.observe(truth(True))
        reducer.prepare_some([whole(1)])
        reducer.reduce_some([whole(1)], [data[1]], timeout=fraction(60))
        assert [list(each) for each in data] == [[1, 2, 3, 4], [0.5, 1, 1.5, 2]], data
        reducer.reduce_some_flat((whole(index) for index in (0,)), data[0], timeout=fraction(60))
        assert list(data[0]) == [0.5, 1, 1.5, 2], data
    with adasum.MeanReducer(own, specs, group=[whole(0)], degree=whole(2), fusion=[whole(0)]) as reducer:
        reducer.reduce(data, timeout=fraction(60))
        assert list(data[0]) == [0.25, 0.5, 0.75, 1], data
    with adasum.SparseReducer(own, "x", whole(2), whole(1), exact=truth(True)) as rows:
        assert rows.gather(array.array("q", [3]), array.array("f", [1, 2])).count == 1
    with adasum.NormClip(own, specs[:1], fraction(0.5), [adasum.TensorPart(whole(0), whole(0), whole(4))]) as clip:
        clip.clip([array.array("f", [3, 0, 0, 4])])
        assert clip.last_norm() == 5
    with adasum.GradientAccumulator(own, specs[:1]) as accumulator:
        accumulator.add(data[:1])
        accumulator.take(data[:1], fraction(2))
        assert list(data[0]) == [0.5, 1, 1.5, 2], data
    seen = adasum.view(data[0])
    assert adasum.View(whole(1), whole(4), seen.dtype, False, whole(0)) == adasum.View(1, 4, seen.dtype, False)
    with adasum.Stream(whole(world.device)) as stream:
        address = stream.handle
        # Smaller types have no such addresses.
        own.barrier(Whole(address))
        stream.synchronize(fraction(60))
        own.forget_stream(Whole(address))
    alone.finish(timeout=fraction(60))


def until_closed(call):
    """Calls again and again, until the handle is closed."""
    while True:
        try:
            call()
        except ValueError as error:
            assert "is closed" in str(error), error
            return


def ends_behind_calls_of_other_threads(world):
    """A handle that is closed during a call ends behind it."""
    stream = adasum.Stream(world.device)
    part = world.part([RANK], 1)
    begun, closed = threading.Event(), threading.Event()

    def call():
        with part.in_use():
            begun.set()
            assert closed.wait(60)
            assert part.pointer

    thread = threading.Thread(target=call)
    thread.start()
    assert begun.wait(60)
    part.close()
    refuses(ValueError, "is closed", lambda: part.barrier(stream))
    closed.set()
    thread.join()
    refuses(ValueError, "is closed", lambda: part.pointer)
    # Handles that threads are in again and again, without work that would be left on streams.
    for _ in range(20):
        part = world.part([RANK], 1)
        reducer = adasum.GradientReducer(part, [adasum.TensorSpec("x", 4, adasum.F32)])
        calls = [lambda: part.size, lambda: reducer.synchronize(stream, 60)]
        threads = [threading.Thread(target=until_closed, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        reducer.close()
        part.close()
        for thread in threads:
            thread.join()
        for handle in (part, reducer):
            refuses(ValueError, "is closed", lambda: handle.pointer)
    # Between the calls of one reduction, whose copies and streams stay, too.
    part = world.part([RANK], 1)
    closing = {"reduce": adasum.GradientReducer(part, inputs()), "reduce_flat": adasum.GradientReducer(part, inputs())}
    for name, reducer in closing.items():
        data = array.array("f", [1] * sum(COUNTS)) if name == "reduce_flat" else inputs()
        synchronize = reducer._wait

        def close_first(copies, limit):
            thread = threading.Thread(target=reducer.close)
            thread.start()
            thread.join()
            assert reducer.closed and reducer.pointer
            synchronize(copies, limit)

        reducer._wait = close_first
        getattr(reducer, name)(data)
        refuses(ValueError, "is closed", lambda: reducer.pointer)
        refuses(ValueError, "is closed", lambda: getattr(reducer, name)(data))
    # Copies that were there are not used any more.
    weights = inputs()
    deltas, rows = adasum.DeltaWeightReducer(part, weights), adasum.SparseReducer(part, "x", 1, 1)
    numbers, values = array.array("q", [1]), array.array("f", [1])
    deltas.begin(weights=weights, gradients=None)
    deltas.end(weights)
    rows.gather(numbers, values)
    part.close()
    for what in (lambda: deltas.begin(weights=weights, gradients=None), lambda: deltas.end(weights),
                 lambda: rows.gather(numbers, values), lambda: part.all_reduce_sum(values)):
        refuses(ValueError, "is closed", what)
    stream.close()


def keeps_streams_that_are_closed(world):
    """A stream that is closed ends with the last world or reducer that was given it, or when that forgets it."""
    stream, data = adasum.Stream(world.device), inputs()
    stage = HostCopies(world.device, [4 * count for count in COUNTS])
    on_device = [adasum.View(place, count, adasum.F32, True) for place, count in zip(stage.addresses, COUNTS)]
    reducer = adasum.GradientReducer(world, data)
    stage.upload({index: adasum.view(x).address for index, x in enumerate(data)})
    world.barrier(stream)
    reducer.reduce(on_device, stream)
    reducer.synchronize(stream, 60)
    ended, address = weakref.ref(stream.kept), stream.handle
    stream.close()
    stream.close()
    for call in (lambda: stream.handle, lambda: world.barrier(stream), lambda: reducer.reduce(on_device, stream),
                 lambda: reducer.synchronize(stream, 60), lambda: world.forget_stream(stream), lambda: stream.synchronize(1)):
        refuses(ValueError, "this Stream is closed", call)
    # It is still there.
    reducer.synchronize(address, 60)
    world.forget_stream(address)
    assert ended() is not None
    reducer.close()
    assert ended() is None
    stage.close()


def refuses_a_second_thread(world):
    """One thread at a time has the copies of tensors of the host."""
    data, part = inputs(), world.part([RANK], 1)
    numbers, values = array.array("q", [1]), array.array("f", [1])
    reducer = adasum.GradientReducer(part, data, overflow="vote")
    deltas, rows = adasum.DeltaWeightReducer(part, data), adasum.SparseReducer(part, "x", 1, 1)
    clip, accumulator = adasum.NormClip(part, data, 1.0), adasum.GradientAccumulator(part, data)
    for handle, call in (
        (reducer, lambda: reducer.reduce(data)), (reducer, lambda: reducer.reduce_some([0], data[:1])),
        (reducer, lambda: reducer.reduce_some_flat([0], data[0])), (reducer, lambda: reducer.overflow(data)),
        (deltas, lambda: deltas.begin(weights=data, gradients=None)), (deltas, lambda: deltas.end(data)),
        (rows, lambda: rows.gather(numbers, values)), (clip, lambda: clip.clip(data)), (accumulator, lambda: accumulator.add(data)),
    ):
        with handle._alone(None):
            error = refuses(adasum.Error, f"another thread is using this {type(handle).__name__}", call)
            assert error.status == "INVALID_STATE"
        call()
    # A reduction of one rank changes nothing; what another thread had would.
    reducer = adasum.GradientReducer(part, data)
    reduced, wrong = [], []

    def reduce(number):
        for step in range(100):
            own = [array.array("f", [100 * number + step] * count) for count in COUNTS]
            wanted = [array.array("f", each) for each in own]
            try:
                reducer.reduce(own)
                reduced.append(number)
            except adasum.Error as error:
                if error.status != "INVALID_STATE":
                    wrong.append(error)
            if own != wanted:
                wrong.append((number, step))

    threads = [threading.Thread(target=reduce, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reduced and not wrong, (len(reduced), wrong)
    # After a wait that was refused work may be left on the copies: the next call has others.
    held, reducer._wait = reducer._copies["tensors"], lambda *_: part.part([RANK + SIZE], 1)
    refuses(ValueError, "", lambda: reducer.reduce(data))
    del reducer._wait
    reducer.reduce(data)
    assert reducer._copies["tensors"] is not held
    part.finish()


def outlive_their_world():
    """Streams may end after the last world of their device, and reducers end with their world, also if something of them cannot."""
    world = adasum.World.from_root_info(RANK, adasum.root_info(RANK), 1, 0)
    stream = adasum.Stream(world.device)
    reducer = adasum.GradientReducer(world, inputs())
    reducer.reduce(inputs())
    clip = adasum.NormClip(world, inputs(), 1.0)
    part = world.part([0], 1)
    of_part = adasum.GradientReducer(part, inputs())
    stuck = HostCopies(world.device, [8])
    block, stuck._block = stuck._block, 8
    reducer._owned.append(stuck)
    error = refuses(adasum.Error, "aclrtFree failed", world.close)
    assert error.status == "ACL" and error.vendor_code != 0, error.vendor_code
    assert world.closed and all(user.closed for user in (reducer, clip, part, of_part))
    # It was closed, but not finished.
    refuses(ValueError, "is closed", world.finish)
    for user in (world, reducer, clip, part):
        refuses(ValueError, "is closed", lambda: user.pointer)
    stuck._block = block
    stuck.close()
    # Of another thread, which has no device yet.
    ended = []
    thread = threading.Thread(target=lambda: ended.append(stream.close()))
    thread.start()
    thread.join()
    assert ended == [None]


def says_what_a_wait_met():
    """A wait that reaches its limit, and one that finds a failure, in processes of their own: the work stays."""
    program = """import adasum, array, os
world = adasum.World.from_root_info(0, adasum.root_info(0), 1, 0)
values = array.array("f", [1, 2])
clip = adasum.NormClip(world, [values], 1.0)
try:
    WAIT
except adasum.Error as error:
    print(isinstance(error, TimeoutError), error.status, error.vendor_code, error, flush=True)
os._exit(0)"""
    clips, adds = "clip.clip([values], timeout=0.2)", "world.all_reduce_sum(values, timeout=0.2)"
    for wait, fault, wanted in (
        (clips, "kernel:*:stall", "True TIMEOUT 507046 aclrtSynchronizeStreamWithTimeout failed"),
        (clips, "kernel:*:error=507015", "False ACL 507015 aclrtSynchronizeStreamWithTimeout failed"),
        (adds, "HcclAllReduce:*:stall", "True TIMEOUT 507046 aclrtSynchronizeStreamWithTimeout failed"),
    ):
        ended = subprocess.run([sys.executable, "-c", program.replace("WAIT", wait)], capture_output=True, text=True, timeout=60,
                               env={**os.environ, "RANK_ID": "0", "HCCL_MOCK_FAULT": f"0:{fault}"})
        assert ended.stdout.startswith(wanted), f"{wait}, {fault}: {ended.stdout}{ended.stderr}"


def ends_streams_in_a_process_of_their_own():
    """Nothing else of this process has set the device then."""
    program = ("import adasum, gc; world = adasum.World.from_root_info(0, adasum.root_info(0), 1, 0); "
               "stream = adasum.Stream(world.device); world.finish(); ")
    for end in ("stream.close()", "del stream; gc.collect()", "held = [stream]; held.append(held); del stream, held; gc.collect()", "pass"):
        ended = subprocess.run([sys.executable, "-c", program + end], capture_output=True, text=True)
        assert ended.returncode == 0 and "Error" not in ended.stderr, f"{end}: {ended.stderr}"


def refuses_an_old_torch(folder):
    """With a torch that has nothing but a version."""
    own = folder / f"torch-{RANK}"
    own.mkdir()
    (own / "torch.py").write_text('__version__ = "2.2.2+cpu"')
    paths = os.pathsep.join([str(own), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run([sys.executable, "-c", "import adasum.torch"], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": paths})
    assert "ImportError: adasum.torch needs torch 2.3 or newer: this is 2.2.2+cpu" in ended.stderr, ended.stderr


def reduces_numpy(world):
    try:
        import numpy as np
    except ImportError:
        if RANK == 0:
            print("!!! SKIPPED NumPy arrays: NumPy is not installed", flush=True)
        return
    for dtype, tolerance in (("float32", 3e-6), ("float16", 2e-3)):
        data = {f"t{i}": np.array(tensor(RANK, i), dtype=dtype).reshape(-1, 1) for i in range(len(COUNTS))}
        with adasum.GradientReducer(world, data) as reducer:
            reducer.reduce(list(data.values()))
        for index, found in enumerate(data.values()):
            near(f"NumPy {dtype} {index}", found.ravel().tolist(), expected(index), tolerance)
    # Beyond the range of fp16 only once it is rounded, behind what `nonfinite` looks at.
    large = [np.full(100, 40000, "float16")]
    with adasum.MeanReducer(world, large, reduction="sum") as reducer:
        reducer.reduce(large)
        assert np.isinf(large[0]).all() and reducer.nonfinite() == [False]
    if world.servers == 2:
        large = [np.array([40000, 40000 if RANK < LOCALS else -40000] * 50, "float16")]
        with adasum.GradientReducer(world, large, overflow="vote") as reducer:
            reducer.reduce(large)
            assert np.isinf(large[0][0]) and reducer.nonfinite() == [False] and not reducer.statistics()[0].nonfinite
            assert reducer.overflow(large)
    refuses(ValueError, "not contiguous", lambda: adasum.view(np.zeros((4, 4), dtype="float32")[:, 1]))
    refuses(TypeError, "int64", lambda: adasum.view(np.zeros(3, dtype="int64")))


def gives_up_after_a_wait(folder):
    """A wait of rank 0 for others that do not come gives the world up: what is left of the operation must not meet a later one."""
    def sum_(world):
        values = array.array("f", [RANK + 1.0])
        return lambda **limit: world.all_reduce_sum(values, **limit)

    def clip(world):
        values = array.array("f", [RANK + 1.0] * 4)
        norms = adasum.NormClip(world, [values], 1.0, [adasum.TensorPart(0, 0, 4)])
        return lambda **limit: norms.clip([values], **limit)

    for make in (sum_, clip):
        info = shared(folder / f"root-info-{make.__name__}", adasum.root_info(RANK) if RANK == 0 else b"")
        world = adasum.World.from_root_info(RANK, info, SIZE, RANK, devices_per_server=1)
        work = make(world)
        work()
        if RANK == 0:
            error = refuses(adasum.WaitError, "", lambda: work(timeout=1))
            assert error.status == "TIMEOUT", error.status
            error = refuses(adasum.Error, "abort", lambda: work(timeout=1))
            assert error.status == "POISONED", (error, error.status)
            world.close()
        # The others leave when it has.
        shared(folder / f"gave-up-{make.__name__}", b"")
        world.close()


def shared(file, content):
    """What rank 0 says, on all ranks."""
    if RANK == 0:
        part = file.with_suffix(".part")
        part.write_bytes(content)
        part.rename(file)
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, f"rank 0 did not write {file}"
        time.sleep(0.01)
    return file.read_bytes()


def world_by_root_info(folder):
    """One rank's bytes, handed on by a file; here every rank is a server."""
    info = shared(folder / "root-info", adasum.root_info(RANK) if RANK == 0 else b"")
    servers = adasum.Options(devices_per_server=1)
    error = refuses(adasum.Error, "EI0003", lambda: adasum.World.from_root_info(RANK, bytes(len(info)), SIZE, RANK, servers))
    # Once.
    assert str(error).count(f"rank {RANK} of {SIZE}") == 1, error
    with adasum.World.from_root_info(RANK, info, SIZE, RANK, options=servers) as world:
        assert (world.rank, world.size, world.servers, world.device) == (RANK, SIZE, SIZE, RANK)
        data = inputs()
        with adasum.GradientReducer(world, data) as reducer:
            reducer.reduce(data)
        near("root info", data[3], expected(3, locals_=1))


def world_of_a_communicator(folder):
    """The calls by which vllm-ascend's pyhccl makes a communicator and uses it, by ctypes. The world borrows it."""
    acl = ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    # The table's world was in this process, so the mock's other library is there, too.
    hccl = ctypes.CDLL("libhccl.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    hccl.HcclGetErrorString.restype = ctypes.c_char_p
    assert acl.aclrtSetDevice(RANK) == 0

    def check(result):
        assert result == 0, f"rank {RANK}: {hccl.HcclGetErrorString(result)}"

    info = ctypes.create_string_buffer(ROOT_INFO_BYTES)
    if RANK == 0:
        check(hccl.HcclGetRootInfo(info))
    info.raw = shared(folder / "pyhccl", info.raw)
    comm = ctypes.c_void_p()
    check(hccl.HcclCommInitRootInfo(ctypes.c_uint32(SIZE), info, ctypes.c_uint32(RANK), ctypes.byref(comm)))
    source, out = array.array("f", [RANK + 1.0] * 8), array.array("f", [0.0] * 8)
    addresses = {index: adasum.view(x).address for index, x in enumerate((source, out))}
    stage = HostCopies(RANK, [32, 32])

    def all_reduce():
        stage.upload(addresses)
        check(hccl.HcclAllReduce(ctypes.c_void_p(stage.addresses[0]), ctypes.c_void_p(stage.addresses[1]),
                                 ctypes.c_uint64(8), 4, 0, comm, ctypes.c_void_p(stage.stream.handle)))
        assert acl.aclrtSynchronizeStream(ctypes.c_void_p(stage.stream.handle)) == 0
        stage.download(addresses)
        assert list(out) == [SIZE * (SIZE + 1) / 2] * 8, out

    all_reduce()
    with adasum.World.from_comm(comm.value, adasum.Options(devices_per_server=1)) as world:
        data = inputs()
        with adasum.GradientReducer(world, data) as reducer:
            reducer.reduce(data)
        near("a borrowed communicator", data[3], expected(3, locals_=1))
    all_reduce()
    stage.close()
    check(hccl.HcclCommDestroy(comm))


def world_by_torchrun(folder):
    """RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, without a rank table; here two ranks a server."""
    for name in ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH", "RANK_ID"):
        os.environ.pop(name, None)
    os.environ.update(ADASUM_ROOTINFO_FILE=str(folder / "meeting"), LOCAL_RANK=str(RANK), DEVICE_ID=str(RANK))
    with adasum.World.from_environment(devices_per_server=2) as world:
        assert (world.rank, world.size, world.servers) == (RANK, SIZE, SIZE // 2)
        data = inputs()
        with adasum.GradientReducer(world, data) as reducer:
            reducer.reduce(data)
        near("torchrun", data[3], expected(3, locals_=2))


def main(folder):
    loads_and_logs()
    with adasum.World.from_environment() as world:
        assert (world.rank, world.size, world.devices_per_server) == (RANK, SIZE, LOCALS)
        for case in (reduces_buffers_of_the_host, takes_mappings_by_name, reduces_on_the_device, reduces_in_its_own_buffers, reduces_to_mean_and_sum, reduces_some,
                     reduces_steps_of_an_optimizer, takes_the_mean_of_a_group, keeps_tensors_that_only_the_call_holds, refuses_streams_of_tensors_of_the_host, sums_figures, finds_what_is_not_finite,
                     votes_on_overflow, reduces_flat_buffers, refuses_tensors_of_other_devices, leaves_the_device_of_a_thread,
                     scatters_and_collects, gathers_rows, clips_norms, accumulates,
                     makes_parts, fuses_by_parameter, ends_what_nobody_holds,
                     refuses_what_is_wrong, takes_numbers_of_other_libraries, is_pickled_or_refuses, ends_behind_calls_of_other_threads, keeps_streams_that_are_closed, refuses_a_second_thread,
                     reduces_numpy):
            case(world)
        keeps_a_journal(world, folder)
        refuses_an_old_torch(folder)
        held = adasum.GradientReducer(world, inputs())
    assert held.closed and world.closed
    world.finish()
    outlive_their_world()
    ends_streams_in_a_process_of_their_own()
    says_what_a_wait_met()
    ends_nothing_in_a_forked_child()
    gives_up_after_a_wait(folder)
    if LOCALS == 1:
        world_by_root_info(folder)
        world_of_a_communicator(folder)
        world_by_torchrun(folder)
    print(f"adasum {adasum.version()}: rank {RANK} of {SIZE} right", flush=True)


main(Path(sys.argv[1]))
