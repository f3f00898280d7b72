"""The exact step of the Ornstein-Uhlenbeck process of the body momentum, with an anisotropic friction tensor.

The body in a heat bath at rest: dPi = -Gamma I^-1 Pi dt + sqrt(2 kT Gamma) dW, with Gamma symmetric and positive
semidefinite. With p = I^-1/2 Pi and S = I^-1/2 Gamma I^-1/2 = V diag(s) V^T the components of V^T p are independent, so

    Pi(h) = A Pi(0) + B xi,   A = I^1/2 V diag(exp(-h s)) V^T I^-1/2,   B = I^1/2 V diag(sqrt(kT (1 - exp(-2 h s)))),

xi three normal numbers: B B^T = kT (I - A I A^T). The stationary distribution is that of Gibbs, Pi ~ N(0, kT I).
"""

from __future__ import annotations

from typing import Any

from ..numbers.dispatch import kernel
from ..numbers.primitives import exp, sqrt, tanh, where
from ..numbers.types import Number, Rows, Vec3
from .so3 import add, along, apply, apply_transposed, scale, times

ROTATIONS = 24
"""Plane rotations of `eigen`, eight sweeps: convergence is quadratic, and five sweeps are enough for 16 digits, seven
for 50."""

EQUAL = 2.0**-48
"""Entries of a diagonal that differ, and are coupled, by less than this part of them are equal but for round-off."""


@kernel
def _rotated(diagonal: Vec3, off: Vec3, vectors: Rows, equal: Number) -> tuple[Vec3, Vec3, Rows]:
    """Rotate in the plane of axes 1 and 2 so that the entry (1, 2) becomes zero; rename the axes 1, 2, 3 to 3, 1, 2.

    off = (a23, a31, a12). The smaller of the two angles, t = tan, is taken: |t| <= 1. For `equal` see `eigen`.
    """
    a, b, c = diagonal
    d = (b - a) / 2
    size = abs(d) + sqrt(d * d + off[2] * off[2])
    turns = size > equal * (abs(a) + abs(b))
    t = where(turns, where(d < 0, -off[2], off[2]) / where(turns, size, 1 + size), 0 * size)
    cosine = 1 / sqrt(1 + t * t)
    sine = t * cosine
    first = along(scale(cosine, vectors[0]), -sine, vectors[1])
    second = along(scale(cosine, vectors[1]), sine, vectors[0])
    a23, a31 = cosine * off[0] + sine * off[1], cosine * off[1] - sine * off[0]
    return (b + t * off[2], c, a - t * off[2]), (a31, 0 * t, a23), (second, vectors[2], first)


@kernel
def eigen(diagonal: Vec3, off: Vec3, equal: Number) -> tuple[Vec3, Rows]:
    """Eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations; off = (a23, a31, a12).

    Axes whose entries are equal to the relative difference `equal` are left as they are. Otherwise round-off would
    choose their directions, and with them the noise along them: every number type and processor another one. The loop
    has a fixed length, so all lanes and all number types make the same operations. C. G. J. Jacobi, J. reine angew.
    Math. 30 (1846) 51-94.
    """
    zero, one = 0 * diagonal[0], 0 * diagonal[0] + 1
    vectors = ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    for _ in range(ROTATIONS):
        diagonal, off, vectors = _rotated(diagonal, off, vectors, equal)
    return diagonal, vectors


@kernel
def root(x: Number) -> Number:
    """Square root of a number that is not negative but for round-off."""
    return sqrt(where(x > 0, x, 0 * x))


@kernel
def decay(x: Number, kT: Number) -> tuple[Number, Number]:
    """Factor exp(-x) of the mean, and standard deviation, of one component.

    The variance is kT (1 - exp(-2 x)) = kT tanh(x) (1 + exp(-2 x)), without cancellation or overflow.
    """
    e = exp(-x)
    return e, root(kT * tanh(x) * (1 + e * e))


@kernel
def relaxation(h: Number, kT: Number, friction: tuple[Vec3, Vec3], system: Any) -> tuple[Rows, Rows]:
    """The matrix A by rows and the matrix B by columns, for a step over h.

    friction : Gamma in principal axes, (diagonal, (G23, G31, G12)). An axis without moment of inertia gets no momentum.
    """
    inertia, inverse = system[0], system[1]
    up, down = (
        (root(inertia[0]), root(inertia[1]), root(inertia[2])),
        (root(inverse[0]), root(inverse[1]), root(inverse[2])),
    )
    pairs = down[1] * down[2], down[2] * down[0], down[0] * down[1]
    (s1, s2, s3), (v1, v2, v3) = eigen(times(friction[0], inverse), times(friction[1], pairs), EQUAL)
    e1, b1 = decay(h * s1, kT)
    e2, b2 = decay(h * s2, kT)
    e3, b3 = decay(h * s3, kT)
    u1, u2, u3 = times(up, v1), times(up, v2), times(up, v3)
    from_right = times(down, v1), times(down, v2), times(down, v3)
    mean = (
        apply_transposed(from_right, (e1 * u1[0], e2 * u2[0], e3 * u3[0])),
        apply_transposed(from_right, (e1 * u1[1], e2 * u2[1], e3 * u3[1])),
        apply_transposed(from_right, (e1 * u1[2], e2 * u2[2], e3 * u3[2])),
    )
    return mean, (scale(b1, u1), scale(b2, u2), scale(b3, u3))


@kernel
def relaxed(m: Vec3, mean: Rows, noise: Rows, xi: Vec3) -> Vec3:
    """The step A Pi + B xi."""
    return add(apply(mean, m), apply_transposed(noise, xi))
