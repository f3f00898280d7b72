"""Built-in fields: gravity, gravity gradient, magnetic dipoles, soft wall, attitude spring."""

from __future__ import annotations

import functools
import math
from typing import Any

from ...errors import InputError
from ...kernels.so3 import apply_transposed, cross, dot, matrix
from ...numbers.user_math import cos, sin, sqrt
from ..validate import attitude_quaternion, finite_number, positive, triple, vector
from .decorators import potential, torque
from .field import Field
from .formulas import MOST_ECCENTRIC, eccentric_anomaly, gradient_torque, inertia_of, pull
from .registry import reading, ready
from .template import FieldTemplate

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
"""m/s^2, down the space z axis."""


@ready
@potential
def gravity(R: Any, mgl: Any) -> Any:
    """Heavy top with its centre of mass on the body's third axis: U = m g l R33.

    mgl : weight times the distance of the centre of mass from the fixed point; space z points up.
    """
    return mgl * R[2][2]


@ready
def uniform_gravity(body: Any, g: Any = STANDARD_GRAVITY) -> Field:
    """Uniform gravity on a body that turns about any fixed point: U = -m g . R c.

    body : a body with a mass and a pivot, such as ``cone.about([0, 0, -1])``; c is its centre of mass from the pivot
    g : acceleration of gravity, a vector in space (default: standard gravity along -z, in SI units)
    """
    if getattr(body, "mass", None) is None:
        raise InputError(
            "uniform gravity needs a body with a mass: a shape, a mesh or points, or a body with mass, centre and "
            "pivot (the fixed point) given in addition to its inertia"
        )
    return _uniform_gravity()(body.centre - body.pivot, body.mass * vector("g", g))


@functools.cache
def _uniform_gravity() -> FieldTemplate:
    @potential
    def uniform_gravity(R: Any, arm: Any, weight: Any) -> Any:
        return pull(R, arm, weight)

    return uniform_gravity


@ready
@reading(moment=triple, field=triple)
@potential
def dipole(R: Any, moment: Any, field: Any) -> Any:
    """Magnetic dipole in a uniform field: U = -B . R m, with the torque m x R^T B in the body frame.

    moment : the dipole m, a vector in the body
    field : B, a vector in space
    """
    return pull(R, moment, field)


@ready
@reading(moment=triple, field=triple)
@torque
def rotating_dipole(t: Any, R: Any, moment: Any, field: Any, rate: Any) -> Any:
    """Magnetic dipole in a field that rotates about the space z axis: T = m x R^T B(t), body frame.

    B(t) = (B1 cos wt - B2 sin wt, B1 sin wt + B2 cos wt, B3).

    moment : the dipole m, a vector in the body
    field : B at t = 0, a vector in space
    rate : w, radians per unit of time
    """
    c, s = cos(rate * t), sin(rate * t)
    turned = (field[0] * c - field[1] * s, field[0] * s + field[1] * c, field[2])
    return cross(moment, apply_transposed(R, turned))


@ready
@potential
def soft_wall(R: Any, attraction: Any, repulsion: Any, gap: Any = 1.1) -> Any:
    """Coulomb term and steep wall in the height of the body's third axis: U = -attraction/d + repulsion/d^10.

    d = gap + R33, the distance from the wall (Krysl 2006, section 5.4).
    """
    near = 1 / (gap + R[2][2])
    return -attraction * near + repulsion * near**10


@ready
def distant_centre(body: Any, strength: float) -> Field:
    """Gravity gradient of a distant centre at rest on the space z axis: U = 3/2 strength r . I r, r = R^T e3.

    strength : G M/r^3, in units of 1/time^2
    """
    inertia, product = inertia_of(body)
    return _distant_centre(product)(finite_number("strength", strength), inertia)


@functools.cache
def _distant_centre(product: Any) -> FieldTemplate:
    @potential
    def distant_centre(R: Any, strength: Any, inertia: Any) -> Any:
        return 3 * strength / 2 * dot(product(inertia, R[2]), R[2])

    return distant_centre


