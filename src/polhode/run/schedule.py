"""Where the steps of a run must end, and how long they may be, so that nothing that happens in time is stepped over.

An adaptive step sees a torque at a few times only; a pulse between them leaves no trace in any error estimate. So

* the edges of a field (`fields.switches`: thrusters, tables, conditions of t) and the user's `stops` are ends of steps;
* a torque that depends on t in any other way is sampled over the whole run, at `SAMPLES` times and for a few states.
  Cells of time are halved until a polynomial of degree four describes the samples in each of them to a twentieth of
  their range. No step is longer than the cell it is in, and steps end where cells become much shorter. A pulse that is
  longer than a few samples is thus at least as long as a step, and the error estimate of the steps sees it.

A torque that is, between its edges, a polynomial in t of low degree cannot hide anything and is not sampled.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import matrix, unit
from ..numbers import arrays, floats  # noqa: F401 - arrays: the torque is evaluated at many times at once
from ..physics.body import Body
from ..physics.fields import Field, formula_kernel
from ..physics.fields.switches import PiecewiseField, between, edges
from ..physics.problem import Problem
from ..physics.validate import positive, real_array
from ..symbolic.expression import Expr, ordered, symbol, symbols_in

PARTS = 64
"""No step is longer than this part of a run where the torque is sampled."""

SAMPLES = 2**16
"""Times, evenly spread over the run, at which a torque is looked at."""

FEWEST = 8
"""Samples in a cell of time, at least."""

FIRST = 64
"""Samples in each interval between two stops, if there are not too many of them."""

INSIDE = 1e-4
"""The first and the last sample lie so far inside a cell, in parts of it: at its ends there may be jumps."""

NODES = 5
"""Samples in a cell through which the polynomial goes."""

ROUGH = 0.05
"""The part of their range by which samples may differ from the polynomial."""

MOST_CELLS = 2**14
"""Cells of time, at most: a torque that varies everywhere within the shortest of them is not followed any further."""

SHORTEST = 2.0**-40
"""The shortest cell, as a part of the run."""

JUMP = 4.0
"""Steps end between cells whose lengths differ by more than this factor."""

NEGLIGIBLE = 1e-3
"""The part of the tolerance that the difference of samples and polynomial may make in the result."""

HIGHEST = 7
"""The degree of a polynomial in t that the stages of one step determine."""

MOST_STOPS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Leg:
    """A part of a run: where it ends, the longest step in it, and a time inside it."""

    end: float
    longest: float
    moment: float


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The legs of a run of a problem; its field is the one between two edges (`switches.between`)."""

    problem: Problem
    legs: tuple[Leg, ...]
    spacing: float = 0.0
    """Time between two samples of the torque; 0 if nothing can be hidden between samples."""

    def with_stops(self, *samples: float) -> Iterator[Leg]:
        """The legs with a few more times at which a step ends."""
        wanted = sorted(samples)
        for leg in self.legs:
            while wanted and wanted[0] < leg.end:
                yield dataclasses.replace(leg, end=wanted.pop(0))
            if wanted and wanted[0] == leg.end:
                wanted.pop(0)
            yield leg

    def system(self, system: Any, leg: Leg) -> Any:
        """The data of the kernels for a leg: its moment is the last parameter of a piecewise field."""
        if not isinstance(self.problem.field, PiecewiseField):
            return system
        last = len(self.problem.field.parameters) - 1
        inertia, inverse, p = system
        return inertia, inverse, (*p[:last], leg.moment, *p[last + 1 :])

    def by_leg(self, times: np.ndarray) -> Iterator[tuple[Leg, np.ndarray]]:
        """Legs and the indices of the times in them."""
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
    """The schedule of a run from the start of a problem to `end`."""
    stops = [] if bounds is None else [x for x in bounds.stops if x < end]
    max_step = math.inf if bounds is None else bounds.max_step
    held = between(problem.field)
    if held is not problem.field:
        problem, whole = copy.copy(problem), problem.field
        problem.field = held
    else:
        whole = held
    if whole is None or "t" not in symbols_in(whole.graph[0]):
        if not stops:
            return Schedule(problem, (Leg(end, max_step, end),))
        borders = np.array([problem.t0, *stops, end])
        return Schedule(problem, _legs(borders, np.full(len(borders) - 1, math.inf), borders, max_step))
    borders = np.unique(np.concatenate([[problem.t0, end], stops, edges(whole, problem.t0, end)]))
    assert held is not None
    if _degree(held) <= HIGHEST:
        return Schedule(problem, _legs(borders, np.full(len(borders) - 1, math.inf), borders, max_step))
    cells = _cells_of(problem, whole, borders, tol)
    return Schedule(problem, _legs(cells, np.diff(cells), borders, max_step), (end - problem.t0) / SAMPLES)


