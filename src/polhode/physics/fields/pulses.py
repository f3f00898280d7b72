"""Times at which a formula may have a pulse too short for samples, found by interval arithmetic.

The samples of a part of the run may lie between two ends, and interval arithmetic over all its times allow much more:
then a pulse may be hidden there. The part is halved until samples show it. Interval arithmetic alone may be too wide,
but then it allows half as much in half of the part, whereas a pulse keeps its height.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...numbers import arrays, floats  # noqa: F401 - arrays: formulas are evaluated at many times at once
from ...symbolic.enclosures import enclosures
from ...symbolic.expression import COMPARISONS, LOOK_UPS, Expr, ordered, source, symbol
from .field import Field
from .kernels import formula_kernel
from .switches import _depends, between
from .trace import once_for_formula

PARTS = 2**10
"""Parts of the run that are looked at first."""

SAMPLES = 5
"""Samples in each part."""

HIDDEN = 8.0
"""Height that intervals allow, relative to the range of the samples, from which on a pulse may be hidden."""

SHOWN = 1 / (2 * HIDDEN)
"""Range of the samples, relative to the height, from which on they show a pulse."""

FALL = 0.7
"""Height in half of a part, relative to that in the whole, below which there is no pulse: wide intervals give 1/2."""

TOGETHER = 8.0
"""Factor by which a height may be smaller than that: several pulses in one part add up."""

COLLAPSE = 0.2
"""Height in half of a part, relative to the whole, which shows that intervals were far too wide before."""

STEADY = 0.8
"""Height in half of a part, relative to the whole, from which on it is that of a pulse."""

CERTAIN = 8
"""Halvings after which only pulses are left."""

HALVINGS = 40

NOISE = 2.0**-40
"""Height, relative to the value, that is round-off."""

MOST = 2**12
"""Most parts that are looked at at once; of more, some are taken for all."""

FEWEST, WORK = 2**6, 2**16
"""Fewest parts that are looked at at once, and most values of nodes in them: long formulas have fewer parts."""

FEW = 4
"""Parts that show whether there are pulses in very many."""

SMALL = 1 / 64
"""Height, relative to the range of the values over the whole run, below which there is no pulse of its own."""

CLOSE = 4.0
"""Distance of two parts, relative to their lengths, at which they show the same pulse."""

UNRESOLVED = (
    "the torque may have pulses in time that no step resolves, as there are thousands of them, or as they are as short "
    "as the distance of two doubles; write them as conditions on t (ph.where), at whose edges steps end, or make them "
    "longer"
)
"""What is said of pulses that are found, or may be there, but do not shorten the steps."""


class Pulses(NamedTuple):
    """Times of pulses of a torque, and the impulse of others that may be hidden still."""

    moments: np.ndarray
    impulse: float


NONE = Pulses(np.empty(0), 0.0)


class _Parts(NamedTuple):
    """Parts of the run, and the height of what may be hidden in them in every node; zero if nothing is."""

    low: np.ndarray
    high: np.ndarray
    moment: np.ndarray
    """A time between the edges of the field around a part."""
    height: np.ndarray
    least: np.ndarray
    """Heights below which there is no pulse."""


def pulses_of(field: Field, borders: np.ndarray, state: Any) -> Pulses:
    """Return where a field may have pulses of any length, between its edges and at attitude and velocity `state`."""
    held = between(field)
    assert held is not None
    if field.opaque:
        return NONE
    formula = _Formula(held, held is not field, state)
    if not formula.nodes:
        return NONE
    counts = np.maximum(1, np.round(PARTS * np.diff(borders) / (borders[-1] - borders[0])).astype(int))
    ends = [np.linspace(a, b, n + 1) for a, b, n in zip(borders, borders[1:], counts, strict=False)]
    low, high = np.concatenate([x[:-1] for x in ends]), np.concatenate([x[1:] for x in ends])
    moment = np.repeat(borders[:-1] + np.diff(borders) / 2, counts)
    if len(low) <= MOST:
        return _pulses_in(formula, low, high, moment)
    every = slice(
        None, None, math.ceil(len(low) / MOST)
    )  # very many edges: some parts show the ranges in the whole run
    formula.looked(low[every], high[every], moment[every])
    blocks = (slice(i, i + MOST) for i in range(0, len(low), MOST))
    found = [_pulses_in(formula, low[some], high[some], moment[some]) for some in blocks]
    return Pulses(np.concatenate([x.moments for x in found]), math.fsum(x.impulse for x in found))


def _pulses_in(formula: _Formula, low: np.ndarray, high: np.ndarray, moment: np.ndarray) -> Pulses:
    """Return the pulses in some parts of the run."""
    allowed, extent = formula.looked(low, high, moment)
    parts = _hidden(low, high, moment, allowed, extent, allowed / TOGETHER)
    wide = (parts.height > 0).sum(1) > len(low) / 8
    if wide.any():  # thousands of pulses, or intervals that are too wide everywhere: a few parts show which
        few = _Parts(*(x[..., :: math.ceil(len(parts.low) / FEW)] for x in parts))
        *_, left = _searched(formula, few, CERTAIN)
        parts.height[wide & ~(left.height > 0).any(1)] = 0.0
        kept = parts.height.any(0)
        parts = _Parts(*(x[..., kept] for x in parts))
    moments, impulse, _ = _searched(formula, parts, HALVINGS)
    return Pulses(moments, impulse)


def _searched(formula: _Formula, parts: _Parts, halvings: int) -> tuple[np.ndarray, float, _Parts]:
    """Halve parts until samples show the pulses in them: their times, the impulse of the others, the parts left."""
    moments, done, weight, impulse = [np.empty(0)], 0, 1, 0.0
    while len(parts.low) and done < halvings:
        stride = math.ceil(2 * len(parts.low) / max(FEWEST, min(MOST, WORK // len(formula.nodes))))
        parts, weight = _Parts(*(x[..., ::stride] for x in parts)), weight * stride
        middle = parts.low + (parts.high - parts.low) / 2
        low, high = np.concatenate([parts.low, middle]), np.concatenate([middle, parts.high])
        moment, before, least = (np.concatenate([x, x], axis=-1) for x in parts[2:])
        allowed, extent = formula.looked(low, high, moment)
        with np.errstate(all="ignore"):
            shown = np.where((before > 0) & (allowed <= HIDDEN * extent), extent / before, 0.0)
            is_fast = (allowed < COLLAPSE * before) | (allowed > STEADY * before)
            least = np.where(is_fast, allowed / TOGETHER, FALL * least)
        moments.append(_tallest_of_neighbours(low, high, shown.max(0)))
        if weight > 1 and done >= 2 * CERTAIN:  # the others are like these
            impulse += (weight - 1) * _impulse((extent * (shown > SHOWN))[formula.torque], high - low)
        likely = (before > 0) & (allowed >= least) & (np.isfinite(allowed) | (done < CERTAIN))
        allowed = np.where(likely, allowed, 0.0)
        parts, done = _hidden(low, high, moment, allowed, extent, least), done + 1
    if len(parts.low):
        allowed, _ = formula.looked(*parts[:3])
        impulse += weight * _impulse(allowed[formula.torque], parts.high - parts.low)
    return np.unique(np.concatenate(moments)), impulse, parts


def _hidden(
    low: np.ndarray, high: np.ndarray, moment: np.ndarray, allowed: np.ndarray, extent: np.ndarray, least: np.ndarray
) -> _Parts:
    """Return the parts in which a pulse may be hidden."""
    with np.errstate(all="ignore"):
        height = np.where(allowed > HIDDEN * extent, allowed, 0.0)
    kept = height.any(0)
    return _Parts(low[kept], high[kept], moment[kept], height[:, kept], least[:, kept])


def _impulse(heights: np.ndarray, lengths: np.ndarray) -> float:
    """Return the impulse of pulses of some heights (component, part) and lengths."""
    height = heights.max(0, initial=0.0)
    return float((np.where(np.isfinite(height), height, 0.0) * lengths).sum())


def _tallest_of_neighbours(low: np.ndarray, high: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Return the middle of the part of each group of close ones that shows most of a pulse."""
    part = np.flatnonzero(shown > SHOWN)
    if not len(part):
        return np.empty(0)
    part = part[np.argsort(low[part])]
    apart = low[part[1:]] - high[part[:-1]] > CLOSE * (high[part[1:]] - low[part[1:]])
    groups = np.split(part, np.flatnonzero(apart) + 1)
    best = np.array([group[shown[group].argmax()] for group in groups])
    return low[best] + (high[best] - low[best]) / 2


