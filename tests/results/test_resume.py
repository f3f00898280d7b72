"""Runs in files that are killed, stopped or fail, and go on: to the bits of a run in one go."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import polhode as ph
from polhode.results import recorder
from polhode.results.progress import Progress
from polhode.results.store import atomic, checkpoint, file_format, integrity, trajectory_store
from polhode.results.store.checkpoint import Checkpoint
from polhode.run.fixed_step import RunState, integrate_in_chunks
from polhode.run.integrator import engine
from waiting import PATIENCE, started

pytestmark = pytest.mark.xdist_group("resume")

TOP = ph.problems.fast_top()
KINDS = {
    "plain": "imidm", "memory": "abm4", "low parts": "compensated(strang(symrot))", "clock": "reversible(imidm)",
    "processed": "processed4(symrot)",
}  # fmt: skip
WALL_CLOCK = ("seconds", "digest")
"""The digest covers the seconds."""


class Stop(Exception):
    """A run that is stopped by its progress."""


def run(out: Path | str | None = None, **options: Any) -> ph.Trajectory:
    options = {"method": "imidm", "dt": 0.01, "steps": 100, "progress": False} | options
    return ph.solve(options.pop("problem", TOP), options.pop("method"), out=out, **options)


def stopped(path: Path | str, part: float = 0.4, **options: Any) -> ph.Trajectory:
    """Begin or continue a run, and stop it when this part of it is done."""

    def look(done: float) -> None:
        if done >= part:
            raise Stop

    with pytest.raises(Stop) as caught:
        run(path, **options, resume=True, progress=look)
    partial: ph.Trajectory = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    return partial


def contents(path: Path | str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every array of a file and every attribute that is not of the wall clock."""
    path = Path(path)
    with xarray.open_zarr(path) if path.suffix == ".zarr" else xarray.open_dataset(path) as data:
        arrays = {
            str(name): (a.dims, a.values.tobytes() if a.dtype.kind == "f" else a.values.tolist())
            for name, a in data.variables.items()
        }
        attributes = {k: v.tolist() if isinstance(v, np.ndarray | np.generic) else v for k, v in data.attrs.items()}
    return arrays, {k: v for k, v in attributes.items() if k not in WALL_CLOCK}


def assert_same(a: Path | str, b: Path | str) -> None:
    assert contents(a) == contents(b)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk of steps is written at once."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)


# --- every method ------------------------------------------------------------------------------------


class Rows(recorder.Memory[Any]):
    """Keeps rows, and the last state they lead up to."""

    state: Any = None

    def reached(self, step: int, y: Any) -> None:
        self.state = y


