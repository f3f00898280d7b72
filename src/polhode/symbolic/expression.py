"""Formulas as graphs: a user function is run once on symbols, and its operations are recorded as a graph.

The graph yields a straight-line kernel (generic in the number type, so it is compiled, vectorised
and run in any precision), exact derivatives (for the torque of a potential), and Taylor coefficients
(for reference solutions). Equal subexpressions share one node.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from .._memo import KEPT
from ..numbers import dispatch, primitives
from ..numbers.derivatives import _derivative
from ..numbers.dispatch import kernel, register
from ..numbers.primitives import FUNCTIONS
from ..numbers.written import run_text

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
COMPARISONS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}


LOOK_UPS = ("bracket", "take")
"""Operations that read a table; they are constant between its knots."""


CALLS = ("call", "item")
"""A function that is no formula, on its arguments, and one of the numbers it returns."""


class BranchError(TypeError):
    """A user function branched on a number."""


class Opaque:
    """A function of numbers that is no formula: a graph calls it, and knows nothing else of it."""

    def kernel(self, number: Callable[[Any], Any]) -> Callable[..., Any]:
        """The function in one number type: several numbers in, a tuple of numbers out."""
        raise NotImplementedError

    def without_derivatives(self) -> Exception:
        """The error where derivatives of it are asked for."""
        raise NotImplementedError


class Summation(Opaque):
    """The term of a sum over rows of data (`total`); unlike other calls, the sum has derivatives."""

    def slopes(self, node: Expr) -> list[tuple[Expr, Expr]]:
        """Return (argument, derivative) for one component of the sum."""
        raise NotImplementedError

    def quotients(self, node: Expr, ends: Any) -> list[tuple[Expr, Expr]]:
        """Return (argument, difference quotient) for one component of the sum."""
        raise NotImplementedError

    def without_series(self) -> Exception:
        """The error where its Taylor series is asked for."""
        raise NotImplementedError


def called(function: Opaque, arguments: Sequence[Expr], count: int) -> tuple[Expr, ...]:
    """The numbers that an opaque function returns, each a node; the function is called once."""
    call = Expr.make("call", lift(function), *arguments)
    return tuple(Expr.make("item", call, i) for i in range(count))


def summation_of(item: Expr) -> Summation:
    """The sum whose component an ``item`` is; items of other functions have no derivatives."""
    found: Summation = item.args[0].args[0].args[0]
    return found


def opaque_calls(outputs: Iterable[Expr]) -> list[Expr]:
    """The calls of opaque functions that the outputs need."""
    return [node for node in ordered(outputs) if node.op == "call"]


class Expr:
    """A node: an operation and its arguments. Create nodes with `make`, which shares equal ones."""

    __slots__ = ("args", "number", "op")
    _nodes: ClassVar[dict[Any, Expr]] = {}
    _count: ClassVar[Any] = itertools.count()

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op, self.args, self.number = op, args, next(Expr._count)

    @staticmethod
    def make(op: str, *args: Any) -> Expr:
        """Return the node of an operation and its arguments."""
        key = (op, *(a.number if isinstance(a, Expr) else (type(a), a, str(a)) for a in args))
        if key not in Expr._nodes:
            Expr._nodes[key] = Expr(op, args)
        return Expr._nodes[key]

    def __add__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _sum(self, lift(other))

    def __radd__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _sum(lift(other), self)

    def __sub__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _difference(self, lift(other))

    def __rsub__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _difference(lift(other), self)

    def __mul__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _product(self, lift(other))

    def __rmul__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _product(lift(other), self)

    def __truediv__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _quotient(self, lift(other))

    def __rtruediv__(self, other: Any) -> Expr:
        return NotImplemented if isinstance(other, tuple) else _quotient(lift(other), self)

    def __neg__(self) -> Expr:
        return _difference(lift(0), self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return Expr.make("abs", self)

    def __pow__(self, exponent: Any) -> Expr:
        if isinstance(exponent, Expr) and exponent.op == "const":
            exponent = exponent.args[0]
        if not isinstance(exponent, Expr) and exponent == int(exponent):
            return _whole_power(self, int(exponent))
        return Expr.make("power", self, lift(exponent))

    def __rpow__(self, base: Any) -> Expr:
        return Expr.make("power", _inexact(base), self)

    def __lt__(self, other: Any) -> Expr:
        return Expr.make("lt", self, lift(other))

    def __le__(self, other: Any) -> Expr:
        return Expr.make("le", self, lift(other))

    def __gt__(self, other: Any) -> Expr:
        return Expr.make("lt", lift(other), self)

    def __ge__(self, other: Any) -> Expr:
        return Expr.make("le", lift(other), self)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return Expr.make("eq", self, lift(other))

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return Expr.make("ne", self, lift(other))

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Expr:
        return Expr.make("and", self, lift(other))

    def __or__(self, other: Any) -> Expr:
        return Expr.make("or", self, lift(other))

    def __bool__(self) -> bool:
        raise BranchError("it branches on a number (if, and, or, not, while, chained <); use ph.where(condition, a, b)")

    def __float__(self) -> float:
        raise TypeError("a function outside ph.math was applied to a number of the motion")

    __index__ = __int__ = __float__

    def __iter__(self) -> Any:
        raise TypeError("a number of the motion was used as a vector; R[i][j] and omega[i] are numbers")


def lift(value: Any) -> Expr:
    """Return the constant node of a number, or the node itself."""
    if isinstance(value, str | bytes | bytearray) and value != "nan":  # in a formula float("nan") is its text
        raise TypeError(f"{value!r} is no number")
    return value if isinstance(value, Expr) else Expr.make("const", value)


def symbol(name: str) -> Expr:
    """A named input."""
    return Expr.make("symbol", name)


def symbols(letter: str, count: int) -> Any:
    """The named inputs x0, x1, ... as a tuple. Its type is Any: those of vectors and quaternions have a length."""
    return tuple(symbol(f"{letter}{i}") for i in range(count))


def constant(name: str) -> Expr:
    """A constant known by name (pi, e), exact in every number type."""
    return Expr.make("named", name)


def is_number(node: Expr, value: Any) -> bool:
    """Whether the node is the constant of this value."""
    return node.op == "const" and bool(node.args[0] == value)


def _folded(op: str, a: Expr, b: Expr) -> Expr:
    """Return the node of an operation; two integer constants are folded, so that derivatives stay short."""
    if a.op == b.op == "const" and isinstance(a.args[0], int) and isinstance(b.args[0], int):
        x, y = a.args[0], b.args[0]
        return lift({"add": x + y, "sub": x - y, "mul": x * y}[op])
    return Expr.make(op, a, b)


def _sum(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    return _folded("add", a, b)


def _difference(a: Expr, b: Expr) -> Expr:
    if is_number(b, 0):
        return a
    return _folded("sub", a, b)


def _product(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0) or is_number(b, 0):
        return lift(0)
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    return _folded("mul", a, b)


def _inexact(value: Any) -> Expr:
    """Make an integer constant a number of the type: Python would make a double of log(2) or 1/3."""
    node = lift(value)
    return lift(float(node.args[0])) if node.op == "const" and isinstance(node.args[0], int) else node


def _quotient(a: Expr, b: Expr) -> Expr:
    return a if is_number(b, 1) else Expr.make("div", _inexact(a) if b.op == "const" else a, b)


def _whole_power(x: Expr, n: int) -> Expr:
    """x**n by repeated squaring."""
    if n < 0:
        return 1 / _whole_power(x, -n)
    if n == 0:
        return lift(1)
    half = _whole_power(x, n // 2) if n > 1 else lift(1)
    return half * half * x if n % 2 else half * half


def _table(values: Any) -> Expr:
    return values if isinstance(values, Expr) else lift(tuple(values))


class Exprs:
    """The functions of traced numbers, under the names of `dispatch.Floats`."""

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Expr:
        """Choose by a condition."""
        return Expr.make("where", lift(condition), lift(yes), lift(no))

    @staticmethod
    def bracket(x: Any, knots: Any) -> Expr:
        """Index of the table interval that contains x; the knots are numbers, or the symbol of an array."""
        return Expr.make("bracket", x, _table(knots))

    @staticmethod
    def take(index: Any, column: Any) -> Expr:
        """An entry of a table."""
        return Expr.make("take", index, _table(column))

    @staticmethod
    def epsilon() -> float:
        """Distance from 1 to the next double; user formulas never need it."""
        return dispatch.Floats.epsilon()


def _function(name: str) -> Callable[..., Expr]:
    return staticmethod(lambda *args: Expr.make(name, *(_inexact(a) for a in args)))


for _name in FUNCTIONS:
    setattr(Exprs, _name, _function(_name))
register(Expr, Exprs)


# --- operations on a graph --------------------------------------------------------------------------


def ordered(outputs: Iterable[Expr]) -> list[Expr]:
    """Return all nodes that the outputs need, arguments before the nodes that use them."""
    seen: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(node, False) for node in reversed(list(outputs))]
    while stack:
        node, ready = stack.pop()
        if node in seen:
            continue
        if ready:
            seen[node] = None
        else:
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(node.args) if isinstance(a, Expr) and a not in seen)
    return list(seen)


def symbols_in(outputs: Iterable[Expr]) -> frozenset[str]:
    """Names of the inputs on which the outputs depend."""
    return _symbols_in(tuple(outputs))


@functools.lru_cache(maxsize=KEPT)
def _symbols_in(outputs: tuple[Expr, ...]) -> frozenset[str]:
    return frozenset(node.args[0] for node in ordered(outputs) if node.op == "symbol")


def check_has_derivative(node: Expr) -> None:
    """Refuse a call of a function that is no formula."""
    if node.op == "call":
        raise node.args[0].args[0].without_derivatives()


def check_has_series(node: Expr) -> None:
    """Refuse a node without a Taylor series: a function that is no formula, a sum over rows of data."""
    check_has_derivative(node)
    if node.op == "total":
        raise node.args[0].args[0].without_series()


def partials(node: Expr) -> list[tuple[Expr, Expr]]:
    """Return (argument, derivative of the node with respect to it) for every argument with a derivative."""
    op, args = node.op, node.args
    check_has_derivative(node)
    if op in ("symbol", "const", "named", *COMPARISONS, "and", "or", *LOOK_UPS):
        return []
    x = args[0]
    if op == "item":
        check_has_derivative(x)
        return summation_of(node).slopes(node)
    if op == "add":
        return [(x, lift(1)), (args[1], lift(1))]
    if op == "sub":
        return [(x, lift(1)), (args[1], lift(-1))]
    if op == "mul":
        return [(x, args[1]), (args[1], x)]
    if op == "div":
        inverse = 1 / args[1]  # the same node for all derivatives: a division takes as long as four products
        return [(x, inverse), (args[1], -(node * inverse))]
    if op == "where":
        return [(args[1], Exprs.where(x, 1, 0)), (args[2], Exprs.where(x, 0, 1))]
    if op == "power":
        exponent = args[1]
        over_base = (x, exponent * Expr.make("power", x, exponent - 1))
        return [over_base] if exponent.op == "const" else [over_base, (exponent, node * primitives.log(x))]
    if op == "atan2":
        square = x * x + args[1] * args[1]
        return [(x, args[1] / square), (args[1], -(x / square))]
    return [(x, _derivative(op, x, node))]


def _whole_powers(nodes: Sequence[Expr]) -> dict[Expr, tuple[Expr, int]]:
    """Return (x, n) for every node x^n made of products, (node, 1) for the others; arguments come before users."""
    found: dict[Expr, tuple[Expr, int]] = {}
    for node in nodes:
        found[node] = node, 1
        if node.op == "mul":
            (x, k), (y, m) = found[node.args[0]], found[node.args[1]]
            if x is y:
                found[node] = x, k + m
    return found


def gradient(output: Expr, inputs: Sequence[Expr]) -> list[Expr]:
    """Exact derivatives of one output, by a backward sweep of its graph.

    A whole power x^n with n > 2 contributes n x^(n-1) at once: through its products it would be a longer chain.
    """
    nodes = ordered([output])
    powers = _whole_powers(nodes)
    sensitivity: dict[Expr, Expr] = {output: lift(1)}
    for node in reversed(nodes):
        over = sensitivity.get(node)
        if over is None:
            continue
        x, n = powers[node]
        if n > 2:
            sensitivity[x] = sensitivity.get(x, lift(0)) + n * over * x ** (n - 1)
            continue
        for argument, slope in partials(node):
            sensitivity[argument] = sensitivity.get(argument, lift(0)) + over * slope
    return [sensitivity.get(x, lift(0)) for x in inputs]


def source(name: str, parameters: str, unpack: dict[str, str], outputs: Sequence[Expr]) -> tuple[str, dict[str, Any]]:
    """Return straight-line Python source for the outputs, and the constants it refers to.

    `unpack` gives, for every symbol, the source that reads it from the parameters.
    """
    lines: list[str] = []
    names: dict[Expr, str] = {}
    constants: dict[str, Any] = {}
    for i, node in enumerate(ordered(outputs)):
        if node.op in ("const", "named"):
            names[node] = f"k{len(constants)}"
            constants[names[node]] = node.args[0]
            continue
        names[node] = f"v{i}"
        args = [names[a] if isinstance(a, Expr) else a for a in node.args]
        lines.append(f"    v{i} = {_text(node.op, args, unpack)}")
    for node in outputs:
        if node.op == "const" and isinstance(node.args[0], int):  # return constant components as floats
            names[node] = f"k{len(constants)}"
            constants[names[node]] = float(node.args[0])
    result = ", ".join(names[node] for node in outputs)
    body = "\n".join(lines)
    comma = "," if len(outputs) == 1 else ""
    return f"def {name}({parameters}):\n{body}\n    return ({result}{comma})\n", constants


def _text(op: str, args: list[Any], unpack: dict[str, str]) -> str:
    if op == "symbol":
        return unpack[args[0]]
    if op in OPERATORS | COMPARISONS:
        return f"{args[0]} {(OPERATORS | COMPARISONS)[op]} {args[1]}"
    if op in ("call", "total"):
        return f"{args[0]}({', '.join(args[1:])})"
    if op == "item":
        return f"{args[0]}[{args[1]}]"
    if op in ("and", "or"):
        return f"{args[0]} {'&' if op == 'and' else '|'} {args[1]}"
    return f"{op}({', '.join(args)})"


def compiled(text: str, constants: dict[str, Any], number: Callable[[Any], Any]) -> Callable[..., Any]:
    """Compile a source text to a kernel with constants in one number type; the functions before the last are its parts.

    Integers stay integers; floats and named constants are converted by `number`; tuples become tables, lists tuples; an
    `Opaque` function has a kernel of its own.
    """
    space: dict[str, Any] = {
        name: getattr(primitives, name) for name in (*FUNCTIONS, "where", "to_float32", "convolved", "store", *LOOK_UPS)
    }
    space["abs"] = abs
    for name, value in constants.items():
        if isinstance(value, tuple):
            space[name] = primitives.table(value, number)
        elif isinstance(value, list):
            space[name] = tuple(map(number, value))
        elif isinstance(value, Opaque):
            space[name] = value.kernel(number)
        else:
            space[name] = value if isinstance(value, int) else number(value)
    run_text(text, space)  # operators, primitives, names v*, k*
    *inner, outer = re.findall(r"^def (\w+)", text, re.MULTILINE)
    for name in (*inner, outer):
        space[name].__module__ = __name__
        kernel(space[name])
    space |= {name: dispatch.by_halves(space[name]) for name in inner}
    function: Callable[..., Any] = space[outer]
    return function
