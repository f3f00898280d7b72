"""Kinematics alone: the attitude for a given angular velocity omega(t).

R' = R hat(omega) with omega in the body frame, R' = hat(omega) R with omega in the space frame. J. E. Bortz (1971)
writes the attitude over a step as exp of a rotation vector Y, whose rate differs from omega by commutator terms:
Y' = dexp_{-Y}^-1 omega = omega + Y x omega/2 + ... in the body frame. Here the Taylor series of Y follows to any order
from that of omega (`magnus.py`), which is computed from the user's function.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, StepError
from ..kernels.so3 import exp, mul, nearly_unit, norm, scale, sub, unit
from ..physics.fields.decorators import check_frame
from ..physics.problem import _attitude
from ..physics.validate import check_between, finite_number, whole_number
from ..results import observables
from ..run.step_count import Interval, end_time, number_of_steps, signed_step
from ..taylor.graph import plan
from ..taylor.interpreter import expansion
from .family import HIGHEST
from .formulas import Trace
from .groups import SO3
from .magnus import VECTORS, exponent, summed
from .numbers import Numbers, numbers_for

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

SMALLEST_TOL = 1e-15
MOST_REJECTED = 10_000
DEFAULT_ORDER = 8  # with a fixed step

Vector = tuple[Any, Any, Any]


@dataclasses.dataclass(frozen=True)
class Piece:
    """One step: the attitude at its start, and the Taylor coefficients of the rotation vector from there."""

    t: float
    q: Any
    exponents: list[Vector]

    def in_doubles(self) -> Piece:
        """Convert the piece to doubles, for dense output of a run with digits."""
        return Piece(self.t, tuple(map(float, self.q)), [(float(x), float(y), float(z)) for x, y, z in self.exponents])


@dataclasses.dataclass(frozen=True, repr=False)
class Attitude:
    """Attitudes over time. Arrays are float64 with time first.

    Attributes
    ----------
    t : (n,) times
    quaternion : (n, 4) body to space, SCALAR FIRST, sign continuous from the start
    matrix : (n, 3, 3) the same as rotation matrices; `rotation` as a scipy Rotation
    frame, order : frame of omega; order of the steps
    dt : the fixed step, or None
    error_estimate : with a tolerance, the sum of the estimates of all steps (a rotation angle), else None
    accepted, rejected : numbers of steps
    mp : with ``digits=...``, the quaternion as an array of mpmath numbers
    """

    t: np.ndarray
    quaternion: np.ndarray
    frame: str
    order: int
    dt: float | None
    error_estimate: float | None
    accepted: int
    rejected: int
    pieces: tuple[Piece, ...]
    mp: types.SimpleNamespace | None = None

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, 3, 3), body to space."""
        return observables.matrices(self.quaternion)

    @functools.cached_property
    def rotation(self) -> Rotation:
        """Attitude as a scipy Rotation, body to space."""
        from scipy.spatial.transform import Rotation

        return Rotation.from_quat(self.quaternion, scalar_first=True)

    def at(self, t: Any) -> Attitude:
        """Return the attitudes at any times between the first and the last, as accurate as the steps."""
        times = np.atleast_1d(np.array(t, dtype=float))
        check_between(self.t[0], self.t[-1], times, t)
        first = self.pieces[0].t
        away = [abs(piece.t - first) for piece in self.pieces]
        pieces = [self.pieces[i] for i in np.searchsorted(away, abs(times - first), side="right") - 1]
        attitudes = [
            _attitude_after(piece, s - piece.t, self.frame) for piece, s in zip(pieces, times.tolist(), strict=True)
        ]
        q = np.array([[float(x) for x in one] for one in attitudes]).reshape(-1, 4)
        return dataclasses.replace(self, t=times, quaternion=q, mp=None)

    def __len__(self) -> int:
        """Number of attitudes."""
        return len(self.t)

    def __repr__(self) -> str:
        steps = f"{self.accepted} steps of order {self.order}"
        return f"<Attitude from omega in the {self.frame} frame: {len(self)} states, {steps}>"


def _attitude_after(piece: Piece, h: Any, frame: str) -> Any:
    """Return the attitude a time h after the start of a piece."""
    turn = exp(scale(h, summed(piece.exponents, h, VECTORS)))
    return nearly_unit(mul(piece.q, turn) if frame == "body" else mul(turn, piece.q))


