"""The result of a run: shapes, rows kept, other ways to say it, files, and what survives an interruption."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import xarray
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.results import recorder
from polhode.results.observables import largest_changes
from polhode.results.store import integrity, trajectory_store
from waiting import PATIENCE, started

pytestmark = pytest.mark.xdist_group("trajectory")

SHAPES = {
    "t": (), "quaternion": (4,), "matrix": (3, 3), "momentum": (3,), "omega": (3,), "spatial_momentum": (3,),
    "energy": (),
}  # fmt: skip
TOP = ph.problems.fast_top()
GO_ON = "free some disk space and continue with resume=True (--resume)"


def run(**options: Any) -> ph.Trajectory:
    return ph.solve(TOP, "imidm", **{"dt": 0.01, "steps": 100} | options)


def assert_same(a: ph.Trajectory, b: ph.Trajectory) -> None:
    """Equal to the last bit."""
    for name in SHAPES:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# --- arrays -----------------------------------------------------------------------------------------


def test_shapes_and_types() -> None:
    sol = run()
    assert len(sol) == 101
    for name, shape in SHAPES.items():
        array = getattr(sol, name)
        assert array.shape == (101, *shape)
        assert array.dtype == np.float64
    assert (sol.method, sol.dt, sol.status, sol.info.steps) == ("imidm", 0.01, "finished", 100)
    assert repr(sol) == "<Trajectory imidm, dt = 0.01: 101 states, t = 0 to 1, finished>"


def test_starts_where_the_problem_starts() -> None:
    sol = run(steps=1)
    assert tuple(sol.quaternion[0]) == TOP.quaternion
    assert tuple(sol.momentum[0]) == TOP.momentum
    assert abs(sol.energy[0] - TOP.energy()) < 1e-15 * TOP.energy() * 4


@pytest.mark.parametrize(("steps", "every"), [(100, 1), (100, 7), (100, 10), (100, 100), (100, 1000), (1, 1), (3, 2)])
def test_every(steps: int, every: int) -> None:
    """Steps 0, k, 2k, ... and always the last."""
    kept = [*range(0, steps, every), steps]
    sol, whole = run(steps=steps, every=every), run(steps=steps)
    np.testing.assert_array_equal(sol.t, np.array(kept) * 0.01)
    for name in SHAPES:
        np.testing.assert_array_equal(getattr(sol, name), getattr(whole, name)[kept])


def test_long_runs_in_chunks() -> None:
    """The chunks between two looks at Ctrl-C leave no trace."""
    whole = run(steps=70_000, every=1)
    np.testing.assert_array_equal(whole.t, np.arange(70_001) * 0.01)
    np.testing.assert_array_equal(
        run(steps=70_000, every=999).momentum, whole.momentum[[*range(0, 70_000, 999), 70_000]]
    )


def test_changes() -> None:
    sol = run()
    changes = sol.changes()
    assert set(changes) == {"energy", "spatial_momentum", "momentum_norm"}
    assert changes["energy"] == np.abs(sol.energy - sol.energy[0]).max() / abs(sol.energy[0])
    L = sol.spatial_momentum
    assert changes["spatial_momentum"] == np.linalg.norm(L - L[0], axis=1).max() / np.linalg.norm(sol.momentum[0])


def test_drift_is_that_of_conserved_quantities() -> None:
    """All of the momentum without torque, its vertical part for a top, nothing with drag."""
    top = run()
    assert set(top.drift()) == {"energy", "vertical_momentum"}
    assert top.drift()["energy"] == top.changes()["energy"]
    L = top.spatial_momentum[:, 2]
    size = np.linalg.norm(top.momentum[0])
    assert top.drift()["vertical_momentum"] == pytest.approx(np.abs(L - L[0]).max() / size, abs=1e-16)
    assert top.drift()["vertical_momentum"] < 1e-13 < top.changes()["momentum_norm"]
    with pytest.raises(KeyError, match=r"is not conserved in this motion \(conserved: energy, vertical_momentum\)"):
        top.drift()["momentum_norm"]
    assert pickle.loads(pickle.dumps(top)).drift() == top.drift()
    free = ph.solve(ph.problems.free_body(), "imidm", dt=0.125, steps=800)
    assert set(free.drift()) == {"energy", "spatial_momentum", "momentum_norm"}
    assert free.drift()["spatial_momentum"] < 1e-13
    assert free.drift()["momentum_norm"] < 1e-13
    assert free.drift() == pytest.approx(free.changes(), abs=1e-15)
    slowed = ph.Problem(TOP.body, ph.fields.linear_drag(0.1), omega=[0.0, 0.1, 5.0])
    sol = ph.solve(slowed, "imidm", dt=0.01, steps=10)
    assert sol.drift() == {}
    assert sol.changes()["energy"] > 1e-3


def test_drift_in_many_digits() -> None:
    """The momentum of a method that conserves it changes by the rounding of its digits, not of doubles."""
    sol = ph.solve(ph.problems.free_body(), "imidm", dt=0.5, steps=4, digits=40)
    assert 0 < sol.drift()["spatial_momentum"] < 1e-38
    assert sol.drift()["momentum_norm"] < 1e-38
    doubles = ph.solve(ph.problems.free_body(), "imidm", dt=0.5, steps=4)
    assert sol.drift()["energy"] == pytest.approx(doubles.drift()["energy"], rel=1e-9)
    top = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=4, digits=40)
    assert top.drift()["vertical_momentum"] < 1e-37
    dipole = ph.solve(ph.problems.dipole_in_field(), "imidm", dt=0.01, steps=2, digits=40)
    assert set(dipole.drift()) == {"energy"}, "the direction of the field is known to 16 digits only"


def test_drift_is_the_largest_change_since_the_first_state() -> None:
    """By hand: lengths 2, 2.5, 1, 1.75; energies 4, 3, 5, 6; in space the ends of the momenta are at most 3 apart."""
    momentum = np.array([[2.0, 0, 0], [0, 2.5, 0], [0, 0, 1.0], [1.75, 0, 0]])
    spatial = np.array([[2.0, 0, 0], [2.0, 1.5, 0], [-1.0, 0, 0], [2.0, 0, 0.5]])
    found = largest_changes([(np.array([4.0, 3.0, 5.0, 6.0]), spatial, momentum)])
    assert found == {"energy": 0.5, "spatial_momentum": 1.5, "momentum_norm": 0.5}


@pytest.mark.parametrize("sequence", ["ZXZ", "zyx", "XYZ"])
def test_euler_angles(sequence: str) -> None:
    sol = run(steps=50)
    again = Rotation.from_euler(sequence, sol.euler(sequence))
    np.testing.assert_allclose(again.as_matrix(), sol.matrix, atol=1e-14)
    np.testing.assert_allclose(np.degrees(sol.euler(sequence)), sol.euler(sequence, degrees=True), atol=1e-12)


def test_euler_sequence_must_exist() -> None:
    with pytest.raises(ph.InputError, match=r"^the sequence of Euler angles must be three axes, .*; got 'ABC'$"):
        run(steps=1).euler("ABC")


def test_modified_rodrigues_parameters() -> None:
    """tan(angle/4) times the axis, at most 1 long."""
    sol = run()
    mrp = sol.mrp()
    assert mrp.shape == (101, 3)
    assert np.linalg.norm(mrp, axis=1).max() <= 1
    q = sol.quaternion * np.sign(sol.quaternion[:, :1])
    np.testing.assert_allclose(mrp, q[:, 1:] / (1 + q[:, :1]), atol=1e-14)
    np.testing.assert_allclose(Rotation.from_mrp(mrp).as_matrix(), sol.matrix, atol=1e-14)


def test_rotation() -> None:
    sol = run()
    np.testing.assert_allclose(sol.rotation.as_matrix(), sol.matrix, atol=1e-15)
    np.testing.assert_allclose(sol.rotation.apply(sol.momentum), sol.spatial_momentum, atol=1e-12)


def test_quaternion_sign_is_continuous() -> None:
    """Over many turns, from either sign of the start, also for a body with axes of its own."""
    for q0 in ([0.6, 0.8, 0, 0], [-0.6, -0.8, 0, 0]):
        start = ph.Problem(ph.Body([5, 5, 1]), attitude=q0, omega=[0.1, 0.2, 9.0])
        sol = ph.solve(start, "imidm", dt=0.05, steps=400)
        np.testing.assert_array_equal(sol.quaternion[0], q0)
        assert ((sol.quaternion[1:] * sol.quaternion[:-1]).sum(1) > 0.9).all()
        assert (sol.quaternion[:, 0] < 0).any() and (sol.quaternion[:, 0] > 0).any()  # noqa: PT018


# --- many digits ------------------------------------------------------------------------------------


def test_digits() -> None:
    """Doubles as always, and all digits in `mp`."""
    few, many, more = run(steps=20), run(steps=20, digits=30), run(steps=20, digits=40)
    for name, shape in SHAPES.items():
        array = getattr(many, name)
        assert array.shape == (21, *shape)
        assert array.dtype == np.float64
        np.testing.assert_allclose(array, getattr(few, name), rtol=1e-12, atol=1e-12)
    assert many.info.digits == 30
    assert few.mp is None
    with mpmath.workdps(45):
        for name in ("quaternion", "momentum", "omega", "spatial_momentum", "energy"):
            a, b = getattr(many.mp, name), getattr(more.mp, name)
            assert a.shape == getattr(few, name).shape
            scale = max(abs(x) for x in b.flat)
            assert max(abs(x - y) for x, y in zip(a.flat, b.flat, strict=True)) < mpmath.mpf(10) ** -30 * scale
        lengths = [mpmath.norm(list(q)) for q in many.mp.quaternion]
        assert max(abs(x - 1) for x in lengths) < mpmath.mpf(10) ** -33


def test_digits_with_a_tensor() -> None:
    """The principal axes have all digits too: the spatial momentum of a free body stands still to 35 of them."""
    Q = Rotation.from_rotvec([0.3, 0.4, -0.9]).as_matrix()
    start = ph.Problem(ph.Body(Q @ np.diag([1.0, 2.0, 2.5]) @ Q.T), omega=[0.4, -0.3, 0.8])
    mp = ph.solve(start, "imidm", dt=0.1, steps=10, digits=35).mp
    with mpmath.workdps(40):
        inertia = mpmath.matrix(start.body.inertia.tolist())
        for i in (0, 10):
            assert mpmath.norm(mp.spatial_momentum[i] - mp.spatial_momentum[0]) < mpmath.mpf(10) ** -35
            assert (
                mpmath.norm(inertia * mpmath.matrix(mp.omega[i]) - mpmath.matrix(mp.momentum[i]))
                < mpmath.mpf(10) ** -35
            )


# --- xarray and files -------------------------------------------------------------------------------

DIMS = {
    "quaternion": ("time", "component"), "matrix": ("time", "row", "column"), "momentum": ("time", "axis"),
    "omega": ("time", "axis"), "spatial_momentum": ("time", "axis"), "energy": ("time",),
}  # fmt: skip


def assert_labelled(data: xarray.Dataset, sol: ph.Trajectory) -> None:
    assert {name: data[name].dims for name in data.data_vars} == DIMS
    assert set(data.coords) == {"t", "axis", "component"}
    assert list(data.component.values) == ["w", "x", "y", "z"]
    assert list(data.axis.values) == ["x", "y", "z"]
    for name in SHAPES:
        np.testing.assert_array_equal(data[name].values, getattr(sol, name))
    assert data["quaternion"].sel(component="w").values[0] == sol.quaternion[0, 0]
    assert data["spatial_momentum"].long_name == "angular momentum in the space frame"
    attributes = data.attrs
    assert (attributes["method"], attributes["dt"], attributes["problem"], attributes["status"]) == (
        "imidm",
        0.01,
        "fast_top",
        "finished",
    )
    assert attributes["field"] == "gravity(mgl=20.0)"
    assert list(attributes["inertia"]) == [5, 0, 0, 0, 5, 0, 0, 0, 1]
    assert "scalar first" in attributes["conventions"]
    assert "units" in attributes


def test_to_xarray() -> None:
    sol = run()
    assert_labelled(sol.to_xarray(), sol)


def dimension(*units: str) -> dict[str, int]:
    """Exponents of a product of units; an angle has no dimension if it is in radians."""
    found: dict[str, int] = {}
    for unit in " ".join(units).split():
        name, _, power = unit.partition("^")
        found[name] = found.get(name, 0) + int(power or 1)
    return {name: n for name, n in found.items() if n and name not in ("rad", "1")}


def test_units_fit_each_other() -> None:
    unit = {
        name: values.attrs["units"] for name, values in run().to_xarray().variables.items() if "units" in values.attrs
    }
    assert dimension(unit["momentum"], unit["omega"]) == dimension(unit["energy"]) == {"M": 1, "L": 2, "T": -2}
    assert dimension(unit["omega"], unit["t"]) == dimension(unit["quaternion"]) == {}
    assert dimension(unit["spatial_momentum"]) == dimension(unit["momentum"])


def opened(path: Path) -> xarray.Dataset:
    """As a stranger opens it; warnings are errors in these tests."""
    with xarray.open_zarr(path) if path.suffix == ".zarr" else xarray.open_dataset(path) as data:
        return data.load()


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_files(tmp_path: Path, suffix: str) -> None:
    """Saved, and written as the run goes: equal bits, readable by anyone."""
    sol = run(every=7)
    saved = sol.save(tmp_path / f"saved{suffix}")
    written = run(every=7, out=tmp_path / f"written{suffix}")
    for other in (ph.load(saved), written, ph.load(tmp_path / f"written{suffix}")):
        assert_same(other, sol)
        assert other.drift() == sol.drift()
    assert ph.load(saved).info == sol.info
    assert_labelled(opened(saved), sol)
    assert_labelled(opened(tmp_path / f"written{suffix}"), sol)
    again = ph.load(saved).save(tmp_path / "again.zarr")
    assert_same(ph.load(again), sol)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["again.zarr", f"saved{suffix}", f"written{suffix}"])


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_overwrite(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    run(out=path)
    run(steps=5, out=path, overwrite=True)
    assert len(ph.load(path)) == 6
    run(steps=7).save(path, overwrite=True)
    loaded = ph.load(path)
    loaded.save(path, overwrite=True)
    assert len(loaded.momentum) == 8
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_digits_to_a_file(tmp_path: Path) -> None:
    written = run(steps=5, digits=25, out=tmp_path / "run.zarr")
    assert written.info.digits == 25
    assert_same(written, run(steps=5, digits=25))


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    path = run(steps=2).save(tmp_path / "run.zarr")
    attributes = trajectory_store.read(path)[1]
    integrity.replace_attributes(path, attributes | {"field": "__import__('os').abort()"})
    assert ph.load(path).info.field == "__import__('os').abort()"


# --- memory, interruptions, full disks --------------------------------------------------------------


def peak_memory(path: Path, steps: int) -> int:
    tracemalloc.start()
    try:
        run(steps=steps, out=path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_memory_is_bounded(tmp_path: Path, suffix: str) -> None:
    """Three times as many states on disk need no more memory."""
    peak_memory(tmp_path / f"first{suffix}", 1000)
    short = peak_memory(tmp_path / f"short{suffix}", 40_000)
    long = peak_memory(tmp_path / f"long{suffix}", 120_000)
    assert long < 1.3 * short
    assert len(ph.load(tmp_path / f"long{suffix}")) == 120_001


def test_recorder_to_disk_keeps_no_rows(tmp_path: Path) -> None:
    info = trajectory_store.Info("imidm", 0.01, ((5, 0, 0), (0, 5, 0), (0, 0, 1)))
    kept = recorder.Disk(TOP, trajectory_store.Writer.create(tmp_path / "run.zarr", info, {}))
    rows = np.zeros((trajectory_store.ROWS_PER_CHUNK, 7))
    rows[:, 0] = 1
    for i in range(3):
        kept.add(i + np.arange(len(rows)) / len(rows), rows)
        kept.reached((i + 1) * len(rows), TOP.kernel_data(float)[0])
        assert kept.waiting == []
        assert kept.writer.rows == (i + 1) * len(rows)


CHILD = """
    import signal
    import sys
    import polhode as ph
    from polhode.results import recorder
    recorder.FLUSH_SECONDS = 0.1  # rows are soon there
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell starts its children deaf to it
    try:
        ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=10**10, every=500, out=sys.argv[1])
    except KeyboardInterrupt as stop:
        print(stop.partial.status, len(stop.partial), flush=True)
        sys.exit(130)
