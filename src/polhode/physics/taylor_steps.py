"""Taylor steps of the motion of a body, of fixed and of adaptive length."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..kernels.loops import fitted, weights_of_errors
from ..kernels.so3 import add, exp, scale, times, unrotate
from ..kernels.state import incremented
from ..kernels.unroll import unrolled_kernel
from ..numbers import floats
from ..numbers.dispatch import kernel
from ..numbers.primitives import exp as exponential
from ..numbers.primitives import log, rough_exp2, rough_log2, sqrt, to_float32, to_float64, where, workspace
from ..numbers.types import Number, Vec3
from ..symbolic.expression import compiled
from ..taylor.packed import PackedWriter
from ..taylor.writer import Series, Writer, series
from .equations import PARAMETERS, attitude_rates, averaging, spinning, starts, torque_of, working
from .fields import Field
from .fields.trace import once_for_formula


@kernel
def polynomial3(work: Any, a: int, b: int, c: int, stride: int, order: int, h: Number) -> Vec3:
    """Three series at h without their constant terms, by Horner's rule."""
    last = stride * order
    x, y, z = work[a + last], work[b + last], work[c + last]
    for k in range(1, order):
        at = last - stride * k
        x, y, z = x * h + work[a + at], y * h + work[b + at], z * h + work[c + at]
    return x * h, y * h, z * h


@once_for_formula
def lie_taylor_series(field: Field | None, has_principal_rotation: bool, order: int, work: bool = False) -> Series:
    """The series of w and Y, of the work if requested, and of q if there is a torque."""
    torque = torque_of(field, has_principal_rotation)
    rates = {f"Y{i}": x for i, x in enumerate(averaging(order).values())} | spinning(torque)
    if torque is not None:
        rates |= (working(torque) if work else {}) | attitude_rates()
    parameters = f"{PARAMETERS}, lead" if work else PARAMETERS
    return series(parameters, starts(len(field.parameters) if field else 0), rates, (), order + 1)


def lie_taylor_kernel(
    field: Field | None, has_principal_rotation: bool, order: int, number: Callable[[Any], Any], work: bool = False
) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> (Y(h), Pi(h)), with series up to the given order.

    Without a torque the spatial momentum is constant. With a torque Pi(h) comes from the series of w. With `work` the
    kernel is (t, q, m, system, h, lead) -> (Y(h), Pi(h), change of sum lead_i Pi_i^2 by the torque).
    """
    expansion = lie_taylor_series(field, has_principal_rotation, order, work and field is not None)
    fill, size, stride = compiled(expansion.text, expansion.constants, number), expansion.size, expansion.stride
    a, b, c, d, e, f = expansion.rows[:6]
    g = expansion.rows[6] if field is not None else 0

    @kernel
    def free(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = workspace(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        turn = polynomial3(work, a, b, c, stride, order, h)
        return turn, unrotate(exp(turn), m)

    @kernel
    def ended(work: Any, m: Any, system: Any, h: Any) -> Any:
        turn, change = polynomial3(work, a, b, c, stride, order, h), polynomial3(work, d, e, f, stride, order, h)
        return turn, add(m, times(system[0], change))

    @kernel
    def forced(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = workspace(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        return ended(work, m, system, h)

    @kernel
    def free_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        turn, end = free(t, q, m, system, h)
        return turn, end, 0 * h

    @kernel
    def forced_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        work = workspace(h * q[0], size)
        fill(t, q, times(system[1], m), system, lead, 1, work, order)
        turn, end = ended(work, m, system, h)
        return turn, end, polynomial3(work, g, g, g, stride, order, h)[0]

    if work:
        return free_at_work if field is None else forced_at_work
    return free if field is None else forced


SPLIT = 2.0**29 + 1
"""Factor that divides the bits of a double: x SPLIT - (x SPLIT - x) has the first 24 of x (Dekker 1971)."""

MOST = 31
"""Highest order of the series of an adaptive step."""

BODY = 7
"""Series of a body: w and q come first."""


@once_for_formula
def motion_series(
    field: Field | None, has_principal_rotation: bool, order: int = MOST, writer: type[Writer] = Writer
) -> Series:
    """The series of w and q."""
    rates = spinning(torque_of(field, has_principal_rotation)) | attitude_rates()
    return series(PARAMETERS, starts(len(field.parameters) if field else 0), rates, (), order + 1, writer)


class Terms(NamedTuple):
    """Kernels for the coefficients of one order of some series, as a tuple of numbers."""

    read: Callable[..., Any]
    """(work, order) -> the coefficients."""
    summed: Callable[..., Any]
    """(end, work, order, last, h): Horner's rule from `order` to `last`; `end` replaces the terms above `order`."""
    size: Callable[..., Any]
    """(terms, weights) -> their weighted maximum norm."""
    to_float32: Callable[..., Any]
    to_float64: Callable[..., Any]
    difference: Callable[..., Any]
    """(a, b) -> a - b."""


