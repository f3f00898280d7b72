"""Kepler orbits by their elements."""

from __future__ import annotations

import math
from typing import Any

from ..errors import InputError
from ..kernels.kepler import conic
from ..numbers.user_math import cos, sin, sqrt
from .paths import Path
from .validate import finite_number, positive


class Orbit(Path):
    """Kepler orbit: a circle, an ellipse (e < 1), a parabola (e = 1) or a hyperbola (e > 1).

    The position solves r'' = -mu r/|r|^3. The elements are those of celestial mechanics, angles in radians, in any
    consistent units: R_z(node) R_x(inclination) R_z(argument) maps the x axis to the periapsis. The defaults are an
    orbit in the space x-y plane with its periapsis on the x axis at t = 0.

    Parameters
    ----------
    mu : G M of the centre (Earth: 3.986004418e14 m^3/s^2)
    periapsis : q, the smallest distance from the centre
    eccentricity : e, not negative
    periapsis_time : T, a time at which the body is at the periapsis
    inclination, node, argument : inclination, longitude of the ascending node, argument of the periapsis
    semi_major_axis : a, instead of `periapsis`: q = a (1 - e), negative for a hyperbola

    Examples
    --------
    >>> orbit = ph.Orbit(398600.4418, periapsis=6778.0, eccentricity=0.001)
    >>> round(orbit.period / 60, 1)
    92.7
    """

    def __init__(
        self,
        mu: float,
        periapsis: float | None = None,
        eccentricity: float = 0.0,
        periapsis_time: float = 0.0,
        inclination: float = 0.0,
        node: float = 0.0,
        argument: float = 0.0,
        *,
        semi_major_axis: float | None = None,
    ) -> None:
        e = finite_number("eccentricity", eccentricity)
        if e < 0:
            raise InputError(f"eccentricity must not be negative; got {eccentricity!r}", "eccentricity")
        q = _periapsis(periapsis, semi_major_axis, e)
        strength = positive("mu", mu)
        rate = math.sqrt(strength / q) / q
        if not 0 < rate < math.inf:
            raise InputError(
                f"mu = {strength:g} and periapsis = {q:g} give an orbital rate outside the range of doubles; "
                f"check the units",
                "mu",
            )
        self.formula = on_conic
        self.values = {
            "mu": strength,
            "periapsis": q,
            "eccentricity": e,
            "periapsis_time": finite_number("periapsis_time", periapsis_time),
            "inclination": finite_number("inclination", inclination),
            "node": finite_number("node", node),
            "argument": finite_number("argument", argument),
        }

    @property
    def period(self) -> float:
        """Time of one revolution, 2 pi sqrt(a^3/mu); infinite unless e < 1."""
        q, beta = self.values["periapsis"], 1 - self.values["eccentricity"]
        return 2 * math.pi * q / beta * math.sqrt(q / beta / self.mu) if beta > 0 else math.inf


def _periapsis(periapsis: Any, semi_major_axis: Any, e: float) -> float:
    if (periapsis is None) == (semi_major_axis is None):
        got = "neither" if periapsis is None else "both"
        raise InputError(f"give periapsis or semi_major_axis; got {got}", "periapsis")
    if semi_major_axis is None:
        return positive("periapsis", periapsis)
    a = finite_number("semi_major_axis", semi_major_axis)
    if not a * (1 - e) > 0:
        raise InputError(
            f"semi_major_axis must be positive if e < 1 and negative if e > 1, and a parabola has none: give periapsis "
            f"then; got {semi_major_axis!r} with e = {e:g}",
            "semi_major_axis",
        )
    return a * (1 - e)


def on_conic(
    t: Any,
    mu: Any,
    periapsis: Any,
    eccentricity: Any,
    periapsis_time: Any,
    inclination: Any,
    node: Any,
    argument: Any,
) -> tuple[Any, Any]:
    """Position and velocity on an `Orbit`; `conic` in units of q and sqrt(q^3/mu), rotated into space."""
    speed = sqrt(mu / periapsis)
    (x, y), (u, v) = conic(eccentricity, speed / periapsis * (t - periapsis_time))
    along, across = _directions(inclination, node, argument)
    position = [periapsis * (x * a + y * b) for a, b in zip(along, across, strict=True)]
    return position, [speed * (u * a + v * b) for a, b in zip(along, across, strict=True)]


def _directions(inclination: Any, node: Any, argument: Any) -> tuple[Any, Any]:
    """Unit vectors in space towards the periapsis, and a quarter of a turn later in the plane of the orbit."""
    ci, si, cn, sn, ca, sa = *_turn(inclination), *_turn(node), *_turn(argument)
    along = (cn * ca - sn * sa * ci, sn * ca + cn * sa * ci, sa * si)
    return along, (-cn * sa - sn * ca * ci, -sn * sa + cn * ca * ci, ca * si)


def _turn(angle: Any) -> tuple[Any, Any]:
    return cos(angle), sin(angle)
