"""Write `tests/slow.txt`, the list of tests that only `make test-all` runs, from measured times.

    POLHODE_CACHE=$(mktemp -d) pytest -n 2 --durations=0 -m "" > times.txt
    python tools/slow_tests.py times.txt

A fast suite is run often. Each file of tests has a share of the time in it; its cheapest tests fill the share, and at
least one test stays. Times are those of a machine that compiles every program, and a program is counted in the test
that needs it first. Tests in the list that the report does not name stay in it, so that a report of the fast tests
alone adds those that have become slow.
"""

from __future__ import annotations

import collections
import re
import sys
from pathlib import Path

LIST = Path(__file__).parents[1] / "tests" / "slow.txt"

SHARE = 24.0
"""Seconds of a file in the fast suite."""

ESSENTIAL = {
    "tests/methods/test_declarations.py": 100.0,
    "tests/methods/test_every_lie.py": 100.0,
    "tests/run/test_junk.py": 100.0,
    "tests/run/test_ways.py": 100.0,
    "tests/surface/test_docs.py": 100.0,
}
"""Larger shares: every declaration of every method, the lies that must be caught, bad input, the comparison of all ways
of running a motion, and the code of the documents."""


def times(report: str) -> dict[str, float]:
    """Seconds of each test in a report of pytest: set-up, call and clean-up."""
    found: dict[str, float] = collections.Counter()
    for seconds, test in re.findall(r"^([\d.]+)s (?:call|setup|teardown)\s+(tests/\S.*)$", report, re.MULTILINE):
        found[test.rstrip()] += float(seconds)
    return dict(found)


def slow(seconds: dict[str, float]) -> list[str]:
    """The tests beyond the share of their file."""
    files = collections.defaultdict(list)
    for test, time in seconds.items():
        files[test.split("::")[0]].append((time, test))
    found = []
    for file, tests in files.items():
        spent = 0.0
        for time, test in sorted(tests):
            if spent and spent + time > ESSENTIAL.get(file, SHARE):
                found.append(test)
            else:
                spent += time
    return found


if __name__ == "__main__":
    seconds = times(Path(sys.argv[1]).read_text(encoding="utf-8"))
    unnamed = set(LIST.read_text(encoding="utf-8").splitlines()) - set(seconds)
    listed = sorted({*slow(seconds), *unnamed})
    LIST.write_text("".join(f"{test}\n" for test in listed), encoding="utf-8")
    print(f"{len(listed)} tests in {LIST.name}")
