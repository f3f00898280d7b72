"""Translation of the expressions of a kernel."""

from __future__ import annotations

import ast
import operator
from typing import Any

from .nodes import ARRAY, INT, NUM, Node, Static, Value, Var
from .source import Untranslatable, meaning, name_of
from .values import (
    arithmetic,
    comparison,
    converted,
    inverted,
    is_number,
    item,
    length,
    lifted,
    logic,
    negative,
    select,
)

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OF_KNOWN = {ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
"""Operators that only numbers known while translating may have."""
LOGIC = {ast.BitAnd: "&&", ast.BitOr: "||", ast.And: "&&", ast.Or: "||"}


class DynamicIndex(Untranslatable):
    """A tuple is indexed by a loop variable; the loop must be written out."""


class Expressions:
    """Expressions of one kernel; `bindings` maps its local names to values."""

    source: Any
    bindings: dict[str, Value]

    def call(self, node: ast.Call) -> Value:
        """The value of a call."""
        raise NotImplementedError

    def kept(self, value: Value, name: str) -> Value:
        """The value as one that can be read several times; it may be stored under a name first."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        translate = getattr(self, f"_{type(node).__name__.lower()}", None)
        if translate is None:
            raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)}, which has no translation")
        return translate(node)

    def _constant(self, node: ast.Constant) -> Value:
        return Static(node.value)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.bindings:
            return self.bindings[node.id]
        return lifted(meaning(self.source, node.id))

    def _tuple(self, node: ast.Tuple) -> Value:
        items: list[Value] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                whole = self.kept(self.value(part.value), "parts")
                items += [item(whole, i) for i in range(length(whole))]
            else:
                items.append(self.value(part))
        return tuple(items)

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if not isinstance(owner, Static):
            raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)} of a number")
        return lifted(getattr(owner.value, node.attr))

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            owner = self.kept(owner, "parts")
            ends = [None if x is None else self.value(x).value for x in (node.slice.lower, node.slice.upper)]
            return tuple(item(owner, i) for i in range(length(owner))[slice(*ends)])
        return self.entry(owner, self.value(node.slice))

    def entry(self, owner: Value, index: Value) -> Value:
        """owner[index]."""
        if isinstance(owner, Node) and owner.type == ARRAY:
            return Node("at", (owner, converted(index, INT)), NUM)
        if isinstance(owner, Static):
            owner = lifted(tuple(getattr(owner.value, "tolist", lambda: owner.value)()))
        if isinstance(index, Static):
            return item(owner, index.value)
        if isinstance(owner, tuple) and all(map(is_number, owner)):
            return Node("table", (converted(index, INT),), NUM, tuple(float(x.value) for x in owner))
        raise DynamicIndex(f"{name_of(self.source)} reads an item of a tuple at a place that varies")

    def _binop(self, node: ast.BinOp) -> Value:
        a, b = self.value(node.left), self.value(node.right)
        if type(node.op) in LOGIC:
            return logic(LOGIC[type(node.op)], a, b)
        if type(node.op) in ARITHMETIC:
            return arithmetic(ARITHMETIC[type(node.op)], a, b)
        if isinstance(a, Static) and isinstance(b, Static) and type(node.op) in OF_KNOWN:
            return Static(OF_KNOWN[type(node.op)](a.value, b.value))
        raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)}: that operator has no translation")

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        a = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            return negative(a)
        if isinstance(node.op, ast.Not):
            return inverted(a)
        raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)}: that operator has no translation")

    def _boolop(self, node: ast.BoolOp) -> Value:
        result = self.value(node.values[0])
        for part in node.values[1:]:
            result = logic(LOGIC[type(node.op)], result, self.value(part))
        return result

    def _compare(self, node: ast.Compare) -> Value:
        result, left = Static(True), self.value(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            if isinstance(op, ast.Is | ast.IsNot):
                if not (isinstance(left, Static) and isinstance(right, Static)):
                    raise Untranslatable(f"{name_of(self.source)} asks whether a number is an object")
                one: Value = Static((left.value is right.value) == isinstance(op, ast.Is))
            elif type(op) in COMPARISONS:
                one = comparison(COMPARISONS[type(op)], left, right)
            else:
                raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)}, which has no translation")
            result, left = logic("&&", result, one), right
        return result

    def _ifexp(self, node: ast.IfExp) -> Value:
        condition = self.value(node.test)
        if isinstance(condition, Static):
            return self.value(node.body if condition.value else node.orelse)
        yes, no = self.kept(self.value(node.body), "yes"), self.kept(self.value(node.orelse), "no")
        return select(condition, yes, no)

    def _call(self, node: ast.Call) -> Value:
        return self.call(node)


def reads(value: Value, var: Var) -> bool:
    """Whether a value reads a variable."""
    if isinstance(value, tuple):
        return any(reads(part, var) for part in value)
    if not isinstance(value, Node):
        return False
    return (value.op == "ref" and value.data is var) or any(reads(part, var) for part in value.args)


def is_place(value: Value) -> bool:
    """Whether a value is a variable or an item of one, so that reading it twice costs nothing."""
    if isinstance(value, tuple):
        return all(map(is_place, value))
    return isinstance(value, Static) or value.op in ("ref", "const") or (value.op == "item" and is_place(value.args[0]))
