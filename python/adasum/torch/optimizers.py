"""Optimizers around torch's: of each rank's step, or of gradients before the step, as Horovod's DistributedOptimizer has them."""

from __future__ import annotations

import contextlib
import enum
import math
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, NoReturn, Optional, Union

import torch
import torch.distributed as dist

import adasum
from adasum._arguments import real, whole
from adasum.torch.groups import Reducing, current_stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Parameters with their names, as `torch.nn.Module.named_parameters` gives them, or in a dictionary.
NamedParameters = Union[Mapping[str, torch.Tensor], Iterable[tuple[str, torch.Tensor]]]


class Op(enum.Enum):
    """How ranks are combined; the value is that of the option reduction."""

    ADASUM = "adasum"
    AVERAGE = "mean"
    SUM = "sum"


#: As Horovod names them.
Adasum, Average, Sum = Op.ADASUM, Op.AVERAGE, Op.SUM


class Compression(enum.Enum):
    """Horovod's compressions. Only `none` can be used: tensors travel in their own type."""

    none = "none"
    fp16 = "fp16"


class _BackwardPasses:
    """Counts the backward passes that each parameter has had since the last step. Parameters do not keep it alive."""

    def __init__(self, named: dict[str, torch.Tensor], limit: Optional[int]):
        #: The most before a step; any number if none.
        self.limit = limit
        #: Whether there was one since this was set to False.
        self.any = False
        self._done = dict.fromkeys(named, 0)
        mine = weakref.ref(self)

        def counter(name: str) -> Callable[[Any], None]:
            def count(_: Any) -> None:
                passes = mine()
                if passes is not None:
                    passes._count(name)

            return count

        self._hooks = [tensor.register_post_accumulate_grad_hook(counter(name)) for name, tensor in named.items() if tensor.requires_grad]

    def _count(self, name: str) -> None:
        self.any = True
        self._done[name] += 1
        if self.limit is not None and self._done[name] > self.limit:
            raise AssertionError(
                f"parameter {name!r} has had {self._done[name]} backward passes since the last step, more than "
                f"backward_passes_per_step, which is {self.limit}"
            )

    def start_anew(self) -> None:
        self._done = dict.fromkeys(self._done, 0)

    def remove(self) -> None:
        for registered in self._hooks:
            registered.remove()


