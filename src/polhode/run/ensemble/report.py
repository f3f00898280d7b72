"""Messages on the shortcomings of an ensemble: bodies that failed or did not reach the tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...kernels.loops import NO_STATE
from ...methods.combinators.compose import whole
from ...numbers import floats
from ...physics.control.controller import ControlField
from ...physics.fields import Field
from ...physics.fields.sides import has_jumps
from ...physics.fields.sums import SumField
from ...physics.fields.variation import VariationField
from ...physics.problem import Problem
from ...physics.validate import excess
from .. import control
from ..cut_steps import can_cut, crossed_edges, crossing
from ..failures import NO_STEP, hardest_to_follow, lost_motion, unsolved, without_derivatives
from ..integrator import torque_kernel
from ..located_steps import INSTEAD_OF_STEP_TOL, conditions_crossed
from . import alone
from .edges import same_edges

if TYPE_CHECKING:
    from ...results.ensemble import Ensemble
    from .task import Task

NOT_DIFFERENTIABLE = (
    "; a variation needs derivatives of the torque, which may not exist at the start, such as those of the root of a "
    "quantity that is zero; begin away from there"
)

NAMED = 5
"""Largest number of bodies named in a message."""


def shortcomings(task: Task, many: Ensemble, tol: float | None = None) -> Iterator[str]:
    """Yield a sentence for each shortcoming of a result."""
    lost = np.flatnonzero(many.failed >= 0) if _has_lost(many.failed) else np.empty(0, int)
    if lost.size:
        first = int(lost[0])
        yield (
            f"{_count_of(lost.size, len(many))} failed and stopped early: {_named(lost)}; body {first} in step "
            f"{many.failed[first]}: {reason(task, many, first)}. `failed` has the step numbers, counted from 1"
        )
    if (field := _jumping_field(task)) is not None:
        yield conditions_crossed(field, f"{task.method.name} in an ensemble", _instead(task))
    if len(found := _crossed_edges(task)):
        yield crossing(task.batch.field, task.method, found, "give tol or step_tol instead of dt")
    if why := _lost_motion(task, many):
        yield why
    if tol is None or many.error_estimate is None:
        return
    off = np.flatnonzero(many.error_estimate > tol)
    if off.size:
        worst = float(many.error_estimate[off].max())
        field = task.batch.field
        jumps = "the field jumps with the state, or " * (field is not None and has_jumps(field))
        yield (
            f"the error at the end may be above tol = {tol:g} for {_count_of(off.size, len(many))}, because {jumps}"
            "round-off, chaos or very short pulses in time make the tolerance unreachable: "
            f"{_named(off)}; the largest estimate is {excess(worst, tol)}, and `error_estimate` has all of them"
        )


FEWEST = 1 << 18
"""Fewest bodies for a thread that looks for failed ones: to wake more takes longer than the pass."""


def _has_lost(failed: np.ndarray) -> bool:
    """Return whether some bodies failed, in one fast pass."""
    from ...compile.threads import share_evenly

    largest = [-1]
    share_evenly(lambda begin, end: largest.append(int(failed[begin:end].max())), len(failed), FEWEST)
    return max(largest) >= 0


def _lost_motion(task: Task, many: Ensemble) -> str:
    """Say that equal steps do not follow the body for which they are longest; of bodies run alone, each run says it."""
    if task.tolerance is not None or task.one_by_one or not task.method.has_step or not len(many):
        return ""
    batch, first, last = task.batch, *(np.asarray(many.momentum[k]) for k in (0, -1))
    sizes = np.sqrt(np.fmax(np.einsum("ij,ij->i", first, first), np.einsum("ij,ij->i", last, last)))
    i = hardest_to_follow(sizes, np.asarray(many.moments), batch.dt)
    if i < 0:
        return ""
    problem, dt = task.problem(i), float(batch.of(batch.dt, i))
    if np.dot(last[i], last[i]) > np.dot(first[i], first[i]):
        problem = problem.starting(attitude=many.quaternion[-1, i], momentum=last[i])
    why = lost_motion(problem, task.method, dt, task.count, dt)
    return f"body {i}: {why}" if why else ""


def _crossed_edges(task: Task) -> np.ndarray:
    """Return the edges in time of the first field that equal steps cross; pulses of a controller are no such edges."""
    cut = control.is_controlled(task.model) or can_cut(task.model, task.method)
    if task.tolerance is not None or task.one_by_one or (cut and same_edges(task)):
        return np.empty(0)
    end = task.t0 + task.count * float(task.batch.dt[0])
    return np.concatenate([np.empty(0), *(crossed_edges(part, task.t0, end) for part in _without_controller(task))])


def _without_controller(task: Task) -> list[Field]:
    """Return the terms of the field that are not a controller."""
    field = task.batch.field
    parts = field.template.parts if isinstance(field, SumField) else () if field is None else (field,)
    return [part for part in parts if not isinstance(part, ControlField)]


def _instead(task: Task) -> str:
    """Return what helps where steps cross jumps in the state."""
    if task.step_tol is not None:
        return INSTEAD_OF_STEP_TOL
    return "make the jump a steep slope (tanh)" if task.states else "give tol or step_tol instead of dt"


def _jumping_field(task: Task) -> Field | None:
    """Return the field if steps without an estimate at the end may cross its jumps in the state.

    Commands of a controller have none.
    """
    field = task.batch.field
    if task.tol is not None or task.alone or task.one_by_one or field is None or field.bath is not None:
        return None
    return field if any(map(has_jumps, _without_controller(task))) else None


def _count_of(some: int, of: int) -> str:
    return f"{some} of {of} bodies" if of > 1 else "the body"


def _named(bodies: np.ndarray) -> str:
    """List the first few bodies."""
    more = ", ..." if bodies.size > NAMED else ""
    return f"{'bodies' if bodies.size > 1 else 'body'} {', '.join(map(str, bodies[:NAMED].tolist()))}{more}"


def reason(task: Task, many: Ensemble, i: int) -> str:
    """Explain why body i failed: its last step is repeated in plain Python."""
    if task.tolerance is not None:
        from ...compile.batch.adaptive_step import MOST

        if task.alone:
            return alone.why_failed(task, i)
        if many.steps is not None and many.steps[i] >= MOST:
            return f"it needs more than {MOST:.0f} steps"
        varied = isinstance(task.batch.field, VariationField) and int(many.failed[i]) == 1
        return NO_STEP + NOT_DIFFERENTIABLE * varied
    if task.states:
        return NO_STATE
    problem = _last_good(task, many, i)
    if isinstance(problem, str):
        return problem
    dt, torque = float(task.batch.of(task.batch.dt, i)), torque_kernel(problem, floats.number, task.method)
    y, system = problem.kernel_data(floats.number)
    try:
        _, residual = whole(task.method)(floats.number)(dt, problem.t0, y, system, torque)
    except (ArithmeticError, TypeError, ValueError):
        residual = 0.0
    if residual > 0:
        return unsolved(float(residual))
    return NO_STATE + without_derivatives(problem, task.method)


def _last_good(task: Task, many: Ensemble, i: int) -> Problem | str:
    """Return body i after its last good step, or the fault of its field there."""
    batch = task.batch
    q, m = many.last_state(i)
    done = int(many.failed[i]) - 1
    t = task.t0 + done * float(batch.of(batch.dt, i))
    if not (np.isfinite(q).all() and np.isfinite(m).all()):
        return NO_STATE
    try:
        return Problem(batch.body(i), batch.field_of(i), attitude=q / np.linalg.norm(q), momentum=m, t0=t)
    except InputError as fault:
        return str(fault)
