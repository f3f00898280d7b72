"""Errors and cost of methods for a sequence of step sizes."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ResultWarning, StepError
from ..kernels.so3 import matrix
from ..methods import Method
from ..methods import methods as registry
from ..physics.problem import Problem, Reference
from ..physics.validate import positive
from ..results.observables import attitude_error
from ..results.trajectory import Trajectory
from ..run.integrator import check_fit
from ..run.solve import solve
from ..run.step_count import number_of_steps, signed_step
from ..run.system import engine
from .invariants import conserved_directions, energy_change, momentum_change

WATCHED_STATES = 256
"""States of a run from which its drift is computed."""

REPEATS = 5
"""Number of timings of a short run; the best counts."""

PATIENCE = 0.05
"""Most seconds of such repetitions."""

Watch = Callable[[str, int, int], Any]
"""Progress callback (name of the next piece of work, number done, total)."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One run of one method.

    Attributes
    ----------
    order : declared for the problem's kind of field
    attitude_error : spectral norm of R - R_ref at the end; NaN if the run failed
    momentum_error : |Pi - Pi_ref| / |Pi_ref| at the end, body frame; NaN if the run failed
    energy_drift : largest relative change of the energy; NaN if the run failed, however little it was before that
    momentum_drift : largest relative change of the part of the spatial momentum the problem conserves; likewise
    noise : error of the reference plus round-off of the steps: errors below it are not significant
    seconds, ns_per_step : time of the compiled loop, without compilation
    failure : why a run ended early, else empty
    """

    method: str
    order: float
    dt: float
    steps: int
    attitude_error: float
    momentum_error: float
    energy_drift: float
    momentum_drift: float
    noise: float
    seconds: float
    ns_per_step: float
    failure: str = ""


def convergence(
    problem: Problem,
    methods: Iterable[str | Method],
    dts: Iterable[float],
    *,
    t_end: float | None = None,
    watch: Watch | None = None,
) -> list[Row]:
    """Run every method with every step size, and compare the final states with the reference solution.

    Parameters
    ----------
    problem : Problem
    methods : names, expressions or Methods
    dts : lengths of steps; each must divide the time from t0 to the end, which may lie before t0
    t_end : end time; by default the problem's own
    watch : called before each piece of work with its name, the number done and the total
    """
    chosen, sizes = [registry[m] for m in methods], [float(dt) for dt in dts]
    check(problem, chosen, sizes, t_end)
    total = len(chosen) * (len(sizes) + 1)
    tell = watch or (lambda what, done, total: None)
    tell("reference solution", 0, total)
    reference = reference_solution(problem, t_end)
    directions = conserved_directions(problem)
    rows: list[Row] = []
    for i, method in enumerate(chosen):
        done = i * (len(sizes) + 1)
        tell(f"compiling {method.name}" if is_cold(problem, method) else method.name, done, total)
        warm_up(problem, method)
        for j, dt in enumerate(sizes):
            tell(f"{method.name}, dt = {dt:g}", done + j + 1, total)
            rows.append(measured(problem, method, dt, reference, directions))
    tell("done", total, total)
    return rows


def check(problem: Problem, methods: Iterable[Method], dts: Iterable[float], t_end: float | None = None) -> None:
    """Before the runs, reject methods that cannot solve the problem and steps that do not fit the time span."""
    for method in methods:
        check_fit(method, problem)
        if method.has_own_time:
            raise InputError(
                f"{method.name} chooses its own steps and ends after the given time, where there is no reference; "
                "run it with ph.solve and use sol.t"
            )
    for dt in dts:
        positive("dt", dt)
        if t_end is not None or problem.t_end is not None:
            number_of_steps(problem, signed_step(problem, dt, t_end, None), t_end, None)


def reference_solution(problem: Problem, t_end: float | None = None) -> Reference:
    """The converged solution at the end: the problem's own reference, or one computed now.

    That is a Taylor solution in 34 digits, or over a long motion, where that takes minutes, and for a field without
    Taylor series, a run to a tolerance in doubles with its estimated error.
    """
    end = problem.t_end if t_end is None else t_end
    if end is None:
        raise InputError("give t_end: this problem has no end time")
    known = problem.reference
    if known is not None and abs(known.t - end) <= 1e-12 * abs(end):
        return known
    if not _has_short_series(problem, end):
        return _reference_in_doubles(problem, end)
    from .reference import solution

    q, m, error = solution(problem, end)
    (w, x, y, z), (a, b, c) = map(float, q), map(float, m)
    return Reference(
        t=float(end),
        quaternion=(w, x, y, z),
        momentum=(a, b, c),
        error=float(error),
        source="Taylor series, computed for this run",
    )


LONG = 60.0
"""Rotation in radians beyond which a reference is computed in doubles."""

REFERENCE_TOL = 1e-13


def _has_short_series(problem: Problem, end: float) -> bool:
    field = problem.field
    plain = field is None or not (field.states or field.opaque or field.columns)
    return plain and abs(end - problem.t0) * float(np.linalg.norm(problem.omega)) <= LONG


def _reference_in_doubles(problem: Problem, end: float) -> Reference:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultWarning)  # the error is part of the result
        sol = solve(problem, tol=REFERENCE_TOL, t_end=end, progress=False).last()
    return Reference(
        t=float(end),
        quaternion=tuple(sol.quaternion[-1].tolist()),
        momentum=tuple(sol.momentum[-1].tolist()),
        error=float(sol.info.error_estimate or REFERENCE_TOL),
        source=f"run to a tolerance of {REFERENCE_TOL:g} in doubles, computed for this run",
    )


def is_cold(problem: Problem, method: Method) -> bool:
    """True if this method must first be compiled for this problem."""
    return not engine(problem, method).warm


def warm_up(problem: Problem, method: Method) -> None:
    """Compile the loop, or load it from the cache, by making steps too short to fail."""
    short = 1e-6 / (float(np.linalg.norm(problem.omega)) or 1.0)
    run = engine(problem, method)
    run.advance(short, float(problem.t0), 0, 2, 1, run.last(2), run.y, run.system, run.buffer(2))


def measured(problem: Problem, method: Method, dt: float, reference: Reference, directions: np.ndarray) -> Row:
    """Run to the time of the reference and measure the result."""
    h, failure = signed_step(problem, dt, reference.t, None), ""
    steps = number_of_steps(problem, h, reference.t, None)
    try:
        path = solve(problem, method, dt=h, steps=steps, every=max(1, steps // WATCHED_STATES), progress=False)
        attitude, momentum = end_errors(path, reference)
        energy_drift = float(np.abs(energy_change(path.energy)).max())
        momentum_drift = float(momentum_change(path.spatial_momentum, directions).max())
        seconds = loop_seconds(problem, method, h, steps, path.info.seconds)
    except StepError as stop:
        failure = stop.reason
        attitude = momentum = energy_drift = momentum_drift = seconds = math.nan
    return Row(
        method=method.name, order=method.order_free if problem.needs == "free" else method.order, dt=dt, steps=steps,
        attitude_error=attitude, momentum_error=momentum, energy_drift=energy_drift, momentum_drift=momentum_drift,
        noise=reference.error + steps * float(np.finfo(float).eps),
        seconds=seconds, ns_per_step=1e9 * seconds / steps, failure=failure,
    )  # fmt: skip


def partial_of(stop: StepError) -> Trajectory:
    """The states of a failed run before the failure."""
    if stop.partial is None:
        raise stop
    return stop.partial


def end_errors(path: Trajectory, reference: Reference) -> tuple[float, float]:
    """Errors of attitude (spectral norm) and body momentum (relative) in the last state."""
    truth = np.array(reference.momentum)
    momentum_error = float(np.linalg.norm(path.momentum[-1] - truth))
    return (
        attitude_error(path.matrix[-1], np.array(matrix(reference.quaternion))),
        momentum_error / (float(np.linalg.norm(truth)) or 1.0),
    )


def loop_seconds(problem: Problem, method: Method, dt: float, steps: int, known: float) -> float:
    """Time of the compiled loop alone, the best of a few; a run known to be long is not repeated."""
    best = known
    run = engine(problem, method)
    buffer = run.buffer(2)
    for _ in range(min(REPEATS, int(PATIENCE / known)) if known > 0 else REPEATS):
        began = time.perf_counter()
        run.advance(dt, float(problem.t0), 0, steps, steps, run.last(steps), run.y, run.system, buffer)
        best = min(best, time.perf_counter() - began)
    return best


def by_method(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each method, the largest step first."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda r: -r.dt):
        found.setdefault(row.method, []).append(row)
    return found


SATURATED = 0.1
"""Attitude errors above this (of at most 2) are no longer proportional to a power of dt."""


def measured_order(rows: Sequence[Row]) -> float:
    """Slope of log error over log dt through the three finest usable runs of one method; NaN if fewer than two.

    A run is usable if its error is below `SATURATED` and above ten times the noise.
    """
    if len({row.method for row in rows}) > 1:
        raise InputError(
            "measured_order takes the rows of one method, and these are of several; divide them with by_method"
        )
    usable = [r for r in rows if 10 * r.noise < r.attitude_error < SATURATED]
    finest = sorted(usable, key=lambda r: r.dt)[:3]
    if len(finest) < 2:
        return math.nan
    slope, _ = np.polyfit([math.log(r.dt) for r in finest], [math.log(r.attitude_error) for r in finest], 1)
    return float(slope)
