"""Runs whose steps follow from a tolerance, made ready: compiled, and their error known."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS, adaptive_stepping, interpolating, one_step
from ..kernels.so3 import conj, mul
from ..methods import Method
from ..methods.adaptive.controller import controlled_step_from_estimate
from ..methods.adaptive.dormand_prince import dormand_prince
from ..methods.adaptive.verner87 import STAGES, verner87
from ..methods.combinators.compose import collapsed_step, whole
from ..methods.families import taylor as lie_taylor
from ..numbers import floats
from ..numbers.primitives import FUNCTIONS
from ..physics.fields import Field
from ..physics.mixed_precision import controlled_steps_in_mixed_precision
from ..physics.problem import Problem
from ..physics.taylor_steps import MOST, controlled_taylor_step, motion_series
from ..symbolic.expression import COMPARISONS, ordered
from .integrator import check_fit, structure, torque_kernel
from .schedule import Leg, Schedule, scheduled

EPS = 2.0**-52
SMALLEST, LARGEST = 1e-15, 0.1
"""Tolerances that can be asked for."""

ROWS = 4096
"""States kept between two looks at the run."""

NS_EXPANSION, NS_TERM = 110.0, 0.18
"""Nanoseconds of an expansion, and of one product in a sum."""

NS_PAIR, NS_STAGE, NS_FLOP = 10.0, 9.0, 0.19
"""Nanoseconds of a step of the pair 8(7), of one of its stages, of one operation of the torque."""

PAIR_STEPS, SERIES_STEPS = 5_000_000, 20_000_000
"""Tried steps after which a run is given up: at a jump that holds the motion, steps become ever shorter."""

_watcher: contextvars.ContextVar[Callable[[float], Any] | None] = contextvars.ContextVar("watcher", default=None)


@contextlib.contextmanager
def watched(tell: Callable[[float], Any]) -> Iterator[None]:
    """Let the runs of this thread tell which part of their time is done."""
    token = _watcher.set(tell)
    try:
        yield
    finally:
        _watcher.reset(token)


def scale_of_momentum(problem: Problem, path: Path | None) -> float:
    """The size against which errors of the momentum count: the largest on a path, or that of the start."""
    sizes = [math.hypot(*problem.momentum)]
    if path is not None:
        sizes.append(float(np.sqrt((path.rows[:, 4:] ** 2).sum(1)).max()))
    largest = max(sizes)
    return largest if 0 < largest < math.inf else 1.0


@dataclasses.dataclass
class Path:
    """What a run made: times and rows (principal axes), the start included, and its rejected steps."""

    times: np.ndarray
    rows: np.ndarray
    rejected: int
    finished: bool
    crawling: bool = False
    """Was it given up because its steps are far too many."""


def is_smooth(field: Field | None) -> bool:
    """Is the torque one formula, without branches that depend on the time or the state."""
    if field is None:
        return True
    moving: set[Any] = set()
    for node in ordered(field.graph[0]):
        if (node.op == "symbol" and node.args[0][0] in "tRwm") or any(a in moving for a in node.args):
            moving.add(node)
    return all(node.op not in ("abs", *COMPARISONS) for node in moving)


def _compiled(make: Callable[[], Any], *shortcut: Hashable) -> Any:
    from ..compile.program import program

    return program(make, *shortcut).run


@dataclasses.dataclass(frozen=True)
class AdaptiveStep:
    """A way to choose steps: its name, what its kernel is built from, and the kernel for doubles."""

    name: str
    structure: tuple[Hashable, ...]
    make: Callable[[], Any]
    order_for: Callable[[float], int]
    most: float = math.inf
    """Tried steps after which a run is given up."""
    ns: Callable[[int], float] = lambda order: math.inf
    """Nanoseconds of one tried step of some order, by the model of `benchmarks/cost_model.py`."""

    def label(self, order: int) -> str:
        """The name of the method, with its order where that varies."""
        return self.name if self.order_for(0.1) == self.order_for(EPS) else f"{self.name}({order})"

    def adaptive_loop(self) -> Any:
        """The compiled loop."""
        return _compiled(lambda: adaptive_stepping(self.make()), "travel", self.name, *self.structure)

    def interpolate(self) -> Any:
        """The compiled look between steps."""
        return _compiled(lambda: interpolating(self.make()), "visit", self.name, *self.structure)


def taylor(problem: Problem) -> AdaptiveStep:
    """Taylor steps: the order from the tolerance, the length from the series."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation

    def ns(order: int) -> float:
        terms = motion_series(field, has_principal_rotation).terms
        return NS_EXPANSION + NS_TERM * terms * order * (order - 1) / 2

    name = lie_taylor.taylor.__name__
    make = functools.partial(controlled_taylor_step, field, has_principal_rotation, floats.number)
    return AdaptiveStep(name, structure(problem), make, taylor_order, SERIES_STEPS, ns)