@functools.cache
def terms_of(rows: tuple[int, ...], stride: int) -> Terms:
    """Kernels for the series in these rows of a workspace."""
    places = range(len(rows))
    names = [f"x{i}" for i in places]

    def each(text: str) -> str:
        """One entry for each series: # is its number, @ its row."""
        return (
            "(" + "".join(f"{text.replace('#', str(i)).replace('@', str(row))}, " for i, row in enumerate(rows)) + ")"
        )

    read = unrolled_kernel("work, order", each(f"work[@ + {stride} * order]"))
    horner = [f"    at = {stride} * (order - k)", f"    {', '.join(names)}, = {each('x# * h + work[@ + at]')}"]
    summed = unrolled_kernel(
        "end, work, order, last, h", f"({', '.join(names)},)", f"{', '.join(names)}, = end",
        "for k in range(order - last + 1):", *horner,
    )  # fmt: skip
    largest = [f"size = larger(size, abs(terms[{i}]) * weights[{i}])" for i in places[1:]]
    return Terms(
        read,
        summed,
        unrolled_kernel("terms, weights", "size", "size = abs(terms[0]) * weights[0]", *largest, larger=_larger),
        unrolled_kernel("terms", each("narrow(terms[#])"), narrow=to_float32),
        unrolled_kernel("terms", each("wide(terms[#])"), wide=to_float64),
        unrolled_kernel("a, b", each("a[#] - b[#]")),
    )


@kernel
def _increments(sums: Any, h: Number, system: Any) -> Any:
    """Increments of the momentum, of the vector part of q, and (three times) of its scalar part.

    `sums` are those of the series of w and q from the first order on, divided by h.
    """
    s = sums[3] * h
    vector = (h * sums[4], h * sums[5], h * sums[6])
    return times(system[0], (h * sums[0], h * sums[1], h * sums[2])), vector, (s, s, s)


