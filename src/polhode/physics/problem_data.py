"""A problem as text: body, initial state, and the field as the list of operations of its formula.

A file holds this text, so that a loaded trajectory can be asked for states between those it holds. It contains numbers
and names of known operations only: nothing in it is executed, and everything is checked when it is read.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import numpy as np

from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import COMPARISONS, LOOK_UPS, OPERATORS, Expr, ordered
from ..symbolic.formula import Formula, Node
from ..symbolic.rows import Rows
from ..symbolic.total import Total
from .body import Body
from .fields.field import Field
from .fields.sums import SumField, total
from .fields.template import FieldTemplate
from .problem import Problem

ARITY = (
    dict.fromkeys((*OPERATORS, *COMPARISONS, "and", "or", "atan2", "power", *LOOK_UPS), 2)
    | dict.fromkeys((*(f for f in FUNCTIONS if f not in ("atan2", "power")), "abs"), 1)
    | {"where": 3}
)
"""Operations on nodes, with the number of their arguments."""

NAMED = ("pi", "e")
SYMBOLS = re.compile(r"t|R[0-2][0-2]|w[0-2]|p\d{1,4}")
IN_SUMS = re.compile(r"[ax]\d{1,4}")
"""Symbols in the term of a sum over rows: formulas from outside, and numbers of a row."""

LONGEST = 10_000_000
"""Characters of the longest text that a file holds."""


# --- writing ----------------------------------------------------------------------------------------


def to_text(problem: Problem) -> str | None:
    """Return a problem as text; None if its field is no formula of known operations, or too long."""
    field = problem.field
    parts = () if field is None else field.template.parts if isinstance(field, SumField) else (field,)
    stored = [_field_data(part) for part in parts]
    if None in stored:
        return None
    text = json.dumps({
        "inertia": problem.body.inertia.tolist(), "t0": problem.t0, "quaternion": list(map(float, problem.quaternion)),
        "momentum": list(map(float, problem.momentum)), "fields": stored,
    })  # fmt: skip
    return text if len(text) <= LONGEST else None


def _field_data(field: Field) -> dict[str, Any] | None:
    if field.states or field.opaque or field.bath is not None:
        return None
    force, U = field.graph
    if (U is None) != (field.kind == "torque"):
        return None
    outputs = force if U is None else (U,)
    nodes = ordered(outputs)
    number = {node: i for i, node in enumerate(nodes)}
    operations = ((node.op, [number[a] if isinstance(a, Expr) else a for a in node.args]) for node in nodes)
    listed = [_node_data(op, args, SYMBOLS) for op, args in operations]
    if None in listed:
        return None
    return {
        "name": field.name, "kind": "torque" if U is None else "potential", "nodes": listed,
        "parameters": [x.tolist() if isinstance(x, np.ndarray) else x for x in field.parameters],
        "value": [number[node] for node in outputs],
    }  # fmt: skip


def _node_data(op: str, args: list[Any], symbols: re.Pattern[str]) -> list[Any] | None:
    """Return an operation and its arguments: indices of earlier operations, or the number or name that it is."""
    if op in ARITY or op in ("total", "item"):
        return [op, *args]
    if op == "const" and isinstance(args[0], Total):
        return _sum_data(args[0])
    known = (op == "symbol" and symbols.fullmatch(args[0])) or (op == "named" and args[0] in NAMED)
    if known or (op == "const" and _is_constant(args[0])):
        return [op, *(list(value) if isinstance(value, tuple) else value for value in args)]
    return None


def _sum_data(sums: Total) -> list[Any] | None:
    """Return the term of a sum over rows."""
    plain = ((op, [a.number if isinstance(a, Node) else a for a in args]) for op, args in sums.nodes)
    nodes = [_node_data(op, args, IN_SUMS) for op, args in plain]
    return None if None in nodes else ["sum", sums.inputs, sums.columns, nodes, [node.number for node in sums.value]]


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return bool(value) and all(type(x) in (int, float) for x in value)
    return type(value) in (int, float)


# --- reading ----------------------------------------------------------------------------------------


def from_text(text: str) -> Problem:
    """Return the problem of a text; ValueError, TypeError, KeyError or InputError if it is not valid."""
    data = json.loads(text)
    fields = tuple(_field(part) for part in data["fields"])
    field = None if not fields else fields[0] if len(fields) == 1 else total(fields)
    return Problem(
        Body(data["inertia"]), field, attitude=data["quaternion"], momentum=data["momentum"], t0=data["t0"]
    )  # fmt: skip


def _field(data: dict[str, Any]) -> Field:
    nodes = _nodes(data["nodes"], {"p": len(data["parameters"])}, SYMBOLS)
    value = tuple(Node(_index(i, len(nodes))) for i in data["value"])
    kind = data["kind"]
    if kind not in ("torque", "potential") or len(value) != (3 if kind == "torque" else 1):
        raise ValueError(f"{len(value)} numbers are no {kind}")
    R = tuple(tuple(f"R{i}{j}" for j in range(3)) for i in range(3))
    inputs: dict[str, Any] = {"R": R} if kind == "potential" else {"t": "t", "R": R, "omega": ("w0", "w1", "w2")}
    values, columns = _parameters(data["parameters"], inputs)
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in inputs])
    made = value if kind == "torque" else value[0]
    name = re.sub(r"\W", "_", str(data["name"])) or "field"
    formula = Formula(name, "A field from a file.", signature, tuple(inputs.items()), tuple(nodes), made, columns)
    return FieldTemplate(formula, kind, "body")(**values)


def _parameters(listed: list[Any], inputs: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters by name, and the names of the columns of data; add their symbols to `inputs`."""
    columns = tuple(f"p{i}" for i, x in enumerate(listed) if isinstance(x, list))
    read = (Rows.of(x, "data") if isinstance(x, list) else float(x) for x in listed)
    values: dict[str, Any] = {f"p{i}": x for i, x in enumerate(read)}
    if columns:
        inputs |= {name: (name,) if name in columns else name for name in values}
    elif values:
        inputs["p"], values = tuple(values), {"p": tuple(values.values())}
    return values, columns


