"""Required step ends and longest steps of a run, so that no step jumps over a time-dependent feature of the torque.

An adaptive step evaluates a torque at a few times only; a pulse between them does not affect any error estimate. So

* steps end at the edges of a field (`fields.switches`: thrusters, tables, conditions on t) and at the user's `stops`;
* a torque that depends on t in any other way is sampled over the whole run, at `SAMPLES` times and for a few states.
  Time cells are halved until a polynomial of degree four fits the samples in each cell to a twentieth of their range.
  No step is longer than its cell, and steps end where cells become much shorter. A pulse longer than a few samples is
  thus at least as long as a step, and the error estimate of the steps detects it;
* shorter pulses are looked for at the times at which the formula can have them (`fields.pulses`).

A torque that is a polynomial in t of low degree between its edges cannot hide a feature and is not sampled.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, ResultWarning
from ..kernels.so3 import matrix, unit
from ..numbers import arrays, floats  # noqa: F401 - arrays: the torque is evaluated at many times at once
from ..physics.body import Body
from ..physics.fields import Field
from ..physics.fields.kernels import formula_kernel
from ..physics.fields.pulses import UNRESOLVED, Pulses, pulses_of
from ..physics.fields.states import coupled_text, places
from ..physics.fields.switches import PiecewiseField, between, edges
from ..physics.problem import Problem
from ..physics.units import Units
from ..physics.validate import apart, positive, real_array
from ..symbolic.expression import Expr, ordered, symbol, symbols_in

PARTS = 64
"""If the torque is sampled, no step is longer than 1/PARTS of the run."""

SAMPLES = 2**16
"""Number of equally spaced times in the run at which a torque is evaluated."""

FEWEST = 8
"""Smallest number of samples in a time cell."""

FIRST = 64
"""Smallest number of samples in an initial cell, if there are not too many cells."""

INSIDE = 1e-4
"""Distance of the first and last sample from the ends of a cell, relative to its length: the ends may be jumps."""

NODES = 5
"""Number of samples in a cell that the polynomial interpolates."""

ROUGH = 0.05
"""Largest deviation of the samples from the polynomial, relative to their range."""

MOST_CELLS = 2**14
"""Largest number of time cells: a torque that varies everywhere on a shorter scale is not resolved further."""

SHORTEST = 2.0**-40
"""Shortest cell, relative to the run."""

JUMP = 4.0
"""Steps end between cells whose lengths differ by more than this factor."""

NEGLIGIBLE = 1e-3
"""Effect on the result, relative to the tolerance, below which a deviation from the polynomial is ignored."""

HIGHEST = 7
"""Highest degree of a polynomial in t that the stages of one step determine."""

OCTAVES = 40
"""Octaves of distances at which pulses are looked for: the shortest is 1e-12 of a cell."""

HIDDEN = 8.0
"""Height of a pulse, relative to the deviation of regular samples from the polynomial, from which on they missed it."""

MOST_STOPS = 1_000_000


class Leg(NamedTuple):
    """A part of a run: its end, the longest step in it, and a time inside it."""

    end: float
    longest: float
    moment: float


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The legs of a run of a problem, whose field is the one valid between two edges (`switches.between`)."""

    problem: Problem
    legs: tuple[Leg, ...]
    spacing: float = 0.0
    """Time between two samples of the torque; 0 if nothing can be hidden between samples."""
    hidden: float = 0.0
    """Relative effect on the result of pulses that may be hidden from the steps."""

    def warn_of_hidden_pulses(self, step_tol: float) -> None:
        """Say that pulses may be hidden from the steps of a run whose error at the end is not estimated."""
        if self.hidden > step_tol:
            warnings.warn(f"the error at the end may be {self.hidden:.1g}: {UNRESOLVED}", ResultWarning, 5)

    def system(self, system: Any, leg: Leg) -> Any:
        """Return the kernel data for a leg: its `moment` is the last parameter of a piecewise field."""
        if not isinstance(self.problem.field, PiecewiseField):
            return system
        last = len(self.problem.field.parameters) - 1
        inertia, inverse, p = system
        return inertia, inverse, (*p[:last], leg.moment, *p[last + 1 :])

    def by_leg(self, times: np.ndarray) -> Iterator[tuple[Leg, np.ndarray]]:
        """Yield legs with the indices of the times in them."""
        if len(self.legs) == 1:
            yield self.legs[0], np.arange(len(times))
            return
        ends = np.array([leg.end for leg in self.legs])
        at = np.minimum(np.searchsorted(ends, times, side="left"), len(ends) - 1)
        order = np.argsort(at, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(at[order])) + 1):
            if len(group):
                yield self.legs[at[group[0]]], group


