"""Taylor coefficients along the motion, as a kernel written from the graph of the equations.

Every node of the graph that moves has a series in the time since the start of the expansion; with c_k its k-th
coefficient

    (a b)_k = sum_j a_j b_(k-j),        (a/b)_k = (a_k - sum_(j>=1) b_j (a/b)_(k-j)) / b_0,
    x^n = p:  k x_0 p_k = sum_(j>=1) (n j - (k - j)) x_j p_(k-j),        dy = s dx:  k y_k = sum_j j x_j s_(k-j),

so all series follow order by order (Moore 1966). Sums that need nothing of each other in the same order share one loop.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from . import scalar
from .expression import COMPARISONS, OPERATORS, Expr, _slope, _text, is_number, lift, ordered, symbol
from .scalar import FUNCTIONS

LOGIC = (*COMPARISONS, "and", "or")

NOTHING = "0 * q[0]"
"""The text of a symbol that begins at zero."""


# --- graphs made ready ------------------------------------------------------------------------------


def substituted(outputs: Sequence[Expr], meaning: dict[str, Expr]) -> list[Expr]:
    """The same formulas with symbols replaced, and ``abs`` written as a branch."""
    new: dict[Expr, Expr] = {}
    for node in ordered(outputs):
        args = [new[a] if isinstance(a, Expr) else a for a in node.args]
        if node.op == "symbol":
            new[node] = meaning.get(node.args[0], node)
        elif node.op == "abs":
            new[node] = scalar.where(args[0] < 0, -args[0], args[0])
        elif node.op in OPERATORS:  # with what is known now, products by 0 and 1 vanish
            x, y = args
            new[node] = {"add": x + y, "sub": x - y, "mul": x * y}[node.op] if node.op != "div" else x / y
        else:
            new[node] = Expr.make(node.op, *args)
    return [new[node] for node in outputs]


def slopes(node: Expr) -> list[tuple[Expr, Expr]]:
    """(argument, slope) of an elementary function, the slopes made of few new nodes."""
    x = node.args[0]
    if node.op == "power":
        return [(x, node.args[1] * node / x), (node.args[1], node * scalar.log(x))]
    if node.op == "atan2":
        square = x * x + node.args[1] * node.args[1]
        return [(x, node.args[1] / square), (node.args[1], -(x / square))]
    return [(x, _slope(node.op, x, node))]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A graph made ready: its nodes in order, which of them move, and the slopes of its functions."""

    rates_of: dict[Expr, Expr]
    nodes: tuple[Expr, ...]
    moving: frozenset[Expr]
    slopes: dict[Expr, list[tuple[Expr, Expr]]]


def plan(states: Sequence[Expr], rates: Sequence[Expr], others: Sequence[Expr] = ()) -> Plan:
    """Close a graph under slopes; `states` move with `rates`, and ``t`` with rate 1; `others` are wanted too."""
    sources = {*states, symbol("t")}
    found: dict[Expr, list[tuple[Expr, Expr]]] = {}
    while True:
        wanted = [*states, *rates, *others, *(s for pairs in found.values() for _, s in pairs)]
        nodes = ordered(wanted)
        moving = moving_of(nodes, sources)
        fresh = [node for node in nodes if node.op in FUNCTIONS and node in moving and node not in found]
        if not fresh:
            return Plan(dict(zip(states, rates, strict=True)), tuple(nodes), frozenset(moving), found)
        found |= {node: [(x, s) for x, s in slopes(node) if x in moving] for node in fresh}


def moving_of(nodes: Iterable[Expr], sources: set[Expr]) -> set[Expr]:
    """Those of the nodes, given arguments first, that depend on the sources."""
    moving: set[Expr] = set()
    for node in nodes:
        if node in sources or any(a in moving for a in node.args if isinstance(a, Expr)):
            moving.add(node)
    return moving


# --- powers -----------------------------------------------------------------------------------------


Monomial = tuple[Expr, Expr | None, int]
"""c x^n: the coefficient, which does not move, the base (None for n = 0), and n."""


def gathered(outputs: Sequence[Expr], sources: set[Expr]) -> list[Expr]:
    """The same formulas with quotients of powers of one thing, c x^-n, made one node, ``whole_power``."""
    nodes = ordered(outputs)
    moving = moving_of(nodes, sources)
    of: dict[Expr, Monomial] = {}
    new: dict[Expr, Expr] = {}
    for node in nodes:
        of[node] = _monomial(node, moving, of, new)
        new[node] = _rewritten(node, of, new)
    return [new[node] for node in outputs]


