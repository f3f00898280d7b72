"""How the attitude travels within a Taylor step: by its quaternion, or by one direction of space and an angle.

Where the torque knows the attitude only by one direction e of space as the body sees it, g = R^T e (a weight knows the
vertical), six numbers move by themselves (Euler and Poisson), and with any fixed unit vector c the rest is a quadrature:

    g' = g x w,        f' = w.(g + c)/(1 + g.c),        R(t)^T R(t + h) = P(t)^T rot(c, f(t + h) - f(t)) P(t + h),

P the shortest rotation of g to c, with the quaternion (1 + g.c, g x c), normalised. Instead of the twelve products of
series that q' = q (0, w)/2 takes there are ten with those of g', and the torque needs none. With c = +-w/|w| at the start
of a step, on the side of g, the denominator is about constant: g goes round w.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .expression import Expr, lift, symbol, symbols_in
from .fields import Field
from .scalar import Number, Vec3, kernel, sincos, sqrt, where
from .so3 import conj, cross, dot, matrix, mul, rotate, scale


def symbols(letter: str, count: int) -> tuple[Expr, ...]:
    """Symbols with numbers: w0, w1, w2."""
    return tuple(symbol(f"{letter}{i}") for i in range(count))


Q, W, G, C, OWN = (symbols(letter, n) for letter, n in (("q", 4), ("w", 3), ("g", 3), ("c", 3), ("o", 4)))


@kernel
def polynomial3(work: Any, a: int, b: int, c: int, stride: int, order: int, h: Number) -> Vec3:
    """Three series at h without their first terms, by Horner's rule."""
    last = stride * order
    x, y, z = work[a + last], work[b + last], work[c + last]
    for k in range(1, order):
        at = last - stride * k
        x, y, z = x * h + work[a + at], y * h + work[b + at], z * h + work[c + at]
    return x * h, y * h, z * h


@kernel
def larger(a: Number, b: Number) -> Number:
    """The larger of two numbers."""
    return where(a > b, a, b)


@dataclasses.dataclass(frozen=True)
class Way:
    """The numbers that carry the attitude through a step.

    `meaning` are the entries of R that a formula may name, `rates` those of the numbers, `begun` (q, w) -> (g, c) what
    the series are given besides q, `turned` (work, rows, stride, order, h, q, g, c) -> the increments of the vector
    part and (three times) of the scalar part of q, `size` (work, rows, stride k) -> how much the k-th terms turn the
    body; rows are the places of the series of `rates`.
    """

    meaning: dict[str, Expr]
    rates: dict[str, Expr]
    begun: Callable[..., Any]
    turned: Callable[..., Any]
    size: Callable[..., Any]


def way(field: Field | None, own_axes: bool) -> Way:
    """By one direction where the torque sees no more than one."""
    row = None if field is None else seen(field)
    return by_quaternion(own_axes) if row is None else by_direction(row, own_axes)


def seen(field: Field) -> int | None:
    """The only direction of space (the row of R) that a torque depends on, or None."""
    rows = {int(name[1]) for name in symbols_in(field.graph[0]) if name[0] == "R"}
    return rows.pop() if len(rows) == 1 else None


# --- the quaternion ---------------------------------------------------------------------------------


@kernel
def _nothing(q: Any, w: Vec3) -> Any:
    return w, w


@kernel
def _turned(work: Any, rows: Any, stride: int, order: int, h: Number, q: Any, g: Vec3, c: Vec3) -> Any:
    vector = polynomial3(work, rows[1], rows[2], rows[3], stride, order, h)
    return vector, polynomial3(work, rows[0], rows[0], rows[0], stride, order, h)


@kernel
def _size(work: Any, rows: Any, at: int) -> Number:
    a = larger(abs(work[rows[0] + at]), abs(work[rows[1] + at]))
    return 2 * larger(a, larger(abs(work[rows[2] + at]), abs(work[rows[3] + at])))


def by_quaternion(own_axes: bool) -> Way:
    """Q' = q (0, w)/2."""
    R = matrix(mul(Q, conj(OWN)) if own_axes else Q)  # type: ignore[arg-type]
    meaning = {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)}
    rates = {f"q{i}": x / 2 for i, x in enumerate(mul(Q, (lift(0), *W)))}  # type: ignore[arg-type]
    return Way(meaning, rates, _nothing, _turned, _size)


# --- one direction and an angle ---------------------------------------------------------------------


@kernel
def _nearest(w: Vec3, g: Vec3) -> Vec3:
    """The direction of w or -w, whichever is nearer to g; g itself where w is zero."""
    square = dot(w, w)
    rest = square <= 0
    root = sqrt(where(rest, 1 + square, square))
    one = 1 / root
    way = where(dot(w, g) < 0, -one, one)
    return (where(rest, g[0], way * w[0]), where(rest, g[1], way * w[1]), where(rest, g[2], way * w[2]))


@kernel
def _turned_about(work: Any, rows: Any, stride: int, order: int, h: Number, q: Any, g: Vec3, c: Vec3) -> Any:
    """Q (relative rotation - 1), written so that nothing large cancels."""
    change = polynomial3(work, rows[0], rows[1], rows[2], stride, order, h)
    angle = polynomial3(work, rows[3], rows[3], rows[3], stride, order, h)[0]
    s, k = sincos(angle / 4)
    start = (1 + dot(g, c), *cross(g, c))
    along_c, across = dot(change, c), cross(change, c)
    end = (start[0] + along_c, start[1] + across[0], start[2] + across[1], start[3] + across[2])
    twist = (-2 * s * s, 2 * s * k * c[0], 2 * s * k * c[1], 2 * s * k * c[2])
    moved = mul(twist, end)
    moved = (moved[0] + along_c, moved[1] + across[0], moved[2] + across[1], moved[3] + across[2])
    factor = 1 / start[0]
    ratio = along_c * factor
    root = sqrt(1 + ratio)
    both = 1 / (root * (1 + root))
    over_root, half = both * (1 + root), factor / 2
    a, x, y, z = mul(conj(start), moved)
    scalar, vector = (a * half - ratio * (both * root)) * over_root, scale(half * over_root, (x, y, z))
    b, x, y, z = mul(q, (scalar, vector[0], vector[1], vector[2]))
    return (x, y, z), (b, b, b)


@kernel
def _size_about(work: Any, rows: Any, at: int) -> Number:
    a = larger(abs(work[rows[0] + at]), abs(work[rows[1] + at]))
    return larger(a, larger(abs(work[rows[2] + at]), abs(work[rows[3] + at])))


def by_direction(row: int, own_axes: bool) -> Way:
    """G and f of the head of this file."""
    entries = rotate(OWN, G) if own_axes else G  # type: ignore[arg-type]
    rates = {f"g{i}": x for i, x in enumerate(cross(G, W))}  # type: ignore[arg-type]
    rates["f"] = (dot(W, G) + dot(W, C)) / (1 + dot(G, C))  # type: ignore[arg-type]

    @kernel
    def begun(q: Any, w: Vec3) -> Any:
        g = matrix(q)[row]
        return g, _nearest(w, g)

    return Way({f"R{row}{j}": entries[j] for j in range(3)}, rates, begun, _turned_about, _size_about)
