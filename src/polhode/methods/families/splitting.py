"""Splitting of the kinetic energy of the free rigid body into parts whose motion is elementary.

G. Vilmart, Rigid body dynamics, in: Encyclopedia of Applied and Computational Mathematics (Springer),
"Three rotation splitting" and Algorithm 2, with the misprints corrected (docs/notation.md); R. McLachlan,
Phys. Rev. Lett. 71 (1993) 3043; S. Reich, Physica D 76 (1994) 375; F. Fasso, J. Comput. Phys. 189 (2003) 527.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ...kernels.loops import Step
from ...kernels.so3 import add, along, cross, dot, exp, mul, scale, times
from ...kernels.state import incremented_compensated, with_momentum_correction
from ...numbers.dispatch import kernel, overloaded
from ...numbers.double_double import two_product
from ...numbers.primitives import sincos, where
from ...numbers.types import Number, Vec3
from ..flows import about as energy_about
from ..flows import about_both, quadratic, symmetric
from ..registry import declare


@kernel
def less_one(s2: Number, c: Number) -> Number:
    """Cosine c minus 1, without cancellation, from the square of the sine."""
    acute = c > 0
    return where(acute, -s2 / where(acute, 1 + c, 1 + 0 * c), c - 1)


@kernel
def excess(s: Number, c: Number) -> Number:
    """Excess of s^2 + c^2 over 1: the round-off of a sine and a cosine, to extra digits for angles below pi/3.

    If the quaternion is too long by this factor, the rotated momentum is too large by the same factor. If the angle is
    the same in all steps so is the excess, and the momentum would grow or shrink steadily.
    """
    square, rest = two_product(s, s)
    d = 1 - c
    return ((square - 2 * d) + d * d) + rest


def spin(axis: int) -> Callable[..., Any]:
    """Kernel (y, angle): rotate the body by an angle about one of its axes, keeping the spatial momentum."""
    i, j, k = axis, (axis + 1) % 3, (axis + 2) % 3
    first, second, third = (0 - axis) % 3, (1 - axis) % 3, (2 - axis) % 3

    @kernel
    def product(q: Any, c: Number, s: Number) -> Any:
        """Product of the quaternion q and (c, s along the axis)."""
        u = (
            c * q[1 + i] + s * q[0],
            c * q[1 + j] + s * q[1 + k],
            c * q[1 + k] - s * q[1 + j],
        )
        return (c * q[0] - s * q[1 + i], u[first], u[second], u[third])

    @kernel
    def change(m: Any, c: Number, s: Number) -> Any:
        """Increment of the momentum."""
        x, z = 2 * (s * m[j]), 2 * (s * m[k])
        v = (0 * m[i], c * z - s * x, -(c * x + s * z))
        return (v[first], v[second], v[third])

    @kernel
    def spun(y: Any, angle: Number) -> Any:
        s, c = sincos(angle / 2)
        return product(y[0], c, s), add(y[1], change(y[1], c, s))

    @kernel
    def spun_compensated(y: Any, angle: Number) -> Any:
        s, c = sincos(angle / 2)
        dm = change(y[1], c, s)
        return with_momentum_correction(
            incremented_compensated(y, product(y[0], less_one(s * s, c), s), dm), -excess(s, c), dm
        )

    return overloaded(spun, spun_compensated)


@kernel
def _rolled(y: Any, rate: Number) -> Any:
    """Rotate the body about its momentum by the vector rate m, as a spherical body rotates."""
    return mul(y[0], exp(scale(rate, y[1]))), y[1]


@kernel
def _rolled_compensated(y: Any, rate: Number) -> Any:
    c, x1, x2, x3 = exp(scale(rate, y[1]))
    return incremented_compensated(y, mul(y[0], (less_one(x1 * x1 + x2 * x2 + x3 * x3, c), x1, x2, x3)), scale(0, y[1]))


rolled = overloaded(_rolled, _rolled_compensated)


def rotations(outer: int, middle: int, inner: int) -> Callable[..., Any]:
    """Step kernel of H = R1 + R2 + R3, R_j = y_j^2/(2 I_j): outer and middle over h/2 on both sides."""
    a, b, c = spin(outer), spin(middle), spin(inner)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        inverse = system[1]
        half = h / 2
        y = a(y, half * inverse[outer] * y[1][outer])
        y = b(y, half * inverse[middle] * y[1][middle])
        y = c(y, h * inverse[inner] * y[1][inner])
        y = b(y, half * inverse[middle] * y[1][middle])
        return a(y, half * inverse[outer] * y[1][outer]), 0

    return step


def symmetric_and_rotation(r: int, e: int, s: int) -> Callable[..., Any]:
    """Step kernel of Algorithm 2: R = (1/I_r - 1/I_e) y_r^2/2 over h/2, the symmetric rest over h, R over h/2.

    The rest is exp(h y/I_e), then a rotation about axis s at the rate (1/I_s - 1/I_e) y_s.
    """
    about_r, about_s = spin(r), spin(s)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        inverse = system[1]
        half, own = h / 2 * (inverse[r] - inverse[e]), h * (inverse[s] - inverse[e])
        y = about_r(y, half * y[1][r])
        y = rolled(y, h * inverse[e])
        y = about_s(y, own * y[1][s])
        return about_r(y, half * y[1][r]), 0

    return step


# --- the axes chosen by the body --------------------------------------------------------------------


@kernel
def _axis_where(first: Any, second: Any, one: Number) -> Vec3:
    """Unit vector of axis 1 if `first`, else of axis 2 if `second`, else of axis 3."""
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
def _change(m: Vec3, c: Number, x: Vec3) -> Vec3:
    """Increment of the momentum in a rotation by the quaternion (c, x)."""
    sideways = scale(2, cross(m, x))
    return along(cross(sideways, x), c, sideways)


@kernel
def _about(y: Any, angle: Number, axis: Vec3) -> Any:
    """Rotate the body by an angle about a unit vector."""
    s, c = sincos(angle / 2)
    x = scale(s, axis)
    return mul(y[0], (c, x[0], x[1], x[2])), add(y[1], _change(y[1], c, x))


@kernel
def _about_compensated(y: Any, angle: Number, axis: Vec3) -> Any:
    s, c = sincos(angle / 2)
    x = scale(s, axis)
    dm = _change(y[1], c, x)
    return with_momentum_correction(
        incremented_compensated(y, mul(y[0], (less_one(s * s, c), x[0], x[1], x[2])), dm), -excess(s, c), dm
    )


about = overloaded(_about, _about_compensated)


@kernel
def _rot_auto(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Smallest moment outside, largest inside (Fasso 2003)."""
    small, middle, large = _sorted_axes(system[0])
    inverse = system[1]
    outer, between, inner = dot(small, inverse), dot(middle, inverse), dot(large, inverse)
    half = h / 2
    y = about(y, half * outer * dot(small, y[1]), small)
    y = about(y, half * between * dot(middle, y[1]), middle)
    y = about(y, h * inner * dot(large, y[1]), large)
    y = about(y, half * between * dot(middle, y[1]), middle)
    return about(y, half * outer * dot(small, y[1]), small), 0


