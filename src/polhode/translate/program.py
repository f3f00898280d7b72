"""A program: the functions that a kernel needs, one for each combination of types of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numbers.dispatch import NO_FMA, OVERLOADS
from . import primitives
from .functions import Translation
from .nodes import Function, Type, Value
from .reserved import RESERVED, free_name
from .values import witness


class Program:
    """The functions of a program, in the order in which they must be defined."""

    def __init__(self, epsilon: float, has_fma: bool, more: dict[Any, Callable[..., Value]]) -> None:
        self.functions: list[Function] = []
        self._made: dict[Any, Function] = {}
        self._names: set[str] = set()
        self._primitives = primitives.table(epsilon, has_fma) | more
        self._translators = {made for made in self._primitives.values() if made not in NO_FMA}
        self._choices: dict[Any, Callable[..., Any]] = {}

    def chosen(self, function: Any, arguments: list[Value]) -> Any:
        """The kernel that an overloaded one stands for with these arguments, or a primitive's translation."""
        if len(self._choices) < len(OVERLOADS):
            self._choices = dict(OVERLOADS)
        while True:
            if function in self._primitives:
                function = self._primitives[function]
            elif function in self._choices:
                try:
                    function = self._choices[function](*map(witness, arguments))
                except IndexError:  # `by_halves` before numba is loaded: it calls the kernel itself
                    return function
            else:
                return function

    def is_primitive(self, function: Any) -> bool:
        """Whether this is the translation of a primitive."""
        return function in self._translators

    def function(self, source: Any, kinds: tuple[Type, ...], called: str = "") -> Function:
        """The function for a kernel and the types of its arguments; `called` is its name where it is called."""
        key = source, kinds
        if key not in self._made:
            made = Translation(self, source, kinds).made()
            made.name = self.unique(_readable(source, called), source)
            self._made[key] = made
            self.functions.append(made)
        return self._made[key]

    def unique(self, name: str, source: Any = None) -> str:
        """A name that no other function has."""
        if name in RESERVED:
            name = f"{getattr(source, '__module__', '').rpartition('.')[2]}_{name}"
        return free_name(name, self._names, "_")


def _readable(source: Any, called: str) -> str:
    """The name of a function: its own, unless it was made from text and has none."""
    name = getattr(source, "__name__", "function").strip("_")
    return called.strip("_") if name in ("unrolled", "<lambda>") and called.isidentifier() else name.strip("<>")


def translated(program: Program, kernel: Any, kinds: tuple[Type, ...], name: str) -> Function:
    """Translate a kernel and all that it calls; `name` is the name of its function."""
    made = program.function(kernel, kinds, name)
    made.name = name
    return made