def kinematics(
    omega: Callable[..., Any],
    t_end: float,
    *,
    attitude: Any = None,
    t0: float = 0.0,
    frame: str = "body",
    tol: float | None = None,
    dt: float | None = None,
    order: int | None = None,
    digits: int | None = None,
) -> Attitude:
    """Integrate the attitude for a given angular velocity.

    Parameters
    ----------
    omega : plain function of t that returns three numbers; it may call the same functions as a torque
    t_end : end time; one before t0 runs backwards in time
    attitude : at t0, body to space: a scipy Rotation, a 3x3 matrix, or a quaternion with the SCALAR FIRST
    frame : frame of omega, "body" (R' = R hat(omega)) or "space" (R' = hat(omega) R)
    tol : allowed error of the attitude at the end, an angle; by default 1e-10, unless dt is given
    dt : a fixed step instead
    order : order of the steps, from 1 to 64; by default chosen for the tolerance, 8 with a fixed step
    digits : work with this many digits in mpmath (slow)

    Raises
    ------
    InputError : an argument is invalid
    StepError : omega has no value somewhere, or is not smooth enough for the tolerance

    Examples
    --------
    >>> from math import cos
    >>> turn = ph.kinematics(lambda t: (cos(t), 0.0, 1.0), 5.0, tol=1e-10)
    >>> turn.quaternion.shape[-1]
    4
    """
    check_frame(frame)
    if tol is not None and dt is not None:
        raise InputError("give tol or dt, not both")
    start = finite_number("t0", t0)
    end = end_time(Interval(start, finite_number("t_end", t_end)), None, backward=True)
    numbers = numbers_for(digits)
    first = _attitude(attitude)
    with numbers.precision():
        rate = Rate(omega, frame, numbers, start)
        q = unit(tuple(numbers.number(x) for x in first))
        if dt is None:
            goal = finite_number("tol", 1e-10 if tol is None else tol)
            least = SMALLEST_TOL if digits is None else 10.0**-digits
            if not least <= goal <= 1:
                raise InputError(f"tol must lie between {least:.0e} and 1; got {goal:g}")
            best = max(2, math.ceil(1 - math.log(goal) / 2))
            return Adaptive(rate, _order(order, min(best, HIGHEST)), goal, end).run(start, q)
        step = signed_step(Interval(start, end), dt, None, None)
        return _fixed(rate, _order(order, DEFAULT_ORDER), start, end, step, q)


def _order(order: Any, default: int) -> int:
    chosen = default if order is None else whole_number("order", order)
    if chosen > HIGHEST:
        raise InputError(f"order must be a whole number from 1 to {HIGHEST}; got {order!r}")
    return chosen


class Omega(Trace):
    """An angular velocity, checked and traced."""

    takes_matrix = False

    def expected(self) -> str:
        """The required return value, in words."""
        return "three numbers"


class Rate:
    """The user's omega: its values and Taylor coefficients, and the coefficients of the rotation vector."""

    def __init__(self, omega: Any, frame: str, numbers: Numbers, t0: float) -> None:
        self.trace = Omega(SO3, omega, "omega", t0, np.eye(3), only_t=True)
        self.frame, self.numbers = frame, numbers
        self.plan = plan((), (), self.trace.smooth)
        self.algebra = VECTORS.opposite if frame == "body" else VECTORS
        self.value = self.trace.returned(numbers)

    def series(self, t: float, count: int) -> list[Vector]:
        """Taylor coefficients 0 .. count - 1 of omega."""
        try:
            nodes = expansion(self.plan, {"t": self.numbers.number(t)}, count - 1, self.numbers.arithmetic)
            lists = [nodes[x] for x in self.trace.smooth]
            if all(math.isfinite(x) for x in (c[k] for c in lists for k in range(count))):
                return [(lists[0][k], lists[1][k], lists[2][k]) for k in range(count)]
        except (ArithmeticError, ValueError, TypeError):
            pass
        raise StepError(f"{self.trace.user.owner} has no Taylor series at t = {t:g}: it must be smooth there")

    def exponents(self, w: list[Vector]) -> list[Vector]:
        """Taylor coefficients of the rotation vector, from the coefficients of omega."""
        return exponent(w, self.algebra, self.numbers.number)


def _result(rate: Rate, order: int, pieces: list[Piece], last: tuple[float, Any], **details: Any) -> Attitude:
    t = np.array([*(piece.t for piece in pieces), last[0]])
    states = [*(piece.q for piece in pieces), last[1]]
    q = np.array([[float(x) for x in one] for one in states])
    mp = None
    if rate.numbers.digits:
        mp = types.SimpleNamespace(quaternion=rate.numbers.public(np.array(states, dtype=object)))
        pieces = [piece.in_doubles() for piece in pieces]
    return Attitude(t, q, rate.frame, order, pieces=tuple(pieces), mp=mp, accepted=len(pieces), **details)


