"""Adaptive steps with many digits: the same loops in plain Python, on mpmath numbers.

The order of a Taylor step follows from the tolerance, -ln(tolerance)/2 (Jorba and Zou 2005), so that 50 digits need
about twice as many terms as 25, and steps of the same length.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from ..kernels.loops import adaptive_stepping, interpolating
from ..methods import Method
from ..methods.adaptive.controller import controlled_step_from_estimate
from ..methods.adaptive.dormand_prince import dormand_prince
from ..methods.families import taylor as lie_taylor
from ..numbers.precision import guarded
from ..physics.fields.switches import sharpened
from ..physics.problem import Problem
from ..physics.taylor_steps import body, controlled_taylor_step
from .error_estimate import FINEST, RATIO
from .integrator import number_type, torque_kernel
from .schedule import Schedule
from .step_control import AdaptiveStep, is_smooth, taylor_order, working_eps
from .system import in_plain_python

ROWS = 16
"""States in a buffer of the loop: plain Python makes ten to a hundred steps in a second."""


@dataclasses.dataclass(frozen=True)
class PreciseStep(AdaptiveStep):
    """A kind of adaptive step whose kernel takes mpmath numbers."""

    few_rows: int = ROWS
    most_rows: int = ROWS

    @functools.cached_property
    def adaptive_loop(self) -> Callable[..., Any]:
        """The loop over steps; all its numbers are in the working precision."""
        loop, number, digits = adaptive_stepping(_rejecting(self.make())), number_type(self.digits), self.digits

        def in_digits(
            t: Any, end: Any, last: Any, longest: Any, proposal: Any, y: Any, system: Any, tolerance: Any,
            largest: Any, order: int, times: Any, rows: Any,
        ) -> Any:  # fmt: skip
            with guarded(digits):
                numbers = (number(x) for x in (t, end, last, longest, proposal))
                return loop(*numbers, y, system, number(tolerance), number(largest), order, times, rows)

        return in_digits

    @functools.cached_property
    def interpolate(self) -> Callable[..., bool]:
        """The dense output."""
        return in_plain_python(interpolating(self.make()))


def _rejecting(controlled_step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a controlled step that rejects a step with undefined numbers, such as the root of -1."""

    def rejects(t: Any, y: Any, proposal: Any, left: Any, system: Any, weights: Any, order: int) -> Any:
        try:
            new, step, following, accepted = controlled_step(t, y, proposal, left, system, weights, order)
            _ = max(x for part in new for x in part)  # complex numbers have no order
        except (ArithmeticError, TypeError, ValueError):
            return y, left, min(proposal, left) / 5, False
        return new, step, following, accepted

    return rejects


def taylor(problem: Problem, digits: int) -> PreciseStep:
    """Return Taylor steps of any order."""
    most = taylor_order(FINEST * working_eps(digits) / RATIO, most=10**6)
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation
    make = functools.partial(controlled_taylor_step, body(field, has_principal_rotation), number_type(digits), most)
    order = functools.partial(taylor_order, most=most)
    return PreciseStep(lie_taylor.taylor.__name__, (), make, order, has_proposal=False, digits=digits)


def estimated(problem: Problem, method: Method, digits: int) -> PreciseStep:
    """Return steps of a method that estimates its errors."""

    def make() -> Any:
        number = number_type(digits)
        return controlled_step_from_estimate(method, number, torque_kernel(problem, number, method))

    return PreciseStep(method.name, (), make, lambda tolerance: int(method.order), digits=digits)


def kind_of(problem: Problem, digits: int) -> PreciseStep:
    """Return Taylor steps, or for a field with branches those of an embedded pair."""
    return taylor(problem, digits) if is_smooth(problem.field) else estimated(problem, dormand_prince, digits)


def with_exact_edges(problem: Problem, legs: Schedule, digits: int) -> Schedule:
    """Return the schedule with the ends of legs at which the field switches in all digits."""
    if legs.problem is problem:
        return legs
    number = number_type(digits)
    ends = [sharpened(problem.field, leg.end, number) for leg in legs.legs[:-1]]
    moved = tuple(leg._replace(end=end) for leg, end in zip(legs.legs, ends, strict=False))
    return dataclasses.replace(legs, legs=(*moved, legs.legs[-1]))