def scheduled(problem: Problem, end: float, tol: float, bounds: Bounds | None = None) -> Schedule:
    """Return the schedule of a run from the start of a problem to `end`."""
    stops = [] if bounds is None else [x for x in bounds.stops if x < end]
    max_step = math.inf if bounds is None else bounds.max_step
    whole = problem.field
    if whole is None or "t" not in whole.reads:
        return Schedule(problem, legs_between([problem.t0, *stops, end], max_step))
    held = between(whole)
    if held is not whole:
        problem = copy.copy(problem)
        problem.field = held
    borders = np.unique(np.concatenate([[problem.t0, end], stops, edges(whole, problem.t0, end)]))
    assert held is not None
    if _degree(held) <= HIGHEST:
        return Schedule(problem, legs_between(borders, max_step))
    cells, hidden = _cells_of(problem, whole, borders, tol)
    legs = _legs(cells, np.diff(cells), borders, max_step)
    return Schedule(problem, legs, (end - problem.t0) / SAMPLES, hidden)


def longest_step(field: Field, t0: float, end: float) -> float:
    """Return the longest step from t0 to `end` that misses no feature of the field in time, for any body and state.

    It is that of the shortest time cell, or of any cell if pulses are hidden, and depends on the field alone.
    """
    anybody = Problem(Body([1.0, 1.0, 1.0]), momentum=[1 / (end - t0)] * 3, t0=t0)
    anybody.field = field  # not `in_field`, which would compare the body with that of a field for one body
    if field.states:
        legs, hidden = legs_of_states(anybody, np.array([t0, end]), 0.0, math.inf)
    elif "t" in field.reads:
        legs, hidden = (found := scheduled(anybody, end, 0.0)).legs, found.hidden
    else:
        return math.inf
    return SHORTEST * (end - t0) if hidden else min(leg.longest for leg in legs)


def has_pulses(field: Field, t0: float, end: float) -> bool:
    """Return whether the field may have pulses that are too short for samples, by a look that is much quicker."""
    borders = np.unique(np.concatenate([[t0, end], edges(field, t0, end)]))
    found = _kept_pulses(field, tuple(borders.tolist()), 1 / (end - t0))
    return len(found.moments) > 0 or found.impulse > 0


def legs_of_states(problem: Problem, borders: np.ndarray, tol: float, max_step: float) -> tuple[tuple[Leg, ...], float]:
    """Return the legs of a run of a field with states between some borders, and what may be hidden from its steps.

    Only features limit the steps. They are where time cells had to be halved.
    """
    field, shortest = problem.field, float(borders[-1] - borders[0]) / PARTS * 0.6
    assert field is not None
    if "t" not in symbols_in(itertools.chain(*field.coupled)):
        return legs_between(borders.tolist(), max_step), 0.0
    cells, hidden = _cells_of(problem, field, borders, tol)
    short, kept = np.diff(cells) < shortest, np.isin(cells, borders)
    kept[:-1] |= short
    kept[1:] |= short
    lengths = np.diff(cells[kept])
    return _legs(cells[kept], np.where(lengths < shortest, lengths, math.inf), borders, max_step), hidden


