"""Runs in files that are killed, or find the disk full, and go on: to the bits of an uninterrupted run."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.results import recorder
from polhode.results.store import atomic, trajectory_store
from stopped_runs import KINDS, assert_same, command, run
from waiting import PATIENCE, started

pytestmark = [pytest.mark.xdist_group("resume"), pytest.mark.usefixtures("in_a_folder")]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk of steps is written at once."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)


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
