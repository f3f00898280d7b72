"""The equations of motion of a body as a graph, for Taylor series in time.

In principal axes, with q the attitude, w = I^-1 Pi the angular velocity and T the torque,

    q' = q (0, w)/2,        I_1 w_1' = (I_2 - I_3) w_2 w_3 + T_1  and cyclically,

and Y, with R(t + s) = R(t) exp(Y(s)), follows from w = dexp_-Y Y' (S. Buss, 2011; errata of the talk):

    Y' = sum_n B_n/n! (-ad_Y)^n w = w + Y x w/2 + c(|Y|^2) Y x (Y x w),   c(x) = sum c_n x^n,
    c_0 = 1/12,   (2n + 3) c_n = sum_i c_i c_(n-1-i),

the series of Bernoulli numbers summed by ad_Y^3 = -|Y|^2 ad_Y.

A variation of the motion, a rotation d in R exp(hat d) and a change e of w, follows the linear equations

    d' = d x w + e,        I_1 e_1' = (I_2 - I_3)(w_2 e_3 + e_2 w_3) + dT_1  and cyclically.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..kernels.so3 import along, conj, cross, dot, matrix, mul, rotate, times, unrotate
from ..symbolic.expression import Expr, lift, symbols
from ..taylor.graph import substituted
from ..taylor.writer import NOTHING
from .fields import Field
from .fields.variation import changes_of_torque

Graph = Any


Q, W, Y, INERTIA, INVERSE, OWN, LEAD, D, E = (
    symbols(letter, count)
    for letter, count in (
        *(("q", 4), ("w", 3), ("Y", 3), ("I", 3), ("J", 3), ("o", 4), ("l", 3)),
        *(("d", 3), ("e", 3)),
    )
)
PARAMETERS = "t, q, w, system"
"""First arguments of the kernel that fills the workspace with coefficients; workspace and order follow."""


def starts(parameters: int) -> dict[str, str]:
    """Source text of each symbol of the equations in the kernel's arguments; w may have a variation behind it."""
    texts = {"t": "t"} | {f"q{i}": f"q[{i}]" for i in range(4)} | {f"w{i}": f"w[{i}]" for i in range(3)}
    texts |= {f"I{i}": f"system[0][{i}]" for i in range(3)} | {f"J{i}": f"system[1][{i}]" for i in range(3)}
    texts |= {f"d{i}": f"w[{3 + i}]" for i in range(3)} | {f"e{i}": f"w[{6 + i}]" for i in range(3)}
    texts |= {f"Y{i}": NOTHING for i in range(3)} | {"E": NOTHING} | {f"l{i}": f"lead[{i}]" for i in range(3)}
    return (
        texts
        | {f"p{i}": f"system[2][{i}]" for i in range(parameters)}
        | {f"o{i}": f"system[2][{parameters + i}]" for i in range(4)}
    )


def in_principal_axes(formulas: tuple[Expr, ...], has_principal_rotation: bool) -> list[Expr]:
    """Convert formulas of t, R, w, p in the user's axes to formulas of t, q, w, p in principal axes."""
    q, w = (mul(Q, conj(OWN)), rotate(OWN, W)) if has_principal_rotation else (Q, W)
    R = _rotation(q)
    meaning = {f"R{i}{j}": R[i][j] for i in range(3) for j in range(3)} | {f"w{i}": w[i] for i in range(3)}
    return substituted(formulas, meaning)


def _rotation(q: Any) -> list[list[Expr]]:
    """The rotation matrix; four of its entries with four products instead of eight.

    They are parts of (a - i d)(b + i c) and (a + i d)(b + i c), q = (a, b, c, d), computed as in `attitude_rates`.
    """
    R = [list(row) for row in matrix(q)]
    a, b, c, d = q
    first, second, third, fourth = b * (a - d), b * (a + d), a * (c - b), d * (b + c)
    R[2][0], R[2][1] = -2 * (first + third), 2 * (first + fourth)
    R[0][2], R[1][2] = 2 * (second + third), 2 * (fourth - second)
    return R


def torque_of(field: Field | None, has_principal_rotation: bool) -> tuple[Expr, Expr, Expr] | None:
    """The body torque in principal axes."""
    if field is None:
        return None
    a, b, c = in_principal_axes(field.graph[0], has_principal_rotation)
    return unrotate(OWN, (a, b, c)) if has_principal_rotation else (a, b, c)


def spinning(torque: tuple[Expr, Expr, Expr] | None) -> dict[str, Expr]:
    """Euler's equations: the rates of w."""
    rates = {}
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        gyroscopic = INVERSE[i] * (INERTIA[j] - INERTIA[k]) * (W[j] * W[k])
        rates[f"w{i}"] = gyroscopic if torque is None else gyroscopic + INVERSE[i] * torque[i]
    return rates


def attitude_rates() -> dict[str, Expr]:
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
    first = cross(Y, W)
    rates = along(W, Fraction(1, 2), first)
    if order > 3:  # |Y| ~ s and Y x w ~ s^2: the last term is of the third order in s
        square, c = dot(Y, Y), lift(0)
        for coefficient in reversed(_mean_coefficients((order - 4) // 2)):
            c = c * square + coefficient
        rates = along(rates, c, cross(Y, first))
    return {f"Y{i}": x for i, x in enumerate(rates)}


@functools.cache
def _mean_coefficients(degree: int) -> tuple[Fraction, ...]:
    """The c_n of the module docstring."""
    c = [Fraction(1, 12)]
    for n in range(1, degree + 1):
        c.append(sum((c[i] * c[n - 1 - i] for i in range(n)), Fraction(0)) / (2 * n + 3))
    return tuple(c)


def variational_rates(torque: Sequence[Expr] | None, has_principal_rotation: bool) -> dict[str, Expr]:
    """The rates of a variation (d, e), from the formula of the torque in the user's axes."""
    d, e = (rotate(OWN, D), rotate(OWN, E)) if has_principal_rotation else (D, E)
    change = None
    if torque is not None:
        a, b, c = in_principal_axes(tuple(changes_of_torque(torque, d, e)), has_principal_rotation)
        change = unrotate(OWN, (a, b, c)) if has_principal_rotation else (a, b, c)
    rates = {f"d{i}": x + y for i, (x, y) in enumerate(zip(cross(D, W), E, strict=True))}
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        gyroscopic = INVERSE[i] * (INERTIA[j] - INERTIA[k]) * (W[j] * E[k] + E[j] * W[k])
        rates[f"e{i}"] = gyroscopic if change is None else gyroscopic + INVERSE[i] * change[i]
    return rates


def working(torque: tuple[Expr, Expr, Expr]) -> dict[str, Expr]:
    """The rate of sum lead_i Pi_i^2 due to a torque."""
    return {"E": 2 * dot(times(LEAD, times(INERTIA, W)), torque)}
