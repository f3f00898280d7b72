"""Overdamped Brownian rotation: a body in a heat bath whose friction is so strong that its inertia does not matter.

With the friction tensor Gamma and the diffusion tensor D = kT Gamma^-1, both in the body,

    dR = R hat(Gamma^-1 T(t, R) dt + sqrt(2 D) o dW),

which is the limit of the Langevin equation (`combinators/langevin`) for strong friction. On functions of the attitude
its generator is sum_i D_i X_i^2 + (Gamma^-1 T) . X, X_i the derivative along a rotation about the axis i of the body,
for D = diag(D_i). L. D. Favro, Phys. Rev. 119 (1960) 53-62; R. L. Davidchack, T. E. Ouldridge and M. V. Tretyakov,
J. Chem. Phys. 142 (2015) 144114, the gradient thermostat.

The steps multiply rotations, so they stay on SO(3). The momentum is not part of the equation and is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.ornstein_uhlenbeck import EQUAL, eigen, root
from ...kernels.so3 import add, apply, apply_transposed, exp, mul, scale, times
from ...kernels.state import counted
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...numbers.philox import normals
from ..queries import HeatBath, Torque
from ..record import OVERDAMPED, Method, Noise
from ..registry import declare, methods

Number = Callable[[Any], Any]

MEMORY = 18
"""Numbers in the memory: the numbers of the step, of the seed and of the body; then the eigenvectors of the friction
tensor, the inverses of its eigenvalues, and the standard deviations of the angles of a rotation about them."""


@kernel
def _axes(memory: Any) -> Any:
    """The eigenvectors of the friction tensor."""
    x = memory
    return (x[3], x[4], x[5]), (x[6], x[7], x[8]), (x[9], x[10], x[11])


@kernel
def _inverses(memory: Any) -> Any:
    """The inverse eigenvalues of the friction tensor."""
    return memory[12], memory[13], memory[14]


@kernel
def _angles(memory: Any, xi: Any) -> Any:
    """Random angles about the eigenvectors."""
    return memory[15] * xi[0], memory[16] * xi[1], memory[17] * xi[2]


@kernel
def _velocity(t: Any, q: Any, m: Any, memory: Any, system: Any, torque: Any) -> Any:
    """The mean angular velocity Gamma^-1 T."""
    axes = _axes(memory)
    return apply_transposed(axes, times(_inverses(memory), apply(axes, torque(t, q, m, system))))


def _filled(share: Any) -> Step:
    """Kernel that fills the memory at the start of a run; `share` is the part of h that a random rotation takes."""

    @kernel
    def filled(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        kT, diagonal, off, seed, body, first = torque(t, y[0], y[1], system, h)
        (a, b, c), (u, v, w) = eigen(diagonal, off, EQUAL)
        zero, s = 0 * h, 2 * share * h * kT
        spread = root(s / a), root(s / b), root(s / c)
        return (y[0], y[1], (zero + first, zero + seed, zero + body, *u, *v, *w, 1 / a, 1 / b, 1 / c, *spread)), zero

    return filled


def _euler(number: Number, draw: Callable[..., Any]) -> Step:
    """One rotation by the mean angle plus the random one."""

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, memory = y
        random = apply_transposed(_axes(memory), _angles(memory, draw(memory[1], memory[2], memory[0], 0)))
        mean = scale(h, _velocity(t, q, m, memory, system, torque))
        return (mul(q, exp(add(mean, random))), m, counted(memory)), 0 * h

    return step


def _splitting(number: Number, draw: Callable[..., Any]) -> Step:
    """Random rotations about one eigenvector after another, the rotation by the torque, and the same backwards."""

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, memory = y
        u, v, w = _axes(memory)
        a, b, c = _angles(memory, draw(memory[1], memory[2], memory[0], 0))
        q = mul(mul(mul(q, exp(scale(a, u))), exp(scale(b, v))), exp(scale(c, w)))
        middle = mul(q, exp(scale(h / 2, _velocity(t, q, m, memory, system, torque))))
        q = mul(q, exp(scale(h, _velocity(t + h / 2, middle, m, memory, system, torque))))
        a, b, c = _angles(memory, draw(memory[1], memory[2], memory[0], 1))
        q = mul(mul(mul(q, exp(scale(c, w))), exp(scale(b, v))), exp(scale(a, u)))
        return (q, m, counted(memory)), 0 * h

    return step


EQUATION = r"""
The overdamped equation, with the friction tensor $\Gamma$ and the diffusion tensor $D = kT\,\Gamma^{-1}$ in the body,

