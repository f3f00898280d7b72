"""A problem in other units of time and mass, in which its numbers are neither very large nor very small.

Numbers of a motion appear in high powers: the Taylor coefficient of order k of the attitude is about omega^k/k!, and
that is zero in doubles for omega = 1e-18 and k = 18. With the unit of time 2^a and the unit of moments of inertia 2^b,

    t' = t/2^a,   I' = I/2^b,   omega' = 2^a omega,   Pi' = 2^(a - b) Pi,   T' = 2^(2 a - b) T,

all without rounding; so the motion is the same one, to the last bit.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.so3 import matrix
from ..symbolic.expression import Expr, symbol, symbols_in
from ..taylor.graph import substituted
from .body import Body
from .fields import Field
from .fields.field import Trace, of_formula
from .problem import Problem

NEAR, WIDE = 20, 100
"""Exponents of two of the rate of a motion and of moments of inertia up to which a problem is left as it is."""

LARGEST = 1000
"""The largest exponent of a factor."""


@dataclasses.dataclass(frozen=True)
class Units:
    """The exponents a and b of the units of time and of moments of inertia."""

    time: int = 0
    inertia: int = 0

    @property
    def torque(self) -> int:
        """The exponent of T'/T."""
        return 2 * self.time - self.inertia

    def times(self, t: Any, back: bool = False) -> Any:
        """Times in these units, or back in those of the user."""
        return np.ldexp(t, self.time if back else -self.time)

    def rows(self, rows: np.ndarray, back: bool = False) -> np.ndarray:
        """Rows of attitude and momentum in these units, or back in those of the user."""
        made = np.array(rows, dtype=float)
        exponent = self.time - self.inertia
        made[..., 4:7] = np.ldexp(made[..., 4:7], -exponent if back else exponent)
        return made


@dataclasses.dataclass
class ScaledRun:
    """A run in other units, seen in those of the user; call it."""

    run: Any
    units: Units

    def __call__(self) -> Any:
        """All of it; an exception on the way takes what there is with it, as `path`."""
        try:
            return self._back(self.run())
        except BaseException as stop:
            if hasattr(stop, "path"):
                stop.path = self._back(stop.path)
            raise

    def _back(self, path: Any) -> Any:
        times, rows = self.units.times(path.times, back=True), self.units.rows(path.rows, back=True)
        return dataclasses.replace(path, times=times, rows=rows)

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray, int, bool]]:
        """As `adaptive.Run.pieces`."""
        for times, rows, rejected, fine in self.run.pieces():
            yield self.units.times(times, back=True), self.units.rows(rows, back=True), rejected, fine

    def state_at(self, times: np.ndarray, path_times: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Rows at any times within the run."""
        units = self.units
        seen = self.run.state_at(units.times(times), units.times(path_times), units.rows(rows))
        return None if seen is None else units.rows(seen, back=True)


class ScaledField(Field):
    """A field in other units: three more parameters are the factors of t, of omega and of the torque."""

    def __init__(self, field: Field, units: Units) -> None:
        self.plain, self.units, self.template, self.values = field, units, field.template, field.values
        self.name, self.kind = field.name, field.kind

    @property
    def parameters(self) -> tuple[float, ...]:
        """Those of the field, and the factors."""
        a, torque = self.units.time, self.units.torque
        return (*self.plain.parameters, math.ldexp(1.0, a), math.ldexp(1.0, -a), math.ldexp(1.0, torque))

    def __reduce__(self) -> Any:
        """Sent as the field and the units."""
        return ScaledField, (self.plain, self.units)

    def find_trace(self) -> Trace:
        """That of the field's formula in other units."""
        made: Trace = self.plain.trace(ScaledField, Trace)
        return made

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """Torque and potential."""
        force, U = self.plain.graph
        a, b, c = self._scaled(force)
        return (a, b, c), None if U is None else self._scaled([U])[0]

    @of_formula
    def written(self) -> Any:
        """The torque in the frame in which the user wrote it."""
        return tuple(self._scaled(self.plain.written))

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check the function, in the user's units."""
        a = self.units.time
        self.plain.check(math.ldexp(t, a), R, tuple(math.ldexp(x, -a) for x in omega), context)

    def _scaled(self, formulas: Sequence[Expr]) -> list[Expr]:
        time, rate, torque = (symbol(f"p{len(self.plain.parameters) + i}") for i in range(3))
        meaning = {"t": time * symbol("t")} | {f"w{i}": rate * symbol(f"w{i}") for i in range(3)}
        return [torque * x for x in substituted(formulas, meaning)]


MOMENTS = 257
"""Times at which the size of a torque of time is looked at."""


def units_of(problem: Problem, span: float) -> Units:
    """Units for a run: none (all exponents 0) where its numbers are of moderate size; at rest the span matters."""
    inertia = float(problem.body.moments.max())
    exponent = math.frexp(_rate(problem, span, inertia))[1]
    size = math.frexp(inertia)[1]
    if abs(exponent) <= NEAR and abs(size) <= WIDE:
        return NO_UNITS
    time, mass = -exponent if abs(exponent) > NEAR else 0, size if abs(size) > WIDE else 0
    # the factor of the torque must be a double; where it would not be, the unit of time goes half of the way
    return Units(min(max(time, (mass - LARGEST) // 2 + 1), (mass + LARGEST) // 2), mass)


def units_of_steps(problem: Problem, dt: float, count: int) -> Units:
    """The same for this many equal steps, at the least cost for usual numbers."""
    speed = max(map(abs, problem.omega.tolist()))
    if 2.0**-NEAR < speed < 2.0**NEAR and 2.0**-WIDE < problem.body.moments.max() < 2.0**WIDE:
        return NO_UNITS
    return units_of(problem, count * dt)


def _rate(problem: Problem, span: float, inertia: float) -> float:
    """How fast the motion is: the angular velocity, or that which the torque gives it in a radian."""
    rates = [float(np.abs(problem.omega).max())]
    if problem.field is not None:
        times = [problem.t0]
        if "t" in symbols_in(problem.field.graph[0]):  # a torque that begins later counts too, however short it is
            times, rates = np.linspace(problem.t0, problem.t0 + span, MOMENTS).tolist(), [*rates, 1 / span]
        attitudes = (problem.quaternion, (0.5, 0.5, -0.5, 0.5), (0.5, -0.5, 0.5, 0.5))
        for t, q in itertools.product(times, attitudes):
            try:
                torque = problem.field.torque_value(t, matrix(q), tuple(problem.omega.tolist()))
            except (ArithmeticError, ValueError):
                continue
            rates.append(math.sqrt(max(map(abs, torque)) / inertia))
    return max((x for x in rates if 0 < x < math.inf), default=1 / span)


def rescaled(problem: Problem, units: Units) -> Problem:
    """The problem in other units."""
    if units == NO_UNITS:
        return problem
    made = copy.copy(problem)
    made.body = _body(problem.body, units)
    made.field = None if problem.field is None else ScaledField(problem.field, units)
    made.momentum = tuple(math.ldexp(x, units.time - units.inertia) for x in problem.momentum)  # type: ignore[assignment]
    made.t0 = math.ldexp(problem.t0, -units.time)
    made.t_end = made.dt = made.reference = None
    return made


def _body(body: Body, units: Units) -> Body:
    made = copy.copy(body)
    made.inertia, made.moments = np.ldexp(body.inertia, -units.inertia), np.ldexp(body.moments, -units.inertia)
    return made


NO_UNITS = Units()
