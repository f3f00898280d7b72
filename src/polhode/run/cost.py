"""Count the operations in a step by running it on numbers that count them."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

from ..kernels.loops import first_step
from ..kernels.state import with_memory
from ..methods import Method
from ..numbers import floats
from ..numbers.dispatch import Floats, register
from ..numbers.primitives import FUNCTIONS
from ..physics.problem import Problem
from .ensemble.lane_steps import adaptive_method, lane_steps
from .integrator import check_fit, torque_kernel

TALLY: Counter[str] = Counter()


class Counted(float):
    """A float that counts its operations in `TALLY`."""

    def __add__(self, other: Any) -> Counted:
        return _count_operation("add", float.__add__(self, other))

    def __sub__(self, other: Any) -> Counted:
        return _count_operation("add", float.__sub__(self, other))

    def __rsub__(self, other: Any) -> Counted:
        return _count_operation("add", float.__rsub__(self, other))

    def __mul__(self, other: Any) -> Counted:
        return _count_operation("mul", float.__mul__(self, other))

    def __truediv__(self, other: Any) -> Counted:
        return _count_operation("div", float.__truediv__(self, other))

    def __rtruediv__(self, other: Any) -> Counted:
        return _count_operation("div", float.__rtruediv__(self, other))

    def __neg__(self) -> Counted:
        return Counted(float.__neg__(self))

    def __abs__(self) -> Counted:
        return Counted(float.__abs__(self))

    __radd__, __rmul__ = __add__, __mul__


def _count_operation(what: str, value: Any) -> Counted:
    TALLY[what] += 1
    return Counted(value)


class CountedFunctions(Floats):
    """Elementary functions of counting numbers; `where` costs nothing."""

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        """Select by a condition."""
        return yes if condition else no


def _counting(name: str) -> Any:
    real = getattr(Floats, name)
    kind = "sqrt" if name == "sqrt" else "function"
    return staticmethod(lambda *args: _count_operation(kind, real(*args)))


for _name in FUNCTIONS:
    setattr(CountedFunctions, _name, _counting(_name))
register(Counted, CountedFunctions)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Operations in one step: sums, products, quotients, square roots, elementary functions."""

    add: int
    mul: int
    div: int
    sqrt: int
    function: int

    @property
    def flops(self) -> int:
        """Total of sums, products, quotients and square roots."""
        return self.add + self.mul + self.div + self.sqrt


def _counting_too(value: Any) -> Any:
    """Convert nested tuples of floats to counting numbers."""
    return tuple(map(_counting_too, value)) if isinstance(value, tuple) else Counted(value)


def cost(method: Method, problem: Problem, dt: float) -> Cost:
    """Count the operations in one step of a method (the third, so that start-up is excluded)."""
    check_fit(method, problem)

    def number(value: Any) -> Counted:
        return Counted(floats.number(value))

    step, torque = method.build(floats.number), torque_kernel(problem, floats.number, method)
    y, system = _counting_too(problem.kernel_data(floats.number))
    if method.memory:
        y = with_memory(method.memory)(y)
        if method.before:
            y, _ = method.before(floats.number)(number(dt), number(problem.t0), y, system, torque)
    for n in range(3):
        TALLY.clear()
        y, residual = step(number(dt), number(problem.t0 + n * dt), y, system, torque)
    if not residual <= 0 or not all(math.isfinite(x) for part in y for x in part):
        raise ArithmeticError(f"{method.name} failed with dt = {dt:g}")
    return _tallied()


def cost_to_tolerance(problem: Problem, tolerance: float) -> Cost:
    """Count the operations in one step of an ensemble to a tolerance (the second), both precisions together."""
    assert problem.field is not None
    steps = lane_steps(problem, adaptive_method(problem.field, tolerance), tolerance)
    controlled_step = steps.make()
    weights = (tolerance**-2, (tolerance * math.hypot(*problem.momentum)) ** -2)
    y, system = _counting_too(problem.kernel_data(floats.number))
    t, left = Counted(problem.t0), Counted(math.inf)
    proposal = first_step(steps.angle, left, y[1], system)
    y, h, proposal, _ = controlled_step(t, y, proposal, left, system, weights, steps.orders)
    TALLY.clear()
    controlled_step(t + h, y, proposal, left, system, weights, steps.orders)
    return _tallied()


def _tallied() -> Cost:
    return Cost(**{field.name: TALLY[field.name] for field in dataclasses.fields(Cost)})
