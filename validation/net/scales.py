"""The same motion in other units of time and inertia, backwards, restarted, with limits of steps, pickled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import END, STEP, Units
from .check import Cell, Skip
from .runs import (
    TOL,
    Run,
    field_at_end,
    state_at_end,
    state_of_body,
)

EXPONENTS = ((-190, 0), (190, 0), (0, -190), (0, 190), (150, -120))
"""Powers of two of the units of time and of inertia: 1e57, and a slow body of small inertia."""


def units(run: Run, cell: Cell) -> None:
    """In other units the motion has the same bits; of an ensemble too, and derivatives do not fail."""
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        sol = other.solve()
        name = f"time 2^{a}, inertia 2^{b}"
        same_steps = run.equal or (run.how != "method, tol" and not run.case.traits & {cases.STATES})
        alike = same_steps and sol.quaternion.shape == run.base.quaternion.shape
        same = cell.same if alike else _ends_only(cell)
        same(f"quaternion, {name}", sol.quaternion, run.base.quaternion)
        same(f"momentum, {name}", np.ldexp(sol.momentum, a - b), run.base.momentum)


def _ends_only(cell: Cell) -> Any:
    """Other steps may be chosen: only the ends are compared."""
    return lambda what, now, before: cell.close(what, now[-1], before[-1], 100 * TOL)


def ensemble_units(run: Run, cell: Cell) -> None:
    """In other units an ensemble ends in the same states."""
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        many = other.ensemble()
        name = f"time 2^{a}, inertia 2^{b}"
        cell.claim((many.failed < 0).all(), f"{name}: failed in step {many.failed}")
        q, m = state_of_body(many)
        cell.close_states(name, (q, np.ldexp(m, a - b)), state_at_end(run.base), max(run.error, 1e-9))


def tangent_units(run: Run, cell: Cell) -> None:
    """In other units derivatives are the same."""
    base = run.solve(tangent=True).tangent.matrix[-1]
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        matrix = np.array(other.solve(tangent=True).tangent.matrix[-1])
        matrix[:3, 3:], matrix[3:, :3] = np.ldexp(matrix[:3, 3:], b - a), np.ldexp(matrix[3:, :3], a - b)
        cell.close(f"derivatives, time 2^{a}, inertia 2^{b}", matrix, base, 1e-6)


def backwards(run: Run, cell: Cell) -> None:
    """A run backwards in time returns to the start."""
    q, m = state_at_end(run.base)
    back = ph.Problem(run.problem.body, field_at_end(run, run.base), attitude=q, momentum=m, t0=END)
    more = {"dt": -STEP, "steps": round(END / STEP)} if run.equal else {"t_end": 0.0}
    sol = run.solve(back, **more)
    start = (run.problem.quaternion, run.problem.momentum)
    cell.close_states("back at the start", state_at_end(sol), start, 1e-4 if run.equal else max(run.error, 1e-6))


def restarted(run: Run, cell: Cell) -> None:
    """A run from the state in the middle of another ends where that does."""
    half = run.solve(t_end=END / 2)
    if run.case.control is not None:
        raise Skip  # the samples would begin with another memory
    middle = {"attitude": half.quaternion[-1], "momentum": half.momentum[-1]}
    rest = ph.Problem(run.problem.body, field_at_end(run, half), **middle, t0=END / 2)
    cell.close_states(
        "after a restart", state_at_end(run.solve(rest)), state_at_end(run.base), 1e-11 if run.equal else run.error
    )


def stops(run: Run, cell: Cell) -> None:
    """Steps end at the times given as `stops`, and the run ends where it did."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip  # exact, without steps
    sol = run.solve(stops=[0.41, 1.5])
    cell.claim(np.isin([0.41, 1.5], sol.t).all(), "no step ends at a stop")
    cell.close_states("with stops", state_at_end(sol), state_at_end(run.base), run.error)


def max_step(run: Run, cell: Cell) -> None:
    """No step is longer than `max_step`, and the run ends where it did."""
    sol = run.solve(max_step=0.02)
    cell.claim(np.diff(sol.t).max() <= 0.02 * (1 + 1e-12), f"a step of {np.diff(sol.t).max()}")
    cell.close_states("with short steps", state_at_end(sol), state_at_end(run.base), run.error)


def pickled(run: Run, cell: Cell) -> None:
    """A problem, and a result, are the same after pickling."""
    problem = pickle.loads(pickle.dumps(run.problem))
    cell.same_path("run of a pickled problem", run.solve(problem), run.base)
    cell.same_path("pickled result", pickle.loads(pickle.dumps(run.solve())), run.base)
