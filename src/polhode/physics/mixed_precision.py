"""Taylor steps that compute their smallest terms in single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.loops import fitted
from ..kernels.so3 import sub, times
from ..kernels.state import incremented
from ..numbers.dispatch import kernel, noinline
from ..numbers.primitives import all_lanes, finite, rough_log2, to_float32, to_float64, where, workspace
from ..numbers.types import Number
from ..symbolic.expression import compiled
from .fields import Field
from .taylor_steps import (
    _increments,
    _larger,
    _size,
    _summed,
    _terms,
    _weights,
    controlled_taylor_step,
    motion_series,
    rough_reach,
)

NEAR = 2.0
"""Largest ratio of two consecutive step lengths for which the unit of time of the series still suits the step."""

LEAST = 2.0**-40
"""Smallest first coefficient of a float32 series: above it no product of two coefficients underflows."""


@kernel
def _least(work: Any, stride: int) -> Number:
    """Minimum over all series of the larger of the first two coefficients; series with both zero are left out."""
    least = 1 + 0 * work[0]
    for row in range(stride):
        size = _larger(abs(work[row]), abs(work[stride + row]))
        least = where((size > 0) & (size < least), size, least)
    return least


@kernel
def _terms_to_float32(terms: Any) -> Any:
    w, s, v = terms
    return (
        (to_float32(w[0]), to_float32(w[1]), to_float32(w[2])),
        to_float32(s),
        (to_float32(v[0]), to_float32(v[1]), to_float32(v[2])),
    )


@kernel
def _terms_to_float64(terms: Any) -> Any:
    w, s, v = terms
    return (
        (to_float64(w[0]), to_float64(w[1]), to_float64(w[2])),
        to_float64(s),
        (to_float64(v[0]), to_float64(v[1]), to_float64(v[2])),
    )


@kernel
def _difference(a: Any, b: Any) -> Any:
    return sub(a[0], b[0]), a[1] - b[1], sub(a[2], b[2])


def controlled_steps_in_mixed_precision(
    field: Field | None, has_principal_rotation: bool, number: Callable[[Any], Any]
) -> tuple[Callable[..., Any], ...]:
    """`controlled_taylor_step` as two kernels: the first step in double precision, later ones in mixed precision.

    orders = (last, first, radius): coefficients above `first` are float32, those of `first` are computed in both
    precisions, and the unit of time is `radius` times the proposed (previous) step: about the radius of convergence.
    Products are summed in pairs. If the step length changed by more than a factor of two, if the two precisions
    disagree visibly, or if float32 overflowed, the step is recomputed in double precision.
    """
    expansion = motion_series(field, has_principal_rotation, paired=True)
    fill, extend = (compiled(text, expansion.constants, number) for text in (expansion.text, expansion.more))
    size, rows, stride = expansion.size, expansion.rows, expansion.stride
    usual = noinline(controlled_taylor_step(field, has_principal_rotation, number))

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, orders: Any) -> Any:
        (q, m), (order, first, radius) = y, orders
        w, work, workspace32 = times(system[1], m), workspace(q[0], size), workspace(to_float32(q[0]), size)
        unit = to_float64(to_float32(radius * proposal))  # the same value in both precisions
        fill(t, q, w, system, unit, work, first)
        extend(t, q, w, system, unit, work, first, workspace32, order)

        (turn, (a, b, c)), end = _weights(system, tolerance), _terms(workspace32, stride * order, rows)
        weights = to_float32(turn), (to_float32(a), to_float32(b), to_float32(c))
        last, before = _size(end, weights), _size(_terms(workspace32, stride * (order - 1), rows), weights)
        long = unit * rough_reach(last, before, order)
        h = fitted(t, where(long < left, long, left))
        part = h / unit
        again = _difference(
            _terms(workspace32, stride * first, rows), _terms_to_float32(_terms(work, stride * first, rows))
        )
        little = rough_log2(_size(again, weights)) + first * rough_log2(to_float32(part)) < 0

        end = _terms_to_float64(_summed(end, workspace32, rows, stride, order - 1, first + 1, to_float32(part)))
        dm, vector, scalar = _increments(end, work, rows, stride, first, part, system)
        new = incremented((q, m), dm, vector, scalar)
        fine = finite(last + before) & little & (_least(workspace32, stride) >= LEAST)
        fine = fine & (long < NEAR * proposal) & (NEAR * long > proposal)
        if all_lanes(fine):
            return new, h, long, fine
        other, step, long_step, _ = usual(t, y, proposal, left, system, tolerance, order)
        h = where(fine, h, step)
        return chosen(fine, new, other), h, where(fine, long, long_step), h == h

    @kernel
    def begin(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, orders: Any) -> Any:
        return usual(t, y, proposal, left, system, tolerance, orders[0])

    return begin, controlled_step


@kernel
def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """Select one of two states (q, m) by a condition."""
    (a, b), (c, d) = yes, no
    q = (
        where(condition, a[0], c[0]),
        where(condition, a[1], c[1]),
        where(condition, a[2], c[2]),
        where(condition, a[3], c[3]),
    )
    return q, (where(condition, b[0], d[0]), where(condition, b[1], d[1]), where(condition, b[2], d[2]))
