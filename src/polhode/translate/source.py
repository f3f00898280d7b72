"""The Python source of kernels, and what the names in it mean."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import weakref
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..numbers.written import text_of


class Untranslatable(InputError):
    """A kernel uses something that the other languages do not have; the message says what."""


_KNOWN: weakref.WeakKeyDictionary[Callable[..., Any], ast.FunctionDef] = weakref.WeakKeyDictionary()
"""Definitions read so far: reading a file for each call takes most of the time."""


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """The definition of a kernel as a syntax tree."""
    if function not in _KNOWN:
        _KNOWN[function] = _definition(function)
    return _KNOWN[function]


def _definition(function: Callable[..., Any]) -> ast.FunctionDef:
    try:
        text = text_of(function) or textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise Untranslatable(f"the source of {name_of(function)} is not known") from None
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name
    ]
    if not found:
        raise Untranslatable(f"{name_of(function)} is not written as a function (def)")
    return found[-1]


def name_of(function: Any) -> str:
    """The name of a function in messages."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"


def meaning(function: Any, name: str) -> Any:
    """The object that a name from outside a function stands for."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in cells:
        return cells[name].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    raise Untranslatable(f"{name_of(function)} uses the name {name}, which is not defined")


def assigned(body: list[ast.stmt]) -> list[str]:
    """Names that statements assign, in order."""
    names = [n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(names))


def read(body: list[ast.stmt]) -> set[str]:
    """Names that statements read."""
    return {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def counting_parameters(tree: ast.FunctionDef) -> set[str]:
    """Parameters that are indices or counts: declared as int, or used in an index or as the end of a range."""
    names = {a.arg for a in tree.args.args if isinstance(a.annotation, ast.Name) and a.annotation.id == "int"}
    for node in ast.walk(tree):
        inner: list[ast.AST] = []
        if isinstance(node, ast.Subscript):
            inner = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            inner = list(node.args)
        names |= {n.id for part in inner for n in ast.walk(part) if isinstance(n, ast.Name)}
    return names & {a.arg for a in tree.args.args}
