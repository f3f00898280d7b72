"""Buss's Taylor methods: one rotation by an averaged angular velocity, the momentum known.

S. R. Buss, J. Comput. Phys. 164 (2000) 377-406, and the slides of his talk of 2011, their lost dots restored
(docs/buss.md). The talk works in space, R' = hat(w) R, with an inertia tensor that turns. Here every vector of a step
is turned by R_0^T, the attitude at its start, which is constant: the equations keep their form, the tensor at the start
is diagonal, and R_1 = R_0 exp(h Z) with Z the average of the body's angular velocity. With L = Pi and L', L'', ... the
derivatives of the spatial momentum (`rates.py`), all in that frame,

    w = I^-1 L        w' = I^-1 g_1       g_1 = L' - w x L
    w''  = w x w' + I^-1 g_2              g_2 = L'' - w' x L - w x (L' + g_1)
    w''' = w x (2 w'' - w x w') + I^-1 (L''' - w'' x L - w' x (2 L' + g_1) - w x (L'' + 2 g_2 + w x g_1)),

and exp(h Z) follows w over the step up to h^4 of Z if

    Z = w + h/2 w' + h^2/6 w'' + h^2/12 w' x w + h^3/24 w''' + h^3/24 w'' x w.

The momentum advances by its Taylor series, of one order more than Z shows.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ..declare import declare, method, methods
from ..scalar import Number, Vec3, kernel
from ..so3 import add, along, cross, exp, mul, rotate, scale, sub, unit, unrotate
from ..tableaus import tableaus
from ._mechanics import velocity
from .munthe_kaas import tableau_step

PAPER = "buss2011"
TAYLOR: dict[str, Any] = {
    "symmetric": False, "symplectic": False, "poisson": False, "solves": 0, "torque_evals": 1, "torque_at": ("start",),
    "conserves": ("spatial_momentum", "momentum_norm"), "needs": "velocity", "cite": PAPER,
}  # fmt: skip


@kernel
def _turned(q: Any, psi: Vec3, momentum: Vec3) -> Any:
    """The state after the turn psi, the momentum given in the frame of the start."""
    turn = exp(psi)
    return (mul(q, turn), unrotate(turn, momentum)), 0


@kernel
def _advanced(h: Number, m: Vec3, f0: Vec3, f1: Vec3) -> Vec3:
    """L + h L' + h^2/2 L''."""
    return along(along(m, h, f0), h * h / 2, f1)


