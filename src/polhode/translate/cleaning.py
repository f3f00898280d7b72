"""Passes over translated functions: remove what is not used, and place the declarations of variables."""

from __future__ import annotations

import dataclasses

from .inlining import inline
from .nodes import (
    ARRAY,
    Assign,
    Break,
    Function,
    If,
    Loop,
    Node,
    SetItem,
    Statement,
    Var,
    blocks,
    change_expressions,
    expressions,
    parts,
    statements,
)


def cleaned(functions: list[Function], entries: list[Function]) -> list[Function]:
    """The functions that the entries need, without unused variables, parameters and functions."""
    inline(functions)
    changed = True
    while changed:
        changed = False
        for function in functions:
            changed |= _without_unused_variables(function)
        for function in functions:
            if function not in entries:
                changed |= _without_unused_parameters(function, functions)
    needed = _needed(entries)
    functions = [f for f in functions if f in needed]
    for function in reversed(functions):  # from callers to those they call
        _pass_sizes(function)
    for function in functions:
        _declare(function)
        _rename(function, {f.name for f in functions})
    return functions


def _rename(function: Function, taken: set[str]) -> None:
    """Rename the variables that are called like a function."""
    variables = {*function.parameters, *_read(function.body)} | {
        s.var for s in statements(function.body) if isinstance(s, Assign | SetItem | Loop)
    }
    names = {var.name for var in variables} | taken
    for var in sorted(variables, key=lambda v: v.name):
        if var.name in taken:
            var.name = next(n for n in (f"{var.name}_{i}" for i in range(1, 1000)) if n not in names)
            names.add(var.name)


def _pass_sizes(function: Function) -> None:
    """Tell the functions that a function calls how long the arrays are that it passes."""
    for statement in statements(function.body):
        for node in (n for e in expressions(statement) for n in parts(e) if n.op == "call"):
            for var, argument in zip(node.data.parameters, node.args, strict=True):
                if var.type == ARRAY:
                    var.size = var.size or argument.data.size


def _needed(entries: list[Function]) -> set[Function]:
    needed: set[Function] = set()
    pending = list(entries)
    while pending:
        function = pending.pop()
        if function not in needed:
            needed.add(function)
            pending += calls(function)
    return needed


def calls(function: Function) -> list[Function]:
    """The functions that a function calls."""
    nodes = [n for s in statements(function.body) for e in expressions(s) for n in parts(e)]
    return [n.data for n in nodes if n.op == "call"]


def _read(body: list[Statement]) -> set[Var]:
    """Variables whose values are read, or that are written to as workspaces."""
    found = set()
    for statement in statements(body):
        own = expressions(statement)
        found |= {n.data for e in own for n in parts(e) if n.op == "ref"}
    return found


def _without_unused_variables(function: Function) -> bool:
    """Remove assignments whose variable nobody reads, and blocks that are empty."""
    before = len(statements(function.body))
    used = _read(function.body)

    def kept(body: list[Statement]) -> list[Statement]:
        found: list[Statement] = []
        for statement in body:
            if isinstance(statement, Assign | SetItem) and statement.var not in used and not statement.var.is_parameter:
                continue
            if isinstance(statement, If):
                statement.then, statement.otherwise = kept(statement.then), kept(statement.otherwise)
                if not statement.then and not statement.otherwise:
                    continue
            if isinstance(statement, Loop):
                statement.body = kept(statement.body)
                if all(isinstance(s, Break) for s in statement.body):
                    continue
            found.append(statement)
        return found

    function.body = kept(function.body)
    return len(statements(function.body)) != before


def _without_unused_parameters(function: Function, functions: list[Function]) -> bool:
    """Remove parameters that a function does not read, and their arguments in all calls."""
    used = _read(function.body) | {s.var for s in statements(function.body) if isinstance(s, SetItem)}
    keep = [i for i, var in enumerate(function.parameters) if var in used]
    if len(keep) == len(function.parameters):
        return False
    function.parameters = [function.parameters[i] for i in keep]
    for caller in functions:
        for statement in statements(caller.body):
            change_expressions(statement, lambda node: _with_arguments(node, function, keep))
    return True


def _with_arguments(node: Node, function: Function, keep: list[int]) -> Node:
    args = tuple(_with_arguments(a, function, keep) for a in node.args)
    if node.op == "call" and node.data is function:
        args = tuple(args[i] for i in keep)
    return node if args == node.args else dataclasses.replace(node, args=args)


# --- declarations -----------------------------------------------------------------------------------


def _declare(function: Function) -> None:
    """Declare each variable where it is first assigned, or ahead of the block in which that is, if it is read later."""
    while True:
        places = _places(function.body, ())
        misplaced = _first_misplaced(function.body, places)
        if misplaced is None:
            break
        var, block = misplaced
        _insert(function.body, var, block)
    seen: set[Var] = set()
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.var not in seen:
            statement.declares = True
            seen.add(statement.var)


Path = tuple[int, ...]
"""The block of a statement: the identities of the blocks around it, from outside to inside."""


def _places(body: list[Statement], path: Path) -> dict[Var, list[tuple[bool, Path]]]:
    """For each variable in order, whether it is assigned, and the block."""
    found: dict[Var, list[tuple[bool, Path]]] = {}
    for statement in body:
        for e in expressions(statement):
            for node in parts(e):
                if node.op == "ref" and not node.data.is_parameter:
                    found.setdefault(node.data, []).append((False, path))
        if isinstance(statement, Assign):
            found.setdefault(statement.var, []).append((True, path))
        elif isinstance(statement, SetItem):
            found.setdefault(statement.var, []).append((False, path))
        for inner in blocks(statement):
            for var, uses in _places(inner, (*path, id(inner))).items():
                found.setdefault(var, []).extend(uses)
    return found


def _first_misplaced(body: list[Statement], places: dict[Var, list[tuple[bool, Path]]]) -> tuple[Var, Path] | None:
    for var, uses in places.items():
        assigned = [path for is_assigned, path in uses if is_assigned]
        if not assigned:
            continue  # a loop variable or a parameter
        first = assigned[0]
        common = first
        for _, path in uses:
            while path[: len(common)] != common:
                common = common[:-1]
        if common != first:
            return var, common
    return None


def _insert(body: list[Statement], var: Var, path: Path) -> None:
    """Insert a declaration in a block, ahead of the first statement in which the variable occurs."""
    if path:
        for statement in body:
            for inner in blocks(statement):
                if id(inner) == path[0]:
                    _insert(inner, var, path[1:])
                    return
    for i, statement in enumerate(body):
        inside = [statement, *(s for b in blocks(statement) for s in statements(b))]
        if any(isinstance(s, Assign) and s.var is var for s in inside):
            body.insert(i, Assign(var, None))
            return
