"""Built-in field: the torque on a magnetic dipole of the body in the dipole field of a rotating planet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...kernels.so3 import apply_transposed, cross, dot, scale, sub
from ...numbers.user_math import cos, sin, sqrt
from ..path_input import path_of
from ..validate import finite_number, positive, vector
from .field import Field
from .orbital import along
from .registry import ready
from .template import FieldTemplate


def dipole_field(t: Any, position: Any, strength: Any, tilt: Any, rate: Any, phase: Any) -> Any:
    """Field of a tilted, rotating dipole: B = k/r^3 (3 (e . u) u - e), u = r/|r|, e the direction of the moment."""
    angle = rate * t + phase
    e = (sin(tilt) * cos(angle), sin(tilt) * sin(angle), cos(tilt))
    square = dot(position, position)
    inner = scale(3 * dot(e, position) / square, position)
    return scale(strength / (square * sqrt(square)), sub(inner, e))


def _dipole_of(strength: Any, tilt: Any, rate: Any, phase: Any) -> dict[str, float]:
    """Validate the dipole of a planet."""
    angles = {"tilt": tilt, "rate": rate, "phase": phase}
    return {"strength": positive("strength", strength)} | {name: finite_number(name, x) for name, x in angles.items()}


@ready
def residual_dipole(
    moment: Any, orbit: Any, strength: float, tilt: float = 0.0, rate: float = 0.0, phase: float = 0.0
) -> Field:
    """Magnetic dipole of the body along an orbit: T = m x R^T B(r(t), t), body frame.

    B = k/r^3 (3 (e . u) u - e), u = r/|r|, is the field of a dipole at the centre (Wertz 1978, section 5.1). Its
    direction e = (sin(tilt) cos a, sin(tilt) sin a, cos(tilt)), a = rate t + phase, rotates about the space z axis. The
    moment of the Earth points to the south: with z to the north, its tilt is near 170 degrees, and k is near
    7.7e15 T m^3 (3.0e-5 T at the equator).

    moment : m, a vector in the body (A m^2 if B is in tesla)
    orbit : a `ph.Orbit`, a `ph.Ephemeris`, or the keywords of one of them
    strength : k = mu_0/(4 pi) times the moment of the planet
    tilt, rate, phase : angle between e and the space z axis, rate of rotation about it, and its angle at t = 0
    """
    path = path_of(orbit)
    planet = _dipole_of(strength, tilt, rate, phase)
    return _residual_dipole(path.formula, tuple(path.values))(vector("moment", moment), **planet, **path.values)


@functools.cache
def _residual_dipole(formula: Any, names: tuple[str, ...]) -> FieldTemplate:
    def residual_dipole(
        t: Any, R: Any, moment: Any, strength: Any, tilt: Any, rate: Any, phase: Any, **path: Any
    ) -> Any:
        B = dipole_field(t, formula(t, **path)[0], strength, tilt, rate, phase)
        return cross(moment, apply_transposed(R, B))

    return along(residual_dipole, names)


def magnetic_field(
    orbit: Any, strength: float, tilt: float = 0.0, rate: float = 0.0, phase: float = 0.0
) -> Callable[[Any], Any]:
    """The field B along an orbit as a plain function of t, three numbers in space: for control laws.

    The arguments are those of `residual_dipole`; in a ``@ph.torque`` that calls the function they are constants.

    >>> B = ph.fields.magnetic_field(orbit, strength=7.7e15, tilt=2.97)
    >>> @ph.torque
    ... def magnetorquer(t, R, omega, gain):
    ...     b = R.T @ B(t)
    ...     return ph.math.cross(gain * ph.math.cross(omega, b), b)
    """
    here, planet = path_of(orbit).function, _dipole_of(strength, tilt, rate, phase)
    values = tuple(planet.values())

    def B(t: Any) -> Any:
        return dipole_field(t, here(t)[0], *values)

    return B
