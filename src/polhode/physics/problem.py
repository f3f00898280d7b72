"""A problem: a body, what acts on it, and how it starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import conj, matrix, mul, rotate, unit, unrotate
from ..numbers import floats
from .body import TOLERANCE, Body
from .fields import Field, FieldTemplate, unbound
from .validate import (  # noqa: F401 - others take them from here
    ROTATION_TOLERANCE,
    finite_number,
    quaternion_of,
    start_quaternion,
)
from .validate import attitude_quaternion as _attitude  # noqa: F401 - as above
from .validate import vector as _vector

PROBES = 6
"""Attitudes at which the torque on a linear body is looked at."""

PROBE_TOLERANCE = 1e-9
"""Axial torque, relative to the torque, that round-off of a user's formula may leave."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A solution at one time, known independently of the methods.

    `quaternion` (scalar first, body to space) and `momentum` (body frame) are correct to `error`.
    """

    t: float
    quaternion: tuple[float, float, float, float]
    momentum: tuple[float, float, float]
    error: float
    source: str


class Problem:
    """A body, a field, and a state at time t0.

    Parameters
    ----------
    body : Body
    field : a bound `ph.torque` or `ph.potential`, or None for the free body
    attitude : body to space: a scipy Rotation, a 3x3 matrix, or a quaternion with the SCALAR FIRST
    euler, euler_deg : instead of it, Euler angles in radians or in degrees: ("ZXZ", [a, b, c]); capitals are axes that
        turn with the body, small letters axes of space
    omega, momentum, spatial_omega, spatial_momentum : exactly one of them; the first two in the body frame
    t0 : time of that state
    t_end, dt : what comparisons use unless told otherwise: end time, and the largest step
    """

    def __init__(
        self,
        body: Body,
        field: Field | None = None,
        *,
        attitude: Any = None,
        euler: Any = None,
        euler_deg: Any = None,
        omega: Any = None,
        momentum: Any = None,
        spatial_omega: Any = None,
        spatial_momentum: Any = None,
        t0: float = 0.0,
        name: str = "",
        t_end: float | None = None,
        dt: float | None = None,
        reference: Reference | None = None,
    ) -> None:
        if not isinstance(body, Body):
            raise InputError(f"body must be a ph.Body; got {type(body).__name__}. Write ph.Body([I1, I2, I3])")
        if isinstance(field, FieldTemplate):
            raise unbound(field)
        if field is not None and not isinstance(field, Field):
            raise InputError(f"field must be made by @ph.torque or @ph.potential; got {type(field).__name__}")
        self.body, self.field, self.name, self.reference = body, field, name, reference
        self.t0 = finite_number("t0", t0)
        self.t_end = None if t_end is None else finite_number("t_end", t_end)
        self.dt = None if dt is None else finite_number("dt", dt)
        self.quaternion = start_quaternion(attitude, euler, euler_deg)
        self.momentum = self._start(
            omega=omega, momentum=momentum, spatial_omega=spatial_omega, spatial_momentum=spatial_momentum
        )
        if field is not None:
            self.check_field(self.t0, self.quaternion, self.momentum, f"at the start (t = {self.t0:g})")
            self._check_axial_torque(field)

    def check_field(self, t: float, q: Any, m: Any, context: str) -> None:
        """Call the field once in plain Python, and say clearly what is wrong with it."""
        if self.field is not None:
            omega = tuple(float(x) for x in self._velocity(np.array(m, dtype=float)))
            R = tuple(tuple(float(x) for x in row) for row in matrix(tuple(float(x) for x in q)))  # type: ignore[arg-type]
            self.field.check(float(t), R, omega, context)

    def _check_axial_torque(self, field: Field) -> None:
        """Nothing turns a linear body about its axis: its torque has no component there, at any attitude."""
        axis = self.body.linear_axis
        if axis is None:
            return
        for t, q, omega in self._probes(axis):
            try:
                torque = np.array(field.torque_value(t, matrix(q), omega), dtype=float)
            except (ArithmeticError, ValueError):
                continue
            axial = float(self.body.axes[:, axis] @ torque)
            if abs(axial) > PROBE_TOLERANCE * np.abs(torque).max():
                raise InputError(
                    f"the {field.kind} {field.name} has a torque along the axis of a linear body ({axial:.3g} of "
                    f"{np.linalg.norm(torque):.3g}), which cannot turn about it; the component must be 0"
                )

    def _probes(self, axis: int) -> Iterator[tuple[float, Any, tuple[float, ...]]]:
        """The start, and scattered attitudes and velocities of a linear body."""
        yield self.t0, self.quaternion, tuple(self.omega.tolist())
        scatter = np.random.default_rng(0)
        allowed = self.body.axes[:, [i for i in range(3) if i != axis]]
        speed = float(np.linalg.norm(self.omega)) or 1.0
        for i in range(PROBES):
            q = unit(tuple(scatter.normal(size=4).tolist()))
            yield self.t0 + i, q, tuple((allowed @ scatter.normal(size=2) * speed).tolist())

    def _start(self, **given: Any) -> tuple[float, float, float]:
        """The body momentum, from whichever vector was given."""
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            names_given = " and ".join(named) if named else "none of them"
            raise InputError(f"give exactly one of {', '.join(given)}; got {names_given}")
        (name,) = named
        vector = _vector(name, given[name])
        if name.startswith("spatial_"):
            vector = np.array(unrotate(self.quaternion, tuple(vector)))
        check_axial(self.body, name, vector)
        if name.endswith("omega"):
            vector = self.body.inertia @ vector
        return tuple(float(x) for x in vector)  # type: ignore[return-value]

    @property
    def omega(self) -> np.ndarray:
        """Initial body angular velocity."""
        return self._velocity(np.array(self.momentum))

    def _velocity(self, momentum: np.ndarray) -> np.ndarray:
        axes = self.body.axes
        return np.asarray(axes @ (self.body.inverse_moments * (axes.T @ momentum)))

    @property
    def spatial_omega(self) -> np.ndarray:
        """Initial angular velocity in the space frame."""
        return np.array(rotate(self.quaternion, tuple(self.omega.tolist())))

    @property
    def spatial_momentum(self) -> np.ndarray:
        """Initial angular momentum in the space frame."""
        return np.array(rotate(self.quaternion, self.momentum))

    @property
    def needs(self) -> str:
        """What a method must take to solve this problem, in the words of `methods.NEEDS`."""
        return "free" if self.field is None else self.field.needs

    @property
    def axes_quaternion(self) -> tuple[float, ...]:
        """Quaternion that turns principal into user axes; empty if they are the same."""
        return self.principal(floats.number)[1]

    def principal(self, number: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Principal moments and `axes_quaternion`, with all the digits of a number type."""
        body = self.body
        if number is floats.number or not body.has_principal_rotation:
            principal_to_body = quaternion_of(body.axes.tolist()) if body.has_principal_rotation else ()
            return tuple(number(x) for x in body.moments.tolist()), principal_to_body
        return _precise_principal(body)

    def kernel_data(self, number: Any) -> tuple[Any, Any]:
        """State and system in principal axes, in one number type: what the loop starts from."""
        q = tuple(number(x) for x in self.quaternion)
        if number is not floats.number:
            q = unit(q)
        m: Any = tuple(number(x) for x in self.momentum)
        inertia, principal_to_body = self.principal(number)
        if principal_to_body:
            q, m = mul(q, principal_to_body), unrotate(principal_to_body, m)
        if self.body.linear_axis is not None:
            m = tuple(x if i > 0 else 0 * x for i, x in zip(inertia, m, strict=True))
        inverse = tuple(1 / x if x > 0 else x for x in inertia)
        parameters = tuple(number(x) for x in (self.field.parameters if self.field else ()))
        return (q, m), (inertia, inverse, (*parameters, *principal_to_body))

    def user_axes(self, q: Any, m: Any, number: Any = floats.number) -> tuple[Any, Any]:
        """Attitude and momentum of the loop, back in the user's axes."""
        principal_to_body: Any = self.principal(number)[1]
        return (mul(q, conj(principal_to_body)), rotate(principal_to_body, m)) if principal_to_body else (q, m)

    def energy(self) -> float:
        """Kinetic plus potential energy at the start."""
        kinetic = float(np.dot(self.omega, self.momentum)) / 2
        return kinetic + float(self.potential(self.quaternion))

    def potential(self, q: Any, number: Any = floats.number) -> Any:
        """Potential energy at an attitude (or at many, given as arrays); zero where there is none."""
        if self.field is None:
            return 0
        return self.field.potential_kernel(number)(matrix(q), tuple(number(x) for x in self.field.parameters))

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.body}{', ' + repr(self.field) if self.field else ', free'}>"


def check_axial(body: Body, name: str, vector: np.ndarray) -> None:
    """Refuse a vector along the axis of a linear body."""
    axis = body.linear_axis
    if axis is None:
        return
    axial = float(body.axes[:, axis] @ vector)
    if abs(axial) > TOLERANCE * np.abs(vector).max():
        raise InputError(
            f"a linear body neither rotates about its axis nor has momentum along it; {name} has the component "
            f"{axial:.3g} there, and it must be 0"
        )


def _precise_principal(body: Body) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Principal moments and axes of the tensor as given, to the working precision of mpmath."""
    from ..numbers.multiprecision import mp

    moments, axes = mp.eigsy(mp.matrix(body.inertia.tolist()))
    sign = 1 if mp.det(axes) > 0 else -1
    rows = [[axes[i, 0], axes[i, 1], sign * axes[i, 2]] for i in range(3)]
    zero = body.linear_axis
    return tuple(mp.mpf(0) if i == zero else moments[i] for i in range(3)), quaternion_of(rows)
