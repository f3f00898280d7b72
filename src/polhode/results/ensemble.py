"""The result of many bodies run at once."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..physics.bodies import Bodies
from ..physics.observers.statistics import Statistic
from . import observables, one_body
from .one_body import NOT_YET
from .trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

    from ..plots import EnsemblePlots

SHOWN = 4
"""Bodies that a page shows unless told otherwise."""


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
    seconds : time of the run, without compiling
    compile_seconds : time spent on compiling, or on loading compiled code
    statistics : what was asked for, by name; with it only the start and the end are kept as states
    steps : (N,) numbers of steps where bodies chose their own, else None
    bodies : the bodies and what acts on them; None where that is not known
    dt : (1,) or (N,) steps, None where they vary
    every : how many steps lie between two states
    tol : the tolerance, if one was given
    events : for every event asked for, a list with a Trajectory for every body: the states at which it happened
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
    bodies: Bodies | None = dataclasses.field(default=None, repr=False)
    dt: np.ndarray | None = None
    every: int = 1
    tol: float | None = None
    compile_seconds: float = 0.0
    dense: Callable[[int, Trajectory], Any] | None = dataclasses.field(default=None, repr=False)
    events: list[list[Trajectory]] = dataclasses.field(default_factory=list, repr=False)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, N, 3, 3), body to space."""
        q = self.quaternion
        return observables.matrices(q.reshape(-1, 4)).reshape(*q.shape[:-1], 3, 3)

    @functools.cached_property
    def spatial_momentum(self) -> np.ndarray:
        """Angular momentum (n, N, 3) in the space frame."""
        return observables.to_space(self.quaternion, self.momentum)

    @property
    def known_bodies(self) -> Bodies:
        """The bodies and what acts on them, or an error where that is not known."""
        if self.bodies is None:
            raise InputError(
                "the bodies of this ensemble are not known beyond their principal moments; use quaternion and "
                "momentum, or run it again"
            )
        return self.bodies

    @functools.cached_property
    def omega(self) -> np.ndarray:
        """Body angular velocity (n, N, 3)."""
        return self.known_bodies.omega_of(self.momentum)

    @functools.cached_property
    def spatial_omega(self) -> np.ndarray:
        """Angular velocity (n, N, 3) in the space frame."""
        return observables.to_space(self.quaternion, self.omega)

    @functools.cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy (n, N); kinetic where there is no potential."""
        with np.errstate(all="ignore"):  # a body that blows up is told by `failed`
            return self.known_bodies.energies(self.quaternion, self.momentum)

    def energy_of(self, i: int, chosen: np.ndarray) -> np.ndarray:
        """The energies of some states of body i, without those of other bodies."""
        q, m = self.quaternion[chosen, i], self.momentum[chosen, i]
        with np.errstate(all="ignore"):  # a body that blows up is told by `failed`
            return self.known_bodies.some(np.array([i])).energies(q[:, None], m[:, None])[:, 0]

    def drift(self) -> dict[str, np.ndarray]:
        """Largest relative changes (N,) of energy, spatial momentum (as a vector) and |momentum| of every body.

        Over the states that were kept; `statistics` has them over every step.
        """
        with np.errstate(all="ignore"):
            return observables.drift([(self.energy, self.spatial_momentum, self.momentum)], np.fmax.reduce)

    def worst_drift(self) -> dict[str, float]:
        """The largest drift among the bodies; NaN where no body has any."""
        return {name: float(np.fmax.reduce(values)) for name, values in self.drift().items()}

    def __getitem__(self, i: int) -> Trajectory:
        """The motion of body i; one that failed ends with its last good state."""
        return one_body.trajectory(self, i)

    def at(self, t: Any) -> Ensemble:
        """The states at any times within the run, as `Trajectory.at`; NaN after the failure of a body.

        Every body is looked at by itself, which takes about two milliseconds.
        """
        return one_body.at(self, t)

    @property
    def plot(self) -> EnsemblePlots:
        """Plots: ``many.plot.energy()``, ``.drift()``, ``.attitude()``, ``.polhode()``."""
        plots: Any = importlib.import_module("polhode.plots")  # on first use: matplotlib takes long to import
        return plots.EnsemblePlots(self)

    def view(
        self, path: str | Path, bodies: Iterable[int] | None = None, *, title: str = "", overwrite: bool = False
    ) -> Path:
        """Write a page that shows some bodies (by default the first four) turning in a browser; see `ph.view`."""
        viewer: Any = importlib.import_module("polhode.viewer")
        return viewer.view(
            [sol for _, sol in one_body.some(self, bodies, SHOWN)], path, title=title, overwrite=overwrite
        )

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
