"""Source code of kernels for Taylor coefficients along the motion, from the graph of the equations.

Every node of the graph that moves has a series in the time since the start of the expansion. With c_k its k-th
coefficient

    (a b)_k = sum_j a_j b_(k-j),        (a/b)_k = (a_k - sum_(j>=1) b_j (a/b)_(k-j)) / b_0,
    x^n = p:  k x_0 p_k = sum_(j>=1) (n j - (k - j)) x_j p_(k-j),        dy = s dx:  k y_k = sum_j j x_j s_(k-j),

so all series follow order by order (Moore 1966). All sums of an order share one loop over 0 <= j <= k, and a sum of
products is one sum. A k-th coefficient that is not known yet counts as zero there, and is added when it is known.

Coefficients of high order hardly affect the sum of a series, so single precision is enough for them. A second
kernel continues in single precision where the first one has stopped. The range of single precision is small too; in a
time unit near the time scale of the motion, c_k unit^k is not far from 1.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import OPERATORS, Expr, _text, is_number, symbol
from .graph import LOGIC, Plan, plan, with_collected_factors

NOTHING = "0 * q[0]"
"""Source of a symbol whose initial value is zero."""


@dataclasses.dataclass(frozen=True)
class Series:
    """Two kernels, ``fill(..., unit, work, order)`` and ``extend(..., unit, work, first, workspace32, order)``.

    Coefficients of one order are adjacent: the k-th of the i-th requested series, times unit^k, is
    ``work[rows[i] + stride * k]``. The second kernel continues from the order `first` > 1 where the first one ended, in
    single precision in `workspace32`; order `first` is computed in both precisions, which gives an error estimate.
    """

    text: str
    more: str
    constants: dict[str, Any]
    rows: tuple[int, ...]
    stride: int
    size: int
    """Numbers in `work`."""
    terms: int
    """Number of products summed over j in every order."""


def series(
    parameters: str, start: dict[str, str], rates: dict[str, Expr], others: Sequence[Expr], orders: int,
    writer: type[Writer] | None = None,
) -> Series:  # fmt: skip
    """Write the kernels for Taylor coefficients 0..order (below `orders`) of the states and of formulas in them.

    `start` gives for every symbol the source that reads it from the parameters, `rates` the rate of every state.
    """
    states = [symbol(name) for name in rates]
    sources = {*states, symbol("t")}
    formulas = with_collected_factors([*rates.values(), *others], sources)
    ready = plan(states, formulas[: len(states)], formulas[len(states) :])
    return (writer or Writer)(ready, start, [*states, *formulas[len(states) :]], orders).series(parameters)


TOGETHER = 20
"""Sums in one loop: one register for each, and the rest for the factors. A top and its variation have 19."""


@dataclasses.dataclass
class _Form:
    """A signed sum of products and other terms, and the nodes that occur only within it."""

    products: list[tuple[int, Expr, Expr]] = dataclasses.field(default_factory=list)
    rest: list[tuple[int, Expr]] = dataclasses.field(default_factory=list)
    within: set[Expr] = dataclasses.field(default_factory=set)

    def take(self, other: _Form, node: Expr) -> None:
        """Take over the terms of an inner node."""
        self.products += other.products
        self.rest += other.rest
        self.within |= {node} | other.within


class Writer:
    """Writer of the kernels: local names, rows of the workspace, and source lines."""

    single_precision = False
    """Whether the current kernel is in single precision; its local names end in n."""
    reversed_products: frozenset[tuple[Expr, Expr]] = frozenset()

    def __init__(self, ready: Plan, start: dict[str, str], wanted: list[Expr], orders: int) -> None:
        self.ready, self.start, self.wanted, self.orders = ready, start, wanted, orders
        self.name = {node: str(i) for i, node in enumerate(ready.nodes)}
        self.constants: dict[str, Any] = {"reciprocals": [Fraction(1, max(k, 1)) for k in range(orders)]}
        self.loops: list[str] = []
        self.forms = self._gathered_forms()
        self.within = {n for form in self.forms.values() for n in form.within}
        self.early = self._early()
        self.lowest = self._lowest()
        self.reversed_products = self._reversed_products()
        self.row = {node: i for i, node in enumerate(dict.fromkeys([*wanted, *self._operands()]))}

    # the sums and their order

    def _is_sum(self, node: Expr) -> bool:
        """Whether a coefficient needs lower ones of other nodes (a product, a quotient, a function)."""
        if node not in self.ready.moving or node in self.ready.rates_of or node in self.within:
            return False
        if node in self.forms or node.op in FUNCTIONS or node.op == "whole_power":
            return True
        return self._is_product(node) or (node.op == "div" and node.args[1] in self.ready.moving)

    def _early(self) -> set[Expr]:
        """Nodes known before the sums of an order: states, and nodes linear in them."""
        early: set[Expr] = set()
        for node in self.ready.nodes:
            moving = [a for a in node.args if isinstance(a, Expr) and a in self.ready.moving]
            linear = node.op in OPERATORS and not self._is_sum(node) and all(a in early for a in moving)
            if node in self.ready.moving and (node in self.ready.rates_of or node.op == "symbol" or linear):
                early.add(node)
        return early

    def _lowest(self) -> dict[Expr, int]:
        """For each node, an order below which all its coefficients are zero."""
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
                lowest[node] = self.orders
        return lowest

    def _range(self, node: Expr) -> tuple[int, int]:
        """Number of zero terms at the beginning and at the end of a sum of products."""
        if node.op not in ("mul", "add", "sub"):
            return 0, 0
        pairs = [(self.lowest[a], self.lowest[b]) for _, a, b in self._factors(node)]
        return min(a for a, _ in pairs), min(b for _, b in pairs)

    def _is_product(self, node: Expr) -> bool:
        return node.op == "mul" and all(a in self.ready.moving for a in node.args)

    def _gathered_forms(self) -> dict[Expr, _Form]:
        """Find sums and differences with products that no other node needs."""
        found: dict[Expr, _Form] = {}
        taken: set[Expr] = set()
        uses = self._uses()
        for node in reversed(self.ready.nodes):
            if node.op in ("add", "sub") and node in self.ready.moving and node not in taken:
                form = _Form()
                self._gather(node, 1, form, uses)
                if form.products:
                    found[node] = form
                    taken |= form.within
        return found

    def _uses(self) -> collections.Counter[Expr]:
        """Number of uses of every node."""
        ready = self.ready
        asked = [
            *ready.rates_of.values(),
            *self.wanted,
            *(x for pairs in ready.slopes.values() for p in pairs for x in p),
        ]
        return collections.Counter([*asked, *(a for node in ready.nodes for a in node.args if isinstance(a, Expr))])

    def _gather(self, node: Expr, sign: int, form: _Form, uses: collections.Counter[Expr]) -> None:
        """Put the arguments of a sum or difference into a form."""
        for arg, s in zip(node.args, (sign, -sign if node.op == "sub" else sign), strict=True):
            if uses[arg] > 1 or not (self._is_product(arg) or arg.op in ("add", "sub")) or arg in self.ready.rates_of:
                form.rest.append((s, arg))
                continue
            inner = _Form()
            if self._is_product(arg):
                inner.products.append((s, *arg.args))
            else:
                self._gather(arg, s, inner, uses)
            if inner.products:
                form.take(inner, arg)
            else:
                form.rest.append((s, arg))

    def _factors(self, node: Expr) -> list[tuple[str, Expr, Expr]]:
        """The sum of a node: (weight, a, b) for weight a_j b_(k-j), 0 <= j <= k."""
        if node in self.forms:
            return [("" if sign > 0 else "-", *self._in_order(a, b)) for sign, a, b in self.forms[node].products]
        if node.op == "mul":
            return [("", *self._in_order(node.args[0], node.args[1]))]
        if node.op == "div":
            return [("", node.args[1], node)]
        if node.op == "whole_power":
            return [(f"({node.args[1] + 1} * j - k) * ", node.args[0], node)]
        return [("j * ", x, s) for x, s in self.ready.slopes[node]]

    def _in_order(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        return (b, a) if (a, b) in self.reversed_products else (a, b)

    def _reversed_products(self) -> frozenset[tuple[Expr, Expr]]:
        """Choose the products to be written as b_j a_(k-j), so that sums share the numbers they read."""
        sums = [node for node in self.ready.nodes if self._is_sum(node) and node.op in ("mul", "add", "sub")]
        pairs = list(dict.fromkeys((a, b) for node in sums for _, a, b in self._factors(node)))

        def reads(turned: frozenset[tuple[Expr, Expr]]) -> int:
            sides = [(b, a) if (a, b) in turned else (a, b) for a, b in pairs]
            return len({(x, side) for pair in sides for side, made in enumerate(pair) for x in self._read_for(made)})

        turned = frozenset[tuple[Expr, Expr]]()
        for a, b in (*pairs, *pairs):
            if self.lowest[a] == self.lowest[b]:
                turned = min(turned, turned ^ {(a, b)}, key=reads)
        return turned

    def _read_for(self, node: Expr) -> tuple[Expr, ...]:
        """Nodes read from memory for a factor."""
        return node.args if self._is_made(node) else (node,)

    def _operands(self) -> list[Expr]:
        sums = [node for node in self.ready.nodes if self._is_sum(node)]
        factors = [x for node in sums for _, a, b in self._factors(node) for x in (a, b) if x in self.ready.moving]
        return [y for x in factors for y in self._read_for(x)]

    def _is_made(self, node: Expr) -> bool:
        """Whether this is a sum or difference of two states; it is recomputed at each use, because adding is free."""
        return node.op in ("add", "sub") and all(a in self.ready.rates_of for a in node.args)

    # lines

    def series(self, parameters: str) -> Series:
        """Write both kernels."""
        lines = [*self._start(), *self._first_order(), *self._orders("1")]
        text = "".join([*self.loops, defined(f"fill({parameters}, unit, work, order)", lines)])
        start, self.single_precision, self.loops = self._start(), True, []
        lines = [*start, *self._narrowed(), *self._orders("first - 1")]
        more = "".join([*self.loops, defined(f"extend({parameters}, unit, work, first, workspace32, order)", lines)])
        rows = tuple(self.row[node] for node in self.wanted)
        terms = sum(len(self._factors(node)) for node in self.ready.nodes if self._is_sum(node))
        return Series(text, more, self.constants, rows, len(self.row), self.size, terms)

    @property
    def size(self) -> int:
        """Numbers in the workspace."""
        return len(self.row) * self.orders

    def _orders(self, first: str) -> list[str]:
        """Write the coefficients from order `first` on; those of the states are known at that order."""
        of_order = [self._offset("at", "k"), *self._states("at"), *self._next_order()]
        lines = [f"for k in range({first}, order):", *indented(of_order)]
        lines += [self._offset("at_order", "order"), *self._states("at_order")]
        for node in self.wanted:
            if node not in self.ready.moving:
                zero = [self._offset("at", "k"), f"{self._place(node, 'at')} = {self._zero}"]
                lines += [f"for k in range({first}, order + 1):", *indented(zero)]
        return lines

    def _offset(self, at: str, k: str) -> str:
        """Line that names the index of the first coefficient of order k: numba takes time for every operation."""
        return f"{at} = {len(self.row)} * {k}"

    def _place(self, node: Expr, at: str) -> str:
        """Source of a coefficient, given the name of its offset; 0 for those of order 0."""
        index = str(self.row[node]) if at == "0" else f"{self.row[node]} + {at}" if self.row[node] else at
        return f"{self._room}[{index}]"

    def _value(self, node: Expr, prefix: str) -> str:
        """Local name of a number: z a coefficient of order 0, v its inverse, x one of order k, s a sum."""
        return f"{prefix}{self.name[node]}{'n' * self.single_precision}"

    @property
    def _room(self) -> str:
        return "workspace32" if self.single_precision else "work"

    @property
    def _zero(self) -> str:
        return "zeron" if self.single_precision else "zero"

    @property
    def _unit(self) -> str:
        return "unitn" if self.single_precision else "unit"

    def _start(self) -> list[str]:
        """Write the coefficients of order 0 as local names."""
        lines = []
        for node in self.ready.nodes:
            if node.op in ("const", "named"):
                self.constants[self._value(node, "z")] = node.args[0]
                continue
            args = [self._value(a, "z") if isinstance(a, Expr) else a for a in node.args]
            text = _power_text(args[0], args[1]) if node.op == "whole_power" else _text(node.op, args, self.start)
            lines.append(f"{self._value(node, 'z')} = {text}")
        lines += [f"zero = {NOTHING}", "one = zero + 1"]
        return lines + [f"{self._value(n, 'v')} = one / {self._value(n, 'z')}" for n in self._divisors()]

    def _first_order(self) -> list[str]:
        """Store the coefficients of order 0, and compute order 1 of the states."""
        lines = [f"{self._place(node, '0')} = zero + {self._value(node, 'z')}" for node in self.row]
        rates = self.ready.rates_of.items()
        return lines + [f"{self._value(s, 'x')} = {self._value(r, 'z')} * unit" for s, r in rates]

    def _narrowed(self) -> list[str]:
        """Convert the known coefficients to single precision."""
        lines = ["zeron = to_float32(zero)", "onen = to_float32(one)", "unitn = to_float32(unit)"]
        for node in self.ready.nodes:
            name = f"z{self.name[node]}"
            if node.op in ("const", "named"):
                self.constants[f"{name}n"] = node.args[0]
            else:
                lines.append(f"{name}n = {name}" if node.op in LOGIC else f"{name}n = to_float32({name})")
        lines += [f"v{self.name[n]}n = to_float32(v{self.name[n]})" for n in self._divisors()]
        lines += [f"for i in range({len(self.row)} * first):", "    workspace32[i] = to_float32(work[i])"]
        lines += [self._offset("at_first", "(first - 1)")]
        return lines + [f"{self._value(s, 'x')} = {self._place(s, 'at_first')}" for s in self.ready.rates_of]

    def _states(self, at: str) -> list[str]:
        states = [node for node in self.ready.rates_of if node in self.row]
        return [f"{self._place(node, at)} = {self._value(node, 'x')}" for node in states]

    def _next_order(self) -> list[str]:
        here = [n for n in self.ready.nodes if n in self.ready.moving - self.within and n.op not in LOGIC]
        here = [n for n in here if n not in self.ready.rates_of]
        early, late = ([n for n in here if (n in self.early) == known] for known in (True, False))
        lines = ["over = reciprocals[k]", *self._coefficients(early)]
        lines += [f"{self._place(node, 'at')} = {self._zero}" for node in late if node in self.row]
        sums = self._loops([n for n in late if self._is_sum(n)])
        return [*lines, *sums, *self._coefficients(late), *self._rates()]

    def _rates(self) -> list[str]:
        """Write the next coefficients of the states."""
        lines = [f"ahead = reciprocals[k + 1] * {self._unit}"]
        return lines + [f"{self._value(s, 'x')} = {self._ahead(r)}" for s, r in self.ready.rates_of.items()]

    def _ahead(self, rate: Expr) -> str:
        """Next coefficient of a state; a constant factor of its rate, such as 1/2, is applied only here."""
        if rate.op == "mul" and rate.args[0].op == "const" and rate in self.ready.moving:
            return f"{self._later(rate.args[1])} * (ahead * {self._value(rate.args[0], 'z')})"
        return f"{self._later(rate)} * ahead"

    def _coefficients(self, nodes: list[Expr]) -> list[str]:
        lines = []
        for node in nodes:
            lines.append(f"{self._value(node, 'x')} = {self._coefficient(node)}")
            if node in self.row:
                lines.append(f"{self._place(node, 'at')} = {self._value(node, 'x')}")
        return lines

    def _loops(self, sums: list[Expr]) -> list[str]:
        """Write the sums, as many in a loop as the registers hold."""
        lines = []
        for first, last in dict.fromkeys(map(self._range, sums)):
            alike = [node for node in sums if self._range(node) == (first, last)]
            for some in (alike[i : i + TOGETHER] for i in range(0, len(alike), TOGETHER)):
                lines.append(self._function(some, self._loop(some, first, last)))
        return lines

    def _function(self, sums: list[Expr], lines: list[str]) -> str:
        """Write a loop as a function, which SIMD lanes pass by halves, and return the line that calls it."""
        head = f"sums{len(self.loops)}({self._room}, k)"
        names = "".join(f"{self._value(node, 's')}, " for node in sums)
        self.loops.append(defined(head, [*lines, f"return {names}"]))
        return f"{names}= {head}"

    def _loop(self, sums: list[Expr], first: int, last: int) -> list[str]:
        """Write a loop for some sums, without the `first` terms at their beginning and the `last` at their end."""
        zeros = [f"{self._value(node, 's')} = 0 * {self._room}[0]" for node in sums]
        offsets = [self._offset("at_j", "j"), self._offset("at_i", "(k - j)")]
        return [*zeros, f"for j in range({first}, k + {1 - last}):", *indented([*offsets, *map(self._added, sums)])]

    def _added(self, node: Expr) -> str:
        total, terms = self._value(node, "s"), [self._term(*factors) for factors in self._factors(node)]
        return f"{total} = {total} + ({joined(terms)})"

    def _term(self, weight: str, a: Expr, b: Expr) -> str:
        return f"{weight}{self._read(a, 'at_j')} * {self._read(b, 'at_i')}"

    def _read(self, node: Expr, at: str) -> str:
        """Source of a coefficient in a sum."""
        return self._factor(node, lambda x: self._place(x, at))

    def _factor(self, node: Expr, text: Callable[[Expr], str]) -> str:
        """Source of a factor of a product, given the source that reads each node."""
        if not self._is_made(node):
            return text(node)
        a, b = map(text, node.args)
        return f"({a} {'+' if node.op == 'add' else '-'} {b})"

    def _divisors(self) -> list[Expr]:
        """Nodes that higher orders divide by."""
        moving = [node for node in self.ready.nodes if node in self.ready.moving]
        found = [n.args[1] for n in moving if n.op == "div"] + [n.args[0] for n in moving if n.op == "whole_power"]
        return list(dict.fromkeys(found))

    def _later(self, node: Expr) -> str:
        """Source of a coefficient of order k > 0."""
        return self._value(node, "x") if node in self.ready.moving else self._zero

    def _is_left_out(self, node: Expr) -> bool:
        """Whether the loops do without the k-th coefficient."""
        return node not in self.early

    def _end(self, sign: int, a: Expr, b: Expr) -> list[str]:
        """Terms of a product that the loop left out."""
        z, x = (lambda n: self._value(n, "z")), self._later
        ends = [f"{x(p)} * {z(q)}" for p, q in ((a, b), (b, a)) if self._is_left_out(p)]
        return [f"-{end}" if sign < 0 else end for end in ends]

    def _coefficient(self, node: Expr) -> str:
        z, x = (lambda n: self._value(n, "z")), self._later
        total = self._value(node, "s")
        if node.op == "symbol":
            return f"where(k == 1, {self._zero} + {self._unit}, {self._zero})"
        if node.op == "where":
            return f"where({z(node.args[0])}, {x(node.args[1])}, {x(node.args[2])})"
        if node.op in FUNCTIONS:
            late = [f"{x(a)} * {z(s)}" for a, s in self.ready.slopes[node] if self._is_left_out(a)]
            return joined([f"{total} * over", *late])
        if node in self.forms:
            form = self.forms[node]
            ends = [end for product in form.products for end in self._end(*product)]
            rest = [f"-{x(n)}" if s < 0 else x(n) for s, n in form.rest if n in self.ready.moving]
            return joined([total, *ends, *rest])
        a, b = node.args
        if node.op == "whole_power":
            late = [f"{b} * {x(a)} * {z(node)}"] if self._is_left_out(a) else []
            return f"({joined([f'{total} * over', *late])}) * {self._value(a, 'v')}"
        if node.op in ("add", "sub"):
            still = [n not in self.ready.moving for n in (a, b)]
            sign = "-" if node.op == "sub" else ""
            return x(a) if still[1] else f"{sign}{x(b)}" if still[0] else f"{x(a)} {sign or '+'} {x(b)}"
        if node.op == "mul" and self._is_sum(node):
            return joined([total, *self._end(1, a, b)])
        if node.op == "mul":
            return f"{x(a)} * {z(b)}" if a in self.ready.moving else f"{z(a)} * {x(b)}"
        if self._is_sum(node):
            late = [f"-{x(b)} * {z(node)}"] if self._is_left_out(b) else []
            return f"({joined([x(a), f'-{total}', *late])}) * {self._value(b, 'v')}"
        return f"{x(a)} * {self._value(b, 'v')}"


def indented(lines: Iterable[str]) -> list[str]:
    """Indent lines by one level."""
    return [f"    {line}" for line in lines]


def defined(head: str, lines: list[str]) -> str:
    """Source of a function, without assignments to names that are never read."""
    return f"def {head}:\n" + "".join(f"{line}\n" for line in indented(_used(lines)))


_ASSIGNMENT, _NAME = re.compile(r" *(\w+) = (.*)"), re.compile(r"[A-Za-z_]\w*")


def _used(lines: list[str]) -> list[str]:
    """Leave out assignments to names that no line reads; LLVM would too, but numba compiles every line first."""
    parts = [match.groups() if (match := _ASSIGNMENT.fullmatch(line)) else ("", line) for line in lines]
    read = {name for _, text in parts for name in _NAME.findall(text)}
    kept = [line for line, (target, _) in zip(lines, parts, strict=True) if not target or target in read]
    return kept if len(kept) == len(lines) else _used(kept)


def joined(terms: list[str]) -> str:
    """Source of a sum, whose terms may begin with a minus."""
    return " + ".join(terms).replace("+ -", "- ")


def _power_text(x: str, n: Any) -> str:
    """Source of x^n, n < 0, by repeated squaring."""

    def positive(n: int) -> str:
        if n == 1:
            return x
        half = positive(n // 2)
        return f"({half} * {half} * {x})" if n % 2 else f"({half} * {half})"

    return f"1 / {positive(-n)}"
