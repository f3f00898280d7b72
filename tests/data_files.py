"""The files in `tests/data`: the call that wrote each of them, and what is recorded of it.

`tools/write_data_files.py` writes them; `tests/results/test_data_files.py` reads them and makes the same calls again.
A later version of the library has to read what this one wrote, so neither files nor calls change: new ones are added.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.results.store import trajectory_store

FOLDER = Path(__file__).with_name("data")
RECORDS = FOLDER / "records.json"

# --- motions ----------------------------------------------------------------------------------------

TOP = ph.problems.fast_top()
TENSOR = [[1.0, 0.1, 0.0], [0.1, 1.5, 0.2], [0.0, 0.2, 2.0]]
BODY, OMEGA = ph.Body(TENSOR), [0.3, 0.2, 2.0]


@ph.torque
def swaying(t: Any, R: Any, size: Any, rates: Any) -> Any:
    """A torque of a user, with an array as parameter."""
    return size * ph.math.sin(rates[0] * t), size * R[0, 1] * rates[1], -size * R[2, 0]


@ph.torque
def relay(R: Any, push: Any) -> Any:
    """A torque that jumps with the attitude."""
    return push * ph.where(R[0, 0] > 0.2, 1.0, -1.0), 0.0, 0.0


@ph.torque
def ending(t: Any) -> Any:
    """A torque that ceases to be a number at t = 0.5."""
    return ph.math.sqrt(0.5 - t), 0.0, 0.0


@ph.torque(plain=True)
def by_hand(R: np.ndarray) -> list[float]:
    """A torque that is no formula."""
    return [float(x) for x in np.sort(R[2])]


def _error(R: Any) -> tuple[Any, Any, Any]:
    """The axis of the attitude error, times the sine of its angle."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller(
    period=0.2,
    integral=[0.0, 0.0, 0.0],
    calls=0.0,
    wheels=ph.actuators.wheels(max_torque=0.3, viscous=1e-3, inertia=0.1),
)
def pid(
    t: Any, R: Any, omega: Any, integral: Any, calls: Any, wheels: Any, period: Any, stiffness: Any = 1.0,
    damping: Any = 2.0,
) -> Any:  # fmt: skip
    """PID control with wheels, an integral and a count as memory, and a push that depends on time."""
    e = _error(R)
    new = [integral[i] + period * e[i] for i in range(3)]
    motors = [stiffness * e[i] + damping * omega[i] + 0.1 * new[i] for i in range(3)]
    return (0.0, 0.0, 0.1 * ph.math.sin(t)), {"integral": new, "calls": calls + 1, "wheels": motors}