class _Wrapper(Reducing, torch.optim.Optimizer):
    """An optimizer around another one, with a reducer of its parameters. Groups, state and defaults are those of the wrapped optimizer,
    so schedulers and checkpoints are as usual."""

    #: Whether the program has made an adasum.torch.GradScaler.
    _has_scaler = False

    # The base class keeps groups and state of its own, so it is not initialised.
    def __init__(
        self, optimizer: torch.optim.Optimizer, world: Optional[adasum.World], parameters: Union[torch.nn.Module, NamedParameters, None],
        kind: Any, choices: adasum.OptionValues, passes: Optional[int], sparse_as_dense: bool,
    ):
        """`kind` is the class of reducer; `passes` the most backward passes before a step, any number if none."""
        if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, (_Wrapper, torch.optim.LBFGS)):
            raise TypeError(f"optimizer is a {type(optimizer).__name__}: it must be an optimizer of torch that steps once, not wrapped yet")
        self.optimizer = optimizer
        self._named = _named(optimizer, parameters)
        if all(name.startswith("module.") for name in self._named):
            # The third is the program, or DistributedOptimizer.
            warnings.warn(
                "the names of all parameters begin with \"module.\", as those of DistributedDataParallel do: its mean of gradients leaves AdaSum "
                "nothing to do, so give the optimizer the model itself, or give adasum.torch.register the DistributedDataParallel", stacklevel=3,
            )
        self._parameters = list(self._named.values())
        self._sparse_as_dense = sparse_as_dense
        if choices.get("overflow") is None:
            choices["overflow"] = "vote"
        weights = {name: tensor.detach() for name, tensor in self._named.items()}
        self._start(world, None, choices, lambda in_world, options: kind(in_world, weights, **options), self._parameters[0])
        self._passes = _BackwardPasses(self._named, None)
        if passes is not None:
            self.set_backward_passes_per_step(passes)

    def __reduce__(self) -> NoReturn:
        # The base class would leave out the wrapped optimizer, and say nothing.
        raise TypeError(f"{type(self).__name__} objects belong to their process: they can be neither copied nor pickled; their state_dict() can")

    # For types they are the attributes of the base class, which may be written there.
    if not TYPE_CHECKING:

        @property
        def param_groups(self) -> Any:
            return self.optimizer.param_groups

        @property
        def state(self) -> Any:
            return self.optimizer.state

        @property
        def defaults(self) -> Any:
            return self.optimizer.defaults

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """False: the scaler unscales gradients and may leave the step out. torch's GradScaler asks in its `step`, on all ranks and before it
        looks at gradients: so here it is refused, by its lack of ours. Others may ask at any time, as Lightning does."""
        if not self._has_scaler and not self._is_reduced() and self._world.size > 1:
            raise RuntimeError(
                "scaler.step(optimizer) needs an adasum.torch.GradScaler: others leave a step out on those ranks only that have an infinity, "
                "and the rest would wait for them"
            )
        return False

    def _is_reduced(self) -> bool:
        """Whether `step` takes gradients as they are, equal on all ranks."""
        return False

    def set_backward_passes_per_step(self, passes: int) -> None:
        """More backward passes of a parameter than this before a step are an AssertionError."""
        self._passes.limit = whole("backward_passes_per_step", passes, range(1, 2**32))

    def _stream(self) -> Optional[int]:
        return current_stream(self._parameters[0])

    def _gradients(self, fill: bool) -> list[torch.Tensor]:
        """The gradients of all parameters, zeros for those without one; `fill` gives them to the parameters that need gradients."""
        found = []
        for name, tensor in self._named.items():
            gradient = tensor.grad
            if gradient is None:
                gradient = torch.zeros_like(tensor, requires_grad=False)
                if fill and tensor.requires_grad:
                    tensor.grad = gradient
            elif gradient.is_sparse:
                if fill:
                    raise ValueError(
                        f"parameter {name!r} has a sparse gradient, and gradients are combined here: give sparse_as_dense=True, "
                        "or op=adasum.torch.Adasum, which combines the ranks' steps"
                    )
                gradient = gradient.to_dense()
            found.append(gradient.detach())
        return found

    def _make_dense(self) -> None:
        for tensor in self._parameters if self._sparse_as_dense else ():
            if tensor.grad is not None and tensor.grad.is_sparse:
                tensor.grad = tensor.grad.to_dense()

    def overflow(self) -> bool:
        """Whether any rank has a NaN or an infinity in its gradients: the same answer on all ranks. Collective; waits."""
        return bool(self._reducer.overflow(self._gradients(fill=False), self._stream()))

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)
        self._start_anew()

    def _start_anew(self) -> None:
        """A step is done, or left out: the gradients that there are belong to no step any more."""
        self._passes.start_anew()

    def state_dict(self) -> Any:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: Any) -> None:
        self.optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: Any) -> None:
        raise RuntimeError("the reducer was made for the parameters that the optimizer had: close this one and wrap the optimizer again")

    def close(self) -> None:
        self._passes.remove()
        super().close()

    close.__doc__ = Reducing.close.__doc__

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._passes.remove()
        super().__exit__(kind, *rest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.optimizer!r})"

    def __getattr__(self, name: str) -> Any:
        # Hooks of steps and the like are the wrapped optimizer's. Before there is one nothing can be looked for in it.
        if name == "optimizer":
            raise AttributeError(name)
        return getattr(self.optimizer, name)


