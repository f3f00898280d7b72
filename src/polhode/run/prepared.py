"""What runs of a problem to a tolerance have in common for all initial states, for `propagator`."""

from __future__ import annotations

import functools
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
from .adaptive import distance_of_states, larger, rounding, scale_of, shorter
from .error_estimate import estimated, first_tolerance
from .exact import free_end
from .step_control import FEW_ROWS, AdaptiveStep, Choice, compiled, entry_point, formula
from .tolerance import Wish, exact_error

Vector = tuple[float, float, float]
Found = tuple[Any, int, str, float | None]
"""State at the end, steps, method, and estimated error."""

NEXT, MOST_TURN = 1.05, 1e6
"""Ratio of angles at which the choice of the step is looked up, finer than `Formula.choice` rounds; the largest one."""

MOST_RANGES = 16
"""Ranges of angles, each with its choice, that are kept: near an edge, states have angles on both sides."""

FIRST_ROWS = FEW_ROWS - 1
"""Steps in the first piece of a run; `adaptive.Run` has the start there, too."""

MOST_LOOPS = 64
"""Loops that are kept: the tolerances of further attempts differ from state to state."""


class Loop(NamedTuple):
    """A kind of step with an error of each step, ready to run."""

    advance: Any
    order: int
    angle: float
    """First angle of a pair; 0 if steps need no proposal."""
    tol: float
    most: float
    label: str


class EndRun:
    """A run for `estimated` of which only the end is kept; its path is the run itself.

    `start` is (direction of time, kind of step, state, t, end, |momentum|).
    """

    __slots__ = ("at_most", "crawling", "finished", "largest", "longest", "loop", "start", "state", "steps", "turned")

    def __init__(self, start: tuple[Any, ...], tol: float, at_most: float = math.inf) -> None:
        self.start, self.loop, self.at_most = start, start[0].loop(start[1], tol), at_most

    def __call__(self) -> EndRun:
        """Run to the end."""
        way, _, y, t, end, _ = self.start
        self.state, self.steps, self.largest, self.turned, self.longest, self.finished, self.crawling = way.run(
            self.loop, y, t, end, self.at_most
        )
        return self

    @property
    def controlled_step(self) -> AdaptiveStep:
        """The kind of step."""
        kind: AdaptiveStep = self.start[1]
        return kind

    @property
    def tolerance(self) -> float:
        """Error allowed in each step."""
        return self.loop.tol

    def again(self, tolerance: float) -> EndRun:
        """Return the same run with another tolerance."""
        return self if tolerance == self.loop.tol and self.at_most == math.inf else EndRun(self.start, tolerance)

    def finer(self, path: EndRun, ratio: float, finest: float) -> EndRun:
        """Return a run with `ratio` times smaller errors, as `adaptive.Run.finer`."""
        loop = self.loop
        return EndRun(self.start, max(loop.tol / ratio, finest), shorter(ratio, loop.order) * path.longest)

    def difference(self, path: EndRun, fine: EndRun) -> float:
        """Return the error of a run relative to a finer one, as `adaptive.Run.difference`."""
        one, other = path.state, fine.state
        largest = max(self.start[5], path.largest, fine.largest, math.hypot(*one[1]), math.hypot(*other[1]))
        return max(distance_of_states(one, other, scale_of(largest)), rounding(path.turned, path.steps))


def _longest_step(t: Any, times: Any, count: int) -> Any:
    """Return the longest step from the time t on."""
    longest = 0 * t
    for k in range(count):
        longest = max(longest, times[k] - t)
        t = times[k]
    return longest


