"""Sums over rows of data, as loops: ``ph.total(term, normals, areas)`` in a torque or a potential.

The term is traced once, on symbols for one row. In a graph the sum is one node: a `Total` (the formula of the term),
the formulas that the term reads from outside, and the columns of the data. The derivative of a sum is the sum of the
derivatives of its term, so it is a `Total` again.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..numbers.dispatch import kernel, noinline
from ..numbers.nested import Nested, nested
from ..numbers.written import run_text
from .discrete_gradient import discrete_gradient
from .expression import COMPARISONS, Expr, Summation, compiled, gradient, lift, ordered, source, symbol
from .formula import Node, graph
from .rows import Rows, Trial

_depth = 0
"""Number of sums that are being traced: a term may contain a sum."""


def total(term: Callable[..., Any], *data: Any) -> Any:
    """Sum of ``term(row, ...)`` over the rows of arrays, in a torque, a potential or another function of a field.

    In compiled code the sum is a loop, however many rows there are. The arrays are parameters of the field (new values
    compile nothing), or constants outside the function. The term takes one row of each array, may use any variable of
    the function around it, and returns a number or a vector.

    >>> @ph.torque
    ... def pressure(R, sun, normals, arms, areas):
    ...     s = R.T @ sun
    ...     def facet(n, arm, area):
    ...         return ph.math.cross(arm, -area * max(ph.math.dot(n, s), 0.0) * s)
    ...     return ph.total(facet, normals, arms, areas)
    """
    return functools.reduce(operator.add, (_value(term(*rows)) for rows in zip(*_checked(data), strict=True)))


def traced_total(term: Callable[..., Any], *data: Any) -> Any:
    """`total` in a function that is traced: a node of the graph."""
    if any(isinstance(part, Trial) for part in data):
        for part in data:
            if isinstance(part, Trial):
                part.is_summed = True
        return _value(term(*(next(iter(part)) for part in data)))
    if any(_has_formulas(part) for part in data):  # numbers of the formula itself, not an array
        return total(term, *data)
    rows = [part if isinstance(part, Rows) else Rows.of(part, "an array of ph.total") for part in data]
    if not rows:
        raise InputError(
            "ph.total needs a function and at least one array, such as ph.total(term, areas); got the function alone"
        )
    return _summed(term, rows)


def _checked(data: Sequence[Any]) -> Sequence[Any]:
    """Data of equal lengths."""
    if not data or len({len(part) for part in data}) != 1 or not len(data[0]):
        lengths = ", ".join(str(len(part)) for part in data) or "no array"
        raise InputError(f"ph.total needs arrays with the same number of rows, at least one; got {lengths}")
    return data


def _has_formulas(value: Any) -> bool:
    return any(map(_has_formulas, value)) if isinstance(value, tuple | list) else isinstance(value, Expr)


def _value(value: Any) -> Any:
    """Value of a term, as a vector with the arithmetic of arrays if it is one."""
    return nested(value)


def _summed(term: Callable[..., Any], rows: Sequence[Rows]) -> Any:
    """Trace the term on symbols of one row, and return the node of the sum."""
    global _depth
    entries = [[symbol(f"x{_depth}_{j}_{k}") for k in range(len(part.columns))] for j, part in enumerate(rows)]
    _depth += 1
    try:
        value = _value(term(*(part.row(own) for part, own in zip(rows, entries, strict=True))))
    finally:
        _depth -= 1
    outputs = [lift(x) for x in value] if isinstance(value, Nested) else [lift(value)]
    own = [x for part in entries for x in part]
    made, inputs = _total_of(outputs, own)
    columns = [lift(_constant(column)) for part in rows for column in part.columns]
    items = made.items([*inputs, *columns])
    return nested(items) if isinstance(value, Nested) else items[0]


def _constant(column: Any) -> Any:
    return tuple(column.tolist()) if isinstance(column, np.ndarray) else column


@dataclasses.dataclass(frozen=True)
class Total(Summation):
    """The term of a sum as data: its graph, in the symbols a0, a1, ... (from outside) and x0, x1, ... (of the row)."""

    inputs: int
    columns: int
    nodes: tuple[tuple[str, tuple[Any, ...]], ...]
    value: tuple[Node, ...]

    @functools.cached_property
    def terms(self) -> list[Expr]:
        """The components of the term."""
        made = graph(self.nodes, {})
        return [made[node.number] for node in self.value]

    @property
    def arguments(self) -> list[Expr]:
        """Symbols of the formulas from outside."""
        return [symbol(f"a{i}") for i in range(self.inputs)]

    @property
    def row(self) -> list[Expr]:
        """Symbols of the numbers of one row."""
        return [symbol(f"x{i}") for i in range(self.columns)]

    @functools.cached_property
    def is_smooth(self) -> bool:
        """True if the term has no branches."""
        return not any(node.op in ("abs", *COMPARISONS) for node in ordered(self.terms))

    def items(self, arguments: Sequence[Expr]) -> list[Expr]:
        """The components of the sum, as nodes; `arguments` are formulas from outside, then columns."""
        node = Expr.make("total", lift(self), *arguments)
        return [Expr.make("item", node, i) for i in range(len(self.value))]

    def slopes(self, node: Expr) -> list[tuple[Expr, Expr]]:
        """Derivatives of a component with respect to the formulas from outside, each with its argument."""
        sums, i = node.args
        found = self._jacobian.items(sums.args[1:])
        return [(a, found[i * self.inputs + j]) for j, a in enumerate(sums.args[1 : 1 + self.inputs])]

    @functools.cached_property
    def _jacobian(self) -> Total:
        slopes = [slope for term in self.terms for slope in gradient(term, self.arguments)]
        return self._derived(slopes, self.arguments)

    def quotients(self, node: Expr, ends: Any) -> list[tuple[Expr, Expr]]:
        """Difference quotients of a component between two points (`discrete_gradient`), each with its argument."""
        sums, i = node.args
        first = sums.args[1 : 1 + self.inputs]
        found = self._difference_quotients.items([*first, *(ends[a] for a in first), *sums.args[1 + self.inputs :]])
        return [(a, found[i * self.inputs + j]) for j, a in enumerate(first)]

    @functools.cached_property
    def _difference_quotients(self) -> Total:
        first, last = self.arguments, [symbol(f"b{i}") for i in range(self.inputs)]
        return self._derived([x for term in self.terms for x in discrete_gradient(term, first, last)[0]], first + last)

    def _derived(self, outputs: Sequence[Expr], arguments: Sequence[Expr]) -> Total:
        """The sum of other formulas in the same row, with all of these arguments."""
        meaning = {node.args[0]: f"a{i}" for i, node in enumerate(arguments)}
        meaning |= {node.args[0]: node.args[0] for node in self.row}
        return _numbered(outputs, meaning, len(arguments), self.columns)

    def without_series(self) -> Exception:
        """Error for a request for its Taylor series."""
        return InputError(
            "a sum over rows (ph.total) has values and derivatives, but no Taylor series; use another method, or tol "
            "without a method"
        )

    def kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The loop, (formulas from outside, columns) -> the components of the sum; NaN if columns differ in length.

        The first term stands before the loop, so that the sum has its number type.
        """
        unpack = {f"a{i}": f"a{i}" for i in range(self.inputs)} | {f"x{i}": f"x{i}" for i in range(self.columns)}
        term = compiled(*source("term", ", ".join(unpack), unpack, self.terms), number)
        inputs, columns = ([f"{name}{i}" for i in range(n)] for name, n in (("a", self.inputs), ("c", self.columns)))
        sums = "".join(f"s{i}, " for i in range(len(self.value)))
        lines = [
            f"def total({', '.join([*inputs, *columns])}):",
            "    count = len(c0)",
            *(f"    count = min(count, len({c}))" for c in columns[1:]),
            f"    {sums} = term({', '.join([*inputs, *(f'{c}[0]' for c in columns)])})",
            "    for i in range(1, count):",
            f"        y = term({', '.join([*inputs, *(f'{c}[i]' for c in columns)])})",
            *(f"        s{i} = s{i} + y[{i}]" for i in range(len(self.value))),
            *(f"    s0 = s0 if len({c}) == count else s0 * nan" for c in columns),
            f"    return ({sums})",
        ]
        space: dict[str, Any] = {"term": term, "nan": number("nan")}
        run_text("\n".join(lines), space)  # it contains nothing of the user's
        made: Callable[..., Any] = space["total"]
        made.__module__ = __name__
        return kernel(noinline(made))  # a method calls it several times in a step


