"""Free rigid body by splitting its kinetic energy into parts whose motion is elementary.

G. Vilmart, Rigid body dynamics, in: Encyclopedia of Applied and Computational Mathematics (Springer),
"Three rotation splitting" and Algorithm 2, with the misprints corrected (docs/notation.md); R. McLachlan,
Phys. Rev. Lett. 71 (1993) 3043; S. Reich, Physica D 76 (1994) 375; F. Fasso, J. Comput. Phys. 189 (2003) 527.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..declare import Step, declare
from ..scalar import Number, Vec3, kernel, sincos, where
from ..so3 import along, dot, exp, mul, scale, unrotate


def spin(axis: int) -> Callable[..., Any]:
    """Kernel: turn the body through an angle about one of its axes, the momentum in space kept."""
    i, j, k = axis, (axis + 1) % 3, (axis + 2) % 3
    first, second, third = (0 - axis) % 3, (1 - axis) % 3, (2 - axis) % 3

    @kernel
    def turned(angle: Number, q: Any, m: Any) -> Any:
        s, c = sincos(angle / 2)
        sine, cosine = 2 * s * c, 1 - 2 * s * s
        u = (
            c * q[1 + i] + s * q[0],
            c * q[1 + j] + s * q[1 + k],
            c * q[1 + k] - s * q[1 + j],
        )
        v = (m[i], cosine * m[j] + sine * m[k], cosine * m[k] - sine * m[j])
        q = (c * q[0] - s * q[1 + i], u[first], u[second], u[third])
        return q, (v[first], v[second], v[third])

    return turned


def rotations(outer: int, middle: int, inner: int) -> Callable[..., Any]:
    """Step kernel of H = R1 + R2 + R3, R_j = y_j^2/(2 I_j): outer and middle over h/2 on both sides."""
    a, b, c = spin(outer), spin(middle), spin(inner)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m = y
        inverse = system[1]
        half = h / 2
        q, m = a(half * inverse[outer] * m[outer], q, m)
        q, m = b(half * inverse[middle] * m[middle], q, m)
        q, m = c(h * inverse[inner] * m[inner], q, m)
        q, m = b(half * inverse[middle] * m[middle], q, m)
        return a(half * inverse[outer] * m[outer], q, m), 0

    return step


def symmetric_and_rotation(r: int, e: int, s: int) -> Callable[..., Any]:
    """Step kernel of Algorithm 2: R = (1/I_r - 1/I_e) y_r^2/2 over h/2, the symmetric rest over h, R over h/2.

    The rest is exp(h y/I_e), then a turn about axis s at the rate (1/I_s - 1/I_e) y_s.
    """
    about_r, about_s = spin(r), spin(s)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m = y
        inverse = system[1]
        half, own = h / 2 * (inverse[r] - inverse[e]), h * (inverse[s] - inverse[e])
        q, m = about_r(half * m[r], q, m)
        q = mul(q, exp(scale(h * inverse[e], m)))
        q, m = about_s(own * m[s], q, m)
        return about_r(half * m[r], q, m), 0

    return step


# --- the axes chosen by the body --------------------------------------------------------------------


@kernel
def _axis_where(first: Any, second: Any, one: Number) -> Vec3:
    """The unit vector of axis 1 if `first`, else of axis 2 if `second`, else of axis 3."""
    zero = 0 * one
    x, y = where(first, one, zero), where(second, one, zero)
    y = where(first, zero, y)
    return (x, y, one - x - y)


@kernel
def _sorted_axes(inertia: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Unit vectors of the axes of the smallest, the middle and the largest moment."""
    a, b, c = inertia
    one = 0 * a + 1
    small = _axis_where((a <= b) & (a <= c), b <= c, one)
    large = _axis_where((a > b) & (a > c), b > c, one)
    return small, (one - small[0] - large[0], one - small[1] - large[1], one - small[2] - large[2]), large


@kernel
def _about(angle: Number, axis: Vec3, q: Any, m: Vec3) -> Any:
    """Turn the body through an angle about a unit vector."""
    s, c = sincos(angle / 2)
    turn = (c, s * axis[0], s * axis[1], s * axis[2])
    return mul(q, turn), unrotate(turn, m)


