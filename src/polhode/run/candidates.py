"""Which method solves a problem to a tolerance with the least work.

A free body has its exact solution. For every other field that is a smooth formula there are Lie-Taylor steps, and a
Runge-Kutta pair for moderate accuracy. Where the body spins fast against the torque, compositions of kicks and exact
drifts can need less work: their errors are then those of the small torque. How far one step of them may go is measured
on a few states of the motion, and what it costs follows from the operations in it; `benchmarks/cost_model.py` measures
the constants.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS
from ..methods import Method, methods
from ..methods.families.jacobi import jacobi
from ..methods.tables.compositions import compositions, splittings
from ..numbers import floats
from ..physics.problem import Problem
from .adaptive import EPS, Measured, Path, Run, between_steps, distance, interpolated, round_off, scale_of_momentum
from .cost import cost
from .integrator import beginning, engine, torque_kernel
from .schedule import Schedule

NS_STEP, NS_FLOP, NS_FUNCTION = 15.0, 0.06, 6.0
"""Nanoseconds of a step of fixed length, of one of its operations, of one elementary function."""

FAST = 0.05
"""Torque times moment over momentum squared, below which splittings are considered."""

GAIN = 0.8
"""A splitting is taken if its work is at most this part of that of the best of the others."""

SAMPLES = 3
STAGES = 40
HIGH = 10
"""Drifts of this order, or exact ones, leave a splitting its own order."""


# --- fixed steps ------------------------------------------------------------------------------------


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
        return Path(times[: done + 1], rows[: done + 1], 0, fine)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Rows at any times within the run."""
        interpolate = between_steps(self.problem, self.method)
        return interpolated(interpolate, times, path_times, rows, self.engine.system, 0, self.schedule)


DENSER = 1.3
TRIES = 10

MOST_STEPS = 500_000
"""So many steps are tried at most: a method that needs more is not one for this accuracy."""


def shared_out(schedule: Schedule, count: int) -> tuple[int, ...]:
    """Steps of each leg: in proportion to its length, and so many that none is longer than the leg allows."""
    start = schedule.problem.t0
    span, counts = schedule.legs[-1].end - start, []
    for leg in schedule.legs:
        length, start = leg.end - start, leg.end
        counts.append(max(1, math.ceil(count * (length / span) - 1e-9), math.ceil(length / leg.longest - 1e-9)))
    return tuple(counts)


def measured_steps(schedule: Schedule, method: Method, tol: float, count: int) -> Measured | None:
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
        scale = scale_of_momentum(problem, b)
        difference = distance(a.rows[-1], b.rows[-1], scale) if a.finished and b.finished else math.inf
        error = difference / (min(m / n for m, n in zip(more, counts, strict=True)) ** order - 1)
        error = max(error, round_off(problem, b)) if math.isfinite(error) else error
        if error <= tol:
            best = Measured(fine, error, True)
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


# --- what a splitting would cost --------------------------------------------------------------------


def is_fast(problem: Problem, states: np.ndarray) -> bool:
    """Is the torque small against the spin at all of these rows."""
    _, system = problem.kernel_data(floats.number)
    torque, inertia = torque_kernel(problem, floats.number), float(np.median(problem.body.moments))
    for row in states.tolist():
        acting = torque(problem.t0, tuple(row[:4]), tuple(row[4:]), system)
        if math.hypot(*acting) * inertia >= FAST * math.hypot(*row[4:]) ** 2:  # also at rest, where both are zero
            return False
    return True


GENERIC = 0.48, 0.6, 0.64
"""A direction that is not along an axis, nor in a plane, of symmetry."""


