"""RATTLE for the rigid body as a constrained Hamiltonian system in the matrices P and Q.

H. C. Andersen, J. Comput. Phys. 52 (1983) 24; R. McLachlan and C. Scovel, J. Nonlinear Sci. 5 (1995) 233; G. Vilmart,
Rigid body dynamics, (7) and (11). With D = diag(d), I_1 = d_2 + d_3 and so on, H = tr(P D^-1 P^T)/2 + U(Q) on
Q^T Q = 1, Q^T P D^-1 + D^-1 P^T Q = 0; the momentum is hat(y) = Q^T P - P^T Q. The form divides by every d.
A step is seen from the body at its start: P and Q are multiplied by Q_0^T, so that Q_0 = 1.
"""

from __future__ import annotations

from typing import Any

from ..declare import ENDS, method
from ..iterate import accelerated
from ..scalar import Number, Rows, Vec3, kernel
from ..so3 import add, along, apply, apply_transposed, cross, dot, mul, negative, scale, sub
from ._mechanics import basis, columns, turn_of, velocity


@kernel
def half_traces(inertia: Vec3) -> Vec3:
    """The d of I = (d2 + d3, d3 + d1, d1 + d2)."""
    a, b, c = inertia
    return ((b - a + c) / 2, (c - b + a) / 2, (a - c + b) / 2)


@kernel
def conjugate(w: Vec3, d: Vec3, c: Number, force: Vec3) -> Rows:
    """P = hat(w) D + c hat(T), seen from the body: the momenta of a body that turns with w, pushed by the torque T."""
    zero, (x, y, z) = 0 * w[0], scale(c, force)
    return (
        (zero, -(w[2] * d[1] + z), w[1] * d[2] + y),
        (w[2] * d[0] + z, zero, -(w[0] * d[2] + x)),
        (-(w[1] * d[0] + y), w[0] * d[1] + x, zero),
    )


@kernel
def body_momentum(P: Rows, Q: Rows) -> Vec3:
    """The y of hat(y) = Q^T P - P^T Q: the sum of P_i x Q_i over the rows."""
    return add(add(cross(P[0], Q[0]), cross(P[1], Q[1])), cross(P[2], Q[2]))


@kernel
def pushed(P: Rows, c: Number, Q: Rows, force: Vec3) -> Rows:
    """P - 2 c grad U(Q) up to a term Q times symmetric, which the multiplier absorbs: P + c Q hat(T), T the torque."""
    return (
        along(P[0], c, cross(Q[0], force)),
        along(P[1], c, cross(Q[1], force)),
        along(P[2], c, cross(Q[2], force)),
    )


@kernel
def multiplied(P: Rows, c: Number, Q: Rows, z: Any) -> Rows:
    """P - c Q Z with the symmetric Z = ((z11, z22, z33), (z23, z31, z12))."""
    (a, b, d), (f, g, k) = z
    Z = ((a, k, g), (k, b, f), (g, f, d))
    return (along(P[0], -c, apply(Z, Q[0])), along(P[1], -c, apply(Z, Q[1])), along(P[2], -c, apply(Z, Q[2])))


@kernel
def turned(start: Rows, over: Vec3, z: Any) -> Rows:
    """The columns of A + Z D^-1, from those of A."""
    (a, b, d), (f, g, k) = z
    return (
        along(start[0], over[0], (a, k, g)),
        along(start[1], over[1], (k, b, f)),
        along(start[2], over[2], (g, f, d)),
    )


@kernel
def shake(end: Rows, d: Vec3, per: Vec3) -> Any:
    """The correction of Z = h^2 Lambda/2 from C = Q_1^T Q_1 - 1: C_ij d_i d_j/(d_i + d_j), Newton's for Q_1 = Q_0."""
    a, b, c = end
    diagonal = ((dot(a, a) - 1) / 2 * d[0], (dot(b, b) - 1) / 2 * d[1], (dot(c, c) - 1) / 2 * d[2])
    return diagonal, (per[0] * dot(b, c), per[1] * dot(c, a), per[2] * dot(a, b))


@kernel
def _correction(x: Any, data: Any, system: Any, torque: Any) -> Any:
    """The same for X = D - Z, with Q_1 = (h P + X) D^-1."""
    drift, d, over, per = data
    diagonal, others = shake(turned(drift, over, x), d, per)
    return negative(diagonal), negative(others)


_constrained = accelerated(_correction, 2)


