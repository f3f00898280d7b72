"""The motion of a body as Taylor series in time: its equations as a graph, and the kernels made of it.

In principal axes, with q the attitude, w = I^-1 Pi the angular velocity and T the torque,

    q' = q (0, w)/2,        I_1 w_1' = (I_2 - I_3) w_2 w_3 + T_1  and cyclically,

and Y, with R(t + s) = R(t) exp(Y(s)), follows from w = dexp_-Y Y' (S. Buss, 2011; errata of the talk):

    Y' = sum_n B_n/n! (-ad_Y)^n w = w + Y x w/2 + c(|Y|^2) Y x (Y x w),   c(x) = sum c_n x^n,
    c_0 = 1/12,   (2n + 3) c_n = sum_i c_i c_(n-1-i),

the series of Bernoulli numbers summed by ad_Y^3 = -|Y|^2 ad_Y.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .carry import moved
from .expression import Expr, compiled, lift, symbol
from .fields import Field
from .loop import fitted
from .memo import KEPT
from .paired_series import PairedWriter
from .plans import substituted
from .scalar import (
    Number,
    Vec3,
    apart,
    finite,
    kernel,
    log,
    narrow,
    rough_exp2,
    rough_log2,
    scratch,
    settled,
    where,
    widen,
)
from .scalar import exp as exponential
from .series import NOTHING, Series, Writer, series
from .so3 import add, along, conj, cross, dot, exp, matrix, mul, rotate, scale, sub, times, unrotate

Graph = Any


def _symbols(letter: str, count: int) -> tuple[Expr, ...]:
    return tuple(symbol(f"{letter}{i}") for i in range(count))


Q, W, Y, INERTIA, INVERSE, OWN, LEAD = (
    _symbols(letter, count) for letter, count in (("q", 4), ("w", 3), ("Y", 3), ("I", 3), ("J", 3), ("o", 4), ("l", 3))
)
PARAMETERS = "t, q, w, system"
"""What the kernel that fills the room with coefficients is given, before the room and the order."""


def starts(parameters: int) -> dict[str, str]:
    """Where the kernel finds the symbols of the equations."""
    found = {"t": "t"} | {f"q{i}": f"q[{i}]" for i in range(4)} | {f"w{i}": f"w[{i}]" for i in range(3)}
    found |= {f"I{i}": f"system[0][{i}]" for i in range(3)} | {f"J{i}": f"system[1][{i}]" for i in range(3)}
    found |= {f"Y{i}": NOTHING for i in range(3)} | {"E": NOTHING} | {f"l{i}": f"lead[{i}]" for i in range(3)}
    return (
        found
        | {f"p{i}": f"system[2][{i}]" for i in range(parameters)}
        | {f"o{i}": f"system[2][{parameters + i}]" for i in range(4)}
    )


def in_principal_axes(formulas: tuple[Expr, ...], own_axes: bool) -> list[Expr]:
    """Formulas of t, R, w, p in the user's axes as formulas of t, q, w, p in principal axes."""
    q, w = (mul(Q, conj(OWN)), rotate(OWN, W)) if own_axes else (Q, W)  # type: ignore[arg-type]
    R = _rotation(q)
    meaning = {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)} | {f"w{i}": w[i] for i in range(3)}
    return substituted(formulas, meaning)


def _rotation(q: Any) -> list[list[Expr]]:
    """The rotation matrix; four of its entries with four products instead of eight.

    They are parts of (a - i d)(b + i c) and (a + i d)(b + i c), q = (a, b, c, d), taken like in `turning`.
    """
    R = [list(row) for row in matrix(q)]
    a, b, c, d = q
    first, second, third, fourth = b * (a - d), b * (a + d), a * (c - b), d * (b + c)
    R[2][0], R[2][1] = -2 * (first + third), 2 * (first + fourth)
    R[0][2], R[1][2] = 2 * (second + third), 2 * (fourth - second)
    return R


def torque_of(field: Field | None, own_axes: bool) -> tuple[Expr, Expr, Expr] | None:
    """The body torque in principal axes."""
    if field is None:
        return None
    a, b, c = in_principal_axes(field.graph[0], own_axes)
    return unrotate(OWN, (a, b, c)) if own_axes else (a, b, c)  # type: ignore[arg-type]


def spinning(torque: tuple[Expr, Expr, Expr] | None) -> dict[str, Expr]:
    """Euler's equations: the rates of w."""
    rates = {}
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        push = INVERSE[i] * (INERTIA[j] - INERTIA[k]) * (W[j] * W[k])
        rates[f"w{i}"] = push if torque is None else push + INVERSE[i] * torque[i]
    return rates


