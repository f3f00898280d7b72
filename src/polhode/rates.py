"""How fast a torque changes along the motion: exact, from the graph of the user's function.

T' = dT/dt + sum_ij dT/dR_ij (R hat(omega))_ij + sum_k dT/domega_k a_k, with a the angular acceleration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .expression import Expr, compiled, gradient, lift, source, symbol
from .fields import Field
from .scalar import kernel
from .so3 import conj, matrix, mul, rotate, times, unrotate


def derivative(outputs: tuple[Expr, ...]) -> list[Expr]:
    """The rates of formulas of t, R, w along the motion, as formulas of t, R, w and a = w'."""
    t, w, a = symbol("t"), [symbol(f"w{i}") for i in range(3)], [symbol(f"a{i}") for i in range(3)]
    R = [[symbol(f"R{i}{j}") for j in range(3)] for i in range(3)]
    turned = [
        row[(j + 1) % 3] * w[(j + 2) % 3] - row[(j + 2) % 3] * w[(j + 1) % 3] for row in R for j in range(3)
    ]  # R hat(w)  # fmt: skip
    inputs, speeds = [t, *(x for row in R for x in row), *w], [lift(1), *turned, *a]
    rates = []
    for output in outputs:
        rate = lift(0)
        for slope, speed in zip(gradient(output, inputs), speeds, strict=True):
            rate = rate + slope * speed
        rates.append(rate)
    return rates


def rate_text(field: Field) -> tuple[str, dict[str, Any]]:
    """Source and constants of T'(t, R, w, a, p) in the user's axes."""
    unpack = {"t": "t"} | {f"R{i}{j}": f"R[{i}][{j}]" for i in range(3) for j in range(3)}
    unpack |= {f"{name}{i}": f"{name}[{i}]" for name in "wa" for i in range(3)}
    unpack |= {f"p{i}": f"p[{i}]" for i in range(len(field.parameters))}
    return source("rate_value", "t, R, w, a, p", unpack, derivative(field.graph[0]))


def rated(
    torque: Callable[..., Any], field: Field | None, number: Callable[[Any], Any], own_axes: bool
) -> Callable[..., Any]:
    """The torque kernel of a field that, given the angular acceleration as well, returns the rate of the torque.

    ``torque(t, q, m, system)`` is what it was; ``torque(t, q, m, system, a)`` is T' in the body frame, principal axes.
    """
    if field is None:

        @kernel
        def still(t: Any, q: Any, m: Any, system: Any, a: Any = None) -> Any:
            if a is None:
                return torque(t, q, m, system)
            return (0 * t, 0 * t, 0 * t)

        return still
    value, count = compiled(*rate_text(field), number), len(field.parameters)
    if not own_axes:

        @kernel
        def plain(t: Any, q: Any, m: Any, system: Any, a: Any = None) -> Any:
            if a is None:
                return torque(t, q, m, system)
            return value(t, matrix(q), times(system[1], m), a, system[2])

        return plain

    @kernel
    def turned(t: Any, q: Any, m: Any, system: Any, a: Any = None) -> Any:
        if a is None:
            return torque(t, q, m, system)
        p = system[2]
        axes = (p[count], p[count + 1], p[count + 2], p[count + 3])
        rate = value(t, matrix(mul(q, conj(axes))), rotate(axes, times(system[1], m)), rotate(axes, a), p)
        return unrotate(axes, rate)

    return turned
