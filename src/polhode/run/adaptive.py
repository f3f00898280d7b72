"""Adaptive runs from the start of a problem to an end time, with a tolerance for the error of each step."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..compile import notice
from ..errors import StepError
from ..kernels import loops
from ..kernels.loops import COLUMNS
from ..methods.adaptive.controller import first_angle
from ..physics.fields import Field
from ..physics.fields.parameters import leaves_of
from ..physics.problem import Problem
from ..results.store import integrity
from .error_estimate import RATIO, REPEATED, finer_tolerance, more_steps
from .integrator import number_type
from .schedule import Schedule, scheduled
from .step_control import EPS, ROWS, AdaptiveStep
from .system import interpolated

REPEATED_STEPS = 65536
"""Steps of a repeated run between two looks for an interruption."""


def larger(size: int, most: int = ROWS) -> int:
    """Return the size of the buffer that follows one that is full."""
    return min(most, 4 * size)


class Watcher(Protocol):
    """Receives the progress of the runs in this context."""

    def tell(self, part: float) -> None:
        """Take the completed fraction of a run."""


_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Make the runs of this context report to a watcher."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(part: float) -> None:
    """Report the completed fraction of a run to the watcher of this context."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.tell(part)


@contextlib.contextmanager
def leaving(path: Callable[[], Path], method: str) -> Iterator[None]:
    """Give an exception the states so far, as its attribute `path`."""
    try:
        yield
    except BaseException as stop:
        if not hasattr(stop, "path"):
            stop.path = path()  # type: ignore[attr-defined]
            stop.method = method  # type: ignore[attr-defined]
        raise


class Journal(Protocol):
    """Stores the pieces computed by the runs in this context."""

    def pieces(self, run: Run) -> Iterator[Path]:
        """Yield the pieces of a run, computed now or before."""


_journal: contextvars.ContextVar[Journal | None] = contextvars.ContextVar("journal", default=None)


@contextlib.contextmanager
def journaled(journal: Journal) -> Iterator[None]:
    """Make the runs of this context use a journal."""
    token = _journal.set(journal)
    try:
        yield
    finally:
        _journal.reset(token)


@dataclasses.dataclass(frozen=True)
class Standing:
    """Checkpoint of a run between two pieces: all that the following pieces depend on."""

    leg: int
    t: Any
    y: Any
    proposal: Any
    largest: Any
    size: int
    """States in the buffer of the last piece."""
    attempted: int


@dataclasses.dataclass
class Path:
    """States of a run: times and rows (principal axes), including the start."""

    times: np.ndarray
    rows: np.ndarray
    rejected: int = 0
    finished: bool = True
    crawling: bool = False
    """Whether the run was abandoned because it took too many steps."""
    largest: float = 0.0
    """Largest |momentum| of the run."""
    turned: float = 0.0
    """Rotation angle in radians."""
    standing: Standing | None = None
    """Where the run stands after this piece; None at its end."""
    apart: float | None = None
    """Distance of the end from that of the path with which a repeated run is compared."""

    @property
    def steps(self) -> int:
        """Number of states after the first one."""
        return len(self.times) - 1

    def last(self) -> Path:
        """Return the last state, in memory of its own."""
        return Path(self.times[-1:].copy(), self.rows[-1:].copy())


class Unjoined(Path):
    """A path in pieces, joined where its states are read: Ctrl-C does not wait for gigabytes that nobody may need."""

    parts: list[Path]

    def __getattr__(self, name: str) -> Any:
        """Join the pieces; called for what is not there."""
        if name not in ("times", "rows") or "parts" not in vars(self):
            raise AttributeError(name)
        whole = joined(vars(self).pop("parts"))
        self.times, self.rows = whole.times, whole.rows
        return vars(self)[name]


def unjoined(parts: list[Path]) -> Path:
    """Return the path of a run that did not finish, whose pieces are joined where its states are read."""
    path = Unjoined(
        parts[-1].times, parts[-1].rows, sum(p.rejected for p in parts), finished=False, largest=parts[-1].largest
    )
    del path.times, path.rows
    path.parts = parts
    return path


