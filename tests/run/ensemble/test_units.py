"""Ensembles in files: whole at any moment, and resumed to the same bits."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr

import polhode as ph
from polhode.fields import gravity
from polhode.results.ensemble import NOT_YET
from polhode.results.store import atomic, ensemble_store, integrity, trajectory_store
from polhode.run.ensemble import shards
from polhode.run.ensemble.api import prepared
from waiting import PATIENCE, started

N, UNIT = 203, 8
RNG = np.random.default_rng(3)
MOMENTS, MOMENTA, WEIGHTS = RNG.uniform(1, 1.9, (N, 3)), RNG.normal(size=(N, 3)), RNG.uniform(0, 2, N)
PLAIN = ensemble_store.PLAIN
RUN = {"field": gravity, "params": {"mgl": WEIGHTS}, "dt": 0.02, "steps": 300, "every": 70}


def run(bodies=MOMENTS, momenta=MOMENTA, method="imidm", **changes):
    return ph.ensemble(bodies, None, momenta, method, **(RUN | changes))


@pytest.fixture(scope="module")
def whole():
    return run()


def assert_same(one, other):
    for name in PLAIN:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def marks(path: Path) -> dict[str, tuple[int, int]]:
    """The units done, each with what tells whether its mark was written again."""
    folder = path / "failed" / "c"
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns) for f in folder.glob("*") if f.name.isdigit()}


def test_the_file_holds_what_memory_would(tmp_path, whole):
    path = tmp_path / "crowd.zarr"
    many = run(out=path, unit=UNIT)
    assert_same(many, whole)
    assert_same(ph.load(path), whole)
    assert len(marks(path)) == -(-N // UNIT)
    with xarray.open_zarr(path, chunks=None) as data:
        assert data["quaternion"].dims == ("time", "body", "component")
        assert data["momentum"].sel(axis="z").dims == ("time", "body")
        assert set(data.coords) == {"axis", "t", "component"}
        assert "scalar first" in data["quaternion"].attrs["long_name"]
        assert data["momentum"].attrs["units"] == "M L^2 T^-1"
        assert "body" in data.attrs["conventions"]
        energy = whole_energy(whole)
        np.testing.assert_allclose(data["energy_change"], np.abs(energy / energy[0] - 1).max(0), rtol=1e-9)


def whole_energy(many):
    return (many.momentum**2 / many.moments).sum(-1) / 2 + WEIGHTS * many.matrix[..., 2, 2]


@pytest.mark.parametrize(
    "kind", ["own steps", "own axes", "one left over", pytest.param("clock", marks=pytest.mark.slow)]
)
def test_every_kind_of_ensemble(tmp_path, kind):
    given = {"unit": 8, "method": "dmv4", "field": None, "params": None}
    if kind == "own steps":
        given |= {"dt": RNG.uniform(0.01, 0.02, 17), "bodies": MOMENTS[:17], "momenta": MOMENTA[:17]}
    elif kind == "one left over":
        given |= {"bodies": MOMENTS[:9], "momenta": MOMENTA[0]}
    elif kind == "own axes":
        turn = np.linalg.qr(RNG.normal(size=(17, 3, 3)))[0]
        tensors = turn * MOMENTS[:17, None, :] @ turn.transpose(0, 2, 1)
        tensors[:9] = np.eye(3) * MOMENTS[:9, None, :]  # units with and without axes of their own
        given |= {"bodies": tensors, "momenta": MOMENTA[:17]}
    else:
        given |= {"bodies": MOMENTS[:17], "momenta": MOMENTA[:17], "method": "reversible(imidm)"}
        given |= {"field": gravity, "params": {"mgl": WEIGHTS[:17]}}
    given |= {"steps": 20, "every": 6}
    stored = run(**given, out=tmp_path / "crowd.zarr")
    del given["unit"]
    assert_same(stored, run(**given))


def test_netcdf_and_copies(tmp_path, whole):
    many = run(out=tmp_path / "crowd.zarr", unit=64)
    for source, name in ((many, "a.nc"), (whole, "b.nc"), (many, "c.zarr"), (whole, "d.zarr")):
        path = source.save(tmp_path / name)
        assert_same(ph.load(path), whole)
        with ph.load(path).to_xarray() as data:
            assert data["quaternion"].dims == ("time", "body", "component")
            assert list(data["component"].values) == ["w", "x", "y", "z"]
    with pytest.raises(ph.InputError, match="exists; choose another name"):
        whole.save(tmp_path / "a.nc")
    assert_same(ph.load(trajectory_store.export(tmp_path / "crowd.zarr", tmp_path / "e.nc")), whole)


def test_a_unit_done_is_not_run_again_and_one_run_again_is_the_same(tmp_path, whole):
    path = tmp_path / "crowd.zarr"
    run(out=path, unit=UNIT)
    before = marks(path)
    (path / "failed" / "c" / "3").unlink()
    with pytest.raises(ph.InputError, match="a part of failed is missing"):
        _ = ph.load(path).failed  # the store says that it is finished
    integrity.replace_attributes(path, ensemble_store.described(path)["attributes"] | {"status": "running"})
    waiting = ph.load(path)
    assert np.array_equal(np.flatnonzero(waiting.failed == NOT_YET), np.arange(24, 32))
    assert np.isnan(waiting.momentum[:, 24:32]).all()
    assert "8 not run yet" in repr(waiting)
    assert_same(run(out=path, resume=True), whole)
    after = marks(path)
    assert {name for name in after if after[name] != before[name]} == {"3"}


FAST = MOMENTA[:20] * np.where(np.arange(20) % 9 == 4, 100, 1)[:, None]
RUNAWAYS = {"bodies": MOMENTS[:20], "momenta": FAST, "method": "dmv2", "field": None, "params": None, "dt": 0.1}


def with_runaways(path):
    """Two bodies turn far too fast for their first step."""
    said = r"2 of 20 bodies failed .*: bodies 4, 13; body 4 in step 1: its equation was not solved"
    with pytest.warns(ph.ResultWarning, match=said):
        return run(**RUNAWAYS, out=path, unit=8)


def test_failed_bodies_of_a_file_are_told(tmp_path):
    many = with_runaways(tmp_path / "crowd.zarr")
    assert np.flatnonzero(many.failed >= 0).tolist() == [4, 13]
    assert many.failed[[4, 13]].tolist() == [1, 1]
    assert ph.load(many.save(tmp_path / "copy.nc")).failed[4] == 1


def as_before_checksums(path):
    """Let a store be one of the format that had no checksums and no digest."""
    file = path / "zarr.json"
    whole = json.loads(file.read_text())
    for name in (integrity.CHECKSUMS, integrity.DIGEST, ensemble_store.CHECKED):
        whole["attributes"].pop(name, None)
    whole["attributes"]["format"] = ensemble_store.WITHOUT_CHECKSUMS
    file.write_text(json.dumps(whole))


def test_files_in_which_steps_count_from_zero_are_read_and_not_continued(tmp_path):
    path = tmp_path / "crowd.zarr"
    many = with_runaways(path)
    failed = many.failed
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    group["failed"][:] = np.where(failed >= 0, failed - 1, failed)
    as_before_checksums(path)
    assert np.array_equal(ph.load(path).failed, failed)
    with ph.load(path).to_xarray() as data:
        assert np.array_equal(data["failed"], failed)
    with pytest.raises(ph.InputError, match="without checksums, and cannot be"):
        run(**RUNAWAYS, out=path, resume=True)


# --- kills ------------------------------------------------------------------------------------------

SERVER = """
    import os, sys
    sys.path[:0] = {folders!r}
    import test_units
    test_units.run()  # compiled and warm: children start at once
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            test_units.run(out=line.strip(), resume=True, unit=test_units.UNIT)
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("over", flush=True)
"""


def readable(path: Path, whole) -> int:
    """How many bodies a store holds, all of them right and the others not there yet."""
    if not path.exists():
        return 0
    many = ph.load(path)
    done = many.failed != NOT_YET
    for name in ("quaternion", "momentum"):
        np.testing.assert_array_equal(getattr(many, name)[:, done], getattr(whole, name)[:, done])
    with xarray.open_zarr(path, chunks=None) as data:
        assert data.sizes["body"] == N
    return int(done.sum())


def test_killed_at_random_moments(tmp_path, whole):
    """SIGKILL up to eight times, until half of the units are done, then to the end: the same bits as without."""
    path, chance = tmp_path / "crowd.zarr", random.Random(5)
    script = textwrap.dedent(SERVER.format(folders=[str(Path(__file__).parent), str(Path(__file__).parents[2])]))
    reached = [0]
    with started([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as it:
        while len(reached) <= 8 and reached[-1] < N // 2:
            before, more = len(marks(path)), chance.randrange(3)
            print(path, file=it.stdin, flush=True)
            child = int(it.stdout.readline())
            deadline = time.monotonic() + PATIENCE
            while len(marks(path)) < before + more:
                assert time.monotonic() < deadline, f"{before} units and no more"
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            assert it.stdout.readline() == "over\n"
            reached.append(readable(path, whole))
        it.stdin.close()
    assert reached == sorted(reached)
    assert 0 < reached[-1] < N
    assert_same(run(out=path, resume=True), whole)
    assert not list(path.rglob("*.partial"))
    with xarray.open_zarr(path, chunks=None) as data, run(out=tmp_path / "other.zarr").to_xarray() as other:
        np.testing.assert_array_equal(data["energy_change"], other["energy_change"])


def test_full_disk(tmp_path):
    """A disk that takes no more: one sentence, a readable store, and the rest when there is room."""
    path = tmp_path / "crowd.zarr"
    whole = run(out=tmp_path / "whole.zarr", unit=64, every=10)  # what is compiled below the limit could not be kept
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, usual[1]))
    try:
        with pytest.raises(
            ph.StepError, match=r"crowd.zarr cannot be written \(File too large\); 4 shards are missing"
        ):
            run(out=path, unit=64, every=10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (ph.load(path).failed == NOT_YET).all()
    assert_same(run(out=path, resume=True, every=10), whole)


# --- what is refused --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "crowd.zarr"
    run(out=path, unit=64)
    return path


@ph.potential
def heavier(R, mgl):
    return 2 * mgl * R[2][2]


OTHER = MOMENTA.copy()
OTHER[150, 1] = np.nextafter(OTHER[150, 1], 9)
DIFFERENT = {
    "steps": ({"steps": 299}, "steps = 300.*, and this run has steps = 299"),
    "every": ({"every": 71}, "every = 70.*, and this run has every = 71"),
    "method": ({"method": "akw"}, "method = imidm.*, and this run has method = akw"),
    "start": ({"t0": 1.0}, "t0 = 0.0.*, and this run has t0 = 1.0"),
    "field": ({"field": heavier}, "field = gravity.*, and this run has field = heavier"),
    "free": ({"field": None, "params": None}, "field = gravity.*, and this run has no field"),
    "number": ({"bodies": MOMENTS[:9], "momenta": [1, 2, 3], "params": {"mgl": 1}},
               "number of bodies = 203.*, and this run has number of bodies = 9"),
    "last bit": ({"momenta": OTHER}, r"momenta = \[.*\] of body 150, and this run has momenta = "),
    "bodies": ({"bodies": [1.0, 1.2, 1.3]},
               r"bodies = \[.*\] of body 0, and this run has bodies = \[1.0, 1.2, 1.3\] of body 0"),
    "params": ({"params": {"mgl": 1.5}}, "params = .* of body 0, and this run has params = 1.5 of body 0"),
    "dt": ({"dt": 0.021}, "dt = 0.02 of body 0, and this run has dt = 0.021 of body 0"),
    "own dt": ({"dt": np.full(N, 0.02)}, "no dt for each body, and this run has dt for each body"),
    "unit": ({"unit": 16}, "unit = 64.*, and this run has unit = 16"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_different_run_is_not_resumed(made, case):
    given, said = DIFFERENT[case]
    before = marks(made)
    with pytest.raises(ph.InputError, match=f"crowd.zarr was begun with .*{said}"):
        run(**given, out=made, resume=True)
    assert marks(made) == before


def test_another_formula_of_the_same_name(made):
    @ph.potential
    def gravity(R, mgl):
        return 3 * mgl * R[2][2]

    with pytest.raises(ph.InputError, match="one formula of the field"):
        run(field=gravity, out=made, resume=True)


BAD = {
    "exists": ({}, "exists; choose another name or give overwrite=True"),
    "both": ({"overwrite": True, "resume": True}, "give overwrite or resume, not both"),
    "netcdf": ({"out": "crowd.nc"}, "written to a .zarr store; save the result as crowd.nc"),
    "suffix": ({"out": "crowd.txt"}, "must end in .zarr or .nc"),
    "no file": ({"out": None, "resume": True}, "resume needs a file; also give out="),
    "unit": ({"unit": 0, "overwrite": True}, "unit"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(made, case):
    given, said = BAD[case]
    with pytest.raises(ph.InputError, match=said):
        run(**({"out": made} | given))


def test_a_store_of_something_else_is_not_resumed(tmp_path, whole):
    ph.solve(ph.problems.free_body(), "fem", dt=0.1, steps=3).save(tmp_path / "one.zarr")
    with pytest.raises(ph.InputError, match="is not a polhode ensemble"):
        run(out=tmp_path / "one.zarr", resume=True)
    whole.save(tmp_path / "saved.zarr")
    with pytest.raises(ph.InputError, match="cannot be resumed: it does not record how its run was started"):
        run(out=tmp_path / "saved.zarr", resume=True)


def test_a_store_that_is_being_written_is_left_alone(made):
    held = atomic.locked(made)
    try:
        with pytest.raises(ph.InputError, match="is being written by another run"):
            run(out=made, resume=True)
    finally:
        atomic.released(held)


def test_overwrite(tmp_path):
    path = tmp_path / "crowd.zarr"
    run(out=path)
    assert len(run(bodies=[1, 1.2, 1.5], momenta=[1, 2, 3.0], params={"mgl": 2.0}, out=path, overwrite=True)) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["crowd.zarr"]


def test_units_are_bounded():
    """A unit keeps within its body-steps and bytes, and is a multiple of the widest lanes."""
    for number, steps, every in ((10**6, 1000, None), (10**5, 10**5, 10), (50, 10**9, None), (10, 5, 1)):
        task = prepared([1, 1.2, 1.5], None, np.ones((number, 3)), "dmv4", dt=0.1, steps=steps, every=every)
        size = shards.default_shard_size(task)
        assert size == number or size % shards.LANES == 0
        if shards.LANES < size < number:
            assert size * steps <= shards.BODY_STEPS["cpu"]
            assert size * len(task.kept) * 56 <= shards.ROW_BYTES["cpu"]


def test_progress_is_told(tmp_path):
    seen = []
    run(out=tmp_path / "crowd.zarr", unit=64, progress=seen.append)
    assert seen == [0.25, 0.5, 0.75, 1.0]
