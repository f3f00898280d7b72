"""What the printers of all languages share: expressions with few parentheses, statements, names of tuple types."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..nodes import (
    ARRAY,
    BOOL,
    INT,
    Assign,
    Break,
    Do,
    Function,
    If,
    Loop,
    Node,
    Return,
    SetItem,
    Statement,
    Tup,
    Type,
    Var,
    expressions,
    parts,
    statements,
)

WIDTH = 110
"""Longest line of printed source."""

PRECEDENCE = {"select": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6,
              "*": 7, "/": 7, "neg": 8, "not": 8, "cast": 8}  # fmt: skip
"""How tightly operations bind; those that are not here are like calls."""

NAMES: dict[tuple[Any, ...], tuple[str, tuple[str, ...]]] = {
    ("number",) * 2: ("pair", ("a", "b")),
    ("number",) * 3: ("vec3", ("x", "y", "z")),
    ("number",) * 4: ("quat", ("w", "x", "y", "z")),
    (("number",) * 3,) * 3: ("mat3", ("a", "b", "c")),
    (("number",) * 4, ("number",) * 3): ("state", ("q", "m")),
    (("number",) * 3,) * 2: ("vec3_pair", ("a", "b")),
}
"""Names of the types of common tuples and of their items, by shape."""

LONG = 5
"""Tuples of at least this many numbers are stored as an array."""


class Printer:
    """Prints functions; subclasses override what differs in a language."""

    language = ""
    suffix = ""
    number, boolean, integer = "double", "bool", "int"
    true, false = "true", "false"
    end = ";"
    functions: Mapping[str, str] = MappingProxyType({})
    """Names of the elementary functions."""
    has_fma = True
    """Whether the language has a fused multiply-add; without it the error of a product needs 17 operations."""
    has_self_test = True
    epsilon = 2.0**-52

    def __init__(self) -> None:
        self.shapes: dict[tuple[Any, ...], str] = {}
        self.tables: dict[tuple[float, ...], str] = {}

    # --- types --------------------------------------------------------------------------------------

    def arrow(self, function: Function) -> str:
        """The type of the result behind an arrow, as several languages write it; empty without a result."""
        return "" if function.result.name == "known" else f" -> {self.kind(function.result)}"

    def kind(self, kind: Type) -> str:
        """The name of a type."""
        return self.shape_kind(kind.shape if isinstance(kind, Tup) else kind.name)

    def tuple_name(self, shape: tuple[Any, ...]) -> str:
        """The name of the type of a tuple; its definition is printed before the functions."""
        if shape not in self.shapes:
            for inner in shape:
                if isinstance(inner, tuple):
                    self.tuple_name(inner)
            self.shapes[shape] = self.type_name(NAMES[shape][0] if shape in NAMES else self._numbered(shape))
        return self.shapes[shape]

    def _numbered(self, shape: tuple[Any, ...]) -> str:
        if is_long(shape):
            return f"numbers{len(shape)}"
        return f"group{sum(s not in NAMES and not is_long(s) for s in self.shapes) + 1}"

    def type_name(self, name: str) -> str:
        """The spelling of a type's name."""
        return name

    def fields(self, shape: tuple[Any, ...]) -> tuple[str, ...]:
        """Names of the items of a tuple that is not an array."""
        return NAMES[shape][1] if shape in NAMES else tuple("abcdefghijklmnopqrstuvwxyz"[: len(shape)])

    def definitions(self) -> Iterator[str]:
        """The definitions of the types of tuples."""
        for shape, name in self.shapes.items():
            yield self.definition(name, shape)

    def definition(self, name: str, shape: tuple[Any, ...]) -> str:
        """The definition of one type."""
        raise NotImplementedError

    def shape_kind(self, shape: Any) -> str:
        """The name of the type of an item."""
        if isinstance(shape, tuple):
            return self.tuple_name(shape)
        return {"number": self.number, "bool": self.boolean, "int": self.integer}[shape]

    # --- expressions --------------------------------------------------------------------------------

    def text(self, node: Node, around: int = 0) -> str:
        """The text of an expression within an operation of precedence `around`."""
        own = PRECEDENCE.get(node.op, 9)
        text = self._text(node, own)
        return f"({text})" if own < around else text

    def _text(self, node: Node, own: int) -> str:
        op, args = node.op, node.args
        if op in ("&&", "||"):
            return f" {op} ".join(self.text(a, 4 if a.op != op else own) for a in args)
        if own in (4, 5, 6, 7):
            left = self.text(args[0], own + (own in (4, 5)))
            right = self.text(args[1], own + 1)
            return f"{left} {op} {f'({right})' if right.startswith('-') else right}"
        if op == "neg":
            inner = self.text(args[0], 8)
            return f"-({inner})" if inner.startswith("-") else f"-{inner}"
        if op == "not":
            return f"!{self.text(args[0], 9)}"
        if op == "const":
            return self.constant(node)
        if op == "ref":
            return self.variable(node.data)
        if op == "at":
            return f"{self.text(args[0])}[{self.index(args[1])}]"
        if op == "table":
            return f"{self.table(node.data)}[{self.index(args[0])}]"
        if op == "call":
            return f"{self.callee(node.data)}({', '.join(self.arguments(node))})"
        if op == "math":
            return self.math(node.data, [self.text(a) for a in args], args)
        return getattr(self, f"_{op}")(node)

    def variable(self, var: Var) -> str:
        """A variable where it is read."""
        return var.name

    def callee(self, function: Function) -> str:
        """The name of a function where it is called."""
        return function.name

    def arguments(self, node: Node) -> list[str]:
        """The arguments of a call."""
        return [self.text(a) for a in node.args]

    def index(self, node: Node) -> str:
        """An index of an array."""
        return self.text(node)

    def constant(self, node: Node) -> str:
        """A number or truth value."""
        if node.type == BOOL:
            return self.true if node.data else self.false
        return str(node.data) if node.type == INT else self.literal(node.data)

    def literal(self, value: float) -> str:
        """A number, with the digits that determine it."""
        if math.isnan(value) or math.isinf(value):
            name = self.not_a_number if math.isnan(value) else self.infinity
            return f"-{name}" if value < 0 else name
        return repr(float(value))

    infinity, not_a_number = "INFINITY", "NAN"

    def table(self, values: tuple[float, ...]) -> str:
        """The name of a constant array."""
        return self.tables.setdefault(values, f"{self.table_prefix}{len(self.tables) + 1}")

    table_prefix = "table_"

    def _item(self, node: Node) -> str:
        base, kind = node.args[0], node.args[0].type
        assert isinstance(kind, Tup)
        place = kind.stored.index(node.data)
        inner = self.text(base, 9)
        if len(kind.stored) == 1:
            return inner
        return f"{inner}.v[{place}]" if is_long(kind.shape) else f"{inner}.{self.fields(kind.shape)[place]}"

    def _make(self, node: Node) -> str:
        assert isinstance(node.type, Tup)
        if len(node.args) == 1:
            return self.text(node.args[0], 9)
        return self.made(node.type.shape, [self.text(a) for a in node.args])

    def made(self, shape: tuple[Any, ...], items: list[str]) -> str:
        """A tuple of items."""
        raise NotImplementedError

    def _select(self, node: Node) -> str:
        condition, yes, no = node.args
        return f"{self.text(condition, 2)} ? {self.text(yes, 2)} : {self.text(no, 1)}"

    def _cast(self, node: Node) -> str:
        return f"({self.number}){self.text(node.args[0], 9)}"

    def math(self, name: str, arguments: list[str], nodes: tuple[Node, ...]) -> str:
        """The call of an elementary function."""
        return f"{self.functions[name]}({', '.join(arguments)})"

    # --- statements ---------------------------------------------------------------------------------

    def block(self, body: list[Statement], indent: int = 1) -> list[str]:
        """Lines of a block."""
        return [line for statement in body for line in self.statement(statement, indent)]

    def statement(self, statement: Statement, indent: int) -> list[str]:
        """Lines of a statement."""
        pad = "    " * indent
        if isinstance(statement, If):
            lines = [f"{pad}if {self.condition(statement.condition)} {{", *self.block(statement.then, indent + 1)]
            if statement.otherwise:
                lines += [f"{pad}}} else {{", *self.block(statement.otherwise, indent + 1)]
            return [*lines, f"{pad}}}"]
        if isinstance(statement, Loop):
            head = self.loop(statement.var, statement.first, statement.end, statement.body)
            return [f"{pad}{head} {{", *self.block(statement.body, indent + 1), f"{pad}}}"]
        return wrapped(self.simple(statement) + self.end, indent)

    def condition(self, node: Node) -> str:
        """The condition of a branch."""
        return f"({self.text(node)})"

    def simple(self, statement: Statement) -> str:
        """The text of a statement without blocks."""
        if isinstance(statement, Assign):
            if statement.value is None:
                return self.zero(statement.var)
            text = self.text(statement.value)
            return self.declared(statement.var, text) if statement.declares else f"{statement.var.name} = {text}"
        if isinstance(statement, SetItem):
            return f"{self.place(statement.var)}[{self.index(statement.index)}] = {self.text(statement.value)}"
        if isinstance(statement, Do):
            return self.text(statement.call)
        if isinstance(statement, Break):
            return "break"
        assert isinstance(statement, Return)
        return "return" if statement.value is None else f"return {self.text(statement.value)}"

    def place(self, var: Var) -> str:
        """An array where it is written."""
        return var.name

    def declared(self, var: Var, value: str) -> str:
        """The declaration of a variable with its value."""
        return f"{self.kind(var.type)} {var.name} = {value}"

    def zero(self, var: Var) -> str:
        """The declaration of a variable that gets its value in an inner block, or of a workspace."""
        raise NotImplementedError

    def loop(self, var: Var, first: Node, end: Node, body: list[Statement]) -> str:
        """The head of a loop."""
        i = var.name
        return f"for ({self.integer} {i} = {self.text(first)}; {i} < {self.text(end)}; {i}++)"

    # --- functions ----------------------------------------------------------------------------------

    def function(self, function: Function, is_entry: bool = False) -> list[str]:
        """Lines of a function."""
        head = self.head(function, is_entry)
        unused = self.unused(function) if is_entry else []
        return [*head, *unused, *self.block(function.body), "}"]

    def head(self, function: Function, is_entry: bool) -> list[str]:
        """The head of a function, up to its opening brace."""
        raise NotImplementedError

    def unused(self, function: Function) -> list[str]:
        """Statements that mention the parameters that an entry does not use."""
        return []

    def comment(self, text: str) -> list[str]:
        """A comment."""
        return [f"// {line}".rstrip() for line in text.splitlines()]

    # --- the file -----------------------------------------------------------------------------------

    def opening(self, made: Any) -> list[str]:
        """What stands before the types."""
        return []

    def table_lines(self) -> list[str]:
        """The constant arrays."""
        return [line for values, name in self.tables.items() for line in self.constant_array(name, values)]

    def constant_array(self, name: str, values: tuple[float, ...]) -> list[str]:
        """The declaration of a constant array."""
        raise NotImplementedError

    def closing(self, made: Any, trial: Any) -> list[str]:
        """What stands after the functions: the self-test."""
        return []

    def rounding(self, made: Any) -> str:
        """What equality with the Python kernel depends on."""
        return ""

    def how_to_test(self, made: Any) -> str:
        """How the self-test is run."""
        return ""


