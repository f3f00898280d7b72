"""Conditions in a field that depend on the state: the field held on one side of each of them.

Coulomb friction, a dead band or a user's `ph.where(omega[0] > 0, ...)` is one smooth formula on each side of a surface
in the space of states. `SidedField` is that formula, with a further parameter for each condition: 1 where it holds,
else 0. It can be continued across the surface, so a step of full order may end on it (`run/located.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...numbers import arrays, floats  # noqa: F401 - arrays: conditions are evaluated at many states at once
from ...symbolic.expression import COMPARISONS, Expr, lift, ordered, source, symbol
from .derived import DerivedField
from .edged import EdgedField
from .field import Field
from .kernels import formula_kernel
from .switches import PiecewiseField, _depends, _rebuilt, _with_moving_states, switches_of
from .trace import of_formula, once_for_formula

LOCATED = ("lt", "le", "abs")
"""Operations with two sides."""

OTHERS = ("eq", "ne", "call", "bracket", "total")
"""Operations on the state whose jumps are not located: they have no sides, or more than two."""

assert set(COMPARISONS) <= {*LOCATED, *OTHERS}


@once_for_formula
def conditions_of(field: Field) -> list[Expr]:
    """Comparisons and absolute values in the torque that depend on the state; none if some jump cannot be located."""
    if field.states and field.coupled[1]:
        return []
    nodes = ordered(field.graph[0])
    moving = _depends(nodes, "Rwm")
    found = [node for node in nodes if node in moving and node.op in LOCATED]
    return [] if any(node.op in OTHERS and node in moving for node in nodes) else found


@once_for_formula
def has_jumps(field: Field) -> bool:
    """Whether its torque, or a rate of its states, compares the state or looks it up in a table: it may jump there."""
    nodes = ordered(_with_moving_states(field) if field.states else field.graph[0])
    moving = _depends(nodes, "Rwm")
    return any(node in moving and node.op in ("abs", "bracket", *COMPARISONS) for node in nodes)


@once_for_formula
def has_conditions(field: Field) -> bool:
    """Whether its torque has comparisons or absolute values that depend on the state, located or not."""
    nodes = ordered(field.graph[0])
    moving = _depends(nodes, "Rwm")
    return any(node in moving and node.op in (*LOCATED, *OTHERS) for node in nodes)


def may_jump(field: Field) -> bool:
    """Whether a field may have jumps or kinks, in the state or in time, at which steps should end."""
    return has_jumps(field) or bool(switches_of(field))


class SidedField(DerivedField):
    """A field on one side of each of its conditions; the last parameters, added here, are the sides, 1 or 0."""

    @property
    def count(self) -> int:
        """Number of conditions."""
        return len(conditions_of(self.whole))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of the field, then the sides (0 until a run sets them)."""
        return (*self.whole.parameters, *[0.0] * self.count)

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The torque with its conditions replaced by the sides."""
        force, U = self.whole.graph
        new = self._held
        a, b, c = (new[node] for node in force)
        return (a, b, c), U

    @property
    def written(self) -> Any:
        """The torque, in the body frame."""
        return self.graph[0]

    @of_formula
    def _held(self) -> dict[Expr, Expr]:
        """Every node of the torque, with the conditions in it replaced by the sides."""
        sides = {node: _side(self.whole, k) for k, node in enumerate(conditions_of(self.whole))}
        new: dict[Expr, Expr] = {}
        for node in ordered(self.whole.graph[0]):
            if node not in sides:
                new[node] = _rebuilt(node, new)
            elif node.op == "abs":
                x = new[node.args[0]]
                new[node] = Expr.make("where", sides[node], x, -x)
            else:
                new[node] = sides[node]
        return new

    @of_formula
    def _truths(self) -> Any:
        """The conditions as a function of t, R, omega and the parameters; a condition inside another has its side."""
        new = self._held
        found = [
            Expr.make("le", lift(0), new[node.args[0]]) if node.op == "abs"
            else Expr.make(node.op, *(new[a] for a in node.args))
            for node in conditions_of(self.whole)
        ]  # fmt: skip
        return formula_kernel(source("conditions", "t, R, w, p", self.unpack, found), floats.number)

    @of_formula
    def _gaps(self) -> Any:
        """The functions whose zeros are the surfaces of the conditions, with arguments as `_truths`."""
        new = self._held
        compared = [[new[a] for a in node.args] for node in conditions_of(self.whole)]
        found = [x - rest[0] if rest else x for x, *rest in compared]
        return formula_kernel(source("gaps", "t, R, w, p", self.unpack, found), floats.number)

    def truths(self, t: Any, R: Any, omega: Any, parameters: Sequence[Any]) -> Any:
        """Whether each condition holds, at one state or at many."""
        return self._truths(t, R, omega, parameters)

    def gaps(self, t: Any, R: Any, omega: Any, parameters: Sequence[Any]) -> Any:
        """A function for each condition that is zero where it changes, and smooth on one side of the others."""
        return self._gaps(t, R, omega, parameters)


def whole_of(field: Field | None) -> Field | None:
    """The field of which this is the formula between edges or on one side; any other field as it is."""
    while isinstance(field, EdgedField | PiecewiseField | SidedField):
        field = field.whole
    return field


def _side(field: Field, k: int) -> Expr:
    """The condition that replaces condition k: its side is 1."""
    return Expr.make("lt", lift(0.5), symbol(f"p{len(field.parameters) + k}"))
