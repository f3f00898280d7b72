"""Conditions in a field that depend on time alone: the times at which they change (edges), and the field between two.

A thruster, a table or a user's `ph.where(t < start, ...)` is one smooth formula between two edges. Steps end on every
edge, so no step crosses one. `between` is the field with all such conditions evaluated at one moment, the middle of
the interval: rounding at the ends, stages beyond them and `<` or `<=` then make no difference.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._memo import KEPT
from ...numbers import arrays, floats  # noqa: F401 - arrays: formulas are evaluated at many times at once
from ...numbers.primitives import epsilon
from ...symbolic.expression import COMPARISONS, Expr, ordered, source, symbol, symbols_in
from ...taylor.graph import substituted
from .derived import DerivedField
from .field import Field
from .kernels import formula_kernel
from .states import places
from .trace import of_formula, once_for_formula

SAMPLES = 2**15
"""Times at which a condition is sampled if its edges have no formula."""

MOST_LINES = 1024
"""Most linear functions of time that one side of a condition may select from."""

HALVINGS = 64


def _depends(nodes: Iterable[Expr], letters: str) -> set[Expr]:
    """The nodes that depend on symbols with these first letters; `nodes` must list arguments before their users."""
    dependent: set[Expr] = set()
    for node in nodes:
        own = node.op == "symbol" and node.args[0][0] in letters
        if own or any(a in dependent for a in node.args if isinstance(a, Expr)):
            dependent.add(node)
    return dependent


def _switches(outputs: Sequence[Expr]) -> list[Expr]:
    """Comparisons and table look-ups that depend on t and not on the state."""
    nodes = ordered(outputs)
    timed, moving = _depends(nodes, "t"), _depends(nodes, "Rwm")
    return [n for n in nodes if n.op in (*COMPARISONS, "bracket") and n in timed and n not in moving]


class PiecewiseField(DerivedField):
    """A field between two of its edges; the last parameter, added here, is a time between them."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of the field, then the moment (0 until a run sets it)."""
        return (*self.whole.parameters, 0.0)

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The torque with its time conditions evaluated at the moment."""
        force, U = self.whole.graph
        a, b, c = self._held(force)
        return (a, b, c), U

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """Torque and rates of the states, with their time conditions evaluated at the moment."""
        held = self._held(_with_moving_states(self.whole))
        back = {f"m{i}": symbol(f"p{i}") for i in places(self.whole)}
        torque_and_rates = tuple(substituted(held, back))
        return torque_and_rates[:3], torque_and_rates[3:]

    @of_formula
    def written(self) -> Any:
        """The same torque in the user's frame."""
        return tuple(self._held(self.whole.written))

    def _held(self, formulas: Sequence[Expr]) -> list[Expr]:
        formulas = substituted(formulas, {})
        switches = _switches(formulas)
        moment = symbol(f"p{len(self.whole.parameters)}")
        new = dict(zip(switches, substituted(switches, {"t": moment}), strict=True))
        for node in ordered(formulas):
            if node not in new:
                new[node] = _rebuilt(node, new)
        return [new[node] for node in formulas]


def _rebuilt(node: Expr, new: dict[Expr, Expr]) -> Expr:
    args = [new[a] if isinstance(a, Expr) else a for a in node.args]
    return node if all(a is b for a, b in zip(args, node.args, strict=True)) else Expr.make(node.op, *args)


@functools.lru_cache(maxsize=KEPT)
def between(field: Field | None) -> Field | None:
    """The field between its edges; the field itself if no condition depends on time alone. Memoised."""
    if field is None:
        return None
    return PiecewiseField(field) if switches_of(field) else field


@once_for_formula
def switches_of(field: Field) -> list[Expr]:
    """Comparisons and table look-ups of the torque, and of the rates of its states, that depend on time alone."""
    return _switches(_with_moving_states(field))


@once_for_formula
def switch_parameters(field: Field) -> frozenset[int]:
    """Places of the parameters on which the edges of a field depend."""
    return frozenset(int(name[1:]) for name in symbols_in(switches_of(field)) if name[0] == "p")


def _with_moving_states(field: Field) -> list[Expr]:
    """Torque and rates of the states, with symbols m in place of the parameters that are states: they move."""
    torque, rates = field.coupled
    return list(substituted([*torque, *rates], {f"p{i}": symbol(f"m{i}") for i in places(field)}))


