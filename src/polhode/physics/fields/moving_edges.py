"""Derivatives of the times at which conditions on time alone change, by the parameters of a field.

A condition changes at the time tau with g(tau, p) = 0, g the difference of its sides, so

    dtau/dp = -(dg/dp)/(dg/dt).

What the torque adds there is known for each condition by itself: the formula with this condition evaluated after the
edge, and all others before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...symbolic.expression import Expr, gradient, ordered, source, symbol
from ...taylor.graph import substituted
from .field import Field
from .kernels import formula_kernel, torque_kernel
from .switches import _evaluated, _rebuilt, _switches, switches_of
from .trace import once_for_formula


def changed_at(field: Field, before: float, after: float) -> list[int]:
    """Return the conditions, by number, whose outcomes at two times differ."""
    switches = switches_of(field)
    outcomes = zip(*(_evaluated(field, switches, t) for t in (before, after)), strict=True)
    return [i for i, (old, new) in enumerate(outcomes) if old != new]


def slopes_of_edge(field: Field, which: int, edge: float, parameters: Sequence[int]) -> np.ndarray:
    """Return dtau/dp of the time at which a condition changes; infinite or NaN where it does not cross."""
    found = _evaluated(field, _slopes(field, which, tuple(parameters)), edge)
    by_time, *by_parameters = (float(x) for x in found)
    with np.errstate(all="ignore"):
        return -np.array(by_parameters) / np.float64(by_time)


@once_for_formula
def _slopes(field: Field, which: int, parameters: tuple[int, ...]) -> list[Expr]:
    """The derivatives of g by t and by parameters; the knots of a table do not vary."""
    node = switches_of(field)[which]
    gap = node.args[0] if node.op == "bracket" else node.args[0] - node.args[1]
    return gradient(gap, [symbol("t"), *(symbol(f"p{i}") for i in parameters)])


def torque_at_edge(
    field: Field, after: frozenset[int], number: Callable[[Any], Any], has_principal_rotation: bool
) -> Callable[..., Any]:
    """Kernel of the torque with some conditions on time evaluated after an edge, and the others before it.

    The two moments are parameters behind those of the field.
    """
    return torque_kernel(formula_kernel(_text(field, after), number), len(field.parameters) + 2, has_principal_rotation)


@once_for_formula
def _text(field: Field, after: frozenset[int]) -> Any:
    count = len(field.parameters)
    formulas = substituted(field.graph[0], {})
    moments = [{"t": symbol(f"p{count + i}")} for i in (0, 1)]
    new = {node: substituted([node], moments[i in after])[0] for i, node in enumerate(_switches(formulas))}
    for node in ordered(formulas):
        if node not in new:
            new[node] = _rebuilt(node, new)
    unpack = field.unpack | {f"p{count + i}": f"p[{count + i}]" for i in (0, 1)}
    return source("torque_at_edge", "t, R, w, p", unpack, [new[node] for node in formulas])
