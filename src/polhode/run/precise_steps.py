"""Adaptive steps with many digits: the same loops in plain Python, on mpmath numbers.

The order of a Taylor step follows from the tolerance, -ln(tolerance)/2 (Jorba and Zou 2005), so that 50 digits need
about twice as many terms as 25, and steps of the same length.
"""

from __future__ import annotations

import dataclasses
import functools

from ..methods import Method
from ..methods.adaptive.dormand_prince import dormand_prince
from ..methods.families import taylor as lie_taylor
from ..physics.fields.switches import sharpened
from ..physics.problem import Problem
from ..physics.taylor_steps import body, controlled_taylor_step
from .error_estimate import FINEST, RATIO
from .integrator import number_type
from .schedule import Schedule
from .step_control import TAYLOR, AdaptiveStep, is_smooth, taylor_order, working_eps
from .system import System

ROWS = 16
"""States in a buffer of the loop: plain Python makes ten to a hundred steps in a second."""


def taylor(problem: Problem, digits: int) -> AdaptiveStep:
    """Return Taylor steps of any order."""
    most = taylor_order(FINEST * working_eps(digits) / RATIO, most=10**6)
    field, has_principal_rotation = problem.field, problem.body.has_principal_rotation
    make = functools.partial(controlled_taylor_step, body(field, has_principal_rotation), number_type(digits), most)
    order = functools.partial(taylor_order, most=most)
    return AdaptiveStep(
        lie_taylor.taylor.__name__, System(problem, TAYLOR, digits), order, make, has_proposal=False, few_rows=ROWS,
        most_rows=ROWS,
    )  # fmt: skip


def estimated(problem: Problem, method: Method, digits: int) -> AdaptiveStep:
    """Return steps of a method that estimates its errors."""
    system, order = System(problem, method, digits), int(method.order)
    return AdaptiveStep(method.name, system, lambda tolerance: order, few_rows=ROWS, most_rows=ROWS)


def kind_of(problem: Problem, digits: int) -> AdaptiveStep:
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