class Direction:
    """What the runs in one direction of time have in common. Units are the user's, up to the sign of time.

    ``end(y, m, t, end, angle)`` runs from a state in principal axes, with the momentum m in the user's, through an
    angle; it returns None if the run fails.
    """

    end: Callable[[Any, Any, float, float, float], Found | None]

    def __init__(self, problem: Problem, units: Units, wish: Wish) -> None:
        self.units, self.sign, self.wish = units, units.sign, wish
        self.problem = problem if units is NO_UNITS else rescaled(problem, units)
        self.start, self.system = self.problem.kernel_data(floats.number)
        self.turned = self.problem.body.principal.to_body
        self.velocity = problem._velocity
        self.kinds = None if problem.field is None else formula(self.problem)
        self.code: dict[tuple[str, int], tuple[Any, str]] = {}
        self.loops: dict[tuple[str, float], Loop] = {}
        self.chosen: list[tuple[float, float, Choice]] = []
        self.spare: list[tuple[np.ndarray, np.ndarray]] = []
        self.longest_step = entry_point(compiled(lambda: _longest_step, "longest step"), 0.0, np.empty(1), 0)
        self.end = self._exactly() if self.kinds is None else self._stepped if wish.of_steps else self._compared

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
        inertia, label = self.system[0], jacobi.name
        after = entry_point(free_end(), 0.0, self.start, inertia)

        def end(y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
            error = exact_error(turn)
            return None if error > 1 else (after(end - t, y, inertia), 0, label, error)

        return end

    def _stepped(self, y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error of each step."""
        loop = self.loop(self.kind(y, t, end, turn), self.wish.tol)
        buffer, (new, now, proposal, largest, turned, count, lost, fine) = self._begun(loop, y, t, end, math.inf)
        self.spare.append(buffer)
        if now >= end:
            return new, count, loop.label, None
        new, count, _, _, _, finished, _ = self._onwards(
            loop, new, now, end, math.inf, proposal, largest, turned, 0.0, count, lost, fine
        )
        return (new, count, loop.label, None) if finished else None

    def _compared(self, y: Any, m: Any, t: float, end: float, turn: float) -> Found | None:
        """Run with an error at the end; None also if the first kind of step does not reach it."""
        tol, kind = self.wish.tol, self.kind(y, t, end, turn)
        first = EndRun((self, kind, y, t, end, math.hypot(*m)), first_tolerance(tol, kind.eps))
        found = estimated(first, tol)
        path = found.path
        return (path.state, path.steps, path.loop.label, found.error) if found.reached else None

    def run(self, loop: Loop, y: Any, t: float, end: float, at_most: float) -> Any:
        """Run without keeping states, with steps of at most a given length.

        Return the state at the end, the number of steps, the largest |momentum| before the end, the rotation angle, the
        longest step, whether the run finished, and whether it crawled.
        """
        buffer, (new, now, proposal, largest, turned, count, lost, fine) = self._begun(loop, y, t, end, at_most)
        longest = self.longest_step(t, buffer[0], count)
        self.spare.append(buffer)
        if now >= end:
            return new, count, largest, turned, longest, True, False
        return self._onwards(loop, new, now, end, at_most, proposal, largest, turned, longest, count, lost, fine)

    def _begun(self, loop: Loop, y: Any, t: float, end: float, at_most: float) -> Any:
        """Begin a run: return the buffer of its first piece, which no other thread uses, and what the loop returns."""
        advance, order, angle, tol, _, _ = loop
        try:
            buffer = self.spare.pop()
        except IndexError:
            buffer = np.empty(FIRST_ROWS), np.empty((FIRST_ROWS, COLUMNS))
        return buffer, advance(t, end, end, at_most, -angle or end - t, y, self.system, tol, 0.0, order, *buffer)

    def _onwards(
        self, loop: Loop, y: Any, t: float, end: float, at_most: float, proposal: float, largest: float, turned: float,
        longest: float, steps: int, lost: int, fine: bool,
    ) -> Any:  # fmt: skip
        """Run on in pieces as long as those of `Run.pieces`: the loop begins each with a newly rounded |momentum|."""
        advance, order, _, tol, most, _ = loop
        size, angles, tried = FEW_ROWS, [turned], steps + lost
        while t < end and fine and tried <= most:
            size, largest, before = larger(size), max(largest, math.hypot(*y[1])), t
            times = np.empty(size)
            y, t, proposal, largest, turned, count, lost, fine = advance(
                t, end, end, at_most, proposal, y, self.system, tol, largest, order, times, np.empty((size, COLUMNS))
            )
            angles.append(turned)
            longest = max(longest, self.longest_step(before, times, count))
            steps, tried = steps + count, tried + count + lost
        return y, steps, largest, math.fsum(angles), longest, fine and tried <= most, tried > most

    # kinds of steps

    def loop(self, kind: AdaptiveStep, tol: float) -> Loop:
        """Return the loop of a kind of step with an error of each step."""
        found = self.loops.get((kind.name, tol))
        if found is None:
            order = kind.order_for(tol)
            angle = first_angle(order, tol) if kind.has_proposal else 0.0
            advance, label = self._code(kind, order)
            found = Loop(advance, order, angle, tol, kind.most, label)
            if len(self.loops) < MOST_LOOPS:
                self.loops[kind.name, tol] = found
        return found

    def _code(self, kind: AdaptiveStep, order: int) -> tuple[Any, str]:
        """Return the machine code of the loop over steps of an order, and the name of the method."""
        if (kind.name, order) not in self.code:
            advance = entry_point(
                kind.adaptive_loop, 0.0, 0.0, 0.0, 0.0, 0.0, self.start, self.system, 0.0, 0.0, 0, np.empty(1),
                np.empty((1, COLUMNS)),
            )  # fmt: skip
            self.code[kind.name, order] = advance, kind.label(order)
        return self.code[kind.name, order]

    def kind(self, y: Any, t: float, end: float, turn: float) -> AdaptiveStep:
        """Return the kind of step that needs the least work from a state through an angle."""
        choice = self.choice(turn)
        if choice.measures is None:
            return choice.kinds[0]
        favoured = self.favours_series(t, end, end - t, y, self.system, self.wish.tol, *choice.measures)
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
        self.chosen = [(low, high, made), *self.chosen[: MOST_RANGES - 1]]
        return made

    def _choice(self, turn: float) -> Choice:
        assert self.kinds is not None
        return self.kinds.choice(self.wish.tol, turn, self.wish.finer)

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
