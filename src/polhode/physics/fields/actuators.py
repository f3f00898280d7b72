"""Built-in fields: drag, internal damping, rotors, thrusters, tables and control."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import add, cross, dot, scale, solve3, sub
from ...numbers.user_math import sqrt, where
from ...symbolic.expression import Expr, gradient, lift, symbol, symbols
from ..tables import FEW_ROWS, horner, interpolated, looked_up, piecewise, rows_of
from ..validate import finite_number, real_array, triple, vector
from .decorators import check_frame, template_of, torque
from .field import Field
from .formulas import inertia_of, quotient_of
from .gravity import attitude_spring
from .registry import reading, ready
from .template import FieldTemplate
from .trace import of_formula


def _per_axis(name: str, value: Any) -> Any:
    """Three non-negative numbers, from three or from one for all axes."""
    array = real_array(value, f"{name} must be a number or three numbers", key=name)
    numbers = vector(name, np.full(3, array) if array.shape == () else array)
    if (numbers < 0).any():
        raise InputError(f"{name} must not be negative, or the field would drive instead of brake; got {value!r}", name)
    return numbers


@ready
@reading(coefficients=_per_axis)
@torque
def linear_drag(omega: Any, coefficients: Any) -> Any:
    """Drag linear in the angular velocity: T_i = -k_i omega_i, body frame.

    coefficients : k, one number or one for each axis of the body
    """
    return [-coefficients[i] * omega[i] for i in range(3)]


@ready
@reading(coefficients=_per_axis)
@torque
def quadratic_drag(omega: Any, coefficients: Any) -> Any:
    """Drag quadratic in the angular velocity: T_i = -k_i |omega| omega_i, body frame.

    coefficients : k, one number or one for each axis of the body
    """
    speed = sqrt(dot(omega, omega))
    return [-coefficients[i] * speed * omega[i] for i in range(3)]


def _check_brakes(name: str, value: float, what: str) -> None:
    """Reject a negative strength of a dissipation."""
    if finite_number(name, value) < 0:
        raise InputError(
            f"{name} must not be negative, or the {what} would drive instead of brake; got {value!r}", name
        )


@ready
def internal_damping(body: Any, rate: float) -> Field:
    """Dissipation inside the body: T = rate Pi x (Pi x omega), body frame, Pi = I omega.

    The double bracket of Bloch, Krishnaprasad, Marsden and Ratiu (1996): |Pi| is constant, the energy falls by
    rate |Pi x omega|^2 per unit of time, and the body ends in rotation about its axis of largest moment (Explorer 1).
    This is the reduced equation, in the body frame. In space the direction of the momentum oscillates by an amount of
    first order in the rate, which no internal torque can cause; if that matters, use `viscous_core`.

    rate : in units of 1/(moment of inertia x angle), positive
    """
    inertia, product = inertia_of(body)
    _check_brakes("rate", rate, "field")
    return _internal_damping(product)(rate, inertia)


@functools.cache
def _internal_damping(product: Any) -> FieldTemplate:
    @torque
    def internal_damping(omega: Any, rate: Any, inertia: Any) -> Any:
        momentum = product(inertia, omega)
        return scale(rate, cross(momentum, cross(momentum, omega)))

    return internal_damping


@ready
def viscous_core(body: Any, strength: float) -> Field:
    """Dissipation by a small ball in, or a cavity filled with, a very viscous fluid: T = h x omega - h', body frame.

    The core lags and has the momentum h = -strength a relative to the body, with a = I^-1 (I omega x omega) the
    angular acceleration (the quasi-steady fluid of Chernousko, Akulenko and Leshchenko 2017). The total spatial
    momentum R (I omega + h) is constant exactly; the total energy omega . I omega/2 + omega . h falls by strength |a|^2
    per unit of time, to second order. The body ends in rotation about its axis of largest moment, where h = 0, along
    the initial direction of the momentum. If other fields act, a is still the acceleration of the free body.

    strength : moment of inertia times time, J^2/c for a ball of moment J and friction torque c nu at the relative rate
        nu; small compared with the moments over omega
    """
    inertia, product = inertia_of(body)
    _check_brakes("strength", strength, "core")
    return _viscous_core(product)(strength, inertia)


@functools.cache
def _viscous_core(product: Any) -> FieldTemplate:
    divided = quotient_of(product)

    @torque
    def viscous_core(omega: Any, strength: Any, inertia: Any) -> Any:
        momentum = product(inertia, omega)
        a = divided(inertia, cross(momentum, omega))

        def change(x: Any) -> Any:
            """Change of the acceleration a if omega changes by x."""
            return divided(inertia, add(cross(product(inertia, x), omega), cross(momentum, x)))

        # h' = -strength change(omega') and omega' = a + I^-1 T: linear equations for T.
        axes = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        columns = [sub(e, scale(strength, change(divided(inertia, e)))) for e in axes]
        return solve3(columns[0], columns[1], columns[2], scale(strength, add(change(a), cross(omega, a))))

    return viscous_core


# --- functions of time ------------------------------------------------------------------------------


@ready
def constant_torque(torque: Any, frame: str = "body") -> Field:
    """Constant torque: T = torque, in the body or in the space frame."""
    return _constant_torque(check_frame(frame))(vector("torque", torque))


@functools.cache
def _constant_torque(frame: str) -> FieldTemplate:
    @torque(frame=frame)
    def constant_torque(torque: Any) -> Any:
        return torque

    return constant_torque


@ready
def thruster(torque: Any, on: Any, frame: str = "body") -> Field:
    """Torque that is switched on in time windows: T = torque for start <= t < stop, else 0.

    torque : three numbers, in the given frame, "body" or "space"
    on : [start, stop], or a list of such windows that do not overlap
    """
    return _thruster(check_frame(frame))(vector("torque", torque), _windows(on))


@functools.cache
def _thruster(frame: str) -> FieldTemplate:
    @torque(frame=frame)
    def thruster(t: Any, torque: Any, on: Any) -> Any:
        firing = sum(where((start <= t) & (t < stop), 1, 0) for start, stop in on)
        return scale(firing, torque)

    return thruster


def _windows(on: Any) -> np.ndarray:
    """Windows in time as rows of (start, stop), in order."""
    expected = "on must be [start, stop] or a list of such windows"
    windows = np.atleast_2d(real_array(on, expected, key="on"))
    if windows.ndim != 2 or windows.shape[1] != 2 or not np.isfinite(windows).all():
        raise InputError(f"{expected}; got {on!r}", "on")
    windows = windows[windows[:, 0].argsort()]
    if (windows[:, 0] >= windows[:, 1]).any() or (windows[1:, 0] < windows[:-1, 1]).any():
        raise InputError(f"the windows of a thruster must start before they stop and not overlap; got {on!r}", "on")
    return windows


@ready
def tabulated(times: Any, torques: Any, frame: str = "body", between: str = "linear", outside: str = "zero") -> Field:
    """Torque interpolated from a table over time, T(t_k) = torques[k].

    times : increasing, at least 2 of them. The numbers of a table of 65 or more times are data that an ensemble or a
        gradient cannot vary
    torques : three numbers for each time, in the given frame, "body" or "space"
    between : "linear", or "cubic": the spline with continuous second derivatives (not-a-knot at the ends)
    outside : "zero", or "hold": the first value before the table, the last value after it
    """
    if not isinstance(outside, str) or outside not in ("zero", "hold"):
        raise InputError(f"outside must be 'zero' or 'hold'; got {outside!r}", "outside")
    frame = check_frame(frame)
    knots, pieces = interpolated(times, torques, "torques", between)
    if len(knots) > FEW_ROWS:
        return _long_table(frame, outside)(rows_of(knots, pieces))
    return _tabulated(frame, outside)(knots, pieces)


@functools.cache
def _long_table(frame: str, outside: str) -> FieldTemplate:
    hold = outside == "hold"

    @torque(frame=frame)
    def tabulated(t: Any, table: Any) -> Any:
        at, x, coefficients = looked_up(t, table)
        return scale(1 if hold else where(at == t, 1, 0), horner(x, coefficients))

    return tabulated


@functools.cache
def _tabulated(frame: str, outside: str) -> FieldTemplate:
    hold = outside == "hold"

    @torque(frame=frame)
    def tabulated(t: Any, knots: Any, pieces: Any) -> Any:
        at, x, coefficients = piecewise(t, knots, pieces)
        return scale(1 if hold else where(at == t, 1, 0), horner(x, coefficients))

    return tabulated


# --- rotors -----------------------------------------------------------------------------------------


class RotorField(Field):
    """T = h x omega - h'(t) of rotors with momentum h(t); h' is derived from the formula of h."""

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The torque on the body."""
        h = self.traced(lambda value: tuple(lift(x) for x in value))
        rate: Any = tuple(gradient(x, [symbol("t")])[0] for x in h)
        return sub(cross(h, symbols("w", 3)), rate), None

    @property
    def written(self) -> Any:
        """The torque, in the body frame."""
        return self.graph[0]


