"""Everything about a run to a tolerance that does not depend on the initial state, for `propagator`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..kernels.loops import COLUMNS
from ..kernels.so3 import norm
from ..methods.families.jacobi import jacobi
from ..numbers import floats
from ..physics.fields.sides import conditions_of
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, Units, rescaled
from .adaptive import rounding
from .error_estimate import REPEATED, estimated, more_steps
from .exact import exact_error, free_end
from .prepared_loops import Later, Loops, onwards
from .step_control import EPS, FEW_ROWS, AdaptiveStep, entry_point
from .tolerance import Wish

Vector = tuple[float, float, float]
Found = tuple[Any, int, str, float | None]
"""State at the end, steps, method, and estimated error."""

FIRST_ROWS = FEW_ROWS - 1
"""Steps in the first piece of a run; `adaptive.Run` has the start there, too."""

Buffers = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times of a run, times of the steps that repeat it, and states, which are not read."""


class EndRun:
    """A run for `estimated` of which only the end is kept; its path is the run itself.

    `start` is (loops of the formula, system, kind of step, state, t, end, buffers).
    """

    __slots__ = (
        "apart", "chosen", "compared", "crawling", "finished", "largest", "loop", "mesh", "start", "state", "steps",
        "tolerance", "turned",
    )  # fmt: skip

    state: Any
    largest: float
    """Largest |momentum|."""
    turned: float
    steps: int
    mesh: np.ndarray
    """Times of the run that chose the steps."""
    chosen: int
    """Number of those steps."""
    compared: EndRun | None
    """The run that this one repeats; None if it chooses its own steps."""
    apart: float
    """Distance from its end."""
    finished: bool
    crawling: bool

    def __init__(self, start: tuple[Any, ...], tol: float) -> None:
        self.start, self.tolerance, self.loop, self.compared = start, tol, start[0].loop(start[2], tol), None

    def __call__(self) -> Self:
        """Run to the end, with its own steps or with those of another run, shortened."""
        if self.compared is None:
            self._choose_steps()
        else:
            self._repeat(self.compared)
        return self

    def _choose_steps(self) -> None:
        _, system, _, y, t, end, (times, _, rows) = self.start
        loop = self.loop
        first = loop.advance(
            t, end, end, math.inf, -loop.angle or end - t, y, system, loop.tol, 0.0, loop.order, times, rows
        )
        if first[1] >= end:
            self.state, _, _, self.largest, self.turned, self.steps, _, _ = first
            self.mesh, self.finished, self.crawling = times, True, False
        else:
            meshes = [times]
            later = onwards(loop, system, end, first, lambda times, rows: meshes.append(times))
            self._take(later)
            self.mesh = np.concatenate(meshes)
        self.largest, self.chosen = max(self.largest, math.hypot(*self.state[1])), self.steps

    def _take(self, later: Later) -> None:
        self.state, self.steps, _, self.largest, self.turned, self.finished, self.crawling = later

    def _repeat(self, path: EndRun) -> None:
        _, system, _, y, t, _, (_, moments, rows) = self.start
        loop, largest, steps = self.loop, path.largest, self.steps
        for done in range(0, steps, FIRST_ROWS):
            y, largest, self.apart, self.finished = loop.repeat(
                t, path.mesh, path.chosen, steps, done, min(steps, done + FIRST_ROWS), y, path.state, largest,
                system, loop.order, moments, rows,
            )  # fmt: skip
            if not self.finished:
                break
        self.state, self.largest = y, largest

    @property
    def controlled_step(self) -> AdaptiveStep:
        """The kind of step."""
        kind: AdaptiveStep = self.start[2]
        return kind

    def again(self, tolerance: float) -> Self:
        """Return a run with another tolerance."""
        return self if tolerance == self.tolerance else type(self)(self.start, tolerance)

    def finer(self, path: Self) -> Self:
        """Return a more accurate run, as `adaptive.Run.finer`."""
        made = object.__new__(type(self))
        made.start, made.tolerance, made.loop, made.compared = self.start, self.tolerance / REPEATED, self.loop, path
        made.mesh, made.chosen, made.turned = path.mesh, path.chosen, path.turned
        made.steps = more_steps(path.steps, self.loop.order)
        return made

    def difference(self, path: EndRun, fine: EndRun) -> float:
        """Return the error of a run relative to a finer one, as `adaptive.Run.difference`."""
        return max(fine.apart, rounding(path.turned, path.steps, EPS, self.controlled_step.roundings))


