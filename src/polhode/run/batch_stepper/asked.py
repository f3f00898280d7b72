"""Steps with torques from a function, which is asked at the states where the method needs a torque.

A kick-drift scheme is written out: the drifts are compiled steps of its free flow, the kicks are made here. So the
function is asked once for each kick, at the exact times of the scheme, and its order is kept. The step of any other
explicit method runs on arrays with one number for each body.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...kernels.loops import is_valid, renormalise
from ...kernels.so3 import conj, mul, unit, unrotate
from ...methods import Method, methods
from ...methods.combinators.compose import whole
from ...methods.queries import Torque
from ...numbers import floats
from ...numbers.arrays import components
from ...numbers.exact import converted
from ...physics.bodies import rows
from . import arrays

if TYPE_CHECKING:
    from .stepper import BatchStepper

KICK, DRIFT = "U", "T"
"""The flow of a potential and the free flow, in the sequence of a kick-drift scheme."""

Parts = list[tuple[str, float]]
"""Kicks and drifts of a scheme, with their fractions of the step."""


class Asked:
    """Torques from a function of the user's arrays, in the body frame of the user's axes, one row for each body."""

    def __init__(self, stepper: BatchStepper, function: Callable[..., Any], frame: str) -> None:
        self.stepper, self.function, self.frame = stepper, function, frame
        self.velocity = _takes_vectors(function)
        if self.velocity and not stepper.method.takes("velocity"):
            able = ", ".join(m.name for m in methods.taking("velocity") if m.asks == Torque() and not m.implicit)
            raise InputError(
                f"{stepper.method.name} takes torques torque(t, q), and the function has three arguments; methods that "
                f"take torque(t, q, {stepper.vector}): {able}"
            )
        self.number = len(stepper.flags)

    def __call__(self, t: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the torques at a time and at states in the layout of the stepper."""
        form = self.stepper.form
        value = self.function(t, q, v) if self.velocity else self.function(t, q)
        if value is None:
            raise InputError("the torque function must return an array of torques; it returned None")
        found = arrays.vectors("the result of the torque function", value, form.layout, self.number, None)
        torque = by_rows(found, form.layout).astype(float)
        if self.frame == "body":
            return torque
        return rows(unrotate(scalar_first(by_rows(q, form.layout), form.scalar_last), components(torque)))


def _takes_vectors(function: Callable[..., Any]) -> bool:
    """Return whether a torque function has a third argument that must be given: the momenta or angular velocities."""
    try:
        inspect.signature(function).bind(0.0, 0.0)
    except TypeError:
        return True
    except ValueError:  # a function written in C
        return False
    return False


def by_rows(array: np.ndarray, layout: str) -> np.ndarray:
    """An array with one row for each body."""
    return array if layout == "rows" else array.T


def scalar_first(q: np.ndarray, scalar_last: bool) -> Any:
    """Components of quaternions (N, 4), scalar first."""
    parts = components(q.astype(float))
    return (parts[3], *parts[:3]) if scalar_last else parts


def asked_steps(
    stepper: BatchStepper, q: np.ndarray, v: np.ndarray, function: Callable[..., Any], frame: str, h: Any, n: int,
    t: float,
) -> int:  # fmt: skip
    """Make steps with torques from a function; return the number of bodies that failed, whose states are kept."""
    if stepper.bodies.field is not None:
        raise InputError("a stepper with a field takes torques as arrays; add the field's torque to your function's")
    check_askable(stepper.method)
    method, torque = stepper.method.unprocessed or stepper.method, Asked(stepper, function, frame)
    new = q.astype(float), v.astype(float)  # doubles inside, and nothing is written if the function raises an error
    with np.errstate(invalid="ignore", over="ignore"):
        if is_written_out(method):
            _kicks_and_drifts(stepper, method, *new, torque, h, n, t)
        else:
            _stages(stepper, method, *new, torque, own_steps(h, len(stepper.flags)), n, t)
    return write_good(stepper, (q, v), new)


def write_good(stepper: BatchStepper, given: tuple[np.ndarray, ...], new: tuple[np.ndarray, ...]) -> int:
    """Write the new states of all bodies that did not fail; return the number of those that did."""
    layout = stepper.form.layout
    for array in new:
        stepper.flags |= ~np.isfinite(by_rows(array, layout)).all(axis=1)
    good = ~stepper.flags
    for array, values in zip(given, new, strict=True):
        by_rows(array, layout)[good] = by_rows(values, layout)[good]
    return len(good) - int(good.sum())


