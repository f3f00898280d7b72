"""Formulas shared by the built-in fields. They are traced: plain Python on tuples of numbers of any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InputError
from ...kernels.so3 import apply, cross, dot, scale, solve3, times
from ...numbers.user_math import cos, sin
from ..body import Body

KEPLER_STEPS = 4
"""Iterations of order four; they give the root to 1e-55 for eccentricities up to `MOST_ECCENTRIC`."""

MOST_ECCENTRIC = 0.9


def inertia_of(body: Any) -> tuple[Any, Callable[..., Any]]:
    """The inertia of a body as a parameter, and the function (inertia, v) -> I v.

    The inertia is three moments if the body's axes are the principal ones, else the tensor by rows.
    """
    if not isinstance(body, Body):
        raise InputError(f"this field needs the inertia of a ph.Body; got {type(body).__name__}")
    return (body.inertia.tolist(), apply) if body.has_principal_rotation else (body.moments.tolist(), times)


def quotient_of(product: Callable[..., Any]) -> Callable[..., Any]:
    """The function (inertia, v) -> I^-1 v that matches a product of `inertia_of`."""
    if product is times:
        return lambda moments, v: tuple(x / moment for x, moment in zip(v, moments, strict=True))
    return lambda rows, v: solve3(rows[0], rows[1], rows[2], v)  # symmetric: rows are columns


def pull(R: Any, arm: Any, force: Any) -> Any:
    """Energy -force . R arm of a constant force (space) applied at the end of an arm (body)."""
    return -dot(force, apply(R, arm))


def gradient_torque(strength: Any, r: Any, turned: Any) -> Any:
    """3 strength r x I r, r the direction of the centre in the body frame, turned = I r."""
    return scale(3 * strength, cross(r, turned))


def eccentric_anomaly(e: Any, M: Any) -> Any:
    """Root E of Kepler's equation E - e sin E = M, by a fixed number of iterations; M of any size.

    The start of Smith (1979), E_0 = M + e sin M / (1 - sin(M + e) + sin M), then iterations of order four (Danby and
    Burkardt 1983). Measured over all M: within 1e-55 for e <= 0.9.
    """
    E = M + e * sin(M) / (1 - sin(M + e) + sin(M))
    for _ in range(KEPLER_STEPS):
        s, c = e * sin(E), e * cos(E)
        f, slope = E - s - M, 1 - c
        d = -f / slope
        d = -f / (slope + d * s / 2)
        E = E - f / (slope + d * s / 2 + d * d * c / 6)
    return E
