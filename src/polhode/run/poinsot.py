"""Periodic features of free-body motion: the period, the precession angle and Poinsot's curves.

In one period T the body momentum runs once around its polhode. Meanwhile the attitude rotates about the fixed spatial
momentum by the angle (Montgomery, Am. J. Phys. 59 (1991) 394)

    2 E T/|L| - (solid angle of the polhode, seen from the centre of the momentum sphere).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..methods.families.jacobi import cycle, motion
from ..numbers import floats
from ..numbers.precision import GUARD_DIGITS
from ..physics.body import Body
from ..physics.problem import Problem
from ..physics.validate import number_of_digits
from ..results.observables import to_space
from ..results.trajectory import Trajectory
from .exact import exact


def _cycle(problem: Problem, digits: int | None) -> tuple[Any, Any]:
    if not isinstance(problem, Problem):
        raise InputError(f"the first argument must be a ph.Problem; got {type(problem).__name__}")
    if problem.field is not None:
        raise InputError(
            f"the period is known for free bodies only, and {problem.field!r} acts on this one; find a period with "
            "events of ph.solve"
        )
    if digits is None:
        (_, m), system = problem.kernel_data(floats.number)
        period, angle = cycle(motion(m, system[0]))
        return period or math.inf, angle if period else math.inf
    from ..numbers.multiprecision import mp, number, public, working

    digits = number_of_digits(digits)
    with working(digits + GUARD_DIGITS):
        (_, m), system = problem.kernel_data(number)
        period, angle = cycle(motion(m, system[0]))
    with working(digits):
        return (public(+period), public(+angle)) if period else (public(+mp.inf), public(+mp.inf))


def period(problem: Problem, *, digits: int | None = None) -> Any:
    """Return the time after which the body momentum of a free body repeats.

    It is infinite on the separatrix, and if no neighbouring motion is periodic (a sphere, a body at rest). For a spin
    about a stable axis it is the period of small oscillations about that spin.

    Parameters
    ----------
    problem : a body without a field
    digits : compute with this many digits and return an mpmath number

    Examples
    --------
    >>> body = ph.problems.free_body()
    >>> start, later = ph.exact(body, [0.0, ph.period(body)]).momentum
    >>> bool(abs(later - start).max() < 1e-12)
    True
    """
    return _cycle(problem, digits)[0]


def precession_angle(problem: Problem, *, digits: int | None = None) -> Any:
    """Return the angle [rad] by which a free body rotates about its momentum in one `period`, whole turns included.

    R(t + T) is R(t) rotated by this angle about the fixed vector R Pi. It is infinite if the period is.

    Examples
    --------
    >>> round(ph.precession_angle(ph.problems.free_body()), 6) > 0
    True
    """
    return _cycle(problem, digits)[1]


def herpolhode(problem: Problem, periods: float = 3.0, points: int = 4001) -> np.ndarray:
    """Return the path (points, 2) of the angular velocity in the invariable plane over a number of periods.

    The plane is perpendicular to the spatial momentum, at the distance 2 E/|L| from the centre. The path touches the
    two circles of `herpolhode_ring` alternately.
    """
    sol = exact(problem, problem.t0 + np.linspace(0.0, periods * finite_period(problem), points))
    return omega_across(sol, problem.spatial_momentum)


def omega_across(sol: Trajectory, normal: np.ndarray) -> np.ndarray:
    """Project the spatial angular velocity of any motion onto the plane perpendicular to a space vector: (n, 2)."""
    return np.asarray(to_space(sol.quaternion, sol.omega) @ _plane(normal).T)


def finite_period(problem: Problem) -> float:
    """Return the period; refuse an infinite one."""
    found = float(period(problem))
    if not math.isfinite(found):
        raise InputError(
            f"the momentum of {problem!r} is not periodic (its period is infinite); choose another initial state"
        )
    return found


def herpolhode_ring(problem: Problem) -> tuple[float, float]:
    """Return the smallest and largest distance of the herpolhode from the momentum axis.

    The polhode goes around the axis of the largest moment if 2 E I_2 < |L|^2, otherwise around the axis of the
    smallest. The extremes occur where the component along the intermediate or the other extreme axis is zero.
    """
    low, middle, high = sorted(problem.body.moments.tolist())
    square, twice = float(np.dot(problem.momentum, problem.momentum)), 2 * float(problem.energy())
    around, across = (high, low) if twice * middle < square else (low, high)

    def speed(other: float) -> float:
        """Return |omega|^2 for the momentum that only has components along the axes `around` and `other`."""
        if other == around:
            return square / around**2
        share = (twice - square / other) / (1 / around - 1 / other)
        return share / around**2 + (square - share) / other**2

    ends = sorted(math.sqrt(max(0.0, speed(other) - twice**2 / square)) for other in (middle, across))
    return ends[0], ends[1]


def _plane(normal: np.ndarray) -> np.ndarray:
    """Return two unit vectors (2, 3) that span the plane and form a right-handed frame with its normal."""
    n = normal / np.linalg.norm(normal)
    first = np.eye(3)[np.abs(n).argmin()]
    first = first - (first @ n) * n
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(n, first)])


def cycles(body: Body, points: int = 121) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return period and precession angle over the polhodes of a body with |momentum| = 1.

    Returns 2 E I_2 (n,), which is 1 on the separatrix, the periods and the angles. The energies are dense near the
    separatrix, which is excluded.
    """
    low, middle, high = np.sort(1 / body.moments)
    s = np.linspace(-1.0, 1.0, points)
    twice = middle + np.where(s < 0, middle - low, high - middle) * np.sign(s) * s**4
    twice = twice[np.abs(twice / middle - 1) > 1e-12]
    found = np.array([_cycle(Problem(body, momentum=on_level(body, e)), None) for e in twice])
    return twice / middle, found[:, 0], found[:, 1]


def on_level(body: Body, twice: float) -> np.ndarray:
    """Return a unit momentum with energy twice/2 and no component along the intermediate axis."""
    order = np.argsort(-body.moments)
    low, _, high = (1 / body.moments[order]).tolist()
    share = (twice - low) / (high - low)
    m = np.zeros(3)
    m[order[0]], m[order[2]] = math.sqrt(max(0.0, 1 - share)), math.sqrt(max(0.0, share))
    return np.asarray(body.axes @ m)
