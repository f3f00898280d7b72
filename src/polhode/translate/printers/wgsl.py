"""WGSL, the shading language of WebGPU, which has single precision only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import InputError
from ..nodes import ARRAY, NUM, Function, Node, Statement, Var
from .base import Printer, is_array, is_long, reassigned, wrapped


class Wgsl(Printer):
    """WGSL: tuples are structs, arrays are passed by pointers."""

    language = "WGSL (single precision)"
    suffix = "wgsl"
    number, integer = "f32", "i32"
    has_fma = False
    has_self_test = False
    epsilon = 2.0**-23
    functions = {
        name: name
        for name in (
            *("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log"),
            "abs",
        )
    } | {"power": "pow"}

    def __init__(self) -> None:
        super().__init__()
        self._changing: set[Var] = set()

    def type_name(self, name: str) -> str:
        """Types are written in camel case."""
        return "".join(word.capitalize() for word in name.split("_"))

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """A struct."""
        if is_long(shape):
            return f"struct {name} {{ v: array<f32, {len(shape)}> }}"
        members = ", ".join(f"{n}: {self.shape_kind(s)}" for n, s in zip(self.fields(shape), shape, strict=True))
        return f"struct {name} {{ {members} }}"

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """An initialised struct."""
        inner = ", ".join(items)
        name = self.tuple_name(shape)
        return f"{name}(array<f32, {len(shape)}>({inner}))" if is_long(shape) else f"{name}({inner})"

    def literal(self, value: float) -> str:
        """The number rounded to single precision."""
        short = np.float32(value)
        if not math.isfinite(short):
            raise InputError(f"the method uses the number {value!r}, which is outside the range of single precision")
        return repr(float(str(short)))

    def text(self, node: Node, around: int = 0) -> str:
        """The text of an expression; a choice is a call."""
        return super().text(node, 0 if node.op in ("select", "cast") else around)

    def _select(self, node: Node) -> str:
        condition, yes, no = map(self.text, node.args)
        return f"select({no}, {yes}, {condition})"

    def _cast(self, node: Node) -> str:
        return f"f32({self.text(node.args[0])})"

    def _text(self, node: Node, own: int) -> str:
        if node.op == "at" and node.args[0].data.is_parameter:
            return f"(*{node.args[0].data.name})[{self.index(node.args[1])}]"
        return super()._text(node, own)

    def arguments(self, node: Node) -> list[str]:
        """Arguments; a workspace is passed by its address."""
        texts = []
        for argument in node.args:
            own = argument.type == ARRAY and not argument.data.is_parameter
            texts.append(f"&{self.text(argument)}" if own else self.text(argument))
        return texts

    def place(self, var: Var) -> str:
        """An array where it is written."""
        return f"(*{var.name})" if var.is_parameter else var.name

    def declared(self, var: Var, value: str) -> str:
        """A declaration."""
        kind = ": f32" if var.type == NUM else ""
        return f"{'var' if var in self._changing else 'let'} {var.name}{kind} = {value}"

    def zero(self, var: Var) -> str:
        """A declaration: variables begin with zeros."""
        kind = f"array<f32, {var.size}>" if is_array(var) else self.kind(var.type)
        return f"var {var.name}: {kind}"

    def loop(self, var: Var, first: Node, end: Node, body: list[Statement]) -> str:
        """The head of a loop."""
        i = var.name
        return f"for (var {i}: i32 = {self.text(first)}; {i} < {self.text(end)}; {i}++)"

    def head(self, function: Function, is_entry: bool) -> list[str]:
        """The head of a function."""
        self._changing = reassigned(function)
        parameters = ", ".join(f"{var.name}: {self._parameter_kind(var)}" for var in function.parameters)
        return wrapped(f"fn {function.name}({parameters}){self.arrow(function)} {{", 0)

    def _parameter_kind(self, var: Var) -> str:
        return f"ptr<function, array<f32, {var.size}>>" if var.type == ARRAY else self.kind(var.type)

    def constant_array(self, name: str, values: tuple[float, ...]) -> list[str]:
        """The declaration of a constant array."""
        items = ", ".join(map(self.literal, values))
        return wrapped(f"var<private> {name}: array<f32, {len(values)}> = array<f32, {len(values)}>({items});", 0)

    # --- the file -----------------------------------------------------------------------------------

    def opening(self, made: Any) -> list[str]:
        """Refuse what relies on the rounding of each operation."""
        if made.needs_exact_rounding:
            raise InputError(
                f"{made.method.name} needs the rounding errors of sums and products to the bit, which WGSL does not "
                "guarantee; choose another method or language"
            )
        return []

    def rounding(self, made: Any) -> str:
        """What the accuracy is."""
        return (
            "WGSL has single precision only: errors of one step are about 1e-7, not 1e-16, and properties that the "
            "declaration calls exact hold to that. Compilers may fuse products with sums and assume that there is no "
            "NaN, so a step that fails may go unnoticed: check the state from time to time."
        )

    def how_to_test(self, made: Any) -> str:
        """How to test it."""
        return "There is no self-test: make the steps stated at the end of this file in your own program."

    def closing(self, made: Any, trial: Any) -> list[str]:
        """The data of a test, as a comment."""
        data = {"inertia": made.inertia, "inverse": made.inverse, "params": made.parameters, "q": made.q}
        lines = [f"{name} = {', '.join(map(repr, x))}" for name, x in (data | {"momentum": made.momentum}).items() if x]
        text = [
            f"From t = {trial.t0!r}, {trial.steps} steps of dt = {trial.dt!r} from", *lines, "lead, in doubles, to",
            f"q = {', '.join(map(repr, trial.expected[:4]))}", f"momentum = {', '.join(map(repr, trial.expected[4:]))}",
        ]  # fmt: skip
        return ["\n".join(self.comment("\n".join(text)))]
