"""Expressions shared by the steps of many methods."""

from __future__ import annotations

from typing import Any

from ..kernels.so3 import along, cross, dot, scale, sinc_cos, tail, times
from ..numbers.dispatch import kernel
from ..numbers.types import Number, Rows, Vec3


@kernel
def velocity(m: Vec3, system: Any) -> Vec3:
    """Body angular velocity omega = I^-1 Pi."""
    return times(system[1], m)


@kernel
def rotation_increment(h: Number, m: Vec3, system: Any) -> Vec3:
    """Rotation vector h I^-1 Pi."""
    return scale(h, velocity(m, system))


@kernel
def gyration(m: Vec3, system: Any) -> Vec3:
    """Gyroscopic torque Pi x omega = -hat(I^-1 Pi) Pi."""
    return cross(m, velocity(m, system))


@kernel
def basis(x: Number) -> tuple[Vec3, Vec3, Vec3]:
    """Unit vectors in the number type of x."""
    zero, one = 0 * x, 0 * x + 1
    return (one, zero, zero), (zero, one, zero), (zero, zero, one)


@kernel
def gyration_columns(c: Number, m: Vec3, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Columns of 1 - c d(Pi x I^-1 Pi)/dPi, the Jacobian of Pi - c Pi x omega."""
    inverse = system[1]
    w = velocity(m, system)
    e1, e2, e3 = basis(c)
    return (
        along(along(e1, -c, cross(e1, w)), -c * inverse[0], cross(m, e1)),
        along(along(e2, -c, cross(e2, w)), -c * inverse[1], cross(m, e2)),
        along(along(e3, -c, cross(e3, w)), -c * inverse[2], cross(m, e3)),
    )


@kernel
def step_columns(x: Vec3, data: Any, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Columns for a solver whose equation has the terms x - h x cross I^-1 x; h is the first of its data."""
    return gyration_columns(data[0], x, system)


@kernel
def half_step_columns(x: Vec3, data: Any, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The same with h/2: x is the mean of the momenta at both ends."""
    return gyration_columns(data[0] / 2, x, system)


@kernel
def rolling_columns(c: Number, m: Vec3, psi: Vec3, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Columns of 1 - c hat(m) (1 - hat(psi)/2) I^-1.

    With m = exp(-psi) Pi this is the Jacobian of x - exp(-c I^-1 x) Pi up to O(psi^2), since
    d(exp(-psi) Pi) = hat(exp(-psi) Pi) dexp_{-psi} dpsi.
    """
    inverse = system[1]
    e1, e2, e3 = basis(c)
    return (
        along(e1, -c * inverse[0], cross(m, along(e1, -0.5, cross(psi, e1)))),
        along(e2, -c * inverse[1], cross(m, along(e2, -0.5, cross(psi, e2)))),
        along(e3, -c * inverse[2], cross(m, along(e3, -0.5, cross(psi, e3)))),
    )


@kernel
def midpoint_lie_defect(h: Number, psi: Vec3, system: Any) -> Vec3:
    """Symplectic defect of a free step of the midpoint Lie rule, I psi = h exp(-psi/2) Pi.

    The canonical one-form Pi.(R^T dR) grows over the step by (1/h) S(psi) I psi . dpsi with S the integral of
    exp(s hat(psi)) over -1/2 < s < 1/2, and the two-form by c.(dpsi x dpsi) with

        c = (k/h) psi x I psi,   k = s'/phi - 2 (1 - s)/phi^2,   s = sin(phi/2)/(phi/2),   phi = |psi|,

    zero only for a spherical body or a spin about a principal axis. k = -(sinc(phi/4)^2/2 + tail(phi^2/4))/4 has no
    cancellation; it tends to -1/6.
    """
    square = dot(psi, psi)
    s, _ = sinc_cos(square / 16)
    k = -(s * s / 2 + tail(square / 4)) / 4
    return scale(k / h, cross(psi, times(system[0], psi)))


@kernel
def columns(m: Rows) -> Rows:
    """Columns of a matrix given by its rows."""
    a, b, c = m
    return ((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))
