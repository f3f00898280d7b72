"""A method on a generic problem, in 50 digits: what all measurements start from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import mpmath

from ..kernels.loops import is_valid
from ..kernels.state import collapse, compensate, with_memory
from ..methods import Method
from ..methods.combinators.compose import whole
from ..numbers.multiprecision import number
from ..run.integrator import torque_kernel
from .generic_problems import Which, generic

DIGITS = 50
EXACT = mpmath.mpf(10) ** -44
"""A difference below this is round-off of 50 digits, amplified at most a million times."""
VISIBLE = mpmath.mpf(10) ** -22
"""A difference above this is a property of the method."""
LOCAL_STEPS = (2**-7, 2**-8)
"""Step sizes for measuring the order from local errors: the next order changes the slope by a few times 2^-8."""
FINE_STEPS = (2**-12, 2**-13)
"""Finer step sizes, for a leading error term that is small by accident: here the next term is below it."""
LARGE_STEP = 2**-3
"""Step size for the other checks: large, so that defects are visible."""
LARGER_STEP = 2**-1
"""Larger step size, for methods of high order whose defects would be too small."""


@functools.cache
def exact_flow(kind: str, which: Which, h: float) -> Any:
    """The exact solution of a generic problem after the time h."""
    from .reference import flow

    return flow(generic(kind, which), h, digits=DIGITS)


def fifty(check: Callable[..., Any]) -> Callable[..., Any]:
    """Run a check with 50 digits."""

    @functools.wraps(check)
    def run(*args: Any, **named: Any) -> Any:
        with mpmath.workdps(DIGITS + 5):
            return check(*args, **named)

    return run


class Setting:
    """A method on a generic problem, in 50 digits: state, system, torque and step."""

    def __init__(self, method: Method, kind: str, which: Which = 0, repeated: bool = False, bath: bool = True) -> None:
        """With `repeated`, use the repeated step of a processed method, without its processors.

        A method with noise is in a heat bath; without `bath` it is not, so that it has neither friction nor noise. A
        method with a chain has a thermostat.
        """
        links = 0 if method.thermostat is None else method.thermostat.links
        self.problem = generic(kind, which, bath and method.noise is not None, links)
        self.y, self.system = self.problem.kernel_data(number)
        self.torque = torque_kernel(self.problem, number, method)
        self.t = number(self.problem.t0)
        self.kernel = (method.build if repeated else whole(method))(number)
        self.method, self.repeated, self.which = method, repeated, which

    def initial_state(self, h: Any, torque: Any = None) -> Any:
        """The initial state for steps of h: with zero low parts, or with the memory filled."""
        if not (self.repeated and self.method.memory):
            return self.y
        y, before = with_memory(self.method.memory)(self.y), self.method.before
        return before(number)(number(h), self.t, y, self.system, torque or self.torque)[0] if before else y

    def step(self, h: Any, t: Any = None, y: Any = None, torque: Any = None) -> Any:
        """Make one step, which must succeed. A repeated step retains its memory."""
        y, t = self.initial_state(h) if y is None else y, self.t if t is None else t
        y = compensate(y) if self.method.compensated else y
        new, residual = self.kernel(number(h), t, y, self.system, torque or self.torque)
        if not is_valid(new, residual):
            raise ArithmeticError(
                f"a step of {h} was not solved in {DIGITS} digits: residual {mpmath.nstr(residual, 3)}"
            )
        return new if self.repeated and self.method.memory else collapse(new)

    def timed_step(self, h: Any) -> Any:
        """Make one step; return the state and the time it covers."""
        if not self.method.has_own_time:
            return self.step(h), h
        new = self.step(h)
        return collapse(new), new[2][0] + new[2][1] - self.t


SLOPE_TOLERANCE = 0.1
"""Measured orders within this distance of a whole number count as that number."""


def agrees(measured: float, declared: float) -> bool:
    """Whether a measured order is the declared one; NaN is none."""
    return measured == declared or abs(measured - declared) <= SLOPE_TOLERANCE


def largest(values: Iterable[Any]) -> Any:
    """The largest number; NaN if one of them is NaN (with `max` that depends on the order)."""
    found = list(values)
    undefined = [value for value in found if mpmath.isnan(value)]
    return undefined[0] if undefined else max(found)


def distance(a: Any, b: Any) -> Any:
    """Largest difference between the components of two states."""
    return largest(abs(x - y) for u, v in zip(a, b, strict=True) for x, y in zip(u, v, strict=True))
