"""The same motion by other functions: ensembles, propagator, steppers, other numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import END, STEP
from .check import Cell, Skip
from .runs import (
    HOWS,
    ON_STEPS,
    ROUND_OFF,
    TIMES,
    Run,
    event_at,
    level_event,
    state_at_end,
    state_of_body,
)
from .statistics import ASKED, OBSERVED


def ensemble_of_one(run: Run, cell: Cell) -> None:
    """An ensemble of one body ends in the state of the single run."""
    many = run.ensemble()
    cell.claim((many.failed < 0).all(), f"failed in step {many.failed}")
    cell.close_states(
        "ensemble of one", state_of_body(many), state_at_end(run.base), ROUND_OFF if run.equal else run.error
    )
    for name, values in run.base.states.items():
        if name in many.states:
            cell.close(f"ensemble of one: {name}", many.states[name][-1, 0], values[-1], 1e-7)
        else:
            cell.found.append(f"the ensemble has no {name}")


def ensemble_of_many(run: Run, cell: Cell) -> None:
    """A body of an ensemble depends neither on the others nor on how many they are."""
    many, one = run.ensemble(number=19), run.ensemble()
    cell.claim((many.failed < 0).all(), f"failed in steps {many.failed}")
    cell.same("quaternion of the first of many", many.quaternion[:, 0], one.quaternion[:, 0])
    cell.same("momentum of the first of many", many.momentum[:, 0], one.momentum[:, 0])
    cell.keep("all", many.momentum[-1])


def ensemble_times(run: Run, cell: Cell) -> None:
    """An ensemble keeps the states at the times asked for, as a single run does."""
    asked = ON_STEPS if run.equal else TIMES
    many, sol = run.ensemble(number=2, times=asked), run.solve(times=asked)
    cell.same("times of the ensemble", many.t if many.t.ndim == 1 else many.t[:, 0], asked)
    cell.close_states(
        "at times", (many.quaternion[:, 0], many.momentum[:, 0]), (sol.quaternion, sol.momentum), max(run.error, 1e-7)
    )


def ensemble_every(run: Run, cell: Cell) -> None:
    """Every third state of an ensemble."""
    many, sol = run.ensemble(number=2, every=3), run.solve(every=3)
    cell.close("times", many.t if many.t.ndim == 1 else many.t[:, 0], sol.t, ROUND_OFF)
    cell.close_states(
        "every third", (many.quaternion[:, 0], many.momentum[:, 0]), (sol.quaternion, sol.momentum), ROUND_OFF
    )


def ensemble_statistics(run: Run, cell: Cell) -> None:
    """Statistics of an ensemble are those of the single run; with times, its states at these are there too."""
    asked = ON_STEPS if run.equal else TIMES
    many = run.ensemble(number=2, statistics=ASKED, times=asked)
    with_start = np.array([0.0, *asked])
    sol = run.solve(times=with_start)
    for name, observed in OBSERVED.items():
        values = observed(sol)
        expected = {"first": values[0], "last": values[-1], "max": values.max(axis=0), "mean": values.mean(axis=0)}
        for part, value in expected.items():
            cell.close(f"{name}.{part}", getattr(many.statistics[name], part)[0], value, max(run.error, 1e-7))
    cell.same("times of the ensemble", many.t if many.t.ndim == 1 else many.t[:, 0], asked)
    if run.equal:
        each, whole = run.ensemble(number=2, statistics=ASKED), run.base
        for name, observed in OBSERVED.items():
            cell.close(f"every step: {name}", each.statistics[name].mean[0], observed(whole).mean(axis=0), 1e-9)


def ensemble_events(run: Run, cell: Cell) -> None:
    """Events of an ensemble are those of the single run."""
    many, sol = (
        run.ensemble(number=2, events=[event_at(run), level_event()]),
        run.solve(events=[event_at(run), level_event()]),
    )
    for k in range(2):
        cell.close(f"times of event {k}", many.events[k][0].t, sol.events[k].t, max(run.error, 1e-7))


def ensemble_tangent(run: Run, cell: Cell) -> None:
    """Derivatives of an ensemble are those of the single run."""
    many, sol = run.ensemble(number=2, tangent=True), run.solve(tangent=True)
    cell.close("derivatives", many.tangent.matrix[-1, 0], sol.tangent.matrix[-1], max(run.error, 1e-6))


def ensemble_in_a_store(run: Run, cell: Cell) -> None:
    """An ensemble in a store is the one in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.zarr"
        run.ensemble(number=5, out=path, unit=2)
        back, many = ph.load(path), run.ensemble(number=5)
        cell.same("quaternion in the store", np.asarray(back.quaternion), many.quaternion)
        cell.same("momentum in the store", np.asarray(back.momentum), many.momentum)


def propagator(run: Run, cell: Cell) -> None:
    """A propagator gives the bits of the single run."""
    if run.how not in ("tol", "step_tol") or run.case.control is not None:
        raise Skip
    fly = ph.propagator(run.problem, **HOWS[run.how])
    for name in ("first", "second"):
        end = fly(run.problem.quaternion, run.problem.momentum, END)
        cell.same(f"quaternion, {name} call", end.quaternion, run.base.quaternion[-1])
        cell.same(f"momentum, {name} call", end.momentum, run.base.momentum[-1])


def stepper(run: Run, cell: Cell) -> None:
    """Steps one by one are the steps of the single run."""
    if not run.equal or run.case.control is not None:
        raise Skip
    one = ph.stepper(run.problem.body, run.case.method, STEP)
    state: Any = ph.State(tuple(run.problem.quaternion), tuple(run.problem.momentum))
    steps = round(END / STEP)
    for _ in range(steps):
        state = one.step(state, run.problem.field)
    cell.close_states("steps one by one", (state.quaternion, state.momentum), state_at_end(run.base), ROUND_OFF)


def batch_stepper(run: Run, cell: Cell) -> None:
    """Steps in the caller's arrays have the bits of those of an ensemble."""
    traits = run.case.traits
    if not run.equal or not traits & {cases.FREE}:
        raise Skip  # the caller computes torques
    body = ph.batch_stepper([run.problem.body] * 2, run.case.method, STEP)
    q = np.tile(np.array(run.problem.quaternion, dtype=float), (2, 1))
    m = np.tile(np.array(run.problem.momentum, dtype=float), (2, 1))
    body.step(q, m, n=round(END / STEP))
    many = run.ensemble(number=1)
    cell.same("quaternion in arrays", q[0], many.quaternion[-1, 0])
    cell.same("momentum in arrays", m[0], many.momentum[-1, 0])


def digits(run: Run, cell: Cell) -> None:
    """In 30 digits, the path differs by round-off, or by the tolerance."""
    more = {} if run.equal else {"t_end": 0.2}
    sol = run.solve(digits=30, **more)
    base = run.base if run.equal else run.solve(**more)
    cell.close_states("in digits", state_at_end(sol), state_at_end(base), ROUND_OFF if run.equal else run.error)
