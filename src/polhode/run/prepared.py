"""What runs of a problem to a tolerance have in common for all initial states, for `propagator`."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..kernels.loops import COLUMNS
from ..kernels.so3 import norm
from ..methods.adaptive.controller import first_angle
from ..methods.families.jacobi import jacobi
from ..numbers import floats
from ..physics.fields.sides import conditions_of
from ..physics.problem import Problem
from ..physics.units import NO_UNITS, Units, rescaled
from .adaptive import larger, rounding
from .error_estimate import REPEATED, estimated, first_tolerance, more_steps
from .exact import exact_error, free_end
from .step_control import EPS, FEW_ROWS, AdaptiveStep, Choice, entry_point, formula
from .tolerance import Wish

Vector = tuple[float, float, float]
Found = tuple[Any, int, str, float | None]
"""State at the end, steps, method, and estimated error."""

NEXT, MOST_TURN = 1.05, 1e6
"""Ratio of angles at which the choice of the step is looked up, finer than `Formula.choice` rounds; the largest one."""

MOST_RANGES = 16
"""Ranges of angles, each with its choice, that are kept: near an edge, states have angles on both sides."""

FIRST_ROWS = FEW_ROWS - 1
"""Steps in the first piece of a run; `adaptive.Run` has the start there, too."""

Buffers = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times of a run, times of the steps that repeat it, and states, which are not read."""

MOST_LOOPS = 64
"""Loops that are kept: the tolerances of further attempts differ from state to state."""


class Loop(NamedTuple):
    """A kind of step with an error of each step, ready to run."""

    advance: Any
    repeat: Any
    """The loop that repeats a run with shorter steps; None if no run is compared with another one."""
    order: int
    angle: float
    """First angle of a pair; 0 if steps need no proposal."""
    tol: float
    most: float
    label: str


