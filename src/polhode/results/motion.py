"""Common base of the results of runs in vector spaces, on Lie groups and in N dimensions."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, repr=False)
class Motion:
    """States over time, in arrays with time first."""

    t: np.ndarray
    method: str = dataclasses.field(kw_only=True)
    status: str = dataclasses.field(default="finished", kw_only=True)

    @property
    def _space(self) -> str:
        """Name of the space, for `repr`."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Number of states."""
        return len(self.t)

    def __repr__(self) -> str:
        """One line: space, method, time span."""
        span = f"t = {self.t[0]:g} to {self.t[-1]:g}"
        return f"<Motion {self._space}, {self.method}: {len(self)} states, {span}, {self.status}>"
