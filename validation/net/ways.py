"""The ways of computing a motion, each with what it must agree with. See `WAYS`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import CASES, END, FAILS, ONE, STEP, Case, Units
from .check import ALARM, Cell, Skip, filled, within

TOL = 1e-9
ROUND_OFF = 1e-12
"""Largest difference between ways that compute the same in another order of operations."""

HOWS: dict[str, dict[str, Any]] = {
    "dt": {},
    "tol": {"tol": TOL},
    "step_tol": {"step_tol": TOL},
    "method, tol": {"method": "trapm", "tol": 1e-4},
}
"""How a run steps; with equal steps, the method is that of the motion."""

TIMES = np.array([0.3, 0.7001, 1.1, 1.77, 2.0])
"""Times at which states are asked for, most of them within steps; the last is the end."""

ON_STEPS = np.array([0.3, 0.7, 1.1, 1.75, 2.0])
"""The same at ends of equal steps."""

EVENT = 1.1234
"""The time of the event."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A motion and how it steps."""

    case: Case
    how: str
    units: Units = ONE

    @property
    def equal(self) -> bool:
        """Whether steps are equal."""
        return self.how == "dt"

    @property
    def error(self) -> float:
        """The error allowed between runs whose steps differ."""
        return {"dt": 1e-4, "method, tol": 1e-3}.get(self.how, 100 * TOL)

    def options(self, step: float = STEP) -> dict[str, Any]:
        """The arguments of a run that say how it moves; not its end."""
        how: dict[str, Any] = HOWS[self.how]
        if self.equal:
            how = {"method": self.case.method, "dt": step * self.units.time}
        return how | ({} if self.case.control is None else self.case.control(self.units)) | {"progress": False}

    def solve(self, problem: ph.Problem | None = None, **more: Any) -> ph.Trajectory:
        """Run one body."""
        arguments = self.options() | ({"t_end": END * self.units.time} if "steps" not in more else {}) | more
        return ph.solve(self.problem if problem is None else problem, **arguments)

    def ensemble(self, problem: ph.Problem | None = None, number: int = 1, **more: Any) -> Any:
        """Run so many bodies; the first is that of `solve`, the others start in other states."""
        problem = self.problem if problem is None else problem
        momentum = np.tile(problem.momentum, (number, 1))
        momentum[1:] *= 1 + 0.01 * np.arange(1, number)[:, None]
        arguments = self.options() | {"t_end": END * self.units.time, "momentum": momentum} | more
        return ph.ensemble(problem, **arguments)

    @functools.cached_property
    def problem(self) -> ph.Problem:
        """The problem."""
        return self.case.problem(self.units)

    @functools.cached_property
    def base(self) -> ph.Trajectory:
        """The plain run, with which others are compared."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.solve()


Way = Callable[[Run, Cell], None]


# --- what is kept -----------------------------------------------------------------------------------


def plain(run: Run, cell: Cell) -> None:
    """The run itself: it ends at the end, and its numbers are numbers."""
    sol = run.solve()
    cell.same_path("path", sol, sol)
    cell.keep("estimate", sol.error_estimate)
    cell.claim(abs(sol.t[-1] - END) < ROUND_OFF, f"ends at {sol.t[-1]!r}, not at {END}")
    cell.claim((np.diff(sol.t) > 0).all(), "times do not increase")
    cell.claim(np.isfinite(sol.momentum).all(), "a state is not finite")


def again(run: Run, cell: Cell) -> None:
    """A second and a third run have the bits of the first."""
    cell.same_path("second call", run.solve(), run.base)
    cell.same_path("third call", run.solve(run.case.problem(run.units)), run.base)


def every(run: Run, cell: Cell) -> None:
    """Every third state is a state of the whole run."""
    n = len(run.base.t)
    cell.same_path("every third state", run.solve(every=3), run.base, sorted({*range(0, n, 3), n - 1}))


def times(run: Run, cell: Cell) -> None:
    """States at given times are those of dense output, at these times and no others."""
    sol = run.solve(times=TIMES)
    cell.same("times asked for", sol.t, TIMES)
    cell.same_path("states at times", sol, run.base.at(TIMES))
    with_start = np.array([0.0, *TIMES])
    cell.same("times asked for, the start among them", run.solve(times=with_start).t, with_start)


def max_turn(run: Run, cell: Cell) -> None:
    """States between steps leave those of the steps as they are."""
    sol = run.solve(max_turn=0.02)
    kept = np.isin(sol.t, run.base.t)
    cell.claim(len(sol.t) > len(run.base.t), "no states between steps")
    cell.claim(kept.sum() == len(run.base.t), "steps are missing")
    if kept.sum() == len(run.base.t):
        cell.close("momentum at steps", sol.momentum[kept], run.base.momentum, ROUND_OFF)


def at_steps(run: Run, cell: Cell) -> None:
    """Dense output at the ends of steps gives the states there."""
    base = run.base
    sol = base.at(base.t)
    cell.close_states("at steps", (sol.quaternion, sol.momentum), (base.quaternion, base.momentum), ROUND_OFF)


def _event(run: Run, **more: Any) -> Any:
    moment = EVENT * run.units.time

    def passing(t: Any, a: Any = moment) -> Any:
        return t - a

    return ph.event(passing, **more)


def _level() -> Any:
    def level(R: Any) -> Any:
        return R[2][0] - 0.4

    return ph.event(level)


def events(run: Run, cell: Cell) -> None:
    """Events leave the path as it is; each state at an event is one of dense output."""
    sol = run.solve(events=[_event(run), _level()])
    cell.same_path("path with events", sol, run.base)
    cell.claim(len(sol.events[0]) == 1, f"the event occurred {len(sol.events[0])} times")
    for found in sol.events:
        if len(found):
            state = run.base.at(found.t)
            cell.close_states(
                "at the event", (found.quaternion, found.momentum), (state.quaternion, state.momentum), 1e-11
            )
    if len(sol.events[0]):
        cell.claim(abs(sol.events[0].t[0] - EVENT) < 1e-9, f"the event is at {sol.events[0].t[0]!r}")


def terminal(run: Run, cell: Cell) -> None:
    """A terminal event ends the run; the states before it are those of the run without it."""
    sol = run.solve(events=_event(run, terminal=True))
    cell.claim(abs(sol.t[-1] - EVENT) < 1e-9, f"ends at {sol.t[-1]!r}, not at {EVENT}")
    if run.equal:  # otherwise the steps depend on where the run ends
        before = sol.t < EVENT - 1e-9
        whole = run.base.momentum[run.base.t < EVENT - 1e-9]
        cell.close("momentum before the event", sol.momentum[before], whole, ROUND_OFF)
    state = run.base.at(sol.t[-1:])
    cell.close_states(
        "at the event", (sol.quaternion[-1:], sol.momentum[-1:]), (state.quaternion, state.momentum), 1e-11
    )


# --- statistics -------------------------------------------------------------------------------------


def _tilt(R: Any, omega: Any) -> Any:
    return R[2][2] * omega[0]


OBSERVED: dict[str, Callable[[Any], np.ndarray]] = {
    "energy": lambda sol: sol.energy,
    "omega": lambda sol: sol.omega,
    "momentum_norm": lambda sol: np.linalg.norm(sol.momentum, axis=-1),
    "spatial_momentum": lambda sol: sol.spatial_momentum,
    "_tilt": lambda sol: sol.matrix[:, 2, 2] * sol.omega[:, 0],
}
"""What statistics observe, from a path."""

ASKED = [_tilt if name == "_tilt" else name for name in OBSERVED]


def _compare_statistics(cell: Cell, found: Any, path: Any) -> None:
    """Claim that statistics are those of the states of a path."""
    for name, observed in OBSERVED.items():
        one, values = found[name], observed(path)
        expected = {
            "first": values[0], "last": values[-1], "min": values.min(axis=0), "max": values.max(axis=0),
            "mean": values.mean(axis=0),
        }  # fmt: skip
        for part, value in expected.items():
            cell.close(f"{name}.{part}", getattr(one, part), value, ROUND_OFF)


def statistics(run: Run, cell: Cell) -> None:
    """Statistics are those of the path that the same call returns, which is the path without them."""
    if run.equal:
        sol = run.solve(statistics=ASKED)
        cell.same_path("path with statistics", sol, run.base)
        _compare_statistics(cell, sol.statistics, sol)
    else:
        asked = np.array([0.0, *TIMES])
        sol = run.solve(statistics=ASKED, times=asked)
        cell.same_path("path with statistics", sol, run.base.at(asked))
        _compare_statistics(cell, sol.statistics, sol)


def statistics_to_an_event(run: Run, cell: Cell) -> None:
    """Statistics end where the run ends."""
    event = _event(run, terminal=True)
    if run.equal:
        sol = run.solve(statistics=ASKED, events=event)
        cell.claim(abs(sol.t[-1] - EVENT) < 1e-9, f"ends at {sol.t[-1]!r}, not at {EVENT}")
        _compare_statistics(cell, sol.statistics, sol)
    else:  # the end is not among the times asked for
        asked = np.array([0.0, *TIMES])
        sol = run.solve(statistics=ASKED, events=event, times=asked)
        cell.same("times up to the event", sol.t, asked[asked < EVENT])
        seen = run.solve(events=event).at([*sol.t, *sol.events[0].t])
        _compare_statistics(cell, sol.statistics, seen)


def statistics_of_a_failure(run: Run, cell: Cell) -> None:
    """A step that fails leaves the states before it."""
    asked = {} if run.equal else {"times": np.array([0.0, *TIMES])}
    _fails(run, cell, statistics=["omega"], **asked)


# --- derivatives ------------------------------------------------------------------------------------


def tangent(run: Run, cell: Cell) -> None:
    """Derivatives leave the path as it is, and are those of neighbouring runs."""
    sol = run.solve(tangent=True)
    cell.same_path("path with derivatives", sol, run.base)
    matrix = sol.tangent.matrix[-1]
    h = 1e-4 if run.equal else 1e-3
    for axis in range(3):
        ends = [_neighbour(run, axis, s * h) for s in (-2, -1, 1, 2)]
        slope = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h)
        cell.close(f"derivative by momentum {axis}", matrix[3:, 3 + axis], slope, max(run.error, 2e-4))


def _neighbour(run: Run, axis: int, change: float) -> np.ndarray:
    momentum = np.array(run.problem.momentum, dtype=float)
    momentum[axis] += change
    problem = run.problem.starting(attitude=run.problem.quaternion, momentum=momentum)
    end: np.ndarray = run.solve(problem).momentum[-1]
    return end


def gradient(run: Run, cell: Cell) -> None:
    """The gradient of a function of the end is that of the derivatives of the states."""
    options = {name: value for name, value in run.options().items() if name != "progress"}
    if not run.equal or run.case.control is not None:
        raise Skip
    found = ph.gradient(_second, run.problem, options["method"], dt=options["dt"], steps=round(END / STEP))
    matrix = run.solve(tangent=True).tangent.matrix[-1]
    cell.close("gradient by momentum", np.asarray(found.momentum), matrix[4, 3:], 1e-9)


def _second(R: Any, momentum: Any) -> Any:
    return momentum[1]


# --- files ------------------------------------------------------------------------------------------


def _through(suffix: str, run: Run, cell: Cell) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run{suffix}"
        more: dict[str, Any] = {} if run.equal else {"max_turn": 0.25}
        sol = run.solve(out=path)
        whole = run.base if run.equal else run.solve(**more)
        cell.same_path("run in a file", sol, whole)
        back = ph.load(path)
        cell.same_path("loaded", back, whole)
        if back.dense is not None and whole.dense is not None:
            one, other = back.at(TIMES), whole.at(TIMES)
            cell.close_states(
                "loaded, between steps", (one.quaternion, one.momentum), (other.quaternion, other.momentum),
                ROUND_OFF if run.equal else run.error,
            )  # fmt: skip


def zarr(run: Run, cell: Cell) -> None:
    """A run in a Zarr store is the run in memory."""
    _through(".zarr", run, cell)


def netcdf(run: Run, cell: Cell) -> None:
    """A run in a NetCDF file is the run in memory."""
    _through(".nc", run, cell)


class _Stop(Exception):
    """Stops a run by its progress."""


def resumed(run: Run, cell: Cell) -> None:
    """A run that is stopped and resumed is the run that was not, and so is one that is made longer."""
    with tempfile.TemporaryDirectory() as folder:
        whole = run.solve(out=Path(folder) / "whole.zarr")
        path, short = Path(folder) / "stopped.zarr", Path(folder) / "short.zarr"

        def stop(done: float) -> None:
            raise _Stop

        try:
            run.solve(out=path, progress=stop)
            cell.found.append("progress is not called, so that the run cannot be stopped")
        except _Stop:
            cell.same_path("stopped, then resumed", run.solve(out=path, resume=True), whole)
        if run.equal:
            run.solve(out=short, t_end=END / 2)
            cell.same_path("made longer", run.solve(out=short, resume=True), whole)


# --- other entry points -----------------------------------------------------------------------------


def _end(sol: Any) -> tuple[np.ndarray, np.ndarray]:
    return sol.quaternion[-1], sol.momentum[-1]


def _ends(many: Any, body: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return many.quaternion[-1, body], many.momentum[-1, body]


def ensemble_of_one(run: Run, cell: Cell) -> None:
    """An ensemble of one body ends in the state of the single run."""
    many = run.ensemble()
    cell.claim((many.failed < 0).all(), f"failed in step {many.failed}")
    cell.close_states("ensemble of one", _ends(many), _end(run.base), ROUND_OFF if run.equal else run.error)
    for name, values in run.base.states.items():
        if name in many.states:
            cell.close(f"ensemble of one: {name}", many.states[name][-1, 0], values[-1], 1e-7)
        else:
            cell.found.append(f"the ensemble has no {name}")


def ensemble_of_many(run: Run, cell: Cell) -> None:
    """A body of an ensemble depends neither on the others nor on how many they are."""
    many, one = run.ensemble(number=19), run.ensemble()
    cell.claim((many.failed < 0).all(), f"failed in steps {many.failed}")
    cell.same("quaternion of the first of many", many.quaternion[:, 0], one.quaternion[:, 0])
    cell.same("momentum of the first of many", many.momentum[:, 0], one.momentum[:, 0])
    cell.keep("all", many.momentum[-1])


def ensemble_times(run: Run, cell: Cell) -> None:
    """An ensemble keeps the states at the times asked for, as a single run does."""
    asked = ON_STEPS if run.equal else TIMES
    many, sol = run.ensemble(number=2, times=asked), run.solve(times=asked)
    cell.same("times of the ensemble", many.t if many.t.ndim == 1 else many.t[:, 0], asked)
    cell.close_states(
        "at times", (many.quaternion[:, 0], many.momentum[:, 0]), (sol.quaternion, sol.momentum), max(run.error, 1e-7)
    )


def ensemble_every(run: Run, cell: Cell) -> None:
    """Every third state of an ensemble."""
    many, sol = run.ensemble(number=2, every=3), run.solve(every=3)
    cell.close("times", many.t if many.t.ndim == 1 else many.t[:, 0], sol.t, ROUND_OFF)
    cell.close_states(
        "every third", (many.quaternion[:, 0], many.momentum[:, 0]), (sol.quaternion, sol.momentum), ROUND_OFF
    )


def ensemble_statistics(run: Run, cell: Cell) -> None:
    """Statistics of an ensemble are those of the single run; with times, its states at these are there too."""
    asked = ON_STEPS if run.equal else TIMES
    many = run.ensemble(number=2, statistics=ASKED, times=asked)
    with_start = np.array([0.0, *asked])
    sol = run.solve(times=with_start)
    for name, observed in OBSERVED.items():
        values = observed(sol)
        expected = {"first": values[0], "last": values[-1], "max": values.max(axis=0), "mean": values.mean(axis=0)}
        for part, value in expected.items():
            cell.close(f"{name}.{part}", getattr(many.statistics[name], part)[0], value, max(run.error, 1e-7))
    cell.same("times of the ensemble", many.t if many.t.ndim == 1 else many.t[:, 0], asked)
    if run.equal:
        each, whole = run.ensemble(number=2, statistics=ASKED), run.base
        for name, observed in OBSERVED.items():
            cell.close(f"every step: {name}", each.statistics[name].mean[0], observed(whole).mean(axis=0), 1e-9)


def ensemble_events(run: Run, cell: Cell) -> None:
    """Events of an ensemble are those of the single run."""
    many, sol = run.ensemble(number=2, events=[_event(run), _level()]), run.solve(events=[_event(run), _level()])
    for k in range(2):
        cell.close(f"times of event {k}", many.events[k][0].t, sol.events[k].t, max(run.error, 1e-7))


def ensemble_tangent(run: Run, cell: Cell) -> None:
    """Derivatives of an ensemble are those of the single run."""
    many, sol = run.ensemble(number=2, tangent=True), run.solve(tangent=True)
    cell.close("derivatives", many.tangent.matrix[-1, 0], sol.tangent.matrix[-1], max(run.error, 1e-6))


def ensemble_in_a_store(run: Run, cell: Cell) -> None:
    """An ensemble in a store is the one in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.zarr"
        run.ensemble(number=5, out=path, unit=2)
        back, many = ph.load(path), run.ensemble(number=5)
        cell.same("quaternion in the store", np.asarray(back.quaternion), many.quaternion)
        cell.same("momentum in the store", np.asarray(back.momentum), many.momentum)