"""


def interrupted(path: Path, kind: signal.Signals) -> tuple[int, str]:
    """Start a real run, send it a signal when some rows are on disk; returns its exit code and output."""
    run(every=500, steps=1000)  # compiled once, before the clock starts
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path)]
    seen = trajectory_store.staging_path(path)
    deadline = time.monotonic() + PATIENCE
    with started(command, stdout=subprocess.PIPE) as child:
        try:
            while time.monotonic() < deadline and child.poll() is None:
                if seen.exists() and len(ph.load(seen)) > 500:
                    break
                time.sleep(0.05)
            assert child.poll() is None
            child.send_signal(kind)
            out, _ = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    return child.returncode, out


@pytest.mark.parametrize(
    ("kind", "name"),
    [(signal.SIGINT, "run.zarr"), (signal.SIGINT, "run.nc"), (signal.SIGKILL, "run.zarr"), (signal.SIGKILL, "run.nc")],
)
def test_interrupted_run(tmp_path: Path, kind: signal.Signals, name: str) -> None:
    """Ctrl-C, or a murder, in the middle: the file is readable, and all rows in it are those of the whole run."""
    path = tmp_path / name
    code, said = interrupted(path, kind)
    if kind == signal.SIGKILL:
        assert code == -signal.SIGKILL
        path = trajectory_store.staging_path(path)
    else:
        assert code == 130
    sol = ph.load(path)
    assert sol.status == ("running" if kind == signal.SIGKILL else "interrupted")
    assert len(sol) > 500
    if kind == signal.SIGINT:
        assert said.split() == ["interrupted", str(len(sol))]
        assert [p.name for p in tmp_path.iterdir()] == [name]
    assert_same(sol, run(steps=500 * (len(sol) - 1), every=500))
    data = opened(path)
    assert data.sizes["time"] == len(sol)
    assert data.attrs["status"] == sol.status


def test_full_disk(tmp_path: Path) -> None:
    """A file that cannot grow stops the run with one sentence and keeps what was written before."""
    import resource

    path = tmp_path / "run.zarr"
    whole = run(steps=40_000)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, usual[1]))
    try:
        with pytest.raises(ph.StepError) as caught:
            run(steps=40_000, out=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    sol = caught.value.partial
    assert sol is not None
    assert sol.status == "failed"
    assert 1 <= len(sol) < 40_001
    for name in SHAPES:
        np.testing.assert_array_equal(getattr(sol, name), getattr(whole, name)[: len(sol)])
    assert str(caught.value).startswith("imidm stopped at step ")
    assert str(caught.value).endswith(
        f": {path} cannot be written ({os.strerror(errno.EFBIG)}); "
        f"the {len(sol)} states written before are in .partial and in {path}; {GO_ON}"
    )
    assert opened(path).sizes["time"] == len(sol)


def test_full_disk_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NetCDF file that cannot be made of the rows leaves the rows."""

    def broken(target: Any, data: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trajectory_store.NetcdfTarget, "append", broken)
    path = tmp_path / "run.nc"
    with pytest.raises(ph.StepError) as caught:
        run(out=path)
    assert str(caught.value) == (
        f"imidm stopped at step 100: {path} cannot be written (No space left on device); "
        f"the 101 states written before are in .partial and in {path}.partial.zarr; {GO_ON}"
    )
    assert_same(ph.load(f"{path}.partial.zarr"), run())
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc.partial.zarr"]