def rotor(function: Any) -> Any:
    """Make a gyrostat from a function h(t, parameters): the momentum of its rotors about their axes, body frame.

    A rotor with the axis a, the moment J about it and the speed S relative to the body has h = J (S + a . omega) a. Let
    I be the inertia of body and rotors minus the inertia of the rotors about their own axes. The total momentum is
    Pi + h, Pi = I omega, and the torque on Pi is T = h x omega - h'(t); h' is derived. Call it to bind the parameters.
    """
    rule = "the momentum of rotors is a function of t (and parameters)"
    return dataclasses.replace(template_of(function, "torque", forbidden=("R", "omega"), rule=rule), makes=RotorField)


@ready
@reading(momentum=triple, motor=triple)
@rotor
def gyrostat(t: Any, momentum: Any, motor: Any = (0.0, 0.0, 0.0)) -> Any:
    """A body with rotors (reaction wheels) of momentum h(t) = momentum + motor t about their axes.

    T = h x omega - h', body frame. The spatial momentum R (Pi + h) is constant for any h(t); with motor = 0 the energy
    omega . I omega/2 is constant too (the gyrostat of Volterra).

    momentum : h at t = 0, the sum of J (S + a . omega) a over the rotors: a the axis, J the moment about it, S the
        speed relative to the body. The body's inertia is that of body and rotors minus J about each axis
    motor : h', the torque of the motors on the rotors
    """
    return [momentum[i] + motor[i] * t for i in range(3)]


