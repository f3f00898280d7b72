"""Equal steps of a method, as few as give an accuracy at the end: for methods that do not estimate their errors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..kernels.loops import COLUMNS
from ..methods import Method
from .adaptive import Path, between_steps, distance, interpolated, round_off, scale_of_momentum
from .error_estimate import Estimated
from .integrator import beginning, engine
from .schedule import Schedule
from .step_control import EPS


@dataclasses.dataclass
class FixedRun:
    """A run of a method with so many equal steps in each leg of a schedule; call it."""

    schedule: Schedule
    method: Method
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        self.problem, self.end = self.schedule.problem, self.schedule.legs[-1].end
        self.engine = engine(self.problem, self.method)
        self.count = sum(self.counts)
        self.dt = (self.end - self.problem.t0) / self.count if len(self.counts) == 1 else 0.0

    def __call__(self) -> Path:
        """All of it, in memory."""
        times, rows = np.empty(self.count + 1), np.empty((self.count + 1, COLUMNS))
        y, t, done, fine = self.engine.y, self.problem.t0, 0, True
        times[0], rows[0] = t, (*y[0], *y[1])
        for leg, n in zip(self.schedule.legs, self.counts, strict=True):
            if done:  # steps of another length: a method with a memory or other variables begins anew
                row = rows[done].tolist()
                y = beginning(self.method)((tuple(row[:4]), tuple(row[4:])))
            system, dt = self.schedule.system(self.engine.system, leg), (leg.end - t) / n
            _, _, filled, _, fine = self.engine.advance(dt, t, 0, n, 1, n, y, system, rows[done + 1 :])
            times[done + 1 : done + 1 + filled] = t + np.arange(1, filled + 1) * dt
            done += filled
            if not fine:
                break
            times[done] = t = leg.end
        return self._path(times[: done + 1], rows[: done + 1], fine)

    def _path(self, times: np.ndarray, rows: np.ndarray, fine: bool) -> Path:
        """The same with what an estimate of its error needs."""
        sizes = np.sqrt((rows[:, 4:] ** 2).sum(1))
        speeds = np.sqrt(((rows[:, 4:] * self.engine.system[1]) ** 2).sum(1))
        turned = float((np.diff(times) * (speeds[1:] + speeds[:-1])).sum()) / 2
        return Path(times, rows, 0, fine, False, float(sizes.max()), turned)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Rows at any times within the run."""
        interpolate = between_steps(self.problem, self.method)
        return interpolated(interpolate, times, path_times, rows, self.engine.system, 0, self.schedule)


DENSER = 1.3
TRIES = 10

MOST_STEPS = 500_000
"""Steps that are tried at most: a method that needs more does not suit the accuracy."""


def shared_out(schedule: Schedule, count: int) -> tuple[int, ...]:
    """Steps of each leg: in proportion to its length, and so many that none is longer than the leg allows."""
    start = schedule.problem.t0
    span, counts = schedule.legs[-1].end - start, []
    for leg in schedule.legs:
        length, start = leg.end - start, leg.end
        counts.append(max(1, math.ceil(count * (length / span) - 1e-9), math.ceil(length / leg.longest - 1e-9)))
    return tuple(counts)


def measured_steps(schedule: Schedule, method: Method, tol: float, count: int) -> Estimated | None:
    """The run with the fewest steps, or nearly, whose error at the end is below tol; None where round-off is larger.

    The error follows from two runs, with at least 1.3 times as many steps in each leg of the second, and the order of
    the method.
    """
    problem = schedule.problem
    order = method.order_free if problem.field is None else method.order
    failed, best = 0, None
    for _ in range(TRIES):
        counts = shared_out(schedule, count)
        more = tuple(math.ceil(DENSER * n) for n in counts)
        run, fine = FixedRun(schedule, method, counts), FixedRun(schedule, method, more)
        a, b = run(), fine()
        scale = scale_of_momentum(problem, a, b)
        difference = distance(a.rows[-1], b.rows[-1], scale) if a.finished and b.finished else math.inf
        error = difference / (min(m / n for m, n in zip(more, counts, strict=True)) ** order - 1)
        error = max(error, round_off(b)) if math.isfinite(error) else error
        if error <= tol:
            best = Estimated(fine, b, error, True)
            if error > tol / 50 or fine.count <= 1.05 * failed + 1:
                break
        else:
            failed = max(failed, fine.count)
            if difference < 100 * EPS * run.count:
                break  # round-off
        factor = (3 * error / tol) ** (1 / order) if math.isfinite(error) else 2.0
        if factor * count > MOST_STEPS:
            break
        count = math.ceil(min(8.0, max(0.3, factor)) * run.count)
        if best is not None and failed:
            count = math.ceil(math.sqrt(failed * best.run.count) / DENSER)
    return best
