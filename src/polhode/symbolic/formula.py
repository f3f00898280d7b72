"""A user's function as data: its formula, with the names of its arguments. Fields are pickled in this form.

No code is stored. The unpickled function computes the same formula, on numbers and on symbols.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import InputError
from ..numbers import floats
from .expression import Expr, compiled, lift, ordered, source
from .rows import Rows


class Node(NamedTuple):
    """Index of a node among the nodes of a formula."""

    number: int


@dataclasses.dataclass(frozen=True)
class Formula:
    """A function given by its graph. Call it by keyword, with numbers or formulas, in the shapes of its inputs.

    Attributes
    ----------
    name, doc, signature : those of the function
    inputs : for each argument its name and its symbol, or nested tuples of symbols (for rows of data, of its columns)
    nodes : operations with their arguments, which are constants or the `Node` of an earlier operation
    value : the value that the function returns: a `Node`, or nested tuples of them
    """

    name: str
    doc: str
    signature: inspect.Signature
    inputs: tuple[tuple[str, Any], ...]
    nodes: tuple[tuple[str, tuple[Any, ...]], ...]
    value: Any
    rows: tuple[str, ...] = ()
    """Names of the arguments that are rows of data."""

    def __post_init__(self) -> None:
        for attribute, value in (("__name__", self.name), ("__doc__", self.doc), ("__signature__", self.signature)):
            object.__setattr__(self, attribute, value)

    def __call__(self, **given: Any) -> Any:
        """Evaluate the formula."""
        leaves: dict[str, Any] = {}
        for argument, symbols in self.inputs:
            self._match(argument, symbols, given[argument], leaves, given[argument])
        if any(isinstance(x, Expr) for x in leaves.values()):
            nodes = graph(self.nodes, {name: lift(x) for name, x in leaves.items()})
            return mapped(self.value, lambda node: nodes[node.number])
        values = dict(zip(self._outputs, self._plain(tuple(leaves.values())), strict=True))
        return mapped(self.value, values.__getitem__)

    @functools.cached_property
    def _outputs(self) -> list[Node]:
        """The distinct nodes in its value."""
        return list(dict.fromkeys(leaves_in(self.value)))

    @functools.cached_property
    def _plain(self) -> Callable[..., Any]:
        """The formula in floats, as a function of all symbols in order."""
        names = [name for _, symbols in self.inputs for name in leaves_in(symbols)]
        nodes = graph(self.nodes, {})
        outputs = [nodes[node.number] for node in self._outputs]
        text = source("formula_value", "s", {name: f"s[{i}]" for i, name in enumerate(names)}, outputs)
        return compiled(*text, floats.number)

    def _match(self, argument: str, symbols: Any, value: Any, leaves: dict[str, Any], whole: Any) -> None:
        """Assign the numbers of an argument to their symbols in `leaves`."""
        if isinstance(value, Rows):
            value = value.columns
        if isinstance(symbols, str):
            if not isinstance(value, tuple | list):
                leaves[symbols] = value
                return
        elif isinstance(value, tuple | list) and len(value) == len(symbols):
            for name, part in zip(symbols, value, strict=True):
                self._match(argument, name, part, leaves, whole)
            return
        shape = "a number" if isinstance(dict(self.inputs)[argument], str) else "as many numbers as before"
        raise InputError(
            f"{self.name} came from a pickle as a formula, so its parameter {argument} must be {shape}; got {whole!r}",
            argument,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields, without cached values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()


def formula_of(function: Any, signature: inspect.Signature, inputs: dict[str, Any], value: Any) -> Formula:
    """Formula of a function that returned `value`, a node or nested tuples of nodes, when called with symbols."""
    outputs = leaves_in(value)
    number = {node: i for i, node in enumerate(ordered(outputs))}
    nodes = tuple((node.op, tuple(Node(number[a]) if isinstance(a, Expr) else a for a in node.args)) for node in number)
    found = mapped(value, lambda node: Node(number[node]))
    doc = inspect.cleandoc(function.__doc__ or "")
    rows = tuple(name for name, symbols in inputs.items() if isinstance(symbols, Rows))
    plain = tuple((name, symbols.columns if name in rows else symbols) for name, symbols in inputs.items())
    return Formula(function.__name__, doc, signature, plain, nodes, found, rows)


def graph(nodes: Any, meaning: dict[str, Expr]) -> list[Expr]:
    """Build the nodes of a graph, with some symbols replaced."""
    made: list[Expr] = []
    for op, args in nodes:
        if op == "symbol" and args[0] in meaning:
            made.append(meaning[args[0]])
        else:
            made.append(Expr.make(op, *(made[a.number] if isinstance(a, Node) else a for a in args)))
    return made


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to every leaf of nested tuples."""
    nested = isinstance(value, tuple) and not isinstance(value, Node)
    return tuple(mapped(part, change) for part in value) if nested else change(value)


def leaves_in(value: Any) -> list[Any]:
    """Leaves of nested tuples, in order."""
    found: list[Any] = []
    mapped(value, found.append)
    return found