def edges(field: Field | None, start: float, end: float) -> np.ndarray:
    """Times inside (start, end) at which a condition of time alone may change, in order.

    The edge of a comparison of linear functions of t is its root; the edges of a table are its knots. Any other
    condition is sampled at many times, and each change is bracketed to two neighbouring doubles.
    """
    switches = [] if field is None else switches_of(field)
    if field is None or not switches:
        return np.empty(0)
    nodes = ordered(switches)
    timed = _depends(nodes, "t")
    plain = [n for n in nodes if n not in timed and not (n.op == "const" and isinstance(n.args[0], tuple))]
    known = dict(zip(plain, _evaluated(field, plain, start), strict=True))
    pieces, unknown = [np.empty(0)], []
    for node in switches:
        roots = _roots(node, known, timed)
        if roots is None:
            unknown.append(node)
        else:
            pieces.append(roots)
    if unknown:
        pieces.append(_changes(field, unknown, start, end))
    times = np.unique(np.concatenate(pieces))
    return times[(times > start) & (times < end)]


def sharpened(field: Field | None, edge: float, number: Callable[[Any], Any]) -> Any:
    """An edge, known to a rounding error of doubles, in all digits of a number type: by bisection around it."""
    middle, before = number(edge), number(math.nextafter(edge, -math.inf))
    after = number(math.nextafter(edge, math.inf))
    low, high = before - 4 * (middle - before), after + 4 * (after - middle)
    if field is None:
        return middle
    switches = switches_of(field)

    def outcome(t: Any) -> tuple[Any, ...]:
        return tuple(_evaluated(field, switches, t, number))

    first, smallest = outcome(low), abs(high) * epsilon(high)
    if outcome(high) == first:
        return middle
    while high - low > smallest:
        middle = low + (high - low) / 2
        low, high = (middle, high) if outcome(middle) == first else (low, middle)
    return high


def _evaluated(field: Field, nodes: Sequence[Expr], t: Any, number: Callable[[Any], Any] = floats.number) -> Any:
    """Values of nodes of t and parameters."""
    if not nodes:
        return ()
    text = source("switch_values", "t, p", field.unpack, list(nodes))
    with np.errstate(all="ignore"):
        return formula_kernel(text, number)(t, tuple(map(number, field.parameters)))


def _roots(node: Expr, known: dict[Expr, Any], timed: set[Expr]) -> np.ndarray | None:
    """The times at which a condition may change; None if its sides are not linear in t."""
    book: dict[Expr, set[tuple[float, float]] | None] = {}
    for x in ordered(a for a in node.args if isinstance(a, Expr)):
        book[x] = _lines(x, book, known, timed)
    first = book[node.args[0]]
    if node.op == "bracket":
        if first is None:
            return None
        knots = np.array(node.args[1].args[0] if node.args[1].op == "const" else known[node.args[1]], dtype=float)
        return np.concatenate([np.empty(0), *((knots - b) / a for a, b in first if a != 0)])
    lines = _combined(first, book[node.args[1]], -1)
    return None if lines is None else np.array([-b / a for a, b in lines if a != 0])


def _lines(
    node: Expr, book: dict[Expr, set[tuple[float, float]] | None], known: dict[Expr, Any], timed: set[Expr]
) -> set[tuple[float, float]] | None:
    """(slope, offset) of all linear functions of t that a node may equal, for any outcome of its own conditions."""
    if node not in timed:
        value = known.get(node)
        return {(0.0, float(value))} if isinstance(value, int | float) else None
    if node.op == "symbol":
        return {(1.0, 0.0)}
    if node.op in ("add", "sub"):
        return _combined(book[node.args[0]], book[node.args[1]], 1 if node.op == "add" else -1)
    if node.op in ("mul", "div"):
        x, y = node.args
        x, y = (y, x) if node.op == "mul" and x not in timed else (x, y)
        factor = known.get(y)
        if y in timed or not isinstance(factor, int | float) or book[x] is None or (node.op == "div" and factor == 0):
            return None
        factor = float(factor) if node.op == "mul" else 1 / float(factor)
        return {(factor * a, factor * b) for a, b in book[x] or ()}
    if node.op == "where":
        yes, no = book[node.args[1]], book[node.args[2]]
        return None if yes is None or no is None or len(yes) + len(no) > MOST_LINES else yes | no
    return None


def _combined(first: Any, second: Any, sign: int) -> set[tuple[float, float]] | None:
    if first is None or second is None or len(first) * len(second) > MOST_LINES:
        return None
    return {(a + sign * c, b + sign * d) for a, b in first for c, d in second}


def _changes(field: Field, nodes: Sequence[Expr], start: float, end: float) -> np.ndarray:
    """Times at which nodes change, by sampling and bisection."""
    grid = np.linspace(start, end, SAMPLES + 1)
    seen = [np.broadcast_to(np.asarray(x), grid.shape) for x in _evaluated(field, nodes, grid)]
    changes = [np.empty(0)]
    for node, values in zip(nodes, seen, strict=True):
        at = np.flatnonzero(values[1:] != values[:-1])
        low, high, before = grid[at], grid[at + 1], values[at]
        for _ in range(HALVINGS * (len(at) > 0)):
            middle = low + (high - low) / 2
            (now,) = _evaluated(field, [node], middle)
            same = now == before
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        changes.append(high)
    return np.concatenate(changes)
