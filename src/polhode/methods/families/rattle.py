"""RATTLE for the rigid body as a constrained Hamiltonian system in the matrices P and Q.

H. C. Andersen, J. Comput. Phys. 52 (1983) 24; R. McLachlan and C. Scovel, J. Nonlinear Sci. 5 (1995) 233; G. Vilmart,
Rigid body dynamics, (7) and (11). With D = diag(d), I_1 = d_2 + d_3 and so on, H = tr(P D^-1 P^T)/2 + U(Q) on
Q^T Q = 1, Q^T P D^-1 + D^-1 P^T Q = 0; the momentum is hat(y) = Q^T P - P^T Q. The form divides by every d.

The constraints are solved for the rotation instead of the multipliers. In the body frame at the start (P and Q
multiplied by Q_0^T, so that Q_0 = 1) the position step is Q_1 = 1 + h P_1/2 D^-1, and its multiplier P - P_1/2 is
symmetric if and only if (Q_1 - 1) D and h P have the same skew part: Q_1 D - D Q_1^T = hat(v), v = h (y_0 + h T_0/2).
With Q_1 the Cayley map of 2 e, orthogonal for every e, this is 2 I e = v + v x e + (v.e) e. Newton's method from the
solution for short steps converges up to the largest step that has a solution; corrections of the multiplier itself, as
in SHAKE, fail to converge earlier. The second multiplier, also symmetric, drops out of
hat(y_1) = Q_1^T P_1 - P_1^T Q_1, which leaves y_1 = Q_1^T v/h + h T_1/2.
"""

from __future__ import annotations

from typing import Any

from ...kernels.so3 import along, cay, cross, dot, mul, scale, sub, times, unrotate
from ...kernels.solvers import newton, radian
from ...numbers.dispatch import kernel
from ...numbers.types import Number, Vec3
from ..mechanics import rotation_increment
from ..record import ENDS
from ..registry import method


@kernel
def half_traces(inertia: Vec3) -> Vec3:
    """Return d with I = (d2 + d3, d3 + d1, d1 + d2)."""
    a, b, c = inertia
    return ((b - a + c) / 2, (c - b + a) / 2, (a - c + b) / 2)


@kernel
def equation(e: Vec3, data: Any, system: Any, torque: Any) -> Vec3:
    """2 I e - v - v x e - (v.e) e, in units of the trace of I."""
    _, v, moments = data
    return sub(sub(along(times(moments, e), -dot(v, e), e), v), cross(v, e))


@kernel
def equation_columns(e: Vec3, data: Any, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Columns of the Jacobian 2 I - hat(v) - v.e - e v^T."""
    _, v, (a, b, c) = data
    k = dot(v, e)
    return (
        (a - k - e[0] * v[0], -v[2] - e[1] * v[0], v[1] - e[2] * v[0]),
        (v[2] - e[0] * v[1], b - k - e[1] * v[1], -v[0] - e[2] * v[1]),
        (-v[1] - e[0] * v[2], v[0] - e[1] * v[2], c - k - e[2] * v[2]),
    )


_root = newton(equation, equation_columns, radian, exact=True)


@kernel
def equation_data(h: Number, m: Vec3, system: Any) -> tuple[Number, Vec3, Vec3]:
    """Data of the equation, in units of the trace of I: the step, v = h m, 2 I."""
    inertia = system[0]
    unit = 1 / (inertia[0] + inertia[1] + inertia[2])
    return h, scale(h * unit, m), scale(2 * unit, inertia)


@kernel
def short_step(h: Number, m: Vec3, system: Any) -> Vec3:
    """Solution e = h omega/2 for short steps."""
    return rotation_increment(h / 2, m, system)


@method(
    order=2, order_free=2, symmetric=True, symplectic=True, poisson=True, solves=1, torque_evals=2,
    torque_at=ENDS, conserves=("energy", "spatial_momentum", "momentum_norm"), needs="attitude",
    cite="andersen1983", where="Vilmart (2013), (11)", aliases=("RATTLE",), linear_bodies=False,
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

    With $e$ the Cayley vector of $Q_0^{\mathsf T} Q_1$ and $v = h\,(\Pi_0 + \tfrac{h}{2}\,T_0)$, a symmetric
    $\Lambda_0$ is found by solving $2 I e = v + v \times e + (v \cdot e)\,e$ for $e$; then
    $\Pi_1 = Q_1^{\mathsf T} Q_0\,v/h + \tfrac{h}{2}\,T_1$.
    """
    q, m = y
    kicked = along(m, h / 2, torque(t, q, m, system))
    e, residual = _root(short_step(h, kicked, system), equation_data(h, kicked, system), system, torque)
    turn = cay(scale(2, e))
    q = mul(q, turn)
    return (q, along(unrotate(turn, kicked), h / 2, torque(t + h, q, m, system))), residual