def taylor_order(tolerance: float) -> int:
    """The order that makes the work least: -ln(tolerance)/2 (Jorba and Zou 2005) and 4, measured."""
    return min(MOST, max(4, math.ceil(-0.5 * math.log(tolerance)) + 4))


def mixed_taylor(problem: Problem) -> AdaptiveStep:
    """The same Taylor steps with narrow numbers for coefficients of high order: for lanes, which have such numbers."""
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation
    controlled_step = taylor(problem)
    return dataclasses.replace(
        controlled_step,
        name=f"{controlled_step.name}, mixed",
        make=lambda: controlled_steps_in_mixed_precision(field, has_principal_rotation, floats.number),
    )


SINGLE_PRECISION_SHARE = 1e-5
"""Terms of a series below tolerance/SEEN may be narrow: single precision rounds them to a hundredth of the tolerance.

If sizes fall evenly, that is; they fall later, and by measurement this is where steps are fastest.
"""


def mixed_orders(tolerance: float, order: int) -> tuple[int, int, float]:
    """What `expansion.controlled_steps_in_mixed_precision` takes, if terms fall evenly from 1 to the tolerance.

    The last order, the one above which coefficients may be narrow, and the radius of convergence in steps.
    """
    first = min(order - 1, max(2, math.ceil(order * (1 - math.log(SINGLE_PRECISION_SHARE) / math.log(tolerance)))))
    return order, first, tolerance ** (-1 / order)


def pair(problem: Problem) -> AdaptiveStep:
    """Steps of an embedded pair, for fields with branches."""
    return estimated(problem, dormand_prince)


def estimated(problem: Problem, method: Method) -> AdaptiveStep:
    """Steps of a method that estimates its errors."""

    def make() -> Any:
        return controlled_step_from_estimate(method, floats.number, torque_kernel(problem, floats.number, method))

    return AdaptiveStep(method.name, structure(problem, method), make, lambda tolerance: int(method.order), PAIR_STEPS)


def runge_kutta(problem: Problem) -> AdaptiveStep:
    """Steps of Verner's pair 8(7) on plain numbers: cheap ones, for moderate accuracy."""

    def ns(order: int) -> float:
        return NS_PAIR + STAGES * (NS_STAGE + NS_FLOP * torque_flops(problem))

    return dataclasses.replace(estimated(problem, verner87), ns=ns)


def torque_flops(problem: Problem) -> int:
    """Operations in the formula of the torque; a quotient counts for eight, an elementary function for a hundred."""
    if problem.field is None:
        return 0
    weights = {"div": 8, "symbol": 0, "const": 0, "named": 0} | dict.fromkeys(FUNCTIONS, 100)
    return sum(weights.get(node.op, 1) for node in ordered(problem.field.graph[0]))


