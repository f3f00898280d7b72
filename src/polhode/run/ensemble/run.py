"""Run the bodies of a task in compiled loops, on the cores of a processor or on a GPU, at once or in slices."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._memo import MADE
from ...errors import InputError
from ...kernels.loops import COLUMNS
from ...methods.adaptive.controller import controlled_step_from_estimate
from ...methods.adaptive.verner87 import verner87
from ...numbers import floats
from ...physics.fields.states import places
from ...physics.observers.statistics import same_system
from .. import control
from ..integrator import beginning, torque_kernel, unchanged
from ..parts import Commands
from ..system import System
from . import backwards, edges, kept_times
from .lane_steps import LaneSteps, lane_steps

if TYPE_CHECKING:
    from .task import Task


def _compiled(task: Task) -> Any:
    """Return the compiled loop of a task with fixed steps."""
    from ...compile.batch import fixed_step
    from ...compile.lazily import program

    batch, method = task.batch, task.method

    def build_loop() -> Any:
        parts = *_step(task), _sizes(task), batch.per_body_dt, _beginning(task)
        if control.is_controlled(task.model):
            law = Commands(task.model)
            return fixed_step.loop(*parts, sample=law.sample(), period=law.period_place)
        return fixed_step.loop(
            *parts, *method.processors(floats.number), method.has_own_time, task.wanted, kept=method.kept_memory,
            system_of=_observed_system(task),
        )  # fmt: skip

    return program(build_loop, "lanes", batch.per_body_dt, *_structure(task)).run


def _step(task: Task) -> tuple[Any, Any]:
    """Return the kernels of the step and of the torque."""
    system = System(task.model, task.method)
    step, torque = system.step(), system.torque()
    return (step, torque) if task.tangent_places is None else (_with_tangent(task, step), torque)


def _with_tangent(task: Task, step: Any) -> Any:
    """Return the kernel of a step with a tangent."""
    from ...compile.batch import lane_tangents

    assert task.tangent_places is not None
    made = lane_tangents.fixed_step(step, beginning(task.method), task.tangent_places)
    return lane_tangents.growing_step(made) if task.chaos else made


def _observed_system(task: Task) -> Any:
    """Return the kernel of the system that statistics read; chaos indicators also read the variation."""
    if not task.chaos:
        return same_system
    from ...compile.batch import lane_tangents

    assert task.tangent_places is not None
    return lane_tangents.observed_system(task.tangent_places)


def _beginning(task: Task) -> Any:
    """Return the kernel of the first state; one with a tangent is that of the data."""
    return beginning(task.method) if task.tangent_places is None else unchanged


def _sizes(task: Task) -> Any:
    """Return the sizes of the layout of a task."""
    from ...compile.batch import layout

    field = task.batch.field
    given, _ = task.given()
    columns, states = ((), ()) if field is None else (tuple(field.columns), tuple(places(field)))
    return layout.sizes(given, columns, states if task.tangent_places is None else task.tangent_places.states)


def _structure(task: Task) -> tuple[Hashable, ...]:
    """Return what the kernels of a task are built from."""
    observed = None if task.wanted is None else task.wanted.structure
    model, method = task.model, task.method
    if control.is_controlled(model):
        return task.batch.own is not None, *Commands(model).sampled_key, *System(model, method).key
    return task.batch.own is not None, observed, task.tangent_places, *System(model, method).key


def _cursor(task: Task, group: int = 0) -> Any:
    """Return the loop state of a task at the start of a group of bodies."""
    from ...compile.batch import fixed_step

    kept, columns = len(task.kept) - 1, COLUMNS + task.extra_columns
    sizes = fixed_step.sizes_of_state(_beginning(task), task.states)
    return fixed_step.Cursor.at(group, kept, columns, sizes)


def _loop_arguments(task: Task) -> tuple[float, float, int, Any, np.ndarray]:
    """Return the first arguments of a compiled loop."""
    return float(task.batch.dt[0]), task.t0, task.every, *task.given()


def run_on_cores(task: Task, found: Any, threads: int | None) -> None:
    """Run a task into the arrays `found`."""
    from ...compile.batch import fixed_step

    if task.tolerance is not None:
        _integrate_adaptively(task, found, threads)
        return
    if task.lands:
        kept_times.exact(task, found, functools.partial(run_on_cores, threads=threads))
        return
    task = edges.cut(task)
    run, asked = _compiled(task), _loop_arguments(task)
    fixed_step.run_on_cores(run, *asked, found, functools.partial(_cursor, task), threads)


class Course:
    """A run of a task on one thread in slices: iterate over it.

    Between two slices `arrays` suffice to resume the run, also later in another process, bit for bit.
    """

    NAMES = ("quaternion", "momentum", "behind", "failed", "place", "rows", "saved")

    def __init__(self, task: Task, arrays: Mapping[str, np.ndarray] | None = None) -> None:
        self.task = task = edges.cut(task)
        new = dict(zip(self.NAMES, (*task.found(), *vars(_cursor(task)).values()), strict=True))
        if arrays is not None:
            if any(arrays[name].shape != made.shape or arrays[name].dtype != made.dtype for name, made in new.items()):
                raise InputError(
                    "a checkpoint does not match the bodies and steps to be resumed; run again with overwrite=True"
                )
            new = {name: np.ascontiguousarray(arrays[name]) for name in self.NAMES}
        self.arrays = new

    def __iter__(self) -> Iterator[None]:
        """Run, and yield between slices."""
        from ...compile.batch import fixed_step

        *found, place, rows, saved = self.arrays.values()
        run, cursor = _compiled(self.task), fixed_step.Cursor(place, rows, saved)
        for _ in fixed_step.run_on_one(run, *_loop_arguments(self.task), found, cursor):
            yield

    @property
    def found(self) -> tuple[np.ndarray, ...]:
        """The arrays of the result."""
        return tuple(self.arrays[name] for name in self.NAMES[:4])


def _integrate_adaptively(task: Task, found: Any, threads: int | None) -> None:
    """Run a task with adaptive steps; the step counts are stored after the state.

    Bodies whose first step by series fails are run again with a pair: the torque may begin with the root of zero there,
    such as a drag in the square of the velocity at rest.
    """
    if task.batch.dt[0] < 0:
        backwards.run(task, found, functools.partial(_integrate_adaptively, threads=threads))
        return
    assert task.longest is not None
    longest, *more = np.unique(task.longest).tolist()
    if more:
        for x in (longest, *more):
            _integrate_some_adaptively(task, found, threads, np.flatnonzero(task.longest == x), x)
        return
    _ADAPTIVE[task.device](task, (task.t0, task.times()[1:], longest), found, threads)
    without_series = np.flatnonzero(found[-1] == 1) if task.method.estimated is None else found[-1][:0]
    if len(without_series):
        pair = dataclasses.replace(task, method=verner87)
        _integrate_some_adaptively(pair, found, threads, without_series, longest)


def _adaptively_on_cores(task: Task, times: tuple[float, np.ndarray, float], found: Any, threads: int | None) -> None:
    """Run bodies with the same longest step in lanes."""
    from ...compile.batch import adaptive_step
    from ...compile.lazily import program

    assert task.tolerance is not None
    given, _ = task.given()
    steps, size = _adaptive_steps(task), _sizes(task)
    run = program(lambda: adaptive_step.loop(steps.make(), size), "travelling lanes", size, *steps.key).run
    adaptive_step.run_on_cores(run, times, task.tolerance, (steps.angle, steps.orders), given, found, threads)


def _adaptive_steps(task: Task) -> LaneSteps:
    """Return the adaptive steps of a task, with a tangent if its bodies have one."""
    assert task.tolerance is not None
    steps, places = lane_steps(task.model, task.method, task.tolerance), task.tangent_places
    if places is None:
        return steps
    from ...compile.batch import lane_tangents

    def make() -> Any:
        torque = torque_kernel(task.model, floats.number, task.method)
        return controlled_step_from_estimate(
            task.method, floats.number, torque, lambda attempt: lane_tangents.estimated_step(attempt, places)
        )

    return dataclasses.replace(steps, key=("with tangent", places, *steps.key), make=make)


def _adaptively_on_card(task: Task, times: tuple[float, Any, float], found: Any, threads: int | None) -> None:
    """Run bodies with the same longest step on a GPU."""
    from ...compile import cuda, cuda_adaptive

    assert task.tolerance is not None
    _check_card(task)
    cuda.card()
    given, order = task.given()
    steps, size = _adaptive_steps(task), _sizes(task)
    t0, ends, longest = times
    several = len(ends) > 1
    key = "cuda, adaptive", several, size, *steps.key
    run = MADE(key, lambda: cuda_adaptive.loop(steps.make(), size, several))
    times = (t0, ends if several else ends[0], longest)
    cuda_adaptive.run_on_card(run, times, task.tolerance, steps.angle, given, order, found)


_ADAPTIVE = {"cpu": _adaptively_on_cores, "cuda": _adaptively_on_card}
"""Functions that run bodies to a tolerance, by device."""


def _integrate_some_adaptively(
    task: Task, found: Any, threads: int | None, chosen: np.ndarray, longest: float
) -> None:  # fmt: skip
    """Run some of the bodies, with this longest step, adaptively."""
    part = dataclasses.replace(task, batch=task.batch.some(chosen), longest=np.array([longest]))
    parts = part.found()
    _integrate_adaptively(part, parts, threads)
    for whole, some in zip(found[:-1], parts[:-1], strict=True):
        whole[:, chosen] = some
    found[-1][chosen] = parts[-1]


def _check_card(task: Task) -> None:
    """Refuse a field that cannot be compiled for a GPU."""
    field = task.batch.field
    if field is not None and field.opaque:
        raise InputError(f"only formulas run on a GPU, and {field.untraced[0].no_formula}; use device='cpu'")


def _run_on_card(task: Task, found: Any, threads: int | None) -> None:
    """Run a task on a GPU into the arrays `found`."""
    from ...compile import cuda

    if task.tolerance is not None:
        _integrate_adaptively(task, found, threads)
        return
    if task.lands:
        kept_times.exact(task, found, functools.partial(_run_on_card, threads=threads))
        return
    _check_card(task)
    cuda.card()
    task = edges.cut(task)
    method = task.method
    given, order = task.given()

    def build_loop() -> Any:
        parts = *_step(task), _sizes(task), _beginning(task)
        if control.is_controlled(task.model):
            law = Commands(task.model)
            return cuda.loop(*parts, sample=law.sample(), steps_per_sample=law.steps_per_sample())
        return cuda.loop(
            *parts, *method.processors(floats.number), method.has_own_time, task.wanted, method.kept_memory,
            _observed_system(task),
        )  # fmt: skip

    run = MADE(("cuda", *_structure(task)), build_loop)
    cuda.run_on_card(run, task.t0, task.every, given, order, COLUMNS + task.extra_columns, found)


DEVICES = {"cpu": run_on_cores, "cuda": _run_on_card}
"""Functions that run a task, by the user's name of the device."""
