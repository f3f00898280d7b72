"""Butcher tableaus with exact coefficients."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...numbers.exact import exact, surd


def filled(entries: Mapping[int, str], stages: int) -> tuple[Fraction, ...]:
    """Return a row of a tableau from its entries that are not zero, counted from 1."""
    return tuple(Fraction(entries.get(j, "0")) for j in range(1, stages + 1))


@dataclasses.dataclass(frozen=True)
class Tableau:
    """A Runge-Kutta method: a (s x s), b (s), c (s, by default the row sums of a).

    Entries may be integers, fractions, strings such as ``"1/3"`` or ``"0.1"``, `Surd` numbers, or floats
    (which are then exact binary fractions). `order` and `symmetric` are properties of the Munthe-Kaas
    method on SO(3) with this tableau; if omitted, they are declared unproven.

    Examples
    --------
    >>> heun = ph.Tableau([[0, 0], [1, 0]], ["1/2", "1/2"], name="heun of mine", order=2)
    >>> ph.mkrk(heun).order
    2
    """

    name: str
    a: tuple[tuple[Any, ...], ...]
    b: tuple[Any, ...]
    c: tuple[Any, ...]
    order: int | None = None
    symmetric: bool | None = None

    def __init__(
        self,
        a: Iterable[Iterable[Any]],
        b: Iterable[Any],
        c: Iterable[Any] | None = None,
        *,
        name: str = "tableau",
        order: int | None = None,
        symmetric: bool | None = None,
    ) -> None:
        rows = tuple(_numbers("a row of a", row) for row in _sequence("a", a))
        weights = _numbers("b", b)
        stages = len(weights)
        if stages == 0 or len(rows) != stages or any(len(row) != stages for row in rows):
            shape = f"{len(rows)} rows of {sorted({len(r) for r in rows})} entries and {stages} weights"
            raise InputError(f"a tableau needs a square matrix a and as many weights b; got {shape}")
        sums = tuple(_total(row) for row in rows)
        nodes = sums if c is None else _numbers("c", c)
        if len(nodes) != stages:
            raise InputError(f"a tableau with {stages} stages needs {stages} nodes c; got {len(nodes)}")
        _check_declared(name, order, symmetric)
        for field, value in zip(("name", "a", "b", "c", "order", "symmetric"),
                                (name, rows, weights, nodes, order, symmetric), strict=True):  # fmt: skip
            object.__setattr__(self, field, value)

    def blocks(self) -> list[tuple[int, ...]]:
        """Return the groups of stages that must be solved together, in order.

        A single stage with zero diagonal is explicit.
        """
        found, start = [], 0
        while start < len(self.b):
            end = start
            k = start
            while k <= end:
                used = [j for j, x in enumerate(self.a[k]) if x != 0]
                end = max([end, *used])
                k += 1
            found.append(tuple(range(start, end + 1)))
            start = end + 1
        return found

    @property
    def ends(self) -> set[str]:
        """Ends of the step at which a stage lies: the start if a row is zero, the end if a row is b."""
        start = {"start"} if any(all(x == 0 for x in row) for row in self.a) else set()
        return start | ({"end"} if self.b in self.a else set())

    def is_explicit(self, block: Sequence[int]) -> bool:
        """Whether this block needs no solve."""
        return len(block) == 1 and self.a[block[0]][block[0]] == 0


def _sequence(name: str, value: Any) -> list[Any]:
    if isinstance(value, str | bytes | dict | set) or not hasattr(value, "__iter__"):
        raise InputError(f"{name} of a tableau must be a sequence; got {value!r}")
    try:
        return list(value)
    except TypeError:  # an array without dimensions
        raise InputError(f"{name} of a tableau must be a sequence; got {value!r}") from None


def _numbers(name: str, value: Any) -> tuple[Any, ...]:
    entries = (x.item() if getattr(x, "ndim", 1) == 0 else x for x in _sequence(name, value))
    return tuple(exact(x, "an entry of a tableau") for x in entries)


def _check_declared(name: Any, order: Any, symmetric: Any) -> None:
    if not isinstance(name, str):
        raise InputError(f"the name of a tableau must be a string; got {name!r}")
    if order is not None and (isinstance(order, bool) or not isinstance(order, int) or order < 1):
        raise InputError(f"the order of a tableau must be a whole number of at least 1, or None; got {order!r}")
    if symmetric is not None and not isinstance(symmetric, bool):
        raise InputError(f"symmetric must be True, False or None; got {symmetric!r}")


def _total(row: Sequence[Any]) -> Any:
    total: Any = row[0]
    for x in row[1:]:
        total = total + x
    return total


_ALL = (
    Tableau([[0]], [1], name="euler", order=1, symmetric=False),
    Tableau([[1]], [1], name="backward_euler", order=1, symmetric=False),
    Tableau([[0, 0], ["1/2", 0]], [0, 1], name="explicit_midpoint", order=2, symmetric=False),
    Tableau([["1/2"]], [1], name="midpoint", order=2, symmetric=True),
    Tableau([[0, 0], [1, 0]], ["1/2", "1/2"], name="heun", order=2, symmetric=False),
    Tableau([[0, 0], ["1/2", "1/2"]], ["1/2", "1/2"], name="trapezoid", order=2, symmetric=False),
    Tableau([[0, 0, 0], ["1/2", 0, 0], [-1, 2, 0]], ["1/6", "2/3", "1/6"], name="kutta3", order=3, symmetric=False),
    Tableau(
        [[0, 0, 0, 0], ["1/2", 0, 0, 0], [0, "1/2", 0, 0], [0, 0, 1, 0]],
        ["1/6", "1/3", "1/3", "1/6"], name="rk4", order=4, symmetric=False,
    ),
    Tableau(
        [["1/4", surd("1/4", "-1/6", 3)], [surd("1/4", "1/6", 3), "1/4"]],
        ["1/2", "1/2"], name="gauss2", order=4, symmetric=False,
    ),
    Tableau(
        [
            ["5/36", surd("2/9", "-1/15", 15), surd("5/36", "-1/30", 15)],
            [surd("5/36", "1/24", 15), "2/9", surd("5/36", "-1/24", 15)],
            [surd("5/36", "1/30", 15), surd("2/9", "1/15", 15), "5/36"],
        ],
        ["5/18", "4/9", "5/18"], name="gauss3", order=6, symmetric=False,
    ),
    Tableau([["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"], name="radau2a", order=3, symmetric=False),
    Tableau(
        [
            [surd("11/45", "-7/360", 6), surd("37/225", "-169/1800", 6), surd("-2/225", "1/75", 6)],
            [surd("37/225", "169/1800", 6), surd("11/45", "7/360", 6), surd("-2/225", "-1/75", 6)],
            [surd("4/9", "-1/36", 6), surd("4/9", "1/36", 6), "1/9"],
        ],
        [surd("4/9", "-1/36", 6), surd("4/9", "1/36", 6), "1/9"], name="radau2a3", order=5, symmetric=False,
    ),
    Tableau(
        [[0, 0, 0], ["5/24", "1/3", "-1/24"], ["1/6", "2/3", "1/6"]],
        ["1/6", "2/3", "1/6"], name="lobatto3a", order=4, symmetric=False,
    ),
)  # fmt: skip

tableaus: dict[str, Tableau] = {tableau.name: tableau for tableau in _ALL}
"""The named tableaus."""

DORMAND_PRINCE = Tableau(
    [
        [0, 0, 0, 0, 0, 0],
        ["1/5", 0, 0, 0, 0, 0],
        ["3/40", "9/40", 0, 0, 0, 0],
        ["44/45", "-56/15", "32/9", 0, 0, 0],
        ["19372/6561", "-25360/2187", "64448/6561", "-212/729", 0, 0],
        ["9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656", 0],
    ],
    ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"], name="dormand_prince", order=5, symmetric=False,
)  # fmt: skip
"""Dormand and Prince (1980), without the seventh stage of the pair in methods/adaptive/dormand_prince.py."""


def gauss_rule(nodes: int, number: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Return nodes and weights of the Gauss rule on (0, 1), to the precision of a number type.

    The nodes are (1 + x)/2 with x the roots of Legendre's polynomial P_n, found by Newton's method:
    (k + 1) P_(k+1) = (2k + 1) x P_k - k P_(k-1) and (1 - x^2) P_n' = n (P_(n-1) - x P_n); weights 1/((1 - x^2) P_n'^2).
    """
    found = []
    for i in range(nodes):
        x, slope, error = number(math.cos(math.pi * (4 * (nodes - i) - 1) / (4 * nodes + 2))), number(1), number(1)
        while True:
            before, value = number(1), x
            for k in range(1, nodes):
                before, value = value, ((2 * k + 1) * x * value - k * before) / (k + 1)
            slope = nodes * (before - x * value) / (1 - x * x)
            x, last, error = x - value / slope, error, abs(value / slope)
            if error >= last:  # quadratic convergence has reached round-off
                break
        found.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return found


aliases = {"lobatto3a2": "trapezoid", "lobatto3a3": "lobatto3a", "radau2a2": "radau2a", "implicit_midpoint": "midpoint"}
"""Other names of named tableaus (the number is the number of stages)."""

__all__ = [
    "DORMAND_PRINCE",
    "Tableau",
    "aliases",
    "gauss_rule",
    "tableaus",
]
