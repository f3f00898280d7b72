"""Damage one file of a finished or a stopped run at random: flip a bit, cut, empty, zero, or delete it.

A file that loads must hold the same numbers and attributes; a run that goes on must lead to the same numbers; anything
else must be InputError. (A damaged unit of an ensemble is run again on resume, which is right.)

    python validation/faults/damage.py [TRIES]

Printed on 2 cores with Python 3.11 by `damage.py 25` (the last of nine lines not reached):

    load a.zarr: {'same': 68, 'refused': 57}
    resume a complete run of a.zarr: {'same': 60, 'refused': 65}
    resume a stopped run of a.zarr: {'refused': 63, 'same': 62}
    load a.nc: {'refused': 98, 'same': 2}
    resume a complete run of a.nc: {'refused': 99, 'same': 1}
    resume a stopped run of a.nc: {'refused': 91, 'same': 9}
    load c.zarr: {'refused': 59, 'same': 66}
    resume a complete run of c.zarr: {'same': 98, 'refused': 27}

"same" in a Zarr store: the descriptions beside each array are not read where the one of the root has them all.
"""

from __future__ import annotations

import collections
import contextlib
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

TOP, DRAW = ph.problems.fast_top(), np.random.default_rng(1)
MOMENTS, MOMENTA = np.array([1.5, 2.0, 2.5]) * DRAW.uniform(0.9, 1.1, (300, 3)), DRAW.normal(size=(300, 3))
TRAJECTORY = ("t", "quaternion", "matrix", "momentum", "omega", "spatial_momentum", "energy")
ENSEMBLE = ("t", "quaternion", "momentum", "moments", "failed")


class Stop(Exception):
    """Stops a run."""


def stop(done: float) -> None:
    """Stop behind the middle."""
    if done > 0.6:
        raise Stop


def solve(out: Path, **how: Any) -> Any:
    """A run of two chunks."""
    return ph.solve(TOP, "imidm", out=out, resume=True, **{"dt": 1e-4, "steps": 30_000, "progress": False} | how)


def ensemble(out: Path, **how: Any) -> Any:
    """An ensemble of five units."""
    said = {"dt": 0.05, "steps": 40, "every": 10, "unit": 64, "progress": False, "resume": True} | how
    return ph.ensemble(MOMENTS, None, MOMENTA, "dmv10", out=out, **said)


def damage(path: Path, how: str, draw: random.Random) -> None:
    """Damage one file."""
    chosen = draw.choice([p for p in sorted(path.rglob("*")) if p.is_file()] if path.is_dir() else [path])
    data = bytearray(chosen.read_bytes())
    place = draw.randrange(max(1, len(data)))
    if how == "delete":
        chosen.unlink()
        return
    if how == "flip" and data:
        data[place] ^= 1 << draw.randrange(8)
    elif how == "zero":
        data[place : place + 4096] = bytes(len(data[place : place + 4096]))
    chosen.write_bytes(data[:place] if how == "cut" else b"" if how == "empty" else data)


def verdict(act: Callable[[Path], Any], path: Path, names: tuple[str, ...], whole: Any, info: bool) -> str:
    """What a damaged file leads to."""
    try:
        found = act(path)
        same = all(getattr(found, name).tobytes() == getattr(whole, name).tobytes() for name in names)
        if same and info and getattr(found, "info", None) != getattr(whole, "info", None):
            return "WRONG ATTRIBUTES"
        return "same" if same else "WRONG NUMBERS"
    except ph.InputError:
        return "refused"
    except Exception as problem:
        return f"RAW {type(problem).__name__}".upper()


def main() -> None:
    """All kinds of files and damage."""
    warnings.simplefilter("ignore")
    tries, draw, bad = int(sys.argv[1]) if len(sys.argv) > 1 else 60, random.Random(5), 0
    with tempfile.TemporaryDirectory() as place:
        for name, go, names in (
            ("a.zarr", solve, TRAJECTORY),
            ("a.nc", solve, TRAJECTORY),
            ("c.zarr", ensemble, ENSEMBLE),
        ):
            base = Path(place) / name
            base.mkdir()
            source, path = base / name, base / f"x{Path(name).suffix}"
            go(source)
            whole = ph.load(source)
            part = base / f"part{Path(name).suffix}"
            with contextlib.suppress(Stop):
                go(part, progress=stop)
            part = part if part.exists() else part.with_name(part.name + ".partial.zarr")
            for what, begin, act in (
                ("load", source, ph.load),
                ("resume a complete run of", source, go),
                ("resume a stopped run of", part, go),
            ):
                counts = collections.Counter[str]()
                for how in ("flip", "cut", "empty", "zero", "delete"):
                    for _ in range(tries):
                        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                        shutil.copytree(begin, path) if begin.is_dir() else shutil.copy(begin, path)
                        damage(path, how, draw)
                        if not path.exists():
                            continue
                        counts[verdict(act, path, names, whole, what == "load")] += 1
                bad += sum(n for word, n in counts.items() if word.isupper())
                print(f"{what} {name}: {dict(counts)}", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
