"""Files that are damaged, hostile, or written by two at once: found, refused, never believed."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr

import polhode as ph
from polhode.results import recorder
from polhode.results.store import atomic, checkpoint, ensemble_store, integrity, netcdf, trajectory_store
from polhode.run.ensemble import store

pytestmark = [pytest.mark.xdist_group("resume"), pytest.mark.usefixtures("in_a_folder")]

TOP = ph.problems.fast_top()
DRAW = np.random.default_rng(1)
MOMENTS, MOMENTA = np.array([1.5, 2.0, 2.5]) * DRAW.uniform(0.9, 1.1, (40, 3)), DRAW.normal(size=(40, 3))
ARRAYS = ("t", "quaternion", "momentum", "energy")
CROWD = ("t", "quaternion", "momentum", "moments", "failed")


def run(out: str | None = None, **options: Any) -> ph.Trajectory:
    return ph.solve(TOP, "imidm", **{"dt": 0.01, "steps": 60, "out": out, "progress": False} | options)


def crowd(out: str | None = None, **options: Any) -> ph.Ensemble:
    unit = {} if out is None else {"unit": 16, "progress": False}
    return ph.ensemble(
        MOMENTS, None, MOMENTA, "dmv4", out=out, **{"dt": 0.05, "steps": 20, "every": 5} | unit | options
    )


class Stop(Exception):
    """A run that is stopped by its progress."""


def stop(done: float) -> None:
    if done > 0.4:
        raise Stop


# --- damage -----------------------------------------------------------------------------------------


def flip(data: bytearray, draw: random.Random) -> bytes:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def truncate(data: bytearray, draw: random.Random) -> bytes:
    return bytes(data[: draw.randrange(len(data))])


def zero(data: bytearray, draw: random.Random) -> bytes:
    begin = draw.randrange(len(data))
    return bytes(data[:begin]) + bytes(min(64, len(data) - begin)) + bytes(data[begin + 64 :])


def damaged(path: Path, how: Callable[..., bytes] | None, draw: random.Random) -> str:
    """Damage one file of a store, or remove it."""
    inside = [p for p in sorted(path.rglob("*")) if p.is_file()] if path.is_dir() else [path]
    chosen = draw.choice(inside)
    if how is None:
        chosen.unlink()
    else:
        chosen.write_bytes(how(bytearray(chosen.read_bytes()), draw))
    return f"{chosen.name} {how}"


def copied(source: Path, path: Path) -> None:
    atomic.remove(path)
    shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)


FILES = {
    "trajectory.zarr": (lambda out: run(out), ARRAYS),
    "trajectory.nc": (lambda out: run(out), ARRAYS),
    "crowd.zarr": (lambda out: crowd(out), CROWD),
    "crowd.nc": (lambda out: crowd().save(out), CROWD),
}


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_the_same_or_refused(name: str) -> None:
    """Random bits, ends and whole files are lost: what is read is what was written, or InputError."""
    make, arrays = FILES[name]
    make(name)
    source, path, draw, refused = Path(name), Path(f"x{Path(name).suffix}"), random.Random(5), 0
    whole = {array: getattr(ph.load(source), array).tobytes() for array in arrays}
    info = getattr(ph.load(source), "info", None)
    for how in (flip, flip, truncate, zero, None):
        for _ in range(6):
            copied(source, path)
            what = damaged(path, how, draw)
            try:
                found = ph.load(path)
                same = {array: getattr(found, array).tobytes() for array in arrays} == whole
                assert same, what
                assert getattr(found, "info", None) == info, what
            except ph.InputError:
                refused += 1
    assert refused > 3


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("what", ["complete", "stopped"])
def test_a_damaged_run_is_not_gone_on_with(what: str, suffix: str) -> None:
    """Not even where the end is later, nor said to be complete; a store that is merely untidy is put right."""
    steps, path, source = 90 if what == "complete" else 60, Path(f"x{suffix}"), Path(f"run{suffix}")
    if what == "complete":
        run(str(source))
    else:
        with pytest.raises(Stop):
            run(str(source), resume=True, progress=stop)
    whole, draw, refused = run(steps=steps), random.Random(7), 0
    for how in (flip, truncate, None, flip):
        for _ in range(3):
            copied(source, path)
            damaged(path, how, draw)
            if not path.exists():
                continue
            try:
                found = run(str(path), steps=steps, resume=True)
                assert all(getattr(found, name).tobytes() == getattr(whole, name).tobytes() for name in ARRAYS)
            except ph.InputError:
                refused += 1
    assert refused > 1


def test_a_missing_part_of_a_complete_run() -> None:
    run("run.zarr")
    shutil.rmtree("run.zarr/momentum/c/0")
    with pytest.raises(ph.InputError, match=r"run\.zarr is damaged: .*momentum is missing \(momentum/c/0/0\)"):
        run("run.zarr", resume=True)
    with pytest.raises(ph.InputError, match="a part of momentum is missing"):
        trajectory_store.export("run.zarr", "copy.nc")
    assert not Path("copy.nc").exists()
    assert run("run.zarr", overwrite=True).status == "finished"


def test_parts_that_are_whole_but_not_the_right_ones() -> None:
    """Each chunk has its checksum, and yet they are exchanged, or one of an earlier state."""
    record_rows = trajectory_store.ROWS_PER_CHUNK
    run("run.zarr", steps=2 * record_rows, dt=1e-4)
    first, second = (Path(f"run.zarr/energy/c/{i}") for i in (0, 1))
    text = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(text)
    with pytest.raises(ph.InputError, match="energy does not have the checksum it was written with"):
        _ = ph.load("run.zarr").energy


def test_a_changed_checkpoint() -> None:
    with pytest.raises(Stop):
        run("run.zarr", resume=True, progress=stop)
    root = Path("run.zarr/zarr.json")
    whole = json.loads(root.read_text())
    state = json.loads(whole["attributes"]["checkpoint"])
    state["state"][1][0] = float(123).hex()
    whole["attributes"]["checkpoint"] = json.dumps(state)
    root.write_text(json.dumps(whole))
    with pytest.raises(ph.InputError, match="does not have the digest"):
        run("run.zarr", resume=True)


def test_damaged_units_are_run_again() -> None:
    whole = crowd()
    crowd("crowd.zarr")
    Path("crowd.zarr/momentum/c/0/1/0").unlink()
    chunk = Path("crowd.zarr/quaternion/c/0/2/0")
    chunk.write_bytes(flip(bytearray(chunk.read_bytes()), random.Random(1)))
    with pytest.raises(ph.InputError, match="resume=True"):
        _ = ph.load("crowd.zarr").momentum
    with pytest.warns(ph.ResultWarning, match=r"2 shards \(the first is number 1\) .* are run again"):
        found = crowd("crowd.zarr", resume=True)
    assert all(np.array_equal(getattr(found, name), getattr(whole, name)) for name in CROWD)
    shutil.rmtree("crowd.zarr/inputs/momentum/c/0")
    with pytest.raises(ph.InputError, match="a part of inputs/momentum is missing"):
        crowd("crowd.zarr", resume=True)


# --- files without checksums ------------------------------------------------------------------------


def as_before(path: Path, form: str) -> None:
    """A store as earlier versions wrote it."""
    root = json.loads((path / "zarr.json").read_bytes())
    for name, one in root["consolidated_metadata"]["metadata"].items():
        if one["node_type"] == "array":
            one["codecs"] = [codec for codec in one["codecs"] if codec["name"] != "crc32c"]
            (path / name / "zarr.json").write_text(json.dumps(one))
            for chunk in (path / name).glob("c/**/*"):
                if chunk.is_file():
                    chunk.write_bytes(chunk.read_bytes()[:-4])
    for gone in (integrity.CHECKSUMS, integrity.DIGEST, ensemble_store.CHECKED):
        root["attributes"].pop(gone, None)
    root["attributes"]["format"] = form
    (path / "zarr.json").write_text(json.dumps(root))


def test_files_without_checksums_are_read_and_say_so() -> None:
    with pytest.raises(Stop):
        run("run.zarr", resume=True, progress=stop)
    as_before(Path("run.zarr"), "polhode trajectory 1")
    found, whole = ph.load("run.zarr"), run()
    assert "without checksums" in repr(found)
    assert found.momentum.tobytes() == whole.momentum[: len(found)].tobytes()
    with pytest.warns(ph.ResultWarning, match="without checksums: damage cannot be detected"):
        done = run("run.zarr", resume=True)
    assert done.momentum.tobytes() == whole.momentum.tobytes()
    assert trajectory_store.read("run.zarr")[1]["format"] == "polhode trajectory 2"
    crowd("crowd.zarr")
    as_before(Path("crowd.zarr"), "polhode ensemble 1")
    many = ph.load("crowd.zarr")
    assert "without checksums" in repr(many)
    assert np.array_equal(many.momentum, crowd().momentum)
    with pytest.raises(ph.InputError, match="without checksums, and cannot be resumed"):
        crowd("crowd.zarr", resume=True)


# --- hostile files ----------------------------------------------------------------------------------


def test_a_store_that_would_run_code(tmp_path: Path) -> None:
    """A Zarr store of version 2 with numcodecs' pickle codec, and one of version 3 with a codec we do not know."""
    run("run.zarr")
    attributes = trajectory_store.read("run.zarr")[1]
    old = Path("old.zarr")
    for name, shape in {"t": [2], "quaternion": [2, 4], "momentum": [2, 3], "energy": [2]}.items():
        (old / name).mkdir(parents=True)
        meta = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|O", "fill_value": "", "order": "C",
                "compressor": {"id": "pickle"}, "filters": [{"id": "vlen-utf8"}]}  # fmt: skip
        (old / name / ".zarray").write_text(json.dumps(meta))
        (old / name / ".".join("0" for _ in shape)).write_bytes(
            f"cpathlib\nPath\n(V{tmp_path}/ran\ntR(icposix\nmkdir\n(V{tmp_path}/ran\ntR.".encode()
        )
    (old / ".zgroup").write_text('{"zarr_format": 2}')
    (old / ".zattrs").write_text(json.dumps(attributes))
    shutil.copytree("run.zarr", "new.zarr")
    text = Path("new.zarr/zarr.json").read_text().replace('"zstd"', '"numcodecs.pickle"')
    whole = json.loads(text)
    Path("new.zarr/zarr.json").write_text(integrity.sealed(whole))
    for path in ("old.zarr", "new.zarr"):
        for use in (
            lambda path=path: ph.load(path).momentum,
            lambda path=path: trajectory_store.export(path, "copy.nc"),
            lambda path=path: run(path, resume=True),
        ):
            with pytest.raises(ph.InputError):
                use()
    assert not Path("ran").exists()


