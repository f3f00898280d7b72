"""Derivatives of the states of an ensemble with respect to initial states, inertia and parameters of the field.

Every direction of every body is a body of its own with a tangent beside it, in the same lanes as the plain run
(`compile/batch/lane_tangents.py`). So they are exact for the discrete steps, and no body affects another.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, ResultWarning
from ...kernels.so3 import mul
from ...methods.adaptive.verner87 import verner87
from ...numbers.arrays import components
from ...physics.fields import registry
from ...results.derivatives import STATE, Derivatives, by_blocks, symplectic_defect
from ...results.ensemble import Ensemble
from ...results.observables import matrices
from ..directions import CLOSE, between_axes, by_name, to_tensor, varied_parameters
from ..moving_edges import warn_of_fixed_edges
from . import kept_times
from .lane_steps import adaptive_method
from .run import DEVICES

if TYPE_CHECKING:
    from .batch import BodyBatch
    from .task import Task

FREE_TOLERANCE = 1e-13
"""Step tolerance for free bodies: their exact motion has no steps, and no derivatives at equal moments."""


def added(task: Task, many: Ensemble, step_tolerance: np.ndarray | None = None) -> Ensemble:
    """Return the result with its derivatives, if they are wanted; `step_tolerance` is that of each body."""
    if not task.tangent:
        return many
    tangent = EnsembleTangent(task, many.t, many.momentum, many.failed, step_tolerance)
    return dataclasses.replace(many, tangent=tangent)


class EnsembleTangent(Derivatives):
    """Derivatives of the states of an ensemble, in body axes: a rotation d in R exp(hat d), and the body momentum.

    They are computed on first use. They are NaN from the step on in which a body failed.

    Attributes
    ----------
    t : (n,) times of the states, or (n, N)
    matrix : (n, N, 6, 6) with respect to the initial state (d, Pi): the state-transition matrices
    inertia : (n, N, 6, 3) with respect to the principal moments, at fixed initial state; for bodies given by tensors
        that are not diagonal (n, N, 6, 3, 3), symmetric G with dx = sum G_ij dI_ij for every symmetric dI
    params : with respect to the parameters of the field, by name, each (n, N, 6) and the shape of the parameter
    """

    def __init__(
        self, task: Task, t: np.ndarray, momentum: np.ndarray, failed: np.ndarray, step_tolerance: np.ndarray | None
    ) -> None:
        self.t, self._task, self._momentum, self._failed = t, task, momentum, failed
        self._step_tolerance = step_tolerance

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Derivatives with respect to the initial states (n, N, 6, 6)."""
        axes, found = self._axes, self._principal
        return found if axes is None else by_blocks(axes, by_blocks(axes, found.swapaxes(-1, -2)).swapaxes(-1, -2))

    @functools.cached_property
    def _principal(self) -> np.ndarray:
        """The matrices in principal axes."""
        return self._run(_Rows.of(self._task.batch, STATE, np.eye(STATE)))

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """Derivatives with respect to the inertia (n, N, 6, 3); (n, N, 6, 3, 3) for tensors that are not diagonal."""
        batch = self._task.batch
        if (batch.moments == 0).any():
            raise InputError(
                "the moments (0, I, I) of a linear body cannot vary independently; use its other derivatives"
            )
        if batch.own is None:
            return self._run(_Rows.of(batch, 3, np.zeros((3, STATE)), moments=np.eye(3)))
        found = self._run(_tensor_rows(batch))
        axes = self._axes
        assert axes is not None
        return to_tensor(found, axes[:, None])

    @functools.cached_property
    def params(self) -> dict[str, np.ndarray]:
        """Derivatives with respect to the parameters of the field, by name; empty if it has none."""
        places = varied_parameters(self._task.model)
        if not places:
            return {}
        warn_of_fixed_edges(self._task.model, "bodies of an ensemble share their steps")
        batch, number = self._task.batch, len(places)
        units = np.eye(batch.values.shape[1])[places]
        found = self._run(_Rows.of(batch, number, np.zeros((number, STATE)), parameters=units))
        axes = self._axes
        return by_name(found if axes is None else by_blocks(axes, found), self._task.model)

    @property
    def symplectic_defect(self) -> np.ndarray:
        """Largest entry (n, N) of A^T W(Pi) A - W(Pi_0); round-off for symplectic methods in a potential.

        W is the canonical form in body axes: W((d, p), (e, r)) = d.r - e.p + Pi.(d x e).
        """
        momentum = self._task.batch.to_principal(components(self._momentum))
        return symplectic_defect(self._principal, np.stack(momentum, -1))

    @property
    def _axes(self) -> np.ndarray | None:
        """The principal axes of each body, columns; None if they are the user's."""
        own = self._task.batch.own
        return None if own is None else matrices(own)

    def _run(self, rows: _Rows) -> np.ndarray:
        """Return the tangents (n, N, 6, directions) of rows, in principal axes; in user's axes if these vary."""
        batch, width = rows.batch, rows.width
        task = _plain(dataclasses.replace(self._task, batch=batch), width)
        number = len(self._failed)
        used = self._step_tolerance if self._step_tolerance is not None else np.full(number, task.tolerance or 0.0)
        found = np.empty((len(task.kept), batch.number, STATE))
        failed = np.empty(batch.number, dtype=np.int64)
        for tolerance in np.unique(used):
            chosen = np.flatnonzero(np.repeat(used == tolerance, width))
            part = _some(task, chosen, float(tolerance) if task.tolerance is not None else None)
            arrays = part.found()
            DEVICES[part.device](part, arrays, None)
            found[0][chosen] = np.broadcast_to(rows.start, (batch.number, STATE))[chosen]
            found[1:, chosen], failed[chosen] = arrays[2][..., -STATE:], arrays[3]
        found[-1, failed >= 0] = np.nan
        found = found[_kept(self._task)]
        if rows.turns is not None:
            found = rows.in_users_axes(found, np.repeat(self._momentum, width, axis=1))
        self._tell(failed.reshape(number, width))
        return found.reshape(len(found), number, width, STATE).swapaxes(-1, -2)

    def _tell(self, failed: np.ndarray) -> None:
        """Warn about bodies whose states are fine, and whose derivatives are not."""
        lost = np.flatnonzero((failed >= 0).any(1) & (self._failed < 0))
        if lost.size:
            warnings.warn(
                f"the formulas of {self._task.method.name} have no finite derivative at the motion of {lost.size} of "
                f"{len(failed)} bodies, the first of them body {lost[0]} (equal moments, a spin about a principal "
                "axis, or a body at rest): their derivatives are NaN; use another method",
                ResultWarning,
                stacklevel=3,
            )