def propagator(run: Run, cell: Cell) -> None:
    """A propagator gives the bits of the single run."""
    if run.how not in ("tol", "step_tol") or run.case.control is not None:
        raise Skip
    fly = ph.propagator(run.problem, **HOWS[run.how])
    for name in ("first", "second"):
        end = fly(run.problem.quaternion, run.problem.momentum, END)
        cell.same(f"quaternion, {name} call", end.quaternion, run.base.quaternion[-1])
        cell.same(f"momentum, {name} call", end.momentum, run.base.momentum[-1])


def stepper(run: Run, cell: Cell) -> None:
    """Steps one by one are the steps of the single run."""
    if not run.equal or run.case.control is not None:
        raise Skip
    one = ph.stepper(run.problem.body, run.case.method, STEP)
    state: Any = ph.State(tuple(run.problem.quaternion), tuple(run.problem.momentum))
    steps = round(END / STEP)
    for _ in range(steps):
        state = one.step(state, run.problem.field)
    cell.close_states("steps one by one", (state.quaternion, state.momentum), _end(run.base), ROUND_OFF)


def batch_stepper(run: Run, cell: Cell) -> None:
    """Steps in the caller's arrays have the bits of those of an ensemble."""
    traits = run.case.traits
    if not run.equal or not traits & {cases.FREE}:
        raise Skip  # the caller computes torques
    body = ph.batch_stepper([run.problem.body] * 2, run.case.method, STEP)
    q = np.tile(np.array(run.problem.quaternion, dtype=float), (2, 1))
    m = np.tile(np.array(run.problem.momentum, dtype=float), (2, 1))
    body.step(q, m, n=round(END / STEP))
    many = run.ensemble(number=1)
    cell.same("quaternion in arrays", q[0], many.quaternion[-1, 0])
    cell.same("momentum in arrays", m[0], many.momentum[-1, 0])


