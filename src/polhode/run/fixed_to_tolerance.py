"""Find the fewest equal steps that reach a tolerance at the end, for methods without an error estimate."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..methods import Method
from .adaptive import Path, distance, leaving, round_off, scale_of_momentum, tell
from .error_estimate import Estimated
from .integrator import beginning
from .located_steps import LocatedSteps, can_locate
from .schedule import Schedule
from .step_control import EPS, working_eps
from .system import System, engine, interpolated

CHUNK = 8192
"""Steps between two looks for an interruption."""


@dataclasses.dataclass
class FixedRun:
    """A run of a method with `counts` equal steps in the legs of a schedule; call it."""

    schedule: Schedule
    method: Method
    counts: tuple[int, ...]
    digits: int | None = None

    def __post_init__(self) -> None:
        self.problem, self.end = self.schedule.problem, self.schedule.legs[-1].end
        self.located = None
        if can_locate(self.problem, self.method, self.digits):
            self.located = LocatedSteps(self.problem, self.method, [leg.end for leg in self.schedule.legs])
        self.engine = engine(self.problem, self.method, self.digits) if self.located is None else self.located.engine()
        self.count = sum(self.counts)
        self.dt = (self.end - self.problem.t0) / self.count if len(self.counts) == 1 else 0.0

    def __call__(self) -> Path:
        """Return the whole path, in memory."""
        number, rows = self.engine.number, self.engine.buffer(self.count + 1)
        times = np.empty(self.count + 1, dtype=rows.dtype)
        y, t, done, fine = self.engine.y, number(self.problem.t0), 0, True
        times[0], rows[0] = t, (*y[0], *y[1])
        chunk = 1 if self.engine.digits or self.engine.singly else CHUNK
        with leaving(lambda: self._path(times[: done + 1], rows[: done + 1], False), self.method.name):
            for leg, n in zip(self.schedule.legs, self.counts, strict=True):
                if done:  # the step length changes, so a method with memory or changed variables restarts
                    row = rows[done].tolist()
                    y = beginning(self.method)((tuple(row[:4]), tuple(row[4:])))
                system, dt = self.schedule.system(self.engine.system, leg), (number(leg.end) - t) / n
                for first in range(0, n, chunk):
                    some = min(chunk, n - first)
                    y, filled, fine = self._advanced(dt, t, (first, some, n), y, system, rows[done + 1 :])
                    made = np.arange(first + 1, first + filled + 1)
                    times[done + 1 : done + 1 + filled] = t + made.astype(rows.dtype) * dt
                    done += filled
                    if not fine:
                        return self._path(times[: done + 1], rows[: done + 1], fine)
                    tell(done / self.count)
                times[done] = t = number(leg.end)
        return self._path(times[: done + 1], rows[: done + 1], fine)

    def _advanced(
        self, dt: Any, t: Any, some: tuple[int, int, int], y: Any, system: Any, rows: np.ndarray
    ) -> tuple[Any, int, bool]:
        """Make some of n steps, given as (first, count, n); return the state, the rows filled, and if all went well."""
        first, count, n = some
        try:
            y, _, filled, _, fine = self.engine.advance(dt, t, first, count, 1, n, y, system, rows)
            return y, filled, fine
        except (ArithmeticError, TypeError, ValueError):
            if self.digits is None and not self.engine.plain:
                raise
        for i in range(count):  # in plain Python an undefined number ends the loop: keep the steps before
            try:
                y, _, _, _, fine = self.engine.advance(dt, t, first + i, 1, 1, n, y, system, rows[i:])
            except (ArithmeticError, TypeError, ValueError):
                fine = False
            if not fine:
                return y, i, False
        return y, count, True

    def _path(self, times: np.ndarray, rows: np.ndarray, fine: bool) -> Path:
        """Return the path with the quantities that an error estimate needs."""
        momenta, inverse = rows[:, 4:].astype(float), np.array(self.engine.system[1], dtype=float)
        sizes, speeds = np.sqrt((momenta**2).sum(1)), np.sqrt(((momenta * inverse) ** 2).sum(1))
        turned = float((np.diff(times.astype(float)) * (speeds[1:] + speeds[:-1])).sum()) / 2
        return Path(times, rows, 0, fine, False, float(sizes.max()), turned)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Return rows at any times within the run."""
        if self.located is not None:
            return self.located.state_at(times, path_times, rows)
        interpolate = System(self.problem, self.method, self.digits).between
        return interpolated(interpolate, times, path_times, rows, self.engine.system, 0, self.schedule)


DENSER = 1.3
TRIES = 10

ENOUGH = 4
"""Tries with twice as many steps each, after which steps with many digits that still fail are not shortened."""

MOST_STEPS = 500_000
"""Largest number of steps tried: a method that needs more is unsuitable for the tolerance."""


def shared_out(schedule: Schedule, count: int) -> tuple[int, ...]:
    """Return the steps of each leg: in proportion to its length, and none longer than the leg allows."""
    start = schedule.problem.t0
    span, counts = schedule.legs[-1].end - start, []
    for leg in schedule.legs:
        length, start = leg.end - start, leg.end
        counts.append(max(1, math.ceil(count * (length / span) - 1e-9), math.ceil(length / leg.longest - 1e-9)))
    return tuple(counts)


def measured_steps(
    schedule: Schedule, method: Method, tol: float, count: int, digits: int | None = None
) -> Estimated | None:
    """Return the run with (nearly) the fewest steps whose error at the end is at most tol; None if there is none.

    The error follows from the order of the method and two runs; the second has at least 1.3 times as many steps in each
    leg. If no run reaches the end, however short its steps are, the last one is returned with the states before.
    """
    problem = schedule.problem
    order = method.order_free if problem.field is None else method.order
    failed, best, eps = 0, None, EPS if digits is None else working_eps(digits)
    for tried in range(TRIES):
        counts = shared_out(schedule, count)
        more = tuple(math.ceil(DENSER * n) for n in counts)
        run, fine = FixedRun(schedule, method, counts, digits), FixedRun(schedule, method, more, digits)
        a, b = run(), fine()
        if digits is not None and tried >= ENOUGH and not (a.finished or b.finished):
            break  # steps in plain Python are slow
        scale = scale_of_momentum(problem, a, b)
        difference = distance(a.rows[-1], b.rows[-1], scale) if a.finished and b.finished else math.inf
        error = difference / (min(m / n for m, n in zip(more, counts, strict=True)) ** order - 1)
        error = max(error, round_off(b, eps)) if math.isfinite(error) else error
        if error <= tol:
            best = Estimated(fine, b, error, True)
            if error > tol / 50 or fine.count <= 1.05 * failed + 1:
                break
        else:
            failed = max(failed, fine.count)
            if difference < 100 * eps * run.count:
                break  # round-off
        factor = (3 * error / tol) ** (1 / order) if math.isfinite(error) else 2.0
        if factor * count > MOST_STEPS:
            break
        count = math.ceil(min(8.0, max(0.3, factor)) * run.count)
        if best is not None and failed:
            count = math.ceil(math.sqrt(failed * best.run.count) / DENSER)
    return best if best or b.finished else Estimated(fine, b, math.inf, False)
