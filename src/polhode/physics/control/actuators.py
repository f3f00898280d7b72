"""Actuators: what a controller commands, and the torques that follow until the next sample.

Formulas are written for every number type: they are evaluated in floats, and traced into compiled code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import cross, scale, sub
from ...numbers.primitives import exp, where
from ...symbolic.user_function import UserFunction, plain_function
from ..validate import finite_number, real_array

UNLIMITED = 1e100
"""Value of a limit that does not limit."""


class Actuator:
    """Parameters, states, and the torque that follows from them.

    A state with the empty name is the one that the controller sees, under the name of the actuator. `own` holds
    parameters and states by name.
    """

    commands: int
    """Number of numbers in a command."""
    parameters: Mapping[str, Any]
    states: Mapping[str, Any]
    """Names and initial values."""

    def held(self, command: Any, own: Mapping[str, Any], omega: Any, period: Any) -> dict[str, Any]:
        """States after a sample with this command: all of them."""
        raise NotImplementedError

    def torque(self, t: Any, R: Any, omega: Any, own: Mapping[str, Any], start: Any) -> Sequence[Any]:
        """The torque on the body, in its frame, at a time in a step that began at `start`."""
        raise NotImplementedError

    def later(self, s: Any, own: Mapping[str, Any]) -> dict[str, Any]:
        """States that change without a sample, a time s after those in `own`."""
        return {}

    def breaks(self, own: Mapping[str, Any]) -> Sequence[Any]:
        """Times until the torque jumps; not positive if a jump is not ahead."""
        return ()


def clipped(x: Any, low: Any, high: Any) -> Any:
    """Limit x to the interval from `low` to `high`."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def _sum_along(axes: Any, numbers: Any) -> Any:
    """Sum of numbers[i] axes[i]."""
    parts = [scale(x, axis) for axis, x in zip(axes, numbers, strict=True)]
    return functools.reduce(lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), parts)


# --- reaction wheels --------------------------------------------------------------------------------


class Wheels(Actuator):
    """Reaction wheels; see `wheels`."""

    def __init__(self, axes: Any, momenta: Any, parameters: Mapping[str, Any]) -> None:
        self.commands = len(axes)
        self.parameters = {"axes": axes, **parameters}
        self.states = {"": momenta, "rate": (0.0,) * len(axes)}

    def held(self, command: Any, own: Mapping[str, Any], omega: Any, period: Any) -> dict[str, Any]:
        """Rates h' of the momenta: motors and friction, limited."""
        rates = []
        for i, motor in enumerate(command):
            axis, h, J, limit = own["axes"][i], own[""][i], own["inertia"][i], own["max_momentum"][i]
            along = sum((axis[j] * omega[j] for j in range(1, 3)), axis[0] * omega[0])
            spin = h - J * along  # J times the speed relative to the body
            motor = clipped(motor, -own["max_torque"][i], own["max_torque"][i])
            slowing = spin / period * (1 - exp(-own["viscous"][i] * period / J))
            left, dry = motor - slowing, own["coulomb"][i]
            rate = left - clipped(left + (spin / period), -dry, dry)
            rates.append(clipped(rate, (-limit - h) / period, (limit - h) / period))
        return {"": own[""], "rate": tuple(rates)}

    def torque(self, t: Any, R: Any, omega: Any, own: Mapping[str, Any], start: Any) -> Sequence[Any]:
        """T = h x omega - h' with h linear in time."""
        h = [x + (t - start) * rate for x, rate in zip(own[""], own["rate"], strict=True)]
        return sub(cross(_sum_along(own["axes"], h), omega), _sum_along(own["axes"], own["rate"]))

    def later(self, s: Any, own: Mapping[str, Any]) -> dict[str, Any]:
        """The momenta, h + s h'."""
        return {"": tuple(x + s * rate for x, rate in zip(own[""], own["rate"], strict=True))}