def digits(run: Run, cell: Cell) -> None:
    """In 30 digits, the path differs by round-off, or by the tolerance."""
    more = {} if run.equal else {"t_end": 0.2}
    sol = run.solve(digits=30, **more)
    base = run.base if run.equal else run.solve(**more)
    cell.close_states("in digits", _end(sol), _end(base), ROUND_OFF if run.equal else run.error)


# --- units and direction ----------------------------------------------------------------------------

EXPONENTS = ((-190, 0), (190, 0), (0, -190), (0, 190), (150, -120))
"""Powers of two of the units of time and of inertia: 1e57, and a slow body of small inertia."""


def units(run: Run, cell: Cell) -> None:
    """In other units the motion has the same bits; of an ensemble too, and derivatives do not fail."""
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        sol = other.solve()
        name = f"time 2^{a}, inertia 2^{b}"
        same_steps = run.equal or (run.how != "method, tol" and not run.case.traits & {cases.STATES})
        alike = same_steps and sol.quaternion.shape == run.base.quaternion.shape
        same = cell.same if alike else _ends_only(cell)
        same(f"quaternion, {name}", sol.quaternion, run.base.quaternion)
        same(f"momentum, {name}", np.ldexp(sol.momentum, a - b), run.base.momentum)


def _ends_only(cell: Cell) -> Any:
    """Other steps may be chosen: only the ends are compared."""
    return lambda what, now, before: cell.close(what, now[-1], before[-1], 100 * TOL)


