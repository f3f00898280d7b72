"""A motion and how it steps, and what the ways of running it share."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import END, ONE, STEP, Case, Units
from .check import Cell

TOL = 1e-9
ROUND_OFF = 1e-12
"""Largest difference between ways that compute the same in another order of operations."""

HOWS: dict[str, dict[str, Any]] = {
    "dt": {},
    "tol": {"tol": TOL},
    "step_tol": {"step_tol": TOL},
    "method, tol": {"method": "trapm", "tol": 1e-4},
}
"""How a run steps; with equal steps, the method is that of the motion."""

TIMES = np.array([0.3, 0.7001, 1.1, 1.77, 2.0])
"""Times at which states are asked for, most of them within steps; the last is the end."""

ON_STEPS = np.array([0.3, 0.7, 1.1, 1.75, 2.0])
"""The same at ends of equal steps."""

EVENT = 1.1234
"""The time of the event."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A motion and how it steps."""

    case: Case
    how: str
    units: Units = ONE

    @property
    def equal(self) -> bool:
        """Whether steps are equal."""
        return self.how == "dt"

    @property
    def error(self) -> float:
        """The error allowed between runs whose steps differ."""
        return {"dt": 1e-4, "method, tol": 1e-3}.get(self.how, 100 * TOL)

    def options(self, step: float = STEP) -> dict[str, Any]:
        """The arguments of a run that say how it moves; not its end."""
        how: dict[str, Any] = HOWS[self.how]
        if self.equal:
            how = {"method": self.case.method, "dt": step * self.units.time}
        return how | ({} if self.case.control is None else self.case.control(self.units)) | {"progress": False}

    def solve(self, problem: ph.Problem | None = None, **more: Any) -> ph.Trajectory:
        """Run one body."""
        arguments = self.options() | ({"t_end": END * self.units.time} if "steps" not in more else {}) | more
        return ph.solve(self.problem if problem is None else problem, **arguments)

    def ensemble(self, problem: ph.Problem | None = None, number: int = 1, **more: Any) -> Any:
        """Run so many bodies; the first is that of `solve`, the others start in other states."""
        problem = self.problem if problem is None else problem
        momentum = np.tile(problem.momentum, (number, 1))
        momentum[1:] *= 1 + 0.01 * np.arange(1, number)[:, None]
        arguments = self.options() | {"t_end": END * self.units.time, "momentum": momentum} | more
        return ph.ensemble(problem, **arguments)

    @functools.cached_property
    def problem(self) -> ph.Problem:
        """The problem."""
        return self.case.problem(self.units)

    @functools.cached_property
    def base(self) -> ph.Trajectory:
        """The plain run, with which others are compared."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.solve()


Way = Callable[[Run, Cell], None]


def event_at(run: Run, **more: Any) -> Any:
    """The event at the time `EVENT`."""
    moment = EVENT * run.units.time

    def passing(t: Any, a: Any = moment) -> Any:
        return t - a

    return ph.event(passing, **more)


def level_event() -> Any:
    """An event where the attitude passes a level."""

    def level(R: Any) -> Any:
        return R[2][0] - 0.4

    return ph.event(level)


def state_at_end(sol: Any) -> tuple[np.ndarray, np.ndarray]:
    """The last attitude and momentum of a trajectory."""
    return sol.quaternion[-1], sol.momentum[-1]


def state_of_body(many: Any, body: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The last attitude and momentum of a body of an ensemble."""
    return many.quaternion[-1, body], many.momentum[-1, body]


def field_at_end(run: Run, sol: ph.Trajectory) -> Any:
    """The field of a motion with its states, or its number of random steps, at the end of a run."""
    field = run.problem.field
    if run.case.traits & {cases.NOISE}:
        return field.bind(first_step=len(sol.t) - 1)
    if run.case.traits & {cases.CHAIN}:
        # a chain is a value of the thermostat, so the field is made again
        chain = sol.states["chain_position"][-1], sol.states["chain_velocity"][-1]
        return cases.chain(run.units, chain)
    own = getattr(field, "states", None) or {}
    return field.bind(**{name: sol.states[name][-1] for name in own}) if own else field