def wheels(
    axes: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    *,
    momenta: Any = 0.0,
    max_torque: Any = None,
    max_momentum: Any = None,
    inertia: Any = None,
    viscous: Any = 0.0,
    coulomb: Any = 0.0,
) -> Wheels:
    """Reaction wheels fixed in the body. The command is the torque of each motor on its wheel; the body gets minus it.

    With a_i the axes and h = sum h_i a_i, the torque on the body is T = h x omega - h' (see `ph.fields.rotor`): the
    momentum Pi + h of body and wheels changes by external torques only. Motor torque and friction are held between
    samples, so h_i is linear in time there, without an error. The controller sees the momenta h_i.

    The speed of a wheel relative to the body is Omega_i = h_i/J_i - a_i . omega. Friction is that of Omega_i at the
    sample: its viscous part takes the share 1 - exp(-viscous T/J) of J Omega away in the period T. Its dry part has the
    size `coulomb` against the motion, or less if that stops the wheel at the end of the period, or if it is at rest and
    the motor does not overcome it.

    Parameters
    ----------
    axes : (M, 3), one for each wheel; their lengths are normalised. By default those of the body
    momenta : initial momenta h_i, one for all or (M,)
    max_torque, max_momentum : limits of motor torque and of |h_i|, one for all or (M,); by default none. A motor near
        the limit gives just the torque with which h_i reaches it at the end of the period
    inertia : J_i, moments of the wheels about their axes, needed for friction. The body's inertia is that of body and
        wheels minus J_i about each axis
    viscous, coulomb : coefficients of friction: torque for each unit of Omega_i, and torque
    """
    directions = real_array(axes, "axes must be rows of three numbers", key="axes")
    if directions.ndim != 2 or directions.shape[1] != 3 or not len(directions) or not np.isfinite(directions).all():
        raise InputError(f"axes must be rows of three numbers, one for each wheel; got {axes!r}", "axes")
    lengths = np.linalg.norm(directions, axis=1)
    if not lengths.all():
        raise InputError(f"the axis of a wheel must not be zero; got {axes!r}", "axes")
    each = functools.partial(_for_each, count=len(directions))
    rubbing = np.any(np.asarray(viscous, dtype=object) != 0.0) or np.any(np.asarray(coulomb, dtype=object) != 0.0)
    if rubbing and inertia is None:
        raise InputError("friction depends on the speed of a wheel: also give inertia, its moment about its axis")
    parameters = {
        "max_torque": each("max_torque", UNLIMITED if max_torque is None else max_torque),
        "max_momentum": each("max_momentum", UNLIMITED if max_momentum is None else max_momentum),
        "inertia": each("inertia", 1.0 if inertia is None else inertia, least=None),
        "viscous": each("viscous", viscous),
        "coulomb": each("coulomb", coulomb),
    }
    h = each("momenta", momenta, least=-UNLIMITED)
    if any(abs(x) > limit for x, limit in zip(h, parameters["max_momentum"], strict=True)):
        raise InputError(f"momenta must not exceed max_momentum = {max_momentum!r}; got {momenta!r}", "momenta")
    return Wheels(_rows(directions / lengths[:, None]), h, parameters)


def _for_each(name: str, value: Any, count: int, least: float | None = 0.0) -> tuple[float, ...]:
    """One number for each of `count` parts, from one for all or one for each; at least `least`, or positive if None."""
    given = real_array(value, f"{name} must be a number, or one for each of {count}", key=name)
    if given.shape not in ((), (count,)) or not np.isfinite(given).all():
        raise InputError(f"{name} must be a finite number, or one for each of {count}; got {value!r}", name)
    if (given <= 0).any() if least is None else (given < least).any():
        raise InputError(f"{name} must {'be positive' if least is None else 'not be negative'}; got {value!r}", name)
    return tuple(np.broadcast_to(given, count).tolist())


def _rows(array: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, array.tolist()))


# --- magnetic coils ---------------------------------------------------------------------------------


