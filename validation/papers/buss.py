"""S. R. Buss, Accurate simulation of rigid body rotation (talk, 2011): the tables of steps and of relative cost."""

from __future__ import annotations

import itertools
import math
from typing import Any

from polhode.analysis import bench
from polhode.methods import methods

from .buss_table import DEGREES, MOST, ROWS, THRESHOLD, displacement, least_steps
from .curves import listed, named
from .panels import bars
from .results import FAILS, HOLDS, IN_PART, Outcome, Table, Verdict, Watch, passed, result

CITE = "buss2011"
FINE = 16384
"""Number of steps for the comparison of errors."""

UNIT = "3rd order"
"""The row whose cost with EP is 1.00 in the talk."""

STEPS_HOW = (
    "A solid prism with sides 1, 4, 18, no torque, 45.2 turns. The talk states neither the initial rotation axis nor "
    "the error measure nor which side each axis label means, so its numbers cannot be reproduced exactly. Here "
    "the momentum is at 70 degrees to the long axis, the error is the root mean square displacement of the "
    f"body's points at the end, below {THRESHOLD:g} of sqrt(J_max/M), and axis 2 is the long one. "
    "EP is the closed form of energy preservation on the polhode."
)


STEPS_COLUMNS = ("row", "N printed", "N measured", "mean angle printed [deg]", "measured")


def _angle(n: int | None) -> float | str:
    """Degrees of rotation per step, of 16276 in total."""
    return "failed" if n is None else round(DEGREES / n, 2)


def _better(found: dict[str, tuple[int | None, int | None]]) -> list[Verdict]:
    """Compare each method of part I with the one before: at the talk's accuracy, and with many steps."""
    order = ("1st order", "2nd order", "augmented 2nd (2+)", "3rd order", "4th order")
    says = ("performs substantially better than", "performs substantially better than", "performs better than")
    methods_of = {row.label: row.method for row in ROWS}
    made = []
    for i, (worse, better) in enumerate(itertools.pairwise(order)):
        before, after = (found[label][0] or MOST for label in (worse, better))
        large, small = (displacement(methods_of[label], FINE) for label in (worse, better))
        factor = 1.3 if i < 2 else 1
        fewer, closer = after * factor < before, small * factor < large
        made.append(
            Verdict(
                "part I", f"{better} {says[min(i, 2)]} {worse}",
                f"{_more(found[better][0], MOST)} steps against {_more(found[worse][0], MOST)} to the accuracy of the "
                f"talk; error with {FINE} steps: {small:.2g} against {large:.2g}",
                HOLDS if fewer and closer else IN_PART if fewer or closer else FAILS,
            )
        )  # fmt: skip
    return made


def _more(n: int | None, most: int) -> int | str:
    return f"> {most}" if n is None else n


def _counts(watch: Watch) -> dict[str, tuple[int | None, int | None]]:
    found = {}
    for row in ROWS:
        watch(row.label)
        found[row.label] = (least_steps(row.method), least_steps(f"ep({row.method})"))
    return found


def _gain(pair: tuple[int | None, int | None]) -> float:
    plain, kept = pair
    return (MOST if plain is None else plain) / kept if kept else math.nan


@result("buss-steps", cite=CITE, where="tables of steps", title="steps to a given accuracy, prism")
def steps(watch: Watch) -> Outcome:
    """N of every row, without and with energy preservation."""
    found = _counts(watch)
    rows: list[list[Any]] = []
    logs = []
    for row in ROWS:
        for kept in (0, 1):
            printed, ours = row.steps[kept], found[row.label][kept]
            if printed and ours:
                logs.append(math.log(ours / printed))
            given = not (kept and row.label == "false 3rd")
            text = _more(printed, 20480) if given else "not given"
            angles = [row.angles[kept] or ("failed" if given else "not given"), _angle(ours)]
            rows.append([row.label + (" EP" if kept else ""), text, _more(ours, MOST), *angles])
    spread = math.sqrt(sum(x * x for x in logs) / len(logs))
    gains = {label: _gain(pair) for label, pair in found.items()}
    turns = [n * angle / 360 for row in ROWS for n, angle in zip(row.steps, row.angles, strict=True) if n and angle]
    best = min((n, label) for label, pair in found.items() for n in pair if n)
    mry = found["MRY 2nd order 1-2-3"][0], found["MRY 2nd order 2-3-1"][0]
    others = _others(watch)
    verdicts = [
        Verdict(
            "tables of steps", "the numbers of steps", f"ln N differs by {spread:.3f} (rms) from the printed rows",
            IN_PART if spread < 0.3 else passed(spread < 0.01),
        ),
        *_better(found),
        Verdict(
            "tables of steps", "N times the mean angle is the rotation in all, about 45 turns",
            f"printed: {min(turns):.2f} to {max(turns):.2f} turns", passed(all(44.5 < x < 45.5 for x in turns)),
        ),
        Verdict(
            "part IV", "energy preservation needs several times fewer steps for the 3rd order",
            f"gain of EP: {listed(list(gains.items()))}", passed(gains["3rd order"] > 3),
        ),
        Verdict(
            "part I", "the false third order is slightly worse than the second",
            f"{found['false 3rd'][0]} steps against {found['2nd order'][0]}",
            passed(1 < (found["false 3rd"][0] or MOST) / (found["2nd order"][0] or MOST) < 1.5),
        ),
        Verdict(
            "comparisons", "symplectic algorithms are very sensitive to the order of the axes",
            f"2nd order: {mry[0]} steps with 1-2-3, {mry[1]} with 2-3-1",
            passed(bool(mry[0] and mry[1] and mry[0] > 5 * mry[1])),
        ),
        Verdict(
            "comparisons", "symplectic algorithms are helped considerably by energy preservation",
            ", ".join(f"{label} {gain:.2g} times fewer" for label, gain in gains.items() if "MRY" in label),
            passed(all(gain > 1.2 for label, gain in gains.items() if "MRY" in label)),
        ),
        Verdict(
            "conclusions", "the 4th order symplectic algorithm 2-3-1 with EP performs best",
            f"{best[1]} with {best[0]} steps",
            passed(best[1] == "MRY 4th order 2-3-1"),
        ),
        *others,
    ]  # fmt: skip
    curves: dict[str, Any] = {
        "without EP": [found[r.label][0] for r in ROWS],
        "with EP": [found[r.label][1] for r in ROWS],
        "without EP, printed": [r.steps[0] for r in ROWS],
        "with EP, printed": [r.steps[1] for r in ROWS],
    }
    picture = bars([r.label for r in ROWS], curves, "steps $N$", "Steps to the accuracy of the talk, prism", log=True)
    return Outcome(STEPS_HOW, [("steps", picture)], [Table("steps", STEPS_COLUMNS, rows, True)], verdicts)


