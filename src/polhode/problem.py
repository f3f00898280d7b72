"""A problem: a body, what acts on it, and how it starts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .backends import floats
from .body import TOLERANCE, Body
from .errors import InputError
from .fields import Field, FieldTemplate
from .so3 import conj, matrix, mul, rotate, unit, unrotate

ROTATION_TOLERANCE = 1e-6
"""How far from a rotation an attitude may be (single-precision data pass); it is then made one exactly."""


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
    omega, momentum, spatial_momentum : exactly one of them; the first two in the body frame
    t0 : time of that state
    """

    def __init__(
        self,
        body: Body,
        field: Field | None = None,
        *,
        attitude: Any = None,
        omega: Any = None,
        momentum: Any = None,
        spatial_momentum: Any = None,
        t0: float = 0.0,
        name: str = "",
        t_end: float | None = None,
        reference: Reference | None = None,
    ) -> None:
        if not isinstance(body, Body):
            raise InputError(f"body must be a ph.Body; got {type(body).__name__}. Write ph.Body([I1, I2, I3])")
        if isinstance(field, FieldTemplate):
            raise InputError(f"the field {field.function.__name__} has no parameters bound; call it: "
                             f"{field.function.__name__}({', '.join(field.parameters)})")  # fmt: skip
        if field is not None and not isinstance(field, Field):
            raise InputError(f"field must be made by @ph.torque or @ph.potential; got {type(field).__name__}")
        self.body, self.field, self.name, self.t_end, self.reference = body, field, name, t_end, reference
        self.t0 = _finite_number("t0", t0)
        self.quaternion = _attitude(attitude)
        self.momentum = self._start(omega, momentum, spatial_momentum)
        self.check_field(self.t0, self.quaternion, self.momentum, f"at the start (t = {self.t0:g})")
        if field is not None:
            self._check_axial_torque(field)

    def check_field(self, t: float, q: Any, m: Any, place: str) -> None:
        """Call the field once in plain Python, and say clearly what is wrong with it."""
        if self.field is not None:
            omega = tuple(float(x) for x in self._velocity(np.array(m, dtype=float)))
            R = tuple(tuple(float(x) for x in row) for row in matrix(q))
            self.field.check(float(t), R, omega, place)

    def _check_axial_torque(self, field: Field) -> None:
        """Nothing turns a linear body about its axis."""
        axis = self.body.linear_axis
        if axis is None:
            return
        torque = np.array(field.torque_value(self.t0, matrix(self.quaternion), tuple(self.omega)))
        axial = float(self.body.axes[:, axis] @ torque)
        if abs(axial) > TOLERANCE * np.abs(torque).max():
            raise InputError(f"{field!r} has a torque {axial:.3g} along the axis of a linear body; it must be 0 there")

    def _start(self, omega: Any, momentum: Any, spatial_momentum: Any) -> tuple[float, float, float]:
        given = {"omega": omega, "momentum": momentum, "spatial_momentum": spatial_momentum}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            said = " and ".join(named) if named else "none of them"
            raise InputError(f"give exactly one of omega, momentum, spatial_momentum; got {said}")
        vector = _vector(named[0], given[named[0]])
        if named[0] == "omega":
            vector = self.body.inertia @ vector
        elif named[0] == "spatial_momentum":
            vector = np.array(unrotate(self.quaternion, tuple(vector)))
        axis = self.body.linear_axis
        if axis is not None:
            axial = float(self.body.axes[:, axis] @ vector)
            if abs(axial) > TOLERANCE * max(np.abs(vector).max(), 1e-300):
                raise InputError(
                    f"a linear body cannot carry momentum along its axis; the component is {axial:.3g}, it must be 0"
                )
        return tuple(float(x) for x in vector)  # type: ignore[return-value]

    @property
    def omega(self) -> np.ndarray:
        """Initial body angular velocity."""
        return self._velocity(np.array(self.momentum))

    def _velocity(self, momentum: np.ndarray) -> np.ndarray:
        axes = self.body.axes
        return np.asarray(axes @ (self.body.inverse_moments * (axes.T @ momentum)))

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
        return _matrix_quaternion(self.body.axes) if self.body.has_own_axes else ()

    def kernel_data(self, number: Any) -> tuple[Any, Any]:
        """State and system in principal axes, in one number type: what the loop starts from."""
        q = unit(tuple(number(x) for x in self.quaternion))
        m = tuple(number(x) for x in self.momentum)
        own = tuple(number(x) for x in self.axes_quaternion)
        if own:
            a = unit(own)
            q, m, own = mul(q, a), unrotate(a, m), a
        inertia = tuple(number(x) for x in self.body.moments)
        inverse = tuple(1 / x if x > 0 else x for x in inertia)
        parameters = tuple(number(x) for x in (self.field.parameters if self.field else ()))
        return (q, m), (inertia, inverse, (*parameters, *own))

    def user_axes(self, q: Any, m: Any) -> tuple[Any, Any]:
        """Attitude and momentum of the loop, back in the user's axes."""
        a = self.axes_quaternion
        return (mul(q, conj(a)), rotate(a, m)) if a else (q, m)

    def energy(self) -> float:
        """Kinetic plus potential energy at the start."""
        kinetic = float(np.dot(self.omega, self.momentum)) / 2
        return kinetic + float(self.potential(self.quaternion))

    def potential(self, q: Any) -> Any:
        """Potential energy at an attitude (or at many, given as arrays); zero where there is none."""
        if self.field is None:
            return 0.0
        return self.field.potential_kernel(floats.number)(matrix(q), self.field.parameters)

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.body}{', ' + repr(self.field) if self.field else ', free'}>"


