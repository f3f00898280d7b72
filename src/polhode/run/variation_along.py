"""The growth of a variation along one run, from the tangents of its steps: across jumps of the field too.

Within a step the growth is smooth, and its integrals are those of `physics/varied_steps`. Where the field jumps with
the state, the saltation matrix (`run/saltation.py`) changes the length of the variation at once, by a factor e^L. This
adds L to the growth, and s L to the integral of s dL.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from ..errors import StepError
from ..methods import methods
from ..physics.fields.variation import GROWTH, MEAN, PREFIX, SIZE, STATE, TIME, WEIGHTED, VariationField
from ..physics.problem import Problem
from ..physics.varied_steps import HIGH, mean_growth
from ..results.derivatives import by_blocks
from ..results.trajectory import Trajectory
from .dense import Dense, why_no_states
from .solve import solve
from .tangent import Tangent, with_tangent

BLOCK = 5_000
"""Steps whose tangents are in memory at a time."""


def variation_along(problem: Problem, field: VariationField, times: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """Return the states (n, 10) of a variation at the times of a run, which begin with its start.

    `problem` has the field without the variation, and `how` says how it is solved.
    """
    stops = times[1:-1] if len(times) > 2 else None
    tangent = solve(problem, **how, t_end=float(times[-1]), stops=stops, tangent=True, progress=False).tangent
    assert isinstance(tangent, Tangent)
    return carried(problem, field, times, tangent)


def on_run(problem: Problem, field: VariationField, times: np.ndarray, sol: Trajectory) -> np.ndarray:
    """Return the same at times of a run to a tolerance that was made, from the tangents of its own steps."""
    assert isinstance(sol.dense, Dense)
    path, more = sol.dense.path, np.setdiff1d(times, sol.dense.path.times)
    rows = sol.dense.run.state_at(more, path.times, path.rows)
    if rows is None:
        raise StepError(why_no_states(sol.dense.run, more, path))
    at = np.searchsorted(path.times, more)
    whole = dataclasses.replace(path, times=np.insert(path.times, at, more), rows=np.insert(path.rows, at, rows, 0))
    made = copy.copy(sol)
    made.dense = dataclasses.replace(sol.dense, path=whole)
    tangent = with_tangent(problem, methods[sol.method], made).tangent
    assert tangent is not None
    return carried(problem, field, times, tangent)


def carried(problem: Problem, field: VariationField, times: np.ndarray, tangent: Tangent) -> np.ndarray:
    """Return the states (n, 10) of a variation at some of the times of a tangent, which begin with its start."""
    nu, per_span = (float(field.values[PREFIX + name]) for name in ("frequency", "per_span"))
    moments, axes = problem.body.moments, np.asarray(problem.body.axes)
    first = np.array(field.values[PREFIX + STATE], float)
    scale = np.concatenate([np.ones(3), nu * moments])  # from (d, e) to (d, Pi)
    v = by_blocks(axes.T, first[:6, None])[:, 0]
    z, found, kept = first.copy(), [first], 1
    integrated = mean_growth(HIGH)
    for t, whole, inner in tangent.within_steps(tuple(map(float, HIGH)), BLOCK):
        for end, jump, parts in zip(t, whole, inner, strict=True):
            share = (end - times[0]) * per_span - z[TIME]
            lengths = [float(np.log(np.linalg.norm((part @ (scale * v)) / scale))) for part in parts]
            after = (jump @ (scale * v)) / scale
            length = float(np.linalg.norm(after))
            v, passed = after / length, float(np.log(length)) - lengths[-1]
            z[WEIGHTED], z[MEAN] = integrated(tuple(lengths), share, z[WEIGHTED], z[MEAN], z[TIME])
            z[TIME] += share
            z[GROWTH] += lengths[-1] + passed
            z[WEIGHTED] += z[TIME] * passed
            if kept < len(times) and end >= times[kept]:
                z[:6] = by_blocks(axes, v[:, None])[:, 0]
                found.append(z.copy())
                kept += 1
    return np.array(found).reshape(len(times), SIZE)
