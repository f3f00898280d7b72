"""What a parameter that moves a jump of the field in time does to tangents.

At the time tau(a) of a jump the rate of the state changes from f- to f+. If tau grows, f- acts longer:

    dx+ = dx- + (f- - f+) dtau/da da.

Only the torque jumps, so f- - f+ has no rotation. If several conditions change at once, each adds its own jump.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from ..errors import ResultWarning
from ..kernels.cut import NEAR
from ..kernels.loops import COLUMNS
from ..numbers import floats
from ..physics.fields.moving_edges import changed_at, slopes_of_edge, torque_at_edge
from ..physics.fields.switches import edges, switch_parameters
from ..physics.problem import Problem
from ..results.derivatives import STATE
from .directions import Direction
from .step_control import EPS

ADDITIVE = 1e-9
"""Difference between the jump of a torque and the sum of the jumps of its conditions, relative, that is round-off."""


class MovingEdges(NamedTuple):
    """Jumps in time inside a run whose times depend on parameters.

    Attributes
    ----------
    times : (n,) in the order of the run
    before, after : (n,) times between the same edges as the run before and after each
    """

    times: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def some(self, which: np.ndarray) -> MovingEdges:
        """Return some of them, perhaps several times."""
        return MovingEdges(*(part[which] for part in self))


def moving_edges(problem: Problem, directions: list[Direction], start: float, end: float) -> MovingEdges | None:
    """Return the edges of a field inside a run, if one of the directions moves some of them."""
    field = problem.field
    if field is None or not {d.parameter for d in directions} & switch_parameters(field):
        return None
    low, high = sorted((start, end))
    near = NEAR * EPS * max(abs(low), abs(high))
    found = edges(field, low - near, high + near)
    outside = (found <= low + near) | (found >= high - near)
    if outside.any():
        warnings.warn(
            f"a jump of {field.name} lies on the start or the end of the run, t = {found[outside][0]:g}, where the "
            "derivatives by its time to both sides differ; it is held fixed there, so begin or end the run elsewhere",
            ResultWarning, stacklevel=2,
        )  # fmt: skip
    found = found[~outside]
    if not len(found):
        return None
    borders = np.concatenate([[low], found, [high]])
    moments = (borders[:-1] + borders[1:]) / 2
    if start < end:
        return MovingEdges(found, moments[:-1], moments[1:])
    return MovingEdges(found[::-1], moments[:0:-1], moments[-2::-1])


def inside(moving: MovingEdges, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which edges lie after the start of spans of a run and up to their ends: by number, and those of the spans.

    The third array says where the end of the span is later than the edge.
    """
    sign = 1.0 if len(starts) and ends[-1] >= starts[-1] else -1.0
    gone, left = sign * (moving.times[:, None] - starts), sign * (ends - moving.times[:, None])
    near = NEAR * EPS * np.maximum(abs(starts), abs(ends))
    which, at = np.nonzero((gone > near) & (left >= -near))
    return which, at, (left > near)[which, at]


def jumps_of(problem: Problem, moving: MovingEdges, rows: np.ndarray, directions: list[Direction]) -> np.ndarray:
    """Return (f- - f+) dtau/da (edges, 6, directions) at the states (edges, 7) on the edges, in principal axes."""
    field = problem.field
    assert field is not None
    found = np.zeros((len(rows), STATE, len(directions)))
    varied = [(k, d.parameter) for k, d in enumerate(directions) if d.parameter in switch_parameters(field)]
    columns, parameters = [k for k, _ in varied], [p for _, p in varied]
    _, (inertia, inverse, given) = problem.kernel_data(floats.number)
    count = len(field.parameters)
    for i, (edge, *moments) in enumerate(zip(*moving, strict=True)):
        which = changed_at(field, *moments)
        slopes = np.array([slopes_of_edge(field, k, edge, parameters) for k in which]).reshape(len(which), -1)
        system = inertia, inverse, (*given[:count], *moments, *given[count:])
        q, m = tuple(rows[i, :4].tolist()), tuple(rows[i, 4:COLUMNS].tolist())

        def torque(after: frozenset[int]) -> np.ndarray:
            kernel = torque_at_edge(field, after, floats.number, problem.body.has_principal_rotation)
            return np.array(kernel(edge, q, m, system), float)  # noqa: B023 - called within this pass of the loop

        old, new = torque(frozenset()), torque(frozenset(which))
        own = np.array([torque(frozenset([k])) - old for k in which]).reshape(len(which), 3)
        together = bool(len(slopes)) and (slopes == slopes[0]).all(0)
        additive = abs(own.sum(0) - (new - old)).max() <= ADDITIVE * (abs(old).max() + abs(new).max())
        with np.errstate(invalid="ignore"):
            each = np.where(own[:, :, None] == 0, 0.0, own[:, :, None] * slopes[:, None, :]).sum(0)
            if not additive:
                each = np.where(together, (new - old)[:, None] * slopes[0], np.nan)
        found[i][3:, columns] = -each
    if not np.isfinite(found).all():
        warnings.warn(
            f"conditions of {field.name} change together at t = {moving.times[~np.isfinite(found).all((1, 2))][0]:g} "
            "and depend on each other, or a condition only touches its edge there, so that there are no derivatives by "
            "their times: they are NaN; vary a parameter a little", ResultWarning, stacklevel=2,
        )  # fmt: skip
    return found


def warn_of_fixed_edges(problem: Problem, what: str) -> None:
    """Say that derivatives by parameters hold the times of jumps fixed."""
    field = problem.field
    if field is None or not switch_parameters(field):
        return
    warnings.warn(
        f"the parameters of {field.name} on which its jumps in time depend have derivatives in which these times are "
        f"held fixed, because {what}; use ph.solve(..., tangent=True) for one body without a controller",
        ResultWarning, stacklevel=3,
    )  # fmt: skip
