"""Result of an ensemble run."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..methods.record import CHAIN_ENERGY
from ..physics.bodies import Bodies
from ..physics.conserved import THERMOSTATTED, Conserved, conserved_by_each, directions_of_each
from ..physics.observers.statistics import Statistic
from ..physics.validate import flag
from . import observables, one_body
from .one_body import NOT_YET
from .trajectory import Drift, Trajectory

if TYPE_CHECKING:
    import pandas
    import xarray

    from ..plots import EnsemblePlots

SHOWN = 4
"""Default number of bodies on a page."""


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
    """States of many bodies. Arrays are float64 with time first, then the body.

    Attributes
    ----------
    t : (n,) times, or (n, N) if every body has its own step or its own times
    quaternion : (n, N, 4) attitude, body to space, SCALAR FIRST
    momentum : (n, N, 3) body frame
    moments : (N, 3) principal moments
    failed : (N,) number of the step that failed, counting from 1 as in a `StepError`; -1 if none did. From that step
        on, the states of the body are NaN, except the last, which is its last good one. In the file of a stopped run,
        -2 marks a body that has not been run yet; its states are NaN.
    method : name of the method
    seconds : run time, without compilation
    compile_seconds : time spent compiling or loading compiled code
    statistics : the requested statistics, by name; with them and without `times`, the first and the last state are kept
    steps : (N,) numbers of steps if the bodies chose their own steps, else None
    bodies : the bodies and their field; None if unknown
    dt : (1,) or (N,) step sizes, None if they vary
    every : number of steps between two stored states
    tol : the tolerance, if one was given
    events : for each requested event, a list with one Trajectory per body: the states at which it occurred
    states : states of the field (`ph.states`), or of Nosé-Hoover chains, by name, each (n, N, ...)
    kept : names of those among them that are states of the method
    t0 : start of the runs, if they were asked for given times; otherwise the first of `t`
    tangent : with ``tangent=True``, derivatives: ``.matrix``, ``.inertia``, ``.params``, ``.covariance(...)``
    error_estimate : (N,) with `tol`, the estimated error at the end: the larger of the attitude error (an angle) and
        the momentum error relative to the largest momentum; NaN for a body that failed. Otherwise None

    Examples
    --------
    >>> many = ph.ensemble([1.5, 2.0, 2.5], None, [[1.0, 0.01, 0.0], [0.0, 1.0, 0.01]], "dmv10", dt=0.1, steps=10)
    >>> many.energy.shape
    (2, 2)
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
    states: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)
    kept: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    t0: float | None = dataclasses.field(default=None, repr=False)
    tangent: Any = dataclasses.field(default=None, repr=False)

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
        """The bodies and their field; raise an error if they are unknown."""
        if self.bodies is None:
            raise InputError(
                "the bodies of this ensemble are not known beyond their principal moments; use quaternion and "
                "momentum, or run it again"
            )
        return self.bodies

    @functools.cached_property
    def omega(self) -> np.ndarray:
        """Body angular velocity (n, N, 3)."""
        if self.inertia is not None:
            return observables.angular_velocity(self.momentum, self.inertia)
        return self.known_bodies.omega_of(self.momentum)

    @functools.cached_property
    def inertia(self) -> np.ndarray | None:
        """Inertia tensors (n, N, 3, 3) if they vary (`ph.VaryingBody`), else None."""
        return None if self.bodies is None else self.bodies.inertia_at(self.t)

    @functools.cached_property
    def spatial_omega(self) -> np.ndarray:
        """Angular velocity (n, N, 3) in the space frame."""
        return observables.to_space(self.quaternion, self.omega)

    @functools.cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy (n, N); kinetic energy alone if there is no potential."""
        with np.errstate(all="ignore"):  # `failed` reports a body that blows up
            if self.inertia is not None:
                kinetic = observables.kinetic_energy(self.omega, self.momentum)
                return kinetic + self.known_bodies.energies(self.quaternion, np.zeros_like(self.momentum))
            return self.known_bodies.energies(self.quaternion, self.momentum)

    @property
    def knows_field(self) -> bool:
        """True if the field of the bodies is known, or if there is none."""
        return self.bodies is not None

    @property
    def has_energy(self) -> bool:
        """True if energies are known: the bodies and their field are, or a file has energies."""
        return self.knows_field

    def energy_of(self, i: int, chosen: np.ndarray) -> np.ndarray:
        """Energies of some states of body i; those of the other bodies are not computed."""
        if self.inertia is not None:
            return self.energy[chosen, i]
        q, m = self.quaternion[chosen, i], self.momentum[chosen, i]
        with np.errstate(all="ignore"):  # `failed` reports a body that blows up
            return self.known_bodies.some(np.array([i])).energies(q[:, None], m[:, None])[:, 0]

    @functools.cached_property
    def conserved(self) -> list[Conserved] | None:
        """What the exact motion of each body conserves; None if it is not known."""
        if self.bodies is None or not self.knows_field or not len(self.t):
            return [THERMOSTATTED] * len(self) if CHAIN_ENERGY in self.states else None
        return conserved_by_each(self.bodies, self.t[0], self.t[-1], self.bodies.omega_of(self.momentum[0]))

    def drift(self) -> dict[str, np.ndarray]:
        """Largest relative changes (N,) of the quantities that the exact motions conserve, as in `Trajectory.drift`.

        A quantity that one body conserves and another does not is NaN for the other. The changes are taken over the
        stored states; `statistics` covers every step.
        """
        kept = self.conserved
        if kept is None:
            return Drift(self.changes())
        drift: dict[str, np.ndarray] = Drift()
        if not any(one.quantities for one in kept):
            return drift
        found = self._changes(directions_of_each(kept))
        for i, one in enumerate(kept):
            for name, change in one.quantities.items():
                if change in found:
                    drift.setdefault(name, np.full(len(self), np.nan))[i] = found[change][i]
        return drift

    def changes(self) -> dict[str, np.ndarray]:
        """Largest relative changes (N,) of energy, spatial momentum (as a vector) and |momentum|, conserved or not.

        With a Nosé-Hoover chain also of the extended energy. They are taken over the stored states.
        """
        return self._changes(None)

    def _changes(self, directions: np.ndarray | None) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):  # `failed` reports a body that blows up
            parts = [(self.energy, self.spatial_momentum, self.momentum)]
            found = observables.largest_changes(parts, np.fmax.reduce, directions)
            if CHAIN_ENERGY in self.states:
                chain = self.states[CHAIN_ENERGY]
                found["extended_energy"] = observables.extended_drift([(self.energy, chain)], np.fmax.reduce)
            return found

    def worst_drift(self) -> dict[str, float]:
        """Largest drift among the bodies; NaN if no body has one."""
        return {name: float(np.fmax.reduce(values)) for name, values in self.drift().items()}

    def __getitem__(self, i: int) -> Trajectory:
        """Motion of body i; a body that failed ends with its last good state."""
        return one_body.trajectory(self, i)

    def at(self, t: Any) -> Ensemble:
        """States at any times within the run, as in `Trajectory.at`; NaN after the failure of a body.

        Each body is evaluated separately, which takes about two milliseconds.
        """
        return one_body.at(self, t)

    @property
    def plot(self) -> EnsemblePlots:
        """Plots: ``many.plot.energy()``, ``.drift()``, ``.attitude()``, ``.polhode()``."""
        plots: Any = importlib.import_module("polhode.plots")  # on first use: matplotlib is slow to import
        return plots.EnsemblePlots(self)

    def view(
        self,
        path: str | Path | None = None,
        bodies: Iterable[int] | None = None,
        *,
        together: bool = False,
        colour: Any = None,
        positions: Any = None,
        title: str = "",
        overwrite: bool = False,
    ) -> Path:
        """Write a web page that animates some bodies, by default the first four, side by side; see `ph.view`.

        Without a path a notebook shows the page below the cell; elsewhere it is opened in the browser.

        Parameters
        ----------
        together : show them in one scene instead, by default all of them
        colour : with `together`, what colours the bodies: numbers (N,) or (n, N), or a name: "energy", "drift" (of the
            energy, if it is conserved), "energy_change" (the same, conserved or not), "steps", "error_estimate", or a
            statistic and its part such as "spin.max"
        positions : with `together`, the positions of the bodies, (N, 3); by default in rows
        """
        if flag("together", together):
            page: Any = importlib.import_module("polhode.viewer.many")
            chosen = one_body.numbers(self, bodies, len(self))
            return page.view_ensemble(self, path, chosen, colour, positions, title, overwrite)
        if colour is not None or positions is not None:
            raise InputError("colour and positions are for together=True, which shows the bodies in one scene")
        viewer: Any = importlib.import_module("polhode.viewer")
        return viewer.view(
            [sol for _, sol in one_body.some(self, bodies, SHOWN)],
            path,
            title=title,
            overwrite=overwrite,
        )

    def last_state(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Attitude and momentum of body i at the end, or before the step that failed."""
        return self.quaternion[-1, i], self.momentum[-1, i]

    def to_xarray(self, euler: str | None = None) -> xarray.Dataset:
        """Arrays with labelled dimensions; conventions are in the attributes. Arrays in a file are read when needed.

        If all bodies have the same times, there is an index on them: ``ds.sel(t=5.0, method="nearest")``.

        euler : a sequence such as "ZYX": add Euler angles in degrees, as in `Trajectory.euler_deg`
        """
        self._check_without_states()
        from . import angles
        from .store import ensemble_files

        made = ensemble_files.dataset(self)
        return angles.added(made.set_xindex("t") if made["t"].ndim == 1 else made, euler)

    def to_dataframe(self, euler: str | None = None) -> pandas.DataFrame:
        """One row for each state of each body, with a column `body`; units are in ``attrs``.

        A body that failed has the states before its failure, and one that has not been run has none.

        euler : a sequence such as "ZYX": add columns euler_deg_ZYX_1, _2 and _3, as in `Trajectory.euler_deg`
        """
        from .formats import table

        return table.frame(self, euler)

    def export(self, path: str | Path, to: str | None = None, overwrite: bool = False, **options: Any) -> Path:
        """Write a file for other programs, in the format of its suffix or of the name `to`; see docs/formats.md.

        Tables and MATLAB files take ``euler="ZYX"``, which adds Euler angles in degrees, as in `to_dataframe`.
        """
        from .formats import formats

        return formats.export(self, path, to, overwrite, **options)

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write to ``.zarr`` or ``.nc`` (NetCDF), by suffix."""
        self._check_without_states()
        from .store import ensemble_files

        return ensemble_files.save(self, path, overwrite)

    def _check_without_states(self) -> None:
        if self.kept:
            raise InputError("files and data sets do not hold the states of a method; use many.states, or pickle")

    def __len__(self) -> int:
        return len(self.failed)

    def __repr__(self) -> str:
        failures, waiting = int((self.failed >= 0).sum()), int((self.failed == NOT_YET).sum())
        left = f", {waiting} not run yet" if waiting else ""
        return f"<Ensemble of {len(self)} bodies, {len(self.t)} states each, {self.method}, {failures} failed{left}>"

    def _repr_html_(self) -> str:
        """Summary for notebooks: the size, the method and the bodies that failed."""
        notebook: Any = importlib.import_module("polhode.viewer.notebook")
        return notebook.ensemble_html(self)