class Magnetorquer(Actuator):
    """Coils; see `magnetorquer`."""

    commands = 3

    def __init__(self, field: UserFunction, max_dipole: tuple[float, ...]) -> None:
        self.field = field
        self.parameters = {"max_dipole": max_dipole}
        self.states = {"": (0.0, 0.0, 0.0)}

    def held(self, command: Any, own: Mapping[str, Any], omega: Any, period: Any) -> dict[str, Any]:
        """The dipole, limited axis by axis."""
        limits = zip(command, own["max_dipole"], strict=True)
        return {"": tuple(clipped(x, -limit, limit) for x, limit in limits)}

    def torque(self, t: Any, R: Any, omega: Any, own: Mapping[str, Any], start: Any) -> Sequence[Any]:
        """T = mu x R^T B(t)."""
        x, y, z = self.field.traced((t,), tuple)
        return cross(own[""], tuple(R[0][j] * x + R[1][j] * y + R[2][j] * z for j in range(3)))


def magnetorquer(field: Callable[[Any], Any], *, max_dipole: Any = None) -> Magnetorquer:
    """Three coils along the axes of the body. The command is their dipole mu, held; the torque is T = mu x R^T B(t).

    It is an external torque, so it can take momentum out of wheels. With the momentum h of wheels and b = R^T B, the
    dipole mu = k h x b/|b|^2 gives the torque -k (h - (h . b) b/|b|^2): the part of h across b decays (the cross
    product law).

    field : B(t), a formula of time, three numbers in the space frame
    max_dipole : limit of |mu| for each axis; by default none
    """
    plain_function(field, "field must be a function of t that returns three numbers")
    user = UserFunction(field, f"the magnetic field {field.__name__}", 3)
    user.positional("a function of t", 1)
    user.numbers(user.value((0.0,), "at t = 0"), "at t = 0")
    return Magnetorquer(user, _for_each("max_dipole", UNLIMITED if max_dipole is None else max_dipole, 3))


# --- thrusters --------------------------------------------------------------------------------------


class Thrusters(Actuator):
    """Thrusters that are on or off; see `thrusters`."""

    def __init__(self, torques: Any, min_pulse: float) -> None:
        self.commands = len(torques)
        self.parameters = {"torques": torques, "min_pulse": min_pulse}
        self.states = {"": (0.0,) * len(torques)}

    def held(self, command: Any, own: Mapping[str, Any], omega: Any, period: Any) -> dict[str, Any]:
        """The times that the thrusters stay on: none below the shortest pulse, at most the period."""
        # a thruster that stays on for the whole period switches off behind its end, not at a rounded one
        long = [where(x < period, x, 2 * period) for x in command]
        return {"": tuple(where((x >= own["min_pulse"]) & (x > 0), x, 0 * period) for x in long)}

    def torque(self, t: Any, R: Any, omega: Any, own: Mapping[str, Any], start: Any) -> Sequence[Any]:
        """The sum over the thrusters that are on at the start of a part of a step."""
        return _sum_along(own["torques"], [where(x > 0, 1.0, 0.0) for x in own[""]])

    def later(self, s: Any, own: Mapping[str, Any]) -> dict[str, Any]:
        """The times that are left."""
        return {"": tuple(where(x <= s, 0 * x, x - s) for x in own[""])}

    def breaks(self, own: Mapping[str, Any]) -> Sequence[Any]:
        """The times at which thrusters are switched off."""
        return own[""]


def thrusters(torques: Any, *, min_pulse: float = 0.0) -> Thrusters:
    """Thrusters that are on or off, with pulses of any length within the period (pulse-width modulation).

    The command is the time for which each thruster is on, from the sample on. A thruster is off in a period whose
    pulse would be shorter than `min_pulse`, and on for all of it if the command is the period or more. Steps end where
    a thruster is switched off, so that none crosses a jump of the torque. The controller sees the times that are left.

    torques : (M, 3) torque of each thruster while it is on, in the body frame
    min_pulse : the shortest pulse
    """
    given = real_array(torques, "torques must be rows of three numbers", key="torques")
    if given.ndim != 2 or given.shape[1] != 3 or not len(given) or not np.isfinite(given).all():
        raise InputError(f"torques must be rows of three numbers, one for each thruster; got {torques!r}", "torques")
    shortest = finite_number("min_pulse", min_pulse)
    if shortest < 0:
        raise InputError(f"min_pulse must not be negative; got {shortest:g}", "min_pulse")
    return Thrusters(_rows(given), shortest)


__all__ = ["magnetorquer", "thrusters", "wheels"]
