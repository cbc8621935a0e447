"""The wrap cells: AdaSum of gradients, or of an optimizer's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

import mindspore as ms
from mindspore import context, nn, ops

import adasum
from adasum.mindspore._graph import Through, check_mode
from adasum.mindspore._rebuilt import Gathering, Rebuilt
from adasum.mindspore._tensors import copied, current_stream, listed, on_one_side, on_target, row_tensor, rows_of
from adasum.mindspore._world import world_of_reducer
from adasum.options import check_choices
from adasum.tensors import specs_of
from adasum.world import check_world

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Ranks of a server in MindSpore's training cells.
_SERVER = 8


class _WrapCell(nn.Cell):
    """What both cells are made of: the optimizer, the parameters that are the same on all ranks, a reducer of each kind of tensors."""

    _reducer_class: Callable[..., Any]

    def __init__(
        self, optimizer: nn.Optimizer, *, world: Optional[adasum.World] = None, options: Optional[adasum.Options] = None,
        **choices: Unpack[adasum.OptionValues],
    ):
        if not isinstance(optimizer, nn.Optimizer):
            # MindSpore's words.
            raise TypeError(f"The type of 'optimizer' should be 'Optimizer', but got type '{type(optimizer).__name__}'.")
        if options is not None and choices:
            raise TypeError(f"options and {', '.join(choices)} are both given: give all of them as keywords")
        if world is not None:
            check_world(world)
        check_choices(choices, world)
        refusal = check_mode()
        # Not that of MindSpore's cells, which make communicators.
        nn.Cell.__init__(self, auto_prefix=False)
        self.optimizer = optimizer
        self.parameters = optimizer.parameters
        self.vote = choices.get("overflow") == "vote"
        if self.vote:
            refusal = "with overflow='vote' the host decides whether the optimizer steps, so the cell cannot be part of a graph: use PyNative mode"
            if context.get_context("mode") == context.GRAPH_MODE:
                raise RuntimeError(refusal)
        self.refusal = refusal
        self.kept = tuple(i for i, parameter in enumerate(self.parameters) if not parameter.layerwise_parallel)
        self.names = [self.parameters[i].name for i in self.kept]
        self.shapes = tuple(tuple(parameter.shape) for parameter in self.parameters)
        #: Whether the last call found a NaN or an infinity in gradients of any rank, with overflow="vote"; nothing was changed then.
        self.overflowed = False
        self.world = world or world_of_reducer(options, choices)
        if choices.get("profile") == "mindspore":
            choices.setdefault("mindspore_context", _parallel_context(self.world))
        _check_training_cells(self.world)

        def make(specs: list[adasum.TensorSpec]) -> Any:
            return self._reducer_class(self.world, specs, options, **choices)

        self.reducers = Rebuilt(make)
        self.gatherings: dict[str, Gathering] = {}
        self._build_graph()
        # Most gradients are as their parameters. So what is wrong is found here, and the first step does not wait.
        if context.get_context("mode") == context.GRAPH_MODE:
            self._in_graph()
        else:
            self.reducers.of(specs_of(zip(self.names, self._weights())))

    def _build_graph(self) -> None:
        raise NotImplementedError

    def _step(self, gradients: list[Any]) -> Any:
        raise NotImplementedError

    def __call__(self, grads: Any) -> Any:
        """Reduces and steps. Collective. Inside compiled graphs `construct` does; called from Python nothing needs to be compiled."""
        gradients = listed(grads)
        if len(gradients) != len(self.parameters):
            raise ValueError(f"grads has {len(gradients)} gradients, the optimizer has {len(self.parameters)} parameters")
        return self._step(gradients)

    @property
    def reducer(self) -> Any:
        """The reducer that is in use, for its statistics. None after `close`."""
        return self.reducers.reducer

    def close(self) -> None:
        """Waits for the device and ends the reducers; the next step would make new ones."""
        self.reducers.close()
        for gathering in self.gatherings.values():
            gathering.close()

    def _in_graph(self) -> Any:
        """The reducer of a graph, where all tensors come as fp32."""
        sizes = [self.parameters[i].size for i in self.kept]
        return self.reducers.of([adasum.TensorSpec(name, size, adasum.F32) for name, size in zip(self.names, sizes)])

    def _weights(self) -> list[ms.Parameter]:
        weights = [self.parameters[i] for i in self.kept]
        on_one_side(weights)
        return weights

    def _gather_rows(self, gradients: list[Any]) -> bool:
        """Replaces sparse gradients by the rows of all ranks, and says whether these overflow, the same on all ranks."""
        overflow = False
        for name, i in zip(self.names, self.kept):
            rows = rows_of(gradients[i])
            if rows is not None:
                if name not in self.gatherings:
                    self.gatherings[name] = Gathering(self.world, name)
                found, finite = self.gatherings[name].gather(rows)
                gradients[i] = row_tensor(found)
                overflow = overflow or not finite
        return self.vote and overflow

    def _overflow(self, reducer: Any, gradients: Sequence[ms.Tensor]) -> bool:
        """Has the ranks vote, if they are to."""
        return self.vote and bool(reducer.overflow(gradients, current_stream(gradients[0])))


def _parallel_context(world: adasum.World) -> str:
    """MindSpore's parallel context as the option mindspore_context has it."""
    mode, sharded, stages, devices = (
        context.get_auto_parallel_context(name)
        for name in ("parallel_mode", "enable_parallel_optimizer", "pipeline_stages", "device_num")
    )
    # 1 is what MindSpore says where nobody has set it.
    return f"{mode},{int(sharded)},{stages},{devices if devices > 1 else world.size}"