def legs_between(borders: Any, max_step: float) -> tuple[Leg, ...]:
    """Return the legs between increasing times, without samples of the torque."""
    if len(borders) == 2:
        return (Leg(borders[1], max_step, borders[1]),)
    times = np.array(borders)
    return _legs(times, np.full(len(times) - 1, math.inf), times, max_step)


def _legs(cells: np.ndarray, lengths: np.ndarray, borders: np.ndarray, max_step: float) -> tuple[Leg, ...]:
    """Merge cells into legs: consecutive cells of similar length between two borders form one leg."""
    is_border = np.isin(cells, borders).tolist()
    ends, sizes = cells.tolist(), lengths.tolist()
    found, first, least, most = [], ends[0], math.inf, 0.0
    for i, size in enumerate(sizes):
        least, most = min(least, size), max(most, size)
        following = sizes[i + 1] if i + 1 < len(sizes) else 0.0
        if is_border[i + 1] or max(most, following) > JUMP * min(least, following):
            end = ends[i + 1]
            found.append(Leg(end, min(least, max_step), first + (end - first) / 2))
            first, least, most = end, math.inf, 0.0
    return tuple(found)


def _degree(field: Field) -> float:
    """Return the degree of the torque as a polynomial in t at fixed state and parameters; infinite if it is not one."""
    found: dict[Expr, float] = {}
    for node in ordered(field.graph[0]):
        degrees = [found[a] for a in node.args if isinstance(a, Expr)]
        if node is symbol("t"):
            found[node] = 1
        elif not any(degrees):
            found[node] = 0
        elif node.op in ("add", "sub"):
            found[node] = max(degrees)
        elif node.op == "mul":
            found[node] = sum(degrees)
        elif node.op == "div" and degrees[1] == 0:
            found[node] = degrees[0]
        elif node.op == "where" and degrees[0] == 0:
            found[node] = max(degrees[1:])
        else:
            found[node] = math.inf
    return max(found[x] for x in field.graph[0])


# --- sampling ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Magnitudes of a run, rounded to powers of two: motions with equal magnitudes share the time cells of a field."""

    speed: float
    momentum: float
    inertia: float
    tol: float

    @classmethod
    def of(cls, problem: Problem, span: float, tol: float) -> Sizes:
        """Return the magnitudes of a problem, rounded down; the speed of a body at rest is taken as 1 rad per run."""
        moments = problem.body.moments
        speed, momentum = float(np.linalg.norm(problem.omega)) or 1 / span, math.hypot(*problem.momentum)
        return cls(*map(_power_of_two, (speed, momentum, float(moments[moments > 0].min()), tol)))


def _power_of_two(x: float) -> float:
    return math.ldexp(0.5, math.frexp(x)[1]) if x > 0 else 0.0


def _cells_of(problem: Problem, field: Field, borders: np.ndarray, tol: float) -> tuple[np.ndarray, float]:
    """Return the time cells of a field, and the relative effect of pulses that they may hide.

    They are cached for all motions of one size if the torque is finite everywhere.
    """
    span = float(borders[-1] - borders[0])
    sizes = Sizes.of(problem, span, tol)
    found = _kept_cells(field, tuple(borders.tolist()), sizes)
    if found is not None:
        return found
    start = matrix(problem.quaternion), tuple(problem.omega.tolist())
    return _cells_at(field, [start, *_states(sizes.speed)], borders, sizes, pulses_of(field, borders, start))


@functools.lru_cache(maxsize=64)
def _kept_cells(field: Field, borders: tuple[float, ...], sizes: Sizes) -> tuple[np.ndarray, float] | None:
    """Return the cells from samples at a few states of one size; None if the torque is not finite at all of them."""
    states = _states(sizes.speed)
    if not np.isfinite(_sampler(field, states)(np.linspace(borders[0], borders[-1], FIRST))).all():
        return None
    return _cells_at(field, states, np.array(borders), sizes, _kept_pulses(field, borders, sizes.speed))


