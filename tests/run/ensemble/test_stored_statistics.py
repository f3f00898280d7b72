"""Statistics of many bodies in files: what memory would hold, resumed to the same bits, on a cluster, of a sweep."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import xarray
from test_units import assert_same, marks
from typer.testing import CliRunner

import polhode as ph
from polhode.cli import app
from polhode.fields import gravity
from polhode.results.ensemble import NOT_YET
from polhode.results.store import ensemble_store, integrity
from polhode.run.ensemble.api import prepared

N, UNIT = 67, 16
RNG = np.random.default_rng(8)
MOMENTS, MOMENTA, WEIGHTS = RNG.uniform(1, 1.9, (N, 3)), RNG.normal(size=(N, 3)), RNG.uniform(0, 2, N)


def height(R, mgl):
    return mgl * R[2][2]


WATCHED = ["energy", "spatial_momentum", height]
RUN = {"field": gravity, "params": {"mgl": WEIGHTS}, "dt": 0.02, "steps": 40, "every": 7, "statistics": WATCHED}


def run(**changes):
    return ph.ensemble(MOMENTS, None, MOMENTA, "fe", **(RUN | changes))


@pytest.fixture(scope="module")
def whole():
    return run()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "crowd.zarr"
    run(out=path, unit=UNIT)
    return path


def assert_all_the_same(one, other):
    assert_same(one, other)
    assert list(one.statistics) == list(other.statistics)
    for name, found in one.statistics.items():
        for part, values in vars(found).items():
            np.testing.assert_array_equal(values, getattr(other.statistics[name], part))


def test_the_file_holds_what_memory_would(made, whole):
    assert_all_the_same(ph.load(made), whole)
    assert whole.statistics["energy"].drift.max() > 0
    with xarray.open_zarr(made, chunks=None) as data:
        assert data.sizes["time"] == 2
        assert data["energy_mean"].dims == data["spatial_momentum_drift"].dims == ("body",)
        assert data["spatial_momentum_max"].sel(axis="z").dims == ("body",)
        assert data["energy_mean"].attrs["units"] == "M L^2 T^-2"
        assert data["spatial_momentum_min"].attrs["units"] == "M L^2 T^-1"
        assert data["energy_drift"].attrs["units"] == data["height_drift"].attrs["units"] == "1"
        assert "units" not in data["height_mean"].attrs  # the user's own
        assert data["height_last"].attrs["long_name"] == "height, at the last sampled step"


@pytest.mark.parametrize("name", ["copy.nc", "copy.zarr"])
def test_copies(made, whole, tmp_path, name):
    """Of a store, and of what is in memory."""
    for many in (ph.load(made), whole):
        assert_all_the_same(ph.load(many.save(tmp_path / name, overwrite=True)), whole)
    assert list(whole.to_xarray()["spatial_momentum_mean"].dims) == ["body", "axis"]


def test_without_statistics_there_are_none(tmp_path):
    many = run(statistics=None, out=tmp_path / "crowd.zarr")
    assert many.statistics == {}
    assert not [name for name in many.to_xarray().data_vars if name.startswith("energy_") and name != "energy_change"]


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {folder!r})
    import test_stored_statistics as here
    here.run(out={path!r}, unit=here.UNIT, progress=lambda done: done > 0.3 and os.kill(os.getpid(), signal.SIGKILL))
"""


def test_killed_and_resumed(tmp_path, whole):
    path = tmp_path / "crowd.zarr"
    script = textwrap.dedent(KILLED.format(folder=str(Path(__file__).parent), path=str(path)))
    child = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert child.returncode == -signal.SIGKILL
    waiting = ph.load(path)
    missing = waiting.failed == NOT_YET
    assert missing.any()
    for name, found in waiting.statistics.items():
        for part, values in vars(found).items():
            np.testing.assert_array_equal(values[~missing], getattr(whole.statistics[name], part)[~missing])
    before = marks(path)
    assert before
    assert_all_the_same(run(out=path, resume=True), whole)
    after = marks(path)
    assert {name: after[name] for name in before} == before


def other_height():
    def height(R, mgl):
        return 2 * mgl * R[2][2]

    return height


DIFFERENT = {
    "none": (None, "statistics = energy spatial_momentum height, and this run has no statistics"),
    "fewer": ("energy", "statistics = energy spatial_momentum height, and this run has statistics = energy;"),
    "formula": (
        ["energy", "spatial_momentum", other_height()],
        "one formula of the statistics, and this run has another formula of the statistics",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_other_statistics_are_not_resumed(made, case):
    given, said = DIFFERENT[case]
    before = marks(made)
    with pytest.raises(ph.InputError, match=f"crowd.zarr was begun with {said}"):
        run(statistics=given, out=made, resume=True)
    assert marks(made) == before


def test_a_store_that_says_nothing_of_statistics_is_one_without(tmp_path):
    """As earlier versions wrote them."""
    path = tmp_path / "crowd.zarr"
    run(statistics=None, out=path, unit=UNIT)
    gone, said = ("statistics", "statistics_formula"), ensemble_store.described(path)["attributes"]
    integrity.replace_attributes(path, {name: said[name] for name in said if name not in gone})
    (path / "failed" / "c" / "1").unlink()
    assert_same(run(statistics=None, out=path, resume=True), run(statistics=None))
    with pytest.raises(ph.InputError, match="was begun with no statistics, and this run has statistics = energy"):
        run(statistics="energy", out=path, resume=True)


def test_what_is_watched_can_be_sent():
    """Without the kernel that was made of it."""
    watch = prepared(MOMENTS, None, MOMENTA, "fe", dt=0.1, steps=3, statistics="energy").wanted
    assert watch.observed is not None
    assert pickle.loads(pickle.dumps(watch)) == watch


def test_on_a_cluster(tmp_path, whole):
    from distributed import LocalCluster

    quiet = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=1, **quiet) as one:
        assert_all_the_same(run(out=tmp_path / "crowd.zarr", unit=UNIT, scheduler=one.scheduler_address), whole)


SWEEP = """
[problem]
name = "fast_top"

[run]
method = "fe"
dt = 0.001
steps = 50
statistics = {}

[grid]
omega.z = [40, 50]
"""


def test_a_sweep_asks_for_them(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.format('["energy", "omega"]'))
    for given in ((), ("--resume",)):
        done = CliRunner().invoke(app, ["sweep", str(path), *given])
        assert done.exit_code == 0, done.output
        assert "drift" in done.output
    assert "656 bytes" in CliRunner().invoke(app, ["sweep", str(path), "--dry-run"]).output
    many = ph.load(tmp_path / "sweep.zarr")
    assert many.quaternion.shape == (2, 2, 4)
    assert (many.statistics["omega"].first[:, 2] == [40, 50]).all()
    with many.to_xarray() as data:
        assert data["energy_drift"].coords["omega.z"].values.tolist() == [40, 50]


@pytest.mark.parametrize("given", ["[]", '["enrgy"]', '"energy"', "[3]"])
def test_a_sweep_that_asks_for_something_else(tmp_path, given):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.format(given))
    done = CliRunner().invoke(app, ["sweep", str(path)])
    assert done.exit_code == 2
    assert "sweep.toml, line 9: run.statistics" in " ".join(done.output.split())
