"""`ph.solve` to a tolerance in the usual case: a short way from a problem to its compiled loop.

Preparing a run takes ten times as long as a short run itself. The result depends only on the formula and the tolerance,
so it is cached: the second run of a formula with one tolerance, and all later ones, take this path. The loops, and so
the bits, are the same. Special arguments, units, jumps, torques that depend on time, long runs and runs that fail are
left to the general path.
"""

from __future__ import annotations

import functools
import math
import time
from typing import Any, NamedTuple

import numpy as np

from ..compile.clock import compile_seconds
from ..kernels.loops import COLUMNS
from ..kernels.so3 import norm
from ..numbers import floats
from ..physics.control.controller import control_in
from ..physics.fields import Field
from ..physics.fields.sides import conditions_of
from ..physics.fields.varying_inertia import VaryingField
from ..physics.inertia_tensor import Principal
from ..physics.problem import Problem
from ..results.convert import Lazy
from ..results.trajectory import Trajectory
from .adaptive import Path, begun
from .dense import Dense
from .error_estimate import estimated
from .exact import exact_error
from .moderate import FASTEST, LONGEST, SHORTEST, SLOWEST, SPARSE, Moderate
from .prepared import EndRun
from .prepared_loops import Buffers, Loops, onwards
from .step_control import FEW_ROWS, LARGEST, SMALLEST, formula
from .system import interpolated
from .tolerance import ExactRun, Solution, Wish, describing, exact_solution, interrupted, reason_of_first

MOST_PIECES = 2
"""Pieces of a run after its first one, of 1024 and 4096 steps; a longer run shows its progress."""

EXACT = 2**53
"""Size of whole numbers that are doubles."""

FARTHEST = 3000.0
"""Rotation angle, in radians, above which a run probably has more steps than that."""


class Usual:
    """Runs of one formula, or of free bodies, to one tolerance."""

    def __init__(self, problem: Problem, wish: Wish) -> None:
        self.wish, self._ready = wish, set[str]()
        self.loops = None if problem.field is None else Loops(problem, wish)
        self.moderate = Moderate() if self.loops is None else self.loops.formula.moderate

    def is_ready(self, name: str) -> bool:
        """Return whether a kind of step, or the choice between kinds, was needed before: then it is compiled.

        The first time is left to the general way, which says what it compiles.
        """
        if name in self._ready:
            return True
        self._ready.add(name)
        return False


class Bound(NamedTuple):
    """Runs of a body in a field, with values of its parameters."""

    field: Field | None
    body: Principal
    tol: float
    of_steps: bool
    usual: Usual
    system: Any


_recent: Bound | None = None
"""Those of the last call, which most loops over initial states need again."""


class PathRun(EndRun):
    """A run whose path is kept: times and rows, with the start."""

    __slots__ = ("rejected", "rows", "times")

    times: np.ndarray
    rows: np.ndarray
    rejected: int

    def _choose_steps(self) -> None:
        _, system, _, y, t, end, _ = self.start
        loop, spare = self.loop, self.start[0].spare
        try:
            buffers = spare.pop()
        except IndexError:
            buffers = _buffers(FEW_ROWS)
        times, rows, ends, states = buffers
        _begin(times, rows, t, y)
        first = loop.advance(
            t, end, end, math.inf, -loop.angle or end - t, y, system, loop.tol, 0.0, loop.order, ends, states
        )
        self.state, _, _, self.largest, self.turned, count, self.rejected, _ = first
        if first[1] >= end:
            self.steps, self.finished, self.crawling = count, True, False
            self.times, self.rows = begun(times, count + 1), begun(rows, count + 1)
            if self.times.base is None:
                spare.append(buffers)
        else:
            pieces = [(times, rows)]
            later = onwards(loop, system, end, first, lambda *piece: pieces.append(piece), MOST_PIECES)
            self._take(later)
            self.rejected, self.crawling = later.rejected, not later.finished  # the general way tries again
            self.times, self.rows = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        self.mesh, self.chosen = self.times[1:], self.steps
        self.largest = max(self.largest, math.hypot(*self.state[1]))

    def _repeat(self, path: EndRun) -> None:
        _, system, _, y, t, _, _ = self.start
        loop, steps, (times, rows, ends, states) = self.loop, self.steps, _buffers(self.steps + 1)
        _begin(times, rows, t, y)
        self.state, self.largest, self.apart, self.finished = loop.repeat(
            t, path.mesh, path.chosen, steps, 0, steps, y, path.state, path.largest, system, loop.order,
            ends, states,
        )  # fmt: skip
        self.times, self.rows, self.rejected = times, rows, 0

    def path(self) -> Path:
        """Return the path."""
        return Path(self.times, self.rows, self.rejected, largest=self.largest, turned=self.turned)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        _, system, kind, *_ = self.start
        return interpolated(kind.interpolate, times, path_times, rows, system, self.loop.order)


def _buffers(size: int) -> Buffers:
    """Return arrays for times and rows."""
    times, rows = np.empty(size), np.empty((size, COLUMNS))
    return times, rows, times[1:], rows[1:]


def _begin(times: np.ndarray, rows: np.ndarray, t: float, y: Any) -> None:
    """Write the state at the start."""
    times[0] = t
    (rows[0, 0], rows[0, 1], rows[0, 2], rows[0, 3]), (rows[0, 4], rows[0, 5], rows[0, 6]) = y


