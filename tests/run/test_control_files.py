"""Sampled-data control in files: runs that are killed go on to the bits of a run in one go, with their controller."""

import os
import subprocess
import sys

import numpy as np
import pytest

import polhode as ph
from polhode.run import journal
from representatives import slow_unless

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
START = {"euler": ("XYZ", [0.5, 1.0, -0.7]), "omega": [0.1, -0.2, 0.3]}
BURNS = ph.fields.thruster(torque=[0.02, 0.0, -0.01], on=[[1.3, 4.77], [20.0, 33.3], [100.05, 210.0]])
PROBLEM = ph.Problem(BODY, ph.fields.linear_drag(0.1) + BURNS, **START)


def error(R):
    """The axis of the attitude error, times the sine of its angle."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller(
    period=0.2,
    integral=[0.0, 0.0, 0.0],
    calls=0.0,
    wheels=ph.actuators.wheels(max_torque=0.3, viscous=1e-3, inertia=0.1),
)
def pid(t, R, omega, integral, calls, wheels, period, stiffness=1.0, damping=2.0):
    """PID control with wheels, an integral and a count as memory, and a push that depends on time."""
    e = error(R)
    new = [integral[i] + period * e[i] for i in range(3)]
    motors = [stiffness * e[i] + damping * omega[i] + 0.1 * new[i] for i in range(3)]
    return (0.0, 0.0, 0.1 * ph.math.sin(t)), {"integral": new, "calls": calls + 1, "wheels": motors}


def plain(R, omega):
    """PD control with NumPy, which is no formula."""
    return -np.array(error(R)) - np.clip(2.0 * omega, -1.0, 1.0)


RUNS = {
    "steps": {"method": "fem", "dt": 0.05, "t_end": 40.0},
    "every": {"method": "verner87", "dt": 0.1, "t_end": 40.1, "every": 3},
    "step_tol": {"step_tol": 1e-9, "t_end": 300.0},
    "tol": {"tol": 1e-7, "t_end": 300.0},
}

KILLED = """
import os, signal, sys
sys.path[:0] = [{folder!r}, {folder!r} + "/.."]
from polhode.results import recorder
from polhode.run import fixed_step, journal
import test_control_files as here

usual, flushes = {{}}, []
def counted(kind, name):
    usual[kind] = getattr(kind, name)
    def write(self):
        usual[kind](self)
        flushes.append(1)
        if len(flushes) == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
    setattr(kind, name, write)
