"""Files of runs, exported to the other format."""

from __future__ import annotations

import subprocess
import tracemalloc
from pathlib import Path

import pytest
import xarray

import polhode as ph
from polhode.results.store import checkpoint, trajectory_store
from stopped_runs import command, contents, run, stopped
from waiting import PATIENCE

pytestmark = [pytest.mark.xdist_group("resume"), pytest.mark.usefixtures("in_a_folder")]


UNITS = {"t": "T", "quaternion": "1", "matrix": "1", "momentum": "M L^2 T^-1", "omega": "rad T^-1",
         "spatial_momentum": "M L^2 T^-1", "energy": "M L^2 T^-2"}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "path"), [("a.zarr", "b.nc"), ("a.zarr", "b.zarr"), ("a.nc", "b.zarr"), ("a.nc", "b.nc")]
)
def test_export(source: str, path: str) -> None:
    """Also of a run that was interrupted; units and conventions stand in the attributes of both formats."""
    stopped(source)
    assert trajectory_store.export(source, path) == Path(path)
    (arrays, said), (copied, told) = contents(source), contents(path)
    assert copied == arrays
    assert told == {k: v for k, v in said.items() if k not in (checkpoint.RUN_END, checkpoint.CHECKPOINT)}
    with xarray.open_zarr(path) if path.endswith(".zarr") else xarray.open_dataset(path) as data:
        assert {name: data[name].units for name in UNITS} == UNITS
        assert all(data[name].long_name for name in UNITS)
        assert "scalar first" in data.conventions
        assert "consistent units" in data.units
    with pytest.raises(ph.InputError, match="exists; choose another name"):
        trajectory_store.export(source, path)
    with pytest.raises(ph.InputError, match="cannot be exported to itself"):
        trajectory_store.export(source, source, overwrite=True)


def test_export_needs_little_memory() -> None:
    def peak(steps: int) -> int:
        run(f"{steps}.zarr", steps=steps)
        tracemalloc.start()
        try:
            trajectory_store.export(f"{steps}.zarr", f"{steps}.nc")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)
    assert peak(120_000) < 1.3 * peak(40_000)


def test_export_by_command() -> None:
    run("run.zarr", steps=20)
    with command("export", "run.zarr", "run.nc", stdout=subprocess.PIPE) as child:
        assert child.communicate(timeout=PATIENCE)[0] == "written       run.nc: imidm, 20 steps, finished\n"
    assert child.returncode == 0
    assert contents("run.nc")[0] == contents("run.zarr")[0]
    with command("export", "none.zarr", "a.nc", stderr=subprocess.PIPE) as child:
        assert child.communicate(timeout=PATIENCE)[1] == "polhode: there is no file none.zarr\n"
    assert child.returncode == 2
