"""Equal steps in a field that jumps in time: a step that meets a jump is made in parts (`kernels/cut.py`).

Thrusters, tables and conditions on t are one smooth formula between two edges (`physics/fields/switches.py`). Steps end
at every edge, and a further step leads to the end of the first. So all states stay on the grid of times t0 + n h, every
part is a step in a smooth field, and the order of the method is kept.
"""

from __future__ import annotations

import copy
import functools
import warnings

import numpy as np

from ..errors import ResultWarning
from ..kernels.loops import NEAR
from ..methods import Method
from ..physics.fields import Field
from ..physics.fields.edged import EdgedField
from ..physics.fields.switches import PiecewiseField, between, edges, sharpened
from ..physics.problem import Problem
from .integrator import number_type
from .step_control import EPS


def can_cut(problem: Problem, method: Method) -> bool:
    """Return whether steps of a method end at the edges of a field in time, if it has some."""
    carries = method.memory or method.has_own_time or method.before is not None or method.noise is not None
    field = problem.field
    return bool(method.has_step and not carries and field is not None and field.bath is None)


def cut_at_edges(problem: Problem, method: Method, end: float, digits: int | None = None) -> Problem:
    """Return the problem of a run to an end time, with the edges of its field; the problem itself if there are none."""
    return with_edges(problem, end, digits) if can_cut(problem, method) else problem


def with_edges(problem: Problem, end: float, digits: int | None = None) -> Problem:
    """Return the same for steps of which every part is a step by itself."""
    field = None if problem.field is None else _with_edges(problem.field, *sorted((problem.t0, end)), digits)
    if field is None:
        return problem
    made = copy.copy(problem)
    made.field = field
    return made


@functools.lru_cache(maxsize=64)
def _with_edges(field: Field, start: float, end: float, digits: int | None) -> EdgedField | None:
    """Return the field with its edges from `start` to `end`, both included; None if there are none."""
    held = between(field)
    if not isinstance(held, PiecewiseField):
        return None
    near = NEAR * EPS * max(abs(start), abs(end))
    found = edges(field, start - near, end + near)
    if not len(found):
        return None
    borders = np.concatenate([[start], found, [end]])
    moments = borders[:-1] + (borders[1:] - borders[:-1]) / 2
    if digits is None:
        return EdgedField(held, found, moments)
    number = number_type(digits)
    return EdgedField(held, np.array([sharpened(field, x, number) for x in found], dtype=object), moments)


def warn_of_edges(problem: Problem, method: Method, end: float, remedy: str = "use another one-step method") -> None:
    """Say that the steps of a run to an end time crossed jumps of its field in time; `remedy` is what helps."""
    found = crossed_edges(problem.field, problem.t0, end)
    if len(found):
        warnings.warn(crossing(problem.field, method, found, remedy), ResultWarning, stacklevel=4)


def crossed_edges(field: Field | None, start: float, end: float) -> np.ndarray:
    """Return the edges of a field inside a run, in either direction of time."""
    return edges(field, *sorted((start, end)))


def crossing(field: Field | None, method: Method, found: np.ndarray, remedy: str) -> str:
    """Return the message that steps of a method cross edges."""
    assert field is not None
    where = f"at t = {found[0]:g}" if len(found) == 1 else f"at {len(found)} times, the first t = {found[0]:g}"
    return (
        f"{field.name} has a jump or a kink in time {where}, and steps of {method.name} do not end there, so that the "
        f"order is lost; {remedy}"
    )
