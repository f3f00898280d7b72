"""Rust: tuples are structs that are copied, arrays are slices."""

from __future__ import annotations

from typing import Any

from ..nodes import ARRAY, NUM, Function, Node, Statement, Var, expressions, parts, statements
from .base import Printer, is_array, is_long, read_variables, reassigned, wrapped, written_arrays


class Rust(Printer):
    """Rust, edition 2021, without crates."""

    language = "Rust"
    suffix = "rs"
    number, integer = "f64", "i32"
    infinity, not_a_number = "f64::INFINITY", "f64::NAN"
    functions = {
        name: name
        for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp")
    } | {"log": "ln", "abs": "abs", "power": "powf", "fma": "mul_add"}
    table_prefix = "TABLE_"

    def __init__(self) -> None:
        super().__init__()
        self._changing: set[Var] = set()
        self._borrowed: set[Var] = set()

    def type_name(self, name: str) -> str:
        """Types are written in camel case."""
        return "".join(word.capitalize() for word in name.split("_"))

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """A struct."""
        if is_long(shape):
            members = f"v: [f64; {len(shape)}]"
        else:
            members = ", ".join(f"{n}: {self.shape_kind(s)}" for n, s in zip(self.fields(shape), shape, strict=True))
        return f"#[derive(Clone, Copy, Default)]\nstruct {name} {{ {members} }}"

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """An initialised struct."""
        name = self.tuple_name(shape)
        if is_long(shape):
            return f"{name} {{ v: [{', '.join(items)}] }}"
        texts = [n if n == x else f"{n}: {x}" for n, x in zip(self.fields(shape), items, strict=True)]
        return f"{name} {{ {', '.join(texts)} }}"

    def _select(self, node: Node) -> str:
        condition, yes, no = node.args
        return f"if {self.text(condition)} {{ {self.text(yes)} }} else {{ {self.text(no)} }}"

    def text(self, node: Node, around: int = 0) -> str:
        """The text of an expression; a choice within another expression needs parentheses."""
        text = super().text(node, around)
        return f"({text})" if node.op == "select" and around == 1 else text

    def _cast(self, node: Node) -> str:
        return f"f64::from({self.text(node.args[0])})"

    def index(self, node: Node) -> str:
        """An index is of type usize."""
        return str(node.data) if node.op == "const" else f"({self.text(node)}) as usize"

    def arguments(self, node: Node) -> list[str]:
        """Arguments; a workspace is borrowed."""
        written = written_arrays(node.data)
        texts = []
        for var, argument in zip(node.data.parameters, node.args, strict=True):
            text = self.text(argument)
            if var.type == ARRAY and argument.op == "ref" and argument.data not in self._borrowed:
                text = f"&mut {text}" if var in written else f"&{text}"
            texts.append(text)
        return texts

    def math(self, name: str, arguments: list[str], nodes: tuple[Node, ...]) -> str:
        """A method of the number."""
        first = self.text(nodes[0], 9)
        if nodes[0].op == "const":
            first = f"{first}_f64" if not first.startswith("-") else f"({first}_f64)"
        return f"{first}.{self.functions[name]}({', '.join(arguments[1:])})"

    def condition(self, node: Node) -> str:
        """Conditions have no parentheses."""
        return self.text(node)

    def declared(self, var: Var, value: str) -> str:
        """A declaration."""
        kind = ": f64" if var.type == NUM else ""  # otherwise a literal would have no type
        return f"let {'mut ' if var in self._changing else ''}{var.name}{kind} = {value}"

    def zero(self, var: Var) -> str:
        """A declaration with zeros."""
        if is_array(var):
            return f"let mut {var.name} = [0.0_f64; {var.size}]"
        value = {"number": "0.0_f64", "bool": "false", "int": "0"}.get(var.type.name)
        return f"let mut {var.name}{'' if value else ': ' + self.kind(var.type)} = {value or 'Default::default()'}"

    def loop(self, var: Var, first: Node, end: Node, body: list[Statement]) -> str:
        """A loop over a range."""
        used = {n.data for s in statements(body) for e in expressions(s) for n in parts(e) if n.op == "ref"}
        return f"for {var.name if var in used else '_'} in {self.text(first, 9)}..{self.text(end, 9)}"

    def head(self, function: Function, is_entry: bool) -> list[str]:
        """The head of a function."""
        self._changing = reassigned(function)
        self._borrowed = {var for var in function.parameters if var.type == ARRAY}
        written = written_arrays(function)
        parameters = ", ".join(self.parameter(var, var in written) for var in function.parameters)
        return wrapped(f"{'pub ' if is_entry else ''}fn {function.name}({parameters}){self.arrow(function)} {{", 0)

    def parameter(self, var: Var, is_written: bool) -> str:
        """The declaration of a parameter."""
        if var.type == ARRAY:
            kind = f"[f64; {var.size}]" if var.size else "[f64]"
            return f"{var.name}: &{'mut ' if is_written else ''}{kind}"
        return f"{var.name}: {self.kind(var.type)}"

    def unused(self, function: Function) -> list[str]:
        """Parameters that are there for all methods."""
        used = read_variables(function)
        return [f"    let _ = {var.name}; // not needed here" for var in function.parameters if var not in used]

    def constant_array(self, name: str, values: tuple[float, ...]) -> list[str]:
        """The declaration of a constant array."""
        return wrapped(f"const {name}: [f64; {len(values)}] = [{', '.join(map(self.literal, values))}];", 0)

    # --- the file -----------------------------------------------------------------------------------

    def opening(self, made: Any) -> list[str]:
        """Lints that do not concern printed code."""
        lints = ("dead_code", "non_snake_case", "unused_assignments", "unused_parens", "unexpected_cfgs", "clippy::all")
        return [f"#![allow({', '.join(lints)})]"]

    def rounding(self, made: Any) -> str:
        """What equality with the Python kernel depends on."""
        return (
            "Rust fuses no product with a sum, so the numbers equal those of the Python kernel to the bit where sin, "
            "cos and the like are the same functions (those of the C library on most systems)."
        )

    def how_to_test(self, made: Any) -> str:
        """How the self-test is run."""
        return f"Self-test: rustc -O --cfg polhode_self_test {made.name}.rs && ./{made.name}"

    def closing(self, made: Any, trial: Any) -> list[str]:
        """The self-test."""
        calls = {entry: self._call(made, entry, trial) for entry in made.entries}
        out = ("q_out", "momentum_out") if "result" in calls else ("q", "momentum")
        lines = [
            "#[cfg(polhode_self_test)]",
            "fn main() {",
            *self._array("inertia", made.inertia),
            *self._array("inverse", made.inverse),
            *(self._array("params", made.parameters) if made.parameters else []),
            *self._array("q", made.q, "mut "),
            *self._array("momentum", made.momentum, "mut "),
            *([f"    let mut memory = [0.0_f64; {made.memory}];"] if made.memory else []),
            *(["    let (mut q_out, mut momentum_out) = ([0.0_f64; 4], [0.0_f64; 3]);"] if "result" in calls else []),
            *self._array("expected", trial.expected),
            f"    let (t0, dt) = ({trial.t0!r}_f64, {trial.dt!r}_f64);",
            *([f"    assert_eq!({calls['begin']}, 0);"] if "begin" in calls else []),
            f"    for n in 0..{trial.steps} {{",
            f'        assert_eq!({calls["step"]}, 0, "step {{}} failed", n + 1);',
            "    }",
            *([f"    assert_eq!({calls['result']}, 0);"] if "result" in calls else []),
            "    let mut largest = 0.0_f64;",
            f"    for (x, e) in {out[0]}.iter().chain({out[1]}.iter()).zip(expected.iter()) {{",
            '        println!("{:?}", x);',
            "        largest = largest.max((x - e).abs());",
            "    }",
            '    println!("largest difference from the Python kernel: {:e}", largest);',
            f"    assert!(largest <= {trial.tolerance!r});",
            "}",
        ]
        return ["\n".join(lines)]

    def _array(self, name: str, values: tuple[float, ...], words: str = "") -> list[str]:
        return wrapped(f"let {words}{name} = [{', '.join(self.literal(x) + '_f64' for x in values)}];", 1)

    @staticmethod
    def _call(made: Any, entry: str, trial: Any) -> str:
        time = {"step": "t0 + f64::from(n) * dt", "begin": "t0", "result": f"t0 + {trial.steps}.0 * dt"}[entry]
        written = made.state if entry != "result" else ("q_out", "momentum_out")
        read = made.data if entry != "result" else (*made.data, *made.state)
        arrays = [*(f"&{name}" for name in read), *(f"&mut {name}" for name in written)]
        return f"{made.name}_{entry}({', '.join(('dt', time, *arrays))})"
