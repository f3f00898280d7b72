"""Taylor steps that compute their smallest terms in single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.loops import fitted
from ..numbers.dispatch import kernel, noinline
from ..numbers.primitives import all_lanes, finite, rough_log2, to_float32, to_float64, where, workspace
from ..numbers.types import Number
from ..symbolic.expression import compiled
from ..taylor.karatsuba import PairedWriter
from .taylor_steps import MOST, Expanded, _larger, controlled_taylor_step, rough_reach, terms_of

NEAR = 2.0
"""Largest ratio of a step to its proposal for which the unit of time of the series still suits the step."""

LEAST = 2.0**-40
"""Smallest first coefficient of a float32 series: above it no product of two coefficients underflows."""


@kernel
def _same(unit: Number) -> Number:
    return unit


@kernel
def _least(work: Any, stride: int) -> Number:
    """Minimum over all series of the larger of the first two coefficients; series with both zero are left out."""
    least = 1 + 0 * work[0]
    for row in range(stride):
        size = _larger(abs(work[row]), abs(work[stride + row]))
        least = where((size > 0) & (size < least), size, least)
    return least


def sums_in_mixed_precision(rows: tuple[int, ...], stride: int) -> Callable[..., Any]:
    """As `taylor_steps.sums_of`, with ((work, workspace32, first, order), h)."""
    read, summed, _, _, to_doubles, _ = terms_of(rows, stride)

    @kernel
    def sums(expanded: Any, h: Any) -> Any:
        work, workspace32, first, order = expanded
        end = summed(read(workspace32, order), workspace32, order - 1, first + 1, to_float32(h))
        return summed(to_doubles(end), work, first, 1, h)

    return sums


def controlled_step_in_mixed_precision(expanded: Expanded, number: Callable[[Any], Any]) -> Callable[..., Any]:
    """`controlled_taylor_step` in mixed precision.

    orders = (last, first, radius): coefficients above `first` are float32, those of `first` are computed in both
    precisions, and the unit of time is `radius` times the proposed step: about the radius of convergence. Products are
    summed in pairs. If the step is more than twice as long as proposed or less than half as long, if the two precisions
    disagree visibly, or if float32 over- or underflowed, the step is recomputed in double precision.
    """
    expansion = expanded.series(MOST, PairedWriter)
    fill, extend = (compiled(text, expansion.constants, number) for text in (expansion.text, expansion.more))
    size, rows, stride = expansion.size, expansion.rows, expansion.stride
    usual = noinline(controlled_taylor_step(expanded, number, unit_of=_same))
    read, _, size_of, to_singles, _, difference = terms_of(rows, stride)
    start, weights_of, chosen = expanded.start, expanded.weights, expanded.chosen
    sums = sums_in_mixed_precision(rows, stride)
    ended = expanded.ended(lambda first: sums_in_mixed_precision(rows[first:], stride))

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, squares: Any, orders: Any) -> Any:
        (q, w), (order, first, radius) = start(y, system), orders
        work, workspace32 = workspace(q[0], size), workspace(to_float32(q[0]), size)
        unit = to_float64(to_float32(radius * proposal))  # the same value in both precisions
        fill(t, q, w, system, unit, work, first)
        extend(t, q, w, system, unit, work, first, workspace32, order)

        weights = to_singles(weights_of(y, system, squares))
        last, before = size_of(read(workspace32, order), weights), size_of(read(workspace32, order - 1), weights)
        long = unit * rough_reach(last, before, order)
        h = fitted(t, where(long < left, long, left))
        part = h / unit
        again = difference(read(workspace32, first), to_singles(read(work, first)))
        little = rough_log2(size_of(again, weights)) + first * rough_log2(to_float32(part)) < 0

        known = work, workspace32, first, order
        new = ended(y, sums(known, part), part, h, system, known)
        fine = finite(last + before) & little & (_least(workspace32, stride) >= LEAST)
        fine = fine & (long < NEAR * proposal) & (NEAR * long > proposal)
        if all_lanes(fine):
            return new, h, long, fine
        inside = (unit > 0) & finite(unit)  # a unit of time beyond the range of float32 is one of doubles alone
        unit = where(inside, unit, radius * proposal)
        other, step, long_step, _ = usual(t, y, unit, left, system, squares, order)
        h = where(fine, h, step)
        return chosen(fine, new, other), h, where(fine, long, long_step), h == h

    return controlled_step
