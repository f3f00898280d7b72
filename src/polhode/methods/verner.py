"""Verner's Runge-Kutta pair 8(7) on the seven numbers of attitude and momentum, with its error estimates.

In principal axes, with w = I^-1 Pi,

    q' = q (0, w)/2,        Pi_1' = (1/I_3 - 1/I_2) Pi_2 Pi_3 + T_1  and cyclically,

as differential equations of plain numbers (Euler's: Pi' = Pi x w + T). Within the step |q| is 1 only up to what the
stages miss; the equations keep |q| and are smooth for every q, so the order is that of the tableau. At the end of the
step q is divided by its length. Nothing else is kept by the pair: it is for short runs to a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..declare import Step
from ..exact_numbers import converted
from ..scalar import kernel, sqrt, where
from ..so3 import norm, norm2, unit
from ..unroll import written
from .embedded import controlled
from .verner_table import EMBEDDED, STAGES, VERNER

ORDER, ESTIMATE_ORDER = 8, 7
NAME = VERNER.name
NUMBERS = range(7)

DIFFERENCE = tuple(low - high for low, high in zip(EMBEDDED, VERNER.b, strict=True))


@kernel
def _constants(h: Any, system: Any) -> Any:
    """H I^-1/2 and h (1/I_3 - 1/I_2), cyclically: what the rates below multiply with."""
    a, b, c = system[1]
    half = h / 2
    return (half * a, half * b, half * c), (h * (c - b), h * (a - c), h * (b - a))


@kernel
def _increments(h: Any, t: Any, q0: Any, q1: Any, q2: Any, q3: Any, m0: Any, m1: Any, m2: Any,
                constants: Any, system: Any, torque: Any) -> Any:  # fmt: skip
    """The rates of q and Pi times h."""
    turn, gyration = constants
    force = torque(t, (q0, q1, q2, q3), (m0, m1, m2), system)
    a, b, c = turn[0] * m0, turn[1] * m1, turn[2] * m2
    return (
        -q1 * a - q2 * b - q3 * c,
        q0 * a + q2 * c - q3 * b,
        q0 * b + q3 * a - q1 * c,
        q0 * c + q1 * b - q2 * a,
        h * force[0] + gyration[0] * (m1 * m2),
        h * force[1] + gyration[1] * (m2 * m0),
        h * force[2] + gyration[2] * (m0 * m1),
    )


def _sum(weights: dict[int, str], i: int) -> str:
    """Text of sum_j w_j k_j, the newest stage last: the sums of the others need not wait for it."""
    return " + ".join(f"{w} * k{j}_{i}" for j, w in weights.items())


def runge_kutta_pair(number: Callable[[Any], Any]) -> Step:
    """Kernel (h, t, y, system, torque) -> (y_new, error_attitude, error_momentum) in one number type.

    The errors are those of order 7: twice the length of a difference of quaternions, and that of a difference of body
    momenta. The thirteen stages are written out, number by number.
    """
    space: dict[str, Any] = {"increments": _increments, "constants": _constants, "ended": _ended}

    def named(row: Any, name: str) -> dict[int, str]:
        space.update({f"{name}_{j}": converted(x, number) for j, x in enumerate(row) if x != 0})
        return {j: f"{name}_{j}" for j, x in enumerate(row) if x != 0}

    lines = ["(y0, y1, y2, y3), (y4, y5, y6) = y", "fixed = constants(h, system)"]
    for n in range(STAGES):
        row, space[f"c{n}"] = named(VERNER.a[n], f"a{n}"), converted(VERNER.c[n], number)
        state = ", ".join(f"y{i} + {_sum(row, i)}" if row else f"y{i}" for i in NUMBERS)
        made = ", ".join(f"k{n}_{i}" for i in NUMBERS)
        lines.append(f"{made} = increments(h, t + c{n} * h, {state}, fixed, system, torque)")
    step, miss = named(VERNER.b, "b"), named(DIFFERENCE, "e")
    new, errors = ([_sum(row, i) for i in NUMBERS] for row in (step, miss))
    new = [f"y{i} + ({x})" for i, x in enumerate(new)]
    lines.append(f"new, error = ({', '.join(new)}), ({', '.join(errors)})")
    return written("h, t, y, system, torque", "ended(new, error)", *lines, **space)


@kernel
def _ended(new: Any, error: Any) -> Any:
    y = unit((new[0], new[1], new[2], new[3])), (new[4], new[5], new[6])
    attitude = 2 * sqrt(norm2((error[0], error[1], error[2], error[3])))
    return y, attitude, norm((error[4], error[5], error[6]))


def runge_kutta_stage(number: Callable[[Any], Any], torque: Callable[..., Any]) -> Callable[..., Any]:
    """A stage for `loop.travelling`: one step of the pair, accepted if both errors are within their tolerances."""
    attempt, judged = runge_kutta_pair(number), controlled(number, ORDER)

    @kernel
    def stage(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        h = where(proposal < left, proposal, left)
        new, attitude, momentum = attempt(h, t, y, system, torque)
        following, fine = judged(h, proposal, (attitude, momentum), tolerance)
        return new, h, following, fine

    return stage
