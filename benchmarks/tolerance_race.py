"""Time to a final attitude error: `ph.solve` with a tolerance against heyoka, CyRK, numbalsoda, diffrax and scipy.

    pip install "polhode[bench]"
    python benchmarks/tolerance_race.py [--out benchmarks/tolerance_race.json] [--page docs/tolerance_race.md] [--quick]

Every contender runs a sequence of tolerances with a prepared, compiled call that returns only the final state. The
fastest run whose error (Frobenius norm of R - R_ref) is at most 1e-3, 1e-6, 1e-9, 1e-12 counts, best of several.
Start-up and the overhead of `ph.solve` are measured separately. Tools that are not installed are skipped and named.
A full run takes about eight minutes, `--quick` about one.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from race import cases, ours, report, startup
from race.clock import RUNGS, climb, refined
from race.contenders import OURS, RIVALS, Contender

from polhode.analysis import bench

OVERHEAD_TOLERANCE = 1e-9


def climbed(case: Any, contender: Contender, quick: bool) -> dict[str, list[dict[str, Any]]]:
    """All runs of a contender on a case."""
    began = time.perf_counter()
    ladders = contender.ladders(case)
    if quick:
        ladders = [ladders[contender.usual]]
    budget = 0.003 if quick else 0.02
    curves = {ladder.label: climb(case, ladder, budget, 1 if quick else RUNGS) for ladder in ladders}
    for _ in refined(case, ladders, curves, 0.01 if quick else 0.1):
        pass
    rungs = sum(map(len, curves.values()))
    print(f"  {contender.name:10s} {rungs:3d} runs, {time.perf_counter() - began:5.1f} s", flush=True)
    return curves


def raced(present: list[Contender], quick: bool, names: list[str] | None) -> dict[str, Any]:
    """All measurements, on all cases or on the named ones."""
    found: dict[str, Any] = {"references": {}, "overhead": {}, "curves": {}}
    for case in cases.cases():
        if names is not None and case.name not in names:
            continue
        gap = cases.check_reference(case)
        found["references"][case.name] = {"end": case.end, "source": case.source, "off_the_closed_solution": gap}
        print(f"{case.name}, to t = {case.end:g}", flush=True)
        found["curves"][case.name] = {c.name: climbed(case, c, quick) for c in (OURS, *present)}
        found["overhead"][case.name] = ours.overhead(case, OVERHEAD_TOLERANCE, 0.05 if quick else 0.5)
    return found


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file; the plot gets the same name with .png")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced by the measured ones")
    parser.add_argument("--quick", action="store_true", help="one tolerance per decade, one method of each, as a trial")
    parser.add_argument("--only", nargs="*", help="rivals to run against (all)")
    parser.add_argument("--cases", nargs="*", help="cases to run (all), by the names in the table")
    arguments = parser.parse_args()
    began = time.perf_counter()
    wanted = [c for c in RIVALS if arguments.only is None or c.name in arguments.only]
    absent = {c.name: why for c in wanted if (why := c.missing())}
    for name, why in absent.items():
        print(f"{name} does not take part: {why}", flush=True)
    present = [c for c in wanted if c.name not in absent]
    found = raced(present, arguments.quick, arguments.cases)
    print("start-up, each in a separate process", flush=True)
    found["startup"] = startup.all_of([c.name for c in (OURS, *present)][: 2 if arguments.quick else None])
    names = [c.name for c in present]
    rows = report.table(found["curves"], names)
    parts = {
        "race": report.markdown(rows, names),
        "ahead": "\n".join(f"- {line}" for line in report.sentences(rows)),
        "overhead": report.overheads(found["overhead"]),
        "startup": report.startups(found["startup"]),
    }
    print("\n\n".join(parts.values()))
    print(f"{time.perf_counter() - began:.0f} s")
    if arguments.out:
        heads = {
            "quick": arguments.quick,
            "machine": bench.machine(),
            "tools": {c.name: c.version for c in present},
            "absent": absent,
        }
        report.write(heads | {"table": rows, **found}, arguments.out)
        report.plot(found["curves"], arguments.out.with_suffix(".png"))
    if arguments.page:
        report.into_page(arguments.page, parts)


if __name__ == "__main__":
    main()