def _total_of(outputs: Sequence[Expr], row: Sequence[Expr]) -> tuple[Total, list[Expr]]:
    """The `Total` of a term in the symbols of a row, and the formulas that it reads from outside."""
    nodes, moving, inputs = ordered(outputs), set(row), dict[Expr, None]()
    for node in nodes:
        if any(a in moving for a in node.args if isinstance(a, Expr)):
            moving.add(node)
    for node in nodes:
        if node in moving:
            inputs |= dict.fromkeys(a for a in node.args if isinstance(a, Expr) and _is_input(a, moving))
    inputs |= dict.fromkeys(node for node in outputs if _is_input(node, moving))
    local = {node: symbol(f"a{i}") for i, node in enumerate(inputs)}
    local |= {node: symbol(f"x{i}") for i, node in enumerate(row)}
    new: dict[Expr, Expr] = {}
    for node in nodes:
        if node in local:
            new[node] = local[node]
        elif node in moving or node.op in ("const", "named"):
            new[node] = Expr.make(node.op, *(new[a] if isinstance(a, Expr) else a for a in node.args))
    meaning = {node.args[0]: node.args[0] for node in local.values()}
    return _numbered([new[node] for node in outputs], meaning, len(inputs), len(row)), list(inputs)


def _is_input(node: Expr, moving: set[Expr]) -> bool:
    return node not in moving and node.op not in ("const", "named")


def _numbered(outputs: Sequence[Expr], meaning: dict[str, str], inputs: int, columns: int) -> Total:
    """The `Total` of formulas, with its symbols renamed."""
    number = {node: i for i, node in enumerate(ordered(outputs))}
    nodes = []
    for node in number:
        args = tuple(Node(number[a]) if isinstance(a, Expr) else a for a in node.args)
        nodes.append((node.op, (meaning[node.args[0]],) if node.op == "symbol" else args))
    return Total(inputs, columns, tuple(nodes), tuple(Node(number[node]) for node in outputs))
