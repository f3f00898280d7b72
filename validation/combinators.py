"""Verification in 50 digits of the derived declarations of every combinator over every argument it accepts.

    nice python validation/combinators.py                          depth 1, one start: once per release
    nice python validation/combinators.py --depth 2 --sample 300   a random part of combinators over combinators
    nice python validation/combinators.py --only strang,ep --starts 3

Arguments are the registered methods, the named tableaus and some numbers; a combinator must reject other arguments
with an `InputError`. Each accepted expression must pass the checks of `polhode.analysis.checks` of order,
symmetry, conservation, kind of field, structure of the momentum map and number of solves; with `--thorough`, and
for methods without inertia, all checks, those of noise in `tests/proofs` too (torque points only up to MOST_POINTS,
because that work grows with their square).
Expressions that name the same method are checked once. Short methods come first; `--minutes` ends the sweep early and
reports what was left out. The exit status is 1 if an expression fails.

Result (2 cores, Python 3.11; `--minutes 8 --jobs 1`, one start): 1090 expressions of depth 1 in 463 s of CPU,
2922 rejected, none failed; the longest, mostly of suzuki8, were left out. Earlier runs found: kicks over `imr`,
reversible() over free flows (it evaluated a torque), compositions of corrected schemes (a pair of torques was expected,
one came), yoshida4(rattle) and yoshida6(rattle), whose iteration did not end in 50 digits, and the solves of
ep(mkrk(gauss3)) and ep(nystrom4(dmv4)). With `--depth 2 --sample 120`, the 83 shortest: none failed.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import random
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import polhode as ph
from polhode.analysis import checks, measurements

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from proofs import checks as proofs

NUMBERS = ("1", "2", "3", "5", "6", "10", "12", "0", "0.5", "0.8", "1.5", "-1")
"""Arguments of combinators that take a number: orders and parameters, some of them out of range."""


MOST_POINTS = 12
"""Most torque evaluations of a method whose torque points are counted; for longer ones only solves are counted."""


LONGEST_ARGUMENT = 12
"""Most work of a step, in the units of `length`, of an expression that is used as an argument."""


class Outcome(NamedTuple):
    """Outcome of the checks of one expression."""

    expression: str
    faults: list[str]
    seconds: float


def arguments(depth: int) -> list[str]:
    """Arguments to try: plain ones, and from depth 2 the short accepted expressions of smaller depth."""
    plain = [*ph.methods, *ph.tableaus.tableaus, *NUMBERS]
    if depth == 1:
        return plain
    return [e for e in accepted(pairs(arguments(depth - 1)))[0] if length(e) <= LONGEST_ARGUMENT]


def pairs(given: list[str], combinators: list[str] | None = None) -> list[tuple[str, str]]:
    """Combinators with their arguments."""
    return [(name, argument) for name in combinators or ph.methods.combinators for argument in given]


def accepted(tried: list[tuple[str, str]], most: float = float("inf")) -> tuple[list[str], collections.Counter[str]]:
    """The accepted expressions, at most `most`, and the number of rejections of each combinator.

    Any error other than `InputError` ends the sweep.
    """
    found: dict[str, str] = {}
    refused: collections.Counter[str] = collections.Counter()
    for name, argument in tried:
        try:
            method = ph.methods[f"{name}({argument})"]
        except ph.InputError:
            refused[name] += 1
        else:
            found.setdefault(method.name, f"{name}({argument})")
        if len(found) >= most:
            break
    return list(found.values()), refused


def checks_for(method: ph.Method, thorough: bool) -> list[Any]:
    """The checks of a sweep; torque points of long compositions are not counted."""
    all_checks = proofs.checks_of(method)
    if not thorough and checks.check_order in all_checks:
        return [
            checks.check_order, checks.check_symmetric, checks.check_conserves, checks.check_needs,
            checks.check_poisson, solves,
        ]  # fmt: skip
    long = method.torque_evals > MOST_POINTS
    return [solves if long and check is checks.check_cost else check for check in all_checks]


def solves(method: ph.Method, starts: tuple[int, ...]) -> list[str]:
    """The number of implicit stages."""
    found = {measurements.implicit_stages(method, which) for which in starts}
    return [] if found == {method.solves} else [f"declared {method.solves} solves, measured {found}"]


def checked(task: tuple[str, tuple[int, ...], bool]) -> Outcome:
    """The checks of one expression; an error inside a check is a fault too."""
    expression, starts, thorough = task
    began = time.process_time()
    faults = []
    method = ph.methods[expression]
    for check in checks_for(method, thorough):
        try:
            faults += check(method, starts)
        except Exception as error:  # a sweep reports any error
            faults.append(f"{check.__name__}: {type(error).__name__}: {error}")
    return Outcome(expression, faults, time.process_time() - began)


def length(expression: str) -> int:
    """Approximate work of a step."""
    method = ph.methods[expression]
    return (1 + 5 * method.solves) + method.torque_evals


def outermost(expression: str) -> str:
    """The outermost combinator of an expression."""
    return expression.split("(")[0]


def report(outcomes: list[Outcome], refused: collections.Counter[str]) -> None:
    """A table by combinator, then the failures."""
    rows: dict[str, list[Any]] = {name: [0, 0, 0.0] for name in refused}
    for expression, faults, seconds in outcomes:
        row = rows.setdefault(outermost(expression), [0, 0, 0.0])
        row[0], row[1], row[2] = row[0] + 1, row[1] + bool(faults), row[2] + seconds
    print(f"{'combinator':22} {'checked':>8} {'failed':>7} {'refused':>8} {'CPU s':>8}")
    for name, (count, failed, seconds) in sorted(rows.items()):
        print(f"{name:22} {count:8} {failed:7} {refused[name]:8} {seconds:8.1f}")
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    print(f"{'all':22} {total[0]:8} {total[1]:7} {refused.total():8} {total[2]:8.1f}")
    for outcome in outcomes:
        for fault in outcome.faults:
            print(f"FAILED {outcome.expression}: {fault}")


def main() -> int:
    """Enumerate, check in parallel, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=1, help="nesting depth of combinators")
    parser.add_argument("--only", default="", help="comma-separated combinators (outermost); default: all")
    parser.add_argument("--starts", type=int, default=1, help="generic starts to measure on, 1 to 3")
    parser.add_argument("--sample", type=int, default=0, help="check this many random expressions; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--thorough", action="store_true", help="all checks")
    parser.add_argument("--verbose", action="store_true", help="print every expression with its CPU seconds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=0, help="stop after this many minutes; 0: no limit")
    options = parser.parse_args()
    tried = pairs(arguments(options.depth), options.only.split(",") if options.only else None)
    if options.sample:
        random.Random(options.seed).shuffle(tried)
    expressions, refused = accepted(tried, options.sample or float("inf"))
    expressions.sort(key=length)
    tasks = [(expression, checks.ALL_STARTS[: options.starts], options.thorough) for expression in expressions]
    outcomes: list[Outcome] = []
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    with multiprocessing.Pool(options.jobs) as pool:
        for outcome in pool.imap_unordered(checked, tasks):
            outcomes.append(outcome)
            if outcome.faults or options.verbose:
                print(f"{outcome.expression}: {outcome.seconds:.1f} s {outcome.faults}", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                print(f"stopped: {len(tasks) - len(outcomes)} of {len(tasks)} expressions, the longest, not checked")
                pool.terminate()
                break
    report(outcomes, refused)
    return int(any(outcome.faults for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
