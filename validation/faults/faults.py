"""Kill a process, or fail a call, at every call that changes a file; then load, go on, and compare bit by bit.

A shim in C (`shim.c`, compiled here with cc, loaded with LD_PRELOAD) counts the calls that change a file: open with
O_CREAT or O_TRUNC, write, rename, unlink, mkdir, rmdir, fsync, truncate. For every N the same job is begun in a child
process, which is killed before call N (`kill`), killed when half of a write is done (`half`), or whose call N fails
with an error (EIO, ENOSPC, EROFS), once or from then on. Then

- what is there must load: rows that are a part of those of the undisturbed run, or bodies that are marked as done;
- a child that was not killed must have raised InputError or StepError, or have succeeded;
- the same call with resume=True must lead to a file like that of the undisturbed run: every array bit by bit, every
  attribute but `seconds` and the digest that covers it, and nothing else in the folder.

From the root of the repository, for all jobs and ways, or some of them, every call or each STRIDE-th:

    python validation/faults/faults.py [--jobs zarr,nc] [--ways kill,once:EIO] [--stride 7]

Printed on 2 cores with Python 3.11, with a part of the calls:

    --jobs zarr,memory,digits --stride 29, all seven ways: 343 faults, 0 bad (447, 447 and 471 calls a job)
    the other ten jobs, --ways kill,half,once:EIO,ever:ENOSPC --stride 37: 268 faults, 0 bad (73 to 677 calls a job)

A run with every call takes some hours.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WAYS = ("kill", "half", "once:EIO", "once:ENOSPC", "ever:ENOSPC", "ever:EIO", "ever:EROFS")
MODES = {"count": 0, "kill": 1, "half": 2, "once": 3, "ever": 4}
GOOD, REFUSED, RAW = 0, 3, 4


def with_shim() -> None:
    """Start again with the shim loaded."""
    built = Path(tempfile.mkdtemp()) / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, HERE / "shim.c", "-ldl"], check=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"LD_PRELOAD": str(built)})


class Shim:
    """The counter in the shim."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self.arm, self.disarm, self.calls = library.fault_arm, library.fault_disarm, library.fault_calls
        self.arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
        self.calls.restype = ctypes.c_long


def jobs(source: Path) -> dict[str, tuple[str, Callable[[Path], Any]]]:
    """What is done: a suffix, and a function of the path that begins a job and goes on with it.

    The job "later" begins with a file that is there.
    """
    import numpy as np

    import polhode as ph
    from polhode.results import recorder
    from polhode.results.store import trajectory_store

    top, draw = ph.problems.fast_top(), np.random.default_rng(1)
    moments, momenta = np.array([1.5, 2.0, 2.5]) * draw.uniform(0.9, 1.1, (200, 3)), draw.normal(size=(200, 3))
    saved = source / "source.zarr"
    ph.solve(top, "imidm", dt=1e-4, steps=5000, progress=False, out=saved)
    in_memory = ph.solve(top, "imidm", dt=1e-4, steps=5000, progress=False)
    crowd = source / "crowd.zarr"

    def solve(method: str, often: bool, **said: Any) -> Callable[[Path], Any]:
        def go(out: Path) -> Any:
            recorder.FLUSH_SECONDS = 0.0 if often else 1.0
            return ph.solve(top, method, out=out, resume=True, progress=False, **said)

        return go

    def to_tolerance(out: Path) -> Any:
        return ph.solve(ph.problems.soft_wall(), tol=1e-8, out=out, resume=True, progress=False)

    def ensemble(out: Path, **said: Any) -> Any:
        how = {"dt": 0.05, "steps": 40, "unit": 64, "progress": False, "resume": True} | said
        return ph.ensemble(moments, None, momenta, "dmv10", out=out, **how)

    def later(out: Path) -> Any:
        """A run that was complete and goes on to a later end."""
        return ph.solve(top, "imidm", dt=1e-4, steps=8000, out=out, resume=True, progress=False)

    ensemble(crowd, every=10)
    return {
        "zarr": (".zarr", solve("imidm", True, dt=1e-4, steps=20000, every=7)),
        "memory": (".zarr", solve("abm4", True, dt=1e-4, steps=15000, every=5)),
        "digits": (".zarr", solve("imidm", True, dt=1e-3, steps=12, every=3, digits=20)),
        "nc": (".nc", solve("imidm", False, dt=1e-4, steps=20000, every=7)),
        "later": (".zarr", later),
        "tol": (".zarr", to_tolerance),
        "tol nc": (".nc", to_tolerance),
        "ensemble": (".zarr", lambda out: ensemble(out, every=10)),
        "statistics": (".zarr", lambda out: ensemble(out, statistics=["energy", "omega"])),
        "save zarr": (".zarr", lambda out: in_memory.save(out, overwrite=True)),
        "save nc": (".nc", lambda out: in_memory.save(out, overwrite=True)),
        "export nc": (".nc", lambda out: trajectory_store.export(saved, out, overwrite=True)),
        "export crowd": (".nc", lambda out: trajectory_store.export(crowd, out, overwrite=True)),
    }