@kernel
def position_step(h: Number, P: Rows, d: Vec3, system: Any, torque: Any) -> Any:
    """P_1/2 and Q_1 of (11) from the pushed P, the multiplier found so that Q_1^T Q_1 = 1; and the miss.

    Seen from the body at the start: both are multiplied by Q_0^T, so that Q_1 = 1 + h P D^-1 - Z D^-1. The unknown is
    X = D - Z, which is as large as D: what is round-off then does not depend on h.
    """
    over = (1 / d[0], 1 / d[1], 1 / d[2])
    per = (1 / (over[1] + over[2]), 1 / (over[2] + over[0]), 1 / (over[0] + over[1]))
    x, y, w = columns(P)
    drift = (scale(h * over[0], x), scale(h * over[1], y), scale(h * over[2], w))
    (diagonal, others), miss = _constrained((d, scale(0, d)), (drift, d, over, per), system, torque)
    e1, e2, e3 = basis(h)
    drift = (add(e1, drift[0]), add(e2, drift[1]), add(e3, drift[2]))
    rest = (sub(diagonal, d), others)  # -Z
    last = shake(turned(drift, over, rest), d, per)  # takes the digits that X, being larger, does not hold
    (a, b, c), (f, g, k) = rest = (sub(rest[0], last[0]), sub(rest[1], last[1]))
    s = 1 / h
    half = (along(P[0], s, (a, k, g)), along(P[1], s, (k, b, f)), along(P[2], s, (g, f, c)))
    return half, columns(turned(drift, over, rest)), miss


@kernel
def tangent(P: Rows, Q: Rows, d: Vec3, system: Any) -> Rows:
    """P less Q times the symmetric matrix for which Q^T P D^-1 + D^-1 P^T Q = 0: the second multiplier of (11)."""
    x, y, w = columns(Q)
    Y = (apply_transposed(P, x), apply_transposed(P, y), apply_transposed(P, w))  # rows of Q^T P
    (a, b, c), inverse = d, system[1]  # I_1 = b + c and so on
    others = (
        (Y[1][2] * b + Y[2][1] * c) * inverse[0],
        (Y[2][0] * c + Y[0][2] * a) * inverse[1],
        (Y[0][1] * a + Y[1][0] * b) * inverse[2],
    )
    return multiplied(P, 1, Q, ((Y[0][0], Y[1][1], Y[2][2]), others))


@method(
    order=2, order_free=2, symmetric=True, symplectic=True, poisson=True, solves=1, torque_evals=2,
    torque_at=ENDS, conserves=("energy", "spatial_momentum", "momentum_norm"), needs="attitude",
    cite="andersen1983", where="Vilmart (2013), (11)", aliases=("RATTLE",), linear_bodies=False, flat_bodies=False,
)  # fmt: skip
@kernel
def rattle(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    r"""RATTLE in P and Q, with the state mapped there and back.

    With the attitudes as matrices $Q = R$, $D = \mathrm{diag}(d_1, d_2, d_3)$, $I_1 = d_2 + d_3$ and so on,

    $$\begin{aligned}
    P_0 &= Q_0\,\widehat{\omega_0}\,D, & & \\
    P_{1/2} &= P_0 + \tfrac{h}{4}\,Q_0\,\widehat{T_0} - Q_0 \Lambda_0, & Q_1 &= Q_0 + h\,P_{1/2}\,D^{-1}, \\
    P_1 &= P_{1/2} + \tfrac{h}{4}\,Q_1\,\widehat{T_1} - Q_1 \Lambda_1, &
    \widehat{\Pi_1} &= Q_1^{\mathsf T} P_1 - P_1^{\mathsf T} Q_1
    \end{aligned}$$

    The symmetric matrices $\Lambda_0$ and $\Lambda_1$ are found so that $Q_1^{\mathsf T} Q_1 = 1$ and
    $Q_1^{\mathsf T} P_1 D^{-1} + D^{-1} P_1^{\mathsf T} Q_1 = 0$. In a potential $Q\,\widehat T/2$ is
    $-\nabla U(Q)$ up to $Q$ times a symmetric matrix, so this is RATTLE of
    $\tfrac{1}{2}\operatorname{tr}(P D^{-1} P^{\mathsf T}) + U(Q)$.
    """
    q, m = y
    d = half_traces(system[0])
    P = conjugate(velocity(m, system), d, h / 4, torque(t, q, m, system))
    P, end, miss = position_step(h, P, d, system, torque)
    q = mul(q, turn_of(end))
    P = tangent(pushed(P, h / 4, end, torque(t + h, q, m, system)), end, d, system)
    return (q, body_momentum(P, end)), miss