def ensemble_units(run: Run, cell: Cell) -> None:
    """In other units an ensemble ends in the same states."""
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        many = other.ensemble()
        name = f"time 2^{a}, inertia 2^{b}"
        cell.claim((many.failed < 0).all(), f"{name}: failed in step {many.failed}")
        q, m = _ends(many)
        cell.close_states(name, (q, np.ldexp(m, a - b)), _end(run.base), max(run.error, 1e-9))


def tangent_units(run: Run, cell: Cell) -> None:
    """In other units derivatives are the same."""
    base = run.solve(tangent=True).tangent.matrix[-1]
    for a, b in EXPONENTS:
        other = Run(run.case, run.how, Units(2.0**a, 2.0**b))
        matrix = np.array(other.solve(tangent=True).tangent.matrix[-1])
        matrix[:3, 3:], matrix[3:, :3] = np.ldexp(matrix[:3, 3:], b - a), np.ldexp(matrix[3:, :3], a - b)
        cell.close(f"derivatives, time 2^{a}, inertia 2^{b}", matrix, base, 1e-6)


def backwards(run: Run, cell: Cell) -> None:
    """A run backwards in time returns to the start."""
    q, m = _end(run.base)
    back = ph.Problem(run.problem.body, _with_states(run, run.base), attitude=q, momentum=m, t0=END)
    more = {"dt": -STEP, "steps": round(END / STEP)} if run.equal else {"t_end": 0.0}
    sol = run.solve(back, **more)
    start = (run.problem.quaternion, run.problem.momentum)
    cell.close_states("back at the start", _end(sol), start, 1e-4 if run.equal else max(run.error, 1e-6))