def _check_training_cells(world: adasum.World) -> None:
    mode = context.get_auto_parallel_context("parallel_mode")
    if mode in ("data_parallel", "hybrid_parallel") and world.devices_per_server != _SERVER:
        raise RuntimeError(
            f"in {mode} mode MindSpore's training cells average gradients over {_SERVER} ranks before this cell does over the "
            f"{world.devices_per_server} ranks of a server of this world: set parallel_mode to stand_alone, or make servers of {_SERVER}"
        )


def _skipped() -> ms.Tensor:
    return ms.Tensor(False)


class AdaSumByGradWrapCell(_WrapCell, getattr(nn, "AdaSumByGradWrapCell", nn.Cell)):  # type: ignore[misc]
    """An optimizer that steps on the AdaSum of all ranks' gradients: the mean in each server, AdaSum across servers.

        AdaSumByGradWrapCell(nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9))

    Weights must be equal on all ranks at first, as by `mindspore.set_seed`, and stay so. Made and called by all ranks alike; called with
    the tuple of gradients of `optimizer.parameters`, which are left as they are; returns what the optimizer does. It is an
    `nn.AdaSumByGradWrapCell` where MindSpore has one, so that `Model` takes it.

    `world` is by default that of the environment (`adasum.mindspore.world`). Options are keywords, or `options` alone. overflow="vote",
    delta_form="local" and profile="mindspore" must be keywords: of `options` the cell does not know them. MindSpore's limits (16 devices
    or more, a power of two, servers of 8, no stand_alone mode) are not this library's. They are asked for by profile="mindspore", with
    MindSpore's errors and warning; the warning goes to the logger "adasum". One server alone is an error unless devices_per_server=1
    makes each rank a server, or allow_plain_mean=True.

    With overflow="vote" a NaN or infinity on any rank has all ranks skip the step: see `overflowed`. Gradients of layerwise_parallel
    parameters are not reduced. RowTensors are gathered from all ranks, with 1/size of their values, and not merged. Gradients may be fp32, fp16
    or bf16; where sizes or types change all ranks make a new reducer.

    Raises TypeError if `optimizer` is no nn.Optimizer, RuntimeError in graph mode on Ascend if the graph operator cannot be built
    (see `load_graph_operator`), and adasum.Error for what the library reports, as wrong options or a rank that does not come."""

    _reducer_class = adasum.GradientReducer

    def _build_graph(self) -> None:
        def reduce(gradients: list[Any], stream: Optional[int]) -> None:
            self._in_graph().reduce(gradients, stream)

        self.through = Through(self.shapes, self.kept, reduce, self.refusal)

    def _step(self, gradients: list[Any]) -> Any:
        self.overflowed = self._gather_rows(gradients)
        dense = [i for i in self.kept if isinstance(gradients[i], ms.Tensor)]
        if dense and not self.overflowed:
            copies = [copied(gradients[i]) for i in dense]
            reducer = self.reducers.of(specs_of(zip((self.parameters[i].name for i in dense), copies)))
            self.overflowed = self._overflow(reducer, copies)
            if not self.overflowed:
                reducer.reduce(copies, current_stream(copies[0]))
                for i, copy in zip(dense, copies):
                    gradients[i] = copy
        return _skipped() if self.overflowed else self.optimizer(tuple(gradients))

    def construct(self, grads: Any) -> Any:
        return self.optimizer(self.through(grads))


