"""Taylor coefficients with half the products, for series whose coefficients are of about the same size.

Two terms of a sum of products take one product, if the products of equal index are known (Karatsuba):

    a_j b_i + a_i b_j = (a_j + a_i)(b_j + b_i) - a_j b_j - a_i b_i,        j + i = k,
    (a b)_k = sum_(j<i) (a_j + a_i)(b_j + b_i) + [k even] 2 a_(k/2) b_(k/2) - sum_(j<=k) a_j b_j,

and the last sum needs one more term in each order. The subtracted sum is as large as the largest a_j b_j, so digits are
lost if coefficients shrink or grow geometrically. In a time unit near the radius of convergence they do neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..symbolic.expression import Expr
from .writer import TOGETHER, Writer, indented, joined


class PairedWriter(Writer):
    """Writer of the same kernels with sums over pairs; factors not known before the sums keep ordinary sums."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        pairs = [node for node in self.ready.nodes if self._has_known_factors(node)]
        self.squares = {node: super(PairedWriter, self).size + i for i, node in enumerate(pairs)}
        """Index in the workspace of minus the sum of a_j b_j, for every paired sum."""

    @property
    def size(self) -> int:
        """Numbers in the workspace."""
        return super().size + len(self.squares)

    def _has_known_factors(self, node: Expr) -> bool:
        """Whether this is a sum of products whose factors are known before the sums of an order."""
        if not self._is_sum(node) or node.op not in ("mul", "add", "sub"):
            return False
        return all(x in self.early and not self.lowest[x] for _, *pair in self._factors(node) for x in pair)

    def _first_order(self) -> list[str]:
        of = {node: self._products(node, lambda x: self._value(x, "z")) for node in self.squares}
        squares = [f"work[{place}] = -({joined(of[node])})" for node, place in self.squares.items()]
        return [*super()._first_order(), *squares]

    def _narrowed(self) -> list[str]:
        """Remove the products of the order before `first` from the sums, because that order is repeated."""

        def known(x: Expr) -> str:
            return self._value(x, "x") if x in self.ready.rates_of else self._place(x, "at_first")

        of = {node: self._products(node, known) for node in self.squares}
        squares = [
            f"workspace32[{at}] = to_float32(work[{at}]) + ({joined(of[node])})" for node, at in self.squares.items()
        ]
        return [*super()._narrowed(), *squares]

    def _loops(self, sums: list[Expr]) -> list[str]:
        pairs = [node for node in sums if node in self.squares]
        groups = [pairs[i : i + TOGETHER] for i in range(0, len(pairs), TOGETHER)]
        lines = [self._function(some, self._paired_loop(some)) for some in groups]
        return lines + super()._loops([node for node in sums if node not in self.squares])

    def _paired_loop(self, sums: list[Expr]) -> list[str]:
        """Write the products of index k, also added to the sums of squares, then of index k/2, then of the pairs."""
        factors = [x for node in sums for _, *pair in self._factors(node) for x in pair]
        rows = {x: self.row[x] for factor in factors for x in self._read_for(factor)}
        total = {node: self._value(node, "s") for node in sums}

        def read(name: str, text: Callable[[Expr], str]) -> list[str]:
            return [f"{name}{row} = {text(x)}" for x, row in rows.items()]

        def added(start: str, node: Expr, name: str, sign: str = "", factor: str = "") -> str:
            """Add the products one by one, so that each is fused with its sum."""
            terms = self._products(node, lambda x: f"{name}{rows[x]}", factor)
            text = joined([start, *(sign + x for x in terms)]).replace("- -", "+ ")
            return f"{total[node]} = {text}"

        lines = [self._offset("at", "k"), *read("c", lambda x: self._place(x, "at"))]
        for node, name in total.items():
            place = f"{self._room}[{self.squares[node]}]"
            lines += [added(place, node, "c", "-"), f"{place} = {name}"]
        half = [self._offset("at_half", "(k // 2)"), *read("h", lambda x: self._place(x, "at_half"))]
        half += [added(total[node], node, "h", "", "2 * ") for node in sums]
        lines += ["if k % 2 == 0:", *indented(half)]
        pair = [self._offset("at_j", "j"), self._offset("at_i", "(k - j)")]
        pair += read("r", lambda x: f"{self._place(x, 'at_j')} + {self._place(x, 'at_i')}")
        pair += [added(total[node], node, "r") for node in sums]
        return [*lines, "for j in range((k + 1) // 2):", *indented(pair)]

    def _products(self, node: Expr, text: Callable[[Expr], str], factor: str = "") -> list[str]:
        """Source of the products of a sum, given the source that reads each node."""
        return [
            f"{sign}{factor}{self._factor(a, text)} * {self._factor(b, text)}" for sign, a, b in self._factors(node)
        ]
