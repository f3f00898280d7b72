"""Times at which a formula of time may have a pulse too short for samples: where an argument is zero or turns.

A user's pulse is a function such as exp(-u^2), 1/(1 + u^2) or 1/cosh(u) of an argument u = (t - t0)/w. However short it
is, it lies where u is zero, or where another argument of such a function, as cos(t) - 1, is largest or least.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...symbolic.expression import COMPARISONS, Expr, ordered
from .field import Field
from .switches import _depends, _evaluated, _lines, _with_moving_states

SHARP = ("exp", "tanh", "div", "power", "log", "sqrt", "sinh", "cosh", "atan", "atan2")
"""Functions that turn a slow argument into a pulse: quotients by their denominators."""

SAMPLES = 2**13
"""Times at which arguments that are not linear in time are sampled."""

HALVINGS = 64

NEAR = 2.0**-48
"""Distance of two times, relative to that of the run, that is round-off."""

MOST = 512
"""Most times: a formula with more of them varies everywhere on a short scale, and samples show it."""


def moments_of_pulses(field: Field, start: float, end: float) -> np.ndarray:
    """Return the times from `start` to `end` at which a field may have a pulse of any length, in order."""
    if field.opaque:
        return np.empty(0)
    outputs = ordered(_with_moving_states(field))
    moving = _depends(outputs, "Rwm")
    nodes = [node for node in outputs if node not in moving]
    timed = _depends(nodes, "t")
    plain = [n for n in nodes if n not in timed and not (n.op == "const" and isinstance(n.args[0], tuple))]
    known = dict(zip(plain, _evaluated(field, plain, start), strict=True))
    book: dict[Expr, set[tuple[float, float]] | None] = {}
    for node in nodes:
        book[node] = None if node.op in (*COMPARISONS, "bracket") else _lines(node, book, known, timed)
    lines = {line for node in timed for line in book[node] or ()}
    found = [np.array([-b / a for a, b in lines if a != 0])]
    curved = [node for node in _arguments(outputs) if node in timed and book[node] is None]
    if curved:
        found.append(_zeros_and_turns(lambda t: _evaluated(field, curved, t), start, end))
    times = np.unique(np.concatenate(found))
    times = times[(times >= start) & (times <= end)]
    times = times[np.diff(times, prepend=-np.inf) > NEAR * max(abs(start), abs(end))]
    return times if len(times) <= MOST else np.empty(0)


def _arguments(nodes: list[Expr]) -> list[Expr]:
    """Return the arguments of sharp functions."""
    found = [node.args[-1] if node.op == "div" else node.args[0] for node in nodes if node.op in SHARP]
    return list(dict.fromkeys(x for x in found if isinstance(x, Expr)))


def _zeros_and_turns(values: Callable[[np.ndarray], tuple[np.ndarray, ...]], start: float, end: float) -> np.ndarray:
    """Return the zeros and the extrema of some functions of time, by samples, bisection and the golden section."""
    grid, found = np.linspace(start, end, SAMPLES + 1), [np.empty(0)]
    for k, x in enumerate(values(grid)):
        g = np.broadcast_to(np.asarray(x, dtype=float), grid.shape)
        step = np.sign(np.diff(g))
        zero, turn = np.flatnonzero(np.sign(g[1:]) * np.sign(g[:-1]) < 0), np.flatnonzero(step[1:] * step[:-1] < 0)
        if len(zero) + len(turn) > MOST:
            continue

        def value(t: np.ndarray, k: int = k) -> np.ndarray:
            return np.broadcast_to(np.asarray(values(t)[k], dtype=float), t.shape)

        low, high, before = grid[zero], grid[zero + 1], np.sign(g[zero])
        for _ in range(HALVINGS * (len(zero) > 0)):
            middle = low + (high - low) / 2
            same = np.sign(value(middle)) == before
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        found.append(high)
        low, high, sign = grid[turn], grid[turn + 2], step[turn]
        for _ in range(HALVINGS * (len(turn) > 0)):
            one, other = low + (high - low) * 0.382, low + (high - low) * 0.618
            rises = sign * value(one) < sign * value(other)
            low, high = np.where(rises, one, low), np.where(rises, high, other)
        found.append(low + (high - low) / 2)
    return np.concatenate(found)
