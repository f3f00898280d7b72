"""Runs with equal steps under sampled-data control, between the samples and at them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from ..methods import Method
from ..physics.control.controller import Controller
from ..physics.observers.event import Event
from ..physics.problem import Problem
from ..results.progress import Progress
from ..results.store import checkpoint, stored_control
from ..results.trajectory import Trajectory, info_of
from .control import check_body, check_method, check_period, sampled, sampling_of, with_controller
from .control_in_python import InPython
from .cut_steps import with_edges
from .dense import dense_between
from .event_search import with_events
from .failures import explain_in, warn_of_lost_motion
from .fixed_step import RunState, solved
from .growing_file import Place
from .integrator import Engine, check_compiled, check_fit
from .located_steps import LocatedSteps, can_locate
from .step_count import number_of_steps
from .system import System


class LocatedControl(LocatedSteps):
    """The same in a field that jumps with the state: between two samples, steps are located as without a controller.

    The commands are held there, so that they are no conditions.
    """

    @functools.cached_property
    def crossing(self) -> System:
        """The steps between samples that cross jumps."""
        return System(with_edges(self.whole, float(self.edges[-1])), self.method)

    def sampled(self, sample: InPython) -> Engine:
        """Return the loop over steps and samples."""
        return self.sides.sampled(sample, self.advance)


def steps_of(problem: Problem, method: Method, end: float, located: bool) -> System | LocatedControl:
    """Return the steps of a run to an end time; `located` says that they end at jumps of the field in the state."""
    if located:
        return LocatedControl.until(end, problem, method)  # type: ignore[return-value]  # of this class
    return System(with_edges(problem, end), method)


# --- runs -------------------------------------------------------------------------------------------


def solve_fixed(
    problem: Problem, control: Controller, period: float, method: Method, dt: float, t_end: Any, steps: Any,
    every: int, progress: Any, events: Sequence[Event], place: Place, law: dict[str, Any],
) -> Trajectory:  # fmt: skip
    """Integrate a problem under control, with equal steps; `law` is the `run_spec` of the controller, for a file."""
    check_body(problem.body.linear_axis is not None)
    check_compiled(problem, "control", "write the torque as a formula")
    inner = with_controller(problem, control, period)
    per, count = check_period(period, dt), number_of_steps(problem, dt, t_end, steps, sampled=True)
    check_fit(check_method(method), inner)
    sample = InPython(inner)
    equal = steps_of(inner, method, problem.t0 + count * dt, can_locate(problem, method))
    state = RunState(equal.sampled(sample), equal.problem, dt, count, every, method=method)
    bar = Progress(progress, method.name, count)
    kept = place.recorder(
        inner, state, info_of(inner, method=method.name, dt=dt, every=every),
        lambda: checkpoint.run_spec(problem, method, dt=dt, every=every, digits=None, **law),
        lambda: stored_control.attribute(sampling_of(inner, period)),
    )  # fmt: skip

    def reason(run: RunState[Problem]) -> str:
        if not sample.fault and run.done and run.done % per == 0:
            sample(run.t, run.y, run.run.system)
        return sample.fault or explain_in(
            run, lambda t: problem.check_field(t, *problem.user_axes(*run.y[:2]), "there")
        )

    if isinstance(kept, Trajectory):
        bar.note(f"{place.out} is complete; nothing is changed")
        sol = kept
    else:
        with sampled(inner, period) if place.out is None else contextlib.nullcontext():
            sol = solved(state, kept, bar, reason)
        warn_of_lost_motion(state)
    if every == 1:
        sol.dense = dense_between(inner, equal, sol)
    if isinstance(equal, LocatedControl):
        equal.warn_of_sliding(count)
    if events:
        sol = with_events(inner, equal, sol, events)
        sol.stored, sol._problem = dict(sol.stored), None  # the problem without the controller is another one
    if place.out is None:
        sol.control = sampling_of(inner, period).samples(sol.t, sol.states)
    return sol
