"""Built-in fields along an orbit: the gravity gradient to third order.

The orbit is a `ph.Orbit`, a `ph.Ephemeris`, or their keywords. Its parameters are parameters of the field, with their
names, so an ensemble or a gradient may vary the elements.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InputError
from ...kernels.so3 import add, apply, apply_transposed, cross, dot, scale
from ...numbers.user_math import sqrt
from ..path_input import path_of
from ..validate import real_array
from .decorators import torque
from .field import Field
from .formulas import gradient_torque, inertia_of
from .registry import ready
from .template import FieldTemplate


def along(function: Callable[..., Any], names: tuple[str, ...]) -> FieldTemplate:
    """The torque of a function whose keywords (``**path``) are the parameters of a path with these names.

    A template matches arguments by name, so the names of the path are written into its signature.
    """
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    function.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # read by inspect
    return torque(function)


@ready
def orbit_gravity_gradient(body: Any, orbit: Any, third_moments: Any = None) -> Field:
    """Gravity gradient along any orbit: T = 3 mu/r^3 u x I u, body frame, and the term of third order on request.

    u = R^T r/|r| is the direction of the body seen from the centre, r(t) its position on the orbit. With the third
    moments S_ijk, the integral of x_i x_j x_k dm about the centre of mass, the next term of the series in 1/r is added:
    3 mu/(2 r^4) u x (5 S(u, u) - s), S(u, u)_i = S_ijk u_j u_k and s_i = S_ijj (from the potential of degree 3,
    mu/(2 r^4) (5 S_ijk u_i u_j u_k - 3 s . u); Hughes 1986, section 8.1, has the series). For several attracting bodies
    add one field for each; `Orbit.seen_from` gives the positions.

    orbit : a `ph.Orbit`, a `ph.Ephemeris`, or the keywords of one of them; it includes mu
    third_moments : S, a symmetric array (3, 3, 3) in the axes of the body (default: second order only)
    """
    inertia, product = inertia_of(body)
    path = path_of(orbit)
    if third_moments is None:
        return _second_order(product, path.formula, tuple(path.values))(inertia, **path.values)
    moments = _third_moments(third_moments)
    return _third_order(product, path.formula, tuple(path.values))(inertia, moments, **path.values)


@functools.cache
def _second_order(product: Any, formula: Any, names: tuple[str, ...]) -> FieldTemplate:
    def orbit_gravity_gradient(t: Any, R: Any, inertia: Any, **path: Any) -> Any:
        u, r = seen(R, formula(t, **path)[0])
        return gradient_torque(path["mu"] / r**3, u, product(inertia, u))

    return along(orbit_gravity_gradient, names)


@functools.cache
def _third_order(product: Any, formula: Any, names: tuple[str, ...]) -> FieldTemplate:
    def orbit_gravity_gradient(t: Any, R: Any, inertia: Any, third_moments: Any, **path: Any) -> Any:
        u, r = seen(R, formula(t, **path)[0])
        strength = path["mu"] / r**3
        return add(gradient_torque(strength, u, product(inertia, u)), skew_torque(strength / r, u, third_moments))

    return along(orbit_gravity_gradient, names)


def seen(R: Any, position: Any) -> tuple[Any, Any]:
    """Direction of a position in space, in the body frame, and its distance."""
    r = sqrt(dot(position, position))
    return apply_transposed(R, scale(1 / r, position)), r


def skew_torque(strength: Any, u: Any, S: Any) -> Any:
    """3/2 strength u x (5 S(u, u) - s): the term of third order of the gravity gradient, strength = mu/r^4."""
    x, y, z = (5 * dot(u, apply(plane, u)) - plane[0][0] - plane[1][1] - plane[2][2] for plane in S)
    return scale(3 * strength / 2, cross(u, (x, y, z)))


def _third_moments(value: Any) -> np.ndarray:
    """Validate third moments."""
    expected = "third_moments must be a symmetric array of shape (3, 3, 3)"
    moments = real_array(value, expected, key="third_moments")
    if moments.shape != (3, 3, 3) or not np.isfinite(moments).all():
        raise InputError(f"{expected}, of finite numbers; got shape {moments.shape}", "third_moments")
    size = np.abs(moments).max()
    if any(np.abs(moments - moments.transpose(p)).max() > 1e-12 * size for p in itertools.permutations(range(3))):
        raise InputError(f"{expected}; the given one changes when its indices are exchanged", "third_moments")
    return moments