@kernel
def _rot_auto(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Smallest moment outside, largest inside (Fasso 2003)."""
    q, m = y
    small, middle, large = _sorted_axes(system[0])
    inverse = system[1]
    outer, between, inner = dot(small, inverse), dot(middle, inverse), dot(large, inverse)
    half = h / 2
    q, m = _about(half * outer * dot(small, m), small, q, m)
    q, m = _about(half * between * dot(middle, m), middle, q, m)
    q, m = _about(h * inner * dot(large, m), large, q, m)
    q, m = _about(half * between * dot(middle, m), middle, q, m)
    return _about(half * outer * dot(small, m), small, q, m), 0


@kernel
def _symrot_auto(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """The middle moment as reference, so that any two equal moments include it: exact for symmetric bodies.

    R stands about the axis whose 1/I is closer to the reference: the smaller perturbation outside.
    """
    q, m = y
    small, middle, large = _sorted_axes(system[0])
    inverse = system[1]
    reference = dot(middle, inverse)
    low, high = dot(small, inverse) - reference, dot(large, inverse) - reference
    near = abs(low) < abs(high)
    r, s = where(near, low, high), where(near, high, low)
    swap = where(near, 0 * r, 0 * r + 1)
    outer = along(small, swap, along(large, -1, small))
    inner = along(large, swap, along(small, -1, large))
    q, m = _about(h / 2 * r * dot(outer, m), outer, q, m)
    q = mul(q, exp(scale(h * reference, m)))
    q, m = _about(h * s * dot(inner, m), inner, q, m)
    return _about(h / 2 * r * dot(outer, m), outer, q, m), 0


# --- declarations -----------------------------------------------------------------------------------

SPLITTING: dict[str, Any] = {
    "order": 2, "order_free": 2, "symmetric": True, "symplectic": True, "poisson": True, "implicit": False,
    "solves": 0, "torque_evals": 0, "conserves": ("spatial_momentum", "momentum_norm"), "needs": "free",
}  # fmt: skip


def _always(step: Step) -> Callable[[Any], Step]:
    """A builder for a step without coefficients."""
    return lambda number: step


def _declare_labelings() -> None:
    for axes in itertools.permutations((1, 2, 3)):
        label = "".join(map(str, axes))
        a, b, c = (axis - 1 for axis in axes)
        declare(
            _always(rotations(a, b, c)),
            name=f"rot{label}", cite="mclachlan1993",
            aliases=(f"mry2_{label}", *(("mclachlan_splitting", "McL-splitting") if label == "123" else ())),
            where="Vilmart (2013), three rotation splitting",
            linear_bodies=False,
            doc=f"Three rotations: axes {label} from outside to inside, the inner one over the whole step.",
            **SPLITTING,
        )  # fmt: skip
    for axes in itertools.permutations((1, 2, 3)):
        label = "".join(map(str, axes))
        r, e, s = (axis - 1 for axis in axes)
        declare(
            _always(symmetric_and_rotation(r, e, s)),
            name=f"symrot{label}", aliases=("symrot",) if label == "123" else (), cite="vilmart2013",
            where="Algorithm 2", linear_bodies=False,
            doc=f"Symmetric body and rotation: R about axis {axes[0]}, reference {axes[1]}, symmetric about {axes[2]}.",
            **SPLITTING,
        )  # fmt: skip
    declare(
        lambda number: _rot_auto, name="rot_auto", cite="fasso2003", where="section 4", linear_bodies=False,
        doc="Three rotations with the smallest moment outside and the largest inside.", **SPLITTING,
    )  # fmt: skip
    declare(
        lambda number: _symrot_auto, name="symrot_auto", cite="vilmart2013", where="Algorithm 2, Remark 3",
        doc="Symmetric body and rotation with the middle moment as reference: exact for every symmetric body.",
        **SPLITTING,
    )  # fmt: skip


_declare_labelings()
