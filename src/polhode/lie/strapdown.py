"""Strapdown integration: attitude and velocity from the samples of gyros and accelerometers fixed in a body.

Over each interval between two samples the angular velocity is a polynomial in s, the time since its start, through the
nearest samples; with increments, through the integrals over the nearest intervals. The rotation vector Y of the
interval follows from the Taylor recursion of Bortz's equation (`magnus.py`), so coning is corrected:
R(s) = R_0 exp(Y(s)). For two equal increments a, b and the whole of both intervals it is Y = a + b + 2/3 a x b + ...,
the two-sample algorithm (P. G. Savage, Strapdown inertial navigation integration algorithm design, part 1, J. Guid.
Control Dyn. 21 (1998) 19-28). The gain y of velocity, in body axes, follows from the specific force f by

    y' = f - omega x y,    y(0) = 0,    v(s) = v_0 + R(s) y(s) + g s,

which contains the corrections for rotation and sculling (part 2, ibid. 208-221).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..kernels.so3 import cross, exp, mul, nearly_unit, rotate, scale, sub
from ..numbers.arrays import components
from ..physics.problem import _attitude
from ..physics.validate import check_between, real_array, vector, whole_number
from .kinematics import Attitude, Vector
from .magnus import VECTORS, exponent, summed

DEFAULT_SAMPLES, MOST_SAMPLES = 4, 8

BEYOND = 2
"""Terms of the series beyond the number of samples: their truncation is then below the error of the polynomial."""


class Sampled(NamedTuple):
    """What a sensor measured: its values at the times, or their integrals over the intervals between them."""

    name: str
    rows: np.ndarray
    integrated: bool


@dataclasses.dataclass(frozen=True, repr=False)
class Strapdown(Attitude):
    """Attitudes, and velocities if accelerometers were given, at the times of the samples; see `Attitude`.

    Attributes
    ----------
    velocity : (n, 3) in the space frame, or None
    """

    velocity: np.ndarray | None = dataclasses.field(kw_only=True)
    gravity: np.ndarray = dataclasses.field(kw_only=True)
    series: tuple[list[Vector], list[Vector] | None] = dataclasses.field(kw_only=True)
    """Coefficients of Y/x and of y/x, x the fraction of an interval, for all intervals; none for the velocity."""
    knots: tuple[np.ndarray, np.ndarray, np.ndarray | None] = dataclasses.field(kw_only=True)
    """Times, attitudes and velocities at the samples."""

    def at(self, t: Any) -> Strapdown:
        """Return attitudes and velocities at any times between the first and the last."""
        knots, known, velocities = self.knots
        times = np.atleast_1d(real_array(t, "times must be numbers"))
        check_between(knots[0], knots[-1], times, t)
        n = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(knots) - 2)
        x = (times - knots[n]) / (knots[n + 1] - knots[n])
        turns, gains = self.series
        q = np.stack(nearly_unit(mul(components(known[n]), exp(_value(turns, n, x)))), -1)
        velocity = None
        if gains is not None and velocities is not None:
            velocity = velocities[n] + np.stack(rotate(components(q), _value(gains, n, x)), -1)
            velocity += (times - knots[n])[:, None] * self.gravity
        return dataclasses.replace(self, t=times, quaternion=q, velocity=velocity)

    def __repr__(self) -> str:
        also = "" if self.velocity is None else " and velocities"
        return f"<Strapdown: {len(self)} attitudes{also} from {self.accepted} intervals, order {self.order}>"


def strapdown(
    t: Any,
    *,
    rates: Any = None,
    increments: Any = None,
    specific_force: Any = None,
    velocity_increments: Any = None,
    attitude: Any = None,
    velocity: Any = (0.0, 0.0, 0.0),
    gravity: Any = (0.0, 0.0, 0.0),
    samples: int | None = None,
) -> Strapdown:
    """Integrate the samples of gyros, and of accelerometers if given, corrected for coning and sculling.

    Parameters
    ----------
    t : (n,) times, ascending, with any spacing
    rates : (n, 3) angular velocity at these times, in body axes, or
    increments : (n - 1, 3) its integrals over the intervals between them
    specific_force, velocity_increments : of accelerometers in body axes, at the times or integrated; at most one
    attitude : at the first time, body to space: a scipy Rotation, a 3x3 matrix, or a quaternion with the SCALAR FIRST
    velocity : at the first time, in the space frame
    gravity : constant acceleration in the space frame, added to that of the specific force
    samples : number of samples through which each polynomial passes, from 1 to 8; by default 4, or all if fewer.
        The error is of the order of this number with rates, and one higher with increments

    Raises
    ------
    InputError : an argument is invalid

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> flown = ph.strapdown(t, increments=np.tile([0.0, 0.0, 0.01], (100, 1)))
    >>> flown.quaternion[-1].round(6)
    array([0.877583, 0.      , 0.      , 0.479426])
    """
    times = _times(t)
    turning = _one_of(times, rates=rates, increments=increments)
    pushing = _one_of(times, specific_force=specific_force, velocity_increments=velocity_increments)
    if turning is None:
        raise InputError("give rates (at the times) or increments (over the intervals between them); got neither")
    count = _number_of_samples(samples, [x for x in (turning, pushing) if x is not None])
    omega = _polynomials(times, turning, count)
    turns = exponent(_padded(omega, count + BEYOND), VECTORS.opposite)
    q = _attitudes(_attitude(attitude), exp(summed(turns, 1.0, VECTORS)))
    start, g = vector("velocity", velocity), vector("gravity", gravity)
    gains = None if pushing is None else _gains(omega, _polynomials(times, pushing, count), count + BEYOND)
    moving = None if gains is None else _velocities(times, q, summed(gains, 1.0, VECTORS), start, g)
    return Strapdown(
        times, q, "body", count + turning.integrated, None, None, len(times) - 1, 0, (),
        velocity=moving, gravity=g, series=(turns, gains), knots=(times, q, moving),
    )  # fmt: skip


# --- input ------------------------------------------------------------------------------------------


def _times(t: Any) -> np.ndarray:
    times = real_array(t, "t must be the times of the samples", key="t")
    if times.ndim != 1 or len(times) < 2:
        raise InputError(f"t must be at least two times; got shape {times.shape}", "t")
    if not np.isfinite(times).all():
        n = int(np.flatnonzero(~np.isfinite(times))[0])
        raise InputError(f"t must be finite; t[{n}] is {times[n]}: drop the sample", "t")
    late = np.flatnonzero(np.diff(times) <= 0)
    if len(late):
        n = int(late[0]) + 1
        raise InputError(
            f"t must ascend; t[{n}] = {times[n]:.17g} is not after t[{n - 1}] = {times[n - 1]:.17g}: sort the samples "
            f"and drop those that occur twice",
            "t",
        )
    return times


def _one_of(times: np.ndarray, **given: Any) -> Sampled | None:
    """The one that was given of (values at the times, integrals over the intervals); None for none."""
    named = [(name, value) for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"give {' or '.join(given)}, not both")
    if not named:
        return None
    [(name, value)] = named
    integrated = name.endswith("increments")
    expected = len(times) - integrated
    each = "interval between two times" if integrated else "time"
    text = f"{name} must have the shape ({expected}, 3), one row for each {each}"
    rows = real_array(value, text, key=name)
    if rows.shape != (expected, 3):
        raise InputError(f"{text}; got shape {rows.shape}", name)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        n = int(bad[0])
        instead = "add it to its neighbour" if integrated else "drop the sample"
        raise InputError(f"{name} must be finite; row {n} is {rows[n].tolist()}: replace it, or {instead}", name)
    return Sampled(name, rows, integrated)


def _number_of_samples(samples: Any, sensors: list[Sampled]) -> int:
    name, rows, _ = min(sensors, key=lambda sensor: len(sensor.rows))
    if samples is None:
        return min(DEFAULT_SAMPLES, len(rows))
    count = whole_number("samples", samples)
    if count > MOST_SAMPLES:
        raise InputError(f"samples must be a whole number from 1 to {MOST_SAMPLES}; got {samples!r}", "samples")
    if count > len(rows):
        raise InputError(f"samples = {count} needs as many rows; {name} has {len(rows)}", "samples")
    return count


# --- series -----------------------------------------------------------------------------------------


def _polynomials(times: np.ndarray, sensor: Sampled, count: int) -> list[Vector]:
    """Coefficients of the sensor's values times the length of the interval, in powers of the fraction x of it.

    The polynomial of an interval passes through `count` samples, as many before its middle as after it.
    """
    intervals, available = len(times) - 1, len(sensor.rows)
    first = np.arange(intervals) - (count - 1) // 2
    window = np.clip(first, 0, available - count)[:, None] + np.arange(count)
    lengths = np.diff(times)
    x = (times[window] - times[:-1, None]) / lengths[:, None]
    powers, values = np.arange(count), sensor.rows[window]
    if sensor.integrated:
        y = (times[window + 1] - times[:-1, None]) / lengths[:, None]
        matrix = (y[..., None] ** (powers + 1) - x[..., None] ** (powers + 1)) / (powers + 1)
    else:
        matrix, values = x[..., None] ** powers, values * lengths[:, None, None]
    solved = np.linalg.solve(matrix, values)
    return [components(solved[:, k]) for k in range(count)]


def _padded(coefficients: list[Vector], count: int) -> list[Vector]:
    """The polynomial as a series with this many coefficients."""
    none = scale(0.0, coefficients[0])
    return [*coefficients, *[none] * (count - len(coefficients))]


def _gains(omega: list[Vector], force: list[Vector], count: int) -> list[Vector]:
    """Coefficients of y/x: (n + 1) y_(n+1) = f_n - sum_j omega_j x y_(n-j)."""
    f, y = _padded(force, count), list[Vector]()
    for n in range(count):
        total = f[n]
        for j in range(min(n, len(omega))):
            total = sub(total, cross(omega[j], y[n - 1 - j]))
        y.append(scale(1 / (n + 1), total))
    return y


def _value(series: list[Vector], n: np.ndarray, x: np.ndarray) -> Vector:
    """The sum of the series of the intervals n, times x."""
    total: Vector = scale(x, summed([(a[n], b[n], c[n]) for a, b, c in series], x, VECTORS))
    return total


# --- sums over the intervals ------------------------------------------------------------------------


def _attitudes(start: Any, turns: Any) -> np.ndarray:
    """Attitudes at all times: each is the one before, times the turn of the interval."""
    rows = [start]
    for turn in zip(*(x.tolist() for x in turns), strict=True):
        rows.append(nearly_unit(mul(rows[-1], turn)))
    return np.array(rows)


def _velocities(times: np.ndarray, q: np.ndarray, gain: Any, start: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Velocities at all times: the sum of the gains, turned to the space frame at the ends of their intervals."""
    gained = np.stack(rotate(components(q[1:]), gain), -1) + np.diff(times)[:, None] * g
    return start + np.concatenate([np.zeros((1, 3)), np.cumsum(gained, axis=0)])