@once_for_formula
def _nodes(field: Field) -> tuple[list[Expr], ...]:
    """Return all components, the nodes that depend on t, those looked at, and the numbers from which they are made."""
    torque, rates = field.coupled
    outputs = [*torque, *rates]
    order = ordered(outputs)
    timed = _depends(order, "t")
    bare = (*COMPARISONS, *LOOK_UPS, "and", "or", "total", "symbol")
    nodes = [n for n in order if n in timed and n.op not in bare]
    used = {a for n in order if n in timed for a in n.args if isinstance(a, Expr)} - timed
    plain = [n for n in used if not (n.op == "const" or (n.op == "symbol" and n in _columns(order)))]
    return outputs, [n for n in order if n in timed], nodes, plain


def _columns(order: list[Expr]) -> set[Expr]:
    """Return the symbols that are arrays: tables and columns of sums."""
    found = {n.args[1] for n in order if n.op in LOOK_UPS}
    for n in order:
        if n.op == "total":
            found |= set(n.args[1 + n.args[0].args[0].inputs :])
    return found


def _extent(x: np.ndarray) -> float:
    """Return the range of the finite ones of some values."""
    finite = x[np.isfinite(x)]
    return float(np.ptp(finite)) if len(finite) else 0.0


class _Formula:
    """The values and the enclosures of the nodes of a field that depend on t, at one state."""

    def __init__(self, field: Field, is_held: bool, state: Any) -> None:
        self.outputs, self._timed, self.nodes, self.plain = _nodes(field)
        self._field, self._is_held, self._state = field, is_held, state
        text = source("pulse_values", "t, R, w, p", field.unpack, [*self.plain, *self.nodes])
        self._value = formula_kernel(text, floats.number)
        given = {f"p{i}": x for i, x in enumerate(field.parameters)}
        self._columns = {n: given[n.args[0]] for n in _columns(ordered(self.outputs)) if n.op == "symbol"}
        self._sizes: dict[Expr, tuple[float, float]] = {}
        """The range of a node in the whole run, and the largest height that is allowed beyond it."""
        at = {n: i for i, n in enumerate(self.nodes)}
        self.torque = [at[n] for n in self.outputs[:3] if n in at]

    def looked(self, low: np.ndarray, high: np.ndarray, moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much nodes may exceed their samples, and the ranges of the samples."""
        times = low + (high - low) * np.linspace(0.0, 1.0, SAMPLES)[:, None]
        values = self._values(times, moment)
        count = len(self.plain)
        given: dict[Expr, Any] = dict(self._columns)
        given[symbol("t")] = low, high
        for node, x in zip(self.plain, values, strict=False):
            x = x[0] if np.ndim(x) == 2 else x
            given[node] = x, x
        found = enclosures(self._timed, given)
        shape = (len(self.nodes), len(low))
        allowed, extent = np.zeros(shape), np.zeros(shape)
        for i, (node, x) in enumerate(zip(self.nodes, values[count:], strict=True)):
            seen = np.sort(np.broadcast_to(np.asarray(x, dtype=float), times.shape), axis=0)
            with np.errstate(all="ignore"):
                extent[i], others = seen[-1] - seen[0], np.minimum(seen[-1] - seen[1], seen[-2] - seen[0])
                over = np.maximum(found[node][1] - seen[-1], seen[0] - found[node][0])
                whole, largest = self._sizes.setdefault(node, (_extent(seen), _extent(over)))
                alone = (extent[i] > HIDDEN * others) & (extent[i] > SMALL * max(whole, largest))
                extent[i], over = np.where(alone, others, extent[i]), np.where(alone, np.maximum(over, extent[i]), over)
                noise = NOISE * np.maximum(abs(seen[0]), abs(seen[-1]))
                allowed[i] = np.where(over > np.maximum(noise, SMALL * whole), over, 0.0)
        return allowed, extent

    def _values(self, times: np.ndarray, moment: np.ndarray) -> Any:
        p = self._field.parameters
        R, w = self._state
        with np.errstate(all="ignore"):
            return self._value(times, R, w, (*p[:-1], moment) if self._is_held else p)
