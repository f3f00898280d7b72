"""Copies of a user's function for a compiler, with the values that it reads from outside as they are now.

Compiled code holds globals and closure variables as constants. A copy has them of its own, so that what the code was
compiled from cannot change afterwards; the functions it calls are copied too. Lists become tuples, long ones arrays.
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
"""Items of a list from which on it becomes an array: compilers unroll tuples."""

Replace = Callable[[Any], Any]


def outside(function: types.FunctionType) -> Iterator[tuple[str, bool, Any]]:
    """The names that a function reads from outside: (name, is it of the closure, value); undefined ones left out."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name, of_closure in sorted(_dotted(code)):
        try:
            value = cells[name].cell_contents if of_closure else function.__globals__[name]
        except (KeyError, ValueError):  # a builtin, an import inside, a cell not filled yet
            continue
        yield name, of_closure, value


def copied(
    function: types.FunctionType,
    replace: Replace,
    mark: Replace,
    through: Callable[..., Any] | None = None,
    known: dict[Any, Any] | None = None,
) -> types.FunctionType:
    """The copy of a function. `replace` gives what stands for a value, or None; `mark` is called with every copy.

    If its source is known, the copy passes every value that it returns `through` a function, where one is given.
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
    """An array or a list of numbers as a value that nobody changes; anything else as it is."""
    if isinstance(value, np.ndarray):
        copy = value.copy()
        copy.flags.writeable = False
        return copy
    if isinstance(value, list) and _is_numeric(value):
        return _tuples(value) if len(value) <= LONG else frozen(np.array(value))
    return value


def _is_numeric(value: Any) -> bool:
    """Is this a number, or a list of numbers of one type and shape."""
    if isinstance(value, tuple | list):
        if len({type(x) for x in value}) > 1:
            return False
        alike = not value or not isinstance(value[0], tuple | list) or len({len(x) for x in value}) == 1
        return alike and all(map(_is_numeric, value))
    return isinstance(value, numbers.Real)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, tuple | list) else value


def content(function: types.FunctionType, seen: Mapping[Any, Any] | None = None) -> tuple[Any, ...]:
    """What a copy would be made of, as a key: numbers by value, functions by content, other objects by identity."""
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
