"""One rank of the tutorial's training with MindSpore: LeNet5 on digits, with AdaSum.

    bash run_node1.sh ../../data/optdigits.csv & bash run_node2.sh ../../data/optdigits.csv

It makes the calls of MindSpore's tutorial on adaptive gradient summation, but for the imports of adasum.mindspore. Without NPUs MindSpore
computes on the CPU, and this library is over its mock of ACL and HCCL. For Ascend:

- `--device_target Ascend`. That also changes the mode to PyNative, where the function of the gradients may still be compiled with
  mindspore.jit. Graph mode, `--mode graph`, wants a C++ compiler and the packages ninja and pyyaml: the first step builds an operator.
- `source set_env.sh` of CANN, and a rank table of your devices (`adasum-run table make`).
- Your data in the place of `create_dataset`, your network in the place of `LeNet5`, and dataset_sink_mode=True."""

import argparse
import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import FixedLossScaleManager, Model, ParallelMode, Tensor, context, nn, ops
from mindspore.dataset import transforms, vision
from mindspore.train import LossMonitor, TimeMonitor

# The lines that change: these names came from mindspore.nn and mindspore.boost.
from adasum.mindspore import AdaSumByDeltaWeightWrapCell, AdaSumByGradWrapCell, DistributedGradReducer, boost

RANK_ID, RANK_SIZE = int(os.environ["RANK_ID"]), int(os.environ["RANK_SIZE"])
DEVICE_NUM, DEVICE_ID = int(os.environ["DEVICE_NUM"]), int(os.environ["DEVICE_ID"])


class LeNet5(nn.Cell):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, num_classes)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class TrainingWrapper(nn.Cell):
    """A training step with a reducer of its own, as the reference of DistributedGradReducer has it."""

    def __init__(self, network, optimizer, sens=1.0):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.add_flags(defer_inline=True)
        self.weights = optimizer.parameters
        self.optimizer = optimizer
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens
        self.reducer_flag = False
        self.grad_reducer = None
        self.parallel_mode = context.get_auto_parallel_context("parallel_mode")
        if self.parallel_mode in [ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL]:
            self.reducer_flag = True
        if self.reducer_flag:
            mean = context.get_auto_parallel_context("gradients_mean")
            degree = context.get_auto_parallel_context("device_num")
            self.grad_reducer = DistributedGradReducer(optimizer.parameters, mean, degree)

    def construct(self, *args):
        weights = self.weights
        loss = self.network(*args)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, weights)(*args, sens)
        if self.reducer_flag:
            grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))


def create_dataset(data_path, batch_size):
    """This rank's share of the digits, in the place of ImageNet: 8 x 8 pixels made 32 x 32."""
    table = np.loadtxt(data_path, delimiter=",", dtype=np.uint8)
    images, labels = table[:, :64].reshape(-1, 8, 8, 1), table[:, 64].astype(np.int32)
    data = ds.NumpySlicesDataset((images, labels), ["image", "label"], num_shards=RANK_SIZE, shard_id=RANK_ID, shuffle=True)
    data = data.map([vision.Resize((32, 32)), vision.Rescale(1 / 16, 0.0), vision.HWC2CHW()], "image")
    data = data.map(transforms.TypeCast(ms.int32), "label")
    return data.batch(batch_size, drop_remainder=True)


def init_group_params(net):
    """Weight decay for all but biases."""
    decayed = [parameter for parameter in net.trainable_params() if "bias" not in parameter.name]
    others = [parameter for parameter in net.trainable_params() if "bias" in parameter.name]
    return [{"params": decayed, "weight_decay": 1e-4}, {"params": others}, {"order_params": net.trainable_params()}]


def get_lr(lr_max, warmup_steps, total_steps):
    """A learning rate for each step: a linear rise, then a linear fall."""
    rise = [lr_max * (step + 1) / warmup_steps for step in range(warmup_steps)]
    fall = [lr_max * (total_steps - step) / (total_steps - warmup_steps) for step in range(warmup_steps, total_steps)]
    return Tensor(np.array(rise + fall, np.float32))


BOOST = {
    "boost": {
        "mode": "manual",
        "less_bn": False,
        "grad_freeze": False,
        "adasum": True,
        "grad_accumulation": False,
        "dim_reduce": False,
    },
    # MindSpore's default is 8.
    "common": {"device_number": DEVICE_NUM},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_path", required=True, help="optdigits.csv")
    parser.add_argument("--reducer", default="gradient", choices=["gradient", "delta", "boost", "mean"])
    parser.add_argument("--device_target", default="CPU", choices=["CPU", "Ascend"])
    parser.add_argument("--mode", choices=["graph", "pynative"], help="default: graph on the CPU, else pynative")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()

    graph = args.mode == "graph" if args.mode else args.device_target == "CPU"
    context.set_context(mode=context.GRAPH_MODE if graph else context.PYNATIVE_MODE, device_target=args.device_target)
    if args.device_target == "Ascend":
        context.set_context(device_id=DEVICE_ID)
    # Weights must be equal on all ranks at first.
    ms.set_seed(1)
    ds.config.set_num_parallel_workers(1)

    ds_train = create_dataset(args.data_path, args.batch_size)
    step_size = ds_train.get_dataset_size()
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    scale = 1024
    opt = nn.Momentum(init_group_params(net), get_lr(args.lr, step_size, args.epochs * step_size), 0.9, loss_scale=scale)

    if args.reducer == "mean":
        # The wrap cells need none of this: they know the servers by their world.
        context.set_auto_parallel_context(device_num=RANK_SIZE, parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
        model = Model(TrainingWrapper(nn.WithLossCell(net, loss), opt, sens=float(scale)))
    else:
        wrap = {"gradient": AdaSumByGradWrapCell, "delta": AdaSumByDeltaWeightWrapCell, "boost": lambda opt: boost(opt, BOOST, "O2")}
        opt = wrap[args.reducer](opt)
        loss_scale = FixedLossScaleManager(scale, drop_overflow_update=False)
        model = Model(net, loss_fn=loss, optimizer=opt, loss_scale_manager=loss_scale)

    cb = [TimeMonitor(data_size=step_size), LossMonitor(step_size)]
    print("============== Starting Training ==============", flush=True)
    model.train(args.epochs, ds_train, callbacks=cb, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
