"""A problem: a body, the field that acts on it, and its initial state."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InputError, ResultWarning
from ..kernels.ornstein_uhlenbeck import EQUAL, eigen
from ..kernels.so3 import apply, apply_transposed, conj, matrix, mul, rotate, times, unit, unrotate
from ..numbers import floats
from .body import Body
from .fields import Field, FieldTemplate
from .fields.kernels import formula_kernel
from .fields.of_body import are_inertia, inertia_parameters
from .fields.states import coupled_text, places
from .fields.template import unbound
from .fields.varying_inertia import VaryingField
from .inertia_tensor import TOLERANCE
from .validate import (  # noqa: F401 - imported from here by other modules
    ROTATION_TOLERANCE,
    TINY,
    check_momenta,
    finite_number,
    quaternion_of,
    start_quaternion,
    triple,
)
from .validate import attitude_quaternion as _attitude  # noqa: F401 - imported from here by other modules
from .validate import vector as _vector  # noqa: F401 - as above
from .varying_body import VaryingBody

PROBES = 6
"""Attitudes at which the torque on a linear body is checked."""

REFERENCE_TOLERANCE = 1e-9
"""Allowed difference, due to round-off, of a body from the one that a field of varying inertia was made for."""

PROBE_TOLERANCE = 1e-9
"""Allowed axial torque, relative to the torque, due to round-off in a user's formula."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A solution at one time, known independently of the methods.

    `quaternion` (scalar first, body to space) and `momentum` (body frame) are correct to `error`.

    Examples
    --------
    >>> ph.problems.free_body().reference.error < 1e-15
    True
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
    body : Body, or VaryingBody: `body` is then the body at t0, and `field` includes the change of inertia
    field : a bound `ph.torque` or `ph.potential`, or None for the free body
    attitude : body to space: a scipy Rotation, a 3x3 matrix, or a quaternion with the SCALAR FIRST
    euler, euler_deg : instead of `attitude`, Euler angles in radians or degrees: ("ZXZ", [a, b, c]); capitals are
        axes that rotate with the body, small letters space-fixed axes
    omega, momentum, spatial_omega, spatial_momentum : exactly one of them; the first two in the body frame
    t0 : time of that state
    t_end, dt : default end time and largest step for comparisons

    Examples
    --------
    >>> tilt = ("ZXZ", [0, 17, 0])
    >>> top = ph.Problem(ph.Body([5.0, 5.0, 1.0]), ph.fields.gravity(mgl=20.0), euler_deg=tilt, omega=[0, 0, 50])
    >>> float(top.momentum[2])
    50.0
    """

    __slots__ = ("__dict__", "__weakref__", "_loop_data")
    _loop_data: tuple[Any, ...]
    """Cached initial data of the loop, with the objects they were computed from; not part of ``vars(problem)``."""

    kept: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Names and shapes of the numbers that the method of a run keeps with every state (`Method.states`)."""

    def __init__(
        self,
        body: Body | VaryingBody,
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
        if not isinstance(body, Body | VaryingBody):
            raise InputError(f"body must be a ph.Body; got {type(body).__name__}. Write ph.Body([I1, I2, I3])")
        if isinstance(field, FieldTemplate):
            raise unbound(field)
        if field is not None and not isinstance(field, Field):
            raise InputError(f"field must be made by @ph.torque or @ph.potential; got {type(field).__name__}")
        self.name, self.reference, self.t0 = name, reference, finite_number("t0", t0)
        self.body, self.field = self._at_start(body, field)
        self.t_end = None if t_end is None else finite_number("t_end", t_end)
        self.dt = None if dt is None else finite_number("dt", dt)
        self.quaternion = start_quaternion(attitude, euler, euler_deg)
        self.momentum = self._start(omega, momentum, spatial_momentum, spatial_omega)
        self._check_at_start()
        if isinstance(body, Body):
            self._warn_of_other_inertia()

    def _warn_of_other_inertia(self) -> None:
        """Say that a field contains the inertia of another body; that of a shape model may have its own scale."""
        for name in inertia_parameters(self.field):
            assert self.field is not None
            if not are_inertia(self.field.values[name], np.asarray(self.body.inertia)):
                warnings.warn(
                    f"the field {self.field.name} was made for a body with another inertia; make it for this body, "
                    "unless that is a model with a scale of its own", ResultWarning, stacklevel=3,
                )  # fmt: skip

    def in_field(self, field: Field | None) -> Problem:
        """The same body and state in a field that may contain another inertia, checked at the start."""
        made = copy.copy(self)
        made.body, made.field = self._at_start(self.body, field)
        made._check_at_start()
        return made

    def _at_start(self, body: Body | VaryingBody, field: Field | None) -> tuple[Body, Field | None]:
        """The body at t0, and the field that makes it move as if its inertia varied, if it does."""
        if isinstance(body, VaryingBody):
            return body.at(self.t0, field)
        if isinstance(field, VaryingField):
            gap = np.abs(np.array(field.template.reference) - body.inertia).max()
            if gap > REFERENCE_TOLERANCE * np.abs(body.inertia).max():
                raise InputError("a field that varies the inertia of a body acts on that body only; use ph.VaryingBody")
            now, made = VaryingBody.of(field).at(self.t0, field.base)
            assert isinstance(made, VaryingField)
            if made.template.reference != field.template.reference:  # the field was made for another start
                return now, made
        return body, field

    def starting(
        self,
        *,
        attitude: Any = None,
        omega: Any = None,
        momentum: Any = None,
        spatial_omega: Any = None,
        spatial_momentum: Any = None,
        euler: Any = None,
        euler_deg: Any = None,
        t0: float | None = None,
    ) -> Problem:
        """The same body and field with another initial state, checked like a new problem; omitted values are kept.

        Give at most one of omega, momentum, spatial_omega, spatial_momentum. Without one, the body-frame momentum is
        kept. `t_end` and `dt` are kept; the name and the reference, which belong to the initial state, are not.
        """
        made = Problem.__new__(Problem)
        made.body, made.field, made.t_end, made.dt, made.name, made.reference = (
            self.body, self.field, self.t_end, self.dt, "", None
        )  # fmt: skip
        made.t0 = self.t0 if t0 is None else finite_number("t0", t0)
        if isinstance(self.field, VaryingField) and made.t0 != self.t0:
            made.body, made.field = VaryingBody.of(self.field).at(made.t0, self.field.base)
        made.quaternion = self.quaternion
        if attitude is not None or euler is not None or euler_deg is not None:
            made.quaternion = start_quaternion(attitude, euler, euler_deg)
        keeps = omega is None and momentum is None and spatial_momentum is None and spatial_omega is None
        made.momentum = self.momentum if keeps else made._start(omega, momentum, spatial_momentum, spatial_omega)
        made._check_at_start()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Data to copy or pickle; derived data are recomputed."""
        return dict(vars(self))

    def _check_at_start(self) -> None:
        if self.field is not None:
            R, omega = matrix(self.quaternion), self.velocity
            self.field.check(self.t0, R, omega, f"at the start (t = {self.t0:g})")
            self._check_axial_torque(self.field)

    def check_field(self, t: float, q: Any, m: Any, context: str) -> None:
        """Evaluate the field once in plain Python; raise a clear error if it fails."""
        if self.field is not None:
            a, b, c, d = q
            x, y, z = m
            omega = self._velocity((float(x), float(y), float(z)))
            self.field.check(float(t), matrix((float(a), float(b), float(c), float(d))), omega, context)

    def _check_axial_torque(self, field: Field) -> None:
        """Check that the torque on a linear body has no component along its axis, at any attitude."""
        axis = self.body.linear_axis
        if axis is None:
            return
        for t, q, omega in self._probes(axis):
            try:
                torque = np.array(_torque_at_start(field, t, matrix(q), omega), dtype=float)
            except (ArithmeticError, ValueError):
                continue
            axial = float(self.body.axes[:, axis] @ torque)
            if abs(axial) > PROBE_TOLERANCE * np.abs(torque).max():
                raise InputError(
                    f"the {field.kind} {field.name} has a torque along the axis of a linear body ({axial:.3g} of "
                    f"{np.linalg.norm(torque):.3g}), which cannot turn about it; the component must be 0"
                )

    def _probes(self, axis: int) -> Iterator[tuple[float, Any, tuple[float, ...]]]:
        """The initial state, then random attitudes and velocities of a linear body."""
        yield self.t0, self.quaternion, tuple(self.omega.tolist())
        allowed = self.body.axes[:, [i for i in range(3) if i != axis]]
        speed = float(np.linalg.norm(self.omega)) or 1.0
        for i, (q, across) in enumerate(_scattered()):
            yield self.t0 + i, q, tuple((allowed @ across * speed).tolist())

    def _start(
        self, omega: Any, momentum: Any, spatial_momentum: Any, spatial_omega: Any
    ) -> tuple[float, float, float]:
        """Body momentum from the one vector that the user gave."""
        given = (
            ("omega", omega), ("momentum", momentum), ("spatial_omega", spatial_omega),
            ("spatial_momentum", spatial_momentum),
        )  # fmt: skip
        named = [pair for pair in given if pair[1] is not None]
        if len(named) != 1:
            names_given = " and ".join(name for name, _ in named) if named else "none of them"
            raise InputError(f"give exactly one of {', '.join(name for name, _ in given)}; got {names_given}")
        [(name, value)] = named
        vector = triple(name, value)
        if name.startswith("spatial_"):
            vector = unrotate(self.quaternion, vector)
        check_axial(self.body, name, vector)
        return self._momentum_of(name, vector) if name.endswith("omega") else vector

    def _momentum_of(self, name: str, omega: Any) -> tuple[float, float, float]:
        """The momentum I omega, which must be in the range of doubles."""
        with np.errstate(over="ignore", invalid="ignore"):
            x, y, z = (self.body.inertia @ omega).tolist()
        if not (TINY <= abs(x) < math.inf and TINY <= abs(y) < math.inf and TINY <= abs(z) < math.inf):
            check_momenta(name, self.body.moments, (np.array(omega) @ self.body.axes)[None])
        return x, y, z

    def snapshot(self) -> Problem:
        """Return the problem as it is now: if parts of this one are replaced later, the other one keeps them."""
        made = object.__new__(type(self))
        made.__dict__ = self.__dict__.copy()
        return made

    @property
    def omega(self) -> np.ndarray:
        """Initial body angular velocity."""
        return np.array(self.velocity)

    @property
    def velocity(self) -> tuple[float, float, float]:
        """Initial body angular velocity, as three floats."""
        return self._velocity(self.momentum)

    def _velocity(self, momentum: tuple[float, float, float]) -> tuple[float, float, float]:
        """The body angular velocity I^-1 Pi."""
        principal = self.body.principal
        if principal.axes is None:
            return times(principal.inverse, momentum)
        return apply(principal.axes, times(principal.inverse, apply_transposed(principal.axes, momentum)))

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
        """The kind of field a method must support to solve this problem; see `methods.NEEDS`."""
        return "free" if self.field is None else self.field.needs

    @property
    def axes_quaternion(self) -> tuple[float, ...]:
        """Quaternion from principal to user axes; empty if they are the same."""
        return self.body.principal.to_body

    def principal(self, number: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Principal moments and `axes_quaternion`, in the precision of a number type."""
        body = self.body
        if number is floats.number or not body.has_principal_rotation:
            return tuple(number(x) for x in body.principal.moments), body.principal.to_body
        return _precise_principal(body, self.field is not None and self.field.bath is not None)

    def kernel_data(self, number: Any) -> tuple[Any, Any]:
        """State and system in principal axes, in one number type: the initial data of the loop.

        In doubles they are cached, and recomputed if the body, the field or the initial state was replaced.
        """
        if number is not floats.number:
            return self._data_in(number)
        body, field, q, m = self.body.principal, self.field, self.quaternion, self.momentum
        kept = getattr(self, "_loop_data", None)
        if kept and kept[0] is body and kept[1] is field and kept[2] is q and kept[3] is m:
            return kept[4]
        data = self._data_in_doubles()
        if type(q) is tuple and type(m) is tuple:  # values that can change in place are not cached
            self._loop_data = (body, field, q, m, data)
        return data

    def _data_in_doubles(self) -> tuple[Any, Any]:
        body, parameters = self.body.principal, () if self.field is None else self.field.parameters
        y = tuple(map(float, self.quaternion)), tuple(map(float, self.momentum))
        return self._with_states(self._in_principal_axes(y, body.moments, body.to_body), parameters), (
            body.moments,
            body.inverse,
            (*parameters, *body.to_body),
        )

    def _with_states(self, y: Any, parameters: Any) -> Any:
        """The state (q, m), or (q, m, z) with the initial states of the field."""
        if self.field is None or not self.field.states:
            return y
        return *y, tuple(parameters[i] for i in places(self.field))

    def _data_in(self, number: Any) -> tuple[Any, Any]:
        y = unit(tuple(number(x) for x in self.quaternion)), tuple(number(x) for x in self.momentum)
        inertia, principal_to_body = self.principal(number)
        inverse = tuple(1 / x if x > 0 else x for x in inertia)
        parameters = tuple(number(x) for x in (self.field.parameters if self.field else ()))
        return self._with_states(self._in_principal_axes(y, inertia, principal_to_body), parameters), (
            inertia,
            inverse,
            (*parameters, *principal_to_body),
        )

    def _in_principal_axes(self, y: Any, inertia: Any, principal_to_body: Any) -> Any:
        """Attitude and momentum in principal axes; momentum along the axis of a linear body is set to exactly 0."""
        q, m = y
        if principal_to_body:
            q, m = mul(q, principal_to_body), unrotate(principal_to_body, m)
        if self.body.linear_axis is not None:
            m = tuple(x if i > 0 else 0 * x for i, x in zip(inertia, m, strict=True))
        return q, m

    def user_axes(self, q: Any, m: Any, number: Any = floats.number) -> tuple[Any, Any]:
        """Convert attitude and momentum from principal axes back to the user's axes."""
        principal_to_body: Any = self.principal(number)[1]
        return (mul(q, conj(principal_to_body)), rotate(principal_to_body, m)) if principal_to_body else (q, m)

    def energy(self) -> float:
        """Kinetic plus potential energy at the start."""
        kinetic = float(np.dot(self.omega, self.momentum)) / 2
        return kinetic + float(self.potential(self.quaternion))

    def potential(self, q: Any, number: Any = floats.number) -> Any:
        """Potential energy at an attitude (or at many, as arrays); zero for a free body or a torque."""
        if self.field is None:
            return 0
        return self.field.potential_kernel(number)(matrix(q), tuple(number(x) for x in self.field.parameters))

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.body}{', ' + repr(self.field) if self.field else ', free'}>"


