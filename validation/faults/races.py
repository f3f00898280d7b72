"""Two or three processes begin, resume or overwrite one file at the same moment.

Those that are not the first must be refused with InputError; the file left must be that of one undisturbed run, bit by
bit, and nothing else may be left in the folder. For `overwrite` the processes have different steps: the file must be
that of one of them.

    python validation/faults/races.py [TRIALS [trajectory,NetCDF,ensemble]]

Printed on 2 cores with Python 3.11, 12 trials for trajectories and NetCDF, 20 for ensembles, 6 for NetCDF with
overwrite:

    trajectory begin, resume, overwrite: each 12 ran, 18 refused, 12 right
    NetCDF     begin, resume:            each 12 ran, 18 refused, 12 right
    NetCDF     overwrite:                6 ran, 9 refused, 6 right
    ensemble   begin, resume, overwrite: each 20 ran, 30 refused, 20 right
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

TOP, DRAW = ph.problems.fast_top(), np.random.default_rng(1)
MOMENTS, MOMENTA = np.array([1.5, 2.0, 2.5]) * DRAW.uniform(0.9, 1.1, (200, 3)), DRAW.normal(size=(200, 3))
DELAYS = (0, 0, 0.002, 0.02, 0.1)


def solve(out: Path, which: int, **how: Any) -> Any:
    """A run; without `overwrite` all are the same."""
    dt = 1e-4 * (1 + which) if "overwrite" in how else 1e-4
    return ph.solve(TOP, "imidm", dt=dt, steps=60_000, out=out, progress=False, **how)


def ensemble(out: Path, which: int, **how: Any) -> Any:
    """An ensemble; without `overwrite` all are the same."""
    dt = 0.05 * (1 + which) if "overwrite" in how else 0.05
    said = {"steps": 2000, "every": 100, "unit": 16, "progress": False}
    return ph.ensemble(MOMENTS, None, MOMENTA, "dmv10", dt=dt, out=out, **said, **how)


WAYS: dict[str, dict[str, bool]] = {"begin": {}, "resume": {"resume": True}, "overwrite": {"overwrite": True}}
KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "trajectory": (solve, ".zarr"), "NetCDF": (solve, ".nc"), "ensemble": (ensemble, ".zarr"),
}  # fmt: skip


def states(path: Path) -> bytes:
    """What a file holds."""
    found = ph.load(path)
    return b"".join(np.asarray(getattr(found, name)).tobytes() for name in ("t", "quaternion", "momentum"))


def child(go: Callable[..., Any], out: Path, which: int, how: dict[str, bool], start: float) -> int:
    """A process that begins at a moment; its exit code is 0 if it ran, 3 if it was refused."""
    process = os.fork()
    if process:
        return process
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    time.sleep(max(0.0, start - time.time()))
    try:
        go(out, which, **how)
        os._exit(0)
    except ph.InputError:
        os._exit(3)
    except BaseException:
        os._exit(4)


def main() -> None:
    """All kinds and ways."""
    trials, bad = int(sys.argv[1]) if len(sys.argv) > 1 else 60, 0
    with tempfile.TemporaryDirectory() as place:
        for kind in sys.argv[2].split(",") if len(sys.argv) > 2 else KINDS:
            go, suffix = KINDS[kind]
            for way, how in WAYS.items():
                folder = Path(place) / f"{kind}{way}"
                folder.mkdir()
                wanted = []
                for which in range(3 if way == "overwrite" else 1):
                    path = Path(place) / f"{kind}{way}{which}{suffix}"
                    go(path, which, **how)
                    wanted.append(states(path))
                counts, out = collections.Counter[str](), folder / f"x{suffix}"
                for trial in range(trials):
                    shutil.rmtree(folder)
                    folder.mkdir()
                    draw, start = random.Random(trial), time.time() + 0.05
                    number = 2 + trial % 2
                    children = [child(go, out, i, how, start + draw.choice(DELAYS)) for i in range(number)]
                    codes = [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children]
                    for code in codes:
                        counts[{0: "ran", 3: "refused"}.get(code, "FAILED")] += 1
                    counts["right" if states(out) in wanted else "WRONG"] += 1
                    if [p.name for p in folder.iterdir()] != [out.name]:
                        counts["LEFT OVER"] += 1
                bad += sum(n for name, n in counts.items() if name.isupper())
                print(f"{kind:10s} {way:10s} {dict(counts)}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
