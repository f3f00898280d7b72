"""Dense output: the states of a run at any times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import mul, unrotate
from ..methods import Method
from ..numbers import floats
from ..physics.body import real_array
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, ScaledRun, rescaled, units_of_steps
from ..results import convert
from ..results.trajectory import PRIMARY, STATES, Trajectory
from . import adaptive
from .adaptive import Path


class Lazy(Mapping[str, np.ndarray]):
    """Times, attitudes, momenta and energies, computed from rows on first access."""

    def __init__(self, problem: Problem, path: Path) -> None:
        self.problem, self.path = problem, path
        self.made: dict[str, np.ndarray] | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        """Return one array."""
        if self.made is None:
            self.made = convert.primary(self.problem, self.path.times, self.path.rows)
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter((*PRIMARY, STATES))

    def __len__(self) -> int:
        return len(PRIMARY) + 1


@dataclasses.dataclass
class Dense:
    """Dense output of a run: each state is computed by one step from the last stored state before it."""

    problem: Problem
    run: Any
    path: Path

    def __call__(self, t: Any) -> dict[str, np.ndarray]:
        """Return times, attitudes, momenta and energies."""
        times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
        first, last = sorted((float(self.path.times[0]), float(self.path.times[-1])))
        if times.ndim != 1 or not (np.isfinite(times) & (times >= first) & (times <= last)).all():
            raise InputError(f"t must be times between {first:g} and {last:g}, in one dimension; got {t!r}")
        rows = self.run.state_at(times, self.path.times, self.path.rows)
        if rows is None:
            raise InputError("the states between two steps could not be computed; choose other times")
        return convert.primary(self.problem, times, rows)


def dense_of(problem: Problem, method: Method, sol: Trajectory) -> Callable[[Any], Mapping[str, np.ndarray]]:
    """Return the dense output of a run with equal steps, all of them kept."""
    return dense_between(problem, Steps(problem, method, sol.dt), sol)


def dense_between(problem: Problem, steps: Any, sol: Trajectory) -> Callable[[Any], Mapping[str, np.ndarray]]:
    """Return the dense output of a run from the function `state_at` of its steps."""
    return lambda t: Dense(problem, steps, path_of(problem, sol))(t)


def path_of(problem: Problem, sol: Trajectory) -> Path:
    """Convert a trajectory to times and rows in principal axes; states of the field follow."""
    principal_to_body: Any = problem.axes_quaternion
    q, m = tuple(sol.quaternion.T), tuple(sol.momentum.T)
    q, m = (mul(q, principal_to_body), unrotate(principal_to_body, m)) if principal_to_body else (q, m)
    states = [values.reshape(len(values), -1) for values in sol.states.values()]
    return Path(sol.t, np.column_stack([*q, *m, *states]), 0, True)


@dataclasses.dataclass
class Steps:
    """Dense output between equal steps of a method."""

    problem: Problem
    method: Method
    dt: float | None
    """None if the problem is already in the units of the run."""

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        units = NO_UNITS if self.dt is None else units_of_steps(self.problem, self.dt, max(1, len(path_times) - 1))
        if units is not NO_UNITS:
            inner = Steps(rescaled(self.problem, units), self.method, None)
            return ScaledRun(inner, units).state_at(times, path_times, rows)
        _, system = self.problem.kernel_data(floats.number)
        interpolate = adaptive.between_steps(self.problem, self.method)
        return adaptive.interpolated(interpolate, times, path_times, rows, system, 0)