def _named(optimizer: torch.optim.Optimizer, parameters: Union[torch.nn.Module, NamedParameters, None]) -> dict[str, torch.Tensor]:
    """The optimizer's parameters in its order, by their names."""
    groups = [group["params"] for group in optimizer.param_groups]
    places = {id(tensor): f"group {i}, parameter {j}" for i, group in enumerate(groups) for j, tensor in enumerate(group)}
    if not places:
        raise ValueError("the optimizer has no parameters")
    if parameters is None:
        names = places
    else:
        found = parameters.named_parameters() if isinstance(parameters, torch.nn.Module) else parameters
        if not isinstance(found, Iterable):
            raise TypeError(f"named_parameters is a {type(found).__name__}: it must be pairs (name, parameter), as model.named_parameters() gives them")
        pairs = list(found.items() if isinstance(found, Mapping) else found)
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise ValueError("named_parameters must be pairs (name, parameter), as model.named_parameters() gives them")
        names = {id(tensor): name for name, tensor in pairs}
        listed = [name for name, _ in pairs]
        twice = sorted({name for name in listed if listed.count(name) > 1}) if len(set(listed)) < len(listed) else []
        if twice:
            raise ValueError(f"named_parameters has names several times: {', '.join(twice)}")
    ours = [tensor for group in groups for tensor in group]
    for tensor in ours:
        if id(tensor) not in names:
            raise ValueError(f"named_parameters lacks the optimizer's {places[id(tensor)]}, of shape {tuple(tensor.shape)}")
    return {names[id(tensor)]: tensor for tensor in ours}


def _loss_of(closure: Optional[Callable[[], Any]]) -> Any:
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


class DeltaOptimizer(_Wrapper):
    """Wraps an optimizer: each rank's step becomes the AdaSum of all ranks' steps (the paper's way for optimizers that are not
    linear in the gradients, as Adam). Instead of DistributedDataParallel, not beside it. Making one is collective.

        with adasum.torch.DeltaOptimizer(torch.optim.Adam(model.parameters()), world, model) as optimizer:

    Weights must be equal on all ranks at first, and stay so. With several ranks a server the optimizer steps on the mean of
    their gradients; with the option delta_form="local" each rank on its own. Groups, state and defaults are those of the
    wrapped optimizer, so schedulers and checkpoints are as usual; with "local" every rank has a state, and a checkpoint, of its own.
    After weights were loaded in the middle of a step call `reset`. Without a world it makes one of all ranks, which ends with it."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, world: Optional[adasum.World] = None,
        parameters: Union[torch.nn.Module, NamedParameters, None] = None, *, backward_passes_per_step: Optional[int] = None,
        sparse_as_dense: bool = False, **choices: Unpack[adasum.OptionValues],
    ):
        """`parameters` are the model or its named parameters, for messages; `choices` options of the reducer and of a world of its own."""
        self._local = choices.get("delta_form") == "local"
        super().__init__(
            optimizer, world, parameters, adasum.DeltaWeightReducer, choices, backward_passes_per_step, sparse_as_dense
        )

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step of all ranks, after `closure` where there is one; returns its loss. Collective.

        Parameters without a gradient: with delta_form="local" the wrapped optimizer leaves them alone, so this rank's step of them is zero;
        otherwise they have a gradient of zeros."""
        loss = _loss_of(closure)
        self._make_dense()
        weights = [tensor.detach() for tensor in self._parameters]
        gradients = None if self._local else self._gradients(fill=True)
        self._reducer.begin(weights=weights, gradients=gradients, stream=self._stream())
        try:
            self.optimizer.step()
        except BaseException:
            self._reducer.reset()
            raise
        # Asked anew: the optimizer may have given parameters other memory, and that also hands on what it has queued.
        self._reducer.end([tensor.detach() for tensor in self._parameters], self._stream())
        self._start_anew()
        return loss

    def synchronize(self) -> None:
        """Nothing: gradients are not reduced. As in Horovod."""

    def skip_synchronize(self) -> Any:
        """Refused, as in Horovod: there is no reduction of gradients that could be left out."""
        raise AssertionError("skip_synchronize is for op=adasum.torch.Average or Sum: AdaSum of steps reduces no gradients")

    def reset(self) -> None:
        """Forgets the saved weights of an open step. All ranks must do the same."""
        self._reducer.reset()