def rows_of(problem: ph.Problem, name: str, cuts: list[int], every: int, digits: int | None = None) -> np.ndarray:
    """Rows of a run that ends at each of the cuts in turn, and is taken up from the text of its state."""
    method = ph.methods[name]
    rows, mark = np.empty((0, 8)), Checkpoint(0, 0, None)
    for cut in cuts:
        state = RunState(
            engine(problem, method, digits), problem, 0.01, cut, every, mark.step, mark.state, method=method
        )
        kept = Rows(lambda t, rows: None)
        if mark.step:
            kept.add(np.empty(0), np.empty((0, 7)))
        integrate_in_chunks(state, kept, Progress(False, "", 1))
        assert state.residual is None
        new = np.concatenate([np.column_stack([t, r.astype(float)]) for t, r in kept.kept])
        rows = np.concatenate([rows[: mark.rows], new])
        mark = Checkpoint.read(Checkpoint(state.done, 1 + state.done // every, kept.state).text(), digits)
    return rows


@pytest.mark.parametrize("name", list(dict.fromkeys([*(m.name for m in ph.methods.taking("free")), *KINDS.values()])))
@pytest.mark.usefixtures("plain_first")
def test_every_method_goes_on_from_the_text_of_its_state(name: str) -> None:
    """Also to a later end than the first one: the row of an end that is no multiple of `every` is not kept."""
    problem = TOP if ph.methods[name].takes("potential") else ph.problems.book()
    draw = random.Random(name)
    for every in (1, 7):
        cuts = sorted(draw.sample(range(1, 150), 3))
        np.testing.assert_array_equal(rows_of(problem, name, [*cuts, 150], every), rows_of(problem, name, [150], every))


@pytest.mark.parametrize("name", ["imidm", "abm4", "reversible(imidm)"])
def test_many_digits_go_on_exactly(name: str) -> None:
    np.testing.assert_array_equal(rows_of(TOP, name, [3, 5, 8], 2, 40), rows_of(TOP, name, [8], 2, 40))
    whole, parts = run(steps=6, digits=40, out="whole.zarr", method=name), "parts.zarr"
    stopped(parts, 0.5, steps=6, digits=40, method=name)
    run(parts, steps=6, digits=40, method=name, resume=True)
    assert whole.info.digits == 40
    assert_same(parts, "whole.zarr")


def test_rows_do_not_depend_on_how_many_are_made_at_once() -> None:
    """What is derived of states has the same bits in whatever blocks they are written."""
    body = ph.Body([[3.0, 0.2, 0.1], [0.2, 2.0, -0.3], [0.1, -0.3, 2.5]])
    problem = ph.Problem(body, TOP.field, omega=[0.3, 0.2, 5.0])
    sol = run(problem=problem, steps=1000)
    whole = {name: getattr(sol, name) for name in trajectory_store.PRIMARY}
    for size in (1, 2, 3, 7, 8, 64, 333):
        parts = [
            file_format.derived({name: a[i : i + size] for name, a in whole.items()}, sol.info)
            for i in range(0, 1001, size)
        ]
        for name, values in file_format.derived(whole, sol.info).items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values)


# --- files, stopped and continued -------------------------------------------------------------------


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_twice(kind: str, suffix: str) -> None:
    options = {"method": KINDS[kind], "steps": 1003, "every": 7}
    run(f"whole{suffix}", **options)
    first = stopped(f"parts{suffix}", 0.05, **options)
    second = stopped(f"parts{suffix}", 0.1, **options)
    assert 1 < len(first) < len(second) < 145
    sol = run(f"parts{suffix}", **options, resume=True)
    assert (sol.status, len(sol), sol.info.steps) == ("finished", 145, 1003)
    assert_same(f"parts{suffix}", f"whole{suffix}")
    assert sorted(p.name for p in Path().iterdir()) == sorted([f"parts{suffix}", f"whole{suffix}"])


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize(
    ("method", "first", "later"),
    [
        ("imidm", {"steps": 100}, {"steps": 250}),
        ("abm4", {"t_end": 1.0}, {"t_end": 2.5}),
        ("reversible(imidm)", {"t_end": 1.0}, {"t_end": 2.5}),
        ("reversible(imidm)", {"steps": 100}, {"steps": 250}),
    ],
)
def test_a_finished_run_goes_on_to_a_later_end(method: str, first: Any, later: Any, suffix: str) -> None:
    options = {"method": method, "every": 7, "steps": None}
    run(f"parts{suffix}", **options | first)
    run(f"parts{suffix}", **options | later, resume=True)
    run(f"whole{suffix}", **options | later)
    assert_same(f"parts{suffix}", f"whole{suffix}")


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_a_complete_run_is_returned_and_nothing_changes(suffix: str) -> None:
    path = Path(f"run{suffix}")
    whole = run(path)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in [path, *path.rglob("*")] if p.is_file()}
    again = run(path, resume=True)
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in [path, *path.rglob("*")] if p.is_file()} == before
    assert again.info == whole.info
    np.testing.assert_array_equal(again.momentum, whole.momentum)
    np.testing.assert_array_equal(again.at([0.505]).momentum, whole.at([0.505]).momentum)


def test_resume_begins_what_is_not_there() -> None:
    assert run("run.zarr", resume=True).status == "finished"
    run("whole.zarr")
    assert_same("run.zarr", "whole.zarr")


def test_a_failing_step_fails_again() -> None:
    @ph.torque
    def fading(t):
        return (0, 0, (1 - t) ** 0.5)

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), fading(), omega=[1.0, 0.1, 0.2])
    options = {"problem": problem, "steps": 200, "every": 7}
    kept = []
    for resume in (False, True, True):
        with pytest.raises(ph.StepError, match="failed in step 101 ") as caught:
            run("run.zarr", **options, resume=resume)
        kept.append(contents("run.zarr"))
        assert caught.value.partial is not None
        assert caught.value.partial.status == "failed"
    assert kept[0] == kept[1] == kept[2]


def test_seconds_are_those_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    first = stopped("run.zarr", 0.01, steps=50_000)
    last = run("run.zarr", steps=50_000, resume=True)
    assert 0 < first.info.seconds < last.info.seconds