def _finite_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number; got {value!r}") from None
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite; got {value!r}")
    return number


def _vector(name: str, value: Any) -> np.ndarray:
    try:
        vector = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be three numbers; got {value!r}") from None
    if vector.shape != (3,):
        raise InputError(f"{name} must be three numbers; got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise InputError(f"{name} must be finite; got {vector.tolist()}")
    return vector


def _attitude(attitude: Any) -> tuple[float, float, float, float]:
    """Unit quaternion, scalar first, of any accepted attitude."""
    if attitude is None:
        return (1.0, 0.0, 0.0, 0.0)
    if hasattr(attitude, "as_quat"):
        attitude = attitude.as_quat(scalar_first=True)
    try:
        given = np.array(attitude, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"attitude must be a Rotation, a 3x3 matrix or a quaternion; got {attitude!r}") from None
    if given.shape not in ((4,), (3, 3)):
        raise InputError(
            f"attitude must be a scipy Rotation, a 3x3 matrix or a scalar-first quaternion (4); got shape {given.shape}"
        )
    if not np.isfinite(given).all():
        raise InputError(f"attitude must be finite; got {given.tolist()}")
    if given.shape == (3, 3):
        defect = np.abs(given.T @ given - np.eye(3)).max()
        if defect > ROTATION_TOLERANCE:
            raise InputError(f"attitude is not a rotation: R^T R differs from 1 by {defect:.3g}")
        if np.linalg.det(given) < 0:
            raise InputError("attitude is not a rotation but a reflection: its determinant is -1")
        return _matrix_quaternion(given)
    length = float(np.linalg.norm(given))
    if abs(length - 1) > ROTATION_TOLERANCE:
        raise InputError(f"attitude must be a unit quaternion (scalar first); its length is {length:.8g}")
    return unit(tuple(float(x) for x in given))  # type: ignore[return-value]


def _matrix_quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    """Quaternion of a rotation matrix, by Shepperd's choice of the largest component."""
    trace = np.trace(R)
    squares = np.array([1 + trace, *(1 - trace + 2 * np.diag(R))])
    k = int(squares.argmax())
    skew = (R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    if k == 0:
        q = (squares[0], *skew)
    else:
        i = k - 1
        q = (skew[i], *(squares[k] if j == i else R[i, j] + R[j, i] for j in range(3)))
    return unit(tuple(float(x) for x in q))  # type: ignore[return-value]