def restarted(run: Run, cell: Cell) -> None:
    """A run from the state in the middle of another ends where that does."""
    half = run.solve(t_end=END / 2)
    if run.case.control is not None:
        raise Skip  # the samples would begin with another memory
    middle = {"attitude": half.quaternion[-1], "momentum": half.momentum[-1]}
    rest = ph.Problem(run.problem.body, _with_states(run, half), **middle, t0=END / 2)
    cell.close_states("after a restart", _end(run.solve(rest)), _end(run.base), 1e-11 if run.equal else run.error)


def _with_states(run: Run, sol: ph.Trajectory) -> Any:
    """The field of a motion with its states, or its number of random steps, at the end of a run."""
    field = run.problem.field
    if run.case.traits & {cases.NOISE}:
        return field.bind(first_step=len(sol.t) - 1)
    if run.case.traits & {cases.CHAIN}:
        # a chain is a value of the thermostat, so the field is made again
        chain = sol.states["chain_position"][-1], sol.states["chain_velocity"][-1]
        return cases.chain(run.units, chain)
    own = getattr(field, "states", None) or {}
    return field.bind(**{name: sol.states[name][-1] for name in own}) if own else field


def stops(run: Run, cell: Cell) -> None:
    """Steps end at the times given as `stops`, and the run ends where it did."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip  # exact, without steps
    sol = run.solve(stops=[0.41, 1.5])
    cell.claim(np.isin([0.41, 1.5], sol.t).all(), "no step ends at a stop")
    cell.close_states("with stops", _end(sol), _end(run.base), run.error)


def max_step(run: Run, cell: Cell) -> None:
    """No step is longer than `max_step`, and the run ends where it did."""
    sol = run.solve(max_step=0.02)
    cell.claim(np.diff(sol.t).max() <= 0.02 * (1 + 1e-12), f"a step of {np.diff(sol.t).max()}")
    cell.close_states("with short steps", _end(sol), _end(run.base), run.error)


def pickled(run: Run, cell: Cell) -> None:
    """A problem, and a result, are the same after pickling."""
    problem = pickle.loads(pickle.dumps(run.problem))
    cell.same_path("run of a pickled problem", run.solve(problem), run.base)
    cell.same_path("pickled result", pickle.loads(pickle.dumps(run.solve())), run.base)


# --- progress, Ctrl-C, failure, memory --------------------------------------------------------------


def _progress(cell: Cell, run: Callable[..., Any]) -> Any:
    said: list[float] = []
    result = run(progress=said.append)
    cell.claim(bool(said), "progress is never called")
    cell.claim(not said or said[-1] == 1.0, f"progress ends with {said[-1:]}")
    cell.claim(said == sorted(said), "progress goes back")
    return result


def progress(run: Run, cell: Cell) -> None:
    """A function is told the progress up to 1, and changes no bit."""
    cell.same_path("path with progress", _progress(cell, run.solve), run.base)
    _junk_progress(cell, run.solve)


def _junk_progress(cell: Cell, run: Callable[..., Any]) -> None:
    try:
        run(progress="yes")
    except ph.InputError:
        return
    cell.found.append("progress='yes' is accepted")


def ensemble_progress(run: Run, cell: Cell) -> None:
    """The same for an ensemble."""
    many = _progress(cell, functools.partial(run.ensemble, number=3))
    cell.same("momentum with progress", many.momentum, run.ensemble(number=3).momentum)
    _junk_progress(cell, run.ensemble)


LONG = 2e6
"""An end that no run reaches before it is interrupted."""

PATIENCE = 0.4
"""Seconds until Ctrl-C."""

FAR, SOON = 100.0, 0.05
"""The same for methods without an estimate of their error, which make no longer run."""


def _without_end(run: Run) -> dict[str, Any]:
    if run.equal:
        return {"steps": round(LONG / STEP), "t_end": None}
    return {"t_end": FAR if run.how == "method, tol" else LONG}


def interrupted(run: Run, cell: Cell) -> None:
    """Ctrl-C ends a run within a second, and leaves the states so far."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip  # exact, so that no end is far away
    run.base.t  # noqa: B018 - compiled
    _interrupt(cell, functools.partial(run.solve, **_without_end(run)), run)