def contents(path: Path) -> Any:
    """Every array of a file as bytes, and every attribute but those of the wall clock."""
    import xarray

    opened = xarray.open_zarr(path, chunks=None) if path.suffix == ".zarr" else xarray.open_dataset(path)
    with opened as data:
        arrays = {str(n): (a.dims, a.values.tobytes() if a.dtype.kind in "fiu" else a.values.tolist())
                  for n, a in data.variables.items()}  # fmt: skip
        attributes = {k: str(v.tolist() if hasattr(v, "tolist") else v) for k, v in data.attrs.items()}
    return arrays, {k: v for k, v in attributes.items() if k not in ("seconds", "digest")}


def is_part(path: Path, whole: Any) -> str:
    """What is wrong with a file that a disturbed job left; nothing if it holds a part of the whole."""
    import numpy as np

    import polhode as ph

    found = ph.load(path)
    if hasattr(found, "failed"):
        done = np.asarray(found.failed) != -2
        pairs = [(getattr(found, n)[:, done], getattr(whole, n)[:, done]) for n in ("quaternion", "momentum")]
    else:
        names = ("t", "quaternion", "momentum", "energy")
        pairs = [(getattr(found, n), getattr(whole, n)[: len(found)]) for n in names]
    return "" if all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs) else "holds other numbers"


class Trial:
    """One job, disturbed in one way at one call after another."""

    def __init__(self, shim: Shim, folder: Path, name: str, suffix: str, go: Callable[[Path], Any]) -> None:
        import polhode as ph

        self.shim, self.folder, self.name, self.go = shim, folder, name, go
        self.out, reference = folder / f"x{suffix}", folder.parent / f"reference{suffix}"
        self.begin = folder.parent.parent / "source" / "source.zarr" if name == "later" else None
        if self.begin is not None:
            shutil.copytree(self.begin, reference)
        go(reference)
        self.expected, self.whole = contents(reference), ph.load(reference)

    def child(self, way: str, call: int) -> tuple[int | None, str]:
        """Run the job with a fault; returns the exit code (None: killed by the shim) and what was said."""
        import polhode as ph

        mode, _, error = way.partition(":")
        told = self.folder.parent / "told.txt"
        told.write_text("")
        process = os.fork()
        if process == 0:
            with contextlib.suppress(BaseException):
                code, text = GOOD, ""
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                self.shim.arm(call, MODES[mode], getattr(errno, error) if error else 0, str(self.folder).encode())
                try:
                    self.go(self.out)
                except BaseException as problem:
                    self.shim.disarm()
                    code = REFUSED if isinstance(problem, ph.InputError | ph.StepError) else RAW
                    text = str(problem) if code == REFUSED else traceback.format_exc()
                self.shim.disarm()
                told.write_text(f"{self.shim.calls()}\n{text}")
                os._exit(code)
            os._exit(RAW)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            return (None, "") if os.WTERMSIG(status) == 9 else (RAW, f"signal {os.WTERMSIG(status)}")
        return os.WEXITSTATUS(status), told.read_text()

    def calls(self) -> int:
        """How many calls change a file in an undisturbed run."""
        self.clear()
        code, text = self.child("count", 0)
        assert code == GOOD, text
        return int(text.split("\n")[0])

    def clear(self) -> None:
        """A folder with nothing in it but what the job begins with."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if self.begin is not None:
            shutil.copytree(self.begin, self.out)

    def faults(self, way: str, call: int) -> list[str]:
        """What went wrong with a fault at this call."""
        from polhode.results.store import trajectory_store

        self.clear()
        code, text = self.child(way, call)
        found = [f"raw error: {text[-300:]}"] if code == RAW else []
        there = trajectory_store.existing(self.out)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                if there is not None and (wrong := is_part(there, self.whole)):
                    found.append(f"after the fault {there.name} {wrong}")
                self.go(self.out)
                if contents(self.out) != self.expected:
                    found.append("gone on with, the file is not that of the undisturbed run")
            except Exception as problem:
                found.append(f"load or resume: {type(problem).__name__} {problem}")
        left = [path.name for path in self.folder.iterdir() if path != self.out]
        left += [str(path) for path in self.out.rglob("*.partial*")] if self.out.is_dir() else []
        return [*found, *([f"left over: {left}"] if left else [])]


def main() -> None:
    """All trials, and a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", default="")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--stride", type=int, default=1)
    given = parser.parse_args()
    if "shim.so" not in os.environ.get("LD_PRELOAD", ""):
        with_shim()
    shim, total = Shim(), collections.Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        base = Path(place).resolve()
        (base / "source").mkdir()
        for name, (suffix, go) in jobs(base / "source").items():
            if given.jobs and name not in given.jobs.split(","):
                continue
            folder = base / name.replace(" ", "_") / "work"
            folder.mkdir(parents=True)
            trial = Trial(shim, folder, name, suffix, go)
            count = trial.calls()
            for way in given.ways.split(","):
                bad = 0
                for call in range(1, count + 1, given.stride):
                    if wrong := trial.faults(way, call):
                        bad += 1
                        print(f"  {name}, {way} at call {call}: {wrong}" if bad <= 5 else "", flush=True)
                    total["points"] += 1
                total["bad"] += bad
                print(f"{name:12s} {way:12s} {count:5d} calls, {bad} bad", flush=True)
    print(f"{total['points']} faults, {total['bad']} bad")
    sys.exit(bool(total["bad"]))


if __name__ == "__main__":
    main()
