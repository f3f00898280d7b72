"""Copies of a user's function for a compiler, with the current values of all outside names that it reads.

Compiled code holds globals and closure variables as constants. A copy has its own, so that the source of the compiled
code cannot change afterwards; the functions it calls are copied too. Lists become tuples, long lists become arrays.
"""

from __future__ import annotations

import builtins
import numbers
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .returns import THROUGH, with_returns_through
from .tracing import _dotted

LONG = 64
"""Longest list that becomes a tuple; longer ones become arrays, because compilers unroll tuples."""

Replace = Callable[[Any], Any]


def outside(function: types.FunctionType) -> Iterator[tuple[str, bool, Any]]:
    """Outside names that a function reads, as (name, True if in the closure, value); undefined names are skipped."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name, of_closure in sorted(_dotted(code)):
        try:
            value = cells[name].cell_contents if of_closure else function.__globals__[name]
        except (KeyError, ValueError):  # a builtin, a local import, or an empty cell
            continue
        yield name, of_closure, value


def copied(
    function: types.FunctionType,
    replace: Replace,
    mark: Replace,
    through: Callable[..., Any] | None = None,
    known: dict[Any, Any] | None = None,
) -> types.FunctionType:
    """Copy a function. `replace` returns the substitute for a value, or None; `mark` is called with every copy.

    If `through` is given and the source is known, the copy passes every value that it returns through that function.
    """
    known = {} if known is None else known
    if function in known:
        found: types.FunctionType = known[function]
        return found
    code = (with_returns_through(function) if through else None) or function.__code__
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__, THROUGH: through}
    cells = {name: types.CellType() for name in code.co_freevars}
    made = types.FunctionType(code, space, function.__name__, function.__defaults__, tuple(cells.values()))
    made.__kwdefaults__, made.__module__ = function.__kwdefaults__, function.__module__
    known[function] = made
    for name, of_closure, value in outside(function):
        new = replace(value)
        if new is None:
            is_plain = isinstance(value, types.FunctionType)
            new = copied(value, replace, mark, known=known) if is_plain else frozen(value)
        if of_closure:
            cells[name].cell_contents = new
        else:
            space[name] = new
    mark(made)
    return made


def frozen(value: Any) -> Any:
    """Immutable copy of an array or a list of numbers; any other value unchanged."""
    if isinstance(value, np.ndarray):
        copy = value.copy()
        copy.flags.writeable = False
        return copy
    if isinstance(value, list) and _is_numeric(value):
        return _tuples(value) if len(value) <= LONG else frozen(np.array(value))
    return value


def _is_numeric(value: Any) -> bool:
    """True for a number, or a list of numbers of one type and regular shape."""
    if isinstance(value, tuple | list):
        if len({type(x) for x in value}) > 1:
            return False
        alike = not value or not isinstance(value[0], tuple | list) or len({len(x) for x in value}) == 1
        return alike and all(map(_is_numeric, value))
    return isinstance(value, numbers.Real)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, tuple | list) else value


def content(function: types.FunctionType, seen: Mapping[Any, Any] | None = None) -> tuple[Any, ...]:
    """Key for a copy: numbers by value, functions by identity and content, other objects by identity."""
    seen = {} if seen is None else seen
    parts: list[Any] = [function.__code__, repr(function.__defaults__)]
    for name, _, value in outside(function):
        if isinstance(value, types.FunctionType):
            inner = () if value in seen else content(value, {**seen, function: None})
            parts.append((name, id(value), inner))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            parts.append((name, value.dtype.str, value.shape, value.tobytes()))
        elif isinstance(value, numbers.Number | str | bytes) or _is_numeric(value):
            parts.append((name, type(value), repr(value)))
        else:
            parts.append((name, id(value)))
    return tuple(parts)
