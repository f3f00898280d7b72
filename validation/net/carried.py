"""Runs that go by another road: pickled, on workers, by the command line, compiled ahead, with torques in Python."""

from __future__ import annotations

import functools
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

from . import cases
from .cases import ATTITUDE, TENSOR, pd
from .check import Cell
from .runs import HOWS, ROUND_OFF, TIMES, Run, event_at, level_event

# --- pickled ----------------------------------------------------------------------------------------


def _sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@ph.controller(plain=True)
def clipped(R: Any, omega: Any, level: Any) -> Any:
    """A controller in plain Python, which can be found by its name."""
    return np.clip(pd(R, omega, 1.0, 2.0), -level, level)


PLAIN = {"control": clipped(0.3), "period": 0.1}


def _everything_pickled(name: str, how: str, cell: Cell) -> None:
    """Problem, method, event and controller after pickling give the run its bits, and so do they in an ensemble."""
    case, plain = name.removesuffix(" + plain"), name.endswith(" + plain")
    run = Run(cases.CASES[case], how)
    events, given = [event_at(run), level_event()], run.options() | (PLAIN if plain else {})
    options = {key: value if key == "period" else _sent(value) for key, value in given.items()}
    more: dict[str, Any] = {"t_end": cases.END, "events": events}
    sol = ph.solve(run.problem, **given | more)
    back = ph.solve(_sent(run.problem), **options | more | {"events": [_sent(event) for event in events]})
    cell.same_path("run", back, sol)
    for k, (one, other) in enumerate(zip(_sent(back).events, sol.events, strict=True)):
        cell.same(f"event {k}", one.t, other.t)
        cell.same(f"state at event {k}", one.momentum, other.momentum)
    if plain:
        cell.refuses("needs a controller that is a formula", lambda: ph.ensemble(run.problem, **options | more))
        return
    start = {"momentum": np.outer([1.0, 1.1], run.problem.momentum), "t_end": cases.END}
    many = ph.ensemble(run.problem, **given | start)
    again = _sent(ph.ensemble(_sent(run.problem), **options | start))
    cell.same("ensemble: quaternion", again.quaternion, many.quaternion)
    cell.same("ensemble: momentum", again.momentum, many.momentum)


PICKLED = (
    "free", "smooth", "relay", "thruster", "table", "states", "varying body", "controller", "pulses",
    "controller and relay", "smooth + plain",
)  # fmt: skip
"""Motions whose fields, bodies and controllers are sent."""


def results_pickled(cell: Cell) -> None:
    """Results, with their statistics, derivatives and dense output, are the same after pickling."""
    run = Run(cases.CASES["smooth"], "tol")
    sol = run.solve(tangent=True)
    back = _sent(sol)
    cell.same_path("path", back, sol)
    cell.claim(back.tangent is None, "derivatives are in the pickle, which it is said not to hold")
    cell.refuses("pickled trajectories do not have it", lambda: back.at([0.3]))
    seen = run.solve(statistics=["omega"], times=np.array([0.0, *TIMES]))
    cell.same("mean", _sent(seen).statistics["omega"].mean, seen.statistics["omega"].mean)
    chaos = ph.chaos(Run(cases.CASES["potential"], "tol").problem, t_end=1.0)
    cell.same("megno", _sent(chaos).megno, chaos.megno)
    lyapunov = ph.lyapunov(run.problem, step_tol=1e-8, t_end=1.0)
    cell.same("exponents", _sent(lyapunov).exponents, lyapunov.exponents)
    found = ph.gradient(_second, run.problem, "mkrk(rk4)", dt=0.1, steps=3)
    cell.same("gradient", _sent(found).momentum, found.momentum)
    tumbling = ph.tumbling(ph.Body([1.0, 1.7, 2.3]), energy=0.4, momentum=1.0)
    cell.same("periods", _sent(tumbling).P_psi, tumbling.P_psi)
    attitude = ph.kinematics(_rate, 1.0)
    cell.same("attitude", _sent(attitude).at([0.3]).quaternion, attitude.at([0.3]).quaternion)


def _second(momentum: Any) -> Any:
    return momentum[1]


def _rate(t: Any) -> Any:
    return ph.math.sin(t), 0.1, 0.3


# --- on workers and in stores -----------------------------------------------------------------------