def is_long(shape: tuple[Any, ...]) -> bool:
    """Whether a tuple is stored as an array."""
    return len(shape) >= LONG and all(s == "number" for s in shape)


def written_arrays(function: Function) -> set[Var]:
    """The arrays that a function writes, or passes to one that does."""
    found = {s.var for s in statements(function.body) if isinstance(s, SetItem)}
    for statement in statements(function.body):
        for e in expressions(statement):
            for node in parts(e):
                if node.op == "call":
                    inner = written_arrays(node.data)
                    for var, argument in zip(node.data.parameters, node.args, strict=True):
                        if var in inner and argument.op == "ref":
                            found.add(argument.data)
    return found


def reassigned(function: Function) -> set[Var]:
    """The variables that are assigned more than once, which some languages declare otherwise."""
    count = Counter(s.var for s in statements(function.body) if isinstance(s, Assign))
    return {var for var, n in count.items() if n > 1}


def read_variables(function: Function) -> set[Var]:
    """The variables that a function reads or writes."""
    nodes = [n for s in statements(function.body) for e in expressions(s) for n in parts(e)]
    return {n.data for n in nodes if n.op == "ref"} | {
        s.var for s in statements(function.body) if isinstance(s, SetItem)
    }


def trial_call(made: Any, entry: str, trial: Any) -> str:
    """The call of an entry in a self-test, in languages with the syntax of C."""
    time = {"step": "t0 + n * dt", "begin": "t0", "result": f"t0 + {trial.steps} * dt"}[entry]
    output = ("q_out", "momentum_out") if entry == "result" else ()
    return f"{made.name}_{entry}({', '.join(('dt', time, *made.data, *made.state, *output))})"


def wrapped(text: str, indent: int) -> list[str]:
    """A statement in lines that are not too long, broken where the fewest parentheses are open."""
    pad = "    " * indent
    lines = [pad + text]
    while len(lines[-1]) > WIDTH:
        line = lines.pop()
        place = _best_break(line, len(line) - len(line.lstrip()) + 8)
        if place is None:
            lines.append(line)
            break
        lines += [line[:place].rstrip(), f"{pad}    {line[place:].lstrip()}"]
    return lines


def _best_break(line: str, first: int) -> int | None:
    """The last place for a line break at the least depth of parentheses."""
    depth, best, least = 0, None, math.inf
    for i, char in enumerate(line[: WIDTH + 1]):
        depth += (char in "({[") - (char in ")}]")
        after_comma = char == " " and line[i - 1] == "," and "<" not in line[max(0, i - 6) : i]  # array<f32, 3>
        before_sign = char == " " and line[i + 1 : i + 3] in ("+ ", "- ", "? ", ": ", "&&", "||")
        level = depth + (0 if after_comma else 0.5)
        if i > first and (after_comma or before_sign) and level <= least:
            best, least = i, level
    return best


def is_array(var: Var) -> bool:
    """Whether a variable is an array."""
    return var.type == ARRAY
