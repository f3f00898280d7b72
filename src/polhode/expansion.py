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
from .scalar import Number, Vec3, kernel, log, scratch, where
from .scalar import exp as exponential
from .series import NOTHING, Series, series, substituted
from .so3 import add, along, conj, cross, dot, exp, matrix, mul, rotate, times, unrotate

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
    R = matrix(q)  # type: ignore[arg-type]
    meaning = {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)} | {f"w{i}": w[i] for i in range(3)}
    return substituted(formulas, meaning)


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
        push = (INERTIA[j] - INERTIA[k]) * (W[j] * W[k])
        rates[f"w{i}"] = INVERSE[i] * (push if torque is None else push + torque[i])
    return rates


def turning() -> dict[str, Expr]:
    """The rates of the quaternion."""
    return {f"q{i}": x / 2 for i, x in enumerate(mul(Q, (lift(0), *W)))}  # type: ignore[arg-type]


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


@functools.cache
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
        fill(t, q, times(system[1], m), system, work, order)
        turn = polynomial3(work, a, b, c, stride, order, h)
        return turn, unrotate(exp(turn), m)

    @kernel
    def ended(work: Any, m: Any, system: Any, h: Any) -> Any:
        turn, change = polynomial3(work, a, b, c, stride, order, h), polynomial3(work, d, e, f, stride, order, h)
        return turn, add(m, times(system[0], change))

    @kernel
    def forced(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, work, order)
        return ended(work, m, system, h)

    @kernel
    def free_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        turn, end = free(t, q, m, system, h)
        return turn, end, 0 * h

    @kernel
    def forced_at_work(t: Any, q: Any, m: Any, system: Any, h: Any, lead: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, lead, work, order)
        turn, end = ended(work, m, system, h)
        return turn, end, polynomial3(work, g, g, g, stride, order, h)[0]

    if work:
        return free_at_work if field is None else forced_at_work
    return free if field is None else forced


# --- steps of the length a tolerance allows ---------------------------------------------------------


MOST = 31
"""The highest order of a series whose step is chosen."""


@functools.cache
def motion_series(field: Field | None, own_axes: bool, order: int = MOST) -> Series:
    """The series of w and q."""
    rates = spinning(torque_of(field, own_axes)) | turning()
    return series(PARAMETERS, starts(len(field.parameters) if field else 0), rates, (), order + 1)


@kernel
def _increments(work: Any, rows: Any, stride: int, order: int, h: Number, system: Any) -> Any:
    """What the series of w and q add to the momentum, to the vector part of q, and (three times) to its scalar part."""
    change = polynomial3(work, rows[0], rows[1], rows[2], stride, order, h)
    vector = polynomial3(work, rows[4], rows[5], rows[6], stride, order, h)
    return times(system[0], change), vector, polynomial3(work, rows[3], rows[3], rows[3], stride, order, h)


def taylor_kernel(field: Field | None, own_axes: bool, order: int, number: Callable[[Any], Any]) -> Callable[..., Any]:
    """Kernel (t, q, m, system, h) -> increments for `carry.moved`, by the series of w and q up to the given order."""
    made = motion_series(field, own_axes, order)
    fill, size, rows, stride = compiled(made.text, made.constants, number), made.size, made.rows, made.stride

    @kernel
    def expanded(t: Any, q: Any, m: Any, system: Any, h: Any) -> Any:
        work = scratch(h * q[0], size)
        fill(t, q, times(system[1], m), system, work, order)
        return _increments(work, rows, stride, order, h, system)

    return expanded


@kernel
def _larger(a: Number, b: Number) -> Number:
    return where(a > b, a, b)


@kernel
def _size(work: Any, at: int, rows: Any, system: Any, finer: Any) -> Number:
    """The coefficients of the motion from `at` on, times `finer`: twice those of q, those of the momentum."""
    inertia = system[0]
    a = _larger(abs(work[rows[0] + at]) * inertia[0], abs(work[rows[1] + at]) * inertia[1])
    a = _larger(a, abs(work[rows[2] + at]) * inertia[2])
    b = _larger(abs(work[rows[3] + at]), abs(work[rows[4] + at]))
    b = _larger(b, _larger(abs(work[rows[5] + at]), abs(work[rows[6] + at])))
    return _larger(2 * b * finer[0], a * finer[1])


@kernel
def reach(last: Number, before: Number, order: int, left: Number) -> Number:
    """The h at which the last two terms, of these sizes at h = 1, are no larger than 1 (Jorba and Zou 2005)."""
    one = 1 + 0 * left
    a = log(where(last > 0, last, one)) * (1 / order)
    b = log(where(before > 0, before, one)) * (1 / (order - 1))
    largest = where((last > 0) & (before > 0), _larger(a, b), where(last > 0, a, b))
    return where((last > 0) | (before > 0), exponential(-largest), left)


def taylor_stage(field: Field | None, own_axes: bool, number: Callable[[Any], Any]) -> Callable[..., Any]:
    """A stage for `loop.travelling`: one expansion, used as far as the tolerances (attitude, momentum) allow."""
    made = motion_series(field, own_axes)
    fill, size, rows, stride = compiled(made.text, made.constants, number), made.size, made.rows, made.stride

    @kernel
    def stage(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        q, m = y
        work = scratch(q[0], size)
        fill(t, q, times(system[1], m), system, work, order)
        finer, at = (1 / tolerance[0], 1 / tolerance[1]), stride * order
        last, before = _size(work, at, rows, system, finer), _size(work, at - stride, rows, system, finer)
        h = reach(last, before, order, left)
        h = fitted(t, where(h < left, h, left))
        dm, vector, scalar = _increments(work, rows, stride, order, h, system)
        return moved((q, m), dm, vector, scalar), h, h, True

    return stage