def taylor_kernel(
    field: Field | None, has_principal_rotation: bool, order: int, number: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> increments for `state.incremented`, by series of w and q to the given order."""
    expansion = motion_series(field, has_principal_rotation, order)
    fill, size = compiled(expansion.text, expansion.constants, number), expansion.size
    read, summed, *_ = terms_of(expansion.rows, expansion.stride)

    @kernel
    def expanded(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = workspace(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        return _increments(summed(read(work, order), work, order - 1, 1, h), h, system)

    return expanded


@kernel
def _larger(a: Number, b: Number) -> Number:
    return where(a > b, a, b)


def sums_of(rows: tuple[int, ...], stride: int) -> Callable[..., Any]:
    """Kernel ((work, order), h) -> the sums of series from the first order on, divided by h."""
    read, summed, *_ = terms_of(rows, stride)

    @kernel
    def sums(expanded: Any, h: Any) -> Any:
        work, order = expanded
        return summed(read(work, order), work, order - 1, 1, h)

    return sums


class Expanded(NamedTuple):
    """A system that Taylor steps integrate: a body, alone or with a variation of its motion."""

    series: Callable[[int, type[Writer]], Series]
    """The series, from the highest order and the writer of their kernels: w and q, and further ones."""
    start: Callable[..., Any]
    """Kernel (y, system) -> (q, w), the second with the initial values of the further series."""
    weights: Callable[..., Any]
    """Kernel (y, system, squares) -> weights of the errors of all series, from those of the squared errors."""
    ended: Callable[[Callable[[int], Callable[..., Any]]], Callable[..., Any]]
    """Makes the kernel (y, sums, part, h, system, expanded) -> the state after a step h, `part` of the unit of time.

    Its argument makes the kernel (expanded, part) -> the sums of the series from some number on, divided by `part`.
    """
    chosen: Callable[..., Any]
    """Kernel (condition, y, y) -> one of two states."""


@kernel
def _body_at_start(y: Any, system: Any) -> Any:
    return y[0], times(system[1], y[1])


@kernel
def body_weights(y: Any, system: Any, squares: Any) -> Any:
    """Weights of errors of w and q, from those of the squares of attitude and momentum; q holds half the angle."""
    (a, b, c), turn = scale(sqrt(squares[1]), system[0]), 2 * sqrt(squares[0])
    return a, b, c, turn, turn, turn, turn


@kernel
def body_at_end(y: Any, sums: Any, part: Any, h: Any, system: Any, expanded: Any) -> Any:
    """The body after a step."""
    dm, vector, scalar = _increments(sums, part, system)
    return incremented((y[0], y[1]), dm, vector, scalar)


@kernel
def chosen_body(condition: Any, yes: Any, no: Any) -> Any:
    """Select one of two states (q, m) by a condition."""
    a, b, c, d = yes[0], yes[1], no[0], no[1]
    q = (
        where(condition, a[0], c[0]),
        where(condition, a[1], c[1]),
        where(condition, a[2], c[2]),
        where(condition, a[3], c[3]),
    )
    return q, (where(condition, b[0], d[0]), where(condition, b[1], d[1]), where(condition, b[2], d[2]))


def body(field: Field | None, has_principal_rotation: bool) -> Expanded:
    """A body alone."""
    return Expanded(
        lambda most, writer: motion_series(field, has_principal_rotation, most, writer), _body_at_start,
        body_weights, lambda sums: body_at_end, chosen_body,
    )  # fmt: skip


@kernel
def reach(last: Number, before: Number, order: int, left: Number) -> Number:
    """The h at which the last two terms, of these sizes at h = 1, are no larger than 1 (Jorba and Zou 2005)."""
    one = 1 + 0 * left
    a = log(where(last > 0, last, one)) * (1 / order)
    b = log(where(before > 0, before, one)) * (1 / (order - 1))
    largest = where((last > 0) & (before > 0), _larger(a, b), where(last > 0, a, b))
    return where((last > 0) | (before > 0), exponential(-largest), left)


@kernel
def rough_reach(last: Number, before: Number, order: int) -> Number:
    """As `reach`, to a few parts in a thousand; from float32 numbers in SIMD lanes."""
    return rough_exp2(to_float64(-_larger(rough_log2(last) * (1 / order), rough_log2(before) * (1 / (order - 1)))))


@kernel
def _rough_reach_of_one(last: Number, before: Number, order: int, left: Number) -> Number:
    """As `reach`, to 24 bits: runs in other units of time, with other round-off in it, so get the same steps."""
    long = rough_reach(last, before, order)
    wide = SPLIT * long
    return where((last > 0) | (before > 0), wide - (wide - long), left)


def favouring_series(expanded: Expanded, short: int) -> Callable[..., Any]:
    """Function (t, end, longest, y, system, tolerance, order, cost, lengths) -> whether Taylor steps need less work.

    They cost `cost` times as much as other steps, which are `lengths` times as long as terms of order `short` reach; no
    step is longer than `longest`. Taylor steps are the longer ones if their series converges fast, for example that of
    a nearly uniform rotation.
    """
    expansion = expanded.series(MOST, PackedWriter)
    fill, size = compiled(expansion.text, expansion.constants, floats.number), expansion.size
    read, _, size_of, *_ = terms_of(expansion.rows, expansion.stride)
    start, weights_of = expanded.start, expanded.weights

    def favours_series(
        t: Any, end: Any, longest: Any, y: Any, system: Any, tolerance: Any, order: int, cost: Any, lengths: Any
    ) -> Any:
        q, w = start(y, system)
        work = workspace(q[0], size)
        fill(t, q, w, system, 1, work, order)
        squares, _ = weights_of_errors(tolerance, end - t, y[1], 0 * t, system)
        weights = weights_of(y, system, squares)
        last, before = size_of(read(work, order), weights), size_of(read(work, order - 1), weights)
        here, lower = size_of(read(work, short), weights), size_of(read(work, short - 1), weights)
        series, other = rough_reach(last, before, order), lengths * rough_reach(here, lower, short)
        return where(series < longest, series, longest) >= cost * where(other < longest, other, longest)

    return favours_series


def packed_taylor_step(expanded: Expanded) -> Callable[..., Any]:
    """`controlled_taylor_step` for one body in doubles, with vector instructions and rough step lengths."""
    return controlled_taylor_step(expanded, floats.number, MOST, PackedWriter, _rough_reach_of_one)


@kernel
def _one(proposal: Number) -> int:
    """The unit of time of the run."""
    return 1


def controlled_taylor_step(
    expanded: Expanded, number: Callable[[Any], Any], most: int = MOST, writer: type[Writer] = Writer,
    reach: Callable[..., Any] = reach, unit_of: Callable[..., Any] = _one,
) -> Callable[..., Any]:  # fmt: skip
    """Adaptive step: one expansion, evaluated as far ahead as the weights of the errors allow.

    `most` is the highest order that the step is called with, `unit_of` the kernel that finds the unit of time of the
    series from the proposed step.
    """
    expansion = expanded.series(most, writer)
    fill, size = compiled(expansion.text, expansion.constants, number), expansion.size
    terms = terms_of(expansion.rows, expansion.stride)
    read, size_of = terms.read, terms.size
    start, weights_of = expanded.start, expanded.weights
    sums = sums_of(expansion.rows, expansion.stride)
    ended = expanded.ended(lambda first: sums_of(expansion.rows[first:], expansion.stride))

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, squares: Any, order: int) -> Any:
        (q, w), unit = start(y, system), unit_of(proposal)
        work = workspace(q[0], size)
        fill(t, q, w, system, unit, work, order)
        weights = weights_of(y, system, squares)
        last, before = size_of(read(work, order), weights), size_of(read(work, order - 1), weights)
        long = unit * reach(last, before, order, left / unit)
        h = fitted(t, where(long < left, long, left))
        part = h / unit
        return ended(y, sums((work, order), part), part, h, system, (work, order)), h, long, True

    return controlled_step
