"""Heavy tops: `ph.ensemble` with `step_tol` against code written by hand for them, on all cores and on a GPU.

    python benchmarks/anchors_race.py [--out benchmarks/results/anchors_race.json] [--bodies 131072]
    python benchmarks/anchors_race.py --cuda [--out benchmarks/results/anchors_card.json] [--bodies 1048576]

The hand-written codes (`anchors/source.py`) are DOP853, Verner's pair 8(7) and Dormand and Prince's 5(4): C++ vectors
compiled by g++ for this processor, and in CUDA compiled by CuPy. For every error the coarsest setting of each code that
meets it is timed on the whole ensemble, in alternating rounds; the ratio is to the fastest of them. On the processor
times are those of all cores together, which other programs disturb less than the time on the clock. Ours are whole
calls from arrays to results; the hand-written code finds and leaves its numbers in its own layout. On a GPU all data
lie on the card for both, and whole calls from host memory are timed too.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from anchors import card, processor, source
from race import crowds, report
from race.crowd_rivals import CORES

import polhode as ph
from polhode.analysis import bench

TARGETS = (1e-3, 1e-6, 1e-9, 1e-12)
PER_DECADE = 32
"""Settings per decade of the tolerance."""

ROUNDS, SLOW = 7, 4.0
"""Rounds of timing, and the ratio of times from which a code is not timed again."""

OURS = ("polhode", "whole call")
"""Names of our code, which is timed in every round."""

GOALS = {False: (1.0, 1.3, 1.6, 2.5), True: (1.2, 1.2, 1.2, 1.2)}
"""Ratios aimed at, on the processor and on a GPU."""

Call = Callable[[float], Any]


def settings(call: Call, error_of: Callable[[Any], float]) -> dict[float, tuple[float, float]]:
    """Return the coarsest setting, and its error, for every target that is reached."""
    found: dict[float, tuple[float, float]] = {}
    k = PER_DECADE
    while len(found) < len(TARGETS) and k <= 15 * PER_DECADE:
        error = error_of(call(10 ** (-k / PER_DECADE)))
        for target in TARGETS:
            if target not in found and error <= target:
                found[target] = (10 ** (-k / PER_DECADE), error)
        waiting = [target for target in TARGETS if target not in found]
        far = bool(waiting) and error > 30 * waiting[0]
        k += PER_DECADE // 2 if far else 1
    return found


def quantile(crowd: crowds.Crowd, quaternions: np.ndarray) -> float:
    """Return the error that 95 % of the sampled tops do not exceed."""
    return float(np.quantile(crowd.errors(quaternions), crowds.QUANTILE, method="higher"))


def take_turns(calls: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    """Return the seconds of the fastest call of each, in alternating rounds; slow codes take part in the first only."""
    best = dict.fromkeys(calls, np.inf)
    for k in range(ROUNDS + 1):
        for name, call in calls.items():
            if name not in OURS and np.inf > best[name] > SLOW * min(best.values()):
                continue
            began = clock()
            call()
            if k:  # the first round compiles
                best[name] = min(best[name], clock() - began)
    return {name: float(seconds) for name, seconds in best.items()}


def core_seconds() -> float:
    """Return the time that the cores spent on this process, divided by their number."""
    return time.process_time() / CORES


def whole_call(crowd: crowds.Crowd, device: str) -> Call:
    """Return `ph.ensemble` as a function of the tolerance of a step."""
    given = (crowd.moments, crowd.quaternions, crowd.momenta)
    field: dict[str, Any] = {"field": crowds.weight, "params": {"mgl": crowd.mgl}}
    return lambda tol: ph.ensemble(*given, **field, step_tol=tol, t_end=crowds.END, device=device)


def raced(crowd: crowds.Crowd, on_card: bool) -> list[dict[str, Any]]:
    """Return one row for every error: settings, errors and bodies per second of all codes, and ratios."""
    small, device = crowd.first(crowds.SAMPLE), "cuda" if on_card else "cpu"
    names = [anchor.name for anchor in source.anchors()]

    def made(of: crowds.Crowd, name: str) -> Call:
        if name == "whole call":
            return whole_call(of, device)
        if name == "polhode":
            return card.ours(of) if on_card else whole_call(of, device)
        return card.prepared(of, name) if on_card else processor.prepared(of, name, CORES)

    def ends(name: str, found: Any) -> np.ndarray:
        if isinstance(found, ph.Ensemble):
            return found.quaternion[-1]
        return card.quaternions(found) if on_card else found

    chosen = {
        name: settings(made(small, name), lambda found, name=name: quantile(small, ends(name, found)))
        for name in (*names, "polhode")
    }  # fmt: skip
    rows = []
    for target, goal in zip(TARGETS, GOALS[on_card], strict=True):
        able = {name: found[target] for name, found in chosen.items() if target in found}
        if on_card:
            able["whole call"] = able["polhode"]
        large = {name: made(crowd, name) for name in able}
        calls = {name: functools.partial(large[name], able[name][0]) for name in able}
        seconds = take_turns(calls, time.perf_counter if on_card else core_seconds)
        rates = {name: len(crowd) / taken for name, taken in seconds.items()}
        strongest = max((name for name in names if name in able), key=rates.__getitem__)
        row = {"error": target, "goal": goal, "strongest": strongest, "ratio": rates["polhode"] / rates[strongest],
               "codes": {name: {"setting": able[name][0], "error": able[name][1], "bodies_per_second": rates[name]}
                         for name in able}}  # fmt: skip
        row["method"] = whole_call(small, "cpu")(able["polhode"][0]).method if not on_card else None
        if on_card:
            row["whole_calls"] = rates["whole call"] / rates["polhode"]
        rows.append(row)
        print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return a row as text."""
    rates = ", ".join(f"{name} {code['bodies_per_second']:.3g}/s" for name, code in row["codes"].items())
    whole = f", whole calls {row['whole_calls']:.2f} of the rate on the card" if "whole_calls" in row else ""
    return f"{row['error']:.0e}: {row['ratio']:.2f} times {row['strongest']} (goal {row['goal']}){whole}; {rates}"


def main() -> None:
    """Race, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--bodies", type=int, help="size of the ensemble")
    parser.add_argument("--cuda", action="store_true", help="on a GPU")
    arguments = parser.parse_args()
    number = arguments.bodies or ((1 << 20) if arguments.cuda else (1 << 17))
    crowd = crowds.heavy_tops(number)
    print(f"{number} heavy tops to t = {crowds.END:g}, {'GPU' if arguments.cuda else f'{CORES} cores'}", flush=True)
    found = {"bodies": number, "cores": CORES, "machine": bench.machine(), "rows": raced(crowd, arguments.cuda)}
    if arguments.out:
        report.write(found, arguments.out)


if __name__ == "__main__":
    main()