class EndRun:
    """A run for `estimated` of which only the end is kept; its path is the run itself.

    `start` is (direction of time, kind of step, state, t, end, buffers).
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
        self.start, self.tolerance, self.loop, self.compared = start, tol, start[0].loop(start[1], tol), None

    def __call__(self) -> EndRun:
        """Run to the end, with its own steps or with those of another run, shortened."""
        way, _, y, t, end, (times, moments, rows) = self.start
        loop, path, system = self.loop, self.compared, self.start[0].system
        if path is not None:
            largest, steps = path.largest, self.steps
            for done in range(0, steps, FIRST_ROWS):
                y, largest, self.apart, self.finished = loop.repeat(
                    t, path.mesh, path.chosen, steps, done, min(steps, done + FIRST_ROWS), y, path.state, largest,
                    system, loop.order, moments, rows,
                )  # fmt: skip
                if not self.finished:
                    break
            self.state, self.largest = y, largest
            return self
        first = loop.advance(
            t, end, end, math.inf, -loop.angle or end - t, y, system, loop.tol, 0.0, loop.order, times, rows
        )
        if first[1] >= end:
            self.state, _, _, self.largest, self.turned, self.steps, _, _ = first
            self.mesh, self.finished, self.crawling = times, True, False
        else:
            self.state, self.steps, self.largest, self.turned, self.mesh, self.finished, self.crawling = way.onwards(
                loop, end, first, [times]
            )
        self.largest, self.chosen = max(self.largest, math.hypot(*self.state[1])), self.steps
        return self

    @property
    def controlled_step(self) -> AdaptiveStep:
        """The kind of step."""
        kind: AdaptiveStep = self.start[1]
        return kind

    def again(self, tolerance: float) -> EndRun:
        """Return a run with another tolerance."""
        return self if tolerance == self.tolerance else EndRun(self.start, tolerance)

    def finer(self, path: EndRun) -> EndRun:
        """Return a more accurate run, as `adaptive.Run.finer`."""
        made = object.__new__(EndRun)
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
        self.units, self.sign, self.wish = units, units.sign, wish
        self.first_tolerance = first_tolerance(wish.tol, EPS)
        self.code: dict[str, tuple[Any, Any]] = {}
        self.loops: dict[tuple[str, float], Loop] = {}
        self.chosen: list[tuple[float, float, Choice]] = []
        self.spare: list[Buffers] = []
        self._take(problem)
        self.kinds = None if problem.field is None else formula(self.problem)
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
        if self.kinds is None:
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
        loop, buffers = self.loop(self.kind(y, t, end, turn), self.wish.tol), self._buffers()
        advance, _, order, angle, tol, _, label = loop
        times, _, rows = buffers
        first = advance(t, end, end, math.inf, -angle or end - t, y, self.system, tol, 0.0, order, times, rows)
        self.spare.append(buffers)
        if first[1] >= end:
            return first[0], first[5], label, None
        new, count, _, _, _, finished, _ = self.onwards(loop, end, first, None)
        return (new, count, label, None) if finished else None

    def _compared(self, y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error at the end; None also if the first kind of step misses it, or if the field has branches."""
        tol, kind = self.wish.tol, self.kind(y, t, end, turn)
        if not kind.smooth:
            return None
        buffers = self._buffers()
        found = estimated(EndRun((self, kind, y, t, end, buffers), self.first_tolerance), tol)
        self.spare.append(buffers)
        path = found.path
        return (path.state, path.steps, path.loop.label, found.error) if found.reached else None

    def _buffers(self) -> Buffers:
        """Return arrays for the first piece of a run, which no other thread uses."""
        try:
            return self.spare.pop()
        except IndexError:
            return np.empty(FIRST_ROWS), np.empty(FIRST_ROWS), np.empty((FIRST_ROWS, COLUMNS))

    def onwards(self, loop: Loop, end: float, first: Any, kept: list[np.ndarray] | None) -> Any:
        """Run on in pieces as long as those of `Run.pieces`: the loop begins each with a newly rounded |momentum|.

        `first` is what the loop returned for the first piece, `kept` the times of its steps; None if nobody needs them.
        Return the state at the end, the number of steps, the largest |momentum| before the end, the rotation angle, the
        times of all steps, whether the run finished, and whether it crawled.
        """
        y, t, proposal, largest, turned, steps, lost, fine = first
        advance, _, order, _, tol, most, _ = loop
        size, angles, tried = FEW_ROWS, [turned], steps + lost
        while t < end and fine and tried <= most:
            size, largest = larger(size), max(largest, math.hypot(*y[1]))
            times = np.empty(size)
            y, t, proposal, largest, turned, count, lost, fine = advance(
                t, end, end, math.inf, proposal, y, self.system, tol, largest, order, times, np.empty((size, COLUMNS))
            )
            angles.append(turned)
            if kept is not None:
                kept.append(times[:count])
            steps, tried = steps + count, tried + count + lost
        mesh = None if kept is None else np.concatenate(kept)
        return y, steps, largest, math.fsum(angles), mesh, fine and tried <= most, tried > most

    # kinds of steps

    def loop(self, kind: AdaptiveStep, tol: float) -> Loop:
        """Return the loop of a kind of step with an error of each step."""
        found = self.loops.get((kind.name, tol))
        if found is None:
            order = kind.order_for(tol)
            angle = first_angle(order, tol) if kind.has_proposal else 0.0
            found = Loop(*self._code(kind), order, angle, tol, kind.most, kind.label(order))
            if len(self.loops) < MOST_LOOPS:
                self.loops[kind.name, tol] = found
        return found

    def _code(self, kind: AdaptiveStep) -> tuple[Any, Any]:
        """Return the machine code of the loops of a kind of step: over steps, and over those of a repeated run."""
        if kind.name not in self.code:
            y, system, output = self.start, self.system, (np.empty(1), np.empty((1, COLUMNS)))
            advance = entry_point(kind.adaptive_loop, 0.0, 0.0, 0.0, 0.0, 0.0, y, system, 0.0, 0.0, 0, *output)
            repeat = None
            if not self.wish.of_steps:
                repeat = entry_point(kind.repeat, 0.0, np.empty(1), 1, 1, 0, 1, y, y, 0.0, system, 0, *output)
            self.code[kind.name] = advance, repeat
        return self.code[kind.name]

    def kind(self, y: Any, t: float, end: float, turn: float) -> AdaptiveStep:
        """Return the kind of step that needs the least work from a state through an angle."""
        choice = self.choice(turn)
        if choice.measures is None:
            return choice.kinds[0]
        favoured = self.favours_series(t, end, end - t, y, self.system, self.wish.step, *choice.measures)
        return choice.kinds[0 if favoured else 1]

    @functools.cached_property
    def favours_series(self) -> Any:
        """The machine code of `Formula.favours_series`."""
        assert self.kinds is not None
        return entry_point(self.kinds.favours_series, 0.0, 0.0, 0.0, self.start, self.system, 0.0, 0, 0.0, 0.0)

    def choice(self, turn: float) -> Choice:
        """Return how to choose the kind of step for an angle; angles around it have the same choice."""
        for low, high, found in self.chosen:
            if low <= turn <= high:
                return found
        made = self._choice(turn)
        low, high = (self._edge(turn, factor, lambda x: self._choice(x) is made) for factor in (1 / NEXT, NEXT))
        self.chosen[:] = [(low, high, made), *self.chosen[: MOST_RANGES - 1]]
        return made

    def _choice(self, turn: float) -> Choice:
        assert self.kinds is not None
        return self.kinds.choice(self.wish.step, turn, self.wish.finer)

    @staticmethod
    def _edge(turn: float, factor: float, holds: Callable[[float], bool]) -> float:
        """Return the last angle on the way up or down for which a condition holds, to a millionth of `factor`."""
        while 1 / MOST_TURN < turn < MOST_TURN and holds(factor * turn):
            turn *= factor
        for _ in range(20):
            factor = math.sqrt(factor)
            turn = factor * turn if holds(factor * turn) else turn
        return turn


def _opposite(m: Vector) -> Vector:
    return -m[0], -m[1], -m[2]


def replaced(problem: Problem, **parts: Any) -> Problem:
    """Return a problem with other parts, which are not checked."""
    made = Problem.__new__(Problem)
    vars(made).update(vars(problem), name="", reference=None, **parts)
    return made
