"""JavaScript: tuples are objects, arrays are Float64Array or plain arrays."""

from __future__ import annotations

from typing import Any

from ..nodes import Function, Node, Var
from .base import Printer, is_array, is_long, trial_call, wrapped


class JavaScript(Printer):
    """JavaScript (ECMAScript 2015)."""

    language = "JavaScript"
    suffix = "js"
    infinity, not_a_number = "Infinity", "NaN"
    functions = {
        name: f"Math.{name}"
        for name in (
            *("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log"),
            "abs",
        )
    } | {"power": "Math.pow"}
    integer = "let"
    has_fma = False

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """A comment: objects need no definition."""
        return f"// {name}: {{v: [{len(shape)} numbers]}}" if is_long(shape) else f"// {name}: {self._members(shape)}"

    def _members(self, shape: tuple[Any, ...]) -> str:
        return "{" + ", ".join(self.fields(shape)) + "}"

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """An object."""
        self.tuple_name(shape)
        if is_long(shape):
            return f"{{v: [{', '.join(items)}]}}"
        return "{" + ", ".join(f"{n}: {x}" for n, x in zip(self.fields(shape), items, strict=True)) + "}"

    def declared(self, var: Var, value: str) -> str:
        """A declaration."""
        return f"let {var.name} = {value}"

    def zero(self, var: Var) -> str:
        """A declaration without a value, or a workspace."""
        return f"const {var.name} = new Float64Array({var.size})" if is_array(var) else f"let {var.name}"

    def _text(self, node: Node, own: int) -> str:
        text = super()._text(node, own)
        return text.replace(" == ", " === ").replace(" != ", " !== ") if node.op in ("==", "!=") else text

    def _cast(self, node: Node) -> str:
        return self.text(node.args[0], 8)

    def head(self, function: Function, is_entry: bool) -> list[str]:
        """The head of a function."""
        return wrapped(f"function {function.name}({', '.join(v.name for v in function.parameters)}) {{", 0)

    def constant_array(self, name: str, values: tuple[float, ...], indent: int = 0) -> list[str]:
        """The declaration of a constant array."""
        return wrapped(f"const {name} = [{', '.join(map(self.literal, values))}];", indent)

    # --- the file -----------------------------------------------------------------------------------

    def opening(self, made: Any) -> list[str]:
        """Strict mode."""
        return ['"use strict";']

    def rounding(self, made: Any) -> str:
        """What equality with the Python kernel depends on."""
        return (
            "Every operation is rounded as in Python. The engine's Math.sin, Math.cos and the like may differ from "
            "those of the C library in the last bit, and so may the states."
        )

    def how_to_test(self, made: Any) -> str:
        """How the self-test is run."""
        return f"Self-test: node {made.name}.{self.suffix} --self-test"

    def closing(self, made: Any, trial: Any) -> list[str]:
        """Exports and the self-test."""
        names = ", ".join(f.name for f in made.entries.values())
        calls = {entry: trial_call(made, entry, trial) for entry in made.entries}
        out = ("q_out", "momentum_out") if "result" in calls else ("q", "momentum")
        arrays = {"inertia": made.inertia, "inverse": made.inverse, "params": made.parameters, "q": made.q}
        arrays |= {"momentum": made.momentum, "expected": trial.expected}
        lines = [
            "function selfTest() {",
            *(line for name, values in arrays.items() if values for line in self._array(name, values)),
            *([f"    const memory = new Array({made.memory}).fill(0);"] if made.memory else []),
            *(["    const q_out = [0, 0, 0, 0], momentum_out = [0, 0, 0];"] if "result" in calls else []),
            f"    const t0 = {trial.t0!r}, dt = {trial.dt!r};",
            *([f"    if ({calls['begin']} !== 0) return 1;"] if "begin" in calls else []),
            f"    for (let n = 0; n < {trial.steps}; n++) {{",
            f"        if ({calls['step']} !== 0) {{",
            "            console.log(`step ${n + 1} failed`);",
            "            return 1;",
            "        }",
            "    }",
            *([f"    if ({calls['result']} !== 0) return 1;"] if "result" in calls else []),
            f"    const reached = [...{out[0]}, ...{out[1]}];",
            "    reached.forEach((x) => console.log(x));",
            "    const largest = Math.max(...reached.map((x, i) => Math.abs(x - expected[i])));",
            "    console.log(`largest difference from the Python kernel: ${largest}`);",
            f"    return largest <= {trial.tolerance!r} ? 0 : 1;",
            "}",
        ]
        ending = [
            'if (typeof module !== "undefined") {',
            f"    module.exports = {{ {names} }};",
            '    if (require.main === module && process.argv[2] === "--self-test") process.exitCode = selfTest();',
            "}",
        ]
        return ["\n".join(lines), "\n".join(ending)]

    def _array(self, name: str, values: tuple[float, ...]) -> list[str]:
        return self.constant_array(name, values, 1)