def _check_dlpack(optimizer: Any) -> None:
    """Refuses parameters on an NPU if torch_npu cannot make tensors of the reducer's buffers, before there is a world."""
    first = next((tensor for group in getattr(optimizer, "param_groups", ()) for tensor in group["params"]), None)
    if first is None or first.device.type != "npu":
        return
    import torch_npu

    # torch.from_dlpack calls it for NPUs (torch_npu/utils/dlpack.py).
    if not hasattr(torch_npu._C, "_npu_from_dlpack"):
        raise RuntimeError(
            f"gradient_buffers needs a newer torch_npu: {torch_npu.__version__} has no _npu_from_dlpack, by which a tensor lies in the "
            "reducer's buffers"
        )


class GradientOptimizer(_Wrapper):
    """Wraps an optimizer: it steps on the mean or sum of all ranks' gradients (the option reduction), or on their AdaSum. Instead of
    DistributedDataParallel, not beside it. Making one is collective.

    To change gradients between reduction and step: `synchronize()`, the change, `step()`.

    With the option gradient_buffers the gradients of parameters on an NPU lie in the reducer's buffers until `close`, where other ranks
    read them (exchange="shared"): `zero_grad` then keeps them, as zeros. Gradients that lie elsewhere are reduced, too, but copied: those
    that were replaced, and 16-bit ones of fewer than 64 elements, which have no place there."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, world: Optional[adasum.World] = None,
        parameters: Union[torch.nn.Module, NamedParameters, None] = None, *, backward_passes_per_step: Optional[int] = None,
        sparse_as_dense: bool = False, **choices: Unpack[adasum.OptionValues],
    ):
        """As for `DeltaOptimizer`."""
        in_buffers = bool(choices.get("gradient_buffers"))
        if in_buffers:
            _check_dlpack(optimizer)
        super().__init__(optimizer, world, parameters, adasum.GradientReducer, choices, backward_passes_per_step, sparse_as_dense)
        self._synchronized = self._skips = False
        # Parameters whose gradients lie in the reducer's buffers, and where.
        self._placed: list[tuple[torch.Tensor, int]] = []
        if in_buffers and self._parameters[0].device.type == "npu":
            self._place_gradients()

    def _place_gradients(self) -> None:
        for tensor, place in zip(self._parameters, self._reducer.gradient_buffers()):
            if tensor.requires_grad and place is not None and place.count > 0:
                # torch's types do not have from_dlpack as a name of torch, where torch_npu may replace it.
                gradient = getattr(torch, "from_dlpack")(place).as_strided(tensor.size(), tensor.stride())
                if tensor.grad is None:
                    gradient.zero_()
                else:
                    gradient.copy_(tensor.grad)
                # Who forgets `close` must not write to memory that is free.
                setattr(gradient, "_reducer", self._reducer)
                tensor.grad = gradient
                self._placed.append((tensor, place.address))

    def _take_gradients_back(self, values: bool) -> None:
        for tensor, address in self._placed:
            if tensor.grad is not None and tensor.grad.data_ptr() == address:
                tensor.grad = tensor.grad.clone() if values else None
        self._placed = []

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none and not self._placed)

    def close(self) -> None:
        self._take_gradients_back(values=True)
        super().close()

    close.__doc__ = Reducing.close.__doc__

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None:
            self._take_gradients_back(values=False)
        super().__exit__(kind, *rest)

    def synchronize(self) -> None:
        """Replaces the gradients by their reduction; parameters without one have zeros. Collective."""
        self._make_dense()
        self._reducer.reduce(self._gradients(fill=True), self._stream())
        self._synchronized = True
        self._passes.any = False

    def _is_reduced(self) -> bool:
        # A backward pass behind `synchronize` brings gradients of this rank only.
        return self._synchronized and not self._passes.any or self._skips

    def _start_anew(self) -> None:
        self._synchronized = False
        super()._start_anew()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Lets `step` take gradients as they are."""
        self._skips = True
        try:
            yield
        finally:
            self._skips = False

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step of all ranks, after `closure` where there is one; returns its loss. Reduces the gradients unless `synchronize` has done so.
        Collective."""
        loss = _loss_of(closure)
        if not self._is_reduced():
            self.synchronize()
        self.optimizer.step()
        self._start_anew()
        return loss


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[NamedParameters] = None,
    compression: Optional[Compression] = None, backward_passes_per_step: int = 1, op: Op = Adasum,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Optional[Any] = None, sparse_as_dense: bool = False,
    process_set: Optional[dist.ProcessGroup] = None, *, world: Optional[adasum.World] = None, **choices: Unpack[adasum.OptionValues],
) -> Union[DeltaOptimizer, GradientOptimizer]:
    """Horovod's function of this name (0.28.1), for an optimizer of torch; the default of `op` is AdaSum. Collective among all ranks.

    op=Adasum: a `DeltaOptimizer`; each rank steps on its own gradients, unless the option delta_form says otherwise. op=Average, op=Sum: a
    `GradientOptimizer`. Both reduce in `step`, not during the backward pass, so gradients may be changed or dropped between the two.

    backward_passes_per_step: more of them before a step are an error; gradients of fewer are added, too.
    gradient_predivide_factor: with Average gradients are divided by it before, and multiplied after the sum.
    sparse_as_dense: sparse gradients are made dense before anything else. Without it Adasum takes them as they are, if the wrapped optimizer
    does; Average and Sum refuse them.
    compression, num_groups, groups, process_set: refused unless they ask for nothing.
    world: the ranks that are combined; without one all ranks, in a world that ends with the optimizer.
    choices: options of the reducer, and of a world of its own."""
    if not isinstance(op, Op):
        raise ValueError(f"op is {op!r}: it must be adasum.torch.Adasum, Average or Sum")
    if choices.get("reduction") not in (None, op.value):
        raise ValueError(f"reduction is {choices['reduction']!r}, but op asks for {op.value!r}")
    if compression not in (None, Compression.none):
        raise ValueError(f"compression is {compression}: there is none here, tensors travel in the type that they have")
    if num_groups != 0 or groups is not None:
        name = "num_groups" if num_groups != 0 else "groups"
        raise ValueError(f"{name} is given: there are no groups of tensors here, the option bucket_bytes says how many travel together")
    if process_set is not None:
        raise ValueError("process_set is given: make a world of those ranks, DistributedOptimizer(..., world=adasum.torch.world(group))")
    gradient_predivide_factor = real("gradient_predivide_factor", gradient_predivide_factor)
    if gradient_predivide_factor != 1.0:
        if op is not Average:
            raise ValueError(f"gradient_predivide_factor is {gradient_predivide_factor}: it is for op=adasum.torch.Average only")
        if not 0 < gradient_predivide_factor < math.inf:
            raise ValueError(f"gradient_predivide_factor is {gradient_predivide_factor}: it must be above 0 and finite")
        if "scale" in choices or "result_scale" in choices:
            raise ValueError("gradient_predivide_factor and scale or result_scale are given: the factor sets both")
        choices["scale"], choices["result_scale"] = 1 / gradient_predivide_factor, gradient_predivide_factor
    if op is Adasum:
        choices.setdefault("delta_form", "local")
        return DeltaOptimizer(
            optimizer, world, named_parameters, backward_passes_per_step=backward_passes_per_step, sparse_as_dense=sparse_as_dense, **choices
        )
    choices["reduction"] = "mean" if op is Average else "sum"
    return GradientOptimizer(
        optimizer, world, named_parameters, backward_passes_per_step=backward_passes_per_step, sparse_as_dense=sparse_as_dense, **choices
    )