@pytest.mark.parametrize("chunk", [200_000_000, 16384])
def test_a_small_store_that_claims_to_be_large(chunk: int) -> None:
    """Nothing is allocated for rows that are not there."""
    run("run.zarr")
    root = Path("run.zarr/zarr.json")
    whole = json.loads(root.read_text())
    for one in integrity.arrays(whole).values():
        if one["dimension_names"][0] == "time":
            one["shape"][0] = 200_000_000
            one["chunk_grid"]["configuration"]["chunk_shape"][0] = chunk
    root.write_text(integrity.sealed(whole))
    with pytest.raises(ph.InputError, match="is damaged"):
        _ = ph.load("run.zarr").t


def test_only_stores_of_ours_are_overwritten() -> None:
    Path("photos.zarr").mkdir()
    Path("photos.zarr/one.jpg").write_text("smile")
    zarr.open_group("ocean.zarr", mode="w").attrs["title"] = "ocean"
    for name in ("photos.zarr", "ocean.zarr"):
        for use in (run, crowd, lambda out, overwrite: run().save(out, overwrite)):
            with pytest.raises(ph.InputError, match=f"{name} is a folder that is not a store of this library"):
                use(name, overwrite=True)
    assert Path("photos.zarr/one.jpg").read_text() == "smile"
    run("run.zarr")
    Path("run.zarr/zarr.json").write_text("{")
    Path("empty.zarr").mkdir()
    for name in ("run.zarr", "empty.zarr"):
        assert run(name, overwrite=True).status == "finished"