@ready
def gravity_gradient(body: Any, mu: float, radius: float, phase: float = 0.0) -> Field:
    """Gravity gradient on a circular orbit: T = 3 mu/r^3 u x I u, body frame.

    u = R^T (cos a, sin a, 0) is the direction of the body seen from the centre, a = n t + phase with n^2 = mu/r^3. The
    orbit lies in the x-y plane of space; choose the space axes accordingly.

    mu : G M of the centre (Earth: 3.986004418e14 m^3/s^2)
    radius : r, of the orbit
    phase : angle on the orbit at t = 0, radians
    """
    inertia, product = inertia_of(body)
    rate = _mean_motion(positive("mu", mu), "radius", radius)
    return _gravity_gradient(product)(rate, finite_number("phase", phase), inertia)


def _mean_motion(mu: float, name: str, radius: Any) -> float:
    """Mean motion n = sqrt(mu/a^3) [1/s], computed so that no power leaves the range of doubles before n does."""
    a = positive(name, radius)
    rate = math.sqrt(mu) / a / math.sqrt(a)
    if not 0 < rate < math.inf:
        raise InputError(
            f"mu = {mu:g} and {name} = {a:g} give an orbital rate outside the range of doubles; check the units",
            "mu",
        )
    return rate


@functools.cache
def _gravity_gradient(product: Any) -> FieldTemplate:
    @torque
    def gravity_gradient(t: Any, R: Any, rate: Any, phase: Any, inertia: Any) -> Any:
        angle = rate * t + phase
        u = apply_transposed(R, (cos(angle), sin(angle), 0))
        return gradient_torque(rate * rate, u, product(inertia, u))

    return gravity_gradient


@ready
def eccentric_gravity_gradient(
    body: Any, mu: float, semi_major_axis: float, eccentricity: float, mean_anomaly: float = 0.0
) -> Field:
    """Gravity gradient on a Kepler orbit: T = 3 mu/r^3 u x I u, body frame.

    The orbit lies in the x-y plane of space with its pericentre on the x axis: r = a (1 - e cos E) and
    u = R^T (cos E - e, sqrt(1 - e^2) sin E, 0) a/r, with E - e sin E = n t + mean_anomaly and n^2 = mu/a^3. Kepler's
    equation is solved by a fixed number of iterations, within 1e-55 up to e = 0.9, the largest allowed value.

    mu : G M of the centre
    semi_major_axis : a
    eccentricity : e, from 0 to 0.9
    mean_anomaly : at t = 0, radians
    """
    inertia, product = inertia_of(body)
    rate = _mean_motion(positive("mu", mu), "semi_major_axis", semi_major_axis)
    e = finite_number("eccentricity", eccentricity)
    if not 0 <= e <= MOST_ECCENTRIC:
        raise InputError(f"eccentricity must lie between 0 and {MOST_ECCENTRIC}; got {eccentricity!r}", "eccentricity")
    return _eccentric(product)(rate, e, finite_number("mean_anomaly", mean_anomaly), inertia)


@functools.cache
def _eccentric(product: Any) -> FieldTemplate:
    @torque
    def eccentric_gravity_gradient(
        t: Any, R: Any, rate: Any, eccentricity: Any, mean_anomaly: Any, inertia: Any
    ) -> Any:
        E = eccentric_anomaly(eccentricity, rate * t + mean_anomaly)
        c, s = cos(E), sin(E)
        near = 1 / (1 - eccentricity * c)  # a/r
        place = ((c - eccentricity) * near, sqrt(1 - eccentricity * eccentricity) * s * near, 0)
        u = apply_transposed(R, place)
        return gradient_torque(rate * rate * near * near * near, u, product(inertia, u))

    return eccentric_gravity_gradient


def _rows(name: str, value: Any) -> Any:
    """Convert an attitude to a matrix."""
    try:
        return matrix(attitude_quaternion(value))
    except InputError as problem:
        raise InputError(f"{name}: {problem}", name) from None


@ready
@reading(target=_rows)
@potential
def attitude_spring(R: Any, target: Any, stiffness: Any) -> Any:
    """Spring towards an attitude: U = stiffness (3 - tr(R_t^T R))/2 = stiffness (1 - cos theta).

    theta is the angle of the rotation from the target to R. The torque stiffness sin(theta) is largest at a right
    angle and vanishes at half a turn, where the equilibrium is unstable.

    target : R_t as a scipy Rotation, a 3x3 matrix or a quaternion with the scalar first
    """
    return stiffness * (3 - sum(dot(target[i], R[i]) for i in range(3))) / 2
