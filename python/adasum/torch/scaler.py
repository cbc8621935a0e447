"""Loss scaling in which all ranks skip the same steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from adasum.torch.optimizers import _Wrapper

if TYPE_CHECKING:
    from typing_extensions import Self


class GradScaler(torch.amp.GradScaler):
    """torch's GradScaler for the optimizers of this module: when gradients of any rank hold a NaN or an infinity, all ranks skip the step and
    lower their scale alike (the overflow vote). torch's own would skip on that rank only, and the others would wait for it: optimizers of this
    module refuse it in a program that has made none of ours, unless the gradients are reduced already (`synchronize`).

        scaler = adasum.torch.GradScaler("npu")

    Beside the hook of DistributedDataParallel torch's own is right: all ranks have the same gradients after the hook, and one value that is not
    finite makes its tensor so on all of them."""

    # Not in __init__, which unpickling leaves out.
    def __new__(cls, *_: Any, **__: Any) -> Self:
        _Wrapper._has_scaler = True
        return super().__new__(cls)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the gradients by the scale and lets the ranks vote, if the optimizer is one of this module: then it is collective and waits.
        `step` calls it unless the program has."""
        super().unscale_(optimizer)
        if not (self.is_enabled() and isinstance(optimizer, _Wrapper)):
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        device = optimizer.param_groups[0]["params"][0].device
        # A rank without any gradient takes part, too.
        flag = found.setdefault(device, torch.zeros((), device=device))
        if optimizer.overflow():
            flag.fill_(1.0)
            # torch leaves the step out.
            optimizer._start_anew()