# --- two at once ------------------------------------------------------------------------------------


def nested(name: str, first: Callable[..., Any], second: Callable[[], Any]) -> list[str]:
    """Begin a second run in the middle of a first one; returns what was said to the second."""
    said = []

    def look(done: float) -> None:
        try:
            second()
            said.append("")
        except ph.InputError as fault:
            said.append(str(fault))

    first(name, progress=look)
    return said


@pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize("name", ["x.zarr", "x.nc", "crowd.zarr"])
def test_one_writer_at_a_time(name: str, how: dict[str, bool]) -> None:
    """Whoever comes second is refused, whether the file is there or not, and the first one's file is right."""
    go: Callable[..., Any] = crowd if name == "crowd.zarr" else run
    said = nested(name, lambda out, **more: go(out, **how | more), lambda: go(name, **how, progress=False))
    assert said
    assert all(("being written by another run" in one) or (not how and "exists" in one) for one in said)
    assert np.array_equal(ph.load(name).momentum, go().momentum)
    assert sorted(p.name for p in Path().iterdir()) == [name]


def test_a_lock_comes_before_the_store() -> None:
    """The store of an ensemble is not made, let alone replaced, by who does not hold its lock."""
    held = atomic.locked(Path("crowd.zarr"))
    for how in ({}, {"resume": True}, {"overwrite": True}):
        for use in (crowd, run, lambda out, **how: run().save(out, bool(how))):
            with pytest.raises(ph.InputError, match="is being written by another run"):
                use("crowd.zarr", **how)
    assert not Path("crowd.zarr").exists()
    with pytest.raises(ph.InputError, match="is being written by another run"):
        ph.solve(TOP, tol=1e-6, t_end=0.1, out="crowd.zarr", progress=False)
    atomic.released(held)
    assert len(crowd("crowd.zarr")) == 40
    assert not atomic.lock_file(Path("crowd.zarr")).exists()


