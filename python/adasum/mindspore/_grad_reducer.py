"""The mean of gradients over ranks, as MindSpore's data parallel mode has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Optional, Sequence, Union

import mindspore as ms
from mindspore import context, nn
from mindspore.communication import GlobalComm

import adasum
from adasum.mindspore._graph import Through, check_mode
from adasum.mindspore._rebuilt import Gathering, Rebuilt
from adasum.mindspore._tensors import copied, current_stream, listed, row_tensor, rows_of
from adasum.mindspore._world import world as environment_world
from adasum.tensors import specs_of
from adasum.world import check_world


class DistributedGradReducer(nn.Cell):
    """Adds the gradients of all ranks, and multiplies them by 1 / degree if `mean`.

        grads = DistributedGradReducer(optimizer.parameters, mean=True)(grads)

    `mean` is by default the context's gradients_mean, `degree` the number of ranks. `group` is a list of ranks or the name of a group of
    MindSpore's; only its ranks make and call the reducer. Where parameters differ in `comm_fusion`, gradients with equal numbers travel
    together and those with 0 alone. Else `fusion_type` 0 sends each gradient by itself, anything else sends them together, cut where the
    context's all_reduce_fusion_config says. Results do not depend on it.

    Called with a gradient, or a tuple of those of `parameters`; gives new ones and leaves these as they are. Each is added in fp32 and
    keeps its type. Those of layerwise_parallel parameters are handed through; RowTensors are gathered, and
    not merged.

    `world` is by default that of the environment (`adasum.mindspore.world`). Making one and calling it is collective.

    Raises ValueError in MindSpore's words if `degree` is no int or not above 0; else as `AdaSumByGradWrapCell`."""

    def __init__(
        self, parameters: Sequence[ms.Parameter], mean: Optional[bool] = None, degree: Optional[int] = None, fusion_type: int = 1,
        group: Union[str, Sequence[int]] = GlobalComm.WORLD_COMM_GROUP, *, world: Optional[adasum.World] = None,
    ):
        if degree is not None and (not isinstance(degree, int) or degree <= 0):
            # MindSpore's words.
            raise ValueError(
                "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 and be int, "
                f"degree: {degree}."
            )
        if world is not None:
            check_world(world)
        refusal = check_mode()
        super().__init__(auto_prefix=False)
        if mean is None:
            mean = context.get_auto_parallel_context("gradients_mean")
        self.parameters = tuple(parameters)
        self.kept = tuple(i for i, parameter in enumerate(self.parameters) if not parameter.layerwise_parallel)
        self.names = [parameter.name for parameter in self.parameters]
        self.world = world or environment_world()
        ranks = ranks_of(group)
        reduction: Literal["mean", "sum"] = "mean" if mean else "sum"
        self.gathered_with = {"group": ranks, "degree": degree, "reduction": reduction}
        fusion = cuts(fusion_type, len(self.kept))

        flags = {parameter.name: adasum.fusion_flag(parameter.comm_fusion) for parameter in self.parameters}

        def make(specs: list[adasum.TensorSpec]) -> Any:
            fused = [replace(spec, flags=flags[spec.name]) for spec in specs]
            return adasum.MeanReducer(self.world, fused, group=ranks, degree=degree, reduction=reduction, fusion=fusion)

        self.reducers = Rebuilt(make)
        self.gatherings: dict[int, Gathering] = {}

        def reduce(gradients: list[Any], stream: Optional[int]) -> None:
            vectors = [adasum.TensorSpec(self.names[i], self.parameters[i].size, adasum.F32) for i in self.kept]
            self.reducers.of(vectors).reduce(gradients, stream)

        self.through = Through([parameter.shape for parameter in self.parameters], self.kept, reduce, refusal)

    def __call__(self, grads: Any) -> Any:
        """The reduced gradients. Collective. Inside compiled graphs `construct` does; called from Python nothing needs to be compiled."""
        gradients = listed(grads)
        if len(gradients) != len(self.parameters):
            raise ValueError(f"grads has {len(gradients)} gradients, there are {len(self.parameters)} parameters")
        dense = []
        for i in self.kept:
            rows = rows_of(gradients[i])
            if rows is None:
                dense.append(i)
            else:
                if i not in self.gatherings:
                    self.gatherings[i] = Gathering(self.world, self.names[i], **self.gathered_with)
                gradients[i] = row_tensor(self.gatherings[i].gather(rows)[0])
        if dense:
            types = [gradients[i].dtype for i in dense]
            copies = [copied(gradients[i] if kind != ms.float64 else gradients[i].astype(ms.float32)) for i, kind in zip(dense, types)]
            reducer = self.reducers.of(specs_of(zip((self.names[i] for i in dense), copies)))
            reducer.reduce(copies, current_stream(copies[0]))
            for i, copy, kind in zip(dense, copies, types):
                gradients[i] = copy if kind != ms.float64 else copy.astype(kind)
        return tuple(gradients) if isinstance(grads, (tuple, list)) and rows_of(grads) is None else gradients[0]

    def construct(self, grads: Any) -> Any:
        return self.through(grads)

    def close(self) -> None:
        """Waits for the device and ends the reducers; the next call would make new ones."""
        self.reducers.close()
        for gathering in self.gatherings.values():
            gathering.close()


def ranks_of(group: Union[str, Sequence[int]]) -> Optional[list[int]]:
    """The ranks of a group; none for all."""
    if not isinstance(group, str):
        return sorted(group)
    if group == GlobalComm.WORLD_COMM_GROUP or group.endswith("_world_group"):
        return None
    from mindspore.communication import get_process_group_ranks

    return sorted(get_process_group_ranks(group))


def cuts(fusion_type: int, number: int) -> Any:
    """The option fusion for `number` gradients."""
    if isinstance(fusion_type, bool) or not isinstance(fusion_type, int) or fusion_type < 0:
        raise ValueError(f"fusion_type is {fusion_type!r}: it must be a number of at least 0")
    if fusion_type == 0:
        return "none"
    positions = [cut for cut in context.get_auto_parallel_context("all_reduce_fusion_config") or () if cut < number - 1]
    return positions or "all"