def test_failure_while_appending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that fails between two variables is as if it had not begun."""
    import zarr

    target = trajectory_store.ZarrTarget(tmp_path / "run.zarr", run(steps=1).info)
    sol = run(steps=30)
    block = {name: getattr(sol, name)[:10] for name in trajectory_store.PRIMARY}
    target.append(block)
    usual = zarr.Array.resize

    def broken(array: Any, shape: Any) -> None:
        if array.basename == "omega":
            raise OSError(28, "No space left on device")
        usual(array, shape)

    monkeypatch.setattr(zarr.Array, "resize", broken)
    with pytest.raises(OSError, match="No space left"):
        target.append({name: getattr(sol, name)[10:20] for name in trajectory_store.PRIMARY})
    monkeypatch.undo()
    partial = ph.load(tmp_path / "run.zarr")
    assert len(partial) == len(partial.quaternion) == len(partial.omega) == 10
    assert opened(tmp_path / "run.zarr").sizes["time"] == 10
    target.append({name: getattr(sol, name)[10:] for name in trajectory_store.PRIMARY})
    target.close(sol.info)
    assert_same(ph.load(tmp_path / "run.zarr"), sol)


def test_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix, kind in ((".zarr", trajectory_store.ZarrTarget), (".nc", trajectory_store.NetcdfTarget)):
        path = tmp_path / f"run{suffix}"
        old = run(steps=3)
        old.save(path)

        def broken(target: Any, data: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(kind, "append", broken)
        with pytest.raises(ph.InputError, match=rf"run\{suffix} cannot be written: \[Errno 28\] No space left"):
            run(steps=5).save(path, overwrite=True)
        monkeypatch.undo()
        assert_same(ph.load(path), old)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.nc", "run.zarr"]


def test_euler_angles_at_the_start_of_a_body_in_no_attitude_yet():
    """At the identity only the sum of the first and last angle of ZXZ is determined: it is given without a warning."""
    sol = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.01, 1.0, 0.0]), "akw", dt=0.01, steps=3)
    assert np.array_equal(sol.euler_deg("ZXZ")[0], [0.0, 0.0, 0.0])
    assert np.allclose(sol.euler("ZXZ"), np.radians(sol.euler_deg("ZXZ")), rtol=1e-15, atol=0)