def _torque_at_start(field: Field, t: float, R: Any, omega: Any) -> Any:
    """The body torque in the user's axes, with the initial states of the field."""
    if not field.states:
        return field.torque_value(t, R, omega)
    z = tuple(field.parameters[i] for i in places(field))
    return formula_kernel(coupled_text(field), floats.number)(t, R, omega, field.parameters, z)[:3]


@functools.cache
def _scattered() -> list[tuple[Any, np.ndarray]]:
    """Random attitudes, each with two random numbers of order 1; the same for every problem."""
    scatter = np.random.default_rng(0)
    return [(unit(tuple(scatter.normal(size=4).tolist())), scatter.normal(size=2)) for _ in range(PROBES)]


def check_axial(body: Body, name: str, vector: Any) -> None:
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


def _precise_principal(body: Body, noise: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Principal moments and axes of the user's tensor, in the working precision of mpmath.

    The rotations from the axes in doubles to the precise ones are the smallest, so that the order and the signs of the
    axes, along which noise and splittings act, are those in doubles. With noise, moments that are equal but for the
    round-off of doubles keep the axes in doubles: in their plane the precise ones may point anywhere.
    """
    from ..numbers.multiprecision import mp

    first = mp.matrix(matrix(unit(tuple(map(mp.mpf, body.principal.to_body)))))
    near = first.T * mp.matrix(body.inertia.tolist()) * first
    moments, turned = eigen((near[0, 0], near[1, 1], near[2, 2]), (near[1, 2], near[2, 0], near[0, 1]), EQUAL * noise)
    axes, zero = first * mp.matrix(turned).T, body.linear_axis
    return tuple(mp.mpf(0) if i == zero else moments[i] for i in range(3)), quaternion_of(axes.tolist())