def _plain(task: Task, width: int) -> Task:
    """Return the task of the loops with a tangent beside each of `width` copies of the bodies."""
    longest = task.longest
    if longest is not None and len(longest) > 1:
        longest = np.repeat(longest, width)
    counts = None if task.counts is None else np.repeat(task.counts, width)
    every = task.every if task.wanted is None or task.stops is not None else task.count
    inner = kept_times.inner(task)
    task = dataclasses.replace(inner, every=every, counts=counts, longest=longest, tol=None, events=(), tangent=False)
    if task.batch.field is not None or task.stops is None:
        return task
    return _free(task)


def _free(task: Task) -> Task:
    """Return free bodies with adaptive steps instead of their exact motion."""
    nothing = registry.make("constant_torque", torque=(0.0, 0.0, 0.0))
    batch = dataclasses.replace(task.batch, field=nothing, values=np.zeros((1, 3)))
    model = copy.copy(task.model)
    model.field = nothing
    return dataclasses.replace(
        task, batch=batch, model=model, method=verner87, tolerance=FREE_TOLERANCE, longest=np.array([math.inf])
    )


def _some(task: Task, chosen: np.ndarray, tolerance: float | None) -> Task:
    """Return some of the bodies, with a step tolerance."""
    longest = task.longest if task.longest is None or len(task.longest) == 1 else task.longest[chosen]
    counts = None if task.counts is None else task.counts[chosen]
    part = dataclasses.replace(task, batch=task.batch.some(chosen), longest=longest, counts=counts)
    if tolerance is None:
        return part
    assert task.batch.field is not None
    method = adaptive_method(task.batch.field, tolerance, task.device, tangent=True)
    return dataclasses.replace(part, tolerance=tolerance, method=method)