$$dR = R\,\widehat{\left(\Gamma^{-1} T(t, R)\,dt + \sqrt{2 D} \circ dW\right)}$$

The momentum is not part of it and is left as it is. $\xi$ are normal numbers, given by the seed, the number of the
body and the number of the step.

"""

EULER = r"""$$R_1 = R_0 \exp\bigl(h\,\Gamma^{-1} T(t, R_0) + \sqrt{2 h D}\,\xi\bigr)$$"""

SPLITTING = r"""With the eigenvectors $e_i$ of $\Gamma$ and its eigenvalues $\Gamma_i$,

$$\begin{aligned}
N &= \exp(\sigma_1 \xi_1 e_1) \exp(\sigma_2 \xi_2 e_2) \exp(\sigma_3 \xi_3 e_3), &
N' &= \exp(\sigma_3 \xi_6 e_3) \exp(\sigma_2 \xi_5 e_2) \exp(\sigma_1 \xi_4 e_1), \qquad
\sigma_i = \sqrt{h\,kT/\Gamma_i}, \\
R_{1/2} &= R_0 N \exp\bigl(\tfrac{h}{2}\,\Gamma^{-1} T(t, R_0 N)\bigr), &
R_1 &= R_0 N \exp\bigl(h\,\Gamma^{-1} T(t + \tfrac{h}{2}, R_{1/2})\bigr)\,N'
\end{aligned}$$

A random rotation about one axis is the exact diffusion about it, so the step is a symmetric splitting of the
generator."""

MEMBERS: dict[int, tuple[Callable[..., Step], Fraction, dict[str, Any]]] = {
    1: (_euler, Fraction(1), {
        "vectors": 1, "torque_evals": 1, "torque_at": ("start",), "cite": "davidchack2015",
        "where": "gradient thermostat; here with a friction tensor", "summary": "one rotation", "formula": EULER,
    }),
    2: (_splitting, Fraction(1, 2), {
        "vectors": 2, "torque_evals": 2, "torque_at": (), "cite": "strang1968",
        "where": "splitting into diffusions about the axes of the friction tensor, and the rotation by the torque",
        "summary": "splitting into rotations", "formula": SPLITTING,
    }),
}  # fmt: skip
"""Steps by their weak order: the step, the part of h of a random rotation, and the rest of the declaration."""


def brownian(weak_order: int | str) -> Method:
    """Overdamped Brownian rotation in a heat bath, of weak order 1 or 2."""
    text = str(weak_order).strip()
    if text not in map(str, MEMBERS):
        raise InputError(f"overdamped Brownian rotation has the weak orders 1 and 2, brownian(2); got {weak_order!r}")
    order = int(text)
    step, share, rest = MEMBERS[order]
    declared = {name: rest[name] for name in ("torque_evals", "torque_at", "cite", "where")}
    return declare(
        lambda number: step(number, normals), register=False, name=f"brownian({order})", order=order,
        order_free=math.inf, symmetric=False, symplectic=False, poisson=False, implicit=False, solves=0, conserves=(),
        needs="attitude", asks=Torque() & HeatBath(), memory=MEMORY,
        before=lambda number: _filled(converted(share, number)),
        noise=Noise(order, order, math.inf, rest["vectors"], step, equation=OVERDAMPED),
        doc=f"Overdamped Brownian rotation, {rest['summary']}, of weak order {order}.\n{EQUATION}{rest['formula']}",
        **declared,
    )  # fmt: skip


methods.add_combinator("brownian", brownian)