def turning() -> dict[str, Expr]:
    """The rates of the quaternion, as those of two complex numbers: ten products instead of twelve.

    With a = q_0 + i q_3, b = q_1 + i q_2 and v = w_1 + i w_2,   2 a' = i w_3 a - b v*,   2 b' = a v - i w_3 b,   and
    (x + i y)(c + i d) = c (x + y) - y (c + d) + i (c (x + y) + x (d - c)) (Gauss).
    """
    (a, b, c, d), (u, v, w) = Q, W
    first, second = u * (b + c), u * (a + d)
    return _halved(
        c * (u - v) - w * d - first,
        w * c - d * (u + v) + second,
        second - w * b - a * (u - v),
        w * a + b * (u + v) - first,
    )


def _halved(*rates: Expr) -> dict[str, Expr]:
    return {f"q{i}": Fraction(1, 2) * rate for i, rate in enumerate(rates)}


def averaging(order: int) -> dict[str, Expr]:
    """The rates of Y, for a series up to this order."""
    first = cross(Y, W)  # type: ignore[arg-type]
    rates = along(W, Fraction(1, 2), first)  # type: ignore[arg-type]
    if order > 3:  # |Y| ~ s and Y x w ~ s^2: the last term is of the third order in s
        square, c = dot(Y, Y), lift(0)  # type: ignore[arg-type]
        for coefficient in reversed(_mean_coefficients((order - 4) // 2)):
            c = c * square + coefficient
        rates = along(rates, c, cross(Y, first))  # type: ignore[arg-type]
    return {f"Y{i}": x for i, x in enumerate(rates)}


@functools.cache
def _mean_coefficients(degree: int) -> tuple[Fraction, ...]:
    """The c_n of the head of this file."""
    c = [Fraction(1, 12)]
    for n in range(1, degree + 1):
        c.append(sum((c[i] * c[n - 1 - i] for i in range(n)), Fraction(0)) / (2 * n + 3))
    return tuple(c)


# --- kernels ----------------------------------------------------------------------------------------


@kernel
def polynomial3(work: Any, a: int, b: int, c: int, stride: int, order: int, h: Number) -> Vec3:
    """Three series at h without their first terms, by Horner's rule."""
    last = stride * order
    x, y, z = work[a + last], work[b + last], work[c + last]
    for k in range(1, order):
        at = last - stride * k
        x, y, z = x * h + work[a + at], y * h + work[b + at], z * h + work[c + at]
    return x * h, y * h, z * h


def working(torque: tuple[Expr, Expr, Expr]) -> dict[str, Expr]:
    """The rate of sum lead_i Pi_i^2 that is due to a torque."""
    return {"E": 2 * dot(times(LEAD, times(INERTIA, W)), torque)}  # type: ignore[arg-type]


@functools.lru_cache(maxsize=KEPT)
def lie_taylor_series(field: Field | None, own_axes: bool, order: int, work: bool = False) -> Series:
    """The series of w and Y, of the work if asked for, and of q where the torque depends on the attitude."""
    torque = torque_of(field, own_axes)
    rates = {f"Y{i}": x for i, x in enumerate(averaging(order).values())} | spinning(torque)
    if torque is not None:
        rates |= (working(torque) if work else {}) | turning()
    parameters = f"{PARAMETERS}, lead" if work else PARAMETERS
    return series(parameters, starts(len(field.parameters) if field else 0), rates, (), order + 1)


def lie_taylor_kernel(
    field: Field | None, own_axes: bool, order: int, number: Callable[[Any], Any], work: bool = False
) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> (Y(h), Pi(h)), with series up to the given order.

    Without a torque the momentum in space is that of the start. With one, it follows the series of w. With `work` the
    kernel is (t, q, m, system, h, lead) -> (Y(h), Pi(h), the change of sum lead_i Pi_i^2 by the torque).
    """
    made = lie_taylor_series(field, own_axes, order, work and field is not None)
    fill, size, stride = compiled(made.text, made.constants, number), made.size, made.stride
    a, b, c, d, e, f = made.rows[:6]
    g = made.rows[6] if field is not None else 0

    @kernel
    def free(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        turn = polynomial3(work, a, b, c, stride, order, h)
        return turn, unrotate(exp(turn), m)

    @kernel
    def ended(work: Any, m: Any, system: Any, h: Any) -> Any:
        turn, change = polynomial3(work, a, b, c, stride, order, h), polynomial3(work, d, e, f, stride, order, h)
        return turn, add(m, times(system[0], change))

    @kernel
    def forced(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        return ended(work, m, system, h)

    @kernel
    def free_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        turn, end = free(t, q, m, system, h)
        return turn, end, 0 * h

    @kernel
    def forced_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, lead, 1, work, order)
        turn, end = ended(work, m, system, h)
        return turn, end, polynomial3(work, g, g, g, stride, order, h)[0]

    if work:
        return free_at_work if field is None else forced_at_work
    return free if field is None else forced


# --- steps of the length a tolerance allows ---------------------------------------------------------


MOST = 31
"""The highest order of a series whose step is chosen."""


@functools.lru_cache(maxsize=KEPT)
def motion_series(field: Field | None, own_axes: bool, order: int = MOST, paired: bool = False) -> Series:
    """The series of w and q; paired: in a unit of time near the radius of convergence, with half the products."""
    rates, writer = spinning(torque_of(field, own_axes)) | turning(), PairedWriter if paired else Writer
    return series(PARAMETERS, starts(len(field.parameters) if field else 0), rates, (), order + 1, writer)


@kernel
def _terms(work: Any, at: int, rows: Any) -> Any:
    """The coefficients of w and q from `at` on."""
    w0, w1, w2, q0, q1, q2, q3 = rows
    w, v = (work[w0 + at], work[w1 + at], work[w2 + at]), (work[q1 + at], work[q2 + at], work[q3 + at])
    return w, work[q0 + at], v


@kernel
def _summed(end: Any, work: Any, rows: Any, stride: int, order: int, last: int, h: Number) -> Any:
    """Horner's rule for the series of w and q from `order` down to `last`, `end` in the place of what is above."""
    w, s, v = end
    for k in range(order - last + 1):
        a, b, c = _terms(work, stride * (order - k), rows)
        w, s, v = along(a, h, w), s * h + b, along(c, h, v)
    return w, s, v


@kernel
def _increments(end: Any, work: Any, rows: Any, stride: int, order: int, h: Number, system: Any) -> Any:
    """What the series of w and q add to the momentum, to the vector part of q, and (three times) to its scalar part."""
    w, s, v = _summed(end, work, rows, stride, order, 1, h)
    s = s * h
    return times(system[0], scale(h, w)), scale(h, v), (s, s, s)


def taylor_kernel(field: Field | None, own_axes: bool, order: int, number: Callable[[Any], Any]) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> increments for `carry.moved`, by the series of w and q up to the given order."""
    made = motion_series(field, own_axes, order)
    fill, size, rows, stride = compiled(made.text, made.constants, number), made.size, made.rows, made.stride

    @kernel
    def expanded(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        return _increments(_terms(work, stride * order, rows), work, rows, stride, order - 1, h, system)

    return expanded


@kernel
def _larger(a: Number, b: Number) -> Number:
    return where(a > b, a, b)


@kernel
def _weights(system: Any, tolerance: Any) -> Any:
    """What errors of q and w count, in units of the tolerances of attitude and momentum; q has half the angle."""
    return 2 / tolerance[0], scale(1 / tolerance[1], system[0])


@kernel
def _size(terms: Any, weights: Any) -> Number:
    """The size of coefficients of w and q."""
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
    """The same of narrow numbers, to some parts in a thousand."""
    return rough_exp2(widen(-_larger(rough_log2(last) * (1 / order), rough_log2(before) * (1 / (order - 1)))))


def taylor_stage(field: Field | None, own_axes: bool, number: Callable[[Any], Any]) -> Callable[..., Any]:
    """A stage for `loop.travelling`: one expansion, used as far as the tolerances (attitude, momentum) allow."""
    made = motion_series(field, own_axes)
    fill, size, rows, stride = compiled(made.text, made.constants, number), made.size, made.rows, made.stride

    @kernel
    def stage(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        q, m = y
        work = scratch(q[0], size)
        fill(t, q, times(system[1], m), system, 1, work, order)
        weights, end = _weights(system, tolerance), _terms(work, stride * order, rows)
        before = _size(_terms(work, stride * (order - 1), rows), weights)
        long = reach(_size(end, weights), before, order, left)
        h = fitted(t, where(long < left, long, left))
        dm, vector, scalar = _increments(end, work, rows, stride, order - 1, h, system)
        return moved((q, m), dm, vector, scalar), h, long, True

    return stage


# --- the same, with narrow numbers where they are enough --------------------------------------------


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