def ensemble_interrupted(run: Run, cell: Cell) -> None:
    """Ctrl-C ends an ensemble within a second."""
    if run.case.traits & {cases.FREE} and not run.equal:
        raise Skip
    run.ensemble(number=40)
    _interrupt(cell, functools.partial(run.ensemble, number=40, **_without_end(run)), None)


def _interrupt(cell: Cell, long: Callable[[], Any], run: Run | None) -> None:
    if not ALARM:
        raise Skip
    began, patience = time.monotonic(), PATIENCE if run is None or run.how != "method, tol" else SOON
    try:
        with warnings.catch_warnings(), within(patience, KeyboardInterrupt):
            warnings.simplefilter("ignore")
            long()
    except KeyboardInterrupt as stop:
        waited = time.monotonic() - began - patience
        cell.claim(waited < 1.0, f"Ctrl-C took {waited:.1f} s")
        if run is None:
            return
        partial = getattr(stop, "partial", None)
        cell.claim(partial is not None, "Ctrl-C leaves no .partial")
        if partial is not None and run.equal:
            n = min(len(partial.t), len(run.base.t))
            cell.claim(np.array_equal(partial.momentum[:n], run.base.momentum[:n]), ".partial is of another path")
    else:
        cell.found.append("the run came to an end that it cannot reach" if run is None else "was not interrupted")


