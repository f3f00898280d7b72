"""Why a step failed, in words, and which step would not."""

from __future__ import annotations

import math
from typing import Any

from ..errors import InputError, StepError
from ..kernels.loops import NO_STATE
from ..methods import Method
from ..methods.combinators.compose import in_turn
from ..methods.combinators.reversible import RUNAWAY
from ..numbers import floats
from ..results import recorder
from .fixed_step import Ride
from .integrator import torque_kernel

HALVINGS = 40
"""How often a failed step is halved in search of one that works."""

REACH = 1e3
"""A momentum this much larger than before a failed step is the fault of the iteration, not of the field."""


def failed(method: Method, ride: Ride, partial: Any, what: str = "state") -> StepError:
    """The error for a step that failed, with the states before it."""
    states = f"{what} before it is" if len(partial) == 1 else f"{len(partial)} {what}s before it are"
    return StepError(explain(method, ride), partial, f"the {states} in .partial")


def explain(method: Method, ride: Ride) -> str:
    """One clear sentence about a step that failed."""
    with ride.run.precision():
        fault = _field_fault(method, ride)
        smaller, length = (None, "") if fault else (_smaller_step(ride), _length(ride))
    if not fault:
        fault = (NO_STATE if ride.miss <= 0 else unsolved(float(ride.miss))) + length
        fault += f"; try dt = {ride.units.times(smaller, back=True):.2g}" if smaller else ""
    t, dt = ride.units.times((ride.t, ride.dt), back=True)
    return f"{method.name} failed in step {ride.done + 1} (from t = {t:g} with dt = {dt:g}): {fault}"


def unsolved(residual: float) -> str:
    """Why a step whose equation has this residual is no step."""
    if residual == RUNAWAY:
        return "the monitor function of the step size changed by more than its own value within one step"
    size = f"{residual:.1e}" if math.isfinite(residual) else "infinite"
    return f"its equation was not solved (relative residual {size})"


def _field_fault(method: Method, ride: Ride) -> str:
    """What the field did wrong in the failed step, if it did: the step is repeated in plain Python."""
    run, problem = ride.run, ride.problem
    if problem.field is None:
        return ""
    number = floats.number if run.digits is None else run.number
    torque = torque_kernel(problem, number, method)
    reach = REACH * max(abs(x) for x in ride.y[1]) or math.inf

    def watched(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        if all(abs(x) <= 2 for x in q) and all(abs(x) <= reach for x in m):
            problem.check_field(float(t), *problem.user_axes(q, m), f"at t = {float(t):g}")
        return torque(t, q, m, system, *more)

    try:
        before, after = method.processors(number)
        step = in_turn([part for part in (None if ride.done else before, method.build(number), after) if part])
        step(number(ride.dt), number(ride.t), ride.y, run.system, watched)
    except InputError as fault:
        return str(fault)
    except (ArithmeticError, TypeError, ValueError):
        pass
    return ""


def _rate(ride: Ride, vector: Any) -> float:
    """The length of I^-1 times a vector: the angular velocity of a momentum, the acceleration of a torque."""
    return math.hypot(*(float(i * x) for i, x in zip(ride.run.system[1], vector, strict=True)))


LONG_STEP = 0.5
"""Radians in a step from which on a message names them."""


def _length(ride: Ride) -> str:
    """How far the body turns in the failed step by itself and by its torque, where that is far."""
    number = floats.number if ride.run.digits is None else ride.run.number
    turn, push = ride.dt * _rate(ride, ride.y[1]), 0.0
    if ride.problem.field is not None:
        try:
            force = torque_kernel(ride.problem, number)(number(ride.t), ride.y[0], ride.y[1], ride.run.system)
            push = ride.dt**2 / 2 * _rate(ride, force)
        except (ArithmeticError, TypeError, ValueError):
            pass  # a torque without a value here is not what is explained
    if not max(turn, push) > LONG_STEP:
        return ""
    pushed = f" and its torque turns it by {push:.2g} rad more" if push > 0 else ""
    return f"; the step is long: the body turns by {turn:.2g} rad in it{pushed}"


def _smaller_step(ride: Ride) -> float | None:
    """A step size with which the failed step can be made: at most half, and less than a radian."""
    run = ride.run
    if ride.run.clock:
        return ride.dt / 2
    speed = _rate(ride, ride.y[1])
    h = min(ride.dt / 2, 1 / speed) if speed > 0 else ride.dt / 2
    for _ in range(HALVINGS):
        try:
            *_, fine = run.advance(run.number(h), run.number(ride.t), 0, 1, 2, 0, ride.y, run.system, run.buffer(1))
        except (ArithmeticError, TypeError, ValueError):
            fine = False
        if fine:
            return h
        h /= 2
    return None


def _stopped_writing(method: Method, ride: Ride, problem: recorder.DiskError) -> StepError:
    """The error when a file could not be written."""
    partial = problem.disk.rescue()
    return StepError(
        f"{method.name} stopped at step {ride.done}: {problem.disk.writer.path} cannot be written ({problem})",
        partial,
        f"the {len(partial)} states written before are in .partial and in {problem.disk.writer.folder}; free some "
        "disk space and continue with resume=True (--resume)",
    )