def damper(R: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """A controller that is no formula."""
    return -np.array(_error(R)) - np.clip(2.0 * omega, -1.0, 1.0)


@ph.event
def level(R: Any) -> Any:
    """The first axis crosses the horizontal plane."""
    return R[2, 0]


LATE = ph.event(lambda t: t - 0.777, terminal=True)
BURNS = ph.fields.thruster(torque=[0.2, 0.0, -0.1], on=[[0.13, 0.477], [0.9, 1.33]])
TABLE = ph.fields.tabulated(times=[0, 1, 3], torques=[[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]], between="cubic")
TILTED = ph.Problem(BODY, ph.fields.gravity(mgl=0.1), omega=OMEGA)
SEVERAL = ph.Problem(
    BODY, ph.fields.linear_drag(0.1) + BURNS + TABLE + swaying(0.3, [2.0, 0.7]), euler=("XYZ", [0.5, 1.0, -0.7]),
    omega=OMEGA, t0=0.1,
)  # fmt: skip
ORBIT = ph.Orbit(1.0, periapsis=1.0, eccentricity=0.1)
ORBITING = ph.Problem(BODY, ph.fields.orbit_gravity_gradient(BODY, ORBIT), omega=OMEGA)
RELAYED = ph.Problem(BODY, relay(0.05), omega=OMEGA)
ROD = ph.Problem(ph.Body([1.0, 1.0, 0.0]), ph.fields.gravity(mgl=0.3), omega=[0.4, 1.0, 0.0])
BATH = ph.fields.heat_bath(kT=1.5, friction=[[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 0.5]], seed=3)
SHAKEN = ph.Problem(ph.Body([0.2, 1.0, 1.1]), BATH, momentum=[0.2, 2.0, 3.3])
RESCALED = SHAKEN.in_field(ph.fields.heat_bath(kT=1.5, friction=[1.0, 2.0, 0.5], seed=3))
CHAINED = SHAKEN.in_field(ph.fields.nose_hoover(kT=1.5, tau=0.4))
CONTROLLED = ph.Problem(BODY, ph.fields.linear_drag(0.1), euler=("XYZ", [0.5, 1.0, -0.7]), omega=[0.1, -0.2, 0.3])
FAILING = ph.Problem(BODY, ending(), omega=OMEGA)
BY_HAND = ph.Problem(BODY, by_hand(), omega=OMEGA)

# --- runs of one body -------------------------------------------------------------------------------

SHORT = {"dt": 0.01, "steps": 8}
LONG = {"dt": 0.01, "steps": 160, "every": 8}
"""Runs that are killed: the first chunk has 64 steps."""

STEPS = {
    "plain": {"problem": TOP, "method": "imidm"},
    "memory": {"problem": TOP, "method": "abm4"},
    "low_parts": {"problem": TOP, "method": "compensated(strang(symrot))"},
    "clock": {"problem": TOP, "method": "reversible(imidm)"},
    "processed": {"problem": TOP, "method": "processed4(symrot)"},
    "several": {"problem": SEVERAL, "method": "verner87"},
    "orbit": {"problem": ORBITING, "method": "mkrk(rk4)"},
    "relay": {"problem": RELAYED, "method": "mkrk(rk4)"},
    "rod": {"problem": ROD, "method": "imidm"},
    "noise": {"problem": SHAKEN, "method": "baoab(rot123)"},
    "rescaled": {"problem": RESCALED, "method": "bussi(strang(rot123))"},
    "chain": {"problem": CHAINED, "method": "nose_hoover(strang(rot123))"},
    "control": {"problem": CONTROLLED, "method": "fem", "control": pid},
}
"""Problems and methods for runs with equal steps, each with a kind of state or problem of its own."""

TOLERANCES = {
    "tol": {"problem": TILTED, "tol": 1e-9},
    "step_tol": {"problem": TILTED, "step_tol": 1e-9},
    "tol_method": {"problem": TILTED, "tol": 1e-6, "method": "verner87"},
    "tol_several": {"problem": SEVERAL, "tol": 1e-8, "every": 8},
    "tol_orbit": {"problem": ORBITING, "tol": 1e-8, "every": 8},
    "tol_relay": {"problem": RELAYED, "step_tol": 1e-9},
    "tol_control": {"problem": CONTROLLED, "tol": 1e-7, "control": pid},
}
"""Problems and tolerances for runs with adaptive steps."""

RUNS: dict[str, dict[str, Any]] = {
    **{f"{name}.zarr": {**SHORT, **given} for name, given in STEPS.items()},
    "plain.nc": {"problem": TOP, "method": "imidm", **SHORT},
    "control.nc": {**SHORT, **STEPS["control"]},
    "chain.nc": {**SHORT, **STEPS["chain"]},
    "every.zarr": {"problem": TOP, "method": "imidm", "dt": 0.01, "steps": 9, "every": 4},
    "backwards.zarr": {"problem": TOP, "method": "imidm", "dt": 0.01, "t_end": -0.08},
    "clock_to_end.zarr": {"problem": TOP, "method": "reversible(imidm)", "dt": 0.01, "t_end": 0.08},
    "digits.zarr": {"problem": TOP, "method": "imidm", "dt": 0.01, "steps": 4, "digits": 25},
    "digits.nc": {"problem": TOP, "method": "imidm", "dt": 0.01, "steps": 4, "digits": 25},
    "times.zarr": {"problem": TILTED, "method": "mkrk(rk4)", "dt": 0.05, "times": [0.0, 0.123, 0.5]},
    "max_turn.zarr": {"problem": TILTED, "method": "mkrk(rk4)", "dt": 0.1, "steps": 5, "max_turn": 0.1},
    "events.zarr": {"problem": TILTED, "method": "mkrk(rk4)", "dt": 0.25, "steps": 10, "events": [level]},
    "terminal.nc": {"problem": TILTED, "method": "mkrk(rk4)", "dt": 0.1, "steps": 10, "events": [level, LATE]},
    "by_hand.zarr": {"problem": BY_HAND, "method": "mkrk(rk4)", "dt": 0.05, "steps": 10},
    "control_by_hand.zarr": {
        "problem": CONTROLLED, "method": "fem", "dt": 0.05, "steps": 10, "control": damper, "period": 0.2,
    },
    "failed.zarr": {"problem": FAILING, "method": "mkrk(rk4)", "dt": 0.05, "steps": 20},
    **{f"{name}.zarr": {**given, "t_end": 1.0} for name, given in TOLERANCES.items()},
    "tol.nc": {"problem": TILTED, "tol": 1e-9, "t_end": 1.0},
    "tol_backwards.zarr": {"problem": TILTED, "tol": 1e-9, "t_end": -1.0, "every": 3},
    "tol_times.zarr": {"problem": TILTED, "tol": 1e-9, "times": [0.0, 0.3, 2.0]},
    "tol_stops.zarr": {"problem": TILTED, "tol": 1e-9, "t_end": 1.0, "stops": [0.333], "max_step": 0.25},
    "tol_events.zarr": {"problem": TILTED, "tol": 1e-9, "t_end": 5.0, "events": [level]},
    "tol_terminal.nc": {"problem": TILTED, "step_tol": 1e-9, "t_end": 5.0, "events": [level, LATE]},
    "tol_digits.zarr": {"problem": TILTED, "tol": 1e-18, "digits": 20, "t_end": 0.5},
    "tol_failed.zarr": {"problem": FAILING, "step_tol": 1e-6, "t_end": 1.0},
}  # fmt: skip
"""Files of `ph.solve(out=...)`: the arguments."""

SAVED: dict[str, dict[str, Any]] = {
    "saved.zarr": RUNS["several.zarr"],
    "saved.nc": RUNS["several.zarr"],
    "saved_chain.zarr": RUNS["chain.zarr"],
    "saved_control.nc": RUNS["control.zarr"],
    "saved_events.nc": RUNS["tol_events.zarr"],
    "saved_exact.zarr": {"problem": TOP, "method": "lagrange", "dt": 0.05, "steps": 6},
}
"""Files of `sol.save`: the arguments of the run, which was in memory."""

KILLED: dict[str, tuple[int, dict[str, Any]]] = {
    **{f"killed_{name}.zarr": (3, {**LONG, **given}) for name, given in STEPS.items()},
    "killed_plain.nc": (3, {**LONG, **STEPS["plain"]}),
    "killed_control.nc": (3, {**LONG, **STEPS["control"]}),
    "killed_backwards.zarr": (3, {"problem": TOP, "method": "imidm", "dt": 0.01, "t_end": -1.6, "every": 8}),
    "killed_clock_to_end.zarr": (3, {**LONG, **STEPS["clock"], "steps": None, "t_end": 1.6}),
    "killed_digits.zarr": (4, {"problem": TOP, "method": "imidm", "dt": 0.01, "steps": 6, "digits": 25}),
    **{f"killed_{name}.zarr": (1, {**given, "t_end": 6.0}) for name, given in TOLERANCES.items()},
    "killed_tol.nc": (1, {"problem": TILTED, "tol": 1e-9, "t_end": 6.0}),
    "killed_tol_backwards.zarr": (1, {"problem": TILTED, "step_tol": 1e-9, "t_end": -6.0, "every": 7}),
    "killed_tol_events.zarr": (1, {"problem": TILTED, "tol": 1e-9, "t_end": 6.0, "events": [level]}),
    "killed_tol_digits.zarr": (1, {"problem": TILTED, "tol": 1e-18, "digits": 20, "t_end": 1.0}),
}
"""Files of `ph.solve(out=..., resume=True)` that was killed: after which write to the file, and the arguments."""

# --- many bodies ------------------------------------------------------------------------------------

NUMBER, UNIT = 6, 2
SPREAD = np.linspace(0.8, 1.2, NUMBER)
START = np.outer(SPREAD, OMEGA)
WEIGHTS = {"field": ph.fields.gravity, "params": {"mgl": SPREAD}}
BODIES = {"body": [1.0, 1.5, 2.0], "momentum": START, **WEIGHTS}
FEW = {"method": "imidm", "dt": 0.05, "steps": 20, "every": 10}

CROWDS: dict[str, dict[str, Any]] = {
    "crowd.zarr": {**BODIES, **FEW},
    "crowd_steps.zarr": {**BODIES, **FEW, "dt": 0.05 * SPREAD},
    "crowd_axes.zarr": {**BODIES, **FEW, "body": [ph.Body(np.array(TENSOR) * x) for x in SPREAD]},
    "crowd_statistics.zarr": {**BODIES, **FEW, "statistics": ["energy", "momentum"]},
    "crowd_noise.zarr": {
        "body": [1.0, 1.5, 2.0], "momentum": START, "field": BATH, **FEW, "method": "baoab(rot123)",
    },
    "crowd_control.zarr": {"body": CONTROLLED, "omega": START, **FEW, "method": "fem", "control": pid},
    "crowd_burns.zarr": {"body": SEVERAL, "omega": START, **FEW, "method": "mkrk(rk4)"},
    "crowd_at_times.zarr": {**BODIES, **FEW, "every": None, "steps": None, "times": [0.0, 0.3, 1.0]},
    "crowd_tol.zarr": {**BODIES, "tol": 1e-7, "t_end": 1.0, "events": [level]},
    "crowd_step_tol.zarr": {**BODIES, "step_tol": 1e-7, "times": [0.3, 1.0]},
}  # fmt: skip
"""Files of `ph.ensemble(out=...)`: the arguments."""

SAVED_CROWDS = {"saved_crowd.zarr": "crowd_statistics.zarr", "saved_crowd.nc": "crowd_statistics.zarr"}
"""Files of `many.save`, and the arguments of their runs in memory."""

KILLED_CROWDS = {f"killed_{name}": name for name in CROWDS}
"""Files of `ph.ensemble(out=..., unit=UNIT, resume=True)` that was killed when two thirds of it were written."""

KILLED_UNITS = {"killed_within_a_unit.zarr": "crowd.zarr"}
"""The same with one unit, killed after the second checkpoint of it."""

# --- the command line -------------------------------------------------------------------------------

PROBLEM = """
[body]
moments = [0.9144, 1.098, 1.66]
[start]
omega = [0.45549, 0.82623, 0.03476]
[[field]]
name = "gravity"
mgl = 0.2
[run]
tol = 1e-9
t_end = 6.0
"""
SWEEP = """
[problem]
name = "fast_top"
[run]
method = "imidm"
dt = 0.01
steps = 20
every = 10
[grid]
params.mgl = [15, 20, 25]
omega.z = [40, 50]
"""
INPUTS = {"problem.toml": PROBLEM, "sweep.toml": SWEEP}

COMMANDS: dict[str, tuple[str, ...]] = {
    "run_command.zarr": ("run", "fast_top", "-m", "imidm", "--dt", "0.01", "--steps", "160", "--every", "8"),
    "run_command_tol.zarr": ("run", "problem.toml"),
    "sweep_command.zarr": ("sweep", "sweep.toml", "--shard", "2"),
}
"""Files of `polhode ... --out FILE --resume`: the arguments, in a folder with `INPUTS`."""

KILLED_COMMANDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "killed_run_command.zarr": (3, COMMANDS["run_command.zarr"]),
    "killed_run_command_tol.zarr": (1, COMMANDS["run_command_tol.zarr"]),
    "killed_sweep_command.zarr": (3, COMMANDS["sweep_command.zarr"]),
}
"""The same, killed: at which write to the file."""

