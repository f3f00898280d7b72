"""All six Lyapunov exponents of a motion, from the tangents of its steps."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

from ..errors import InputError
from ..methods import Method
from ..physics.problem import Problem
from .solve import solve

BLOCK = 20_000
"""Steps whose tangents are in memory at a time."""


@dataclasses.dataclass(frozen=True, eq=False)
class Lyapunov:
    """Lyapunov exponents of a motion.

    Attributes
    ----------
    exponents : (6,) at the end, the largest first; in 1/time
    t : (n,) times
    history : (n, 6) at every step, NaN at the start, by the directions of a frame: the largest tends to be the first
    spread : (6,) largest minus smallest value in the second half of the run

    Examples
    --------
    >>> found = ph.lyapunov(ph.problems.free_body(), "imidm", dt=0.1, t_end=20.0)
    >>> len(found.t) == len(found.history)
    True
    """

    t: np.ndarray
    history: np.ndarray

    @property
    def exponents(self) -> np.ndarray:
        """The exponents at the end (6,)."""
        return np.sort(self.history[-1])[::-1]

    @property
    def spread(self) -> np.ndarray:
        """Range of the exponents in the second half of the run (6,)."""
        late = self.history[abs(self.t - self.t[0]) >= abs(self.t[-1] - self.t[0]) / 2]
        return np.asarray(late.max(0) - late.min(0))

    @property
    def time(self) -> float:
        """Lyapunov time, in which neighbouring motions separate by a factor e; infinite if they do not."""
        largest = float(self.exponents[0])
        return 1 / largest if largest > 0 else float("inf")

    def plot(self, ax: Any = None) -> Any:
        """Draw the exponents over time; returns (figure, axes)."""
        plots: Any = importlib.import_module("polhode.plots.chaos")  # on first use: matplotlib is slow to import
        return plots.lyapunov(self, ax)


def lyapunov(
    problem: Problem,
    method: str | Method | None = None,
    *,
    dt: float | None = None,
    tol: float | None = None,
    step_tol: float | None = None,
    t_end: float | None = None,
    steps: int | None = None,
) -> Lyapunov:
    """Compute all six Lyapunov exponents of a motion, with their convergence.

    The tangents of the steps are applied to an orthonormal frame, which is made orthonormal again after every step
    (Benettin, Galgani, Giorgilli and Strelcyn, Meccanica 15 (1980) 9-20). The momentum is measured in units of its
    initial size, which does not change the exponents.

    Parameters
    ----------
    problem : Problem
    method, dt : a method and its step; or
    tol, step_tol : the error allowed at the end or in each step (use `step_tol` for a chaotic motion)
    t_end, steps : end time or number of steps

    Returns
    -------
    Lyapunov

    Examples
    --------
    >>> found = ph.lyapunov(ph.problems.free_body(), "imidm", dt=0.1, t_end=20.0)
    >>> found.exponents.shape
    (6,)
    """
    sol = solve(problem, method, dt=dt, tol=tol, step_tol=step_tol, t_end=t_end, steps=steps, tangent=True)
    assert sol.tangent is not None
    if len(sol) < 2:
        raise InputError("a Lyapunov exponent needs at least one step; give a later t_end")
    return Lyapunov(sol.t, sol.tangent.growth_rates(BLOCK))