# --- killed ------------------------------------------------------------------------------------------

SERVER = """
    import os, signal, sys, time
    import polhode as ph
    from polhode.results import recorder
    import zarr
    recorder.FLUSH_SECONDS = 0.01  # many writes
    sys.modules["polhode.run.fixed_step"].CHUNK_SECONDS = 0.01
    top = ph.problems.fast_top()
    for line in sys.stdin:
        method, steps, delay, path = line.rstrip().split("|")
        said = dict(dt=1e-4, steps=int(steps), every=37, progress=False)
        ph.solve(top, method, **said | {"steps": 2})  # compiled here, once; no other thread is running yet
        began, child = time.monotonic(), os.fork()
        if child == 0:
            try:
                ph.solve(top, method, out=path, resume=True, **said)
            except BaseException as problem:
                print(problem, file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        if delay:
            time.sleep(float(delay))
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, time.monotonic() - began, flush=True)
"""
KILLED = {"plain": 800_000, "memory": 3_000_000, "low parts": 1_000_000, "clock": 400_000}
"""Steps that take about a second, most of it to write."""

KILLS = 20


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[str, Path, float | None], tuple[int, float]]]:
    """Runs jobs in processes of their own, forked from a warm one, and kills each after so many seconds."""
    server = [sys.executable, "-c", textwrap.dedent(SERVER)]
    with started(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout

        def job(kind: str, path: Path, delay: float | None) -> tuple[int, float]:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{KINDS[kind]}|{KILLED[kind]}|{'' if delay is None else delay}|{path}\n")
            process.stdin.flush()
            code, seconds = process.stdout.readline().split()
            return int(code), float(seconds)

        yield job
        process.stdin.close()


@pytest.mark.parametrize("kind", KILLED)
def test_killed_at_random_moments(server: Any, kind: str, tmp_path: Path) -> None:
    """A real process, killed with SIGKILL again and again and continued each time, until it is done."""
    whole, parts = tmp_path / "whole.zarr", tmp_path / "parts.zarr"
    code, span = server(kind, whole, None)
    assert code == 0
    draw, kills, rows = random.Random(kind), 0, 0
    while kills < KILLS // len(KILLED):
        code, _ = server(kind, parts, draw.uniform(0, span / 4))
        if code == 0:  # done before it was killed: the machine was slower when the time was taken
            assert_same(parts, whole)
            atomic.remove(parts)
            rows = 0
            continue
        assert code == -signal.SIGKILL
        kills += 1
        if parts.exists():
            sol = ph.load(parts)
            assert sol.status == "running"
            assert np.isfinite(sol.momentum).all()
            assert len(sol) >= rows
            rows = len(sol)
    assert server(kind, parts, None)[0] == 0
    assert_same(parts, whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parts.zarr", "whole.zarr"]
    assert not list(parts.rglob("*.partial"))


LISTENING = """if True:
    import signal
    from polhode.cli import main
    from polhode.results import recorder
    signal.signal(signal.SIGINT, signal.default_int_handler)
    recorder.FLUSH_SECONDS = 0.1  # rows are soon there
    main()
"""


def command(*args: str, **named: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", LISTENING, *args], text=True, **named)


def wait_for(path: Path, rows: int, child: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and child.poll() is None:
        with contextlib.suppress(ph.InputError):
            if len(ph.load(path)) > rows:
                return
        time.sleep(0.05)
    raise AssertionError("the run ended, or wrote nothing")


def test_the_command_line_killed_interrupted_and_continued() -> None:
    line = ("run", "fast_top", "-m", "imidm", "--dt", "1e-5", "--steps", "6000000", "--every", "10000")
    out = ("--out", "run.zarr", "--resume")
    with command(*line, *out) as child:
        wait_for(Path("run.zarr"), 2, child)
        child.kill()
    rows = len(ph.load("run.zarr"))
    with command(*line, *out, stderr=subprocess.PIPE) as child:
        wait_for(Path("run.zarr"), rows, child)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert said.startswith("polhode: interrupted at t = ")
    assert said.endswith("run.zarr holds them; run the same command with --resume to continue\n")
    with command(*line, *out, stdout=subprocess.PIPE) as child:
        text, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    assert text.endswith("written       run.zarr\n")
    run("whole.zarr", dt=1e-5, steps=6_000_000, every=10_000)
    assert_same("run.zarr", "whole.zarr")


class Killed(BaseException):
    """Stands for the death of the process: nothing is written any more."""


def replacements(monkeypatch: pytest.MonkeyPatch, allowed: int) -> list[int]:
    """From now on only so many files are put in place; the next attempt, and all later ones, are the end."""
    count, usual = [0], Path.replace

    def counted(path: Path, target: Any) -> Any:
        count[0] += 1
        if count[0] > allowed:
            raise Killed
        return usual(path, target)

    monkeypatch.setattr(Path, "replace", counted)
    return count


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_between_any_two_writes(monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
    """Whatever file is the last one that is written: the store can be read, and goes on to the same bits."""
    options = {"steps": 100, "every": 7}
    with monkeypatch.context() as patched:
        total = replacements(patched, 10**9)
        run("whole.zarr", **options)
    for allowed in range(0, total[0], stride):
        with monkeypatch.context() as patched:
            replacements(patched, allowed)
            with pytest.raises(Killed):
                run("parts.zarr", **options)
        if Path("parts.zarr").exists():
            sol = ph.load("parts.zarr")
            assert np.isfinite(sol.momentum).all()
            assert np.isfinite(sol.matrix).all()
        run("parts.zarr", **options, resume=True)
        assert_same("parts.zarr", "whole.zarr")
        atomic.remove(Path("parts.zarr"))


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_killed_before_it_could_say_that_it_is_done(monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """All rows are written, that of the last step too, which is no multiple of `every`."""

    def killed(*args: Any, **named: Any) -> None:
        raise Killed

    options = {"steps": 100, "every": 7}
    run(f"whole{suffix}", **options)
    with monkeypatch.context() as patched:
        patched.setattr(trajectory_store.Writer, "close", killed)
        with pytest.raises(Killed):
            run(f"parts{suffix}", **options)
    run(f"parts{suffix}", **options, resume=True)
    assert_same(f"parts{suffix}", f"whole{suffix}")


# --- full disks --------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_files(size: int) -> Iterator[None]:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.usefixtures("eager")
def test_room_is_made_and_the_run_goes_on() -> None:
    run("whole.zarr", steps=40_000)
    with small_files(600_000), pytest.raises(ph.StepError) as caught:
        run("parts.zarr", steps=40_000)
    assert str(caught.value).endswith("; free some disk space and continue with resume=True (--resume)")
    partial = caught.value.partial
    assert partial is not None
    assert 1 < len(partial) < 40_001
    run("parts.zarr", steps=40_000, resume=True)
    assert_same("parts.zarr", "whole.zarr")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("once", [True, False])
def test_any_write_may_find_the_disk_full(monkeypatch: pytest.MonkeyPatch, once: bool) -> None:
    """For good, or for one write only, so that the last words are written again: with what belongs to the old rows."""
    run("whole.zarr", steps=100)
    with monkeypatch.context() as patched:
        total = replacements(patched, 10**9)
        run("other.zarr", steps=100)
    usual = Path.replace
    for allowed in range(12, total[0], 7 if once else 25):
        left = [allowed]

        def full(path: Path, target: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == -1 or (left[0] < 0 and not once):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return usual(path, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", full)
            with pytest.raises((ph.StepError, ph.InputError), match=os.strerror(errno.ENOSPC)):
                run("parts.zarr", steps=100)
        if Path("parts.zarr").exists():
            assert np.isfinite(ph.load("parts.zarr").matrix).all()
        run("parts.zarr", steps=100, resume=True)
        assert_same("parts.zarr", "whole.zarr")
        atomic.remove(Path("parts.zarr"))
        assert not list(Path().glob(".*"))


def test_the_command_line_on_a_full_disk() -> None:
    code = (  # compiled before the limit, which compiled code in the cache would pass too
        "import polhode as ph; ph.solve(ph.problems.fast_top(), 'imidm', dt=0.001, steps=1)\n"
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "from polhode.cli import main; main()"
    )
    line = ("run", "fast_top", "-m", "imidm", "--dt", "0.001", "--steps", "40000", "--out", "run.zarr")
    env = os.environ | {"POLHODE_CACHE": os.environ.get("POLHODE_CACHE", "")}
    done = subprocess.run([sys.executable, "-c", code, *line], text=True, capture_output=True, env=env, check=False)
    rows = len(ph.load("run.zarr"))
    assert done.returncode == 1
    assert done.stderr.startswith("polhode: imidm stopped at step ")
    assert done.stderr.endswith(
        f": run.zarr cannot be written ({os.strerror(errno.EFBIG)}); run.zarr holds the {rows} states before it; free "
        "some disk space and run the same command with --resume to continue\n"
    )


# --- refusals ----------------------------------------------------------------------------------------


@ph.potential
def weight(R, mgl):
    return mgl * R[2][2]


def other_weight(power: int) -> Any:
    @ph.potential
    def weight(R, mgl):
        return mgl * R[2][2] ** power

    return weight


BODY = [5.0, 5.0, 1.0]
START = {"omega": [0.1, 0.2, 50.0], "attitude": [0.8, 0.6, 0.0, 0.0], "t0": 0.5}


def heavy(field: Any = None, body: Any = BODY, **start: Any) -> ph.Problem:
    return ph.Problem(ph.Body(body), field or weight(20.0), **START | start)


DIFFERENT: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "trapm"}, "method = imidm, and this run has method = trapm"),
    "dt": ({"dt": 0.02}, "dt = 0.01, and this run has dt = 0.02"),
    "dt by one bit": (
        {"dt": 0.01 + 2e-18}, "dt = 0.01, and this run has dt = 0.010000000000000002"
    ),
    "every": ({"every": 2}, "every = 1, and this run has every = 2"),
    "digits": ({"digits": 30}, "no digits, and this run has digits = 30"),
    "dt and every": ({"dt": 0.02, "every": 5}, "dt = 0.01 and every = 1, and this run has dt = 0.02 and every = 5"),
    "t0": ({"problem": heavy(t0=1.0)}, "t0 = 0.5, and this run has t0 = 1.0"),
    "body": ({"problem": heavy(body=[5.0, 5.0, 1.5], omega=None, momentum=[0.5, 1.0, 50.0])},
             "inertia[2][2] = 1.0, and this run has inertia[2][2] = 1.5"),
    "momentum": ({"problem": heavy(omega=[0.1, 0.2, 40.0])}, "momentum[2] = 50.0, and this run has momentum[2] = 40.0"),
    "attitude": ({"problem": heavy(attitude=[0.6, 0.8, 0.0, 0.0])},
                 "quaternion[0] = 0.8 and quaternion[1] = 0.6, and this run has quaternion[0] = 0.6 and "
                 "quaternion[1] = 0.8"),
    "parameter": ({"problem": heavy(weight(21.0))},
                  "field = weight(mgl=20.0), and this run has field = weight(mgl=21.0)"),
    "formula": ({"problem": heavy(other_weight(3)(20.0))},
                "one formula of the field, and this run has another formula of the field"),
    "fewer steps": ({"steps": 50}, "steps = 100 (t = 1.5), and this run has steps = 50 (t = 1)"),
    "tolerance": ({"tol": 1e-6, "method": None, "dt": None, "steps": None, "t_end": 1.5},
                  "method = imidm and dt = 0.01 and every = 1 and no tol and no t_end and no events, and this run has "
                  "no method and no dt and no every and tol = 1e-06 and t_end = 1.5 and events = 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "suffix"), [*((what, ".zarr") for what in DIFFERENT), ("dt", ".nc"), ("formula", ".nc")]
)
def test_a_different_run_is_refused_and_the_difference_named(what: str, suffix: str) -> None:
    path, (said, message) = Path(f"run{suffix}"), DIFFERENT[what]
    run(path, problem=heavy())
    before = {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    with pytest.raises(ph.InputError) as caught:
        run(path, **{"problem": heavy()} | said, resume=True)
    assert str(caught.value).startswith(f"{path} was begun with {message}; ")
    assert "\n" not in str(caught.value)
    assert {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()} == before
    assert run(path, problem=heavy(), resume=True).status == "finished"


def test_other_refusals() -> None:
    run(steps=3).save("saved.zarr")
    run("run.zarr")
    trajectory_store.export("run.zarr", "copy.zarr")
    for name in ("saved.zarr", "copy.zarr"):
        with pytest.raises(
            ph.InputError, match=rf"^{name} cannot be resumed: it does not record how its run was started"
        ):
            run(name, resume=True)
    with pytest.raises(ph.InputError, match="name the file with out"):
        run(resume=True)
    with pytest.raises(ph.InputError, match="resume or overwrite, not both"):
        run("run.zarr", resume=True, overwrite=True)
    with pytest.raises(ph.InputError, match="the folder none does not exist"):
        run("none/run.zarr", resume=True)
    stopped("open.zarr")
    with pytest.raises(ph.InputError, match=r"exists; .* or continue it with resume=True \(--resume\)$"):
        run("open.zarr")
    Path("notes.zarr").mkdir()
    with pytest.raises(ph.InputError, match=r"notes\.zarr cannot be read as a trajectory"):
        run("notes.zarr", resume=True)


@pytest.mark.parametrize("text", ["{}", "[1]", '{"step": 3, "rows": 4, "state": [["x"]]}', "__import__('os').abort()"])
def test_a_damaged_checkpoint(text: str) -> None:
    stopped("run.zarr")
    attributes = trajectory_store.read("run.zarr")[1]
    integrity.replace_attributes(Path("run.zarr"), attributes | {"checkpoint": text})
    with pytest.raises(ph.InputError, match=r"^run\.zarr is damaged: how it was begun and where it stands"):
        run("run.zarr", resume=True)


def test_files_of_early_versions_are_read() -> None:
    """They have neither units of the variables nor a checkpoint."""
    whole = run("run.zarr")
    gone = (checkpoint.RUN_SPEC, checkpoint.RUN_END, checkpoint.CHECKPOINT, checkpoint.SOFTWARE)
    attributes = trajectory_store.read("run.zarr")[1]
    integrity.replace_attributes(Path("run.zarr"), {name: attributes[name] for name in attributes if name not in gone})
    np.testing.assert_array_equal(ph.load("run.zarr").momentum, whole.momentum)
    with pytest.raises(ph.InputError, match="or by an early version"):
        run("run.zarr", resume=True)


def test_other_software_is_told_and_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped("run.zarr", 0.01, steps=50_000)
    monkeypatch.setattr(recorder, "software", lambda: "polhode 9")
    with pytest.warns(
        UserWarning, match=r"was computed by polhode .* and is resumed with polhode 9: its last bits may"
    ):
        run("run.zarr", steps=50_000, resume=True)
    said = trajectory_store.read("run.zarr")[1]["software"]
    assert said.startswith("polhode ")
    assert said.endswith(" on: polhode 9")
    assert run("run.zarr", steps=60_000, resume=True).status == "finished"  # no second warning


def test_one_run_at_a_time() -> None:
    stopped("run.zarr")
    held = atomic.locked(Path("run.zarr"))
    try:
        for options in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(ph.InputError, match=r"^run\.zarr is being written by another run; wait"):
                run("run.zarr", **options)
    finally:
        atomic.released(held)
    assert run("run.zarr", resume=True).status == "finished"


# --- to a tolerance ----------------------------------------------------------------------------------


def test_to_a_tolerance() -> None:
    """The file appears complete or not at all: to resume is to begin, or to find it complete."""
    options = {"method": None, "dt": None, "steps": None, "tol": 1e-8, "t_end": 2.0}
    first = run("run.zarr", **options, resume=True)
    before = contents("run.zarr")
    again = run("run.zarr", **options, resume=True)
    assert (again.status, len(again)) == ("finished", len(first))
    assert contents("run.zarr") == before
    for other, text in (({"tol": 1e-6}, "tol = 1e-08, and this run has tol = 1e-06"),
                        ({"t_end": 3.0}, "t_end = 2.0, and this run has t_end = 3.0")):  # fmt: skip
        with pytest.raises(ph.InputError, match=rf"^run\.zarr was begun with {text}; "):
            run("run.zarr", **options | other, resume=True)


# --- export ------------------------------------------------------------------------------------------


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


def test_text_of_numbers() -> None:
    import mpmath

    for x in (0.1, -0.0, 5e-324, 1e308, float("inf")):
        assert checkpoint.number_of(checkpoint.number_text(x), None).hex() == x.hex()
    with mpmath.workdps(60):
        numbers = [mpmath.pi, -mpmath.mpf(1) / 3, mpmath.mpf(0), mpmath.mpf(2) ** 5000, mpmath.inf]
        texts = [checkpoint.number_text(+x) for x in numbers]
        exact = [+x for x in numbers]
    assert [checkpoint.number_of(text, 60) for text in texts] == exact  # at any working precision
    json.loads(Checkpoint(1, 2, ((1.0,),)).text())
    assert dataclasses.astuple(Checkpoint.read(Checkpoint(1, 2, ((0.1,),)).text(), None)) == (1, 2, ((0.1,),))
