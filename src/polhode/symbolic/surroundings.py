"""Outside values that a user's function reads: its formula is valid as long as they do not change.

Names outside a function (globals, closure cells, and those of the functions it calls) are read when it is traced, and
their numbers become constants of the formula. A formula can be reused if every name still refers to the same object
and no list or array among them has changed its entries.
"""

from __future__ import annotations

import builtins
import types
from typing import Any

import numpy as np

from .formula import Formula
from .tracing import GENERIC_MODULES, outside_names

_MISSING = object()

PACKAGE = __name__.partition(".")[0]
"""Name of this package, whose functions do not change."""

_CONSTANT = (
    *(int, float, str, np.generic, type),
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Formula),
)
"""Types whose objects do not change; functions are followed separately."""


class Surroundings:
    """Snapshot of the outside values that a function reads."""

    def __init__(self, function: Any) -> None:
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._functions: dict[Any, tuple[Any, ...]] = {}
        self._watch(function)

    def unchanged(self) -> bool:
        """True if all outside values are still the same."""
        for space, name, value in self._names:
            if space.get(name, _MISSING) is not value:
                return False
        for cell, value in self._cells:
            if _held(cell) is not value:
                return False
        for function, parts in self._functions.items():
            if parts and _parts(function) != parts:
                return False
        return all(content is not None and _content(value) == content for value, content in self._contents)

    def _watch(self, value: Any) -> None:
        """Follow a function; record the entries of an object that can change in place."""
        if isinstance(value, types.FunctionType):
            if value not in self._functions and value.__module__ not in GENERIC_MODULES:
                self._follow(value)
        elif not _is_constant(value):
            self._contents.append((value, _content(value)))

    def _follow(self, function: types.FunctionType) -> None:
        is_ours = (function.__module__ or "").partition(".")[0] == PACKAGE  # only what is given to it can change
        self._functions[function] = () if is_ours else _parts(function)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, of_closure in outside_names(function.__code__):
            if of_closure:
                value = _held(cells[name])
                self._cells.append((cells[name], value))
            elif is_ours:
                continue
            else:
                value = function.__globals__.get(name, _MISSING)
                self._names.append((function.__globals__, name, value))
            self._watch(getattr(builtins, name, None) if value is _MISSING else value)


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable is not bound
        return _MISSING


def _parts(function: types.FunctionType) -> tuple[Any, ...]:
    """Code and default values of a function: everything except outside names."""
    defaults, named = function.__defaults__, function.__kwdefaults__
    return function.__code__, defaults and _content(defaults), named and _content(tuple(named.items()))


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, _CONSTANT)


def _content(value: Any) -> Any:
    """Comparable form of a number, or of the entries of a list or an array; None for other objects."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, tuple | list):
        parts = tuple(map(_content, value))
        return None if None in parts else parts
    return repr(value) if _is_constant(value) else None