def drifts(problem: Problem, row: np.ndarray) -> list[Method]:
    """The cheapest free flow that is exact for this body, and the cheapest of high order."""
    free = _free(problem, row)
    (q, m), system = free.kernel_data(floats.number)
    if problem.body.linear_axis is None:  # about an axis of symmetry other methods are exact too, and only there
        m = tuple(math.hypot(*m) * x for x in GENERIC)
    h = 0.5 / max(1e-300, math.hypot(*(i * x for i, x in zip(system[1], m, strict=True))))
    torque = torque_kernel(free, floats.number)
    exact, _ = jacobi.build(floats.number)(h, 0.0, (q, m), system, torque)
    found: dict[bool, tuple[float, Method]] = {}
    for method in methods.values():
        if method.needs != "free" or not method.symmetric or method.solves > 1 or not _suits(method, problem):
            continue
        try:
            new, residual = method.build(floats.number)(h, 0.0, (q, m), system, torque)
        except (ArithmeticError, ValueError):  # a method that this body or this start does not suit
            continue
        gap = max(abs(a - b) for x, y in zip(new, exact, strict=True) for a, b in zip(x, y, strict=True))
        is_exact = residual <= 0 and gap <= 64 * EPS * max(1.0, *map(abs, m))
        if not is_exact and method.order_free < HIGH:
            continue
        price = step_ns(method, free, h)
        if is_exact not in found or price < found[is_exact][0]:
            found[is_exact] = (price, method)
    return [method for _, method in found.values()]


def _suits(method: Method, problem: Problem) -> bool:
    """Does the method take such a body."""
    linear, flat = problem.body.linear_axis is not None, not problem.body.has_thickness
    return (method.linear_bodies or not linear) and (method.flat_bodies or not flat)


def _free(problem: Problem, row: np.ndarray) -> Problem:
    q, m = problem.user_axes(tuple(row[:4].tolist()), tuple(row[4:].tolist()))
    return Problem(problem.body, attitude=q, momentum=m)


def step_ns(method: Method, problem: Problem, h: float) -> float:
    """Nanoseconds of one compiled step, from the operations in it."""
    work = cost(method, problem, h)
    return NS_STEP + NS_FLOP * work.flops + NS_FUNCTION * work.function


def schemes() -> Iterator[str]:
    """Names of the splittings of high order."""
    for composition in compositions.values():
        if composition.order >= 6 and len(composition.weights) <= STAGES:
            yield composition.name
    for splitting in splittings.values():
        if splitting.order >= 6:
            yield splitting.name


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A splitting with what one step of it costs and errs: the local error is `error` at the step h."""

    method: Method
    ns: float
    h: float
    error: float

    def steps(self, span: float, tol: float) -> float:
        """Steps that give an error of about tol/3 over the span, errors adding up."""
        return span / self.h * (3 * span * self.error / (self.h * tol)) ** (1 / self.method.order)


def candidates(problem: Problem, path: Path) -> list[Candidate]:
    """The splittings measured on a few states of the motion."""
    picked = np.linspace(0, len(path.rows) - 1, SAMPLES + 2).astype(int)[1:-1]
    found = []
    for flow in drifts(problem, path.rows[0]):
        for name in schemes():
            method = methods.combinators[name](flow)
            try:
                h, error = _local_error(problem, method, path, picked)
            except (ArithmeticError, ValueError):
                continue
            if error > 0:
                found.append(Candidate(method, step_ns(method, problem, h), h, error))
    return found


def _local_error(problem: Problem, method: Method, path: Path, picked: Any) -> tuple[float, float]:
    """A step, and how much it differs from two half steps: large enough to be seen, the mean over the states."""
    step, torque = method.build(floats.number), torque_kernel(problem, floats.number, method)
    (_, m), system = problem.kernel_data(floats.number)
    speed = math.hypot(*(i * x for i, x in zip(system[1], m, strict=True)))
    momentum = scale_of_momentum(problem, path)
    h = 0.5 * math.sqrt(method.torque_evals) / max(speed, 1e-300)
    for _ in range(4):
        errors = []
        for i in picked:
            row, t = path.rows[i], float(path.times[i])
            y = (tuple(row[:4].tolist()), tuple(row[4:].tolist()))
            one, _ = step(h, t, y, system, torque)
            half, _ = step(h / 2, t, y, system, torque)
            two, _ = step(h / 2, t + h / 2, half, system, torque)
            errors.append(distance(np.array((*one[0], *one[1])), np.array((*two[0], *two[1])), momentum))
        error = float(np.mean(errors))
        if error > 1e-4 or not math.isfinite(error):
            h /= 3
        elif error < 1e-12:
            h *= 2
        else:
            return h, error
    return h, error if math.isfinite(error) else 0.0


def run_ns(run: Run, path: Path) -> float:
    """Nanoseconds of a run whose steps follow from a tolerance."""
    return (len(path.times) - 1 + path.rejected) * run.controlled_step.ns(run.order)