def shards(cell: Cell) -> None:
    """An ensemble in a store is the one in memory, whatever its shards; and by steps to a tolerance too."""
    for how in ("dt", "tol", "step_tol"):
        run = Run(cases.CASES["smooth"], how)
        many = run.ensemble(number=11)
        with tempfile.TemporaryDirectory() as folder:
            for unit in (1, 4, 100):
                path = Path(folder) / f"{unit}.zarr"
                run.ensemble(number=11, out=path, unit=unit)
                back = ph.load(path)
                cell.same(f"quaternion, {how}, shards of {unit}", np.asarray(back.quaternion), many.quaternion)
                cell.same(f"momentum, {how}, shards of {unit}", np.asarray(back.momentum), many.momentum)


def workers(cell: Cell) -> None:
    """An ensemble on a Dask cluster is the one in memory, with its times, events and statistics."""
    from distributed import Client

    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(processes=False, n_workers=1, threads_per_worker=1, set_as_default=False, **quiet) as client,
    ):
        for how in ("dt", "tol"):
            run = Run(cases.CASES["smooth"], how)
            more: dict[str, Any] = {"events": [event_at(run)]} if how == "tol" else {"statistics": ["energy"]}
            many = run.ensemble(number=5, **more)
            path = Path(folder) / f"{how}.zarr"
            run.ensemble(number=5, out=path, unit=2, scheduler=client, **more)
            back = ph.load(path)
            cell.same(f"quaternion, {how}", np.asarray(back.quaternion), many.quaternion)
            cell.same(f"momentum, {how}", np.asarray(back.momentum), many.momentum)
            if how == "tol":
                for k in range(5):
                    cell.same(f"event of body {k}", back.events[0][k].t, many.events[0][k].t)
            else:
                cell.same("mean energy", back.statistics["energy"].mean, many.statistics["energy"].mean)


# --- by the command line ----------------------------------------------------------------------------


def _said(*words: str) -> str:
    from typer.testing import CliRunner

    from polhode.cli import app

    done = CliRunner().invoke(app, list(words))
    if done.exit_code:
        raise RuntimeError(f"polhode {' '.join(words)}: {done.output}")
    return str(done.output)


SETTINGS = {
    "dt": ({"method": "imidm", "dt": 0.05}, ["--method", "imidm", "--dt", "0.05"]),
    "tol": ({"tol": 1e-9}, ["--tol", "1e-9"]),
    "step_tol": ({"step_tol": 1e-9}, ["--step-tol", "1e-9"]),
}


def command_run(cell: Cell) -> None:
    """`polhode run` writes the bits of `ph.solve`."""
    problem = ph.problems.heavy_top()
    with tempfile.TemporaryDirectory() as folder:
        for how, (given, options) in SETTINGS.items():
            path = Path(folder) / f"{how}.zarr"
            _said("run", "heavy_top", *options, "--t-end", "2", "--times", "0.5,1,2", "--out", str(path))
            sol = ph.solve(problem, t_end=2.0, times=[0.5, 1.0, 2.0], **given)
            cell.same_path(how, ph.load(path), sol)


def command_sweep(cell: Cell) -> None:
    """`polhode sweep` writes the bits of `ph.ensemble`."""
    problem = ph.Problem(ph.Body([1.0, 1.5, 2.0]), ph.fields.gravity(1.3), omega=[0.4, -1.1, 0.7])
    mgl, z = (x.ravel() for x in np.meshgrid([0.5, 1.3], [0.7, 0.9, 1.1], indexing="ij"))
    omega = np.stack([0 * z + 0.4, 0 * z - 1.1, z], axis=1)
    grid = "[grid]\nparams.mgl = [0.5, 1.3]\nomega.z = [0.7, 0.9, 1.1]\n"
    start = '[problem]\nmoments = [1.0, 1.5, 2.0]\nfield = "gravity"\nparams.mgl = 1.3\nomega = [0.4, -1.1, 0.7]\n'
    with tempfile.TemporaryDirectory() as folder:
        file, path = Path(folder) / "sweep.toml", Path(folder) / "sweep.zarr"
        file.write_text(f'{start}[run]\nmethod = "imidm"\ndt = 0.05\nt_end = 2.0\n{grid}', encoding="utf-8")
        _said("sweep", str(file), "--out", str(path))
        many = ph.ensemble(problem, "imidm", dt=0.05, omega=omega, params={"mgl": mgl}, t_end=2.0)
        back = ph.load(path)
        cell.same("quaternion", np.asarray(back.quaternion), many.quaternion)
        cell.same("momentum", np.asarray(back.momentum), many.momentum)


# --- compiled ahead ---------------------------------------------------------------------------------


