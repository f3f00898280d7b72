"""Taylor series on the group: the averaged rotation to any order, one exponential.

S. R. Buss, J. Comput. Phys. 164 (2000) 377-406, and his talk of 2011:
with w(t + s) = sum w_k s^k along the motion, R(t + h) = R(t) exp(h Z), h Z = Y(h) by the series of `expansion.py`.
"""

from __future__ import annotations

from typing import Any

from ..declare import Method, Step, declare, methods
from ..errors import InputError
from ..scalar import Vec3, kernel
from ..so3 import exp, mul

NAME = "lietaylor"

MOST = 40
"""The highest order offered; in doubles nothing is gained beyond about 24."""


@kernel
def turned(q: Any, turn: Vec3, end: Vec3) -> Any:
    """The state after a turn, its momentum given."""
    return mul(q, exp(turn)), end


@kernel
def _step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    q, m = y
    turn, end = torque(t, q, m, system, h)
    return turned(q, turn, end), 0


def _build(number: Any) -> Step:
    return _step


def lietaylor(order: int | str, register: bool = False) -> Method:
    """Lie-Taylor of one order, ``lietaylor(8)``: w by its Taylor series, the averaged rotation Z, one exponential."""
    try:
        k = int(order)
    except (TypeError, ValueError):
        k = 0
    if not 1 <= k <= MOST or str(k) != str(order).strip():
        raise InputError(f"lietaylor() takes an order from 1 to {MOST}; got {order!r}. Write lietaylor(8)")
    name = f"{NAME}({k})"
    if name in methods:
        return methods[name]
    return declare(
        _build, name=name, series=k, order=k, order_free=k, symmetric=False, symplectic=False, poisson=False,
        implicit=False, solves=0, torque_evals=1, torque_at=("start",), needs="velocity",
        conserves=("spatial_momentum", "momentum_norm"), cite="buss2011",
        where="Z(h) to any order, by the recursion with Bernoulli numbers", doc=lietaylor.__doc__, identity=str(k),
        register=register,
    )  # fmt: skip


for _order in (2, 4, 8):
    lietaylor(_order, register=True)
methods.add_combinator(NAME, lietaylor)