def _monomial(node: Expr, moving: set[Expr], of: dict[Expr, Monomial], new: dict[Expr, Expr]) -> Monomial:
    if node not in moving:
        return node, None, 0
    if node.op in OPERATORS:
        (c, x, n), (d, y, m) = of[node.args[0]], of[node.args[1]]
        if node.op == "mul" and (x is y or x is None or y is None):
            return c * d, x if y is None else y, n + m
        if node.op == "div" and (x is y or x is None or y is None):
            base, power = (y, n - m) if x is None else (x, n - m)
            return (c / d, base, power) if power else (lift(1), node, 1)
        if node.op in ("add", "sub") and x is y and n == m:
            return (c + d if node.op == "add" else c - d), x, n
        if node.op == "sub" and is_number(node.args[0], 0):
            return -d, y, m
    return lift(1), node, 1


def _rewritten(node: Expr, of: dict[Expr, Monomial], new: dict[Expr, Expr]) -> Expr:
    c, x, n = of[node]
    if n < 0 and x is not None and not (n == -1 and node.op == "div"):
        return c * Expr.make("whole_power", new[x], n)
    args = [new[a] if isinstance(a, Expr) else a for a in node.args]
    return Expr.make(node.op, *args)


# --- writing the kernel -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Series:
    """Source and constants of the kernel ``fill(..., work, order)``; where in `work` every series asked for begins."""

    text: str
    constants: dict[str, Any]
    rows: tuple[int, ...]
    size: int
    """Numbers in `work`."""
    terms: int
    """Sums over pairs of coefficients that every order needs."""


def series(
    parameters: str,
    start: dict[str, str],
    rates: dict[str, Expr],
    others: Sequence[Expr],
    stride: int,
    chained: bool = False,
) -> Series:
    """The kernel for Taylor coefficients 0..order (below `stride`) of states and of formulas made of them.

    `start` gives for every symbol the text that reads it from the parameters, `rates` the rate of every state. Many
    series at once are better `chained` in lanes: see `_Writer._loop`.
    """
    states = [symbol(name) for name in rates]
    sources = {*states, symbol("t")}
    formulas = gathered([*rates.values(), *others], sources)
    ready = plan(states, formulas[: len(states)], formulas[len(states) :])
    return _Writer(ready, start, [*states, *formulas[len(states) :]], stride, chained).series(parameters)


class Product(NamedTuple):
    """The sum of sign weight a_j b_(k-j)."""

    weight: str
    a: Expr
    b: Expr
    sign: str = ""

    def signed(self, sign: str) -> Product:
        """The same, its sign changed by "-"."""
        return self._replace(sign="" if self.sign == sign else "-")


def _is_product(node: Expr, sums: dict[Expr, list[Product]]) -> bool:
    """Is the node a product, or made of products, of things that move."""
    return node in sums and node.op in ("mul", "add", "sub")


def _added(products: list[tuple[str, str]]) -> str:
    """The text that adds products with their signs to a number."""
    ordered = sorted(products)  # "" before "-"
    outer = ordered[0][0]
    text = "".join(f" {'+' if sign == outer else '-'} {product}" for sign, product in ordered[1:])
    return f"{outer or '+'} ({ordered[0][1]}{text})"


