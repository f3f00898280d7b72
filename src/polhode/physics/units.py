"""Rescale a problem to units of time and mass in which its numbers are of moderate size; reverse time.

The numbers of a motion appear in high powers: the Taylor coefficient of order k of the attitude is about omega^k/k!,
which underflows for omega = 1e-18 and k = 18. With the unit of time 2^a and the unit of moments of inertia 2^b,

    t' = t/2^a,   I' = I/2^b,   omega' = 2^a omega,   Pi' = 2^(a - b) Pi,   T' = 2^(2 a - b) T,

all without rounding, so the motion is the same to the last bit. A run backwards in time is a run with the negative
unit of time: t' = -t, omega' = -omega, Pi' = -Pi, T' = T.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.so3 import matrix
from ..numbers import arrays  # noqa: F401 - the torque is evaluated at many times at once
from ..symbolic.expression import Expr, symbol
from ..taylor.graph import substituted
from .body import Body
from .fields import Field
from .fields.derived import DerivedField
from .fields.trace import of_formula
from .problem import Problem

NEAR, WIDE = 20, 100
"""Largest binary exponents of the rate of a motion, and of the moments of inertia, that need no rescaling."""

LARGEST = 1000
"""Largest binary exponent of a factor."""


@dataclasses.dataclass(frozen=True)
class Units:
    """The exponents a and b of the units of time and of moments of inertia, and the direction of time."""

    time: int = 0
    inertia: int = 0
    backward: bool = False

    @property
    def torque(self) -> int:
        """The exponent of T'/T."""
        return 2 * self.time - self.inertia

    def times(self, t: Any, back: bool = False) -> Any:
        """Convert times to these units, or back to the user's units."""
        exponent = self.time if back else -self.time
        converted = np.ldexp(t, exponent) if np.asarray(t).dtype != np.dtype(object) else t * 2.0**exponent
        return 0.0 - converted if self.backward else converted

    def rows(self, rows: np.ndarray, back: bool = False) -> np.ndarray:
        """Convert rows of attitude and momentum to these units, or back to the user's units."""
        converted = np.array(rows)
        exponent = self.time - self.inertia
        if exponent:
            converted[..., 4:7] = np.ldexp(converted[..., 4:7], -exponent if back else exponent)
        if self.backward:
            converted[..., 4:7] *= -1
        return converted

    @property
    def sign(self) -> float:
        """The sign of the unit of time."""
        return -1.0 if self.backward else 1.0


@dataclasses.dataclass
class ScaledRun:
    """A run in rescaled units with its results in the user's units; call it to run."""

    run: Any
    units: Units

    def __call__(self) -> Any:
        """Run to the end. An exception carries the path so far in its attribute `path`."""
        try:
            return self.back(self.run())
        except BaseException as stop:
            if hasattr(stop, "path"):
                stop.path = self.back(stop.path)
            raise

    def back(self, path: Any) -> Any:
        """A path in the units of the user."""
        times, rows = self.units.times(path.times, back=True), self.units.rows(path.rows, back=True)
        return dataclasses.replace(path, times=times, rows=rows)

    def pieces(self) -> Iterator[Any]:
        """See `adaptive.Run.pieces`."""
        return map(self.back, self.run.pieces())

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Rows at any times within the run."""
        units = self.units
        states = self.run.state_at(units.times(times), units.times(path_times), units.rows(rows))
        return None if states is None else units.rows(states, back=True)


class ScaledField(DerivedField):
    """A field in rescaled units: three extra parameters are the factors of t, of omega and of the torque.

    States keep their units.
    """

    def __init__(self, field: Field, units: Units) -> None:
        super().__init__(field, units)
        self.units = units

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of the field, then the factors."""
        a, torque = self.units.time, self.units.torque
        sign = self.units.sign
        return (*self.whole.parameters, math.ldexp(sign, a), math.ldexp(sign, -a), math.ldexp(1.0, torque))

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """Torque and potential."""
        force, U = self.whole.graph
        a, b, c = self._scaled(force)
        return (a, b, c), None if U is None else self._scaled([U])[0]

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Torque and rates of the states."""
        force, rates = self.whole.coupled
        return tuple(self._scaled(force)), tuple(self._factors()[0] * x for x in self._in_units(rates))

    @of_formula
    def written(self) -> Any:
        """The torque in the user's frame."""
        return tuple(self._scaled(self.whole.written))

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check the function, in the user's units."""
        a, sign = self.units.time, self.units.sign
        self.whole.check(math.ldexp(sign * t, a), R, tuple(math.ldexp(sign * x, -a) for x in omega), context)

    def _factors(self) -> list[Expr]:
        """Symbols of the factors of t, of omega and of the torque."""
        return [symbol(f"p{len(self.whole.parameters) + i}") for i in range(3)]

    def _in_units(self, formulas: Sequence[Expr]) -> list[Expr]:
        """Formulas of the field with time and velocity in the new units."""
        time, rate, _ = self._factors()
        meaning = {"t": time * symbol("t")} | {f"w{i}": rate * symbol(f"w{i}") for i in range(3)}
        return list(substituted(formulas, meaning))

    def _scaled(self, formulas: Sequence[Expr]) -> list[Expr]:
        torque = self._factors()[2]
        return [torque * x for x in self._in_units(formulas)]