@kernel
def _symrot_auto(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """The middle moment as reference, so that any two equal moments include it: exact for symmetric bodies.

    R is about the axis whose 1/I is closer to the reference: the smaller perturbation outside.
    """
    outer, r, inner, s, reference = _rotation_and_rest(system)
    y = about(y, h / 2 * r * dot(outer, y[1]), outer)
    y = rolled(y, h * reference)
    y = about(y, h * s * dot(inner, y[1]), inner)
    return about(y, h / 2 * r * dot(outer, y[1]), outer), 0


@kernel
def _rotation_and_rest(system: Any) -> Any:
    """Return the axis of R and its rate, the axis of the symmetric rest and its rate, and the reference 1/I."""
    small, middle, large = _sorted_axes(system[0])
    inverse = system[1]
    reference = dot(middle, inverse)
    low, high = dot(small, inverse) - reference, dot(large, inverse) - reference
    near = abs(low) < abs(high)
    r, s = where(near, low, high), where(near, high, low)
    swap = where(near, 0 * r, 0 * r + 1)
    outer = along(small, swap, along(large, -1, small))
    inner = along(large, swap, along(small, -1, large))
    return outer, r, inner, s, reference


def _sorted_diagonal(which: int) -> Callable[[Any], Vec3]:
    """1/I about the axis of the smallest, middle or largest moment alone: the energies of `_rot_auto`."""

    def diagonal(system: Any) -> Vec3:
        axis = _sorted_axes(system[0])[which]
        return times(axis, system[1])

    return diagonal


def _rotation_diagonal(system: Any) -> Vec3:
    """Diagonal of R in `_symrot_auto`."""
    outer, r, *_ = _rotation_and_rest(system)
    return scale(r, outer)


def _rest_diagonal(system: Any) -> Vec3:
    """Diagonal of the symmetric rest in `_symrot_auto`."""
    _, _, inner, s, reference = _rotation_and_rest(system)
    return along((reference, reference, reference), s, inner)


# --- declarations -----------------------------------------------------------------------------------

SPLITTING: dict[str, Any] = {
    "order": 2, "order_free": 2, "symmetric": True, "symplectic": True, "poisson": True, "implicit": False,
    "solves": 0, "torque_evals": 0, "conserves": ("spatial_momentum", "momentum_norm"), "needs": "free",
    "increments": True,
}  # fmt: skip


ROTATIONS = r"""
The energy is split into $E_j = \Pi_j^2/(2 I_j)$, $j = 1, 2, 3$. The flow $\varphi^{(j)}_s$ of $E_j$ over a time $s$
rotates the body about its axis $\mathrm{e}_j$ and keeps the spatial momentum:

$$\theta = s\,\Pi_j/I_j, \qquad R \leftarrow R \exp(\theta\,\mathrm{e}_j), \qquad
\Pi \leftarrow \exp(-\theta\,\mathrm{e}_j)\,\Pi$$

A step is, with %s,

$$\Phi_h = \varphi^{(a)}_{h/2} \circ \varphi^{(b)}_{h/2} \circ \varphi^{(c)}_{h} \circ
\varphi^{(b)}_{h/2} \circ \varphi^{(a)}_{h/2}$$"""

SYMMETRIC_AND_ROTATION = r"""
With %s the energy is split into $E_R = \tfrac{1}{2}(1/I_r - 1/I_e)\,\Pi_r^2$ and the rest
$E_S = \tfrac{1}{2} |\Pi|^2/I_e + \tfrac{1}{2}(1/I_s - 1/I_e)\,\Pi_s^2$, the energy of a symmetric body. A step is

$$\Phi_h = \varphi^R_{h/2} \circ \varphi^S_h \circ \varphi^R_{h/2}$$

with the exact flows

$$\begin{aligned}
\varphi^R_{h/2} \colon \quad \theta &= \tfrac{h}{2}\,(1/I_r - 1/I_e)\,\Pi_r, &
R &\leftarrow R \exp(\theta\,\mathrm{e}_r), & \Pi &\leftarrow \exp(-\theta\,\mathrm{e}_r)\,\Pi \\
\varphi^S_h \colon \quad \theta &= h\,(1/I_s - 1/I_e)\,\Pi_s, &
R &\leftarrow R \exp(h\,\Pi/I_e) \exp(\theta\,\mathrm{e}_s), & \Pi &\leftarrow \exp(-\theta\,\mathrm{e}_s)\,\Pi
\end{aligned}$$"""


def _always(step: Step) -> Callable[[Any], Step]:
    """Return the builder of a step without coefficients."""
    return lambda number: step


def _declare_labelings() -> None:
    def rotor(axis: int) -> Any:
        return quadratic(energy_about(axis))

    for axes in itertools.permutations((1, 2, 3)):
        label = "".join(map(str, axes))
        a, b, c = (axis - 1 for axis in axes)
        declare(
            _always(rotations(a, b, c)),
            name=f"rot{label}", cite="mclachlan1993",
            aliases=(f"mry2_{label}", *(("mclachlan_splitting", "McL-splitting") if label == "123" else ())),
            where="Vilmart (2013), three rotation splitting",
            linear_bodies=False, flows=symmetric([rotor(a), rotor(b)], rotor(c)),
            doc=f"Three rotations: axes {label} from outside to inside, the inner one over the whole step.\n"
            + ROTATIONS % "$(a, b, c) = ({}, {}, {})$".format(*axes),
            **SPLITTING,
        )  # fmt: skip
    for axes in itertools.permutations((1, 2, 3)):
        label = "".join(map(str, axes))
        r, e, s = (axis - 1 for axis in axes)
        declare(
            _always(symmetric_and_rotation(r, e, s)),
            name=f"symrot{label}", aliases=("symrot",) if label == "123" else (), cite="vilmart2013",
            where="Algorithm 2", linear_bodies=False,
            flows=symmetric([quadratic(energy_about(r, e))], quadratic(about_both(e, s))),
            doc=f"Symmetric body and rotation: R about axis {r + 1}, reference {e + 1}, symmetric about {s + 1}.\n"
            + SYMMETRIC_AND_ROTATION % "$(r, e, s) = ({}, {}, {})$".format(*axes),
            **SPLITTING,
        )  # fmt: skip
    declare(
        lambda number: _rot_auto, name="rot_auto", cite="fasso2003", where="section 4", linear_bodies=False,
        flows=symmetric([quadratic(_sorted_diagonal(i)) for i in (0, 1)], quadratic(_sorted_diagonal(2))),
        doc="Three rotations with the smallest moment outside and the largest inside.\n"
        + ROTATIONS % "$I_a \\le I_b \\le I_c$", **SPLITTING,
    )  # fmt: skip
    declare(
        lambda number: _symrot_auto, name="symrot_auto", cite="vilmart2013", where="Algorithm 2, Remark 3",
        flows=symmetric([quadratic(_rotation_diagonal)], quadratic(_rest_diagonal)),
        doc="Symmetric body and rotation with the middle moment as reference: exact for every symmetric body.\n"
        + SYMMETRIC_AND_ROTATION % "$I_e$ the middle moment and $|1/I_r - 1/I_e| \\le |1/I_s - 1/I_e|$",
        **SPLITTING,
    )  # fmt: skip


_declare_labelings()
