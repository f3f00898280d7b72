"""Result of a run: states over time, and the quantities derived from them."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import needed
from ..errors import InputError
from ..methods.record import CHAIN_ENERGY
from ..physics import library
from ..physics.conserved import THERMOSTATTED, Conserved, conserved
from ..physics.control.controller import control_in
from ..physics.shapes import Shape
from ..physics.validate import euler_sequence, flag
from . import angles, observables
from .samples import Samples

if TYPE_CHECKING:
    import pandas
    import xarray
    from scipy.spatial.transform import Rotation

    from ..physics.body import Body
    from ..physics.observers.statistics import Statistic
    from ..physics.problem import Problem
    from ..plots import TrajectoryPlots
    from ..run.tangent import Tangent

PRIMARY = ("t", "quaternion", "momentum", "energy")
"""The stored arrays; everything else follows from them and the inertia tensor."""

INERTIA = "inertia"
"""Name of the inertia tensors (n, 3, 3) among the stored data, if they vary (`ph.VaryingBody`)."""

STATES = "states"
"""Name of the states of the field among the stored data: a dictionary of arrays."""


@dataclasses.dataclass(frozen=True)
class Info:
    """Metadata of a trajectory: how it was computed."""

    method: str
    dt: float
    inertia: tuple[tuple[float, ...], ...]
    problem: str = ""
    field: str = ""
    torque: str = ""
    """How a torque that is not a formula was evaluated: compiled unchanged, or called as plain Python."""
    status: str = "finished"
    every: int = 1
    digits: int | None = None
    seconds: float = 0.0
    """Run time without compilation; for a resumed run, the total of all its parts."""
    compile_seconds: float = dataclasses.field(default=0.0, compare=False)
    """Time spent compiling or loading compiled code; not stored in files."""
    steps: int = 0
    tol: float | None = None
    step_tol: float | None = None
    reason: str = ""
    error_estimate: float | None = None
    accepted: int | None = None
    rejected: int | None = None
    states: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Names and shapes of the states of the method, or of a controller, that are kept with every state of the body."""
    shapes: tuple[Shape, ...] = dataclasses.field(default=(), compare=False, repr=False)
    """Shapes of the body with the pivot at the origin, for pictures; files omit large meshes."""

    @property
    def step(self) -> str:
        """Text for the step size, or for the tolerance that chose it; empty if there is neither."""
        for name in ("tol", "step_tol"):
            if getattr(self, name) is not None and not self.dt:
                return f"{name} = {getattr(self, name):g}"
        return f"dt = {self.dt:g}" if self.dt else ""

    @property
    def title(self) -> str:
        """The problem in words, for titles; what it is if it has no name."""
        return library.title(self.problem) or ("Free body" if not self.field else "Rigid body")

    @property
    def made(self) -> str:
        """Text for the method and its step; empty if the method is unknown."""
        return ", ".join(filter(None, (self.method, self.step))) if self.method else ""


def info_of(problem: Problem, **fields: Any) -> Info:
    """Metadata for a trajectory of a problem."""
    return Info(
        inertia=problem.body.principal.tensor, problem=problem.name,
        field=repr(problem.field) if problem.field else "", shapes=problem.body.looks, states=_kept_states(problem),
        torque=problem.field.evaluated if problem.field and problem.field.opaque else "", **fields,
    )  # fmt: skip