def test_a_lock_file_that_was_left_behind_is_taken() -> None:
    """The lock is dropped with its process, the file stays: it does not lock anything."""
    code = (
        "import os; from pathlib import Path; from polhode.results.store import atomic; "
        "atomic.locked(Path('run.zarr')); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert atomic.lock_file(Path("run.zarr")).exists()
    assert run("run.zarr").status == "finished"
    assert [p.name for p in Path().iterdir()] == ["run.zarr"]


def test_what_killed_runs_left_is_removed() -> None:
    """Whatever process numbers they had: who holds the lock is alone."""
    for name in (f".run.zarr.{os.getpid()}.zarr", ".run.zarr.1.gone"):
        Path(name).mkdir()
    run("run.zarr")
    assert [p.name for p in Path().iterdir()] == ["run.zarr"]
    Path("run.zarr").rename(".run.zarr.7.old")  # killed between the two renames of a replacement
    assert run("run.zarr", resume=True).status == "finished"
    assert [p.name for p in Path().iterdir()] == ["run.zarr"]


@pytest.mark.parametrize("file", ["zarr.json", "quaternion/c/0/0"])
@pytest.mark.parametrize("become", ["a pipe", "a folder", "a file of 20 GB"])
def test_what_is_no_file_of_ours_is_not_read(file: str, become: str) -> None:
    """A pipe would make the reader wait for ever, and a file that grew would fill the memory."""
    with pytest.raises(Stop):
        run("run.zarr", progress=stop)
    path = Path("run.zarr", file)
    if become == "a file of 20 GB":
        os.truncate(path, 20 << 30)
    else:
        path.unlink()
        os.mkfifo(path) if become == "a pipe" else path.mkdir()
    with pytest.raises(ph.InputError, match=r"is no ordinary file|bytes, more than|has the wrong size"):
        _ = ph.load("run.zarr").quaternion


def test_a_pipe_in_place_of_a_netcdf_file_is_not_read() -> None:
    os.mkfifo("run.nc")
    with pytest.raises(ph.InputError, match="is no ordinary file"):
        ph.load("run.nc")


def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("begin", [run, crowd], ids=["a run", "an ensemble"])
def test_what_killed_writers_left_within_a_store_is_removed(begin: Callable[..., Any]) -> None:
    """And nothing of a process that lives, such as a worker of a cluster."""
    with pytest.raises(Stop):
        begin("run.zarr", progress=stop)
    names = ("zarr.json.{}.partial.json", "t/zarr.json.{}.partial.json", "quaternion/c/0.npz.{}.partial")
    numbers = (ended(), os.getpid(), os.getppid())
    for number in numbers:
        for name in names:
            Path("run.zarr", name.format(number)).write_text("")
    Path("run.zarr", "quaternion", "c", f"0.{32 * 'a'}.partial").write_text("")  # of zarr
    begin("run.zarr", resume=True)
    left = [str(path.relative_to("run.zarr")) for path in Path("run.zarr").rglob("*.partial*")]
    assert sorted(left) == sorted(name.format(os.getppid()) for name in names)


def test_what_killed_writers_left_beside_a_file_is_removed() -> None:
    for path in ("run.nc", "run.zarr"):
        Path(f"{path}.{ended()}.partial{path[3:]}").write_text("")
        run().save(path)
    assert sorted(p.name for p in Path().iterdir()) == ["run.nc", "run.zarr"]


def test_a_worker_of_an_old_run_writes_nothing_into_a_new_one() -> None:
    crowd("crowd.zarr")
    root = ensemble_store.opened(Path("crowd.zarr"), "r+")
    crowd("crowd.zarr", overwrite=True, dt=0.06)
    with pytest.raises(ph.InputError, match="was replaced by another run"):
        store._check_same_store(root)


# --- faults -----------------------------------------------------------------------------------------


class Faulty:
    """Fails the n-th change of a file that Python makes, once or from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, ever: bool) -> None:
        self.at, self.ever, self.calls = at, ever, 0
        for owner, name in ((os, "rename"), (os, "replace"), (os, "mkdir"), (os, "fsync"), (Path, "rename"),
                            (Path, "replace"), (Path, "mkdir"), (netcdf.Sink, "_put"), (shutil, "rmtree")):  # fmt: skip
            monkeypatch.setattr(owner, name, self.watched(getattr(owner, name)))
        monkeypatch.setattr(io, "open", self.watched(io.open))

    def watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if real is not io.open or any(c in str(given[1:2]) for c in "wxa+"):
                self.calls += 1
                if self.calls == self.at or (self.ever and self.calls > self.at):
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*given, **named)

        return call


@pytest.mark.parametrize("ever", [False, True])
@pytest.mark.parametrize("name", ["x.zarr", "x.nc", "crowd.zarr", "save.nc"])
def test_any_change_of_a_file_may_fail(name: str, ever: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is InputError or StepError, what is there can be read, and the run goes on to the same bits."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)
    sol = run()
    go: dict[str, Callable[[], Any]] = {
        "crowd.zarr": lambda: crowd(name, resume=True), "save.nc": lambda: sol.save(name, overwrite=True),
    }  # fmt: skip
    act = go.get(name, lambda: run(name, resume=True))
    whole = crowd() if name == "crowd.zarr" else sol
    with monkeypatch.context() as patch:
        count = Faulty(patch, 0, False)
        act()
    for at in range(1, count.calls + 1, max(1, count.calls // 4)):
        atomic.remove(Path(name))
        atomic.remove(trajectory_store.staging_path(Path(name)))
        with monkeypatch.context() as patch:
            Faulty(patch, at, ever)
            with contextlib.suppress(ph.InputError, ph.StepError):
                act()
        there = trajectory_store.existing(Path(name))
        if there is not None and name != "crowd.zarr":
            part = ph.load(there)
            assert part.momentum.tobytes() == whole.momentum[: len(part)].tobytes()
        act()
        assert ph.load(name).momentum.tobytes() == whole.momentum.tobytes()
        assert sorted(p.name for p in Path().iterdir()) == [name]


def test_a_transient_error_does_not_leave_a_wrong_netcdf_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rows of the run are kept until the file has been read back."""
    with monkeypatch.context() as patch:
        calls = []

        def put(sink: Any, start: int, view: Any) -> None:
            calls.append(start)
            if len(calls) == 9:
                raise OSError(errno.EIO, "disk")

        patch.setattr(netcdf.Sink, "_put", put)
        with pytest.raises(ph.StepError, match=r"cannot be written \(disk\)"):
            run("run.nc")
    assert not Path("run.nc").exists()
    assert len(ph.load("run.nc.partial.zarr")) == 61
    assert run("run.nc", resume=True).momentum.tobytes() == run().momentum.tobytes()
    assert [p.name for p in Path().iterdir()] == ["run.nc"]


def test_killed_while_the_partial_store_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """The end of the process."""

    real = shutil.rmtree

    def kill(path: Path, *given: Any, **named: Any) -> None:
        if Path(path).name.endswith(".gone"):
            next(p for p in Path(path).rglob("*") if p.is_file()).unlink()
            raise Killed
        real(path, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", kill)
        with pytest.raises(Killed):
            run("run.nc")
    assert run("run.nc", resume=True).status == "finished"
    assert [p.name for p in Path().iterdir()] == ["run.nc"]


# --- digits and memory ------------------------------------------------------------------------------


def test_digits_to_a_file_without_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is written although no state has been kept since the last one."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)
    found = run("run.zarr", steps=6, every=3, digits=20)
    assert found.momentum.tobytes() == run(steps=6, every=3, digits=20).momentum.tobytes()
    assert json.loads(trajectory_store.read("run.zarr")[1][checkpoint.CHECKPOINT])["step"] == 6


def test_the_summary_of_a_run_reads_its_file_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from polhode.cli import run as command

    steps = 2 * trajectory_store.ROWS_PER_CHUNK
    sol = run(steps=steps, dt=1e-4)
    stored = ph.load(sol.save("run.zarr"))
    monkeypatch.setattr(
        trajectory_store.Stored, "__getitem__", lambda self, name: pytest.fail(f"{name} is read as a whole")
    )
    assert stored.drift() == sol.drift()
    assert len(stored) == steps + 1
    assert stored.changes() == sol.changes()
    assert stored.last().momentum.tobytes() == sol.momentum[-1:].tobytes()
    command._print(TOP, stored, None, True, "", None)


def test_xarray_finds_damage_too() -> None:
    """The checksums of chunks are part of both formats."""
    run("run.zarr")
    run("run.nc")
    chunk = Path("run.zarr/momentum/c/0/0")
    chunk.write_bytes(flip(bytearray(chunk.read_bytes()), random.Random(2)))
    with pytest.raises(ValueError, match="checksum"), xarray.open_zarr("run.zarr", chunks=None) as data:
        _ = data["momentum"].values
    text, number = bytearray(Path("run.nc").read_bytes()), run().momentum[30].tobytes()
    text[text.index(number)] ^= 1
    Path("run.nc").write_bytes(text)
    with pytest.raises(OSError, match="read"), xarray.open_dataset("run.nc") as data:
        _ = data["momentum"].values