@dataclasses.dataclass
class Run:
    """A run to the end of a problem with one tolerance for single steps; call it."""

    problem: Problem
    controlled_step: AdaptiveStep
    end: float
    tolerance: float
    momentum: float = math.inf
    """The size against which errors of the momentum count; infinite where only the attitude does."""
    schedule: Schedule | None = None
    """Where steps end and how long they may be; by default what the field of the problem asks for."""
    stretch: float = 1.0
    """The longest steps are so many times as long as the schedule says; below 1 every leg has several."""

    def __post_init__(self) -> None:
        self.order = self.controlled_step.order_for(self.tolerance)
        self.y, self.system = self.problem.kernel_data(floats.number)
        self.limits = (self.tolerance, self.tolerance * self.momentum)
        self.adaptive_loop = self.controlled_step.adaptive_loop()
        self.first = np.array([[*self.y[0], *self.y[1]]])
        self.proposal = (self.end - self.problem.t0) / 1000
        legs = (self.schedule or scheduled(self.problem, self.end, self.tolerance)).legs
        self.plan = Schedule(self.problem, legs)

    def longest(self, leg: Leg, start: float) -> float:
        """The longest step in a leg."""
        return self.stretch * (leg.longest if self.stretch >= 1 else min(leg.longest, leg.end - start))

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray, int, bool]]:
        """Times, rows, rejected steps and whether all went well, piece by piece; the arrays are used again."""
        times, rows = np.empty(ROWS), np.empty((ROWS, COLUMNS))
        t, y, proposal, attempted, filled, lost = self.problem.t0, self.y, self.proposal, 0, 0, 0
        for leg in self.plan.legs:
            system, longest = self.plan.system(self.system, leg), self.longest(leg, t)
            while t < leg.end:
                free = (times[filled:], rows[filled:]) if filled else (times, rows)
                y, t, proposal, count, rejected, fine = self.adaptive_loop(
                    t, leg.end, longest, proposal, y, system, self.limits, self.order, *free
                )
                filled, lost, attempted = filled + count, lost + rejected, attempted + count + rejected
                fine = fine and attempted <= self.controlled_step.most
                if fine and filled < ROWS and t < self.end:
                    continue
                self._tell(t)
                yield times[:filled], rows[:filled], lost, fine
                filled, lost = 0, 0
                if not fine:
                    return

    def _tell(self, t: float) -> None:
        tell = _watcher.get()
        if tell is not None:
            tell((t - self.problem.t0) / (self.end - self.problem.t0))

    def __call__(self) -> Path:
        """All of it, in memory; an exception on the way takes what there is with it, as `path`."""
        kept_times, kept_rows = [np.array([self.problem.t0])], [self.first]
        total, attempted, fine = 0, 0, True
        try:
            for times, rows, rejected, well in self.pieces():
                kept_times.append(times.copy())
                kept_rows.append(rows.copy())
                total, attempted, fine = total + rejected, attempted + rejected + len(times), well
        except BaseException as stop:
            stop.path = Path(np.concatenate(kept_times), np.concatenate(kept_rows), total, False)  # type: ignore[attr-defined]
            raise
        crawling = attempted > self.controlled_step.most
        return Path(np.concatenate(kept_times), np.concatenate(kept_rows), total, fine, crawling)

    def ends(self) -> np.ndarray | None:
        """The last row of the run as it is; None where it does not get there."""
        row, fine, self.accepted = None, True, 0
        for _, rows, _, fine in self.pieces():  # noqa: B007 - the last one counts
            row = rows[-1].copy() if len(rows) else row
            self.accepted += len(rows)
        return row if fine else None

    def at_samples(self) -> np.ndarray | None:
        """Rows at a few times towards the end, the end itself last; None where the run does not get there."""
        t, y, proposal, attempted = self.problem.t0, self.y, self.proposal, 0
        times, rows = np.empty(ROWS), np.empty((ROWS, COLUMNS))
        samples = [t + part * (self.end - t) for part in SAMPLES if part < 1]
        seen = []
        for leg in self.plan.with_stops(*samples):
            system, longest = self.plan.system(self.system, leg), self.longest(leg, t)
            while t < leg.end:
                y, t, proposal, filled, rejected, fine = self.adaptive_loop(
                    t, leg.end, longest, proposal, y, system, self.limits, self.order, times, rows
                )
                attempted += filled + rejected
                self._tell(t)
                if not fine or attempted > self.controlled_step.most:
                    return None
            if t in samples or t >= self.end:
                seen.append((*y[0], *y[1]))
        return np.array(seen)

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Rows at any times within the run, by one step from the state kept before; None where that fails."""
        return interpolated(
            self.controlled_step.interpolate(), times, path_times, rows, self.system, self.order, self.plan
        )


def interpolated(
    interpolate: Any, times: np.ndarray, starts: np.ndarray, rows: np.ndarray, system: Any, order: int,
    plan: Schedule | None = None,
) -> np.ndarray | None:  # fmt: skip
    """Rows at any times, each by one step from the last state kept before."""
    seen = np.empty((len(times), COLUMNS))
    first = np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(starts) - 1)
    if plan is None or len(plan.legs) == 1:
        data = system if plan is None else plan.system(system, plan.legs[0])
        return seen if interpolate(times, first, starts, rows, data, order, seen) else None
    for leg, group in plan.by_leg(times):
        part = np.empty((len(group), COLUMNS))
        if not interpolate(times[group], first[group], starts, rows, plan.system(system, leg), order, part):
            return None
        seen[group] = part
    return seen


def between_steps(problem: Problem, method: Method) -> Any:
    """The compiled look between the fixed steps of a method."""
    check_fit(method, problem)

    def make() -> Any:
        step = whole(method)(floats.number)
        step = collapsed_step(step) if method.compensated else step
        return interpolating(one_step(step, torque_kernel(problem, floats.number, method)))

    return _compiled(make, "visit", *structure(problem, method))


def distance(a: np.ndarray, b: np.ndarray, momentum: float) -> float:
    """The larger of the angle between two attitudes and the relative difference of momenta, of two rows."""
    q = mul(conj(tuple(a[:4])), tuple(b[:4]))
    angle = 2 * math.atan2(math.hypot(q[1], q[2], q[3]), abs(q[0]))
    return max(angle, float(np.linalg.norm(a[4:] - b[4:])) / momentum)


# --- a run whose error is known ---------------------------------------------------------------------

SAMPLES = (0.55, 0.65, 0.75, 0.85, 0.95, 1.0)
"""Parts of a run after which runs are compared: at a single time a difference may be small by accident."""

COARSER = (8.0, 64.0)
"""How much larger the tolerances of the runs are with which a run is compared: a single one may be good by accident."""

FINER = 32.0
"""How much smaller the tolerance of the run is whose end is taken for the true one."""

TRIES = 8
SAFETY = 3.0
"""The error aimed at is the tolerance divided by this."""


@dataclasses.dataclass
class Measured:
    """A run with an estimate of its error at the end."""

    run: Any
    error: float
    reached: bool
    """Is the error within what was asked."""


def round_off(problem: Problem, path: Path) -> float:
    """What rounding alone makes of the result of a run: no error is known to be smaller.

    With the unit of round-off u = EPS/2, the momentum of the start is known to a relative u, so the angle through which
    the body turns to u times itself; each of n steps rounds the attitude by about u, in any direction: by sqrt(n) u
    together; and so is the result, once. Where neighbouring motions spread, comparing runs shows more than this.
    """
    _, (_, inverse, _) = problem.kernel_data(floats.number)
    speeds = np.sqrt(((path.rows[:, 4:] * inverse) ** 2).sum(1))
    turned = float((np.diff(path.times) * (speeds[1:] + speeds[:-1])).sum()) / 2
    return EPS / 2 * (1 + turned + math.sqrt(len(path.times) - 1))


def measured(make: Callable[..., Run], tol: float) -> Measured:
    """The run found by `_compared`, its error not below round-off."""
    found = _compared(make, tol)
    if math.isinf(found.error):
        return found
    error = max(found.error, round_off(found.run.problem, found.run()))
    return Measured(found.run, error, error <= tol)


def _compared(make: Callable[..., Run], tol: float) -> Measured:
    """The run whose error at the end is about tol/3, found by comparing it with runs of other tolerances.

    Against a run with a smaller tolerance the difference is the error. A few more estimates guard against accidents:
    errors follow the tolerance of the steps nearly in proportion, so a run with 64 times that tolerance differs by 64
    times the error, at several times in the second half. The largest is taken.
    """
    local, best = tol / 8, None
    for _ in range(TRIES):
        local = max(local, EPS / 16)
        fine = make(local)
        error = _error(fine, make)
        found = Measured(fine, error, error <= tol)
        if best is None or error < best.error:
            best = found
        if found.reached and (error > tol / 100 or error < 100 * EPS or fine.accepted == len(fine.plan.legs)):
            return found
        if local <= EPS / 16 and error > tol:
            break
        if math.isinf(error):
            if fine.ends() is None and local < tol / 8:
                break
            local /= 100
            continue
        factor = min(1e3, tol / (SAFETY * error)) if error > 0 else 1e3
        before, local = local, min(local * max(1e-3, factor), 0.1)
        if local == before:
            break  # the schedule, not the tolerance, makes the steps
    assert best is not None
    return best


def _error(fine: Run, make: Callable[..., Run]) -> float:
    """The error of a run, from those with other tolerances; infinite where one of them fails.

    Where steps are as long as the schedule allows and not as the tolerance does, runs of other tolerances would make
    the same steps: so the longest steps change too, as the tolerance would change them.
    """
    local, scale = fine.tolerance, fine.momentum
    a, better = fine.ends(), make(max(local / FINER, EPS / 64), FINER ** (-1 / fine.order)).ends()
    if a is None or better is None:
        return math.inf
    found, samples = distance(a, better, scale), None
    for ratio in COARSER:
        b = make(min(ratio * local, 1.0), ratio ** (1 / fine.order)).at_samples()
        samples = fine.at_samples() if b is not None and samples is None else samples
        if samples is None or b is None:
            return math.inf
        difference = max(distance(x, y, scale) for x, y in zip(samples, b, strict=True))
        found = max(found, difference * max(1 / ratio, min(1.0, 4 * EPS / local)))
    return found
