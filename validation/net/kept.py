"""Ways of keeping the states of one body and their derivatives: all, some, between steps, at events."""

from __future__ import annotations

from typing import Any

import numpy as np

import polhode as ph

from .cases import END, STEP
from .check import Cell, Skip
from .runs import (
    EVENT,
    ROUND_OFF,
    TIMES,
    Run,
    event_at,
    level_event,
)


def plain(run: Run, cell: Cell) -> None:
    """The run itself: it ends at the end, and its numbers are numbers."""
    sol = run.solve()
    cell.same_path("path", sol, sol)
    cell.keep("estimate", sol.error_estimate)
    cell.claim(abs(sol.t[-1] - END) < ROUND_OFF, f"ends at {sol.t[-1]!r}, not at {END}")
    cell.claim((np.diff(sol.t) > 0).all(), "times do not increase")
    cell.claim(np.isfinite(sol.momentum).all(), "a state is not finite")


def again(run: Run, cell: Cell) -> None:
    """A second and a third run have the bits of the first."""
    cell.same_path("second call", run.solve(), run.base)
    cell.same_path("third call", run.solve(run.case.problem(run.units)), run.base)


def every(run: Run, cell: Cell) -> None:
    """Every third state is a state of the whole run."""
    n = len(run.base.t)
    cell.same_path("every third state", run.solve(every=3), run.base, sorted({*range(0, n, 3), n - 1}))


def times(run: Run, cell: Cell) -> None:
    """States at given times are those of dense output, at these times and no others."""
    sol = run.solve(times=TIMES)
    cell.same("times asked for", sol.t, TIMES)
    cell.same_path("states at times", sol, run.base.at(TIMES))
    with_start = np.array([0.0, *TIMES])
    cell.same("times asked for, the start among them", run.solve(times=with_start).t, with_start)


def max_turn(run: Run, cell: Cell) -> None:
    """States between steps leave those of the steps as they are."""
    turn = np.linalg.norm(run.base.omega[:-1], axis=1) * np.diff(run.base.t)
    sol = run.solve(max_turn=min(0.02, 0.3 * float(turn.max())))
    kept = np.isin(sol.t, run.base.t)
    cell.claim(len(sol.t) > len(run.base.t), "no states between steps")
    cell.claim(kept.sum() == len(run.base.t), "steps are missing")
    if kept.sum() == len(run.base.t):
        cell.close("momentum at steps", sol.momentum[kept], run.base.momentum, ROUND_OFF)


def at_steps(run: Run, cell: Cell) -> None:
    """Dense output at the ends of steps gives the states there."""
    base = run.base
    sol = base.at(base.t)
    cell.close_states("at steps", (sol.quaternion, sol.momentum), (base.quaternion, base.momentum), ROUND_OFF)


def events(run: Run, cell: Cell) -> None:
    """Events leave the path as it is; each state at an event is one of dense output."""
    sol = run.solve(events=[event_at(run), level_event()])
    cell.same_path("path with events", sol, run.base)
    cell.claim(len(sol.events[0]) == 1, f"the event occurred {len(sol.events[0])} times")
    for found in sol.events:
        if len(found):
            state = run.base.at(found.t)
            cell.close_states(
                "at the event", (found.quaternion, found.momentum), (state.quaternion, state.momentum), 1e-11
            )
    if len(sol.events[0]):
        cell.claim(abs(sol.events[0].t[0] - EVENT) < 1e-9, f"the event is at {sol.events[0].t[0]!r}")


def terminal(run: Run, cell: Cell) -> None:
    """A terminal event ends the run; the states before it are those of the run without it."""
    sol = run.solve(events=event_at(run, terminal=True))
    cell.claim(abs(sol.t[-1] - EVENT) < 1e-9, f"ends at {sol.t[-1]!r}, not at {EVENT}")
    if run.equal:  # otherwise the steps depend on where the run ends
        before = sol.t < EVENT - 1e-9
        whole = run.base.momentum[run.base.t < EVENT - 1e-9]
        cell.close("momentum before the event", sol.momentum[before], whole, ROUND_OFF)
    state = run.base.at(sol.t[-1:])
    cell.close_states(
        "at the event", (sol.quaternion[-1:], sol.momentum[-1:]), (state.quaternion, state.momentum), 1e-11
    )


def tangent(run: Run, cell: Cell) -> None:
    """Derivatives leave the path as it is, and are those of neighbouring runs."""
    sol = run.solve(tangent=True)
    cell.same_path("path with derivatives", sol, run.base)
    matrix = sol.tangent.matrix[-1]
    h = {"dt": 1e-4, "method, tol": 1e-2}.get(run.how, 1e-3)
    allowed = max(run.error, 2e-4)
    if run.how == "method, tol":  # neighbours may take another number of steps, with another error
        allowed = max(allowed, 18 * run.base.error_estimate / (12 * h))
    for axis in range(3):
        ends = [_neighbour(run, axis, s * h) for s in (-2, -1, 1, 2)]
        slope = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h)
        cell.close(f"derivative by momentum {axis}", matrix[3:, 3 + axis], slope, allowed)


def _neighbour(run: Run, axis: int, change: float) -> np.ndarray:
    momentum = np.array(run.problem.momentum, dtype=float)
    momentum[axis] += change
    problem = run.problem.starting(attitude=run.problem.quaternion, momentum=momentum)
    end: np.ndarray = run.solve(problem).momentum[-1]
    return end


def gradient(run: Run, cell: Cell) -> None:
    """The gradient of a function of the end is that of the derivatives of the states."""
    options = {name: value for name, value in run.options().items() if name != "progress"}
    if not run.equal or run.case.control is not None:
        raise Skip
    found = ph.gradient(_second, run.problem, options["method"], dt=options["dt"], steps=round(END / STEP))
    matrix = run.solve(tangent=True).tangent.matrix[-1]
    cell.close("gradient by momentum", np.asarray(found.momentum), matrix[4, 3:], 1e-9)


def _second(R: Any, momentum: Any) -> Any:
    return momentum[1]