@kernel
def _first(m: Vec3, f0: Vec3, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The vectors w, g_1 and w'."""
    w = velocity(m, system)
    g1 = sub(f0, cross(w, m))
    return w, g1, velocity(g1, system)


@kernel
def _second(m: Vec3, f0: Vec3, f1: Vec3, first: Any, system: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The vectors g_2, w x w' and w''."""
    w, g1, a = first
    g2 = sub(sub(f1, cross(a, m)), cross(w, add(f0, g1)))
    wa = cross(w, a)
    return g2, wa, add(wa, velocity(g2, system))


@kernel
def _third(m: Vec3, f0: Vec3, f1: Vec3, f2: Vec3, first: Any, second: Any, system: Any) -> Vec3:
    """The vector w'''."""
    w, g1, a = first
    g2, wa, b = second
    pull = add(cross(b, m), cross(a, along(g1, 2, f0)))
    whirl = cross(w, add(along(f1, 2, g2), cross(w, g1)))
    return add(cross(w, sub(scale(2, b), wa)), velocity(sub(f2, add(pull, whirl)), system))


@kernel
def _mean(h: Number, w: Vec3, a: Vec3) -> Vec3:
    """The vector w + h/2 w'."""
    return along(w, h / 2, a)


@method(order=1, order_free=1, where="first-order update", aliases=("1st order",), **TAYLOR)
@kernel
def buss1(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, first order: Z = w."""
    q, m = y
    return _turned(q, scale(h, velocity(m, system)), along(m, h, torque(t, q, m, system)))


@method(order=2, order_free=2, derivatives=1, where="second-order update", aliases=("2nd order",), **TAYLOR)
@kernel
def buss2(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, second order: Z = w + h/2 w'."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    w, _, a = _first(m, f0, system)
    return _turned(q, scale(h, _mean(h, w, a)), _advanced(h, m, f0, f1))


@method(order=2, order_free=2, derivatives=1, where="augmented second-order update", aliases=("2+",), **TAYLOR)
@kernel
def buss2plus(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, augmented second order: Z = w + h/2 w' + h^2/12 w' x w."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    w, _, a = _first(m, f0, system)
    return _turned(q, scale(h, along(_mean(h, w, a), h * h / 12, cross(a, w))), _advanced(h, m, f0, f1))


@method(order=2, order_free=2, derivatives=1, where="false third-order update", aliases=("false 3rd",), **TAYLOR)
@kernel
def buss3_false(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, false third order, without the commutator: Z = w + h/2 w' + h^2/6 w''."""
    q, m = y
    f0, f1 = torque(t, q, m, system)
    first = _first(m, f0, system)
    _, _, b = _second(m, f0, f1, first, system)
    z = along(_mean(h, first[0], first[2]), h * h / 6, b)
    return _turned(q, scale(h, z), _advanced(h, m, f0, f1))


@kernel
def _mean3(h: Number, first: Any, second: Any) -> Vec3:
    """The vector w + h/2 w' + h^2/6 w'' + h^2/12 w' x w."""
    w, _, a = first
    _, wa, b = second
    return along(along(_mean(h, w, a), h * h / 6, b), -h * h / 12, wa)


@method(order=3, order_free=3, derivatives=2, where="true third-order update", aliases=("3rd order",), **TAYLOR)
@kernel
def buss3(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, true third order: Z = w + h/2 w' + h^2/6 w'' + h^2/12 w' x w."""
    q, m = y
    f0, f1, f2 = torque(t, q, m, system)
    first = _first(m, f0, system)
    second = _second(m, f0, f1, first, system)
    momentum = along(_advanced(h, m, f0, f1), h * h * h / 6, f2)
    return _turned(q, scale(h, _mean3(h, first, second)), momentum)


@method(order=4, order_free=4, derivatives=3, where="true fourth-order update", aliases=("4th order",), **TAYLOR)
@kernel
def buss4(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Buss, true fourth order: the third-order Z + h^3/24 (w''' + w'' x w)."""
    q, m = y
    f0, f1, f2, f3 = torque(t, q, m, system)
    first = _first(m, f0, system)
    second = _second(m, f0, f1, first, system)
    third = _third(m, f0, f1, f2, first, second, system)
    h3 = h * h * h
    z = along(_mean3(h, first, second), h3 / 24, add(third, cross(second[2], first[0])))
    momentum = along(along(_advanced(h, m, f0, f1), h3 / 6, f2), h * h3 / 24, f3)
    return _turned(q, scale(h, z), momentum)


# --- the methods the talk compares with -------------------------------------------------------------


@kernel
def _naive_slopes(s: Any, psi: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """The angular velocity and the torque of a stage, turned into the frame of the start and nothing else."""
    turn = exp(psi)
    m = unrotate(turn, mu)
    force = torque(s, mul(y[0], turn), m, system)
    return rotate(turn, velocity(m, system)), rotate(turn, force)


rk4_naive = declare(
    functools.partial(tableau_step, tableaus["rk4"], slopes=_naive_slopes), name="rk4_naive", order=2, order_free=2,
    implicit=False, **(TAYLOR | {"torque_evals": 4}), where="traditional 4th order Runge-Kutta",
    doc="""Runge and Kutta's weights for the angular velocity in space, and one rotation by their average.

    Without the inverse differential of the exponential, which `rk4_mk` has, the commutator is missing.""",
)  # fmt: skip


@kernel
def _entries(s: Any, p: Any, mu: Any, y: Any, system: Any, torque: Any) -> Any:
    """The rates p' = p omega/2 and the torque, for a quaternion p since the start that may not be a unit."""
    turn = unit(p)
    m = unrotate(turn, mu)
    w = velocity(m, system)
    force = torque(s, mul(y[0], turn), m, system)
    return mul(p, (0 * s, w[0] / 2, w[1] / 2, w[2] / 2)), rotate(turn, force)


@kernel
def _moved4(p: Any, s: Any, d: Any) -> Any:
    return (p[0] + s * d[0], p[1] + s * d[1], p[2] + s * d[2], p[3] + s * d[3])


@method(
    order=4, order_free=4, where="traditional 4th order Runge-Kutta, on the entries of the quaternion",
    **(TAYLOR | {"torque_evals": 4}),
)  # fmt: skip
@kernel
def rk4_quat(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Runge and Kutta's method on the entries of the quaternion, made a unit after the step; the momentum in space."""
    q, m = y
    half, zero = h / 2, 0 * h
    one = (zero + 1, zero, zero, zero)
    p1, f1 = _entries(t, one, m, y, system, torque)
    p2, f2 = _entries(t + half, _moved4(one, half, p1), along(m, half, f1), y, system, torque)
    p3, f3 = _entries(t + half, _moved4(one, half, p2), along(m, half, f2), y, system, torque)
    p4, f4 = _entries(t + h, _moved4(one, h, p3), along(m, h, f3), y, system, torque)
    p = _moved4(_moved4(_moved4(_moved4(one, h / 6, p1), h / 3, p2), h / 3, p3), h / 6, p4)
    turn = unit(p)
    momentum = along(along(along(along(m, h / 6, f1), h / 3, f2), h / 3, f3), h / 6, f4)
    return (mul(q, turn), unrotate(turn, momentum)), 0


for _axes in itertools.permutations("123"):
    methods.add_label(f"mry4_{''.join(_axes)}", f"yoshida4(rot{''.join(_axes)})")
