"""Events of an ensemble: the search of `ph.solve`, applied to each body."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, StepError
from ...methods import EXAMPLE
from ...physics.observers.event import Event, checked
from ...results.trajectory import Trajectory
from .. import control
from ..event_search import with_events
from ..integrator import check_compiled

if TYPE_CHECKING:
    from ...results.ensemble import Ensemble
    from .task import Task

PATH_BYTES = 2.5e8
"""Largest size in bytes of the states of all steps of the bodies that are searched together."""


def wanted_events(task: Task, events: Any) -> tuple[Event, ...]:
    """Return the checked events of a task; none of them may end the run of a body."""
    if events is None:
        return ()
    wanted = checked(events, task.problem(0))
    if task.method.has_own_time:
        raise InputError(
            f"events of an ensemble need steps of one length, and {task.method.name} chooses its own; use "
            f"{task.method.base.name if task.method.base else EXAMPLE}"
        )
    if any(event.terminal for event in wanted):
        raise InputError("the bodies of an ensemble end together, so no event may be terminal; use ph.solve for that")
    check_compiled(task.model, "an event search", "leave out `events`")
    return tuple(wanted)


def added(task: Task, many: Ensemble) -> Ensemble:
    """Return the result with the events of each body, if there are any to be found."""
    if not task.events:
        return many
    by_body = _of_adaptive_steps(task) if task.lands else _of_equal_steps(task, many)
    return dataclasses.replace(many, events=[list(of_event) for of_event in zip(*by_body, strict=True)])


def _of_equal_steps(task: Task, many: Ensemble) -> Iterator[list[Trajectory]]:
    """Yield the events of each body; the search needs every step, so that bodies are run again if not all were kept."""
    number = task.batch.number
    all_kept = task.every == 1 and task.wanted is None and task.stops is None and task.counts is None
    together = number if all_kept else _searched_together(task)
    for first in range(0, number, together):
        chosen = np.arange(first, min(first + together, number))
        path = many if all_kept else _every_step(task, chosen).run()
        for k, i in enumerate(chosen.tolist()):
            problem, sol = task.problem(i), path[k]
            yield with_events(problem, task.steps(i, sol), sol, checked(list(task.events), problem)).events


def _searched_together(task: Task) -> int:
    return 1 if task.counts is not None else max(1, int(PATH_BYTES / (8 * 7 * (task.count + 1))))


def _every_step(task: Task, chosen: np.ndarray) -> Task:
    """Return some bodies of a task, with all steps kept; bodies with their own numbers of steps one by one."""
    count = task.count if task.counts is None else int(task.counts[chosen[0]])
    return dataclasses.replace(
        task, batch=task.batch.some(chosen), count=count, every=1, counts=None, wanted=None, stops=None, events=()
    )


def _of_adaptive_steps(task: Task) -> Iterator[list[Trajectory]]:
    """Yield the events of each body, run by itself to the same tolerance: a run of many bodies keeps no steps."""
    assert task.stops is not None
    for i in range(task.batch.number):
        (problem, given), longest = control.separated(task.problem(i)), math.inf
        if task.longest is not None:
            longest = float(task.batch.of(task.longest, i))
        given |= {"step_tol": task.step_tol} if task.tol is None else {"tol": task.tol}
        given |= {"max_step": longest} if longest < math.inf else {}
        yield _searched(problem, float(task.stops[-1]), task.events, given)


def _searched(problem: Any, end: float, events: Sequence[Event], given: dict[str, Any]) -> list[Trajectory]:
    """Return the events of one body; of a body that fails, those before its failure."""
    from ..solve import solve

    try:
        return solve(problem, t_end=end, events=list(events), progress=False, **given).events
    except StepError as failed:
        before = failed.partial
    if before is None or len(before) < 2:
        raise StepError(f"the events of a body cannot be found: it fails at its start, t = {problem.t0:g}", None)
    return solve(problem, t_end=float(before.t[-2]), events=list(events), progress=False, **given).events
