"""Values while translating: their types, their conversion to stored ones, and arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .nodes import ARRAY, BOOL, INT, NUM, Known, Node, Static, Tup, Type, Value, const, is_stored, known, tup
from .source import Untranslatable

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def lifted(value: Any) -> Value:
    """A Python object as a value: tuples by their items."""
    if type(value) is tuple:
        return tuple(map(lifted, value))
    if isinstance(value, np.floating | np.integer):
        return Static(value.item())
    return Static(value)


def is_number(value: Value) -> bool:
    """Whether this is a number known while translating."""
    return isinstance(value, Static) and isinstance(value.value, int | float) and not isinstance(value.value, bool)


def is_integers(value: Value) -> bool:
    """Whether this is a tuple of known integers only: the torque on a free body."""
    if isinstance(value, tuple):
        return len(value) > 0 and all(map(is_integers, value))
    return is_number(value) and isinstance(value.value, int)


def type_of(value: Value) -> Type:
    """The type of a value as it is returned or passed on, with what is known of it."""
    if isinstance(value, tuple):
        return tup(*map(type_of, value))
    return known(value.value) if isinstance(value, Static) else value.type


def stored_type(kind: Type) -> Type:
    """The type of a variable whose value may change: known numbers and truth values become stored ones."""
    if isinstance(kind, Tup):
        return tup(*map(stored_type, kind.items))
    if isinstance(kind, Known) and isinstance(kind.value, int | float):
        return BOOL if isinstance(kind.value, bool) else NUM
    return kind


def of_type(node: Node | None, kind: Type) -> Value:
    """The value of a node of some type: known parts are known again."""
    if isinstance(kind, Known):
        return Static(kind.value)
    if isinstance(kind, Tup) and not is_stored(kind):
        return tuple(of_type(None, item) for item in kind.items)
    assert node is not None
    return node


def item(value: Value, place: int) -> Value:
    """An item of a tuple."""
    if isinstance(value, tuple):
        return value[place]
    kind = value.type.items[place]
    if not is_stored(kind):
        return of_type(None, kind)
    if value.op == "make":
        return value.args[value.type.stored.index(range(len(value.type.items))[place])]
    return Node("item", (value,), kind, range(len(value.type.items))[place])


def length(value: Value) -> int:
    """The number of items of a tuple."""
    return len(value) if isinstance(value, tuple) else len(value.type.items)


def is_tuple(value: Value) -> bool:
    """Whether a value is a tuple."""
    return isinstance(value, tuple) or (isinstance(value, Node) and isinstance(value.type, Tup))


def converted(value: Value, kind: Type) -> Node:
    """A value as a node of a stored type."""
    if isinstance(kind, Tup):
        if isinstance(value, Node) and value.type == kind:
            return value
        if not is_tuple(value) or length(value) != len(kind.items):
            raise Untranslatable(f"a value has different shapes on two paths: {type_of(value)} and {kind}")
        return Node("make", tuple(converted(item(value, i), kind.items[i]) for i in kind.stored), kind)
    if isinstance(value, tuple):
        raise Untranslatable("a tuple stands where a number is expected")
    if isinstance(value, Static):
        return _constant(value.value, kind)
    if value.type == kind:
        return value
    if (value.type, kind) == (INT, NUM):
        return Node("cast", (value,), NUM)
    raise Untranslatable(f"a value of type {value.type} stands where {kind} is expected")


def _constant(value: Any, kind: Type) -> Node:
    if kind == INT and isinstance(value, int):
        return Node("const", (), INT, value)
    if kind == BOOL and isinstance(value, bool | int):
        return const(bool(value))
    if kind == NUM and isinstance(value, int | float):
        return const(float(value))
    raise Untranslatable(f"{value!r} is not a number")


def witness(value: Value) -> Any:
    """A Python object of the same kind, for the functions that choose among kernels."""
    if isinstance(value, tuple):
        return tuple(map(witness, value))
    if isinstance(value, Static):
        return value.value
    if isinstance(value.type, Tup):
        return tuple(witness(item(value, i)) for i in range(len(value.type.items)))
    return {NUM: 0.5, BOOL: True, INT: 1, ARRAY: [0.5]}[value.type]


def _numeric(value: Value) -> Value:
    """An operand of arithmetic."""
    if is_tuple(value) or (isinstance(value, Static) and not isinstance(value.value, int | float)):
        raise Untranslatable(f"{value!r} stands where a number is expected")
    return value


def arithmetic(op: str, a: Value, b: Value) -> Value:
    """Sum, difference, product or quotient; integers stay integers, except in a quotient."""
    a, b = _numeric(a), _numeric(b)
    if isinstance(a, Static) and isinstance(b, Static):
        return Static(ARITHMETIC[op](a.value, b.value))
    kinds = {x.type if isinstance(x, Node) else INT if isinstance(x.value, int) else NUM for x in (a, b)}
    kind = INT if kinds == {INT} and op != "/" else NUM
    return Node(op, (converted(a, kind), converted(b, kind)), kind)


def comparison(op: str, a: Value, b: Value) -> Value:
    """Whether a op b holds."""
    if isinstance(a, Static) and isinstance(b, Static):
        return Static(bool(COMPARISONS[op](a.value, b.value)))
    kinds = {x.type if isinstance(x, Node) else INT if isinstance(x.value, int) else NUM for x in (a, b)}
    kind = BOOL if BOOL in kinds else INT if kinds == {INT} else NUM
    return Node(op, (converted(a, kind), converted(b, kind)), BOOL)


def logic(op: str, a: Value, b: Value) -> Value:
    """Conjunction (&&) or disjunction (||)."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Static):
            return other if bool(one.value) == (op == "&&") else one
    return Node(op, (a, b), BOOL)


def negative(a: Value) -> Value:
    """Minus a."""
    a = _numeric(a)
    return Static(-a.value) if isinstance(a, Static) else Node("neg", (a,), a.type)


def inverted(a: Value) -> Value:
    """Not a."""
    return Static(not a.value) if isinstance(a, Static) else Node("not", (a,), BOOL)


def select(condition: Value, yes: Value, no: Value) -> Value:
    """`yes` if the condition holds, else `no`; item by item for tuples."""
    if isinstance(condition, Static):
        return yes if condition.value else no
    if is_tuple(yes):
        return tuple(select(condition, item(yes, i), item(no, i)) for i in range(length(yes)))
    kinds = {stored_type(type_of(yes)), stored_type(type_of(no))}
    kind = NUM if INT in kinds else kinds.pop()
    return Node("select", (condition, converted(yes, kind), converted(no, kind)), kind)


def joined(a: Type, b: Type) -> Type:
    """The type of a value that is of either type."""
    if a == b:
        return a
    if isinstance(a, Tup) and isinstance(b, Tup) and len(a.items) == len(b.items):
        return tup(*(joined(x, y) for x, y in zip(a.items, b.items, strict=True)))
    a, b = stored_type(a), stored_type(b)
    if {a, b} == {INT, NUM}:
        return NUM
    if a != b:
        raise Untranslatable(f"a function returns values of different shapes: {a} and {b}")
    return a
