"""Taylor series: on the group, by the averaged rotation and one exponential; and on the quaternion itself.

S. R. Buss, J. Comput. Phys. 164 (2000) 377-406, and his talk of 2011:
with w(t + s) = sum w_k s^k along the motion, R(t + h) = R(t) exp(h Z), h Z = Y(h) by the series of
`physics/equations.py`. The series of the quaternion itself take less than half the work and conserve only its length.
A. Jorba and M. Zou, Exp. Math. 14 (2005) 99-117.
"""

from __future__ import annotations

import re
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import exp, mul
from ...kernels.state import incremented
from ...numbers.dispatch import kernel
from ...numbers.types import Vec3
from ..queries import ROTATION, STATE, MotionSeries
from ..record import Method
from ..registry import declare, methods

NAME = "lietaylor"

MOST = 40
"""Highest order available; in doubles nothing is gained beyond about 24."""


@kernel
def rotated_state(q: Any, turn: Vec3, end: Vec3) -> Any:
    """Return the state after a rotation, with the end momentum."""
    return mul(q, exp(turn)), end


@kernel
def _step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    q, m = y
    turn, end = torque(t, q, m, system, h)
    return rotated_state(q, turn, end), 0


def _build(number: Any) -> Step:
    return _step


@kernel
def _plain_step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    q, m = y
    dm, vector, scalar = torque(t, q, m, system, h)
    return incremented((q, m), dm, vector, scalar), 0


def _order(name: str, order: int | str) -> int:
    """Return the order as a number; raise an error if it is not available."""
    try:
        k = int(order)
    except (TypeError, ValueError, OverflowError):
        k = 0
    if not 1 <= k <= MOST or str(k) != str(order).strip():
        raise InputError(f"{name}() takes an order from 1 to {MOST}; got {order!r}. Write {name}(8)")
    return k


def _doc_of(family: Any, order: int) -> str:
    """Return the documentation of the member of a family with this order."""
    return re.sub(r" of one order, ``\w+\(\d+\)``", f" of order {order}", family.__doc__)


SERIES: dict[str, Any] = {
    "symmetric": False, "symplectic": False, "poisson": False, "implicit": False, "solves": 0, "torque_evals": 1,
    "torque_at": ("start",), "needs": "velocity",
}  # fmt: skip


def lietaylor(order: int | str, register: bool = False) -> Method:
    r"""Lie-Taylor of one order, ``lietaylor(8)``: omega by its Taylor series, the averaged rotation, one exponential.

    Along the motion, from the start of the step, $\omega(s) = \sum \omega_n s^n$, $T(s) = \sum T_n s^n$ and
    $Y(s) = \sum Y_n s^n$, the rotation vector with $R(t + s) = R_0 \exp(Y(s))$, follow order by order from

    $$\begin{aligned}
    (n + 1)\,I \omega_{n+1} &= \bigl(I \omega \times \omega + T\bigr)_n, \qquad Y_0 = 0, \\
    (n + 1)\,Y_{n+1} &=
    \bigl(\omega + \tfrac{1}{2}\,Y \times \omega + c(|Y|^2)\,Y \times (Y \times \omega)\bigr)_n, \\
    c(x) &= \sum_n c_n x^n, \qquad c_0 = \tfrac{1}{12}, \qquad (2 n + 3)\,c_n = \sum_{i=0}^{n-1} c_i\,c_{n-1-i}
    \end{aligned}$$

    where $(\ldots)_n$ is the coefficient of $s^n$. The step of order $k$ is

    $$R_1 = R_0 \exp\Bigl(\sum_{n=1}^{k} Y_n h^n\Bigr), \qquad \Pi_1 = \Pi_0 + I \sum_{n=1}^{k} \omega_n h^n$$

    and without a torque $\Pi_1 = R_1^{\mathsf T} R_0 \Pi_0$. The sum over $c_n$ is the series of Bernoulli numbers in
    $Y' = \operatorname{dexp}_{-Y}^{-1} \omega$.
    """
    k = _order(NAME, order)
    name = f"{NAME}({k})"
    if name in methods:
        return methods[name]
    return declare(
        _build, name=name, asks=MotionSeries(k, ROTATION), order=k, order_free=k,
        conserves=("spatial_momentum", "momentum_norm"), cite="buss2011",
        where="Z(h) to any order, by the recursion with Bernoulli numbers",
        doc=_doc_of(lietaylor, k), register=register, **SERIES,
    )  # fmt: skip


def taylor(order: int | str, register: bool = False) -> Method:
    r"""Taylor series of one order, ``taylor(12)``, of momentum and quaternion, which is then normalised.

    Along the motion, from the start of the step, $\omega(s) = \sum \omega_n s^n$, $T(s) = \sum T_n s^n$ and
    $q(s) = \sum q_n s^n$ follow order by order from

    $$(n + 1)\,I \omega_{n+1} = \bigl(I \omega \times \omega + T\bigr)_n, \qquad
    (n + 1)\,q_{n+1} = \tfrac{1}{2} \bigl(q\,(0, \omega)\bigr)_n$$

    where $(\ldots)_n$ is the coefficient of $s^n$. The step of order $k$ is

    $$q = q_0 + \sum_{n=1}^{k} q_n h^n, \qquad q \leftarrow q/|q|, \qquad
    \Pi_1 = \Pi_0 + I \sum_{n=1}^{k} \omega_n h^n$$
    """
    k = _order(taylor.__name__, order)
    name = f"{taylor.__name__}({k})"
    if name in methods:
        return methods[name]
    return declare(
        lambda number: _plain_step, name=name, asks=MotionSeries(k, STATE), order=k, order_free=k, conserves=(),
        cite="jorba2005", where="section 2, the series by automatic differentiation", doc=_doc_of(taylor, k),
        register=register, **SERIES,
    )  # fmt: skip


for _k in (2, 4, 8):
    lietaylor(_k, register=True)
taylor(6, register=True)
methods.add_combinator(NAME, lietaylor)
methods.add_combinator(taylor.__name__, taylor)
