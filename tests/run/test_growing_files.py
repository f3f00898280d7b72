"""Files of runs to a tolerance grow during the run, and a run that was killed is continued to the same bits."""

import os
import subprocess
import sys

import numpy as np
import pytest

import polhode as ph
from polhode.run import journal
from polhode.run.located import LocatedRun
from representatives import slow_unless

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 1.5, 0.2], [0.0, 0.2, 2.0]])
TOP = ph.Problem(BODY, ph.fields.gravity(mgl=0.1), omega=[0.3, 0.2, 2.0])


@ph.torque
def relay(R, push):
    return push * ph.where(R[0, 0] > 0.2, 1.0, -1.0), 0.0, 0.0


RELAYS = ph.Problem(BODY, relay(0.05), omega=[0.3, 0.2, 2.0])
RUNS = {
    "tol": {"tol": 1e-9, "t_end": 2400.0},
    "step_tol, backwards": {"step_tol": 1e-9, "t_end": -600.0, "every": 7},
    "given method": {"tol": 1e-6, "method": "verner87", "t_end": 300.0},
    "jumps in the state": {"step_tol": 1e-9, "t_end": 120.0, "problem": RELAYS},
    "digits": {"tol": 1e-18, "digits": 20, "t_end": 12.0},
    "events": {"tol": 1e-9, "t_end": 600.0, "events": [ph.event(lambda t: t - 500.0, terminal=True)]},
}


def of(run):
    """Return the arguments of a run."""
    return {"problem": TOP, **RUNS[run]}


KILLED = """
import os, signal, sys
sys.path[:0] = [{folder!r}, {folder!r} + "/.."]
from polhode.run import journal
import test_growing_files as here

usual, flushes = journal.Journal.flush, []
def flush(self):
    usual(self)
    flushes.append(1)
    if len(flushes) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
journal.FLUSH_SECONDS, journal.Journal.flush = 0.0, flush
here.ph.solve(out={out!r}, resume=True, progress=False, **here.of({run!r}))
"""


def killed(run, out, number):
    """Run in a process that is killed (kill -9) after some writes; return whether it was."""
    text = KILLED.format(folder=os.path.dirname(__file__), out=str(out), run=run, number=number)
    return subprocess.run([sys.executable, "-c", text], check=False).returncode == -9


def same(a, b):
    arrays = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("t", "quaternion", "momentum"))
    return arrays and (a.error_estimate, a.info.steps, a.rejected) == (b.error_estimate, b.info.steps, b.rejected)


def counted(monkeypatch):
    """Return a list that grows with every piece that is computed."""
    pieces = []
    for kind in (journal.Run, LocatedRun):

        def computed(self, start=None, usual=kind.computed):
            for piece in usual(self, start):
                pieces.append(len(piece.times))
                yield piece

        monkeypatch.setattr(kind, "computed", computed)
    return pieces


@pytest.mark.parametrize("suffix", [".zarr", pytest.param(".nc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("run", slow_unless(["tol", "jumps in the state"], RUNS))
def test_killed_and_continued(tmp_path, monkeypatch, run, suffix):
    out, pieces = tmp_path / f"run{suffix}", counted(monkeypatch)
    whole = ph.solve(out=tmp_path / f"whole{suffix}", **of(run))
    needed, times = len(pieces), 0
    for number in (1, 2):
        times += killed(run, out, number)
        unfinished = tmp_path / ("run.zarr" if suffix == ".zarr" else "run.nc.partial.zarr")
        if times == 1:
            seen = ph.load(unfinished)
            assert seen.status == "running"
            assert len(seen) > 0
    assert times > 1
    pieces.clear()
    sol = ph.solve(out=out, resume=True, **of(run))
    assert same(sol, whole)
    assert same(ph.load(out), whole)
    assert not (out / "runs").exists()
    assert not unfinished.exists() or suffix == ".zarr"
    assert len(pieces) == needed - 3  # the others were read


@pytest.mark.slow
def test_the_rows_of_an_unfinished_file_are_states_of_the_motion(tmp_path):
    killed("tol", tmp_path / "run.zarr", 2)
    seen = ph.load(tmp_path / "run.zarr")
    exact = ph.solve(TOP, tol=1e-11, times=seen.t)
    assert len(seen) > 100
    assert np.abs(seen.quaternion - exact.quaternion).max() < 1e-6
    assert seen.at(seen.t[5] / 2 + seen.t[6] / 2).t[0] > seen.t[5]


@pytest.mark.slow
def test_damage_is_computed_again(tmp_path):
    out = tmp_path / "run.zarr"
    killed("tol", out, 2)
    files = sorted((out / "runs").iterdir())
    assert len(files) > 1
    files[-1].write_bytes(files[-1].read_bytes()[:-100])
    assert same(ph.solve(TOP, out=out, resume=True, **RUNS["tol"]), ph.solve(TOP, max_turn=0.25, **RUNS["tol"]))


@pytest.mark.slow
def test_another_run_is_refused(tmp_path):
    out = tmp_path / "run.zarr"
    killed("tol", out, 1)
    with pytest.raises(ph.InputError, match="continue it with resume=True"):
        ph.solve(TOP, out=out, **RUNS["tol"])
    with pytest.raises(ph.InputError, match="was begun with tol = 1e-09"):
        ph.solve(TOP, out=out, resume=True, **RUNS["tol"] | {"tol": 1e-8})
    assert len(ph.solve(TOP, out=out, overwrite=True, tol=1e-8, t_end=1.0)) > 1


def test_an_interrupted_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "FLUSH_SECONDS", 0.0)
    calls = []

    def stop(part):
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt

    out = tmp_path / "run.zarr"
    with pytest.raises(KeyboardInterrupt):
        ph.solve(TOP, out=out, progress=stop, **RUNS["tol"])
    assert ph.load(out).status == "interrupted"
    whole = ph.solve(TOP, max_turn=0.25, **RUNS["tol"])
    assert same(ph.solve(TOP, out=out, resume=True, **RUNS["tol"]), whole)


def test_a_refused_run_leaves_the_file(tmp_path):
    out = tmp_path / "run.zarr"
    ph.solve(TOP, out=out, tol=1e-6, t_end=1.0)
    with pytest.raises(ph.InputError):
        ph.solve(TOP, out=out, overwrite=True, tol=1e-25, t_end=1.0)
    assert ph.load(out).status == "finished"