@ready
def tabulated_gyrostat(times: Any, momenta: Any, between: str = "cubic") -> Field:
    """A body with driven rotors: h(t) from a table, T = h x omega - h', body frame.

    times : increasing, at least 2 of them, as for `tabulated`; outside the table h has its end values
    momenta : h at these times, as for `gyrostat`
    between : "cubic" (a spline: the motors' torque h' is continuous between the ends) or "linear"
    """
    knots, pieces = interpolated(times, momenta, "momenta", between)
    if len(knots) > FEW_ROWS:
        return _long_gyrostat(rows_of(knots, pieces))
    return _tabulated_gyrostat(knots, pieces)


def _long_rotor(t: Any, table: Any) -> Any:
    _, x, coefficients = looked_up(t, table)
    return horner(x, coefficients)


def _short_rotor(t: Any, knots: Any, pieces: Any) -> Any:
    _, x, coefficients = piecewise(t, knots, pieces)
    return horner(x, coefficients)


_long_rotor.__name__ = _short_rotor.__name__ = tabulated_gyrostat.__name__
_long_gyrostat, _tabulated_gyrostat = rotor(_long_rotor), rotor(_short_rotor)


# --- control ----------------------------------------------------------------------------------------


@ready
def pd_control(target: Any, stiffness: float, damping: Any) -> Field:
    """PD control of the attitude: the attitude spring towards the target plus linear drag.

    T = -stiffness/2 vee(E - E^T) - damping omega with E = R_t^T R and hat(vee M) = M (Bullo and Murray 1995). The
    energy of a solution, omega . I omega/2 + stiffness (1 - cos theta), is the Lyapunov function: it falls by
    damping |omega|^2 per unit of time. At rest, half a turn from the target, the equilibrium is unstable.

    target : attitude as a scipy Rotation, a 3x3 matrix or a quaternion with the scalar first
    stiffness, damping : of spring and drag; the damping as one number or one for each axis
    """
    if finite_number("stiffness", stiffness) <= 0:
        raise InputError(f"stiffness must be positive, or the target would repel; got {stiffness!r}", "stiffness")
    return attitude_spring(target, stiffness) + linear_drag(damping)