@functools.lru_cache(maxsize=64)
def _kept_pulses(field: Field, borders: tuple[float, ...], speed: float) -> Pulses:
    """Return the pulses of a field at a state of this angular velocity; all tolerances and bodies share them."""
    return pulses_of(field, np.array(borders), _states(speed)[0])


def _cells_at(field: Field, states: Any, borders: Any, sizes: Sizes, pulses: Pulses) -> tuple[np.ndarray, float]:
    cells = _cells(_sampler(field, states), borders, sizes, pulses.moments)
    return cells, pulses.impulse / min(sizes.momentum or math.inf, sizes.inertia / float(borders[-1] - borders[0]))


def _states(speed: float) -> list[Any]:
    """Return three states without symmetry, with angular velocities of about this size."""
    rng, states = np.random.default_rng(1), []
    for _ in range(3):
        q: Any = tuple(rng.normal(size=4).tolist())
        states.append((matrix(unit(q)), tuple((speed * rng.normal(size=3)).tolist())))
    return states


def _sampler(field: Field, states: list[Any]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function for the torque at an array of times and at some states: (state and axis, *times).

    The states of a field have their initial values; their rates follow the torque.
    """
    text, parameters = coupled_text(field) if field.states else field.text[0], field.parameters
    value, own = formula_kernel(text, floats.number), [tuple(parameters[i] for i in places(field))] * bool(field.states)

    def sample(times: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            seen = [np.broadcast_to(x, times.shape) for R, w in states for x in value(times, R, w, parameters, *own)]
        return np.array(seen, dtype=float)

    return sample


def _cells(
    sample: Callable[[np.ndarray], np.ndarray], borders: np.ndarray, sizes: Sizes, moments: np.ndarray
) -> np.ndarray:
    """Return the ends of time cells in which the samples are nearly a polynomial of degree four.

    At the `moments`, the torque may have pulses that are too short for the samples.
    """
    span = float(borders[-1] - borders[0])
    pieces = [np.linspace(a, b, 1 + math.ceil(PARTS * (b - a) / span)) for a, b in itertools.pairwise(borders)]
    ends = np.unique(np.concatenate(pieces))
    starts, lengths = ends[:-1], np.diff(ends)
    least = FIRST if len(lengths) <= MOST_CELLS // FIRST else FEWEST
    needed = np.maximum(least, 2 ** np.ceil(np.log2(np.maximum(1.0, lengths / span * SAMPLES))).astype(int))
    cells, largest, little = _halved(sample, borders, (starts, lengths, needed), sizes)
    while len(moments):
        short, moments = _around(sample, cells, moments, largest, little)
        if not len(short):
            break
        needed = np.full(len(short), FEWEST)
        cells = _halved(sample, cells, (short[:, 0], short[:, 1] - short[:, 0], needed), sizes)[0]
    return cells


def _halved(
    sample: Callable[[np.ndarray], np.ndarray], known: np.ndarray, cells: tuple[np.ndarray, np.ndarray, np.ndarray],
    sizes: Sizes,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """Halve cells (starts, lengths, numbers of samples) until their samples are smooth; add their ends to known ones.

    Also return the largest sample of each channel, and the impulse that is negligible.
    """
    (starts, lengths, needed), span = cells, float(known[-1] - known[0])
    done, open_starts, open_lengths = [known], np.empty(0), np.empty(0)
    largest, little = np.zeros(1), -1.0
    count = int(needed.max())
    while True:
        new = needed == count
        a, size = np.append(open_starts, starts[new]), np.append(open_lengths, lengths[new])
        needed = np.where(new, 0, needed)
        if len(a):
            seen = sample(a[:, None] + size[:, None] * np.linspace(INSIDE, 1 - INSIDE, count))
            seen = np.nan_to_num(seen, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            if little < 0:
                little = NEGLIGIBLE * sizes.tol * _scale(sizes, seen, span)
            largest = np.maximum(largest, np.abs(seen).max((1, 2)))
            rough = _is_rough(seen, size, largest, little) & (size > SHORTEST * span)
            rough &= a + size / 2 > a
            if sum(map(len, done)) + len(a) + rough.sum() > MOST_CELLS and count == FEWEST:
                rough[:] = False
            done.append(a[~rough])
            halves = size[rough] / 2
            open_starts, open_lengths = np.concatenate([a[rough], a[rough] + halves]), np.concatenate([halves, halves])
        if count == FEWEST and not len(open_starts):
            return np.unique(np.concatenate(done)), largest, little
        count = max(FEWEST, count // 2)


def _around(
    sample: Callable[[np.ndarray], np.ndarray], cells: np.ndarray, moments: np.ndarray, largest: np.ndarray,
    little: float,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return parts (starts and ends) of cells around pulses that the samples did not show, and the other moments.

    Samples at distances that fall by quarters of octaves show a pulse of any length; a pulse is hidden if they deviate
    from the polynomial of the cell far more than regular ones. The parts become shorter towards it, by factors of two.
    """
    before = np.clip(np.searchsorted(cells, moments) - 1, 0, len(cells) - 2)
    on_end = (cells[before + 1] == moments) & (before + 2 < len(cells))
    k, centre = np.append(before, before[on_end] + 1), np.append(moments, moments[on_end])
    a, b = cells[k], cells[k + 1]
    left, right = centre - a, b - centre
    part = 2.0 ** (-np.arange(1, 4 * OCTAVES + 1) / 4)
    sides = np.stack([np.where(left > 0, -left, right), np.where(right > 0, right, -left)], axis=1)
    close = (centre[:, None, None] + sides[:, :, None] * part).reshape(len(k), -1)
    times = np.concatenate([a[:, None] + (b - a)[:, None] * np.linspace(INSIDE, 1 - INSIDE, FIRST + 1), close], axis=1)
    off = _off_polynomial(sample, times, a, b)
    regular, pulse = np.abs(off[:, :, : FIRST + 1]).max(2), off[:, :, FIRST + 1 :].reshape(*off.shape[:2], 2, -1)
    high, low = pulse.max(2)[..., ::-1], pulse.min(2)[..., ::-1]  # the closest samples first
    extent = (np.maximum.accumulate(high, -1) - np.minimum.accumulate(low, -1))[..., ::-1]
    height, octave = extent[..., 0], (extent > extent[..., :1] / 2).sum(2) / 4
    noise = 64 * 2.0**-52 * largest[:, None]
    hidden = (height > HIDDEN * regular) & (height > noise) & (height * (b - a) * 2.0**-octave > little)
    found = [np.empty((0, 2))]
    for cell in np.unique(k[hidden.any(0)]):
        here = np.flatnonzero((k == cell) & hidden.any(0))
        here = here[np.argsort(centre[here], kind="stable")]
        middles = centre[here[:-1]] + np.diff(centre[here]) / 2
        borders = np.concatenate([a[here[:1]], middles, b[here[:1]]])
        for i, start, end in zip(here, borders, borders[1:], strict=False):
            shorter = math.floor(math.log2((b[i] - a[i]) / (end - start))) if end > start else 0
            halves = 2.0 ** -np.arange(max(0, math.ceil(octave[hidden[:, i], i].max()) - shorter) + 2)
            falling, rising = centre[i] - (centre[i] - start) * halves, centre[i] + (end - centre[i]) * halves
            ends = np.unique(np.concatenate([falling, [centre[i]], rising]))
            found.append(np.column_stack([ends[:-1], ends[1:]]))
    return np.concatenate(found), np.setdiff1d(moments, centre[hidden.any(0)])


def _off_polynomial(
    sample: Callable[[np.ndarray], np.ndarray], times: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Return the deviations of samples (cell, time) from a polynomial in each cell; the regular ones come first."""
    seen = np.nan_to_num(sample(times), nan=0.0, posinf=0.0, neginf=0.0)
    x = (2 * times - (a + b)[:, None]) / (b - a)[:, None]
    picked = np.round(np.linspace(0, FIRST, NODES)).astype(int)
    factors = seen[:, :, picked] @ np.linalg.inv(np.vander(np.linspace(INSIDE, 1 - INSIDE, NODES) * 2 - 1, NODES)).T
    return np.asarray(seen - sum(factors[:, :, j, None] * x ** (NODES - 1 - j) for j in range(NODES)))


def _is_rough(seen: np.ndarray, lengths: np.ndarray, largest: np.ndarray, little: float) -> np.ndarray:
    """Return in which cells the samples (channel, cell, time) deviate too much from a polynomial."""
    count = seen.shape[2]
    picked = np.round(np.linspace(0, count - 1, NODES)).astype(int)
    powers = np.vander(np.linspace(-1, 1, count), NODES)
    through = powers @ np.linalg.inv(powers[picked])
    off = np.abs(seen - seen[:, :, picked] @ through.T).max(2)
    extent = seen.max(2) - seen.min(2)
    noise = 64 * 2.0**-52 * largest[:, None]
    return np.asarray(((off > ROUGH * extent) & (off > noise) & (off * lengths > little)).any(0))


def _scale(sizes: Sizes, seen: np.ndarray, span: float) -> float:
    """Return the impulse that changes the result by 100 %: the attitude by one radian, or the momentum by its size."""
    momentum = max(sizes.momentum, float(np.abs(seen).mean((1, 2)).max()) * span)
    return min(momentum, sizes.inertia / span)


# --- user arguments ---------------------------------------------------------------------------------


MOST_BOUNDED = 20_000_000
"""Most steps that `max_step` may cause."""


@dataclasses.dataclass(frozen=True)
class Bounds:
    """The user's bounds on the steps of a run to a tolerance: times at which steps end, and the longest step."""

    stops: tuple[float, ...] = ()
    max_step: float = math.inf

    @classmethod
    def of(cls, t0: float, end: float, stops: Any = None, max_step: Any = None) -> Bounds:
        """Validate the arguments; sort the stops and remove duplicates."""
        longest = math.inf if max_step is None else positive("max_step", max_step)
        if abs(end - t0) > MOST_BOUNDED * longest:
            raise InputError(f"max_step = {longest:g} needs more than {MOST_BOUNDED:g} steps; give a longer one")
        if stops is None:
            return NO_BOUNDS if longest == math.inf else cls((), longest)
        expected = "stops must be times, such as [3.0, 4.5], at which steps shall end"
        times = np.atleast_1d(real_array(stops, expected))
        if times.ndim != 1 or not np.isfinite(times).all():
            raise InputError(f"{expected}, all of them finite; got {stops!r}")
        if len(times) > MOST_STOPS:
            raise InputError(f"stops must be at most {MOST_STOPS} times; got {len(times)}")
        first, last = sorted((t0, end))
        outside = times[(times < first) | (times > last)]
        if len(outside):
            start, stop, wrong = apart(t0, end, float(outside[0]))
            raise InputError(f"stops must lie between t0 = {start} and t_end = {stop}; got {wrong}")
        return cls(tuple(x for x in np.unique(times).tolist() if first < x < last), longest)

    @staticmethod
    def refuse(stops: Any, max_step: Any) -> None:
        """Refuse both arguments outside runs to a tolerance."""
        for name, value in (("stops", stops), ("max_step", max_step)):
            if value is not None:
                raise InputError(f"{name} is for adaptive steps: also give tol, or leave out `{name}`")

    def scaled(self, units: Units) -> Bounds:
        """Convert to other units of time."""
        stops = sorted(float(units.times(x)) for x in self.stops)
        return Bounds(tuple(stops), math.ldexp(self.max_step, -units.time))

    @property
    def attributes(self) -> dict[str, Any]:
        """The specified bounds, as attributes for the file of a run."""
        found: dict[str, Any] = {"stops": list(self.stops)} if self.stops else {}
        return found | ({"max_step": self.max_step} if self.max_step < math.inf else {})


NO_BOUNDS = Bounds()