def _kept_states(problem: Problem) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Names and shapes of the states that files hold: those of the method, or of a controller."""
    if problem.field is None or control_in(problem.field) is None:
        return problem.kept
    return tuple((name, np.shape(value)) for name, value in problem.field.states.items())


NO_STATES: Mapping[str, np.ndarray] = types.MappingProxyType({})


class Rounded(dict[str, Any]):
    """Data of a trajectory, rounded to doubles from the arrays of mpmath numbers in `mp`."""

    def __init__(self, mp: types.SimpleNamespace, states: Mapping[str, np.ndarray] = NO_STATES) -> None:
        super().__init__({name: getattr(mp, name).astype(float) for name in PRIMARY} | {STATES: dict(states)})
        self.mp = mp


class Drift(dict[str, Any]):
    """Changes of conserved quantities by name; the error for a quantity that is not conserved names those that are."""

    def __missing__(self, name: str) -> Any:
        """Explain what is missing."""
        there = ", ".join(self) or "nothing"
        raise KeyError(f"{name} is not conserved in this motion (conserved: {there}); use changes() for its change")


class Trajectory:
    """States of a body over time. Arrays are float64 with time first.

    Attributes
    ----------
    t : (n,) times
    quaternion : (n, 4) attitude, body to space, SCALAR FIRST, sign continuous from the start
    matrix : (n, 3, 3) the same as rotation matrices
    momentum, omega : (n, 3) body frame
    spatial_momentum, spatial_omega : (n, 3) space frame
    energy : (n,) kinetic plus potential energy (kinetic alone if there is no potential)
    states : states of the field (`ph.states`), or of a Nosé-Hoover chain, by name, each (n, ...)
    inertia : (3, 3) inertia tensor, or (n, 3, 3) for a `ph.VaryingBody`
    rotation : scipy Rotation
    method, dt, status : how it was computed; `info` has the rest
    control : with ``control=...``, what the controller decided at its samples: ``.t``, ``.torque``, ``.memory``
    tangent : with ``tangent=True``, derivatives: ``.matrix``, ``.inertia``, ``.params``, ``.covariance(...)``
    statistics : with ``statistics=...``, the requested statistics, by name
    events : for each requested event, a Trajectory of the states at which it occurred
    mp : with ``digits=...``, t, quaternion, momentum, omega, spatial_momentum and energy as arrays of mpmath numbers

    Examples
    --------
    >>> sol = ph.solve(ph.problems.free_body(), "dmv10", dt=0.1, steps=100)
    >>> sol.quaternion.shape, sol.omega.shape
    ((101, 4), (101, 3))
    >>> sol.drift()["energy"] < 1e-12
    True
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        info: Info | Callable[[], Info],
        mp: types.SimpleNamespace | None = None,
        dense: Callable[[Any], Mapping[str, Any]] | None = None,
        problem: Problem | Callable[[], Problem | None] | None = None,
    ) -> None:
        self.stored: Any = data
        self._info = info
        self.mp = getattr(data, "mp", None) if mp is None else mp
        self.dense = dense
        self.events: list[Trajectory] = []
        self._problem = problem
        self._conserved: Conserved | None = None
        self.tangent: Tangent | None = None
        self._control: Samples | Callable[[], Samples] | None = None
        self.statistics: Mapping[str, Statistic] = {}

    @functools.cached_property
    def span(self) -> tuple[float, float]:
        """Start and end of the run; its states may be kept at other times."""
        return float(self.t[0]), float(self.t[-1])

    @property
    def problem(self) -> Problem | None:
        """The problem that was solved; from a file, rebuilt from its formula. None if it is not known.

        It is made on first access if a function was given.
        """
        if callable(self._problem):
            self._problem = self._problem()
        return self._problem or getattr(self.stored, "problem", None)

    def __getstate__(self) -> dict[str, Any]:
        """Data to pickle: the states, read if they are in a file. Dense output is not pickled."""
        data: dict[str, Any] = {name: self._array(name) for name in PRIMARY} | {STATES: self.states}
        if self.has_varying_inertia:
            data[INERTIA] = self.inertia
        kept = {"_info": self.info, "mp": self.mp, "events": self.events, "_control": self.control}
        kept["statistics"] = dict(self.statistics)
        return {"stored": data, "dense": None, "_problem": None, "_conserved": self.conserved, "tangent": None, **kept}

    def __copy__(self) -> Trajectory:
        """Copy within the process, with everything including dense output."""
        made = Trajectory.__new__(Trajectory)
        vars(made).update(vars(self))
        return made

    @property
    def control(self) -> Samples | None:
        """What the controller decided at its samples; made on first access if a function was given."""
        if callable(self._control):
            self._control = self._control()
        return self._control

    @control.setter
    def control(self, samples: Samples | Callable[[], Samples] | None) -> None:
        self._control = samples

    @property
    def info(self) -> Info:
        """How it was computed; made on first access if a function was given."""
        if not isinstance(self._info, Info):
            self._info = self._info()
        return self._info

    @info.setter
    def info(self, info: Info) -> None:
        self._info = info

    # --- stored quantities -------------------------------------------------------------------------

    def _array(self, name: str) -> np.ndarray:
        return np.asarray(self.stored[name], dtype=float)

    @functools.cached_property
    def t(self) -> np.ndarray:
        """Times (n,)."""
        return self._array("t")

    @functools.cached_property
    def quaternion(self) -> np.ndarray:
        """Attitude (n, 4), body to space, scalar first."""
        return self._array("quaternion")

    @functools.cached_property
    def momentum(self) -> np.ndarray:
        """Body momentum (n, 3)."""
        return self._array("momentum")

    @functools.cached_property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential energy (n,)."""
        return self._array("energy")

    @functools.cached_property
    def states(self) -> dict[str, np.ndarray]:
        """States of the field (`ph.states`), or of the method, by name, with time first; empty if there are none."""
        return self.stored.states() if hasattr(self.stored, "blocks") else dict(self.stored.get(STATES, {}))

    @property
    def has_varying_inertia(self) -> bool:
        """True for a `ph.VaryingBody`."""
        return not hasattr(self.stored, "blocks") and INERTIA in self.stored  # files hold none

    @functools.cached_property
    def inertia(self) -> np.ndarray:
        """Inertia tensor (3, 3), or if it varies with time, (n, 3, 3)."""
        return self._array(INERTIA) if self.has_varying_inertia else np.array(self.info.inertia)

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.info.method

    @property
    def dt(self) -> float:
        """Step size."""
        return self.info.dt

    @property
    def status(self) -> str:
        """finished, interrupted, failed, or (in the file of a run that was killed or is under way) running."""
        return self.info.status

    @property
    def seconds(self) -> float:
        """Run time without compilation, which is in ``info.compile_seconds``."""
        return self.info.seconds

    @property
    def reason(self) -> str:
        """Why this method was chosen, for a solution to a tolerance."""
        return self.info.reason

    @property
    def error_estimate(self) -> float | None:
        """Estimated error at the end of a solution to a tolerance: an angle, or relative to the largest momentum."""
        return self.info.error_estimate

    @property
    def accepted(self) -> int | None:
        """Number of accepted steps, for a solution to a tolerance."""
        return self.info.accepted

    @property
    def rejected(self) -> int | None:
        """Number of rejected steps, for a solution to a tolerance."""
        return self.info.rejected

    def at(self, t: Any) -> Trajectory:
        """States at any times within the run, as accurate as its steps: each is one step from the last stored state."""
        if self.dense is None:
            raise InputError(
                "dense output needs a run that kept every step (every=1) with a compiled torque, or the file of a run "
                "in double precision whose torque is a formula, without a heat bath or a thermostat; concatenated and "
                "pickled trajectories do not have it"
            )
        made = Trajectory(
            self.dense(t), dataclasses.replace(self.info, steps=0), dense=self.dense, problem=self._problem
        )
        if self.tangent is not None:
            made.tangent = self.tangent.at(made.t)
        return made

    # --- derived quantities ------------------------------------------------------------------------

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """Attitude (n, 3, 3), body to space."""
        return observables.matrices(self.quaternion)

    @functools.cached_property
    def omega(self) -> np.ndarray:
        """Body angular velocity (n, 3)."""
        return observables.angular_velocity(self.momentum, self.inertia)

    @functools.cached_property
    def spatial_momentum(self) -> np.ndarray:
        """Angular momentum in the space frame (n, 3)."""
        return observables.to_space(self.quaternion, self.momentum)

    @functools.cached_property
    def spatial_omega(self) -> np.ndarray:
        """Angular velocity in the space frame (n, 3)."""
        return observables.to_space(self.quaternion, self.omega)

    @functools.cached_property
    def rotation(self) -> Rotation:
        """Attitude as a scipy Rotation, body to space."""
        from scipy.spatial.transform import Rotation

        return Rotation.from_quat(self.quaternion, scalar_first=True)

    def euler(self, sequence: str, degrees: bool = False) -> np.ndarray:
        """Euler angles (n, 3), body to space, in the order of a sequence such as "ZXZ".

        Axes in upper case turn with the body (intrinsic), those in lower case are fixed in space (extrinsic), as in
        SciPy.
        """
        axes = euler_sequence("the sequence of Euler angles", sequence, "sequence")
        return angles.of_attitudes(self.quaternion, axes, flag("degrees", degrees))

    def euler_deg(self, sequence: str) -> np.ndarray:
        """Euler angles (n, 3) for a sequence, in degrees."""
        return self.euler(sequence, degrees=True)

    def mrp(self) -> np.ndarray:
        """Modified Rodrigues parameters (n, 3), tan(angle/4) times the axis, |mrp| <= 1."""
        return np.asarray(self.rotation.as_mrp())

    @property
    def conserved(self) -> Conserved | None:
        """What the exact motion conserves; None if it is not known."""
        if self._conserved is None and self.problem is not None and self._control is None:
            self._conserved = conserved(self.problem, float(self.last().t[0]) if len(self) else None)
        return self._conserved or (THERMOSTATTED if self._has_chain else None)

    def drift(self) -> dict[str, float]:
        """Largest relative changes of the quantities that the exact motion conserves.

        ``energy``; for a free body ``spatial_momentum`` (as a vector) and ``momentum_norm``; else the part of the
        spatial momentum that the torque does not change, ``vertical_momentum`` or ``conserved_momentum``. Where it is
        not known what is conserved, the result is that of `changes`. With a Nosé-Hoover chain only the extended
        energy is conserved, that of body and chain, and only if no other torque does work (in a file that does not hold
        its problem, none is assumed to).
        """
        kept = self.conserved
        if kept is None:
            return Drift(self.changes())
        names = kept.quantities
        if self.mp is not None and not kept.is_exact:  # the directions are known to doubles only
            del names[kept.momentum]
        found = self._changes(np.reshape(kept.directions, (-1, 3))) if names else {}
        return Drift({name: found[change] for name, change in names.items() if change in found})

    def changes(self) -> dict[str, float]:
        """Largest relative changes of energy, spatial momentum (as a vector) and |momentum|, conserved or not.

        With a Nosé-Hoover chain also of the extended energy.
        """
        return self._changes(None)

    def _changes(self, directions: Any) -> dict[str, float]:
        if not len(self):
            raise InputError("the trajectory has no states: its run ended before the first of the times asked for")
        if self.mp is None:
            parts = ((part.energy, part.spatial_momentum, part.momentum) for part in self.parts())
            found = observables.largest_changes(parts, directions=directions)
        else:
            found = observables.largest_precise_changes(self.mp, self.info.digits or 0, directions)
        if self._has_chain:
            energies = ((part.energy, part.states[CHAIN_ENERGY]) for part in self.parts())
            found["extended_energy"] = observables.extended_drift(energies)
        return {name: float(value) for name, value in found.items()}

    @property
    def _has_chain(self) -> bool:
        """True if a Nosé-Hoover chain moves with the body."""
        return CHAIN_ENERGY in dict(self.info.states)

    def parts(self) -> Iterator[Trajectory]:
        """Iterate over the states in order; if they are in a file, a bounded number at a time."""
        if not hasattr(self.stored, "blocks"):
            yield self
            return
        for block in self.stored.blocks(self.stored.primary):
            yield Trajectory(self.stored.with_states(block), self.info)

    def last(self) -> Trajectory:
        """Last state; from a file, nothing else is read."""
        if hasattr(self.stored, "last"):
            return Trajectory(self.stored.last(), self._info)
        return Trajectory(selected(self, slice(-1, None)), self.info)

    def __len__(self) -> int:
        return int(self.stored.rows) if hasattr(self.stored, "rows") else len(self.t)

    def __repr__(self) -> str:
        span = f", t = {self.t[0]:g} to {self.t[-1]:g}" if len(self) else ""
        old = ", a file without checksums" if getattr(self.stored, "sums", {}) is None else ""
        return f"<Trajectory {self.info.made or 'loaded'}: {len(self)} states{span}, {self.status}{old}>"

    # --- output ------------------------------------------------------------------------------------

    def to_xarray(self, euler: str | None = None) -> xarray.Dataset:
        """All variables with labelled dimensions and an index on time: ``ds.sel(t=5.0, method="nearest")``.

        Units and conventions are in the attributes.

        euler : a sequence such as "ZYX": add Euler angles in degrees, as in `euler_deg`
        """
        from . import angles
        from .store import file_format

        return angles.added(file_format.dataset(self).set_xindex("t"), euler)

    def to_dataframe(self, euler: str | None = None) -> pandas.DataFrame:
        """One row for each state, with columns such as t, quaternion_w and momentum_x; units are in ``attrs``.

        euler : a sequence such as "ZYX": add columns euler_deg_ZYX_1, _2 and _3, as in `euler_deg`
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
        if self.states and not self.info.states:
            raise InputError("files do not hold the states of a field; use sol.to_xarray() or pickle")
        from .store import trajectory_store

        return trajectory_store.save(self, path, overwrite)

    @property
    def plot(self) -> TrajectoryPlots:
        """Plots: ``sol.plot.omega()``, ``.polhode()``, ``.herpolhode()``, ``.attitude()``, ``.energy()``.

        And ``.momentum()``, ``.drift()``, ``.overview()``.
        """
        plots: Any = importlib.import_module("polhode.plots")  # on first use: matplotlib is slow to import
        return plots.TrajectoryPlots(self)

    def view(
        self,
        path: str | Path | None = None,
        *others: Trajectory,
        body: Body | None = None,
        title: str = "",
        overwrite: bool = False,
    ) -> Path:
        """Write a web page that animates the body, with others beside it; see `ph.view`.

        Without a path a notebook shows the page below the cell; elsewhere it is opened in the browser.
        """
        viewer: Any = importlib.import_module("polhode.viewer")
        return viewer.view([self, *others], path, body=body, title=title, overwrite=overwrite)

    def animate(self, path: str | Path, **how: Any) -> Path:
        """Write a film (``.gif``, ``.mp4``) or a moving scene (``.glb``); see `ph.animate`."""
        animation: Any = needed("polhode.viewer.animation")
        return animation.animate(self, path, **how)

    def _repr_html_(self) -> str:
        """Summary for notebooks: method, drift, and the path on the sphere."""
        notebook: Any = importlib.import_module("polhode.viewer.notebook")
        return notebook.trajectory_html(self)


def selected(sol: Trajectory, chosen: Any) -> dict[str, Any]:
    """Data of some states of a trajectory, chosen by their indices."""
    states = {name: values[chosen] for name, values in sol.states.items()}
    if sol.mp is None:
        names = (*PRIMARY, INERTIA) if sol.has_varying_inertia else PRIMARY
        return {name: getattr(sol, name)[chosen] for name in names} | {STATES: states}
    return Rounded(types.SimpleNamespace(**{name: values[chosen] for name, values in vars(sol.mp).items()}), states)
