"""Compute the reference solutions of the named problems: ``python -m tools.write_references``.

Each is a Taylor series solution (`reference.solution`) at the problem's end time, written to ``references.json``
in decimal. The numbers depend only on the problems, so a second run writes the same file.
"""

from __future__ import annotations

import json
import time
from importlib import resources
from pathlib import Path
from typing import Any

import mpmath

from polhode.analysis.reference import solution
from polhode.physics import library
from polhode.taylor.interpreter import GUARD

DIGITS = 34
SOURCE = "Taylor series in {digits} digits, the problem's floats taken as exact; error: against halved steps"


def decimal(value: Any, digits: int) -> str:
    """A number in decimal with this many significant digits, including trailing zeros."""
    return str(mpmath.nstr(value, digits, strip_zeros=False, min_fixed=-mpmath.inf, max_fixed=mpmath.inf))


def entry(name: str, t: float | None = None, digits: int = DIGITS) -> dict[str, Any]:
    """The entry of a problem: its state at t (default: its end time) and the error of that state.

    The error is the difference between the two runs, but at least half a unit of the last written digit.
    """
    problem = library.get(name)
    end = problem.t_end if t is None else t
    assert end is not None
    with mpmath.workdps(digits + GUARD):
        q, m, error = solution(problem, end, digits)
        rounding = max(10.0 ** (int(mpmath.floor(mpmath.log10(abs(x)))) + 1 - digits) / 2 for x in (*q, *m) if x)
        return {
            "t": end,
            "quaternion": [decimal(x, digits) for x in q],
            "momentum": [decimal(x, digits) for x in m],
            "error": float(f"{max(error, rounding):.1e}"),
            "source": SOURCE.format(digits=digits),
        }


def main() -> None:
    """Compute all of them and write the file."""
    made = {}
    for name in library.names():
        began = time.perf_counter()
        made[name] = entry(name)
        print(f"{name:12s} t = {made[name]['t']:g}  error {made[name]['error']}  {time.perf_counter() - began:.0f} s")
    path = Path(str(resources.files("polhode.physics").joinpath("references.json")))
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.name}: {', '.join(made)}")


if __name__ == "__main__":
    main()
