"""Rate of a torque along the motion, and norm of its gradient; exact, from the graph of the user's function.

T' = dT/dt + sum_ij dT/dR_ij (R hat(omega))_ij + sum_k dT/domega_k a_k, with a the angular acceleration. The squared
norm of the gradient is K = sum_j |I^-1 dT/dtheta_j|^2, theta_j the rotation about axis j of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..kernels.so3 import times
from ..numbers.dispatch import kernel
from ..symbolic.expression import Expr, compiled, gradient, lift, source, symbol
from .axes import axes
from .fields import Field

SYMBOLS = ("t", *(f"R{i}{j}" for i in range(3) for j in range(3)), *(f"w{i}" for i in range(3)))


def _rotation_times_hat(w: Sequence[Any]) -> list[Any]:
    """The entries of R hat(w), by rows."""
    R = [[symbol(f"R{i}{j}") for j in range(3)] for i in range(3)]
    return [
        row[(j + 1) % 3] * w[(j + 2) % 3] - row[(j + 2) % 3] * w[(j + 1) % 3] for row in R for j in range(3)
    ]  # fmt: skip


def _along(output: Expr, speeds: Sequence[Any]) -> Expr:
    """The rate of a formula of `SYMBOLS`, given the rate of each symbol."""
    rate = lift(0)
    for slope, speed in zip(gradient(output, [symbol(name) for name in SYMBOLS]), speeds, strict=True):
        rate = rate + slope * speed
    return rate


def formulas(field: Field, has_principal_rotation: bool) -> list[Expr]:
    """T' (three), K and K' as formulas of t, R, w, a, p, and s: I^-1 as three numbers, or as six (by rows)."""
    w, a, s = ([symbol(f"{name}{i}") for i in range(n)] for name, n in (("w", 3), ("a", 3), ("s", 6)))
    torque = field.graph[0]
    moving = [lift(1), *_rotation_times_hat(w), *a]
    rows = ((0, 1, 2), (1, 3, 4), (2, 4, 5))
    steepness = lift(0)
    for j in range(3):
        turning = [lift(0), *_rotation_times_hat([lift(int(i == j)) for i in range(3)]), lift(0), lift(0), lift(0)]
        slope = [_along(part, turning) for part in torque]
        for k in range(3):
            push = s[k] * slope[k]
            if has_principal_rotation:
                push = s[rows[k][0]] * slope[0] + s[rows[k][1]] * slope[1] + s[rows[k][2]] * slope[2]
            steepness = steepness + push * push
    return [*(_along(part, moving) for part in torque), steepness, _along(steepness, moving)]


def rate_text(field: Field, has_principal_rotation: bool) -> tuple[str, dict[str, Any]]:
    """Source and constants of `formulas`, in the user's axes."""
    unpack = field.unpack | {f"{name}{i}": f"{name}[{i}]" for name in "as" for i in range(6)}
    return source("rate_value", "t, R, w, a, p, s", unpack, formulas(field, has_principal_rotation))


@kernel
def no_gradient(t: Any, q: Any, m: Any, system: Any, a: Any) -> Any:
    """(T', K, K') of a free body: zeros."""
    zero = 0 * t
    return (zero, zero, zero), zero, zero


def rate_kernel(field: Field, number: Callable[[Any], Any], has_principal_rotation: bool) -> Callable[..., Any]:
    """The kernel (t, q, m, system, a) -> (T', K, K') in principal axes."""
    value = compiled(*rate_text(field, has_principal_rotation), number)
    attitude, vector, inverse, back = axes(has_principal_rotation, len(field.parameters))

    @kernel
    def rate(t: Any, q: Any, m: Any, system: Any, a: Any) -> Any:
        w, s = vector(times(system[1], m), system), inverse(system)
        x, y, z, steepness, steeper = value(t, attitude(q, system), w, vector(a, system), system[2], s)
        return back((x, y, z), system), steepness, steeper

    return rate