class Direction:
    """What the runs in one direction of time have in common. Units are the user's, up to the sign of time.

    ``end(y, m, t, end, angle)`` runs from a state in principal axes, with the momentum m in the user's, through an
    angle; it returns None if the run fails.
    """

    end: Callable[[Any, Any, float, float, float], Found | None]

    def __init__(self, problem: Problem, units: Units, wish: Wish) -> None:
        self.units, self.sign, self.wish, self.spare = units, units.sign, wish, list[Buffers]()
        self._take(problem)
        self.loops = None if problem.field is None else Loops(self.problem, wish)
        self.locates = problem.field is not None and bool(conditions_of(problem.field))
        self.end = self._runner()

    def in_problem(self, problem: Problem) -> Direction:
        """Return the same for other parameters of the field; whatever follows from the formula is shared."""
        made = copy.copy(self)
        made._take(problem)
        made.end = made._runner()
        return made

    def _take(self, problem: Problem) -> None:
        """Take what depends on the parameters of the field."""
        self.problem = problem if self.units is NO_UNITS else rescaled(problem, self.units)
        self.start, self.system = self.problem.kernel_data(floats.number)
        self.turned = self.problem.body.principal.to_body
        self.velocity = problem._velocity

    def _runner(self) -> Callable[..., Found | None]:
        if self.loops is None:
            return self._exactly()
        return self._stepped if self.wish.of_steps else self._compared

    def inside(self, q: Any, m: Any) -> Any:
        """Return a state in principal axes."""
        if self.sign < 0:
            m = _opposite(m)
        return self.problem._in_principal_axes((q, m), self.system[0], self.turned) if self.turned else (q, m)

    def outside(self, q: Any, m: Any) -> Any:
        """Return a state in the user's axes."""
        if self.sign < 0:
            m = _opposite(m)
        return self.problem.user_axes(q, m) if self.turned else (q, m)

    # runs

    def _exactly(self) -> Callable[..., Found | None]:
        inertia, velocity, label = self.system[0], self.velocity, jacobi.name
        after = entry_point(free_end(), 0.0, self.start, inertia)

        def end(y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
            error = exact_error(norm(velocity(m)) * (end - t))
            return None if error > 1 else (after(end - t, y, inertia), 0, label, error)

        return end

    def _stepped(self, y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error of each step; None also if jumps of the field have to be located."""
        if self.locates:
            return None
        loops, system = self._loops, self.system
        loop, buffers = loops.loop(loops.kind(y, system, t, end, turn), self.wish.tol), self._buffers()
        advance, _, order, angle, tol, _, label = loop
        times, _, rows = buffers
        first = advance(t, end, end, math.inf, -angle or end - t, y, system, tol, 0.0, order, times, rows)
        self.spare.append(buffers)
        if first[1] >= end:
            return first[0], first[5], label, None
        later = onwards(loop, system, end, first)
        return (later.y, later.steps, label, None) if later.finished else None

    def _compared(self, y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error at the end; None also if the first kind of step misses it, or if the field has branches."""
        loops, system = self._loops, self.system
        kind = loops.kind(y, system, t, end, turn)
        if not kind.smooth:
            return None
        buffers = self._buffers()
        start = loops, system, kind, y, t, end, buffers
        found = estimated(EndRun(start, loops.first_tolerance), self.wish.tol)
        self.spare.append(buffers)
        path = found.path
        return (path.state, path.steps, path.loop.label, found.error) if found.reached else None

    @property
    def _loops(self) -> Loops:
        assert self.loops is not None
        return self.loops

    def _buffers(self) -> Buffers:
        """Return arrays for the first piece of a run, which no other thread uses."""
        try:
            return self.spare.pop()
        except IndexError:
            return np.empty(FIRST_ROWS), np.empty(FIRST_ROWS), np.empty((FIRST_ROWS, COLUMNS))


def _opposite(m: Vector) -> Vector:
    return -m[0], -m[1], -m[2]


def replaced(problem: Problem, **parts: Any) -> Problem:
    """Return a problem with other parts, which are not checked."""
    made = Problem.__new__(Problem)
    vars(made).update(vars(problem), name="", reference=None, **parts)
    return made
