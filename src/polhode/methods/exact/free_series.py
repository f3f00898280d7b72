"""The free motion as Taylor series, which give the tangents of the exact flow.

Elliptic functions label a motion by its polhode and the phase on it. Where these labels degenerate (two equal moments,
a spin about a principal axis, rest) the flow is smooth but the labels are not, and near such motions digits are lost.
The series have no such singularities: m' = m x w, q' = q w/2, w = I^-1 m.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import norm, sub
from ...numbers.dispatch import kernel, with_custom_tangent
from ...numbers.double_double import nearest
from ...numbers.primitives import all_lanes, stop_gradient, workspace
from ...numbers.types import Number, State, Vec3

TERMS = 16
"""Order of the series in doubles: the first omitted term is below (1/8)^17 of the first."""

PER_RADIAN = 8
"""Expansions per radian of rotation at the largest angular velocity that the momentum allows."""

MOST = 10**9
"""Upper limit of the number of expansions, beyond any practical run."""

_STRIDE = 10
_ROOM = _STRIDE * (TERMS + 1)


@kernel
def _filled(work: Any, q: Any, m: Vec3, inverse: Vec3, k: int) -> None:
    """Store the coefficients of order k of w, m and q, in this order."""
    at = _STRIDE * k
    for i in range(3):
        work[at + 3 + i] = m[i]
        work[at + i] = inverse[i] * m[i]
    for i in range(4):
        work[at + 6 + i] = q[i]


@kernel
def _next(work: Any, k: int, zero: Number) -> Any:
    """Coefficients of q and m of order k + 1, by products of series."""
    a, b, c = zero, zero, zero
    d, e, f, g = zero, zero, zero, zero
    for j in range(k + 1):
        u, v = _STRIDE * j, _STRIDE * (k - j)
        x, y, z = work[v], work[v + 1], work[v + 2]
        p, q, r = work[u + 3], work[u + 4], work[u + 5]
        a, b, c = a + (q * z - r * y), b + (r * x - p * z), c + (p * y - q * x)
        s, p, q, r = work[u + 6], work[u + 7], work[u + 8], work[u + 9]
        d, e = d - (p * x + q * y + r * z), e + (s * x + q * z - r * y)
        f, g = f + (s * y + r * x - p * z), g + (s * z + p * y - q * x)
    n = k + 1
    return (d / (2 * n), e / (2 * n), f / (2 * n), g / (2 * n)), (a / n, b / n, c / n)


@kernel
def _sum(work: Any, i: int, h: Number) -> Number:
    """Value of a series at h, by Horner's rule."""
    total = work[_STRIDE * TERMS + i] + 0 * h
    for k in range(TERMS):
        total = total * h + work[_STRIDE * (TERMS - 1 - k) + i]
    return total


@kernel
def expanded(h: Number, y: State, inverse: Vec3) -> State:
    """Return the state a short time h later."""
    q, m = y
    zero = 0 * (h * m[0] * inverse[0])
    work = workspace(zero, _ROOM)
    _filled(work, q, m, inverse, 0)
    for k in range(TERMS):
        dq, dm = _next(work, k, zero)
        _filled(work, dq, dm, inverse, k + 1)
    return (
        (_sum(work, 6, h), _sum(work, 7, h), _sum(work, 8, h), _sum(work, 9, h)),
        (_sum(work, 3, h), _sum(work, 4, h), _sum(work, 5, h)),
    )


@kernel
def _expanded_often(h: Number, m: Vec3, inverse: Vec3) -> State:
    """Return rotation and momentum after the time h, by as many expansions as needed."""
    one = 0 * (h * m[0] * inverse[0]) + 1
    count = nearest(PER_RADIAN * abs(stop_gradient(h)) * norm(stop_gradient(m)) * norm(stop_gradient(inverse))) + 1
    y = expanded(h / count, ((one, one - 1, one - 1, one - 1), m), inverse)
    for k in range(1, MOST):
        if all_lanes(k >= count):
            break
        y = expanded(h / count, y, inverse)
    return y


def with_slopes(flow: Any) -> Any:
    """Give an exact kernel flow(h, m, system) -> (turn, momentum) the tangents of the series."""

    @kernel
    def followed(h: Number, m: Vec3, system: Any) -> State:
        (a, b, c, d), new = flow(stop_gradient(h), stop_gradient(m), stop_gradient(system))
        turn, end = _expanded_often(h, m, system[1])
        vary, rate = (
            sub((turn[1], turn[2], turn[3]), stop_gradient((turn[1], turn[2], turn[3]))),
            sub(end, stop_gradient(end)),
        )
        turn = (a + (turn[0] - stop_gradient(turn[0])), b + vary[0], c + vary[1], d + vary[2])
        return turn, (new[0] + rate[0], new[1] + rate[1], new[2] + rate[2])

    return with_custom_tangent(flow, followed)
