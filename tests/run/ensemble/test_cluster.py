"""Units on a real Dask cluster of two processes, one of which is killed."""

import os
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest
from test_units import MOMENTA, MOMENTS, assert_same, marks

import polhode as ph
from polhode.run.ensemble import dask
from waiting import PATIENCE

STEPS = 20_000
"""A unit of eight bodies then takes some hundredths of a second."""


@ph.torque
def drag(omega, k):
    return (-k * omega[0], -k * omega[1], -k * omega[2])


def run(**given):
    return ph.ensemble(MOMENTS, None, MOMENTA, "fem", field=drag(0.001), dt=0.001, steps=STEPS, every=5000, **given)


class Killer(threading.Thread):
    """Kills a worker as soon as some units are done, and keeps which they were."""

    def __init__(self, path, worker):
        super().__init__(daemon=True)
        self.path, self.worker, self.before = path, worker, None

    def run(self):
        while len(marks(self.path)) < 4:
            time.sleep(0.002)
        os.kill(self.worker, signal.SIGKILL)
        self.before = marks(self.path)


def test_a_worker_killed_costs_only_its_units(tmp_path):
    """All units are done, to the same bits as in memory; what was done before the kill was not done again."""
    from distributed import LocalCluster

    whole, path = run(), tmp_path / "crowd.zarr"
    quiet = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **quiet) as two:
        killer = Killer(path, two.workers[0].pid)
        killer.start()
        done = []
        many = run(out=path, unit=8, scheduler=two.scheduler_address, progress=done.append)
        killer.join(timeout=PATIENCE)
        assert_same(many, whole)
        assert killer.before is not None
        after = marks(path)
        assert 4 <= len(killer.before) < len(after) == len(done) == 26
        assert {name: after[name] for name in killer.before} == killer.before
        with two.get_client() as client:  # a client of the user's own serves as well, and stays open
            assert_same(run(out=tmp_path / "again.zarr", scheduler=client), whole)
            assert client.status == "running"


@ph.event
def slow(omega):
    return omega[0] - 0.5


def test_runs_to_a_tolerance(tmp_path):
    """Workers write the states at the times asked for, the error estimates and the events; all as in memory."""
    from distributed import LocalCluster

    given = {"field": drag(0.2), "tol": 1e-6, "times": [-1.0, -3.0], "events": [slow]}
    whole, path = ph.ensemble(MOMENTS, None, MOMENTA, **given), tmp_path / "crowd.zarr"
    quiet = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=1, **quiet) as one:
        ph.ensemble(MOMENTS, None, MOMENTA, **given, out=path, unit=64, scheduler=one.scheduler_address, progress=False)
    many = ph.load(path)
    for name in ("t", "quaternion", "momentum", "steps", "error_estimate"):
        np.testing.assert_array_equal(getattr(many, name), getattr(whole, name), err_msg=name)
    assert sum(len(found) for found in whole.events[0]) > 0
    for found, wanted in zip(many.events[0], whole.events[0], strict=True):
        np.testing.assert_array_equal(found.t, wanted.t)


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ph.InputError, match=r"pip install 'polhode\[cluster\]'"):
        run(out=tmp_path / "crowd.zarr", scheduler="tcp://127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []


def test_nobody_answers(tmp_path):
    with pytest.raises(ph.InputError, match=r"answers at 'tcp://127.0.0.1:9' within 5 seconds; start one with"):
        run(out=tmp_path / "crowd.zarr", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(ph.InputError, match="scheduler must be an address"):
        run(out=tmp_path / "crowd.zarr", scheduler=3)
    with pytest.raises(ph.InputError, match="a scheduler needs out="):
        run(scheduler="tcp://127.0.0.1:9")


def test_a_worker_that_cannot_see_the_store(tmp_path):
    from polhode.run.ensemble.api import prepared
    from polhode.run.ensemble.shards import plan, run_shard

    task = prepared(MOMENTS, None, MOMENTA, "fem", dt=0.1, steps=2)
    with pytest.raises(ph.InputError, match="the store must be in a folder shared by all workers"):
        run_shard(plan(task, tmp_path / "elsewhere.zarr"), 0)


def test_an_address_without_a_scheduler_is_a_sentence(tmp_path, monkeypatch):
    """Nothing listens; something listens that is no scheduler and says nothing; what is no address at all."""
    monkeypatch.setattr(dask, "ANSWER", 0.3)
    with socket.socket() as silent, socket.socket() as closed:
        for one in (silent, closed):
            one.bind(("127.0.0.1", 0))
        silent.listen()
        addresses = [f"tcp://127.0.0.1:{one.getsockname()[1]}" for one in (silent, closed)]
        for address in (*addresses, "nonsense", "", "a\0b", "foo://x:1", "tcp://127.0.0.1:99999"):
            with pytest.raises(ph.InputError, match="no Dask scheduler answers at"):
                run(out=tmp_path / "crowd.zarr", scheduler=address)
