"""Dense output: the states of a run at any times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import mul, unrotate
from ..methods import Method
from ..numbers.precision import guarded, in_digits
from ..physics.problem import Problem
from ..physics.units import BACKWARD, NO_UNITS, ScaledRun, rescaled, units_of_steps
from ..physics.validate import check_between, real_array
from ..results import convert, observables
from ..results.trajectory import Trajectory
from .adaptive import Path
from .cut_steps import cut_at_edges
from .noise import between_steps_without_noise
from .system import System


def states_of(problem: Problem, path: Path, digits: int | None) -> Mapping[str, np.ndarray]:
    """Return the data of a trajectory along a path."""
    return convert.Lazy(problem, path) if digits is None else convert.states(problem, path.times, path.rows, digits)


@dataclasses.dataclass
class Dense:
    """Dense output of a run: each state is computed by one step from the last stored state before it."""

    problem: Problem
    run: Any
    path: Path
    digits: int | None = None

    def __call__(self, t: Any) -> dict[str, np.ndarray]:
        """Return times, attitudes, momenta and energies."""
        times = np.atleast_1d(real_array(t, "t must be a time or an array of times"))
        check_between(self.path.times[0], self.path.times[-1], times, t)
        with guarded(self.digits):
            exact = times if self.digits is None else in_digits(t)
            rows = self.run.state_at(exact, self.path.times, self.path.rows)
        if rows is None:
            raise InputError(why_no_states(self.run, exact, self.path, self.digits))
        return convert.states(self.problem, exact, rows, self.digits)


def why_no_states(run: Any, times: Any, path: Path, digits: int | None = None) -> str:
    """Say at which of some times, and in which step of a path, `run.state_at` finds no state."""

    def fails(part: Any) -> bool:
        with guarded(digits):
            return run.state_at(part, path.times, path.rows) is None

    while len(times) > 1:
        first, second = times[: len(times) // 2], times[len(times) // 2 :]
        times = first if fails(first) else second
    t, starts = float(times[0]), path.times.astype(float)
    ahead = 1 if starts[-1] >= starts[0] else -1
    start = float(starts[max(0, int(np.searchsorted(ahead * starts, ahead * t, side="right")) - 1)])
    where = f"the state at t = {t!r}, by a step of {t - start!r} from {start!r}, could not be computed"
    if fails(times):
        return f"{where}: the field is not finite in between, or very large; choose other times, or shorter steps"
    return (
        f"{where} together with others, but can be alone: compiled code or memory is damaged. Run again in another "
        "process; if it happens again, remove the compiled code (`polhode cache clear`) and report it"
    )


def dense_of(problem: Problem, method: Method, sol: Trajectory) -> Callable[[Any], Mapping[str, np.ndarray]]:
    """Return the dense output of a run with equal steps, all of them kept."""
    return lambda t: dense_between(problem, Steps(problem, method, sol.dt, sol.info.digits), sol)(t)


def dense_between(problem: Problem, steps: Any, sol: Trajectory) -> Callable[[Any], Mapping[str, np.ndarray]]:
    """Return the dense output of a run from the function `state_at` of its steps."""
    return lambda t: Dense(problem, steps, path_of(problem, sol), sol.info.digits)(t)


def path_of(problem: Problem, sol: Trajectory) -> Path:
    """Convert a trajectory to times and rows in principal axes, in its number type, with the states of its field."""
    if sol.mp is None:
        momentum = observables.product(problem.body.inertia, sol.omega) if sol.has_varying_inertia else sol.momentum
        path = in_principal_axes(problem.axes_quaternion, sol.t, sol.quaternion, momentum)
        states = [values.reshape(len(values), -1) for values in sol.states.values()]
        return dataclasses.replace(path, rows=np.hstack([path.rows, *states])) if states else path
    from ..numbers.multiprecision import number

    with guarded(sol.info.digits):
        arrays = (in_digits(x) for x in (sol.mp.t, sol.mp.quaternion, sol.mp.momentum))
        return in_principal_axes(problem.principal(number)[1], *arrays)


def in_principal_axes(principal_to_body: Any, t: np.ndarray, quaternion: np.ndarray, momentum: np.ndarray) -> Path:
    """Return the path of states in the user's axes."""
    q, m = tuple(quaternion.T), tuple(momentum.T)
    q, m = (mul(q, principal_to_body), unrotate(principal_to_body, m)) if principal_to_body else (q, m)
    return Path(t, np.stack([*q, *m], 1), 0, True)


@dataclasses.dataclass
class Steps:
    """Dense output between equal steps of a method."""

    problem: Problem
    method: Method
    dt: float | None
    """None if the problem is already in the units of the run."""
    digits: int | None = None

    def __post_init__(self) -> None:
        between_steps_without_noise(self.method)
        if self.method.states and self.digits is not None:
            raise InputError(
                f"states between the steps of {self.method.name} are computed in doubles; leave out `digits`"
            )

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        plain = self.dt is None or self.method.states
        units = NO_UNITS if plain else self._units(max(1, len(path_times) - 1))
        if units is not NO_UNITS:
            inner = Steps(rescaled(self.problem, units), self.method, None, self.digits)
            return ScaledRun(inner, units).state_at(times, path_times, rows)
        with guarded(self.digits):
            problem = cut_at_edges(self.problem, self.method, float(path_times[-1]), self.digits)
            return System(problem, self.method, self.digits).state_at(times, path_times, rows)

    def _units(self, count: int) -> Any:
        """Return the units of the run; numbers with many digits have any size, so that only the direction matters."""
        assert self.dt is not None
        if self.digits is None:
            return units_of_steps(self.problem, self.dt, count)
        return NO_UNITS if self.dt > 0 else BACKWARD