def warm(cell: Cell) -> None:
    """After `ph.warm` a run compiles nothing, and has the bits that it had."""
    problem = Run(cases.CASES["smooth"], "tol").problem
    for how, (given, _) in SETTINGS.items():
        before = ph.solve(problem, t_end=1.0, **given)
        ph.warm(problem, **given)
        seconds = ph.warm(problem, **given)
        cell.claim(seconds < 0.01, f"{how}: a second call took {seconds:.2g} s")
        sol = ph.solve(problem, t_end=1.0, **given)
        cell.claim(sol.info.compile_seconds < 0.01, f"{how}: the run compiled for {sol.info.compile_seconds:.2g} s")
        cell.same_path(how, sol, before)
        ph.warm(problem, **given, many=True)
        many = ph.ensemble(problem, momentum=[problem.momentum] * 2, t_end=1.0, **given)
        cell.claim(many.compile_seconds < 0.01, f"{how}: the ensemble compiled for {many.compile_seconds:.2g} s")


# --- torques in Python ------------------------------------------------------------------------------


def _law(t: Any, R: Any, omega: Any, a: Any = 0.3) -> Any:
    x, y, z = omega
    return a * (ph.math.sin(2 * t) - 0.4 * x), a * (R[0][1] - 0.1 * y), a * (ph.math.cos(t) - 0.6 * z)


def _with_numpy(t: Any, R: Any, omega: Any, a: Any = 0.3) -> Any:
    arms = np.array([np.sin(2 * t), R[0, 1], np.cos(t)])
    return a * (arms - np.array([0.4, 0.1, 0.6]) * omega)


TORQUES = {
    "formula": lambda: ph.torque(_law)(a=0.3),
    "NumPy": lambda: ph.torque(_with_numpy)(a=0.3),
    "plain": lambda: ph.torque(_law, plain=True)(a=0.3),
    "plain, NumPy": lambda: ph.torque(_with_numpy, plain=True)(a=0.3),
}
"""The same torque as a formula, compiled as it stands, and called as plain Python."""


def _problem(kind: str) -> ph.Problem:
    return ph.Problem(ph.Body(TENSOR), TORQUES[kind](), euler=ATTITUDE, omega=cases.OMEGA)


def _torques(how: str, cell: Cell) -> None:
    """Torques in Python move a body as their formula does: alone, at times, with events, statistics, in ensembles."""
    given: dict[str, Any] = {"t_end": 1.0, "progress": False} | (
        {"method": "mkrk(rk4)", "dt": 0.05} if how == "dt" else HOWS[how]
    )
    if how == "dt":
        events = [ph.event(_passing)]
        cell.refuses("an event search needs", lambda: ph.solve(_problem("plain"), **given, events=events))
    else:
        for kind in ("plain", "plain, NumPy"):
            cell.refuses("needs a torque that can be compiled", lambda kind=kind: ph.solve(_problem(kind), **given))
    kinds = [kind for kind in TORQUES if how == "dt" or "plain" not in kind]
    (base, *others) = (_seen(_problem(kind), how, given) for kind in kinds)
    for kind, found in zip(kinds[1:], others, strict=True):
        for what, value in found.items():
            cell.close(f"{kind}, {what}", value, base[what], ROUND_OFF if how == "dt" else 1e-7)


def _seen(problem: ph.Problem, how: str, given: dict[str, Any]) -> dict[str, Any]:
    """What runs of a problem show, by name."""
    asked = {} if how == "dt" else {"times": [0.0, 0.3, 1.0]}
    sol = ph.solve(problem, **given)
    mean = ph.solve(problem, **given, **asked, statistics=["omega"]).statistics["omega"].mean
    found = {"quaternion": sol.quaternion[-1], "momentum": sol.momentum[-1], "mean": mean}
    if "plain" not in sol.info.torque:
        middle = sol.at([0.3, 0.77])
        many = ph.ensemble(problem, momentum=np.outer([1.0, 1.1], problem.momentum), **given)
        found["event"] = ph.solve(problem, **given, events=[ph.event(_passing)]).events[0].t
        found |= {"momentum between steps": middle.momentum, "momentum of an ensemble": many.momentum[-1]}
    return found


def _passing(omega: Any) -> Any:
    return omega[0] - 0.35


CELLS: dict[str, Callable[[Cell], None]] = {
    **{
        f"{name}, {how}, pickled": functools.partial(_everything_pickled, name, how)
        for name in PICKLED for how in ("dt", "step_tol")
    },
    "results pickled": results_pickled,
    "shards": shards,
    "workers": workers,
    "polhode run": command_run,
    "polhode sweep": command_sweep,
    "warm": warm,
    **{f"torques in Python, {how}": functools.partial(_torques, how) for how in ("dt", "tol", "step_tol")},
}  # fmt: skip
"""By name."""
