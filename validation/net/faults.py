"""Progress, Ctrl-C, torques that fail, and more states than fit in memory."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import END, FAILS, STEP
from .check import ALARM, Cell, Skip, within
from .runs import (
    Run,
)


def _progress(cell: Cell, run: Callable[..., Any]) -> Any:
    said: list[float] = []
    result = run(progress=said.append)
    cell.claim(bool(said), "progress is never called")
    cell.claim(not said or said[-1] == 1.0, f"progress ends with {said[-1:]}")
    cell.claim(said == sorted(said), "progress goes back")
    return result


def progress(run: Run, cell: Cell) -> None:
    """A function is told the progress up to 1, and changes no bit."""
    cell.same_path("path with progress", _progress(cell, run.solve), run.base)
    _junk_progress(cell, run.solve)


def _junk_progress(cell: Cell, run: Callable[..., Any]) -> None:
    try:
        run(progress="yes")
    except ph.InputError:
        return
    cell.found.append("progress='yes' is accepted")


def ensemble_progress(run: Run, cell: Cell) -> None:
    """The same for an ensemble."""
    many = _progress(cell, functools.partial(run.ensemble, number=3))
    cell.same("momentum with progress", many.momentum, run.ensemble(number=3).momentum)
    _junk_progress(cell, run.ensemble)


LONG = 2e6
"""An end that no run reaches before it is interrupted."""

PATIENCE = (0.4, 1.6, 6.4)
"""Seconds until Ctrl-C: the second and third after one that came before the first step, while the run was prepared."""

FAR, SOON = 100.0, (0.05, 0.01, 0.002)
"""End and patience for methods without an estimate of their error, which make no longer run; the later ones after a
run that ended before Ctrl-C came."""


def _without_end(run: Run) -> dict[str, Any]:
    if run.equal:
        return {"steps": round(LONG / STEP), "t_end": None}
    return {"t_end": FAR if run.how == "method, tol" else LONG}


def interrupted(run: Run, cell: Cell) -> None:
    """Ctrl-C ends a run within a second, and leaves the states so far."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip  # exact, so that no end is far away
    run.base.t  # noqa: B018 - compiled
    _interrupt(cell, functools.partial(run.solve, **_without_end(run)), run)


def ensemble_interrupted(run: Run, cell: Cell) -> None:
    """Ctrl-C ends an ensemble within a second."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip
    run.ensemble(number=40)
    _interrupt(cell, functools.partial(run.ensemble, number=40, **_without_end(run)), None)


def _interrupt(cell: Cell, long: Callable[[], Any], run: Run | None) -> None:
    if not ALARM:
        raise Skip
    partial = None
    for patience in SOON if run and run.how == "method, tol" else PATIENCE:
        stop, waited = _stopped(long, patience)
        cell.claim(waited < 1.0, f"Ctrl-C took {waited:.1f} s")
        partial = getattr(stop, "partial", None)
        if stop and (partial or not run):
            break
    else:
        cell.found.append("Ctrl-C leaves no .partial" if stop else "the run came to an end that it cannot reach")
    if run and run.equal and partial:
        n = min(len(partial.t), len(run.base.t))
        cell.claim(np.array_equal(partial.momentum[:n], run.base.momentum[:n]), ".partial is of another path")


def _stopped(long: Callable[[], Any], patience: float) -> tuple[KeyboardInterrupt | None, float]:
    """Run until Ctrl-C; return the exception, None if the run ended, and how long it took to come."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings(), within(patience, KeyboardInterrupt):
            warnings.simplefilter("ignore")
            long()
    except KeyboardInterrupt as stop:
        return stop, time.monotonic() - began - patience
    return None, 0.0


def fails(run: Run, cell: Cell) -> None:
    """A torque that ceases to be a number ends the run there, and leaves the states before."""
    check_failure(run, cell)


def check_failure(run: Run, cell: Cell, **more: Any) -> None:
    """Claim that a torque that ceases to be a number ends a run there, with the states before in `.partial`."""
    problem = run.case.problem(run.units, fails=True)
    options = run.options()
    if run.equal and not run.case.traits & {cases.STATES}:
        options["method"] = "mkrk(rk4)"
    try:
        sol = ph.solve(problem, **options | {"t_end": END} | more)
    except ph.StepError as failure:
        partial = failure.partial
        cell.claim(partial is not None, "the StepError has no .partial")
        if partial is not None:
            last = float(partial.t[-1])
            cell.keep("last state", partial.momentum[-1])
            cell.claim(FAILS - STEP <= last <= FAILS + 1e-6, f"the last state is at {last!r}, not at {FAILS}")
    except ph.InputError as refusal:
        if sum(word in str(refusal) for word in ("reasonable number", "jump")):
            cell.found.append(f"blames an argument: {refusal}")
        raise
    else:
        cell.found.append(f"no StepError; the run ends at {sol.t[-1]!r}")


def ensemble_fails(run: Run, cell: Cell) -> None:
    """The body of an ensemble is marked there, and its last state is good."""
    problem = run.case.problem(run.units, fails=True)
    more: dict[str, Any] = {"method": "mkrk(rk4)"} if run.equal and not run.case.traits & {cases.STATES} else {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        many = run.ensemble(problem, number=2, **more)
    cell.claim((many.failed >= 0).all(), f"failed is {many.failed}")
    cell.claim(np.isfinite(many.quaternion[-1]).all(), "the last good state is missing")
    reasons = [str(one.message) for one in said if "failed" in str(one.message)]
    cell.claim(reasons, "no warning says that bodies failed")
    for reason in reasons:
        cell.claim("jump" not in reason, f"names another cause: {reason}")


def memory(run: Run, cell: Cell) -> None:
    """More states than fit in memory are refused before the run."""
    if not run.equal:
        raise Skip  # the number of steps is not known beforehand
    try:
        with within(2.0):
            run.solve(steps=10**13, t_end=None)
    except ph.InputError as refusal:
        if " GB" not in str(refusal):
            raise
    else:
        cell.found.append("not refused")


def ensemble_memory(run: Run, cell: Cell) -> None:
    """The same for an ensemble that keeps every state."""
    if not run.equal:
        raise Skip  # the number of steps is not known beforehand
    try:
        with within(2.0):
            run.ensemble(steps=10**13, t_end=None, every=1)
    except ph.InputError as refusal:
        if " GB" not in str(refusal):
            raise
    else:
        cell.found.append("not refused")
