"""Taylor coefficients of one body with vector instructions: several sums of products at once.

The sums over products a_j b_(k-j) of an order are lanes of vectors,

    s = sum_(0<j<k) l_j r_(k-j),

where l_j and r_j hold the j-th coefficients of all first and all second factors. They are written once per order, so
that the loop reads whole vectors. The terms of j = 0 and j = k are added one by one: the loop needs only lower orders,
and the processor begins it while the coefficients of order k are being computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..numbers.primitives import FUNCTIONS
from ..symbolic.expression import Expr
from .graph import LOGIC
from .writer import Series, Writer, defined, indented, joined

WIDTH = 8
"""Numbers in a vector."""

TOGETHER = 16
"""Sums in one loop: two vectors hide the latency of their additions."""

Factor = tuple[bool, Expr]
"""A factor of the products: whether its j-th coefficient is multiplied by j, and its node."""


def _padded(items: list[Any]) -> list[Any]:
    return items + [None] * (-len(items) % WIDTH)


class PackedWriter(Writer):
    """Writer of the first kernel alone, with vectors of sums; for doubles."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        sums = [node for node in self.ready.nodes if self._is_sum(node)]
        products = list(dict.fromkeys(product for node in sums for _, product in self._terms(node)))
        self.lane = {product: i for i, product in enumerate(products)}
        """Lane of each sum of products."""
        shown: list[Factor] = [(False, node) for node in dict.fromkeys(self.wanted)]
        parts = [_padded(x) for x in (shown, [a for a, _ in products], [b for _, b in products])]
        self.left, self.right = len(parts[0]), len(parts[0]) + len(parts[1])
        self.places: list[Factor | None] = [x for part in parts for x in part]
        """What is written for an order: the series requested, the first and the second factors."""
        self.row = {node: i for i, (_, node) in enumerate(shown)}

    def _terms(self, node: Expr) -> list[tuple[str, tuple[Factor, Factor]]]:
        """The sum of a node: weights and products."""
        if node.op == "whole_power":
            x, n = node.args
            return [(f"{n + 1} * ", ((True, x), (False, node))), ("-k * ", ((False, x), (False, node)))]
        by_order = node.op in FUNCTIONS
        return [("" if by_order else w, ((by_order, a), (False, b))) for w, a, b in self._factors(node)]

    @property
    def stride(self) -> int:
        """Numbers written for an order."""
        return len(self.places)

    @property
    def size(self) -> int:
        """Numbers in the workspace."""
        return self.spare + self.right - self.left

    @property
    def spare(self) -> int:
        """Place of sums that are made for the next order."""
        return self.stride * self.orders

    def series(self, parameters: str) -> Series:
        """Write the kernel."""
        rates = [f"{self._value(s, 'x')} = {self._value(r, 'z')} * unit" for s, r in self.ready.rates_of.items()]
        lines = [*self._start(), *rates, "for k in range(1, order):", *indented(self._next_order())]
        lines.append(self._stored("order", [(False, node) for node in self.row]))
        text = defined(f"fill({parameters}, unit, work, order)", lines)
        rows = tuple(self.row[node] for node in self.wanted)
        return Series(text, "", self.constants, rows, self.stride, self.size, len(self.lane))

    def _is_left_out(self, node: Expr) -> bool:
        return True

    def _next_order(self) -> list[str]:
        here = self.ready.moving - self.within - self.ready.rates_of.keys()
        nodes = [node for node in self.ready.nodes if node in here and node.op not in LOGIC]
        lines = [*self._sums(), "over = reciprocals[k]", *self._coefficients(nodes)]
        return [*lines, self._stored("k", self.places), *self._rates()]

    def _coefficients(self, nodes: list[Expr]) -> list[str]:
        return [f"{self._value(node, 'x')} = {self._coefficient(node)}" for node in nodes]

    def _sums(self) -> list[str]:
        """Write the loops, and the sums of all nodes."""
        lines, count = [], len(self.lane)
        for i in range(0, count, TOGETHER):
            size = min(TOGETHER, count - i)
            names = "".join(f"c{n}, " for n in range(i, i + size))
            places = f"{self.left + i}, {self.right + i}, {self.stride}, k, {size}, {self.spare + i}"
            lines.append(f"{names}= convolved(work, {places})")
        for node in self.ready.nodes:
            if self._is_sum(node):
                terms = [f"{weight}c{self.lane[product]}" for weight, product in self._terms(node)]
                lines.append(f"{self._value(node, 's')} = {joined(terms)}")
        return lines

    def _stored(self, order: str, places: Sequence[Factor | None]) -> str:
        """Line that writes vectors at the beginning of an order."""
        number = {factor: i for i, factor in enumerate(dict.fromkeys(x for x in places if x is not None))}
        numbers = ", ".join(f"k * {self._later(node)}" if by_order else self._later(node) for by_order, node in number)
        text = " ".join("-" if x is None else str(number[x]) for x in _padded(list(places)))
        return f'store(work, {self.stride} * {order}, ({numbers},), "{text}")'
