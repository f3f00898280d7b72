"""The walk of one call to a tolerance: functions and files of the package that it passes through.

    python benchmarks/walk.py

All code is compiled, and the formula was run before. Python functions count, not the compiled run nor other packages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from race.report import markdown

import polhode as ph

PACKAGE = str(Path(ph.__file__).parent)
END, TOLERANCE = 1.0, 1e-8
WARM = 4
"""Runs before the one that counts."""


def walk(call: Callable[[], Any]) -> tuple[int, int, int, int]:
    """Return the numbers of functions, files, changes from one file to another, and calls."""
    walked: list[Any] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            walked.append(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    files = [code.co_filename for code in walked]
    changes = sum(one != other for one, other in zip([None, *files], files, strict=False))
    return len(set(walked)), len(set(files)), changes, len(walked)


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls, by name."""
    new = ph.problems.heavy_top().starting(momentum=[0.1, 0.2, 1.0])
    prepared = {name: ph.propagator(new, **{name: TOLERANCE}) for name in ("tol", "step_tol")}
    found: dict[str, Callable[[], Any]] = {
        "a named problem and `ph.solve(problem, tol=...)`": lambda: ph.solve(
            ph.problems.heavy_top(), tol=TOLERANCE, t_end=END
        )
    }
    for name, fly in prepared.items():
        found[f"`ph.solve(problem, {name}=...)`"] = lambda name=name: ph.solve(new, t_end=END, **{name: TOLERANCE})
        found[f"`ph.propagator(problem, {name}=...)(...)`"] = lambda fly=fly: fly(new.quaternion, new.momentum, END)
    return found


def main() -> None:
    """Measure and print."""
    rows = []
    for name, call in calls().items():
        for _ in range(WARM):
            call()
        rows.append([name, *map(str, walk(call))])
    print(markdown(["call", "functions", "files", "changes of file", "calls"], rows))


if __name__ == "__main__":
    main()