def quickly(problem: Problem, tol: Any, step_tol: Any, t_end: Any) -> Trajectory | None:
    """Return the solution of a problem to a tolerance; None if it is left to the general way."""
    began, compiled, of_steps = time.perf_counter(), compile_seconds(), tol is None
    allowed, end = step_tol if of_steps else tol, problem.t_end if t_end is None else t_end
    if isinstance(end, float) or (type(end) is int and abs(end) < EXACT):
        end = float(end)
    if type(allowed) is not float or type(end) is not float or not SMALLEST <= allowed <= LARGEST:
        return None
    bound = _bound(problem, allowed, of_steps)
    if bound is None:
        return None
    velocity, span = problem.velocity, end - problem.t0
    speed = math.hypot(*velocity)
    turn = speed * span
    if not (
        2 * SLOWEST < speed < FASTEST and SHORTEST < span < LONGEST and span > SPARSE * abs(end) and turn < FARTHEST
    ):
        return None
    usual = bound.usual
    try:
        if usual.loops is None:
            found = _exact(problem, usual, end, norm(velocity) * span)
        else:
            found = _stepped(problem, bound, usual.loops, end, turn)
    except KeyboardInterrupt as stop:
        stop.partial = interrupted(problem, usual.wish, _start(problem))  # type: ignore[attr-defined]
        raise
    if found is None:
        return None
    path, compiled, problem = found.path, compile_seconds() - compiled, problem.snapshot()
    described = describing(problem, usual.wish, found, time.perf_counter() - began - compiled, compiled)
    return Trajectory(Lazy(problem, path), described, dense=Dense(problem, found.run, path), problem=problem)


def _start(problem: Problem) -> Path:
    """Return the path of an interrupted run: its start, as a quick run is too short for more."""
    times, rows, _, _ = _buffers(1)
    _begin(times, rows, problem.t0, problem.kernel_data(floats.number)[0])
    return Path(times, rows, finished=False)


def _exact(problem: Problem, usual: Usual, end: float, turned: float) -> Solution | None:
    """Return the exact solution of a free body, whose states are computed when they are read."""
    wish, error = usual.wish, exact_error(turned)
    if not usual.is_ready("exact") or error > (1.0 if wish.of_steps else wish.tol):
        return None
    run = ExactRun(problem, end)
    return exact_solution(run, ExactPath(run), error, wish)


class ExactPath:
    """The states of a free body between its start and an end time, enough for a picture."""

    rejected, finished = 0, True

    def __init__(self, run: ExactRun) -> None:
        self.run, self.steps = run, run.parts

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Equally spaced times."""
        return self.run.moments

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """States at these times."""
        return self.run.rows_at(self.times)

    def last(self) -> Path:
        """Return the last state."""
        times = np.array((self.run.end,))
        return Path(times, self.run.rows_at(times))


def _stepped(problem: Problem, bound: Bound, loops: Loops, end: float, turn: float) -> Solution | None:
    """Return the solution of a body in a field."""
    _, body, _, _, usual, system = bound
    q, m, t = problem.quaternion, problem.momentum, problem.t0
    if not (
        type(q) is tuple and type(m) is tuple
        and float is type(q[0]) is type(q[1]) is type(q[2]) is type(q[3]) is type(m[0]) is type(m[1]) is type(m[2])
    ):  # fmt: skip
        return None  # somebody replaced them
    y: Any = (q, m)
    if body.to_body:
        y = problem._in_principal_axes(y, body.moments, body.to_body)
    choice = loops.choice(turn)
    if choice.measures is not None and not usual.is_ready("choice"):
        return None
    kind = loops.decided(choice, y, system, t, end)
    if not usual.is_ready(kind.name):
        return None
    start, wish, error = (loops, system, kind, y, t, end, None), loops.wish, None
    if wish.of_steps:
        run = PathRun(start, wish.tol)()
        if not run.finished:
            return None
    else:
        found = estimated(PathRun(start, loops.first_tolerance), wish.tol)
        if not found.reached:
            return None
        run, error = found.run, found.error
    reason = functools.partial(reason_of_first, problem, kind, error, wish)
    return Solution(run, run.path(), run.loop.label, reason, error)


def _bound(problem: Problem, tol: float, of_steps: bool) -> Bound | None:
    """Return what runs of a body in a field have in common; None if there may be something special about them."""
    global _recent
    field, body, known = problem.field, problem.body.principal, _recent
    if known is not None and known[0] is field and known[1] is body and known[2] == tol and known[3] is of_steps:
        return known
    usual = _usual(problem, tol, of_steps)
    if usual is None or not usual.moderate.holds(problem):
        return None
    _recent = known = Bound(field, body, tol, of_steps, usual, problem.kernel_data(floats.number)[1])
    return known


MOST_TOLERANCES = 256
"""Tolerances for which a formula keeps its loops."""

_of_free_bodies: dict[tuple[float, bool], Usual | None] = {}


def _usual(problem: Problem, tol: float, of_steps: bool) -> Usual | None:
    """Return the prepared run of a formula for a tolerance, or None if the field needs the general path."""
    field = problem.field
    if field is not None and field.trace("special", lambda: _is_special(field)):
        return None
    kept = _of_free_bodies if field is None else formula(problem).quick
    if (tol, of_steps) not in kept:
        wish = Wish(tol, of_steps)
        if len(kept) >= MOST_TOLERANCES:
            kept.pop(list(kept)[0], None)  # noqa: RUF015 - an iterator would see what other threads change
        kept[tol, of_steps] = Usual(problem, wish) if field is None or formula(problem).smooth else None
    return kept.get((tol, of_steps))


def _is_special(field: Field) -> bool:
    """Return whether runs in a field need more than loops with attitude and momentum."""
    return (
        isinstance(field, VaryingField) or control_in(field) is not None or bool(conditions_of(field))
        or bool(field.opaque or field.states or field.columns) or field.bath is not None or "t" in field.reads
    )  # fmt: skip
