"""Reducers that follow what they are given."""

from __future__ import annotations

from typing import Any, Callable, Optional

import mindspore as ms
import numpy as np

import adasum
from adasum.mindspore._tensors import Rows, wait_for_all


class Rebuilt:
    """A reducer that is made anew when the number, sizes or types of its tensors change. That is collective, as making it is."""

    def __init__(self, make: Callable[[list[adasum.TensorSpec]], Any]):
        self._make = make
        self._specs: list[adasum.TensorSpec] = []
        #: The reducer that is in use.
        self.reducer: Optional[Any] = None

    def of(self, specs: list[adasum.TensorSpec]) -> Any:
        """The reducer of these tensors."""
        if self.reducer is None or specs != self._specs:
            self.close()
            self.reducer = self._make(specs)
            self._specs = specs
        return self.reducer

    def close(self) -> None:
        """Waits for what is queued and ends the reducer, if there is one."""
        if self.reducer is not None and not self.reducer.closed:
            wait_for_all()
            self.reducer.close()
        self.reducer = None


class Gathering:
    """Gathers the rows of one sparse gradient from all ranks: a mean where rows have the same number, which are not merged. All ranks
    bring the same number of rows, as MindSpore's AllGather asks for. Waits for the result."""

    def __init__(self, world: adasum.World, name: str, **choices: Any):
        self._world, self._name, self._choices = world, name, choices
        self._key: Any = None
        self._reducer: Optional[adasum.SparseReducer] = None

    def gather(self, rows: Rows) -> tuple[Rows, bool]:
        """The rows of all ranks, and whether all their elements are finite."""
        values, indices = rows.values.asnumpy().copy(), rows.indices.asnumpy().copy()
        width = values.size // max(indices.size, 1)
        key = (width, indices.size, str(values.dtype), str(indices.dtype))
        if self._reducer is None or key != self._key:
            self.close()
            self._reducer = adasum.SparseReducer(
                self._world, self._name, width, indices.size, adasum.view(values).dtype, str(indices.dtype), exact=True, **self._choices
            )
            self._key = key
        found = self._reducer.gather(indices, values)
        gathered = np.frombuffer(found.values.cast("B"), values.dtype).reshape(found.count, *values.shape[1:])
        numbers = np.frombuffer(found.indices.cast("B"), indices.dtype)
        finite = bool(np.isfinite(gathered.astype(np.float32)).all())
        return Rows(ms.Tensor(numbers), ms.Tensor(gathered), rows.shape), finite

    def close(self) -> None:
        """Ends the reducer, if there is one."""
        if self._reducer is not None:
            self._reducer.close()
        self._reducer = None