def _others(watch: Watch) -> list[Verdict]:
    """The statements on Simo and Wong, Adams, and Runge and Kutta; the talk does not specify the variants."""
    watch("other methods")
    names = ("buss1", "buss2", "rk4_naive", "rk4_mk", "rk4_quat", "abm4_naive", "abm4", "nmb", "swc1")
    at = {name: displacement(name, FINE) for name in names}

    def like(name: str, other: str) -> bool:
        return 1 / 4 < at[name] / at[other] < 4

    orders = f"1st order {at['buss1']:.3g}, 2nd order {at['buss2']:.3g}"
    text = f"error with {FINE} steps: {listed(list(at.items()))}"
    return [
        Verdict(
            "comparisons", "traditional 4th order Runge-Kutta is like the 2nd order update, slightly better",
            f"{text}; true if the mean angular velocity is fed to one rotation (rk4_naive), not otherwise",
            IN_PART if like("rk4_naive", "buss2") and not like("rk4_mk", "buss2") else passed(like("rk4_mk", "buss2")),
        ),
        Verdict(
            "comparisons", "Adams-Bashforth-Moulton is similar to the 1st order update",
            f"abm4_naive {at['abm4_naive']:.3g}, abm4 {at['abm4']:.3g}; {orders}",
            passed(like("abm4_naive", "buss1") or like("abm4", "buss1")),
        ),
        Verdict(
            "comparisons", "Simo-Wong is similar to the 1st order update",
            f"explicit (nmb) {at['nmb']:.3g}, implicit (swc1) {at['swc1']:.3g}; {orders}",
            passed(like("nmb", "buss1") or like("swc1", "buss1")),
        ),
    ]  # fmt: skip


COST_HOW = (
    "Time of one compiled step on the prism relative to the third order with energy preservation, beside the talk's "
    "figures. Each comes from one machine; ratios depend on the machine and on how the rotation is stored."
)


ROUNDS = 5
"""Number of timings of all steps in turn; the shortest counts, because the machine may be shared."""


@result("buss-cost", cite=CITE, where="table of relative costs", title="relative cost of one step")
def costs(watch: Watch) -> Outcome:
    """Time of a step relative to that of the unit row."""
    problem = named("prism")
    assert problem.dt is not None
    priced = [row for row in ROWS if row.cost is not None]
    times = {row.label: [math.inf, math.inf] for row in priced}
    for row in ROUNDS * priced:
        watch(row.label)
        pair = (methods[row.method], methods[f"ep({row.method})"])
        found = (bench.compiled_ns(method, problem, problem.dt) for method in pair)
        times[row.label] = [min(both) for both in zip(times[row.label], found, strict=True)]
    unit = times[UNIT][1]
    rows: list[list[Any]] = []
    for row in priced:
        assert row.cost is not None
        plain, kept = (ns / unit for ns in times[row.label])
        rows.append([row.label, row.cost[0], plain, row.cost[1], kept])
    extra = {row[0]: row[4] - row[2] for row in rows}
    order = [row[2] for row in rows]
    swaps = sum(a > b for a, b in itertools.pairwise(order))
    off = [abs(math.log(measured / printed)) for row in rows for printed, measured in (row[1:3], row[3:5])]
    verdicts = [
        Verdict(
            "table of costs", "the relative costs",
            "; ".join(f"{r[0]} {r[2]:.2f} and {r[4]:.2f} (printed {r[1]:.2f} and {r[3]:.2f})" for r in rows),
            HOLDS if max(off) < 0.15 else IN_PART if max(off) < 0.7 else FAILS,
        ),
        Verdict(
            "table of costs", "the rows in order of cost", listed([(r[0], r[2]) for r in rows]),
            HOLDS if order == sorted(order) else IN_PART if swaps < 2 else FAILS,
        ),
        Verdict(
            "table of costs", "energy preservation adds about 0.46 to every row (0.36 to the symplectic 2nd order)",
            listed(list(extra.items())),
            HOLDS if all(0.3 < x < 0.6 for x in extra.values()) else IN_PART if min(extra.values()) > 0 else FAILS,
        ),
    ]  # fmt: skip
    curves: dict[str, Any] = {"without EP": [r[2] for r in rows], "with EP": [r[4] for r in rows]}
    curves |= {"without EP, printed": [r[1] for r in rows], "with EP, printed": [r[3] for r in rows]}
    picture = bars([r[0] for r in rows], curves, "cost of a step (3rd order EP = 1)", "Relative cost of one step")
    columns = ("row", "printed, without EP", "measured", "printed, with EP", "measured")
    return Outcome(COST_HOW, [("cost", picture)], [Table("cost", columns, rows, True)], verdicts)
