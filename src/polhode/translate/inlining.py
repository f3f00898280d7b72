"""Passes that make translated functions shorter to read; the operations and their order stay the same."""

from __future__ import annotations

import collections
import dataclasses
import re

from .nodes import Assign, Function, Node, Return, Statement, Var, change_expressions, expressions, parts, statements

NUMBERED = re.compile(r"v\d+")
"""Names of the values of a formula that was written from a graph."""

LONGEST = 24
"""Operations and operands of a value that may stand within another one."""


def inline(functions: list[Function]) -> None:
    """Make the functions shorter; each comes after those that it calls."""
    for function in functions:
        for statement in statements(function.body):
            change_expressions(statement, _without_trivial_calls)
        _inline_numbered(function)


def _without_trivial_calls(node: Node) -> Node:
    """Replace calls of functions that only return an argument, or only pass their arguments to another function."""
    args = tuple(map(_without_trivial_calls, node.args))
    node = node if args == node.args else dataclasses.replace(node, args=args)
    body = node.data.body if node.op == "call" else []
    if len(body) != 1 or not isinstance(body[0], Return) or not isinstance(body[0].value, Node):
        return node
    value, given = body[0].value, dict(zip(node.data.parameters, node.args, strict=True))
    if value.type != node.type:
        return node
    if value.op == "ref":
        return given[value.data]
    read = [a.data for a in value.args if a.op == "ref"]
    if value.op == "call" and len(read) == len(value.args) == len(set(read)):
        return dataclasses.replace(value, args=tuple(given[var] for var in read))
    return node


def _inline_numbered(function: Function) -> None:
    """Put the numbered values of a formula (v12) where they are read, if that is one place and they are short."""
    straight = all(isinstance(s, Assign | Return) for s in function.body)
    writes = collections.Counter(s.var for s in function.body if isinstance(s, Assign))
    if not straight or any(count > 1 for count in writes.values()):
        return
    nodes = [n for s in function.body for e in expressions(s) for n in parts(e)]
    reads = collections.Counter(n.data for n in nodes if n.op == "ref")
    values: dict[Var, Node] = {}

    def filled(node: Node) -> Node:
        if node.op == "ref" and node.data in values:
            return values[node.data]
        args = tuple(map(filled, node.args))
        return node if args == node.args else dataclasses.replace(node, args=args)

    kept: list[Statement] = []
    for statement in function.body:
        change_expressions(statement, filled)
        if isinstance(statement, Assign) and statement.value is not None and NUMBERED.fullmatch(statement.var.name):
            is_place = statement.value.op in ("ref", "item", "const")
            if is_place or (reads[statement.var] == 1 and len(parts(statement.value)) <= LONGEST):
                values[statement.var] = statement.value
                continue
        kept.append(statement)
    function.body = kept