counted(recorder.Disk, "_flush")
counted(journal.Journal, "flush")
journal.FLUSH_SECONDS = recorder.FLUSH_SECONDS = fixed_step.CHUNK_SECONDS = 0.0
here.ph.solve(here.PROBLEM, out={out!r}, resume=True, progress=False, control=here.pid, **here.RUNS[{run!r}])
"""


def killed(run, out, number):
    """Run in a process that is killed (kill -9) after some writes."""
    text = KILLED.format(folder=os.path.dirname(__file__), out=str(out), run=run, number=number)
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == -9


def counted(monkeypatch):
    """Return a list that grows with every piece of an adaptive run that is computed."""
    pieces, usual = [], journal.Run.computed

    def computed(self, start=None):
        for piece in usual(self, start):
            pieces.append(len(piece.times))
            yield piece

    monkeypatch.setattr(journal.Run, "computed", computed)
    return pieces


def assert_same(a, b):
    """Assert that two runs have the same states and samples, bit by bit."""
    for name in ("t", "quaternion", "momentum"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert list(a.states) == list(b.states)
    for name, values in a.states.items():
        np.testing.assert_array_equal(values, b.states[name])
    np.testing.assert_array_equal(a.control.t, b.control.t)
    np.testing.assert_array_equal(a.control.torque, b.control.torque)
    for name, values in a.control.memory.items():
        np.testing.assert_array_equal(values, b.control.memory[name])
    assert (a.control.period, a.control.compiled) == (b.control.period, b.control.compiled)


@pytest.mark.parametrize("suffix", [".zarr", pytest.param(".nc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("run", slow_unless(["steps", "step_tol"], RUNS))
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, monkeypatch, run, suffix):
    out, pieces = tmp_path / f"run{suffix}", counted(monkeypatch)
    for number in (2, 3) if "dt" in RUNS[run] else (1, 1):
        killed(run, out, number)
        seen = ph.load(tmp_path / ("run.zarr" if suffix == ".zarr" else "run.nc.partial.zarr"))
        assert seen.status == "running"
        assert 0 < len(seen.states["calls"]) == len(seen)
        assert 0 < len(seen.control) <= len(seen)
    sol = ph.solve(PROBLEM, out=out, resume=True, control=pid, **RUNS[run])
    left = len(pieces)
    whole = ph.solve(PROBLEM, out=tmp_path / f"whole{suffix}", control=pid, **RUNS[run])
    assert len(pieces) - left == left + 2 * ("dt" not in RUNS[run])  # the others were read
    assert sol.info.steps == whole.info.steps
    assert_same(sol, whole)
    assert_same(ph.load(out), whole)
    assert_same(ph.solve(PROBLEM, out=out, resume=True, control=pid, **RUNS[run]), whole)
    assert sol.states["calls"][-1] == int(RUNS[run]["t_end"] / 0.2 + 1e-9) + 1


def test_files_hold_what_memory_holds(tmp_path):
    for run in ("steps", "every"):
        sol = ph.solve(PROBLEM, control=pid, **RUNS[run])
        written = ph.solve(PROBLEM, out=tmp_path / f"{run}.zarr", control=pid, **RUNS[run])
        assert_same(written, sol)
        assert_same(ph.load(sol.save(tmp_path / f"{run}.nc")), sol)
        assert_same(ph.load(ph.load(tmp_path / f"{run}.nc").save(tmp_path / f"{run} again.zarr")), sol)
        assert ph.load(tmp_path / f"{run}.nc").problem is None  # the problem without the controller is another one
    sol, written = (ph.solve(PROBLEM, control=pid, **RUNS["steps"], **to) for to in ({}, {"out": tmp_path / "a.nc"}))
    np.testing.assert_array_equal(sol.at([0.33, 7.77]).momentum, written.at([0.33, 7.77]).momentum)


def test_a_finished_run_goes_on_to_a_later_end(tmp_path):
    """Also from an end that is no sample."""
    run, out = RUNS["steps"], tmp_path / "run.zarr"
    for end in (10.0, 10.15, 20.2, 40.0):
        sol = ph.solve(PROBLEM, out=out, resume=True, control=pid, **run | {"t_end": end})
    assert_same(sol, ph.solve(PROBLEM, control=pid, **run))


@pytest.mark.parametrize(
    "kept", [{"times": [0.4, 0.5, 3.0]}, {"max_turn": 0.05}, {"events": [ph.event(lambda omega: omega[0] - 0.05)]}],
    ids=["times", "max_turn", "events"],
)  # fmt: skip
def test_states_between_steps(tmp_path, kept):
    run = {"method": "verner87", "dt": 0.1, "t_end": 6.0, "control": pid, **kept}
    sol = ph.solve(PROBLEM, out=tmp_path / "run.zarr", **run)
    found = ph.load(tmp_path / "run.zarr")
    np.testing.assert_array_equal(found.states["wheels"], sol.states["wheels"])
    assert len(found.events) == len(sol.events)
    chosen = np.isin(sol.control.t, found.control.t)  # a file has the samples whose states it holds
    np.testing.assert_allclose(found.control.torque, sol.control.torque[chosen], atol=1e-15)
    assert chosen.any()
    again = ph.solve(PROBLEM, out=tmp_path / "run.zarr", resume=True, **run)
    np.testing.assert_array_equal(again.momentum, sol.momentum)


def other(gain):
    """A controller with another formula."""

    @ph.controller
    def pid(omega, stiffness=1.0):
        return [-gain * stiffness * omega[i] for i in range(3)]

    return pid


@pytest.mark.parametrize("run", ["steps", "step_tol"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"control": other(1.0)(2.0)}, r"control.stiffness = 1.0, and this run has control.stiffness = 2.0"),
        ({"period": 0.4}, r"control.period = 0.2, and this run has control.period = 0.4"),
        ({"control": other(2.0)}, "one formula of the controller, and this run has another formula of the controller"),
        ({"control": None, "period": None}, "control = pid.* and this run has no control"),
    ],
)
def test_another_controller_is_refused(tmp_path, run, given, sentence):
    out, first = tmp_path / "run.zarr", {"control": other(1.0), "period": 0.2, **RUNS[run], "t_end": 2.0}
    ph.solve(PROBLEM, out=out, **first)
    with pytest.raises(ph.InputError, match=sentence):
        ph.solve(PROBLEM, out=out, resume=True, **first | given)


@pytest.mark.parametrize("run", ["steps", "step_tol"])
def test_plain_python_is_written_and_not_resumed(tmp_path, run):
    """Nobody knows what an object remembered when its process was killed."""
    given = {"control": plain, "period": 0.2, **RUNS[run], "t_end": 4.0}
    sol = ph.solve(PROBLEM, out=tmp_path / "run.zarr", resume=True, **given)
    found = ph.load(tmp_path / "run.zarr")
    assert not found.control.compiled
    np.testing.assert_array_equal(found.control.torque, sol.control.torque)
    with pytest.raises(ph.InputError, match="holds neither its code nor what it remembers"):
        ph.solve(PROBLEM, out=tmp_path / "run.zarr", resume=True, **given)
    (tmp_path / "run.zarr").rename(tmp_path / "other.nc.partial.zarr")  # as a killed run to other.nc leaves it
    with pytest.raises(ph.InputError, match="holds neither its code nor what it remembers"):
        ph.solve(PROBLEM, out=tmp_path / "other.nc", resume=True, **given)