class Drifts:
    """The drifts of a kick-drift scheme: compiled steps of its free flow."""

    def __init__(self, stepper: BatchStepper, flow: Method, parts: Parts, q: np.ndarray, v: np.ndarray, h: Any) -> None:
        self.inner = stepper.inner(flow)
        self.steps = {c: self.inner.bound(q, v, h=c * h) for c in {c for kind, c in parts if kind == DRIFT}}

    def advance(self, fraction: float) -> None:
        """Make the drift over this fraction of the step."""
        self.steps[fraction](0.0)

    def failed(self) -> np.ndarray:
        """Return which bodies failed so far."""
        found = self.inner.flags.copy()
        self.inner.flags[:] = False
        return found


def is_written_out(method: Method) -> bool:
    """Return whether a method is a kick-drift scheme whose kicks need the torque alone."""
    return bool(method.sequence) and method.asks == Torque()


def check_askable(method: Method) -> None:
    """Refuse a method that cannot take torques from a function."""
    alone = method.unprocessed or method
    if method.takes("attitude") and (is_written_out(alone) or (alone.asks == Torque() and not alone.implicit)):
        return
    able = [m.name for m in methods.taking("attitude") if m.asks == Torque() and not (m.implicit or m.memory)]
    raise InputError(
        f"{method.name} cannot ask a function for torques; methods that can: strang(dmv10) and every other kick-drift "
        f"scheme over a free flow, and {', '.join(able[:8])}, ..."
    )


def own_steps(h: Any, number: int) -> Any:
    """The step, or those of the bodies without their padding."""
    return h if type(h) is float else h[:number]


def parts_of(method: Method) -> Parts:
    """Kicks and drifts of a scheme, with their fractions of the step."""
    return [(part.flow, float(converted(part.time, floats.number))) for part in method.sequence]


def _kicks_and_drifts(
    stepper: BatchStepper, method: Method, q: np.ndarray, v: np.ndarray, torque: Asked, h: Any, n: int, t: float
) -> None:
    """Make the kicks and drifts of a scheme; neighbouring kicks share one torque."""
    assert method.drift is not None
    parts, steps = parts_of(method), own_steps(h, len(stepper.flags))
    drifts = Drifts(stepper, method.drift, parts, q, v, h)
    found: np.ndarray | None = None
    for k in range(n):
        clock = 0.0
        begin = t + k * steps
        for kind, fraction in parts:
            if kind == KICK:
                if found is None:
                    found = torque(begin + clock * steps, q, v)
                kick(stepper, v, fraction * steps, found)
            else:
                drifts.advance(fraction)
                found, clock = None, clock + fraction
    stepper.flags |= drifts.failed()


def kick(stepper: BatchStepper, v: np.ndarray, h: Any, torque: np.ndarray) -> None:
    """Apply a kick: Pi += h T, or omega += h I^-1 T."""
    change = stepper.bodies.omega_of(torque) if stepper.form.omega else torque
    target = by_rows(v, stepper.form.layout)
    target += (change * (h if type(h) is float else h[:, None])).astype(v.dtype)


def _stages(
    stepper: BatchStepper, method: Method, q: np.ndarray, v: np.ndarray, torque: Asked, h: Any, n: int, t: float
) -> None:
    """Make steps of an explicit method on arrays of components, in principal axes."""
    bodies, form = stepper.bodies, stepper.form
    own = None if bodies.own is None else components(bodies.own)
    attitude = unit(scalar_first(by_rows(q, form.layout), form.scalar_last))
    vector = by_rows(v, form.layout).astype(float)
    m = bodies.to_principal(components(bodies.momentum_of(vector) if form.omega else vector))
    y = (attitude if own is None else mul(attitude, own)), m
    system = components(bodies.moments), components(bodies.inverse_moments), ()
    step = whole(method)(floats.number)
    seen_q, seen_v = np.empty_like(q, dtype=float), np.empty_like(v, dtype=float)

    def show(q: Any, m: Any, to_q: np.ndarray, to_v: np.ndarray) -> None:
        """Write a state into arrays in the user's form."""
        a = q if own is None else mul(q, conj(own))
        by_rows(to_q, form.layout)[:] = rows((*a[1:], a[0]) if form.scalar_last else a)
        momentum = rows(bodies.from_principal(m))
        by_rows(to_v, form.layout)[:] = bodies.omega_of(momentum) if form.omega else momentum

    def asked(t: Any, q: Any, m: Any, system: Any) -> Any:
        show(q, m, seen_q, seen_v)
        return bodies.to_principal(components(torque(t, seen_q, seen_v)))

    for k in range(n):
        new, residual = step(h, t + k * h, y, system, asked)
        stepper.flags |= ~is_valid(new, residual)
        y = renormalise(new)
    show(*y, q, v)