# --- calls ------------------------------------------------------------------------------------------


def solved(given: Mapping[str, Any], **more: Any) -> ph.Trajectory:
    """Run one body."""
    given = dict(given)
    return ph.solve(given.pop("problem"), given.pop("method", None), progress=False, **given, **more)


def crowd(given: Mapping[str, Any], **more: Any) -> ph.Ensemble:
    """Run many bodies."""
    given = {"momentum": None, "method": None, **given}
    bodies, momentum, method = (given.pop(name) for name in ("body", "momentum", "method"))
    return ph.ensemble(bodies, None, momentum, method, progress=False, **given, **more)


# --- what a file says -------------------------------------------------------------------------------


def content(found: Any) -> dict[str, np.ndarray]:
    """All arrays of a file that was loaded, with what else it holds in numbers."""
    if not isinstance(found, ph.Trajectory):
        names = ("t", "quaternion", "momentum", "moments", "failed", "steps", "error_estimate")
        arrays = {name: getattr(found, name) for name in names}
        arrays["energy_change"] = found.to_xarray().get("energy_change")
        arrays |= {f"{of} {name}": x for of, one in found.statistics.items() for name, x in vars(one).items()}
        arrays |= {f"state_{name}": values for name, values in found.states.items()}
        finished = found.status == "finished"
        events = [state for of_event in (found.events if finished else []) for state in of_event]
    else:
        arrays, events = dict(found.stored), found.events
        arrays["error_estimate"] = found.error_estimate
        arrays["samples"] = None if found.control is None else found.control.torque
    arrays |= {f"event {i} {name}": getattr(one, name) for i, one in enumerate(events) for name in ("t", "momentum")}
    return {name: np.asarray(values, dtype=float) for name, values in arrays.items() if values is not None}


SHOWN = ("t", "quaternion", "momentum", "error_estimate")
"""Arrays of which the last numbers are recorded, besides the digests."""


def record(found: Any) -> dict[str, Any]:
    """What is recorded of a file: the shape of each array, a digest of its bits, and some numbers in hexadecimal."""
    text: dict[str, Any] = {"kind": type(found).__name__, "status": found.status, "method": found.method}
    for name, values in content(found).items():
        bits = hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()[:12]
        last = values.ravel()[-4:].tolist() if name in SHOWN else []
        text[name] = [list(values.shape), bits, *(float(x).hex() for x in last)]
    if isinstance(found, ph.Trajectory):
        text["steps"], text["digits"] = found.info.steps, found.info.digits
        text["has a problem"] = found.problem is not None
    return text


def file_of(name: str) -> str:
    """The file of a run in its archive: the rows of an unfinished NetCDF file are in a store beside it."""
    return trajectory_store.staging_path(Path(name)).name if name.startswith("killed") else name


def unpacked(name: str, folder: Path) -> Path:
    """Unpack a file into a folder; return the path that the run was given."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name