class _Writer:
    """Names, rows and lines of one kernel."""

    def __init__(self, ready: Plan, start: dict[str, str], wanted: list[Expr], stride: int, chained: bool) -> None:
        self.ready, self.start, self.wanted, self.stride, self.chained = ready, start, wanted, stride, chained
        self.inner = 1 if chained else 0  # the loop that the sums of functions, 0 < j < k, share
        self.name = {node: str(i) for i, node in enumerate(ready.nodes)}
        self.constants: dict[str, Any] = {"one": Fraction(1)}
        self.sums, self.within = self._sums()
        self.lowest = self._lowest()
        self.level = self._levels()
        self.row = {node: i for i, node in enumerate(dict.fromkeys([*wanted, *self._operands()]))}

    # what is summed, and when

    def _sums(self) -> tuple[dict[Expr, list[Product]], set[Expr]]:
        """The nodes whose coefficients are sums over pairs of others, and the pairs.

        A sum or difference of products that nobody else needs is one sum over all their pairs; these products are the
        second result.
        """
        moving, sums, within = self.ready.moving, dict[Expr, list[Product]](), set[Expr]()
        uses = Counter(a for node in self.ready.nodes for a in node.args if isinstance(a, Expr))
        uses.update([*self.wanted, *self.ready.rates_of.values()])
        uses.update(x for pairs in self.ready.slopes.values() for pair in pairs for x in pair)
        for node in self.ready.nodes:
            if node not in moving or node in self.ready.rates_of:
                continue
            parts = [a for a in node.args if a in moving]
            if node.op in FUNCTIONS:
                sums[node] = [Product("j * ", x, s) for x, s in self.ready.slopes[node]]
            elif node.op == "whole_power":
                sums[node] = [Product(f"({node.args[1] + 1} * j - k) * ", node.args[0], node)]
            elif node.op == "div" and node.args[1] in moving:
                sums[node] = [Product("", node.args[1], node)]
            elif node.op == "mul" and len(parts) == 2:
                sums[node] = [Product("", *parts)]
            elif node.op in ("add", "sub") and all(uses[a] == 1 and _is_product(a, sums) for a in parts):
                signs = ("", "-" if node.op == "sub" else "")
                pairs = zip(signs, node.args, strict=True)
                sums[node] = [p.signed(sign) for sign, a in pairs if a in moving for p in sums.pop(a)]
                within.update(parts)
        return sums, within

    def _lowest(self) -> dict[Expr, int]:
        """An order below which all coefficients of a node are zero."""
        lowest: dict[Expr, int] = {}
        for node in self.ready.nodes:
            below = [lowest[a] for a in node.args if isinstance(a, Expr)]
            lowest[node] = 0
            if node.op == "symbol":
                lowest[node] = int(self.start[node.args[0]] == NOTHING)
            elif node.op == "mul":
                lowest[node] = sum(below)
            elif node.op in ("add", "sub"):
                lowest[node] = min(below)
            elif is_number(node, 0):
                lowest[node] = self.stride
        return lowest

    def _is_sum(self, node: Expr) -> bool:
        """Does a coefficient need the lower ones of others (a product, a quotient, a function)."""
        return node in self.sums

    def _levels(self) -> dict[Expr, int]:
        level: dict[Expr, int] = {}
        for node in self.ready.nodes:
            state = node in self.ready.rates_of
            below = [] if state else [level[a] for a in node.args if isinstance(a, Expr)]
            level[node] = max(below, default=0) + self._is_sum(node)
        return level

    def _operands(self) -> list[Expr]:
        return [x for products in self.sums.values() for p in products for x in (p.a, p.b) if x in self.ready.moving]

    # lines

    def series(self, parameters: str) -> Series:
        """The whole."""
        lines = [*self._first_order(), "for k in range(1, order):", *("    " + x for x in self._next_order())]
        lines += ["over = one / order", *self._states("order")]
        for node in self.wanted:
            if node not in self.ready.moving:
                lines += ["for k in range(1, order + 1):", f"    {self._place(node, 'k')} = zero"]
        body = "".join(f"    {line}\n" for line in lines)
        rows = tuple(self.row[node] * self.stride for node in self.wanted)
        text = f"def fill({parameters}, work, order):\n{body}"
        terms = sum(map(len, self.sums.values()))
        return Series(text, self.constants, rows, len(self.row) * self.stride, terms)

    def _place(self, node: Expr, k: str) -> str:
        first = self.row[node] * self.stride
        return f"work[{first} + {k}]" if first else f"work[{k}]"

    def _value(self, node: Expr, prefix: str) -> str:
        """The local name of a coefficient: z for order 0, x for order k."""
        return f"{prefix}{self.name[node]}"

    def _first_order(self) -> list[str]:
        lines = []
        for node in self.ready.nodes:
            if node.op in ("const", "named"):
                self.constants[self._value(node, "z")] = node.args[0]
                continue
            args = [self._value(a, "z") if isinstance(a, Expr) else a for a in node.args]
            text = _power_text(args[0], args[1]) if node.op == "whole_power" else _text(node.op, args, self.start)
            lines.append(f"{self._value(node, 'z')} = {text}")
        lines += [f"zero = {NOTHING}"]
        lines += [f"{self._place(node, '0')} = zero + {self._value(node, 'z')}" for node in self.row]
        lines += [f"d{self.name[s]} = {self._value(r, 'z')}" for s, r in self.ready.rates_of.items()]
        return lines

    def _states(self, k: str) -> list[str]:
        lines = []
        for node in self.ready.rates_of:
            lines += [f"{self._value(node, 'x')} = d{self.name[node]} * over"]
            lines += [f"{self._place(node, k)} = {self._value(node, 'x')}"] if node in self.row else []
        return lines

    def _next_order(self) -> list[str]:
        lines = ["over = one / k", *self._states("k")]
        moving = [n for n in self.ready.nodes if n in self.ready.moving and n.op not in LOGIC and n not in self.within]
        for level in range(max(self.level.values()) + 1):
            here = [n for n in moving if self.level[n] == level and n not in self.ready.rates_of]
            lines += self._loop([n for n in here if self._is_sum(n)])
            for node in here:
                lines.append(f"{self._value(node, 'x')} = {self._coefficient(node)}")
                if node in self.row:
                    lines.append(f"{self._place(node, 'k')} = {self._value(node, 'x')}")
        rates = self.ready.rates_of.items()
        return lines + [f"d{self.name[s]} = {self._later(r)}" for s, r in rates]

    def _loop(self, sums: list[Expr]) -> list[str]:
        """Sums of nodes of one level: one loop for all that run over the same orders.

        The products of a node are added up before they join its total, so that one sum does not wait for the other,
        and the terms j = 0 and j = k, whose factors are at hand, come last. Chained, all terms join the total one by
        one in the loop, which takes fewer registers.
        """
        lines: list[str] = []
        loops: dict[tuple[int, int], dict[str, list[tuple[str, str]]]] = {}
        for node in sums:
            total = f"s{self.name[node]}"
            lines.append(f"{total} = zero")
            for p in self.sums[node]:
                ends = (
                    (self.lowest[p.a], self.lowest[p.b]) if _is_product(node, self.sums) else (self.inner, self.inner)
                )
                product = f"{p.weight}{self._place(p.a, 'j')} * {self._place(p.b, 'k - j')}"
                loops.setdefault(ends, {}).setdefault(total, []).append((p.sign, product))
        for (first, last), terms in loops.items():
            if not self.chained:
                first, last = max(first, 1), max(last, 1)
            lines.append(f"for j in range({first}, k + {1 - last}):")
            for total, products in terms.items():
                parts = [[p] for p in products] if self.chained else [products]
                lines += [f"    {total} = {total} {_added(part)}" for part in parts]
        return lines

    def _with_ends(self, node: Expr) -> str:
        """The total of a node made of products, with the terms j = 0 and j = k."""
        text = f"s{self.name[node]}"
        for p in [] if self.chained else self.sums[node]:
            first, last = f"z{self.name[p.a]} * x{self.name[p.b]}", f"x{self.name[p.a]} * z{self.name[p.b]}"
            ends = [x for x, low in ((first, self.lowest[p.a]), (last, self.lowest[p.b])) if low == 0]
            text += "".join(f" {p.sign or '+'} {x}" for x in ends)
        return text

    def _later(self, node: Expr) -> str:
        """A coefficient of order k > 0."""
        return self._value(node, "x") if node in self.ready.moving else "zero"

    def _coefficient(self, node: Expr) -> str:
        z, x = (lambda n: self._value(n, "z")), self._later
        total = f"s{self.name[node]}"
        if node.op == "symbol":
            return "where(k == 1, zero + one, zero)"
        if node.op == "where":
            return f"where({z(node.args[0])}, {x(node.args[1])}, {x(node.args[2])})"
        if node.op in FUNCTIONS:
            pairs = self.ready.slopes[node]
            ends = " + ".join(f"{x(a)} * {z(s)}" for a, s in pairs)
            return f"{ends} + {total} * over"
        a, b = node.args
        if _is_product(node, self.sums):
            return self._with_ends(node)
        if node.op == "whole_power":
            return f"({total} * over + {b} * {x(a)} * {z(node)}) / {z(a)}"
        if node.op in ("add", "sub"):
            still = [n not in self.ready.moving for n in (a, b)]
            sign = "-" if node.op == "sub" else ""
            return x(a) if still[1] else f"{sign}{x(b)}" if still[0] else f"{x(a)} {sign or '+'} {x(b)}"
        if node.op == "mul":
            return f"{x(a)} * {z(b)}" if a in self.ready.moving else f"{z(a)} * {x(b)}"
        if self._is_sum(node):
            return f"({x(a)} - {total} - {x(b)} * {z(node)}) / {z(b)}"
        return f"{x(a)} / {z(b)}"


def _power_text(x: str, n: Any) -> str:
    """x^n, n < 0, by repeated squaring."""

    def positive(n: int) -> str:
        if n == 1:
            return x
        half = positive(n // 2)
        return f"({half} * {half} * {x})" if n % 2 else f"({half} * {half})"

    return f"1 / {positive(-n)}"