def _fixed(rate: Rate, order: int, start: float, end: float, dt: float, q: Any) -> Attitude:
    """Run with steps of one size."""
    count = number_of_steps(Interval(start, end), dt, None, None)
    pieces: list[Piece] = []
    for n in range(count):
        piece = Piece(start + n * dt, q, rate.exponents(rate.series(start + n * dt, order)))
        pieces.append(piece)
        q = _attitude_after(piece, rate.numbers.number(start + (n + 1) * dt) - rate.numbers.number(piece.t), rate.frame)
    return _result(rate, order, pieces, (start + count * dt, q), dt=dt, error_estimate=None, rejected=0)


@dataclasses.dataclass
class Adaptive:
    """Steps chosen for a tolerance.

    A step of order p leaves out Y_(p+1) h^(p+1) and Y_(p+2) h^(p+2), which are computed for the error estimate: the
    larger of the two is the error of the step, and h is chosen so that it equals the step's share tol h/|t_end - t0|.
    The series is compared with the function at the middle and at the end of the step. If they differ, the step is
    halved: at a jump of omega the step becomes too short for the jump to matter.
    """

    rate: Rate
    order: int
    tol: float
    end: float
    rejected: int = 0
    estimate: float = 0.0

    def run(self, t: float, q: Any) -> Attitude:
        """Make all steps from t to the end."""
        pieces: list[Piece] = []
        last = (t, q)
        for piece, then, there in self.steps(t, q):
            pieces.append(piece)
            last = (then, there)
        details = {"error_estimate": self.estimate, "rejected": self.rejected}
        return _result(self.rate, self.order, pieces, last, dt=None, **details)

    def steps(self, t: float, q: Any) -> Iterator[tuple[Piece, float, Any]]:
        """Yield each step: the piece, its end, and the attitude there."""
        per_time = self.tol / abs(self.end - t)
        number = self.rate.numbers.number
        while t != self.end:
            w = self.rate.series(t, self.order + 2)
            y = self.rate.exponents(w)
            beyond = [float(norm(y[-2])), float(norm(y[-1]))]
            then = self.checked(t, self.proposed(t, beyond, per_time), w, per_time)
            piece = Piece(t, q, y[: self.order])
            try:
                q = _attitude_after(piece, number(then) - number(t), self.rate.frame)
                self.estimate += max(c * abs(then - t) ** (self.order + 1 + k) for k, c in enumerate(beyond))
            except (OverflowError, ValueError):  # of powers, and of sines of infinity
                raise InputError(
                    f"the rotation from t = {t:g} to {then:g}, or a power of this time, exceeds all doubles; "
                    "choose another unit of time"
                ) from None
            yield piece, then, q
            t = then

    def proposed(self, t: float, beyond: list[float], per_time: float) -> float:
        """Return the proposed end of the step."""
        h = min((per_time / c) ** (1 / (self.order + k)) if c > 0 else math.inf for k, c in enumerate(beyond))
        left = self.end - t
        return self.end if 1.001 * h >= abs(left) else t + math.copysign(h, left)

    def checked(self, t: float, then: float, w: list[Vector], per_time: float) -> float:
        """Return the end of the step after the first of h, h/2, h/4, ... over which the series agrees with omega."""
        while then != t and self.rejected < MOST_REJECTED:
            h = then - t
            allowed = max((self.order + 2) * per_time * abs(h), self.tol / 16)
            if max(self.gap(t, h / 2, w), self.gap(t, h, w)) * abs(h) <= allowed:
                return then
            self.rejected += 1
            then = t + h / 2
        raise StepError(
            f"{self.rate.trace.user.owner} is not smooth enough at t = {t:g} for the tolerance {self.tol:g}"
        )

    def gap(self, t: float, h: float, w: list[Vector]) -> float:
        """Distance of the Taylor series from omega at t + h."""
        moment = self.rate.numbers.number(t + h)
        try:
            value = self.rate.value(moment, ())
        except (ArithmeticError, ValueError, TypeError):
            return math.inf
        size = float(norm(sub(summed(w, moment - self.rate.numbers.number(t), VECTORS), value)))
        return size if math.isfinite(size) else math.inf