MOMENTS = 257
"""Times at which a time-dependent torque is sampled to find its size."""


def units_of(problem: Problem, span: float) -> Units:
    """Choose the units of a run: no change (exponents 0) for moderate numbers; for a body at rest the span decides.

    A negative span is a run backwards in time. Fields with states or a heat bath are not rescaled.
    """
    if problem.field is not None and (problem.field.states or problem.field.bath is not None):
        return NO_UNITS if span > 0 else BACKWARD
    inertia = max(problem.body.principal.moments)
    exponent = math.frexp(_rate(problem, span, inertia))[1]
    size = math.frexp(inertia)[1]
    if abs(exponent) <= NEAR and abs(size) <= WIDE:
        return NO_UNITS if span > 0 else BACKWARD
    time, mass = -exponent if abs(exponent) > NEAR else 0, size if abs(size) > WIDE else 0
    # the factor of the torque must be in the range of doubles; if not, the unit of time is limited
    return Units(min(max(time, (mass - LARGEST) // 2 + 1), (mass + LARGEST) // 2), mass, span < 0)


def units_of_steps(problem: Problem, dt: float, count: int) -> Units:
    """As `units_of`, for `count` equal steps; cheap if the numbers are of moderate size."""
    speed = max(map(abs, problem.omega.tolist()))
    if 2.0**-NEAR < speed < 2.0**NEAR and 2.0**-WIDE < problem.body.moments.max() < 2.0**WIDE:
        return NO_UNITS if dt > 0 else BACKWARD
    return units_of(problem, count * dt)


def _rate(problem: Problem, span: float, inertia: float) -> float:
    """Rate of the motion: the angular velocity, or the one the torque produces within a radian."""
    omega, field = problem.velocity, problem.field
    x, y, z = omega
    rate = max(abs(x), abs(y), abs(z))
    if field is not None:
        rate = max(rate, math.sqrt(_torque_size(problem, field, span, omega) / inertia))
        if "t" in field.reads:
            rate = max(rate, 1 / abs(span))
    return rate if 0 < rate < math.inf else 1 / abs(span)


ATTITUDES = ((0.5, 0.5, -0.5, 0.5), (0.5, -0.5, 0.5, 0.5))
"""Attitudes other than the initial one at which the size of a torque is evaluated."""


def _torque_size(problem: Problem, field: Field, span: float, omega: tuple[float, ...]) -> float:
    """The largest component of the torque: at the initial state and elsewhere, and if it depends on time, later."""
    times: Any = problem.t0
    if "t" in field.reads:  # a torque that begins later counts too, however short it is
        times = np.linspace(problem.t0, problem.t0 + span, MOMENTS)
    size = max(_sizes(field, times, matrix(problem.quaternion), omega), default=0.0)
    if field.reads.isdisjoint("tw"):
        return max(size, _size_elsewhere(field))
    return max(size, *(max(_sizes(field, times, matrix(q), omega), default=0.0) for q in ATTITUDES))


_ELSEWHERE: weakref.WeakKeyDictionary[Field, float] = weakref.WeakKeyDictionary()


def _size_elsewhere(field: Field) -> float:
    """The largest component of a torque that depends on the attitude alone, away from the start."""
    if field not in _ELSEWHERE:
        at_rest = (0.0, 0.0, 0.0)
        _ELSEWHERE[field] = max(max(_sizes(field, 0.0, matrix(q), at_rest), default=0.0) for q in ATTITUDES)
    return _ELSEWHERE[field]


def _sizes(field: Field, times: Any, R: Any, omega: Any) -> list[float]:
    """The largest finite size of each component of a torque at some times."""
    try:
        if isinstance(times, float):
            return [size for x in field.torque_value(times, R, omega) if (size := abs(x)) < math.inf]
        with np.errstate(all="ignore"):
            seen = [np.abs(np.atleast_1d(np.asarray(x, dtype=float))) for x in field.torque_value(times, R, omega)]
    except (ArithmeticError, ValueError):
        return []
    return [float(x[np.isfinite(x)].max(initial=0.0)) for x in seen]


def rescaled(problem: Problem, units: Units) -> Problem:
    """The problem in other units."""
    if units == NO_UNITS:
        return problem
    scaled = copy.copy(problem)
    scaled.body = _body(problem.body, units)
    scaled.field = None if problem.field is None else ScaledField(problem.field, units)
    exponent, sign = units.time - units.inertia, units.sign
    x, y, z = (sign * math.ldexp(m, exponent) for m in problem.momentum)
    scaled.momentum = x, y, z
    scaled.t0 = sign * math.ldexp(problem.t0, -units.time)
    scaled.t_end = scaled.dt = scaled.reference = None
    return scaled


def _body(body: Body, units: Units) -> Body:
    if not units.inertia:
        return body
    scaled = copy.copy(body)
    scaled.inertia, scaled.moments = np.ldexp(body.inertia, -units.inertia), np.ldexp(body.moments, -units.inertia)
    return scaled


NO_UNITS, BACKWARD = Units(), Units(backward=True)
