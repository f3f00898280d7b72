"""G. Vilmart, Rigid body dynamics (2013): Figure 1, and Tables 1 and 2 checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from polhode.analysis.checks import VISIBLE, changes, measured_order, poisson_defect, symplectic_defect
from polhode.methods import Method, methods
from polhode.methods.tables.dmv_series import SERIES
from polhode.plots import TrajectoryPlots
from polhode.run.exact import exact
from polhode.run.poinsot import period
from polhode.run.solve import solve

from .curves import named
from .results import Outcome, Table, Verdict, Watch, passed, result

CITE = "vilmart2013"


@result("vilmart-fig1", cite=CITE, where="Figure 1", title="the book: paths of its principal axes")
def figure_1(watch: Watch) -> Outcome:
    """The right-hand picture: the columns of Q in the fixed frame."""
    problem = named("book")
    watch("dmv10, h = 0.01")
    sol = solve(problem, "dmv10", dt=0.01, t_end=40.0, progress=False)
    truth = exact(problem, sol.t)
    off = float(np.abs(sol.matrix - truth.matrix).max())
    moments = np.array(problem.body.moments)
    d = moments.sum() / 2 - moments
    cycle = float(period(problem))
    returned = float(np.abs(exact(problem, [cycle]).momentum[0] - problem.momentum).max())
    apart = float(np.abs(exact(problem, [cycle]).matrix[0] - np.eye(3)).max())
    verdicts = [
        Verdict(
            "Figure 1", "computed with the preprocessed DMV algorithm of order 10, h = 0.01",
            f"the same, and within {off:.1e} of the exact solution for 0 <= t <= 40", passed(off < 1e-12),
        ),
        Verdict(
            "Remark 1", "the body is nearly flat: d3 much smaller than d1 and d2",
            "d = " + ", ".join(f"{x:.4f}" for x in d), passed(bool(d[2] < d[0] / 100 and d[2] < d[1] / 100)),
        ),
        Verdict(
            "section on equations of motion", "without a potential Q(t) is not periodic although y(t) is",
            f"period of y {cycle:.6g} (y returns to {returned:.0e}); Q then differs from its start by {apart:.2g}",
            passed(returned < 1e-13 and apart > 0.01),
        ),
    ]  # fmt: skip
    rows = [[t, *np.ravel(q)] for t, q in zip(sol.t[::10].tolist(), sol.matrix[::10].tolist(), strict=True)]
    columns = ("t", *(f"Q{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3)))
    how = (
        "Columns of Q(t) on the unit sphere of the fixed frame, 0 <= t <= 40; I = (0.376, 0.627, 1.0), "
        "y(0) = (0, 0.6, -0.8)."
    )
    return Outcome(
        how, [("axes", TrajectoryPlots(sol).attitude("xyz")[0])], [Table("attitude", columns, rows)], verdicts
    )


# --- Table 1 ----------------------------------------------------------------------------------------


def _printed(i: tuple[Fraction, Fraction, Fraction], h: Fraction, c: Fraction) -> dict[str, Fraction]:
    """The functions s and t of Table 1 as printed, for H = h and C = c."""
    d = i[0] * i[1] * i[2]

    def sigma(a: int) -> Fraction:
        return sum((x**a for x in i), Fraction(0))

    def tau(b: int, e: int) -> Fraction:
        return sum(((sigma(b) - x**b) / x**e for x in i), Fraction(0))

    one, t11 = Fraction(1), tau(1, 1)
    return {
        "s3": -sigma(-1) / 3 * h + sigma(1) / (6 * d) * c,
        "t3": sigma(1) / (6 * d) * h - one / (3 * d) * c,
        "s5": (3 * sigma(1) + 2 * d * sigma(-2)) / (60 * d) * h**2 + (1 - t11) / (30 * d) * c * h
        + (sigma(2) - d * sigma(-1)) / (30 * d**2) * c**2,
        "t5": -(9 + t11) / (60 * d) * h**2 + (6 * d * sigma(-1) - sigma(2)) / (60 * d**2) * c * h
        - sigma(1) / (60 * d**2) * c**2,
        "s7": (15 - d * sigma(-3) - 2 * t11) / (630 * d) * h**3
        + (6 * d * tau(1, 2) - 100 * d * sigma(-1) + 53 * sigma(2)) / (2520 * d**2) * c * h**2
        + (9 * sigma(1) + 10 * d * sigma(-2) - 6 * tau(2, 1)) / (420 * d**2) * c**2 * h
        + (4 * d + 17 * sigma(3) - 15 * d * t11) / (2520 * d**3) * c**3,
        "t7": (9 * d * sigma(-1) + d * tau(1, 2) - 11 * sigma(2)) / (1260 * d**2) * h**3
        + (47 * sigma(1) + 13 * tau(2, 1) - 38 * d * sigma(-2)) / (2520 * d**2) * c * h**2
        + (sigma(3) + 2 * d * t11 - 85 * d) / (1260 * d**3) * c**2 * h
        + (34 * d * sigma(-1) - 19 * sigma(2)) / (2520 * d**3) * c**3,
    }  # fmt: skip


def _derived(i: tuple[Fraction, Fraction, Fraction], h: Fraction, c: Fraction) -> dict[str, Fraction]:
    """The same from the series that tools/derive_dmv.py derives in exact fractions."""
    x, y, z = (1 / m for m in i)
    e1, e2, e3 = x + y + z, x * y + y * z + z * x, x * y * z
    found = {}
    for m, pair in enumerate(SERIES[:3], start=1):
        for name, table in zip("st", pair, strict=True):
            terms = (Fraction(*f) * e1**p * e2**q * e3**r * h**k * c ** (m - k) for (p, q, r, k), f in table.items())
            found[f"{name}{2 * m + 1}"] = sum(terms, Fraction(0))
    return found


@result("vilmart-table1", cite=CITE, where="Table 1", title="the preprocessing of the moments of inertia")
def table_1(watch: Watch) -> Outcome:
    """Compare the printed with the derived functions, in exact fractions, and measure the resulting orders."""
    bodies = ((Fraction(3, 5), Fraction(4, 5), Fraction(1)), (Fraction(2), Fraction(3), Fraction(9, 2)))
    points = list(itertools.product(bodies, (Fraction(13, 10), Fraction(7, 3)), (Fraction(21, 10), Fraction(5, 11))))
    rows = []
    for name in ("s3", "t3", "s5", "t5", "s7", "t7"):
        worst = max(abs(_printed(*p)[name] - _derived(*p)[name]) for p in points)
        rows.append([name, str(worst)])
    orders = []
    for order in (4, 6, 8, 10):
        watch(f"order of dmv{order} in 50 digits")
        orders.append([f"dmv{order}", measured_order(methods[f"dmv{order}"], "free")])
    verdicts = [
        Verdict(
            "Table 1", "the functions s3, t3, s5, t5, s7, t7",
            f"printed minus derived at {len(points)} points, in exact fractions: "
            + ", ".join(f"{n} {w}" for n, w in rows),
            passed(all(w == "0" for _, w in rows)),
        ),
        Verdict(
            "Algorithm 4",
            "the preprocessed algorithm has order 2p (with h^(2p-2) where h^2 is printed before s_(2p-1))",
            ", ".join(f"{name} {order:.2f}" for name, order in orders),
            passed(all(abs(order - int(name[3:])) < 0.1 for name, order in orders)),
        ),
    ]  # fmt: skip
    how = (
        "Both sides are evaluated in exact fractions at enough points to expose any misprint; orders are from local "
        "errors in 50 digits."
    )
    tables = [
        Table("differences", ("function", "largest difference"), rows, True),
        Table("orders", ("method", "order"), orders, True),
    ]
    return Outcome(how, [], tables, verdicts)


# --- Table 2 ----------------------------------------------------------------------------------------

SAYS: tuple[tuple[str, str, float, str], ...] = (
    ("Jacobi's analytic solution", "jacobi", math.inf, "yyyyy"),
    ("Symmetric+Rotation splitting", "symrot", 2, "yynyy"),
    ("RATTLE/DMV algorithm", "dmv2", 2, "yyyyy"),
    ("Implicit midpoint rule", "imr", 2, "yyynn"),
    ("Preprocessed DMV algorithm, order 10", "dmv10", 10, "yyyyn"),
)
COLUMNS = ("Qy", "C(y)", "H(y)", "Poisson", "symplectic")


def _defects(method: Method) -> list[Callable[[], float]]:
    """Measurements of the five properties, in 50 digits."""

    def change(name: str) -> Callable[[], float]:
        return lambda: float(changes(method)[name])

    return [
        change("spatial_momentum"), change("momentum_norm"), change("energy"),
        lambda: float(poisson_defect(method)), lambda: float(symplectic_defect(method, "free")),
    ]  # fmt: skip


@result("vilmart-table2", cite=CITE, where="Table 2", title="geometric properties of free rigid body integrators")
def table_2(watch: Watch) -> Outcome:
    """Measure every entry."""
    rows, verdicts = [], []
    for label, name, order, marks in SAYS:
        method = methods[name]
        watch(name)
        slope = measured_order(method, "free")
        values = [measure() for measure in _defects(method)]
        kept = [value < float(VISIBLE) for value in values]
        right = kept == [mark == "y" for mark in marks] and (slope == order or abs(slope - order) < 0.1)
        rows.append([label, name, slope, *values])
        printed = ", ".join(f"{c} {'yes' if m == 'y' else 'no'}" for c, m in zip(COLUMNS, marks, strict=True))
        measured = ", ".join(f"{c} {v:.1e}" for c, v in zip(COLUMNS, values, strict=True))
        verdicts.append(
            Verdict("Table 2", f"{label}: order {order:g}; {printed}", f"order {slope:.3g}; {measured}", passed(right))
        )
    verdicts.append(
        Verdict(
            "Remark 4", "the midpoint rule is not symplectic", f"defect {rows[3][-1]:.1e} in one step",
            passed(rows[3][-1] > float(VISIBLE)),
        )
    )  # fmt: skip
    how = (
        "Each property is measured in 50 digits: the change of the invariants over some steps, and of the Poisson and "
        f"symplectic structures over one (by differences with errors of 1e-28). Below {float(VISIBLE):.0e} it counts "
        "as exact."
    )
    return Outcome(how, [], [Table("defects", ("integrator", "method", "order", *COLUMNS), rows, True)], verdicts)