class AdaSumByDeltaWeightWrapCell(_WrapCell, getattr(nn, "AdaSumByDeltaWeightWrapCell", nn.Cell)):  # type: ignore[misc]
    """An optimizer whose steps are combined by AdaSum: for optimizers that are not linear in the gradients, as Adam.

        AdaSumByDeltaWeightWrapCell(nn.Adam(net.trainable_params(), learning_rate=0.001))

    Each rank's optimizer steps on the mean gradients of its server (with delta_form="local" on its own), then the weights become old -
    AdaSum(old - new) across servers. Weights must be equal on all ranks at first, and stay so. Returns the parameters.

    All else is as in `AdaSumByGradWrapCell`, but that sparse gradients are taken only where no mean in servers is: with
    delta_form="local", or one rank a server."""

    _reducer_class = adasum.DeltaWeightReducer

    def __init__(
        self, optimizer: nn.Optimizer, *, world: Optional[adasum.World] = None, options: Optional[adasum.Options] = None,
        **choices: Unpack[adasum.OptionValues],
    ):
        self.local = choices.get("delta_form") == "local"
        super().__init__(optimizer, world=world, options=options, **choices)

    def _build_graph(self) -> None:
        number = len(self.kept)
        both = self.kept + tuple(len(self.shapes) + i for i in self.kept)

        def begin(tensors: list[Any], stream: Optional[int]) -> None:
            self._in_graph().begin(weights=tensors[:number], gradients=tensors[number:], stream=stream)

        def end(weights: list[Any], stream: Optional[int]) -> None:
            self._in_graph().end(weights, stream)

        self.begin = Through(self.shapes + self.shapes, both, begin, self.refusal)
        self.end = Through(self.shapes, self.kept, end, self.refusal)

    def _step(self, gradients: list[Any]) -> Any:
        weights = self._weights()
        reducer = self.reducers.of(specs_of(zip(self.names, weights)))
        stream = current_stream(weights[0])
        sparse = next((name for name, i in zip(self.names, self.kept) if rows_of(gradients[i]) is not None), None)
        if self.local or self.world.devices_per_server == 1:
            if self.vote:
                if sparse is not None:
                    raise ValueError(f"gradient {sparse!r} is sparse: overflow='vote' needs dense gradients in a delta-weight cell")
                self.overflowed = self._overflow(reducer, [on_target(gradients[i]) for i in self.kept])
            means = None
        else:
            if sparse is not None:
                raise ValueError(f"gradient {sparse!r} is sparse: the mean in a server needs dense ones, or delta_form='local'")
            means = [copied(gradients[i]) for i in self.kept]
            self.overflowed = self._overflow(reducer, means)
        if self.overflowed:
            return self.parameters
        reducer.begin(weights=weights, gradients=means, stream=stream)
        for i, mean in zip(self.kept, means or ()):
            gradients[i] = mean
        try:
            self.optimizer(tuple(gradients))
        except BaseException:
            reducer.reset()
            raise
        # Asking for the addresses hands on what the optimizer has queued.
        reducer.end(weights, current_stream(weights[0]))
        return self.parameters

    def construct(self, grads: Any) -> Any:
        means = self.begin(self.weights() + grads)[len(grads) :]
        combined = self.end(ops.depend(self.weights(), self.optimizer(means)))
        for i in self.kept:
            ops.assign(self.parameters[i], combined[i])
        return self.parameters

    def weights(self) -> Any:
        return tuple([parameter for parameter in self.parameters])