def begun(buffer: np.ndarray, count: int) -> np.ndarray:
    """Return the filled rows of a buffer; copied if they use less than half of it."""
    rows = buffer[:count]
    return rows.copy() if 2 * count < len(buffer) else rows


class Repeats(NamedTuple):
    """What a run repeats with shorter steps."""

    mesh: np.ndarray
    """Times of the run that chose the steps, with its start."""
    steps: int
    """Number of steps that replace those of the mesh."""
    path: Path
    """The path with which the repeated run is compared."""


class Run:
    """A run to an end time with a tolerance for the error of each step; call it for its path.

    Parameters
    ----------
    problem, controlled_step, end : the problem, its kind of step, and the end time
    tolerance : error allowed in each step, weighted by `kernels.loops.weights_of_errors`
    schedule : required step ends and longest steps; by default those of the problem's field
    """

    steps_are_free = True
    """Whether nothing but the schedule and the error decides where steps end."""
    repeats: Repeats | None = None
    """The run that this one repeats with shorter steps; None if it chooses its own."""

    def __init__(
        self, problem: Problem, controlled_step: AdaptiveStep, end: float, tolerance: float,
        schedule: Schedule | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.controlled_step, self.end, self.tolerance = problem, controlled_step, end, tolerance
        self.measured = problem
        """The problem whose states have errors that count: those of its field, beside attitude and momentum."""
        self.schedule = schedule or scheduled(problem, end, tolerance)
        self.longest = [leg.longest for leg in self.schedule.legs]
        self.order = controlled_step.order_for(tolerance)
        self.number = number_type(controlled_step.digits)
        self.y, self.system = problem.kernel_data(self.number)

    def again(self, tolerance: float) -> Run:
        """Return the same run with another tolerance."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made.tolerance, made.order, made.repeats = tolerance, self.controlled_step.order_for(tolerance), None
        made.longest = [leg.longest for leg in self.schedule.legs]
        return made

    def finer(self, path: Path) -> Run:
        """Return a more accurate run to compare with a path of this one."""
        legs = self.schedule.legs
        if not (self.steps_are_free and self.controlled_step.smooth and len(legs) == 1 and legs[0].longest == math.inf):
            return self._with_smaller_tolerance(path)
        made = self.again(self.tolerance / REPEATED)
        made.order, steps = self.order, more_steps(len(path.times) - 1, self.order)
        made.repeats = Repeats(self.repeats.mesh if self.repeats else path.times, steps, path)
        return made

    def _with_smaller_tolerance(self, path: Path) -> Run:
        """Return a run with smaller errors in every leg than those of `path`.

        A smaller tolerance alone does not shorten steps that are limited by the schedule. So no step is longer than the
        longest step of the path in that leg times ratio^(-1/order), where `ratio` is that of the errors.
        """
        made = self.again(finer_tolerance(self.tolerance, self.controlled_step.eps))
        part = shorter(RATIO, self.order)
        steps = path.times[1:] - path.times[:-1]
        if len(self.schedule.legs) == 1:
            made.longest = [part * float(steps.max())]
            return made
        ends = [leg.end for leg in self.schedule.legs]
        first = np.searchsorted(path.times[:-1], [self.problem.t0, *ends[:-1]])
        made.longest = (part * np.maximum.reduceat(steps, first)).tolist()
        return made

    def difference(self, path: Path, fine: Path) -> float:
        """Return the error of a run relative to a finer one, but at least the round-off error."""
        if fine.apart is not None:
            return max(fine.apart, round_off(path, EPS, self.controlled_step.roundings))
        scale = scale_of_momentum(self.measured, path, fine)
        return max(
            distance(path.rows[-1], fine.rows[-1], scale),
            gap_of_states(self.measured.field, path, fine),
            round_off(path, self.controlled_step.eps, self.controlled_step.roundings),
        )

    def proposal(self) -> float:
        """Return the first proposal for the loop: minus an angle, or the whole span if steps choose their length."""
        if not self.controlled_step.has_proposal:
            return self.end - self.problem.t0
        return -first_angle(self.order, self.tolerance)

    def pieces(self) -> Iterator[Path]:
        """Yield the path in pieces: the first begins with the start, the others with the state after the last piece.

        `largest` is the largest |momentum| so far.
        """
        journal = _journal.get()
        return self.computed() if journal is None else journal.pieces(self)

    def computed(self, start: Standing | None = None) -> Iterator[Path]:
        """Compute the pieces, all of them or those after `start`."""
        loop, size = self.controlled_step.adaptive_loop, self.controlled_step.few_rows
        at = start or Standing(0, self.number(self.problem.t0), self.y, self.proposal(), 0.0, size, 0)
        t, y, proposal, largest, size, attempted = at.t, at.y, at.proposal, at.largest, at.size, at.attempted
        (times, rows), filled, rejected, turned = self._buffer(size), 1 if start is None else size, 0, 0.0
        times[0], rows[0] = t, [x for part in y for x in part]
        legs = list(zip(self.schedule.legs, self.longest, strict=True))
        for number in range(at.leg, len(legs)):
            leg, longest = legs[number]
            system = self.schedule.system(self.system, leg)
            while t < leg.end:
                if filled == size:
                    size, filled = larger(size, self.controlled_step.most_rows), 0
                    times, rows = self._buffer(size)
                free = (times[filled:], rows[filled:]) if filled else (times, rows)
                y, t, proposal, largest, angle, count, lost, fine = loop(
                    t, leg.end, self.end, longest, proposal, y, system, self.tolerance, largest, self.order, *free
                )
                filled, rejected, turned = filled + count, rejected + lost, turned + angle
                attempted += count + lost
                crawling = attempted > self.controlled_step.most
                if fine and not crawling and filled < size and t < self.end:
                    continue
                self._tell(t)
                largest = max(largest, math.hypot(*y[1]))
                done = not fine or crawling or filled < size or t >= self.end
                after = None if done else Standing(number, t, y, proposal, largest, size, attempted)
                finished = fine and not crawling
                kept = (begun(times, filled), begun(rows, filled))
                yield Path(*kept, rejected, finished, crawling, largest, turned, after)
                if done:
                    return
                rejected, turned = 0, 0.0

    def _buffer(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return arrays for the times and rows of `size` steps."""
        dtype = float if self.controlled_step.digits is None else object
        return np.empty(size, dtype), np.empty((size, sum(map(len, self.y))), dtype)

    def _tell(self, t: float) -> None:
        tell(float((t - self.problem.t0) / (self.end - self.problem.t0)))

    def start(self) -> Path:
        """Return the path before the first step."""
        row, t0 = [x for part in self.y for x in part], self.number(self.problem.t0)
        return Path(np.array([t0]), np.array([row]), largest=math.hypot(*self.y[1]))

    def __call__(self) -> Path:
        """Return the whole path, in memory; an exception carries the states so far as its attribute `path`."""
        if self.repeats is not None:
            return self._repeated(self.repeats)
        parts, label = list[Path](), self.controlled_step.label(self.order)
        with (
            notice.about(notice.named(self.controlled_step.name, self.problem)),
            leaving(lambda: unjoined(parts or [self.start()]), label),
        ):
            states = 0
            for piece in self.pieces():
                parts.append(piece)
                states += len(piece.times)
                check_memory(states, piece, label)
        return joined(parts)

    def _repeated(self, of: Repeats) -> Path:
        """Return the path of a run that repeats another one."""
        system, y, largest = self.schedule.system(self.system, self.schedule.legs[0]), self.y, of.path.largest
        (times, rows), mesh, fine = self._buffer(of.steps + 1), of.mesh[1:], True
        times[0], rows[0] = of.mesh[0], [x for part in y for x in part]
        compared = loops.read_row(of.path.rows[-1].tolist())
        with leaving(lambda: dataclasses.replace(of.path, finished=False), self.controlled_step.label(self.order)):
            for first in range(0, of.steps, REPEATED_STEPS):
                last = min(of.steps, first + REPEATED_STEPS)
                y, largest, apart, fine = self.controlled_step.repeat(
                    self.problem.t0, mesh, len(mesh), of.steps, first, last, y, compared, largest, system, self.order,
                    times[first + 1 :], rows[first + 1 :],
                )  # fmt: skip
                if not fine:
                    break
                self._tell(times[last])
        return Path(times, rows, finished=fine, largest=largest, turned=of.path.turned, apart=apart)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run, each by one step from the last stored state; None on failure."""
        evaluate = self.controlled_step.interpolate
        return interpolated(evaluate, times, path_times, rows, self.system, self.order, self.schedule)


def shorter(ratio: float, order: int) -> float:
    """Return the factor of step lengths that makes errors `ratio` times smaller."""
    return float(ratio ** (-1 / order))


def check_memory(states: int, last: Path, method: str) -> None:
    """Stop a run whose states do not fit in memory; those that it has computed are in `.partial`."""
    if said := integrity.shortage(states, integrity.bytes_of(last.rows.shape[1])):
        raise StepError(
            f"{method} stopped at t = {float(last.times[-1]):g}: {said}; give a larger tolerance, or an earlier "
            f"t_end; the {states} states before it are in .partial"
        )


def joined(parts: list[Path]) -> Path:
    """Join the pieces of a path."""
    last = parts[-1]
    if len(parts) == 1:
        return last
    return Path(
        np.concatenate([p.times for p in parts]), np.concatenate([p.rows for p in parts]),
        sum(p.rejected for p in parts), last.finished, last.crawling, last.largest, math.fsum(p.turned for p in parts),
    )  # fmt: skip


def distance(a: np.ndarray, b: np.ndarray, momentum: float) -> float:
    """Return the distance of two rows: the larger of the attitude angle and the relative momentum difference."""
    one, other = (loops.read_row(row[:COLUMNS].tolist()) for row in (a, b))
    return float(loops.distance(one, other, momentum))


def gap_of_states(field: Field | None, path: Path, fine: Path) -> float:
    """Return the difference of the ends of two paths in the states of a field, each relative to its largest size."""
    largest, first = 0.0, COLUMNS
    for value in field.states.values() if field is not None else ():
        size = len(leaves_of(value))
        one, other = (run.rows[:, first : first + size] for run in (path, fine))
        scale = float(np.linalg.norm(one, axis=1).max()) or 1.0
        largest, first = max(largest, float(np.linalg.norm(one[-1] - other[-1])) / scale), first + size
    return largest


def scale_of_momentum(problem: Problem, *paths: Path) -> float:
    """Return the scale of momentum errors: the largest |momentum| at the start and on some paths."""
    return scale_of(max(math.hypot(*problem.momentum), *(path.largest for path in paths)))


def scale_of(largest: float) -> float:
    """Return the largest |momentum| as a scale, or 1 if it is none."""
    return largest if 0 < largest < math.inf else 1.0


def round_off(path: Path, eps: float = EPS, roundings: float = 1.0) -> float:
    """Return the round-off error of a run, the lower bound of every error estimate.

    Let u = eps/2 be the unit round-off. The initial momentum has a relative error u, so the rotation angle has an error
    of u times itself, or `roundings` times that (`AdaptiveStep`). Each of n steps rounds the attitude by about u in a
    random direction, sqrt(n) u in total. The result is rounded once. If neighbouring motions diverge, the comparison of
    two runs shows a larger error.
    """
    return rounding(float(path.turned), len(path.times) - 1, eps, roundings)


def rounding(turned: float, steps: int, eps: float = EPS, roundings: float = 1.0) -> float:
    """Return the same from the rotation angle and the number of steps."""
    return eps / 2 * (1 + roundings * turned + math.sqrt(steps))
