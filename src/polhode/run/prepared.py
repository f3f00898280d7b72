"""What runs of a problem to a tolerance have in common for all initial states, for `propagator`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..kernels.loops import COLUMNS
from ..methods.adaptive.controller import first_angle
from ..methods.families.jacobi import jacobi
from ..numbers import floats
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, Units, rescaled
from .adaptive import Path, Run, distance_of_states, larger, rounding, scale_of
from .error_estimate import FINEST, FIRST, RATIO, TRIES, estimated, next_tolerance
from .exact import free_visit
from .schedule import Leg, Schedule
from .step_control import EPS, FEW_ROWS, AdaptiveStep, formula
from .tolerance import Wish, exact_error

Vector = tuple[float, float, float]
Found = tuple[Any, int, str, float | None]
"""State at the end, steps, method, and estimated error."""

NEXT, MOST_TURN = 1.05, 1e6
"""Ratio of angles at which the choice of the step is looked up, finer than `Formula.ranked` rounds; the largest one."""


class Loop(NamedTuple):
    """A kind of step, ready to run."""

    advance: Any
    order: int
    angle: float
    """First angle of a pair; 0 if steps need no proposal."""
    tol: float
    most: float
    label: str

    @classmethod
    def of(cls, kind: AdaptiveStep, tol: float) -> Loop:
        """Prepare a kind of step for an error of each step."""
        order = kind.order_for(tol)
        angle = first_angle(order, tol) if kind.has_proposal else 0.0
        return cls(kind.adaptive_loop, order, angle, tol, kind.most, kind.label(order))


class ShortRun(Run):
    """A run that expects to need few steps; in the rows of its path the start is missing."""

    def __call__(self) -> Path:
        """Return the path; if it is longer than expected, run once more, as any other run."""
        t0, end, times, rows = self.problem.t0, self.end, np.empty(FEW_ROWS), np.empty((FEW_ROWS, COLUMNS))
        times[0] = t0
        y, t, _, largest, turned, count, lost, fine = self.controlled_step.adaptive_loop(
            t0, end, end, self.longest[0], self.proposal(), self.y, self.system, self.tolerance, 0.0, self.order,
            times[1:], rows[1:],
        )  # fmt: skip
        if t < end or not fine:
            return super().__call__()
        filled = count + 1
        return Path(times[:filled], rows[:filled], lost, largest=max(largest, math.hypot(*y[1])), turned=turned)


class Direction:
    """What the runs in one direction of time have in common. Units are the user's, up to the sign of time."""

    def __init__(self, problem: Problem, units: Units, wish: Wish) -> None:
        self.units, self.sign, self.wish = units, units.sign, wish
        self.problem = problem if units is NO_UNITS else rescaled(problem, units)
        self.system = self.problem.kernel_data(floats.number)[1]
        self.turned = self.problem.body.principal.to_body
        self.velocity = problem._velocity
        self.kinds = None if problem.field is None else formula(self.problem)
        self.loops: dict[str, Loop] = {}
        self.buffers: dict[int, list[Any]] = {}
        self.is_long = False

    def loop(self, kind: AdaptiveStep) -> Loop:
        """Return a kind of step, prepared for the tolerance."""
        found = self.loops.get(kind.name)
        if found is None:
            found = self.loops[kind.name] = Loop.of(kind, self.wish.tol)
        return found

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

    def stepped(self, y: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error of each step; None if the run fails."""
        loop = self.loop(self.ranked(turn)[0])
        return self.onwards(loop, y, t, end, -loop.angle or end - t, 0.0, 0, 0, FEW_ROWS)

    def onwards(
        self, loop: Loop, y: Any, t: float, end: float, proposal: float, largest: float, steps: int, tried: int,
        size: int,
    ) -> Found | None:  # fmt: skip
        """Run on after some steps, with the sizes of buffers of `Run.pieces`: calling the loop anew may change bits."""
        while True:
            buffer = self.buffer(size)
            y, t, proposal, largest, _, count, lost, fine = loop.advance(
                t, end, end, math.inf, proposal, y, self.system, loop.tol, largest, loop.order, *buffer
            )
            self.buffers[size].append(buffer)
            steps, tried = steps + count, tried + count + lost
            if t >= end or not fine or tried > loop.most:
                break
            size, largest = larger(size), max(largest, math.hypot(*y[1]))
        return (y, steps, loop.label, None) if fine and tried <= loop.most else None

    def buffer(self, size: int) -> Any:
        """Return a buffer for times and rows that no other thread uses; in the first one the start has a row, too."""
        try:
            return self.buffers[size].pop()
        except (KeyError, IndexError):
            self.buffers.setdefault(size, [])
            count = size - (size == FEW_ROWS)
            return np.empty(count), np.empty((count, COLUMNS))

    def compared(self, q: Any, m: Any, y: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error at the end; None if the first kind of step does not reach it."""
        kind, tol = self.ranked(turn)[0], self.wish.tol
        made: Run = object.__new__(Run if self.is_long else ShortRun)
        made.number = floats.number
        made.problem = replaced(self.problem, quaternion=q, momentum=m if self.sign > 0 else _opposite(m), t0=t)
        made.controlled_step, made.end, made.tolerance, made.longest = kind, end, tol, [math.inf]
        made.schedule, made.y, made.system = Schedule(made.problem, (Leg(end, math.inf, end),)), y, self.system
        found = estimated(made, tol)
        if not found.reached:
            return None
        path = found.path
        self.is_long = len(path.times) > FEW_ROWS // 2  # the finer run has up to 1.5 times as many steps
        a, b, c, d, *m = path.rows[-1].tolist()
        return ((a, b, c, d), tuple(m)), len(path.times) - 1, kind.label(found.run.order), found.error

    def end(self, q: Any, m: Any, y: Any, t: float, end: float, turn: float) -> Found | None:
        """Run from a state, in the user's axes and in principal ones, through an angle; None if the run fails."""
        if self.kinds is None:
            return finishing(self, t)(y, end, end - t, turn)
        if self.wish.of_steps:
            return self.stepped(y, t, end, turn)
        return self.compared(q, m, y, t, end, turn)

    def ranked(self, turn: float) -> tuple[AdaptiveStep, ...]:
        """Return the kinds of steps for an angle, least work first."""
        assert self.kinds is not None
        return self.kinds.ranked(self.wish.tol, turn, self.wish.finer)

    def same_kind(self, turn: float) -> tuple[float, float, AdaptiveStep]:
        """Return the kind of step for an angle, and the smallest and largest angle around it with the same kind."""
        kind = self.ranked(turn)[0]
        low, high = (self._edge(turn, factor, lambda x: self.ranked(x)[0] is kind) for factor in (1 / NEXT, NEXT))
        return low, high, kind

    @staticmethod
    def _edge(turn: float, factor: float, holds: Callable[[float], bool]) -> float:
        """Return the last angle on the way up or down for which a condition holds, to a millionth of `factor`."""
        while 1 / MOST_TURN < turn < MOST_TURN and holds(factor * turn):
            turn *= factor
        for _ in range(20):
            factor = math.sqrt(factor)
            turn = factor * turn if holds(factor * turn) else turn
        return turn


# --- short runs forward in time ---------------------------------------------------------------------


def finishing(way: Direction, t0: float) -> Callable[[Any, float, float, float], Found | None]:
    """Return the function (state, end, span, angle) that runs from t0 in principal axes; None if the run fails."""
    if way.kinds is None:
        return _exactly(way)
    return _in_steps(way, t0) if way.wish.of_steps else _with_estimate(way, t0)


def _exactly(way: Direction) -> Callable[..., Found | None]:
    visit, inertia, label = free_visit(), way.system[0], jacobi.name

    def finish(y: Any, end: float, span: float, turn: float) -> Found | None:
        error = exact_error(turn)
        if error > 1:
            return None
        rows = np.empty((1, COLUMNS))
        visit(np.array((span,)), y, inertia, rows)
        a, b, c, d, *m = rows[0].tolist()
        return ((a, b, c, d), tuple(m)), 0, label, error

    return finish


MOST_RANGES = 16
"""Ranges of angles, each with its kind of step, that are kept: near an edge, states have angles on both sides."""


def _in_steps(way: Direction, t0: float) -> Callable[..., Found | None]:
    chosen: list[Any] = []
    system, spare, get = way.system, way.buffers.setdefault(FEW_ROWS, []), way.buffer

    def choose(turn: float) -> Any:
        low, high, kind = way.same_kind(turn)
        chosen[:] = [(low, high, way.loop(kind)), *chosen[: MOST_RANGES - 1]]
        return chosen[0]

    def finish(y: Any, end: float, span: float, turn: float) -> Found | None:
        for entry in chosen:
            if entry[0] <= turn <= entry[1]:
                break
        else:
            entry = choose(turn)
        loop = entry[2]
        advance, order, angle, tol, _, label = loop
        times, rows = get(FEW_ROWS)
        new, t, proposal, largest, _, count, lost, fine = advance(
            t0, end, end, math.inf, -angle or span, y, system, tol, 0.0, order, times, rows
        )
        spare.append((times, rows))
        if t >= end:
            return new, count, label, None
        if not fine:
            return None
        largest = max(largest, math.hypot(*new[1]))
        return way.onwards(loop, new, t, end, proposal, largest, count, count + lost, larger(FEW_ROWS))

    return finish


def _with_estimate(way: Direction, t0: float) -> Callable[..., Found | None]:
    """Make the runs of `estimated`, as long as each fits into the first buffer; it makes all of them otherwise."""
    chosen: list[Any] = []
    system, spare, get, most = way.system, way.buffers.setdefault(FEW_ROWS, []), way.buffer, way.wish.tol
    finest = FINEST * EPS
    first = max(FIRST * most, finest)

    def finer(kind: AdaptiveStep, tol: float) -> Loop:
        return Loop.of(kind, max(tol / RATIO, finest / RATIO))

    def choose(turn: float) -> Any:
        low, high, kind = way.same_kind(turn)
        chosen[:] = [(low, high, kind, Loop.of(kind, first), finer(kind, first)), *chosen[: MOST_RANGES - 1]]
        return chosen[0]

    def finish(y: Any, end: float, span: float, turn: float) -> Found | None:
        if way.is_long:
            return None
        for entry in chosen:
            if entry[0] <= turn <= entry[1]:
                break
        else:
            entry = choose(turn)
        _, _, kind, coarse, fine = entry
        times, rows = buffer = get(FEW_ROWS)
        found, tried = None, 0
        start: Any = None
        while tried < TRIES:
            advance, order, angle, tol, _, label = coarse
            if start is None:
                start = advance(t0, end, end, math.inf, -angle or span, y, system, tol, 0.0, order, times, rows)
            new, t, _, largest, turned, count, _, _ = start
            if t < end:
                way.is_long = True
                break
            longest = float(times[0]) - t0
            if count > 1:
                longest = max(longest, float((times[1:count] - times[: count - 1]).max()))
            _, order2, angle2, tol2, _, _ = fine
            start = advance(
                t0, end, end, float(RATIO ** (-1 / order)) * longest, -angle2 or span, y, system, tol2, 0.0, order2,
                times, rows,
            )  # fmt: skip
            near, t, _, more, _, _, _, _ = start
            if t < end:
                way.is_long = True
                break
            scale = scale_of(max(math.hypot(*y[1]), largest, math.hypot(*new[1]), more, math.hypot(*near[1])))
            error = max(distance_of_states(new, near, scale), rounding(turned, count))
            if error <= most:
                found = new, count, label, error
                break
            if tol <= finest:
                break
            tol, tried = next_tolerance(tol, tol2, finest, error, most), tried + 1
            coarse, start = (fine, start) if tol == tol2 else (Loop.of(kind, tol), None)
            fine = finer(kind, tol)
        spare.append(buffer)
        return found

    return finish


def _opposite(m: Vector) -> Vector:
    return -m[0], -m[1], -m[2]


def replaced(problem: Problem, **parts: Any) -> Problem:
    """Return a problem with other parts, which are not checked."""
    made = Problem.__new__(Problem)
    vars(made).update(vars(problem), name="", reference=None, **parts)
    return made
