"""A function whose every ``return`` passes its value through another function, made from its source.

A compiler needs one type for all values that a function returns; a user's function may return a tuple in one branch and
an array in another.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator

THROUGH = "_passed_through"
"""The global name that the new code calls with every value it returns."""


def with_returns_through(function: types.FunctionType) -> types.CodeType | None:
    """The code of a function that returns THROUGH(value) for every value; None where the source does not tell.

    The source is used only if it compiles to the code that the function has: a file may have changed since.
    """
    code = function.__code__
    try:
        tree = ast.parse("".join(inspect.findsource(function)[0]))
        if not _is_same(_found(tree, code), code):
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name and _first(node) == code.co_firstlineno:
                node.body = [_Returns().visit(statement) for statement in node.body]
        return _found(ast.fix_missing_locations(tree), code)
    except (OSError, SyntaxError, TypeError, ValueError, IndexError):
        return None


class _Returns(ast.NodeTransformer):
    """Rewrites the returns of one function, not those of functions inside it."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """Pass the value through."""
        if node.value is None:
            return node
        call = ast.Call(ast.Name(THROUGH, ast.Load()), [node.value], [])
        return ast.copy_location(ast.Return(call), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Leave it as it is."""
        return node


def _first(node: ast.FunctionDef) -> int:
    """The first line of a function, its decorators included."""
    return min([node.lineno, *(x.lineno for x in node.decorator_list)])


def _found(tree: ast.Module, code: types.CodeType) -> types.CodeType | None:
    """The code in a file that has the name and the first line of another one, if there is exactly one."""
    module = compile(tree, code.co_filename, "exec", dont_inherit=True)
    found = [
        x for x in _nested(module) if (x.co_name, x.co_firstlineno) == (code.co_name, code.co_firstlineno)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)


def _is_same(a: types.CodeType | None, b: types.CodeType) -> bool:
    """Do two codes do the same."""
    if (
        a is None
        or any(getattr(a, name) != getattr(b, name) for name in COMPARED)
        or len(a.co_consts) != len(b.co_consts)
    ):
        return False
    for x, y in zip(a.co_consts, b.co_consts, strict=True):
        if isinstance(x, types.CodeType):
            if not (isinstance(y, types.CodeType) and _is_same(x, y)):
                return False
        elif type(x) is not type(y) or repr(x) != repr(y):
            return False
    return True


COMPARED = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
"""Attributes of codes that do the same."""