def fails(run: Run, cell: Cell) -> None:
    """A torque that ceases to be a number ends the run there, and leaves the states before."""
    _fails(run, cell)


def _fails(run: Run, cell: Cell, **more: Any) -> None:
    problem = run.case.problem(run.units, fails=True)
    options = run.options()
    if run.equal and not run.case.traits & {cases.STATES}:
        options["method"] = "mkrk(rk4)"
    try:
        sol = ph.solve(problem, **options | {"t_end": END} | more)
    except ph.StepError as failure:
        partial = failure.partial
        cell.claim(partial is not None, "the StepError has no .partial")
        if partial is not None:
            last = float(partial.t[-1])
            cell.keep("last state", partial.momentum[-1])
            cell.claim(FAILS - STEP <= last <= FAILS + 1e-6, f"the last state is at {last!r}, not at {FAILS}")
    except ph.InputError as refusal:
        if sum(word in str(refusal) for word in ("reasonable number", "jump")):
            cell.found.append(f"blames an argument: {refusal}")
        raise
    else:
        cell.found.append(f"no StepError; the run ends at {sol.t[-1]!r}")


def ensemble_fails(run: Run, cell: Cell) -> None:
    """The body of an ensemble is marked there, and its last state is good."""
    problem = run.case.problem(run.units, fails=True)
    more: dict[str, Any] = {"method": "mkrk(rk4)"} if run.equal and not run.case.traits & {cases.STATES} else {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        many = run.ensemble(problem, number=2, **more)
    cell.claim((many.failed >= 0).all(), f"failed is {many.failed}")
    cell.claim(np.isfinite(many.quaternion[-1]).all(), "the last good state is missing")
    reasons = [str(one.message) for one in said if "failed" in str(one.message)]
    cell.claim(reasons, "no warning says that bodies failed")
    for reason in reasons:
        cell.claim("jump" not in reason, f"names another cause: {reason}")


def memory(run: Run, cell: Cell) -> None:
    """More states than fit in memory are refused before the run."""
    if not run.equal:
        raise Skip  # the number of steps is not known beforehand
    try:
        with within(2.0):
            run.solve(steps=10**13, t_end=None)
    except ph.InputError as refusal:
        if " GB" not in str(refusal):
            raise
    else:
        cell.found.append("not refused")


def ensemble_memory(run: Run, cell: Cell) -> None:
    """The same for an ensemble that keeps every state."""
    if not run.equal:
        raise Skip  # the number of steps is not known beforehand
    try:
        with within(2.0):
            run.ensemble(steps=10**13, t_end=None, every=1)
    except ph.InputError as refusal:
        if " GB" not in str(refusal):
            raise
    else:
        cell.found.append("not refused")


WAYS: dict[str, Way] = {
    way.__name__.replace("_", " "): way
    for way in (
        plain, again, every, times, max_turn, at_steps, events, terminal, statistics, statistics_to_an_event,
        statistics_of_a_failure, tangent, gradient, zarr, netcdf, resumed, ensemble_of_one, ensemble_of_many,
        ensemble_times, ensemble_every, ensemble_statistics, ensemble_events, ensemble_tangent,
        ensemble_in_a_store, propagator, stepper, batch_stepper, digits, units, ensemble_units, tangent_units,
        backwards, restarted, stops, max_step, pickled, progress, ensemble_progress, interrupted,
        ensemble_interrupted, fails, ensemble_fails, memory, ensemble_memory,
    )
}  # fmt: skip
"""All ways, by name. The docstring of each says what it claims."""


def net(
    names: Callable[[str], bool] = lambda name: True, ways: dict[str, Way] | None = None
) -> Iterator[tuple[str, Cell]]:
    """Yield each wanted cell: "motion, how it steps, way", and what was found."""
    for case in CASES.values():
        for how in HOWS:
            run = Run(case, how)
            for way_name, way in (WAYS if ways is None else ways).items():
                name = f"{case.name} | {how} | {way_name}"
                if names(name):
                    with contextlib.suppress(Skip):
                        yield name, filled(way, run)
