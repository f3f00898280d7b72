"""Taylor steps of the motion of a body, of fixed and of adaptive length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels.loops import fitted
from ..kernels.so3 import add, along, exp, scale, times, unrotate
from ..kernels.state import incremented
from ..numbers.dispatch import kernel
from ..numbers.primitives import exp as exponential
from ..numbers.primitives import log, rough_exp2, rough_log2, to_float64, where, workspace
from ..numbers.types import Number, Vec3
from ..symbolic.expression import compiled
from ..taylor.karatsuba import PairedWriter
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


MOST = 31
"""Highest order of the series of an adaptive step."""


@once_for_formula
def motion_series(field: Field | None, has_principal_rotation: bool, order: int = MOST, paired: bool = False) -> Series:
    """The series of w and q; `paired`: in a unit of time near the radius of convergence, with half the products."""
    rates, writer = (
        spinning(torque_of(field, has_principal_rotation)) | attitude_rates(),
        PairedWriter if paired else Writer,
    )
    return series(PARAMETERS, starts(len(field.parameters) if field else 0), rates, (), order + 1, writer)


@kernel
def _terms(work: Any, at: int, rows: Any) -> Any:
    """The coefficients of w and q from `at` on."""
    w0, w1, w2, q0, q1, q2, q3 = rows
    w, v = (work[w0 + at], work[w1 + at], work[w2 + at]), (work[q1 + at], work[q2 + at], work[q3 + at])
    return w, work[q0 + at], v


@kernel
def _summed(end: Any, work: Any, rows: Any, stride: int, order: int, last: int, h: Number) -> Any:
    """Horner's rule for the series of w and q from `order` down to `last`; `end` replaces the terms above `order`."""
    w, s, v = end
    for k in range(order - last + 1):
        a, b, c = _terms(work, stride * (order - k), rows)
        w, s, v = along(a, h, w), s * h + b, along(c, h, v)
    return w, s, v


@kernel
def _increments(end: Any, work: Any, rows: Any, stride: int, order: int, h: Number, system: Any) -> Any:
    """Increments of the momentum, of the vector part of q, and (three times) of its scalar part, from the series."""
    w, s, v = _summed(end, work, rows, stride, order, 1, h)
    s = s * h
    return times(system[0], scale(h, w)), scale(h, v), (s, s, s)


def _parts(series: Series, number: Callable[[Any], Any]) -> tuple[Any, int, Any, int]:
    """The kernel that fills a workspace with a series, and the size, rows and stride of the workspace."""
    return compiled(series.text, series.constants, number), series.size, series.rows, series.stride


def taylor_kernel(
    field: Field | None, has_principal_rotation: bool, order: int, number: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> increments for `state.incremented`, by series of w and q to the given order."""
    expansion = motion_series(field, has_principal_rotation, order)
    fill, size, rows, stride = _parts(expansion, number)

    @kernel
    def expanded(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = workspace(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        return _increments(_terms(work, stride * order, rows), work, rows, stride, order - 1, h, system)

    return expanded


@kernel
def _larger(a: Number, b: Number) -> Number:
    return where(a > b, a, b)


@kernel
def _weights(system: Any, tolerance: Any) -> Any:
    """Weights of errors of q and w, in units of the attitude and momentum tolerances; q holds half the angle."""
    return 2 / tolerance[0], scale(1 / tolerance[1], system[0])


@kernel
def _size(terms: Any, weights: Any) -> Number:
    """Weighted maximum norm of coefficients of w and q."""
    (w, s, v), (turn, push) = terms, weights
    a = _larger(abs(w[0]) * push[0], abs(w[1]) * push[1])
    a = _larger(a, abs(w[2]) * push[2])
    b = _larger(abs(s), abs(v[0]))
    b = _larger(b, _larger(abs(v[1]), abs(v[2])))
    return _larger(b * turn, a)


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
    """As `reach`, from float32 numbers, to a few parts in a thousand."""
    return rough_exp2(to_float64(-_larger(rough_log2(last) * (1 / order), rough_log2(before) * (1 / (order - 1)))))


def controlled_taylor_step(
    field: Field | None, has_principal_rotation: bool, number: Callable[[Any], Any], most: int = MOST
) -> Callable[..., Any]:
    """Adaptive step: one expansion, evaluated as far ahead as the tolerances (attitude, momentum) allow.

    `most` is the highest order that the step is called with.
    """
    expansion = motion_series(field, has_principal_rotation, most)
    fill, size, rows, stride = _parts(expansion, number)

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        q, m = y
        work = workspace(q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        weights, end = _weights(system, tolerance), _terms(work, stride * order, rows)
        before = _size(_terms(work, stride * (order - 1), rows), weights)
        long = reach(_size(end, weights), before, order, left)
        h = fitted(t, where(long < left, long, left))
        dm, vector, scalar = _increments(end, work, rows, stride, order - 1, h, system)
        return incremented((q, m), dm, vector, scalar), h, long, True

    return controlled_step
