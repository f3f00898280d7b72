"""Open saved results; trajectories whose file holds the problem have dense output again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..methods import Method, methods
from ..physics.problem import Problem
from ..physics.validate import check_between, real_array
from ..results.store import trajectory_store
from ..results.trajectory import PRIMARY, Trajectory
from .dense import dense_of
from .solve import solve

STEP_TOL = 1e-12
"""Error of each step between stored states that are further apart than one step of the run."""


def load(path: str | Path) -> Any:
    """Open a saved Trajectory or Ensemble, also of an interrupted run. Nothing in a file is executed.

    Attributes are checked at once, arrays when they are read; an InputError says what is damaged. The file of a run
    holds its problem (the field as a list of operations), so that ``at(t)`` works as it does after the run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "body.nc"
    >>> _ = ph.solve(ph.problems.free_body(), "dmv10", dt=0.1, steps=10).save(path)
    >>> len(ph.load(path).t)
    11
    """
    found = trajectory_store.load(path)
    if isinstance(found, Trajectory) and trajectory_store.PROBLEM in found.stored.attrs and found.info.digits is None:
        found.dense = LoadedDense(found)
    return found


def _has_every_step(sol: Trajectory, method: Method) -> bool:
    """True if no two neighbouring states are further apart than a step; with ``times=`` they may be."""
    if method.has_own_time:
        return len(sol) == sol.info.steps + 1
    rounding = 4 * np.spacing(np.abs(sol.t).max())
    return len(sol) == 1 or bool(np.abs(np.diff(sol.t)).max() <= abs(sol.info.dt) + rounding)


@dataclasses.dataclass
class LoadedDense:
    """Dense output of a trajectory in a file."""

    sol: Trajectory

    def __call__(self, t: Any) -> Mapping[str, np.ndarray]:
        """Return times, attitudes, momenta and energies."""
        sol, problem = self.sol, self.sol.problem
        assert problem is not None
        method = methods.get(sol.info.method)
        if method is not None and sol.info.dt and sol.info.every == 1 and _has_every_step(sol, method):
            return dense_of(problem, method.base or method, sol)(t)
        times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
        check_between(sol.t[0], sol.t[-1], times, t)
        found = [self._state(problem, time) for time in times.tolist()]
        return {name: np.concatenate([one[name] for one in found]) for name in PRIMARY}

    def _state(self, problem: Problem, time: float) -> dict[str, np.ndarray]:
        """Return the state at one time, by a run from the last stored state before it."""
        sol, away = self.sol, abs(self.sol.t - self.sol.t[0])
        i = int(np.searchsorted(away, abs(time - sol.t[0]), side="right")) - 1
        if sol.t[i] == time:
            return {name: getattr(sol, name)[i : i + 1] for name in PRIMARY}
        start = problem.starting(attitude=sol.quaternion[i], momentum=sol.momentum[i], t0=float(sol.t[i]))
        step_tol = min(sol.info.tol or 1.0, sol.info.step_tol or 1.0, STEP_TOL)
        made = solve(start, step_tol=step_tol, times=[time])
        return {name: getattr(made, name) for name in PRIMARY}
