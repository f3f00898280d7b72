"""Mutation testing: each of about eighty small errors in the source must be detected by its named tests.

    python validation/mutations.py --all -j 2        every mutation, two at a time
    python validation/mutations.py --only cot-tail   one of them
    python validation/mutations.py --list            list them

A copy of src/ in a temporary folder gets one mutation of `mutation_list.py`, and the tests named with it run on the
copy. A mutation is killed if they fail, and survives if they pass. A text that is not found exactly once, tests that
cannot be collected, and tests that fail without the mutation are errors, not kills. Exit status: 0 if all are killed.

Result: 79 mutations, 75 killed, 3 survived, 1 error (an empty selection of tests), 1315 s without the baseline, three
at a time on 2 busy cores, Python 3.11. The four were repaired as described in docs/testing.md, and then killed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600
"""Seconds after which an unfinished test counts as failed."""

KILLED, SURVIVED, ERROR = "killed", "survived", "ERROR"


def copied(folder: Path) -> Path:
    """Copy the source to a folder."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "src"


def mutate(source: Path, mutation: Mutation) -> str:
    """Apply a mutation; return an error message, or an empty string."""
    path = source / "polhode" / mutation.file
    if not path.exists():
        return f"there is no {mutation.file}"
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutation.old)) != 1:
        return f"{mutation.old!r} occurs {count} times in {mutation.file}"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return ""


def tested(source: Path, tests: str, chosen: str) -> tuple[int, str]:
    """Exit status of pytest on a copy of the source (124 after the limit), and the end of its output."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        str(next((ROOT / "tests").rglob(tests))),
    ]
    command += ["-k", chosen] if chosen else []
    environment = os.environ | {"PYTHONPATH": str(source), "POLHODE_CACHE": str(source.parent / "cache")}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, "did not end"
    return done.returncode, done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-200:]


def judged(mutation: Mutation) -> tuple[str, str]:
    """Outcome of a mutation, and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        source = copied(Path(folder))
        if fault := mutate(source, mutation):
            return ERROR, fault
        status, said = tested(source, mutation.tests, mutation.chosen)
    if status in (1, 124):
        return KILLED, said
    return (SURVIVED, said) if status == 0 else (ERROR, f"pytest ended with {status}: {said}")


def healthy(selection: tuple[str, str]) -> str:
    """Run the tests without a mutation; return their output if they fail."""
    with tempfile.TemporaryDirectory() as folder:
        status, said = tested(copied(Path(folder)), *selection)
    return "" if status == 0 else f"{' -k '.join(selection)}: {said}"


def selections(chosen: list[Mutation]) -> list[tuple[str, str]]:
    """All tests of some mutations, file by file."""
    files: dict[str, list[str]] = {}
    for mutation in chosen:
        files.setdefault(mutation.tests, []).append(mutation.chosen)
    return [(name, " or ".join(f"({k})" for k in dict.fromkeys(ks)) if all(ks) else "") for name, ks in files.items()]


def main() -> int:
    """Read the command line, run, print a line for each mutation and the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every mutation")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this one (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print names and files only")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a mutation first")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="number of parallel runs")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{m.name:26} {m.file}" for m in MUTATIONS))
        return 0
    known = {m.name for m in MUTATIONS}
    if len(known) < len(MUTATIONS) or (unknown := set(arguments.only) - known):
        parser.error(f"no mutation {', '.join(unknown)}" if arguments.only else "two mutations have one name")
    chosen = [m for m in MUTATIONS if arguments.all or m.name in arguments.only]
    if not chosen:
        parser.error("use --all, --only NAME, or --list")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        ill = [said for said in pool.map(healthy, [] if arguments.no_baseline else selections(chosen)) if said]
        print(*(f"{ERROR} without a mutation: {said}" for said in ill), sep="\n", end="\n" if ill else "")
        counts = {KILLED: 0, SURVIVED: 0, ERROR: 0}
        for mutation, (word, why) in zip(chosen, pool.map(judged, chosen), strict=True):
            counts[word] += 1
            print(f"{word:9} {mutation.name:26} {why if word != KILLED else ''}".rstrip(), flush=True)
    score = ", ".join(f"{n} {word}" for word, n in counts.items())
    print(f"{len(chosen)} mutations: {score}; {time.monotonic() - began:.0f} s")
    return int(bool(ill) or counts[KILLED] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