def longest_step(field: Field, t0: float, end: float) -> float:
    """The longest step from t0 to `end` that steps over nothing that the field does in time, for any body and state.

    It is the shortest of all cells of time, so it depends on the field and its parameters alone.
    """
    if "t" not in symbols_in(field.graph[0]):
        return math.inf
    anybody = Problem(Body([1.0, 1.0, 1.0]), field, momentum=[1 / (end - t0)] * 3, t0=t0)
    return min(leg.longest for leg in scheduled(anybody, end, 0.0).legs)


def _legs(cells: np.ndarray, lengths: np.ndarray, borders: np.ndarray, max_step: float) -> tuple[Leg, ...]:
    """Cells gathered: between two borders those in a row whose lengths differ little make one leg."""
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
    """The degree of the torque as a polynomial in t, the state and parameters being given; infinite if it is none."""
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
    """Sizes of a run to powers of two: motions of one size share the cells of time of a field."""

    speed: float
    momentum: float
    inertia: float
    tol: float

    @classmethod
    def of(cls, problem: Problem, span: float, tol: float) -> Sizes:
        """Those of a problem, rounded down; of a body at rest, the speed that turns it once."""
        moments = problem.body.moments
        speed, momentum = float(np.linalg.norm(problem.omega)) or 1 / span, math.hypot(*problem.momentum)
        return cls(*map(_power_of_two, (speed, momentum, float(moments[moments > 0].min()), tol)))


def _power_of_two(x: float) -> float:
    return math.ldexp(0.5, math.frexp(x)[1]) if x > 0 else 0.0


def _cells_of(problem: Problem, field: Field, borders: np.ndarray, tol: float) -> np.ndarray:
    """The cells of time of a field: kept for all motions of one size, unless the torque is not defined everywhere."""
    span = float(borders[-1] - borders[0])
    sizes = Sizes.of(problem, span, tol)
    found = _kept_cells(field, tuple(borders.tolist()), sizes)
    if found is not None:
        return found
    start = (matrix(problem.quaternion), tuple(problem.omega.tolist()))
    return _cells(_sampler(field, [start, *_states(sizes.speed)]), borders, sizes)


@functools.lru_cache(maxsize=64)
def _kept_cells(field: Field, borders: tuple[float, ...], sizes: Sizes) -> np.ndarray | None:
    """The cells from samples at a few states of one size; None if the torque is not finite at all of them."""
    sample, ends = _sampler(field, _states(sizes.speed)), np.array(borders)
    if not np.isfinite(sample(np.linspace(borders[0], borders[-1], FIRST))).all():
        return None
    return _cells(sample, ends, sizes)


def _states(speed: float) -> list[Any]:
    """Three states without symmetry, with angular velocities of about this size."""
    rng, states = np.random.default_rng(1), []
    for _ in range(3):
        q: Any = tuple(rng.normal(size=4).tolist())
        states.append((matrix(unit(q)), tuple((speed * rng.normal(size=3)).tolist())))
    return states


