"""The result of many bodies run at once."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..physics.observers.statistics import Statistic
from . import observables

if TYPE_CHECKING:
    import xarray

NOT_YET = -2
"""What `failed` says of a body that has not been run yet, in the file of a run that was stopped."""


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
    """States of many bodies. Arrays are float64 with time first, then the body.

    Attributes
    ----------
    t : (n,) times, or (n, N) where every body has its own step or its own times
    quaternion : (n, N, 4) attitude, body to space, SCALAR FIRST
    momentum : (n, N, 3) body frame
    moments : (N, 3) principal moments
    failed : (N,) number of the step that failed, counting from 1 as in a `StepError`; -1 where none did. From it on a
        body's states are NaN, except the last, which is its last good one. In the file of a run that was stopped, -2
        where a body has not been run yet; its states are NaN.
    method : name of the method
    seconds : time of the compiled loop
    statistics : what was asked for, by name; with it only the start and the end are kept as states
    steps : (N,) numbers of steps where bodies chose their own, else None
    error_estimate : (N,) with `tol`, the estimated error at the end: the larger of the attitude's angle and the
        momentum's error relative to its largest size; NaN where a body failed. Else None
    """

    t: np.ndarray
    quaternion: np.ndarray
    momentum: np.ndarray
    moments: np.ndarray
    failed: np.ndarray
    method: str
    seconds: float
    statistics: Mapping[str, Statistic] = dataclasses.field(default_factory=dict)
    steps: np.ndarray | None = None
    error_estimate: np.ndarray | None = None

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, N, 3, 3), body to space."""
        q = self.quaternion
        return observables.matrices(q.reshape(-1, 4)).reshape(*q.shape[:-1], 3, 3)

    @functools.cached_property
    def spatial_momentum(self) -> np.ndarray:
        """Angular momentum (n, N, 3) in the space frame."""
        return observables.to_space(self.quaternion, self.momentum)

    def last_state(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Attitude and momentum of body i at the end; where it failed, before that step."""
        return self.quaternion[-1, i], self.momentum[-1, i]

    def to_xarray(self) -> xarray.Dataset:
        """The arrays with labelled dimensions, conventions in the attributes; one in a file is read when needed."""
        from .store import ensemble_files

        return ensemble_files.dataset(self)

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write to ``.zarr`` or ``.nc`` (NetCDF), by suffix."""
        from .store import ensemble_files

        return ensemble_files.save(self, path, overwrite)

    def __len__(self) -> int:
        return len(self.failed)

    def __repr__(self) -> str:
        failures, waiting = int((self.failed >= 0).sum()), int((self.failed == NOT_YET).sum())
        left = f", {waiting} not run yet" if waiting else ""
        return f"<Ensemble of {len(self)} bodies, {len(self.t)} states each, {self.method}, {failures} failed{left}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the size, the method, and which bodies failed."""
        notebook: Any = importlib.import_module("polhode.viewer.notebook")
        return notebook.ensemble_html(self)
