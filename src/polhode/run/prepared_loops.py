"""The compiled loops of a formula for one tolerance, ready to be called, and the choice between them.

They are the same for all states and for all values of the parameters of the field. Machine code is called directly,
without numba's look at the types of its arguments.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..kernels.loops import COLUMNS
from ..methods.adaptive.controller import first_angle
from ..numbers import floats
from ..physics.problem import Problem
from .adaptive import larger
from .error_estimate import first_tolerance
from .step_control import EPS, FEW_ROWS, AdaptiveStep, Choice, entry_point, formula
from .tolerance import Wish

NEXT, MOST_TURN = 1.05, 1e6
"""Ratio of angles at which the choice of the step is looked up, finer than `Formula.choice` rounds; the largest one."""

MOST_RANGES = 64
"""Ranges of angles, each with its choice, that are kept: ten for each decade, of states of any speed."""

MOST_LOOPS = 64
"""Loops that are kept: the tolerances of further attempts differ from state to state."""


Buffers = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Times and rows of a run, and the parts of both after its start."""


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


class Later(NamedTuple):
    """A run after its last piece: the state, and sums over all pieces."""

    y: Any
    steps: int
    rejected: int
    largest: float
    """Largest |momentum| before the end."""
    turned: float
    finished: bool
    crawling: bool


class Loops:
    """The loops of the formula of a problem for one tolerance."""

    def __init__(self, problem: Problem, wish: Wish) -> None:
        self.wish, self.first_tolerance = wish, first_tolerance(wish.tol, EPS)
        self.formula = formula(problem)
        self.like = problem.kernel_data(floats.number)
        """A state and a system of the types that all have."""
        self.code: dict[str, tuple[Any, Any]] = {}
        self.loops: dict[tuple[str, float], Loop] = {}
        self.chosen: list[tuple[float, float, Choice]] = []
        self.spare: list[Buffers] = []
        """Arrays for the first piece of a run that nobody uses."""

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
            (y, system), output = self.like, (np.empty(1), np.empty((1, COLUMNS)))
            advance = entry_point(kind.adaptive_loop, 0.0, 0.0, 0.0, 0.0, 0.0, y, system, 0.0, 0.0, 0, *output)
            repeat = None
            if not self.wish.of_steps:
                repeat = entry_point(kind.repeat, 0.0, np.empty(1), 1, 1, 0, 1, y, y, 0.0, system, 0, *output)
            self.code[kind.name] = advance, repeat
        return self.code[kind.name]

    def kind(self, y: Any, system: Any, t: float, end: float, turn: float) -> AdaptiveStep:
        """Return the kind of step that needs the least work from a state through an angle."""
        return self.decided(self.choice(turn), y, system, t, end)

    def decided(self, choice: Choice, y: Any, system: Any, t: float, end: float) -> AdaptiveStep:
        """Return the kind of step of a choice, for a state at the start of a run."""
        if choice.measures is None:
            return choice.kinds[0]
        favoured = self.favours_series(t, end, end - t, y, system, self.wish.step, *choice.measures)
        return choice.kinds[0 if favoured else 1]

    @functools.cached_property
    def favours_series(self) -> Any:
        """The machine code of `Formula.favours_series`."""
        return entry_point(self.formula.favours_series, 0.0, 0.0, 0.0, *self.like, 0.0, 0, 0.0, 0.0)

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
        return self.formula.choice(self.wish.step, turn, self.wish.finer)

    @staticmethod
    def _edge(turn: float, factor: float, holds: Callable[[float], bool]) -> float:
        """Return the last angle on the way up or down for which a condition holds, to a millionth of `factor`."""
        while 1 / MOST_TURN < turn < MOST_TURN and holds(factor * turn):
            turn *= factor
        for _ in range(20):
            factor = math.sqrt(factor)
            turn = factor * turn if holds(factor * turn) else turn
        return turn


def onwards(
    loop: Loop, system: Any, end: float, first: Any, keep: Callable[[np.ndarray, np.ndarray], None] | None = None,
    most: float = math.inf,
) -> Later:  # fmt: skip
    """Run on in pieces as long as those of `adaptive.Run`: the loop begins each with a newly rounded |momentum|.

    `first` is what the loop returned for the first piece; `keep` takes the times and rows of the others. The run stops
    unfinished after `most` of them.
    """
    y, t, proposal, largest, turned, steps, rejected, fine = first
    advance, _, order, _, tol, limit, _ = loop
    size, angles = FEW_ROWS, [turned]
    while t < end and fine and steps + rejected <= limit and len(angles) <= most:
        size, largest = larger(size), max(largest, math.hypot(*y[1]))
        times, rows = np.empty(size), np.empty((size, COLUMNS))
        y, t, proposal, largest, turned, count, lost, fine = advance(
            t, end, end, math.inf, proposal, y, system, tol, largest, order, times, rows
        )
        angles.append(turned)
        if keep is not None:
            keep(times[:count], rows[:count])
        steps, rejected = steps + count, rejected + lost
    crawling = steps + rejected > limit
    return Later(y, steps, rejected, largest, math.fsum(angles), fine and t >= end and not crawling, crawling)
