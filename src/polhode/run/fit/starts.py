"""Many starting guesses for a fit: drawn or given, ranked by their residuals in an ensemble.

Short searches begin at the best guesses, and the best ends of these are refined.

A search by derivatives ends in the minimum whose basin it starts in. Over a motion of several turns these basins are
narrow, so a poor guess needs many starts (multi-start search).
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...kernels.so3 import conj, mul
from ...physics.fields.heat_bath import counter
from ...physics.problem import Problem
from ...physics.validate import by_name, real_array, whole_number
from ...results.trajectory import Trajectory
from ..ensemble.api import ensemble
from .measurements import Measurement, rotation_vector
from .parameters import BIAS, FROM_MOMENTS, Free

RELATIVE = 0.3
"""Default standard deviation of drawn numbers: relative to the guess, of logarithms, or in rad for the axes."""

MOST_STARTS = 1_000_000
"""Largest number of guesses; the states of all of them are in memory."""

IMPROVED, SHORT = 32, 10
"""Starts from which a short search begins, and the most motions of such a search."""

REFINED = 8
"""Ends of short searches that are refined."""

RANKING_TOL = 1e-7
"""Error allowed in each step of the motions that are only ranked."""

SAME = 1e-2
"""Largest difference of two sums of squares at the same minimum; one standard deviation of a number changes it by 1."""


@dataclasses.dataclass(frozen=True, eq=False)
class Starts:
    """The starting guesses of a fit.

    Attributes
    ----------
    problems : the guesses, best first
    chi2 : (N,) sums of squares of their residuals, without any search; infinite where the motion cannot be computed
    refined : the ends of the searches from the best of them, best first
    refined_chi2 : sums of squares there
    same : number of these searches that ended at the smallest sum of squares
    """

    problems: list[Problem] = dataclasses.field(repr=False)
    chi2: np.ndarray = dataclasses.field(repr=False)
    refined: list[Problem] = dataclasses.field(repr=False)
    refined_chi2: np.ndarray
    same: int

    def __str__(self) -> str:
        return (
            f"{len(self.problems)} starts, {len(self.refined)} of them refined to the end: {self.same} reached this "
            f"sum of squares"
        )


def same_minimum(chi2: np.ndarray) -> int:
    """Return how many sums of squares are the smallest one, within what a search leaves."""
    return int((chi2 <= chi2.min() * (1 + 1e-6) + SAME).sum())


# --- guesses ----------------------------------------------------------------------------------------


def guesses(free: Free, starts: Any, spread: Mapping[str, Any] | None, seed: Any) -> np.ndarray:
    """Return the starting guesses, rows of free numbers; the first row is the user's guess."""
    if isinstance(starts, Sequence) and not isinstance(starts, str):
        if spread is not None:
            raise InputError("spread is only for random starts; remove it, or give a number of starts", "spread")
        return np.array([free.start, *(_of_problem(free, i, one) for i, one in enumerate(starts))])
    number = whole_number("starts", starts)
    if number > MOST_STARTS:
        raise InputError(f"starts must be at most {MOST_STARTS}, each with a motion of its own; got {number}", "starts")
    return _drawn(free, number, by_name("spread", spread, "{'omega': 0.1}"), int(counter("seed", seed)))


def _drawn(free: Free, number: int, spread: Mapping[str, Any], seed: int) -> np.ndarray:
    able = [name for name in free.places if not name.startswith(BIAS)]
    strange = [name for name in spread if name not in able]
    if strange:
        raise InputError(f"spread must name some of {', '.join(able)}, which are free; got {strange[0]!r}", "spread")
    rng = np.random.default_rng(seed)
    x = np.tile(free.start, (number, 1))
    for name in able:
        place = free.places[name]
        if name == "attitude" and name not in spread:
            q = rng.normal(size=(number, 4))
            drawn = rotation_vector(q / np.linalg.norm(q, axis=1)[:, None])
        else:
            drawn = rng.normal(size=(number, place.stop - place.start)) * _deviation(free, name, spread)
        x[1:, place] += drawn[1:]
    return x


def _deviation(free: Free, name: str, spread: Mapping[str, Any]) -> Any:
    """Return the standard deviations of a group of numbers."""
    place = free.places[name]
    if name not in spread:
        if name in ("inertia", "axes"):
            return RELATIVE
        size = abs(free.start[place])
        return RELATIVE * (np.linalg.norm(size) if name == "omega" else size)
    given = real_array(spread[name], f"the spread of {name} must be standard deviations", key="spread")
    width = place.stop - place.start
    if given.shape not in ((), (width,)) or not np.isfinite(given).all() or (given < 0).any():
        raise InputError(
            f"the spread of {name} must be one standard deviation or {width}, none negative; got {spread[name]!r}",
            "spread",
        )
    return given


def _of_problem(free: Free, i: int, one: Any) -> np.ndarray:
    """Return the free numbers of a problem given as a start."""
    if not isinstance(one, Problem):
        raise InputError(f"starts must be a number, or a list of problems; entry {i} is a {type(one).__name__}")
    x = free.start.copy()
    for name, place in free.places.items():
        if name == "attitude":
            x[place] = rotation_vector(np.array([mul(conj(free.problem.quaternion), one.quaternion)]))[0]
        elif name == "omega":
            x[place] = one.omega
        elif name == "inertia":
            x[place] = np.log(FROM_MOMENTS @ one.body.moments)
        elif name == "axes":
            raise InputError("with free axes, give the number of starts, not a list of problems", "starts")
        elif not name.startswith(BIAS):
            if one.field is None or name not in one.field.values:
                raise InputError(f"all starts need a field with the parameter {name}; entry {i} has none", "starts")
            x[place] = np.ravel(one.field.values[name])
    if not np.isfinite(x).all():
        raise InputError(f"the moments of start {i} are those of a flat or unphysical body; give others", "starts")
    return x


# --- ranking ----------------------------------------------------------------------------------------


def ranked(free: Free, data: list[Measurement], x: np.ndarray, scale: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the guesses, best first, with the sums of squares of their residuals.

    With `scale`, the order is that of sum ln(1 + (r/scale)^2) (Cauchy), in which wrong measurements count little.
    """
    problems = [free.problem_at(one) for one in x]
    times = np.unique(np.concatenate([one.t for one in data]))
    later = times[times > free.problem.t0]
    times = np.append(free.problem.t0, later if len(later) else free.problem.t0 + 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultWarning)  # a guess that fails is ranked last
        many = ensemble(problems, step_tol=RANKING_TOL, times=times, progress=False)
    sums = np.full((len(x), 2), np.inf)
    for i, problem in enumerate(problems):
        if many.failed[i] < 0:
            r = _residuals(data, problem, many[i])
            square = r @ r
            sums[i] = square if scale is None else np.log1p((r / scale) ** 2).sum(), square
    order = np.argsort(sums[:, 0], kind="stable")
    return x[order], sums[order, 1]


def _residuals(data: list[Measurement], problem: Problem, sol: Trajectory) -> np.ndarray:
    """Return the residuals of all measurements on a motion; each bias is the best one for it, a weighted mean."""
    from .arcs import sol_at

    found = []
    for one in data:
        here = sol_at(sol, np.searchsorted(sol.t, one.t))
        r = one.residuals(problem, here, None).value
        if one.bias:
            weight = 1 / one.sigma
            r = r - weight * ((r * weight).sum(0) / (weight**2).sum(0))
        found.append(r.ravel())
    return np.concatenate(found)
