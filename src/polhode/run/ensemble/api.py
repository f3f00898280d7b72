"""Ensembles: many bodies, each with its own inertia, state, parameters and step, and one method for all."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ...compile import notice, threads
from ...errors import InputError, ResultWarning
from ...methods import Method, methods
from ...methods.adaptive.verner87 import verner87
from ...methods.families.jacobi import jacobi
from ...physics.control.controller import control_in
from ...physics.fields import Field, FieldTemplate
from ...physics.fields.switches import switches_of
from ...physics.observers.statistics import watch
from ...physics.problem import Problem, finite_number
from ...physics.validate import apart, check_times, check_unit_of_time, flag, positive, whole_number
from ...results.ensemble import Ensemble
from ...results.progress import Progress, Runs
from ...results.store import checkpoint
from .. import control as sampled_control
from .. import with_states
from ..located_steps import can_locate
from ..noise import check_forward, check_moving
from ..schedule import Bounds
from ..step_control import LARGEST, SMALLEST, has_series, is_smooth
from ..step_count import end_time
from ..tangent import check_tangent
from . import alone, chaos_words, kept_times, sampled_statistics, varying
from .batch import model_problem, step_counts
from .controlled import check_closed_loops, check_controlled, with_controller
from .events import wanted_events
from .inputs import Inputs, read
from .lane_steps import adaptive_method
from .run import DEVICES
from .schedule import is_pulsed, longest_steps
from .start import Start
from .task import Task


def ensemble(
    bodies: Any,
    attitudes: Any = None,
    momenta: Any = None,
    method: str | Method | None = None,
    *,
    body: Any = None,
    attitude: Any = None,
    euler: Any = None,
    euler_deg: Any = None,
    momentum: Any = None,
    omega: Any = None,
    spatial_momentum: Any = None,
    spatial_omega: Any = None,
    field: Field | FieldTemplate | None = None,
    params: dict[str, Any] | None = None,
    dt: Any = None,
    steps: Any = None,
    tol: float | None = None,
    step_tol: float | None = None,
    max_step: float | None = None,
    t_end: float | None = None,
    every: int | None = None,
    times: Any = None,
    t0: float | None = None,
    device: str = "cpu",
    statistics: Any = None,
    events: Any = None,
    scheduler: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    unit: int | None = None,
    progress: Any = None,
    control: Any = None,
    period: float | None = None,
    tangent: bool = False,
) -> Ensemble:
    """Integrate many bodies with one method, in the SIMD lanes of all cores, or on an NVIDIA GPU with one thread each.

    There are two forms:

        ph.ensemble(problem, method, omega=(N, 3), params={"mgl": (N,)}, ...)
        ph.ensemble(bodies, attitudes, momenta, method, ...)

    In the first, omitted arguments take the values of the problem for all bodies: body, field, parameters, attitude,
    momentum (in the body frame), t0 and t_end. `problem` may be a list of problems whose fields share one formula.

    Parameters
    ----------
    bodies : a Problem, or a list of them; or (N, 3) principal moments, (N, 3, 3) tensors, a list of `ph.Body`, or one
        of these for all
    attitudes : as `attitude`; None is the identity
    momenta : (N, 3) angular momenta in the body frame, or one for all
    body : with a Problem, other bodies, in the forms of `bodies`
    attitude : (N, 4) unit quaternions, SCALAR FIRST, body to space, (N, 3, 3) rotation matrices, or a scipy Rotation;
        or one for all
    euler, euler_deg : instead of `attitude`, ("ZXZ", angles) with a scipy axis sequence and angles (N, 3) or (3,), in
        radians or degrees
    momentum, omega, spatial_momentum, spatial_omega : (N, 3) or one for all: the initial rotation, exactly one of
        them; the first two are in the body frame
    method : a name, an expression, or a Method; none with `tol` or `step_tol`
    field : a torque or potential, bound or not
    params : values of its parameters: for each parameter one value for all bodies, or an array with one value for each
        body, with first dimension N (or 1). The shape of one value is known from a bound field or from the default;
        otherwise it is the shape that the field's function accepts
    dt : step, one for all or (N,). With `steps`, a negative dt runs backwards in time
    steps : number of steps, one for all or (N,); with (N,) only the start and the end are kept
    t_end : end time, instead of steps, and with `tol`; by default the last of `times`, or that of the problem. A t_end
        before t0 runs backwards in time
    tol : instead of a method, `dt` and `steps`: the final error allowed for every body, of the attitude in radians, of
        the momentum relative to its largest size in the run. Every body takes its own adaptive Taylor steps, with the
        smallest terms in single precision; free bodies are exact. ``.steps`` has the number of steps of each body,
        ``.error_estimate`` its accuracy, ``.method`` the highest order of the series (in a file, that of a step
        tolerance `tol`). A ResultWarning names bodies for which `tol` is unreachable. In a field with branches
        (where, abs, comparisons) bodies are run one by one, in memory, and jumps are located as by `ph.solve`
    step_tol : instead of `tol`, the error allowed in each step. The momentum tolerance is tighter far from the end,
        because momentum errors accumulate in the attitude. Errors at the end are not estimated
    max_step : with `tol` or `step_tol`, the longest step, for torques that act only for a short time
    every : keep steps 0, every, 2 every, ... and the last; by default the start and the end. Not with `tol`, because
        every body has its own steps: give `times`
    times : keep the states at these times, and no others; the last is the default t_end. Adaptive steps end there; with
        a method and `dt` each must be the end of a step, t0 + n dt
    device : "cpu", or "cuda" for an NVIDIA GPU (extra `cuda`); the results agree to round-off, with
        tol or step_tol to the tolerance
    statistics : observables to accumulate instead of storing the path: "energy", "kinetic_energy", "momentum_norm",
        "spatial_momentum", "momentum", "omega", the chaos indicators "megno", "mean_megno", "fli" (whose largest value
        is the fast Lyapunov indicator) and "lyapunov" (the largest exponent), functions of t, R, omega and parameters
        that return a number (as for `ph.event`), or a list of these. They are evaluated at the start, after every
        `every`-th step (by default every step) and at the end: ``.statistics["energy"].drift`` and so on. With `times`
        they are evaluated at the start, at these times and at the end. Adaptive steps need `times`: a mean over steps
        would count fast phases more often
    events : events from `ph.event`, none of them terminal; ``.events[k][i]`` holds the states of body i at event k.
        Every step is kept, unless `every`, `times`, `statistics` or `out` is given. Each body takes some milliseconds;
        with `tol` or `step_tol` it is run by itself for the search, as by `ph.solve`
    out : a ``.zarr`` store to which finished bodies are written; the result then reads from it
    overwrite : replace an existing store
    resume : continue the store of an interrupted run; all arguments must be the same. With a method, an unfinished
        shard continues from its checkpoint; with `tol` it is run again
    scheduler : a Dask cluster, "tcp://host:port" or a `distributed.Client`, whose workers write to `out`
    unit : shard size, the number of bodies run and written together; by default about a second of work
    progress : None (a bar if stderr is a terminal), True, False, or a function of the fraction done
    control, period : a controller that is a formula, and the time between its samples, as in `ph.solve`; its
        parameters and the initial values of its memory are among `params`. ``.states`` has what it decided. With
        `tol`, `step_tol` or `tangent`, bodies are run one by one
    tangent : also give the derivatives of these states with respect to the initial states, the inertia and the
        parameters of the field, exact for the discrete steps: ``.tangent``. With `tol` or `step_tol` the steps are
        those of a Runge-Kutta pair

    Returns
    -------
    Ensemble

    Warns
    -----
    ResultWarning : bodies failed (`failed` has the step numbers), or may be less accurate than `tol`

    Examples
    --------
    >>> import numpy as np
    >>> omega = np.random.default_rng(1).normal(size=(100, 3))
    >>> many = ph.ensemble([1.5, 2.0, 2.5], omega=omega, method="dmv10", dt=0.1, steps=10)
    >>> many.quaternion.shape
    (2, 100, 4)
    """
    overwrite, resume = flag("overwrite", overwrite), flag("resume", resume)
    Progress.check(progress)
    said = {
        "body": body, "attitude": attitude, "euler": euler, "euler_deg": euler_deg, "momentum": momentum,
        "omega": omega, "spatial_momentum": spatial_momentum, "spatial_omega": spatial_omega, "field": field,
        "params": params, "t0": t0, "t_end": t_end,
    }  # fmt: skip
    if tangent is not False and flag("tangent", tangent):
        _refuse_with_tangent(out=out, scheduler=scheduler)
    inputs, method = read(bodies, attitudes, momenta, method, said, timed=steps is None)
    sampled_control.refuse_controlled(inputs.field)
    if control is not None or period is not None:
        sampled_control.refuse(scheduler=scheduler)
        inputs = with_controller(inputs, control, period, dt)
    inputs = kept_times.ending(inputs, times, t_end)
    if tol is not None or step_tol is not None or (t_end is not None and method is None):
        _refuse_with_tolerance(every, method=method, dt=dt, steps=steps)
        task = to_tolerance(inputs, tol, step_tol, max_step, device, times, statistics, tangent)
        task = dataclasses.replace(task, events=wanted_events(task, events))
        if task.chaos:
            _refuse_with_chaos(out=out, scheduler=scheduler, events=events, control=control)
            like = bodies if isinstance(bodies, Problem) else task.model
            varied = dataclasses.replace(inputs, field=chaos_words.varied_problem(task, like).field)
            run = to_tolerance(varied, tol, step_tol, max_step, device, times)
            many = chaos_words.observed(task, _in_memory(run, progress))
            return kept_times.selected(task, _with_warnings(run, many, tol))
        many = _with_warnings(task, _run(task, out, overwrite, resume, scheduler, unit, progress), tol)
        return many if out is not None or scheduler is not None else kept_times.selected(task, many)
    Bounds.refuse(None, max_step)
    if method is None or dt is None or (steps is None and inputs.t_end is None):
        raise InputError("an ensemble needs either method, dt and steps (or t_end), or tol and t_end")
    dt, steps = inputs.steps(methods[method], dt, steps, t_end)
    alike = not (isinstance(steps, list | tuple) or bool(getattr(steps, "ndim", 0)))
    if events is not None and every is None and statistics is None and times is None and out is None and alike:
        every = 1
    task = fixed_step(
        inputs, method, dt=dt, steps=steps if alike else 1, every=every if alike else None, device=device,
        statistics=statistics, tangent=tangent,
    )  # fmt: skip
    if not alike:
        _refuse_with_own_steps(every=every, times=times, statistics=statistics, out=out, scheduler=scheduler)
        counts = step_counts(steps, task.batch.number)
        longest = int(counts.max())
        task = dataclasses.replace(task, count=longest, every=longest, counts=counts)
    elif times is not None:
        if every is not None:
            raise InputError("give every or times, not both: each of them chooses the states that are kept")
        task = kept_times.among_steps(task, times)
    elif statistics is not None and control_in(task.batch.field) is not None:
        task = kept_times.at_steps(task)
    task = dataclasses.replace(task, events=wanted_events(task, events))
    if task.chaos:
        _refuse_with_chaos(out=out, scheduler=scheduler, control=control)
        task = chaos_words.with_variation(task, bodies if isinstance(bodies, Problem) else task.model)
    task = dataclasses.replace(task, in_lanes=out is not None or scheduler is not None)
    many = _with_warnings(task, _run(task, out, overwrite, resume, scheduler, unit, progress))
    return many if task.in_lanes else kept_times.selected(task, many)


def _run(task: Task, out: Any, overwrite: bool, resume: bool, scheduler: Any, unit: Any, progress: Any) -> Ensemble:
    """Run a task in memory, or shard by shard into a store."""
    if task.states and control_in(task.batch.field) is None:
        with_states.refuse(out=out, scheduler=scheduler)
    if task.alone and (out is not None or scheduler is not None):
        name = "scheduler" if out is None else "out"
        raise InputError(
            "with a controller, a torque that is no formula, or a field with branches (where, abs, comparisons), "
            f"bodies are run one by one, in memory; leave out `{name}`, or give a method, dt and steps"
        )
    if task.method.states and (out is not None or scheduler is not None):
        name = "scheduler" if out is None else "out"
        raise InputError(f"ensemble stores do not hold the chains of {task.method.name}; leave out `{name}`")
    if out is None and scheduler is None:
        _refuse_without_file(overwrite=overwrite, resume=resume, unit=unit)
        return _in_memory(task, progress)
    from . import shards

    if resume:
        checkpoint.check_resumable(task.model.field, out)
    return shards.run(
        task, out, overwrite=overwrite, resume=resume, scheduler=scheduler, shard_size=unit, progress=progress
    )


def _in_memory(task: Task, progress: Any) -> Ensemble:
    """Run a task in memory, and report its progress if somebody can see it."""
    with Runs(progress, f"{task.batch.number} bodies", one=task.tol is None or task.alone) as runs:
        watched = threads.watched(runs.tell) if runs.has_reader else contextlib.nullcontext()
        with notice.about(notice.named(task.method.name, task.model), runs.progress.visible), watched:
            return task.run()


def _with_warnings(task: Task, many: Ensemble, tol: float | None = None) -> Ensemble:
    """Return the result, and warn about each of its shortcomings."""
    from . import report

    for message in report.shortcomings(task, many, tol):
        warnings.warn(message, ResultWarning, stacklevel=3)
    return many


def _refuse_with_own_steps(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} needs the same number of steps for all bodies; leave out `{name}`, or give one number of steps"
            )


def _refuse_with_tolerance(every: Any, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"with tol or step_tol the steps are adaptive; leave out `{name}`")
    if every is not None:
        raise InputError(
            "with tol or step_tol every body has its own steps, so that every k-th of them are different times and "
            "numbers of states; give times=[...], the times to keep for all bodies"
        )


def _refuse_with_tangent(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"derivatives are computed in memory, without {name}; leave out `{name}` or `tangent`")


def _refuse_with_chaos(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"chaos indicators cannot be combined with {name}; leave out `{name}`")


def _refuse_without_file(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{name} needs a file; also give out='crowd.zarr'")


def prepared(
    bodies: Any, attitudes: Any, momenta: Any, method: str | Method, *, field: Any = None,
    params: dict[str, Any] | None = None, t0: float = 0.0, **run: Any,
) -> Task:  # fmt: skip
    """Check the array arguments of `ensemble`; `run` has the keywords of `fixed_step`."""
    inputs = Inputs(bodies, attitudes, Start("momenta", momenta), field, params or {}, finite_number("t0", t0))
    return fixed_step(inputs, method, **run)


def fixed_step(
    inputs: Inputs, method: str | Method, *, dt: Any, steps: int, every: int | None = None, device: str = "cpu",
    statistics: Any = None, tangent: bool = False,
) -> Task:  # fmt: skip
    """Check the arguments of `ensemble` with fixed steps."""
    check_device(device)
    chosen = methods[method]
    count = whole_number("steps", steps)
    every = (count if statistics is None else 1) if every is None else min(whole_number("every", every), count)
    t0, batch = inputs.t0, inputs.batch(dt, device)
    controlled = control_in(batch.field) is not None
    if batch.field is not None and batch.field.states and not controlled:
        with_states.refuse(statistics=statistics)
        varying.check_same_start(batch, t0)
    check_times(t0, float(batch.dt[np.abs(batch.dt).argmin()]), count)
    check_unit_of_time("dt", float(np.abs(batch.dt).min()), float(np.abs(batch.dt).max()), chosen.asks.powers)
    check_forward(chosen, float(batch.dt.min()))
    check_moving(chosen, batch.momentum)
    if controlled:
        check_controlled(batch, chosen)
    model = model_problem(batch, chosen, t0)
    if controlled:
        check_closed_loops(model, chosen, tangent, device=device if device != "cpu" else None, statistics=statistics)
    elif tangent:
        one_by_one = device == "cpu" and statistics is None and can_locate(model, chosen)
        check_tangent(model, chosen, located=one_by_one)
    return Task(batch, chosen, model, t0, count, every, device, watch(statistics, model), tangent=tangent)


def check_device(device: Any) -> None:
    """Refuse an unknown device."""
    if not isinstance(device, str) or device not in DEVICES:
        raise InputError(f"device must be one of {', '.join(map(repr, DEVICES))}; got {device!r}")


def to_tolerance(
    inputs: Inputs, tol: Any, step_tol: Any, max_step: Any, device: str, times: Any = None, statistics: Any = None,
    tangent: bool = False,
) -> Task:  # fmt: skip
    """Check the arguments of `ensemble` with a tolerance."""
    t0, t_end = inputs.t0, inputs.t_end
    if (tol is None) == (step_tol is None) or t_end is None:
        raise InputError(
            "give t_end, and either tol, the error allowed at the end, or step_tol, the error of one step; got "
            f"tol={tol!r}, step_tol={step_tol!r} and t_end={t_end!r}"
        )
    name, given = ("tol", tol) if step_tol is None else ("step_tol", step_tol)
    given, t_end = finite_number(name, given), finite_number("t_end", t_end)
    if not SMALLEST <= given <= LARGEST:
        least, most, got = apart(SMALLEST, LARGEST, given)
        raise InputError(f"{name} must be from {least} to {most}; got {got}")
    t_end = end_time(inputs, t_end, backward=True)
    check_unit_of_time("t_end - t0", abs(t_end - t0), abs(t_end - t0))
    check_device(device)
    batch = inputs.batch(t_end - t0, device)
    free = batch.field is None
    if batch.field is not None and batch.field.states:
        varying.check_same_start(batch, t0)
    by_itself = alone.needed(batch.field)
    if by_itself and device != "cpu":
        raise InputError(
            f"{name} with a controller, a torque that is no formula, or a field with branches (where, abs, "
            "comparisons) runs bodies one by one on the processor; leave out `device`, or give a method, dt "
            "and steps"
        )
    if not (free or by_itself or is_smooth(batch.field) or _can_use_pair(batch.field)):
        raise InputError(
            f"{name} needs a field without branches (where, abs, comparisons) for many bodies; give a method, dt and "
            "steps"
        )
    if batch.field is None:
        chosen = jacobi
    else:
        chosen = verner87 if by_itself else adaptive_method(batch.field, given, device, tangent, tol is not None)
    has_states = batch.field is not None and bool(batch.field.states)
    model = model_problem(batch, verner87 if has_states else chosen, t0)
    if control_in(batch.field) is not None:
        check_closed_loops(model, chosen, tangent)
    elif tangent:
        check_tangent(model, chosen, located=by_itself)
    if by_itself:
        longest = None if max_step is None else np.array([positive("max_step", max_step)])
    else:
        longest = None if free else longest_steps(batch, t0, t_end, max_step)
    pulsed = is_pulsed(longest, abs(t_end - t0))
    if longest is not None and max_step is not None:
        pulsed = pulsed and float(longest.min()) < max_step
    if pulsed and device != "cpu":
        raise InputError(
            "the torque has pulses in time that are too short for steps on a GPU; leave out `device`: bodies "
            "are then run one by one, with short steps around the pulses only"
        )
    if pulsed:
        chosen, longest = verner87, None if max_step is None else np.array([float(max_step)])
    if statistics is not None:
        sampled_statistics.check_times(name, times)
    stops = kept_times.checked(times, t0, t_end)
    return Task(
        batch, chosen, model, t0, 1, 1, device, watch(statistics, model), tolerance=None if free else given,
        longest=longest, tol=None if tol is None else given, stops=np.array([t_end]) if stops is None else stops,
        asked=kept_times.asked(times), step_tol=None if step_tol is None else given, tangent=tangent, pulsed=pulsed,
    )  # fmt: skip


def _can_use_pair(field: Any) -> bool:
    """Return whether steps of the pair 8(7) solve a field with branches: it has no series, and no edges in time."""
    return not has_series(field) and not switches_of(field)
