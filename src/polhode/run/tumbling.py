"""The two periods of a freely tumbling body, as observers of asteroids give them, and the motion that has them.

Convention (Samarasinha and A'Hearn 1991; Kaasalainen 2001): the Euler angles phi, theta, psi belong to the long axis,
that of the smallest moment, and to the angular momentum L. P_psi is the period of the motion in the body: in the
long-axis mode (LAM) the body rotates about its long axis in that time, in the short-axis mode (SAM) it oscillates about
it. P_phi is the mean time in which the long axis precesses once about L.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..errors import InputError
from ..physics.body import Body
from ..physics.problem import Problem
from ..physics.validate import positive
from .poinsot import on_level, period, precession_angle

MODES = ("SAM", "LAM")
NEAREST = 32.0
"""Energies closer to that of the separatrix than exp(-32) of the range of a mode are not searched."""
ROUNDING = 1e-13
"""Relative error of an energy by which it may lie outside the possible range."""
ON_SEPARATRIX = 4 * np.finfo(float).eps
"""Relative distance of 2 E/L^2 from 1/I2 that is round-off: closer motions are those of the separatrix."""


@dataclasses.dataclass(frozen=True)
class Tumbling:
    """Free motion of a body, with its periods in the convention of the long axis.

    Attributes
    ----------
    body : Body
    mode : "SAM" (the momentum circulates about the axis of largest moment) or "LAM" (of smallest moment); on the
        separatrix, the border of both, "SAM"
    P_psi : period of the momentum in the body; infinite on the separatrix
    P_phi : mean period of the precession of the long axis about the angular momentum; on the separatrix, where the
        motion ends as a spin about the intermediate axis, that of this spin
    energy : kinetic energy
    momentum : length of the angular momentum
    start : a body momentum with this energy and length, without a component along the intermediate axis

    Examples
    --------
    >>> motion = ph.tumbling(ph.Body([1.0, 2.0, 3.0]), energy=1.0, momentum=2.2)
    >>> motion.mode, round(motion.P_phi, 3)
    ('SAM', 7.572)
    """

    body: Body
    mode: str
    P_psi: float
    P_phi: float
    energy: float
    momentum: float
    start: np.ndarray = dataclasses.field(repr=False)

    @property
    def excitation(self) -> float:
        """Energy over that of the rotation about the axis of largest moment with the same momentum, E/E_0 >= 1."""
        return 2 * self.energy * float(self.body.moments.max()) / self.momentum**2


def tumbling(
    body: Body,
    *,
    energy: float | None = None,
    momentum: float | None = None,
    P_psi: float | None = None,
    P_phi: float | None = None,
    mode: str | None = None,
) -> Tumbling:
    """Return the periods of a free motion from its energy and momentum, or the motion from its two periods.

    P_psi is `ph.period`, and P_phi = 2 pi P_psi/A, where A is the angle of the long axis about L in that time
    (`ph.precession_angle`, less one turn in the LAM): complete elliptic integrals of the first and third kind. The
    ratio P_psi/P_phi depends on 2 E/L^2 only and grows towards the separatrix, so it gives 2 E/L^2; P_psi then gives L.

    Parameters
    ----------
    body : three moments of inertia, not all equal; only their ratios matter if the periods are given
    energy, momentum : kinetic energy E and length L of the angular momentum
    P_psi, P_phi : the periods, in the convention of the long axis
    mode : "SAM" or "LAM", needed if both modes have motions with these periods

    Examples
    --------
    >>> toutatis = ph.tumbling(ph.Body([1.0, 3.09, 3.22]), P_psi=5.41, P_phi=7.35)
    >>> toutatis.mode
    'LAM'
    """
    if not isinstance(body, Body):
        raise InputError(f"the first argument must be a ph.Body; got {type(body).__name__}")
    if np.ptp(body.moments) == 0:
        raise InputError("a body with three equal moments does not tumble: it rotates about any axis")
    if P_psi is None and P_phi is None and energy is not None and momentum is not None:
        if mode is not None:
            raise InputError("mode follows from energy and momentum; remove it", "mode")
        return _of_energy(body, positive("energy", energy), positive("momentum", momentum))
    if energy is None and momentum is None and P_psi is not None and P_phi is not None:
        return _of_periods(body, positive("P_psi", P_psi), positive("P_phi", P_phi), mode)
    given = {"energy": energy, "momentum": momentum, "P_psi": P_psi, "P_phi": P_phi}
    got = ", ".join(name for name, value in given.items() if value is not None) or "none of them"
    raise InputError(f"give energy and momentum, or P_psi and P_phi; got {got}")


def _of_energy(body: Body, energy: float, momentum: float) -> Tumbling:
    high, middle, low = np.sort(1 / body.moments)[::-1].tolist()
    twice = 2 * energy / momentum / momentum
    if not low * (1 - ROUNDING) <= twice <= high * (1 + ROUNDING):
        square = momentum * momentum  # an infinity, where momentum**2 is an error
        least, most = low * square / 2, high * square / 2
        raise InputError(
            f"with this momentum the energy lies between {least:.10g} (rotation about the axis of largest moment) and "
            f"{most:.10g} (smallest moment); got {energy!r}",
            "energy",
        )
    if low < middle < high and abs(twice - middle) <= ON_SEPARATRIX * middle:
        spin = 2 * math.pi / (middle * momentum)
        return Tumbling(body, "SAM", math.inf, spin, energy, momentum, on_level(body, middle) * momentum)
    mode = "LAM" if twice > middle else "SAM"
    P_psi, ratio, start = _motion(body, min(max(twice, low), high), mode)
    P_psi = P_psi / momentum
    return Tumbling(body, mode, P_psi, P_psi / ratio, energy, momentum, start * momentum)


def _motion(body: Body, twice: float, mode: str) -> tuple[float, float, np.ndarray]:
    """P_psi, P_psi/P_phi and the body momentum for |L| = 1 and 2 E = twice."""
    start = on_level(body, twice)
    problem = Problem(body, momentum=start)
    turns = float(precession_angle(problem)) / (2 * math.pi) - (1 if mode == "LAM" else 0)
    return float(period(problem)), turns, start


def _of_periods(body: Body, P_psi: float, P_phi: float, mode: str | None) -> Tumbling:
    if mode is not None and not (isinstance(mode, str) and mode in MODES):
        raise InputError(f"mode must be 'SAM' or 'LAM'; got {mode!r}", "mode")
    lowest = {one: _motion(body, _level(body, one, 0.0), one)[1] for one in MODES if _width(body, one) > 0}
    possible = [one for one in lowest if P_psi / P_phi >= lowest[one] and mode in (None, one)]
    if not possible:
        ranges = " and ".join(f"at least {least:.6g} in the {one}" for one, least in lowest.items())
        raise InputError(
            f"no motion of this body has P_psi = {P_psi:g} and P_phi = {P_phi:g}{f' in the {mode}' if mode else ''}: "
            f"their ratio is {P_psi / P_phi:.6g}, and must be {ranges}",
            "P_psi",
        )
    if len(possible) > 1:
        raise InputError(
            "both modes have motions with these periods; give mode='SAM' (short axis) or mode='LAM' (long axis)",
            "mode",
        )
    twice = _solved(body, P_psi / P_phi, possible[0])
    found, ratio, start = _motion(body, twice, possible[0])
    momentum = found / P_psi
    return Tumbling(body, possible[0], P_psi, P_psi / ratio, twice * momentum**2 / 2, momentum, start * momentum)


def _solved(body: Body, ratio: float, mode: str) -> float:
    """2 E/L^2 of the motion with this ratio of the periods."""
    from scipy.optimize import brentq

    def excess(u: float) -> float:
        return _motion(body, _level(body, mode, u), mode)[1] - ratio

    if excess(NEAREST) < 0:
        raise InputError(
            f"P_psi/P_phi = {ratio:.6g} is too close to the separatrix, where it is infinite; the largest ratio for "
            f"this body is {excess(NEAREST) + ratio:.6g}",
            "P_psi",
        )
    return _level(body, mode, brentq(excess, 0.0, NEAREST, xtol=1e-15, rtol=8.9e-16))


def _level(body: Body, mode: str, u: float) -> float:
    """2 E/L^2, from that of a pure spin (u = 0) towards that of the separatrix (u infinite)."""
    middle = float(np.sort(1 / body.moments)[1])
    return middle + (1 if mode == "LAM" else -1) * _width(body, mode) * math.exp(-u)


def _width(body: Body, mode: str) -> float:
    """Range of 2 E/L^2 in a mode."""
    low, middle, high = np.sort(1 / body.moments).tolist()
    return float(high - middle if mode == "LAM" else middle - low)
