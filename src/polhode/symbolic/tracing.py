"""Tracing of a user function: ``math`` and the like are replaced by functions for every number type.

Names that cannot be traced into a graph are rejected, and the message gives the name.
"""

from __future__ import annotations

import builtins
import dis
import functools
import math
import numbers
import types
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..numbers import primitives
from ..numbers import user_math as polhode_math
from ..numbers.nested import nested
from .expression import constant, lift
from .total import total, traced_total

BUILTINS = ("abs", "enumerate", "len", "list", "map", "pow", "range", "reversed", "sum", "tuple", "zip")
ALLOWED = (
    "it may use arithmetic, math.*, ph.math.*, ph.where, ph.total, abs, min, max, range, and functions built from these"
)


class UntraceableError(InputError):
    """A function cannot be traced into a formula; `why` says so in a few words that begin with "it"."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def _extreme(better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``min`` or ``max`` without a branch."""

    def chosen(*values: Any) -> Any:
        items = tuple(values[0]) if len(values) == 1 else values
        return functools.reduce(lambda a, b: primitives.where(better(b, a), b, a), items)

    return chosen


def _lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take plain numbers as formulas, so that sqrt(2) has all digits of every number type."""
    return lambda *args: function(*(lift(float(x)) if isinstance(x, numbers.Real) else x for x in args))


def _trace_math() -> types.SimpleNamespace:
    """Build the ``math`` of a traced function: generic functions, and constants exact in every number type."""
    space = dict(vars(polhode_math))
    space |= {name: _lifted(getattr(primitives, name)) for name in primitives.FUNCTIONS}
    pi = constant("pi")
    space |= {"_log": space["log"], "pi": pi, "e": constant("e"), "tau": 2 * pi}
    for name, value in vars(polhode_math).items():
        if isinstance(value, types.FunctionType) and value.__module__ == polhode_math.__name__:
            space[name] = types.FunctionType(value.__code__, space, name, value.__defaults__)
    space["pow"] = _lifted(polhode_math.pow)
    return types.SimpleNamespace(**{name: space[name] for name in polhode_math.__all__})


TRACE_MATH = _trace_math()
TRACE_MODULES = {
    "math": TRACE_MATH,
    "polhode.math": TRACE_MATH,
    "polhode.numbers.user_math": TRACE_MATH,
    "polhode": types.SimpleNamespace(math=TRACE_MATH, where=primitives.where, total=traced_total),
    "numpy": types.SimpleNamespace(pi=TRACE_MATH.pi, e=TRACE_MATH.e),
}
TRACE_BUILTINS: dict[str, Any] = {name: getattr(builtins, name) for name in BUILTINS} | {
    "min": _extreme(lambda a, b: a < b),
    "max": _extreme(lambda a, b: b < a),
    "float": lambda x: x,
}
GENERIC_MODULES = ("math", "polhode.numbers.primitives", "polhode.numbers.user_math")
"""Where the functions come from that have a generic one of the same name."""

NAMED = {math.pi: TRACE_MATH.pi, math.e: TRACE_MATH.e, math.tau: TRACE_MATH.tau}


def _dotted(code: types.CodeType) -> dict[tuple[str, bool], set[str]]:
    """Map each outer name that a function reads, and whether it is a closure variable, to the attributes read."""
    found: dict[tuple[str, bool], set[str]] = {}
    instructions = list(dis.get_instructions(code))
    for here, after in zip(instructions, [*instructions[1:], None], strict=True):
        if here.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            attributes = found.setdefault((str(here.argval), here.opname == "LOAD_DEREF"), set())
            if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(str(after.argval))
        elif here.opname == "IMPORT_NAME":
            found.setdefault((f"import {here.argval}", False), set())
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for name, attributes in _dotted(inner).items():
                found.setdefault(name, set()).update(attributes)
    return {name: attributes for name, attributes in found.items() if not (name[1] and name[0] in code.co_cellvars)}


def outside_names(code: types.CodeType) -> list[tuple[str, bool]]:
    """The outside names a function reads, and whether each is of its closure."""
    return [key for key in _dotted(code) if not key[0].startswith("import ")]


def sums_over_rows(function: Any, seen: set[Any] | None = None) -> bool:
    """Whether a function, or one that it calls, reads `total`."""
    seen = set() if seen is None else seen
    if not isinstance(function, types.FunctionType) or function in seen:
        return False
    seen.add(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for (name, of_closure), attributes in _dotted(function.__code__).items():
        value = cells[name].cell_contents if of_closure else function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            value = getattr(value, total.__name__, None) if total.__name__ in attributes else None
        if value is total or sums_over_rows(value, seen):
            return True
    return False


def _constant(value: Any) -> Any:
    """Convert a number, or nested sequences of numbers, for a traced function; None for anything else."""
    if hasattr(value, "tolist"):
        number = _constant(value.tolist())
        return None if number is None else nested(number)  # arithmetic of arrays, as it is in the function
    if isinstance(value, tuple | list):
        items = tuple(_constant(v) for v in value)
        return None if any(item is None for item in items) else items
    if not isinstance(value, numbers.Real):
        return None
    return NAMED.get(value, value) if isinstance(value, float) else value


def _refused(owner: str, value: Any, name: str) -> UntraceableError:
    """Build the error for a name that cannot be traced; it suggests the name that can, if there is one."""
    kind = "calls" if callable(value) else "uses"
    plain = name.rpartition(".")[2]
    hint = f"write math.{plain}" if kind == "calls" and hasattr(TRACE_MATH, plain) else ALLOWED
    return UntraceableError(f"{owner} {kind} {name}, which cannot be compiled; {hint}", f"it {kind} {name}")


def _module(owner: str, name: str, value: types.ModuleType, attributes: set[str]) -> Any:
    """Return the replacement of a module in a traced function."""
    stand_in = TRACE_MODULES.get(value.__name__)
    for attribute in sorted(attributes):
        if not hasattr(stand_in, attribute):
            raise _refused(owner, getattr(value, attribute, None), f"{name}.{attribute}")
    if stand_in is None:
        why = f"uses the module {name}"
        raise UntraceableError(f"{owner} {why}, which cannot be compiled; {ALLOWED}", f"it {why}")
    return stand_in


def _meaning(owner: str, name: str, value: Any, attributes: set[str], known: dict[Any, Any]) -> Any:
    """Return the value of an outer name in the traced function; reject names that cannot be traced."""
    if isinstance(value, types.ModuleType):
        return _module(owner, name, value, attributes)
    number = _constant(value)
    if number is not None:
        return number
    if value in (primitives.bracket, primitives.take):  # generic already
        return value
    if value is total:
        return traced_total
    if getattr(value, "__module__", None) in GENERIC_MODULES:
        if hasattr(TRACE_MATH, value.__name__):
            return getattr(TRACE_MATH, value.__name__)
    elif isinstance(value, types.FunctionType):
        return rebound(value, owner, known)
    if isinstance(value, types.BuiltinFunctionType | type) and value.__name__ in TRACE_BUILTINS:
        return TRACE_BUILTINS[value.__name__]
    raise _refused(owner, value, name)


def rebound(function: Callable[..., Any], owner: str, known: dict[Any, Any] | None = None) -> Callable[..., Any]:
    """Return the function with ``math`` and the like replaced; `known` maps the functions already converted."""
    assert isinstance(function, types.FunctionType)
    known = {} if known is None else known
    if function in known:
        return known[function]
    code = function.__code__
    space: dict[str, Any] = {"__builtins__": builtins}
    cells = dict(zip(code.co_freevars, (types.CellType() for _ in code.co_freevars), strict=True))
    copy = types.FunctionType(code, space, function.__name__, function.__defaults__, tuple(cells.values()))
    copy.__kwdefaults__ = function.__kwdefaults__
    known[function] = copy
    closed_over = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for (name, of_closure), attributes in _dotted(code).items():
        if name.startswith("import "):
            why = f"has an {name!r} inside"
            raise UntraceableError(f"{owner} {why}; import at the top of the file instead", f"it {why}")
        if of_closure:
            value = closed_over[name].cell_contents
            cells[name].cell_contents = _meaning(owner, name, value, attributes, known)
        elif name in function.__globals__ or hasattr(builtins, name):
            value = function.__globals__.get(name, getattr(builtins, name, None))
            space[name] = _meaning(owner, name, value, attributes, known)
        else:
            why = f"uses the name {name}, which is not defined"
            raise UntraceableError(f"{owner} {why}", f"it {why}")
    return copy