def _nodes(
    listed: list[Any], counts: dict[str, int], symbols: re.Pattern[str]
) -> list[tuple[str, tuple[Any, ...]]]:  # fmt: skip
    """Return checked operations; `counts` are the numbers of numbered symbols by their letter."""
    nodes: list[tuple[str, tuple[Any, ...]]] = []
    for op, *args in listed:
        if op == "sum":
            nodes.append(("const", (_sum(*args),)))
        elif op in ("total", "item"):
            nodes.append((op, _of_sum(op, args, nodes)))
        else:
            nodes.append((op, _arguments(op, args, len(nodes), counts, symbols)))
    return nodes


def _sum(inputs: Any, columns: Any, listed: list[Any], value: list[Any]) -> Total:
    """Return the term of a sum over rows."""
    if type(inputs) is not int or type(columns) is not int or inputs < 0 or columns < 1 or not value:
        raise ValueError("a sum needs numbers of inputs and columns, and a value")
    nodes = _nodes(listed, {"a": inputs, "x": columns}, IN_SUMS)
    return Total(inputs, columns, tuple(nodes), tuple(Node(_index(i, len(nodes))) for i in value))


def _of_sum(op: str, args: list[Any], nodes: list[tuple[str, tuple[Any, ...]]]) -> tuple[Any, ...]:
    """Return the arguments of a sum over rows, or of a component of one."""
    first, rest = Node(_index(args[0], len(nodes))), args[1:]
    kind, known = nodes[first.number]
    if op == "total" and kind == "const" and isinstance(known[0], Total):
        if len(rest) == known[0].inputs + known[0].columns:
            return first, *(Node(_index(i, len(nodes))) for i in rest)
    elif op == "item" and kind == "total" and len(rest) == 1:
        sums = nodes[known[0].number][1][0]
        return first, _index(rest[0], len(sums.value))
    raise ValueError(f"{op!r} with {args!r} is no sum over rows")


def _arguments(
    op: str, args: list[Any], before: int, counts: dict[str, int], symbols: re.Pattern[str]
) -> tuple[Any, ...]:  # fmt: skip
    """Return the checked arguments of an operation."""
    if op in ARITY and len(args) == ARITY[op]:
        return tuple(Node(_index(i, before)) for i in args)
    if len(args) == 1:
        [value] = args
        is_symbol = op == "symbol" and isinstance(value, str) and symbols.fullmatch(value)
        if is_symbol and (value[0] not in counts or int(value[1:]) < counts[value[0]]):
            return (value,)
        if op == "named" and value in NAMED:
            return (value,)
        if op == "const" and _is_constant(value):
            return (tuple(value) if isinstance(value, list) else value,)
    raise ValueError(f"{op!r} with {args!r} is no operation of a formula")


def _index(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f"{value!r} is no earlier operation")
    return value
