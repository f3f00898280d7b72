"""Taylor steps whose smallest terms are of single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.loops import fitted
from ..kernels.so3 import sub, times
from ..kernels.state import moved
from ..numbers.dispatch import apart, kernel
from ..numbers.primitives import finite, narrow, rough_log2, scratch, settled, where, widen
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
    motion_series,
    rough_reach,
    taylor_stage,
)

NEAR = 2.0
"""How much longer or shorter than the step before a step may be, or its unit of time would not suit it."""

LEAST = 2.0**-40
"""A series of narrow numbers begins with at least so much: then no product of two of them, up to the last, is lost."""


@kernel
def _least(work: Any, stride: int) -> Number:
    """The smallest beginning of all series: of each the larger one of its first two coefficients, if it is not zero."""
    least = 1 + 0 * work[0]
    for row in range(stride):
        size = _larger(abs(work[row]), abs(work[stride + row]))
        least = where((size > 0) & (size < least), size, least)
    return least


@kernel
def _narrowed(terms: Any) -> Any:
    w, s, v = terms
    return (narrow(w[0]), narrow(w[1]), narrow(w[2])), narrow(s), (narrow(v[0]), narrow(v[1]), narrow(v[2]))


@kernel
def _widened(terms: Any) -> Any:
    w, s, v = terms
    return (widen(w[0]), widen(w[1]), widen(w[2])), widen(s), (widen(v[0]), widen(v[1]), widen(v[2]))


@kernel
def _difference(a: Any, b: Any) -> Any:
    return sub(a[0], b[0]), a[1] - b[1], sub(a[2], b[2])


def mixed_stages(field: Field | None, own_axes: bool, number: Callable[[Any], Any]) -> tuple[Callable[..., Any], ...]:
    """The stage of `taylor_stage` in two: for a first step as it is, then with narrow numbers and paired sums.

    orders = (last, first, radius): coefficients above `first` are narrow, those of `first` are computed both ways, and
    the unit of time is `radius` times the proposal, the step before: about the radius of convergence. If the step
    length changed by more than a factor of two, if the two precisions disagree visibly, or if float32 overflowed,
    the step is recomputed in double precision.
    """
    made = motion_series(field, own_axes, paired=True)
    fill, extend = (compiled(text, made.constants, number) for text in (made.text, made.more))
    size, rows, stride, usual = made.size, made.rows, made.stride, apart(taylor_stage(field, own_axes, number))

    @kernel
    def stage(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, orders: Any) -> Any:
        (q, m), (order, first, radius) = y, orders
        w, work, thin = times(system[1], m), scratch(q[0], size), scratch(narrow(q[0]), size)
        unit = widen(narrow(radius * proposal))  # the same for both kinds of numbers
        fill(t, q, w, system, unit, work, first)
        extend(t, q, w, system, unit, work, first, thin, order)

        (turn, (a, b, c)), end = _weights(system, tolerance), _terms(thin, stride * order, rows)
        weights = narrow(turn), (narrow(a), narrow(b), narrow(c))
        last, before = _size(end, weights), _size(_terms(thin, stride * (order - 1), rows), weights)
        long = unit * rough_reach(last, before, order)
        h = fitted(t, where(long < left, long, left))
        part = h / unit
        again = _difference(_terms(thin, stride * first, rows), _narrowed(_terms(work, stride * first, rows)))
        little = rough_log2(_size(again, weights)) + first * rough_log2(narrow(part)) < 0

        end = _widened(_summed(end, thin, rows, stride, order - 1, first + 1, narrow(part)))
        dm, vector, scalar = _increments(end, work, rows, stride, first, part, system)
        new = moved((q, m), dm, vector, scalar)
        fine = finite(last + before) & little & (_least(thin, stride) >= LEAST)
        fine = fine & (long < NEAR * proposal) & (NEAR * long > proposal)
        if settled(fine):
            return new, h, long, fine
        other, step, long_step, _ = usual(t, y, proposal, left, system, tolerance, order)
        h = where(fine, h, step)
        return chosen(fine, new, other), h, where(fine, long, long_step), h == h

    @kernel
    def begin(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, orders: Any) -> Any:
        return usual(t, y, proposal, left, system, tolerance, orders[0])

    return begin, stage


@kernel
def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """The one or the other state (q, m), by a condition."""
    (a, b), (c, d) = yes, no
    q = (
        where(condition, a[0], c[0]),
        where(condition, a[1], c[1]),
        where(condition, a[2], c[2]),
        where(condition, a[3], c[3]),
    )
    return q, (where(condition, b[0], d[0]), where(condition, b[1], d[1]), where(condition, b[2], d[2]))
