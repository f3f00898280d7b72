"""Write files of every kind into `tests/data`: ``python -m tools.write_data_files NAME ...``.

Later versions have to read them. Without names, all files that are not there yet are written. Those of a version that
was released are never written again: they are what users have. Killed runs are killed: a process of their own ends
itself (SIGKILL) at a given write to its file, so that the file is always the same.

The calls, and what is recorded, are in `tests/data_files.py`. Each file, or folder, is packed into an archive.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import data_files as files  # noqa: E402 - found in the folder of tests
import polhode as ph  # noqa: E402


def main(names: list[str]) -> None:
    """Write these files, or all that are missing."""
    if names[:1] == ["--write"]:  # in a process of its own, in the folder of the file
        write(names[1])
        return
    kept = json.loads(files.RECORDS.read_text("utf-8")) if files.RECORDS.exists() else {}
    files.FOLDER.mkdir(exist_ok=True)
    for name in names or [name for name in every() if name not in kept]:
        with tempfile.TemporaryDirectory() as folder:
            for file, text in files.INPUTS.items():
                Path(folder, file).write_text(text, "utf-8")
            ended = subprocess.run(
                [sys.executable, __file__, "--write", name],
                cwd=folder,
                check=False,
                env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            ).returncode
            killed = name.startswith("killed")
            if ended != (-signal.SIGKILL if killed else 0):
                print(f"{name}: the process ended with {ended}")
                continue
            made = Path(folder, files.file_of(name))
            pack(made, files.FOLDER / f"{name}.tar.xz")
            kept[name] = {"version": ph.__version__, **files.record(ph.load(made))}
        print(name, (files.FOLDER / f"{name}.tar.xz").stat().st_size, kept[name]["status"], kept[name]["t"][0])
        files.RECORDS.write_text(lines(kept), "utf-8")


def lines(kept: dict[str, Any]) -> str:
    """The records as JSON, one entry in a line."""
    texts = []
    for name in sorted(kept):
        entries = (f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in kept[name].items())
        texts.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(entries) + "\n  }")
    return "{\n" + ",\n".join(texts) + "\n}\n"


def every() -> list[str]:
    """The names of all files."""
    tables = (
        files.RUNS, files.SAVED, files.KILLED, files.CROWDS, files.SAVED_CROWDS, files.KILLED_CROWDS,
        files.KILLED_UNITS, files.COMMANDS, files.KILLED_COMMANDS,
    )  # fmt: skip
    return [name for table in tables for name in table]


def pack(made: Path, archive: Path) -> None:
    """Pack a file or folder, without times and owners."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as packed:
        packed.add(made, made.name, filter=plain)
    archive.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))


# --- writing, in a process of its own ---------------------------------------------------------------


def write(name: str) -> None:
    """Write a file into this folder; the process may be killed on the way."""
    warnings.simplefilter("ignore")
    with contextlib.suppress(ph.StepError):
        if name in files.RUNS:
            files.solved(files.RUNS[name], out=name)
        elif name in files.SAVED:
            files.solved(files.SAVED[name]).save(name)
        elif name in files.KILLED:
            number, given = files.KILLED[name]
            die_at(number)
            files.solved(given, out=name, resume=True)
        elif name in files.CROWDS:
            files.crowd(files.CROWDS[name], out=name, unit=files.UNIT)
        elif name in files.SAVED_CROWDS:
            files.crowd(files.CROWDS[files.SAVED_CROWDS[name]]).save(name)
        elif name in files.KILLED_CROWDS:
            die_at(3)
            files.crowd(files.CROWDS[files.KILLED_CROWDS[name]], out=name, unit=files.UNIT, resume=True)
        elif name in files.KILLED_UNITS:
            die_at(2, slices=True)
            files.crowd(files.CROWDS[files.KILLED_UNITS[name]], out=name, resume=True)
        else:
            number, line = files.KILLED_COMMANDS.get(name) or (0, files.COMMANDS[name])
            if number:
                die_at(number)
            run_command(*line, "--out", name, "--resume")


def run_command(*line: str) -> None:
    """Run a command."""
    from polhode.cli import main as command

    sys.argv = ["polhode", *line]
    command()


def die_at(number: int, slices: bool = False) -> None:
    """Make this process kill itself: after this write of rows or of a checkpoint, or before this unit of an ensemble.

    With `slices`, a checkpoint within a unit is written after every few steps.
    """
    from polhode.compile.batch import fixed_step as lanes
    from polhode.results import recorder
    from polhode.run import fixed_step, journal
    from polhode.run.ensemble import estimate, shard_checkpoint, shards, store

    written = []

    def dying(of: Any, name: str, before: bool) -> None:
        usual: Callable[..., Any] = getattr(of, name)

        def counted(*arguments: Any) -> None:
            written.append(name)
            last = len(written) == number
            if not (last and before):
                usual(*arguments)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(of, name, counted)

    dying(recorder.Disk, "_flush", before=False)
    dying(journal.Journal, "flush", before=False)
    dying(shard_checkpoint, "save", before=False)
    dying(store, "write", before=True)
    journal.FLUSH_SECONDS = recorder.FLUSH_SECONDS = fixed_step.CHUNK_SECONDS = 0.0
    shards.cores, estimate.seconds_of = lambda: 1, lambda *_: 0.0  # the estimate of a sweep writes stores too
    if slices:
        lanes.QUOTA, shard_checkpoint.SECONDS = 16, -1.0


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(sys.argv[1:])
