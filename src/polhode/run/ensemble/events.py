"""Events of an ensemble: the search of `ph.solve`, applied to each body."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...physics.observers.event import checked
from .. import with_states
from ..dense import Steps
from ..event_search import with_events

if TYPE_CHECKING:
    from ...results.ensemble import Ensemble
    from .api import Task


def refuse_with_events(**given: Any) -> None:
    """Refuse arguments that drop steps or store them outside memory."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"events need every step in memory; remove the argument {name}")


def run_with_events(task: Task, events: Any) -> Ensemble:
    """Run all bodies, and locate the events of each."""
    wanted = checked(events, task.problem(0))
    if task.method.has_own_time:
        raise InputError(f"events of an ensemble need steps of one length, and {task.method.name} chooses its own")
    if any(event.terminal for event in wanted):
        raise InputError("the bodies of an ensemble end together, so no event may be terminal; use ph.solve for that")
    many, method, found = task.run(), task.method.base or task.method, []
    for i in range(len(many)):
        problem, sol = task.problem(i), many[i]
        steps = with_states.Steps(problem) if task.states else Steps(problem, method, sol.dt)
        found.append(with_events(problem, steps, sol, checked(wanted, problem)).events)
    return dataclasses.replace(many, events=[list(of_event) for of_event in zip(*found, strict=True)])