def _sampler(field: Field, states: list[Any]) -> Callable[[np.ndarray], np.ndarray]:
    """The torque at an array of times, for some states: (state and axis, *times)."""
    value, parameters = formula_kernel(field.text[0], floats.number), field.parameters

    def sample(times: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            seen = [np.broadcast_to(x, times.shape) for R, w in states for x in value(times, R, w, parameters)]
        return np.array(seen, dtype=float)

    return sample


def _cells(sample: Callable[[np.ndarray], np.ndarray], borders: np.ndarray, sizes: Sizes) -> np.ndarray:
    """The ends of cells of time in each of which the samples are nearly a polynomial of degree four."""
    span = float(borders[-1] - borders[0])
    pieces = [np.linspace(a, b, 1 + math.ceil(PARTS * (b - a) / span)) for a, b in itertools.pairwise(borders)]
    ends = np.unique(np.concatenate(pieces))
    starts, lengths = ends[:-1], np.diff(ends)
    least = FIRST if len(lengths) <= MOST_CELLS // FIRST else FEWEST
    needed = np.maximum(least, 2 ** np.ceil(np.log2(np.maximum(1.0, lengths / span * SAMPLES))).astype(int))
    done, open_starts, open_lengths = [borders], np.empty(0), np.empty(0)
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
            return np.unique(np.concatenate(done))
        count = max(FEWEST, count // 2)


def _is_rough(seen: np.ndarray, lengths: np.ndarray, largest: np.ndarray, little: float) -> np.ndarray:
    """In which cells do samples (channel, cell, time) differ too much from a polynomial."""
    count = seen.shape[2]
    picked = np.round(np.linspace(0, count - 1, NODES)).astype(int)
    powers = np.vander(np.linspace(-1, 1, count), NODES)
    through = powers @ np.linalg.inv(powers[picked])
    off = np.abs(seen - seen[:, :, picked] @ through.T).max(2)
    extent = seen.max(2) - seen.min(2)
    noise = 64 * 2.0**-52 * largest[:, None]
    return np.asarray(((off > ROUGH * extent) & (off > noise) & (off * lengths > little)).any(0))


def _scale(sizes: Sizes, seen: np.ndarray, span: float) -> float:
    """The impulse that would change the result by its own size: the attitude by a radian, or the momentum by itself."""
    momentum = max(sizes.momentum, float(np.abs(seen).mean((1, 2)).max()) * span)
    return min(momentum, sizes.inertia / span)


# --- what the user says -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What a user says of the steps of a run to a tolerance: times at which they end, and the longest one."""

    stops: tuple[float, ...] = ()
    max_step: float = math.inf

    @classmethod
    def of(cls, t0: float, end: float, stops: Any = None, max_step: Any = None) -> Bounds:
        """The same, checked; stops in order and each once."""
        longest = math.inf if max_step is None else positive("max_step", max_step)
        if stops is None:
            return NO_BOUNDS if longest == math.inf else cls((), longest)
        expected = "stops must be times, such as [3.0, 4.5], at which steps shall end"
        times = np.atleast_1d(real_array(stops, expected))
        if times.ndim != 1 or not np.isfinite(times).all():
            raise InputError(f"{expected}, all of them finite; got {stops!r}")
        if len(times) > MOST_STOPS:
            raise InputError(f"stops must be at most {MOST_STOPS} times; got {len(times)}")
        outside = times[(times < t0) | (times > end)]
        if len(outside):
            raise InputError(f"stops must lie between t0 = {t0:g} and t_end = {end:g}; got {outside[0]:g}")
        return cls(tuple(x for x in np.unique(times).tolist() if t0 < x < end), longest)

    @staticmethod
    def refuse(stops: Any, max_step: Any) -> None:
        """Both are for runs to a tolerance only."""
        for name, value in (("stops", stops), ("max_step", max_step)):
            if value is not None:
                raise InputError(f"{name} is for adaptive steps: also give tol, or remove the argument {name}")

    def scaled(self, exponent: int) -> Bounds:
        """In another unit of time: all times multiplied by this power of two."""
        if not exponent:
            return self
        return Bounds(tuple(math.ldexp(x, exponent) for x in self.stops), math.ldexp(self.max_step, exponent))

    @property
    def attributes(self) -> dict[str, Any]:
        """What was given, for the file of a run."""
        found: dict[str, Any] = {"stops": list(self.stops)} if self.stops else {}
        return found | ({"max_step": self.max_step} if self.max_step < math.inf else {})


NO_BOUNDS = Bounds()