def _kept(task: Task) -> Any:
    """Return which of the states of the loops the result has."""
    if task.stops is None:
        return slice(None)
    if task.wanted is not None and task.asked is None:
        return [0, -1]
    return slice(None) if task.lands else kept_times.rows_of(task)


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Bodies with a tangent each, `width` for each body of an ensemble."""

    batch: BodyBatch
    width: int
    start: np.ndarray
    """Tangents at the start, in principal axes."""
    turns: np.ndarray | None = None
    """Rotation rates of the principal axes, if these vary."""

    @staticmethod
    def of(
        batch: BodyBatch, width: int, start: np.ndarray, *, moments: np.ndarray | None = None,
        parameters: np.ndarray | None = None,
    ) -> _Rows:  # fmt: skip
        """Return the directions of all bodies, given for one: tangents of the state, of moments and of parameters."""
        data = _of_system(batch, width, moments, None, parameters)
        tangents = np.concatenate([start, *data], axis=1)
        rows = batch.some(np.repeat(np.arange(batch.number), width))
        tangents = np.tile(tangents, (batch.number, 1))
        return _Rows(dataclasses.replace(rows, tangents=tangents), width, tangents[:, :STATE])

    def in_users_axes(self, tangents: np.ndarray, momentum: np.ndarray) -> np.ndarray:
        """Return tangents in the user's axes, of principal axes that rotate by a: A (d - a), A (dPi + a x Pi)."""
        assert self.turns is not None
        assert self.batch.own is not None
        A = matrices(self.batch.own)
        inside = np.einsum("nji,knj->kni", A, momentum)
        d, p = tangents[..., :3] - self.turns, tangents[..., 3:] + np.cross(self.turns, inside)
        return np.concatenate([np.einsum("nij,knj->kni", A, x) for x in (d, p)], axis=-1)


def _of_system(batch: BodyBatch, number: int, moments: Any, axes: Any, parameters: Any) -> list[np.ndarray]:
    """Return the tangents of moments, axes and parameters, zero if they do not vary; none if nothing does."""
    if moments is None and axes is None and parameters is None:
        return []
    sizes = {"moments": 3, "axes": 0 if batch.own is None else 4, "parameters": batch.values.shape[1]}
    return [
        np.zeros((number, size)) if x is None else x
        for x, size in zip((moments, axes, parameters), sizes.values(), strict=True)
    ]


def _tensor_rows(batch: BodyBatch) -> _Rows:
    """Return the six variations of every inertia tensor in principal axes, as in `directions.directions_of`.

    The first three are those of the moments. e_i e_j^T + e_j e_i^T rotates the axes i and j about k at the rate
    1/(I_i - I_j); if these moments are equal, it is the variation (1, -1) of the moments in axes rotated by 45 degrees.
    """
    assert batch.own is not None
    number, width = batch.number, STATE
    rows = batch.some(np.repeat(np.arange(number), width))
    own = np.array(np.broadcast_to(rows.own, (number * width, 4)))  # type: ignore[arg-type]
    moments = np.broadcast_to(rows.moments, (number * width, 3))
    rates, turns = np.zeros((number * width, 3)), np.zeros((number * width, 3))
    for k in range(3):
        rates[k::width, k] = 1.0
        i, j = (k + 1) % 3, (k + 2) % 3
        here = np.arange(3 + k, number * width, width)
        gap = moments[here, i] - moments[here, j]
        apart = np.abs(gap) > CLOSE * moments[here].max(1)
        turns[here[apart], k] = 1 / gap[apart]
        equal = here[~apart]
        rates[equal, i], rates[equal, j] = 1.0, -1.0
        own[equal] = np.stack(mul(components(own[equal]), between_axes(k)), -1)
    momentum = np.einsum("nji,nj->ni", matrices(own), np.broadcast_to(rows.momentum, (number * width, 3)))
    start = np.concatenate([turns, -np.cross(turns, momentum)], axis=1)
    zero = np.zeros(len(own))
    axes = np.stack(mul(components(own), (zero, *components(turns / 2))), -1)
    tangents = np.concatenate([start, *_of_system(batch, len(own), rates, axes, None)], axis=1)
    changed = dataclasses.replace(rows, own=own, tangents=tangents, listed=(), tensors=None)
    return _Rows(changed, width, start, turns)
