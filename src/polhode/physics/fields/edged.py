"""A field whose steps end at its edges in time: the times are data of the field, read by `kernels/cut.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...symbolic.expression import Expr
from .derived import DerivedField
from .switches import PiecewiseField
from .trace import of_formula

EXTRA = 3
"""Parameters of an `EdgedField` after those of the field itself: a moment, the edges, and the moments between them."""


class EdgedField(DerivedField):
    """A field between its edges, and the edges.

    Parameters
    ----------
    field : PiecewiseField
    edges : the times at which steps end, in order
    moments : a time before the first of them, between any two, and after the last
    """

    def __init__(self, field: PiecewiseField, edges: np.ndarray, moments: np.ndarray) -> None:
        super().__init__(field, edges, moments)
        self.edges, self.moments = edges, moments

    @property
    def moment_place(self) -> int:
        """The place of the moment among the parameters; those of edges and moments follow."""
        return len(self.whole.parameters) - 1

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters of the field, then edges and moments."""
        return (*self.whole.parameters, self.edges, self.moments)

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """Those of the field."""
        return self.whole.graph

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Torque and rates of the states."""
        return self.whole.coupled

    @of_formula
    def written(self) -> Any:
        """The torque in the user's frame."""
        return self.whole.written

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check the function."""
        self.whole.whole.check(t, R, omega, context)
