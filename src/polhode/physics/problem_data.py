"""A problem as text: body, initial state, and the field as the list of operations of its formula.

A file holds this text, so that a loaded trajectory can be asked for states between those it holds. It contains numbers
and names of known operations only: nothing in it is executed, and everything is checked when it is read.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import COMPARISONS, LOOK_UPS, OPERATORS, Expr, ordered
from ..symbolic.formula import Formula, Node
from .body import Body
from .fields.field import Field, FieldTemplate
from .fields.sums import SumField, total
from .problem import Problem

ARITY = (
    dict.fromkeys((*OPERATORS, *COMPARISONS, "and", "or", "atan2", "power", *LOOK_UPS), 2)
    | dict.fromkeys((*(f for f in FUNCTIONS if f not in ("atan2", "power")), "abs"), 1)
    | {"where": 3}
)
"""Operations on nodes, with the number of their arguments."""

NAMED = ("pi", "e")
SYMBOLS = re.compile(r"t|R[0-2][0-2]|w[0-2]|p\d{1,4}")
LONGEST = 1_000_000
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
    if field.opaque:
        return None
    force, U = field.graph
    if (U is None) != (field.kind == "torque"):
        return None
    outputs = force if U is None else (U,)
    nodes = ordered(outputs)
    number = {node: i for i, node in enumerate(nodes)}
    listed = [_node_data(node, number) for node in nodes]
    if None in listed:
        return None
    return {
        "name": field.name, "kind": "torque" if U is None else "potential", "parameters": list(field.parameters),
        "nodes": listed, "value": [number[node] for node in outputs],
    }  # fmt: skip


def _node_data(node: Expr, number: dict[Expr, int]) -> list[Any] | None:
    """Return an operation and its arguments: indices of earlier operations, or the number or name that it is."""
    if node.op in ARITY:
        return [node.op, *(number[a] for a in node.args)]
    if node.op == "symbol" and SYMBOLS.fullmatch(node.args[0]):
        return ["symbol", node.args[0]]
    if node.op == "named" and node.args[0] in NAMED:
        return ["named", node.args[0]]
    if node.op == "const" and _is_constant(node.args[0]):
        value = node.args[0]
        return ["const", list(value) if isinstance(value, tuple) else value]
    return None


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
    nodes: list[tuple[str, tuple[Any, ...]]] = []
    for op, *args in data["nodes"]:
        nodes.append((op, _arguments(op, args, len(nodes), len(data["parameters"]))))
    value = tuple(Node(_index(i, len(nodes))) for i in data["value"])
    kind = data["kind"]
    if kind not in ("torque", "potential") or len(value) != (3 if kind == "torque" else 1):
        raise ValueError(f"{len(value)} numbers are no {kind}")
    R = tuple(tuple(f"R{i}{j}" for j in range(3)) for i in range(3))
    inputs: dict[str, Any] = {"R": R} if kind == "potential" else {"t": "t", "R": R, "omega": ("w0", "w1", "w2")}
    parameters = tuple(float(x) for x in data["parameters"])
    if parameters:
        inputs["p"] = tuple(f"p{i}" for i in range(len(parameters)))
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in inputs])
    made = value if kind == "torque" else value[0]
    name = re.sub(r"\W", "_", str(data["name"])) or "field"
    formula = Formula(name, "A field from a file.", signature, tuple(inputs.items()), tuple(nodes), made)
    template = FieldTemplate(formula, kind, "body")
    return template(p=parameters) if parameters else template()


def _arguments(op: str, args: list[Any], before: int, parameters: int) -> tuple[Any, ...]:
    """Return the checked arguments of an operation."""
    if op in ARITY and len(args) == ARITY[op]:
        return tuple(Node(_index(i, before)) for i in args)
    if len(args) == 1:
        [value] = args
        is_symbol = op == "symbol" and isinstance(value, str) and SYMBOLS.fullmatch(value)
        if is_symbol and (value[0] != "p" or int(value[1:]) < parameters):
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
