"""Ensemble benchmark: `ph.ensemble` against heyoka, diffrax with vmap, numbalsoda with prange, and code by hand.

    pip install "polhode[bench]"
    python benchmarks/crowd_race.py [--out benchmarks/results/crowd_race.json] [--page docs/crowd_race.md] [--quick]

10^4 and 10^5 random free bodies and asymmetric heavy tops, from arrays to the attitudes at t = 10, on all cores. Every
tool tries its settings on 2048 bodies; for each error the fastest setting that meets it is timed on large ensembles.
Tools that are not installed are skipped and named. A full run takes about five minutes, `--quick` about two.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from race import crowd_ours, crowd_report, crowds, report
from race.crowd_clock import raced, take_turns
from race.crowd_rivals import CORES, RIVALS
from race.peak import peak

from polhode.analysis import bench

NUMBERS = (10_000, 100_000)


def all_raced(crowd: Any, numbers: tuple[int, ...], names: list[str], quick: bool, quantile: float) -> dict[str, Any]:
    """Run every tool on one ensemble, then the best settings of all alternately; failures are reported."""
    found, able = {}, {}
    for name in ("polhode", *names):
        began = time.perf_counter()
        try:
            runners = crowd_ours.runners(crowd, quick=quick) if name == "polhode" else RIVALS[name](crowd, quick)
            found[name] = raced(crowd, numbers, runners, quantile)
            able[name] = runners
        except Exception as fault:  # the others continue; the report has the reason
            if name == "polhode":
                raise
            found[name] = {"failed": f"{type(fault).__name__}: {fault}"[:500], "best": []}
        best = {f"{r['target']:.0e}": round(r["run"]["nanoseconds"]) for r in found[name]["best"] if r["run"]}
        outcome = found[name].get("failed") or f"ns per body {best}"
        print(f"  {name:14s} {outcome}, {time.perf_counter() - began:.0f} s", flush=True)
    take_turns(crowd, able, found)
    return found


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced by the measured ones")
    parser.add_argument("--quick", action="store_true", help="10^4 bodies and one method of each, as a trial")
    parser.add_argument("--only", nargs="*", help=f"rivals to run against (all): {', '.join(RIVALS)}")
    parser.add_argument("--quantile", type=float, default=crowds.QUANTILE, help="quantile of the errors; 0.5: median")
    arguments = parser.parse_args()
    began = time.perf_counter()
    numbers = NUMBERS[:1] if arguments.quick else NUMBERS
    names = [name for name in RIVALS if arguments.only is None or name in arguments.only]
    most = peak()
    print(f"{CORES} cores, {most / 1e9:.1f} Gflop/s in double precision (fused multiply-adds in lanes)", flush=True)
    found: dict[str, Any] = {}
    for make in (crowds.free_bodies, crowds.heavy_tops):
        crowd = make(max(numbers))
        print(f"{crowd.name}, to t = {crowds.END:g}", flush=True)
        found[crowd.name] = all_raced(crowd, numbers, names, arguments.quick, arguments.quantile)
    most = max(most, peak())
    parts = crowd_report.parts(found, names, most, CORES, arguments.quantile)
    print("\n\n".join(parts.values()))
    print(f"{time.perf_counter() - began:.0f} s")
    if arguments.out:
        heads = {
            "quick": arguments.quick, "machine": bench.machine(), "cores": CORES, "peak_flops": most, "end": crowds.END,
            "quantile": arguments.quantile, "sample": crowds.SAMPLE,
        }  # fmt: skip
        report.write(heads | {"crowds": found}, arguments.out)
    if arguments.page:
        report.into_page(arguments.page, parts)


if __name__ == "__main__":
    main()
