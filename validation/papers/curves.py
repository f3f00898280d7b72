"""Curves common to several documents: errors of methods against step size, and quantities over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polhode.analysis.convergence import Row, by_method, convergence, measured_order
from polhode.methods import methods
from polhode.physics import library
from polhode.physics.problem import Problem

from .panels import side_by_side
from .results import Table, Watch


class Errors:
    """Errors of methods on a problem for several step sizes; methods have the labels of the document."""

    def __init__(self, problem: Problem, labels: Sequence[str], dts: Sequence[float], watch: Watch) -> None:
        self.problem, self.labels, self.dts = problem, list(labels), sorted(dts, reverse=True)
        rows = convergence(problem, labels, self.dts, watch=lambda what, done, total: watch(what))
        assert problem.reference is not None
        self.size = float(np.linalg.norm(problem.reference.momentum))
        found = by_method(rows)
        self.rows = {label: found[methods[label].name] for label in labels}

    def row(self, label: str, dt: float) -> Row:
        """The run of a method with the step nearest to dt."""
        return min(self.rows[label], key=lambda row: abs(row.dt - dt))

    def attitude(self, label: str, dt: float) -> float:
        """Spectral norm of R - R_ref at the end."""
        return self.row(label, dt).attitude_error

    def momentum(self, label: str, dt: float) -> float:
        """|Pi - Pi_ref| at the end, body frame."""
        return self.size * self.row(label, dt).momentum_error

    def order(self, label: str) -> float:
        """Slope of the attitude error."""
        return measured_order(self.rows[label])

    def ranking(self, what: Callable[[str, float], float], dt: float) -> list[tuple[str, float]]:
        """Methods sorted by an error at a step size, the best first."""
        return sorted(((label, what(label, dt)) for label in self.labels), key=lambda pair: pair[1])

    def table(self, name: str) -> Table:
        """All numbers."""
        rows = [
            [label, r.dt, self.size * r.momentum_error, r.attitude_error, r.energy_drift, r.failure]
            for label in self.labels
            for r in self.rows[label]
        ]
        columns = ("method", "dt", "momentum error", "attitude error", "energy drift", "failure")
        return Table(name, columns, rows)

    def picture(self, title: str) -> Any:
        """Momentum errors on the left, attitude errors on the right, both logarithmic, as Krysl draws them."""
        sides = {
            r"$\|\Pi - \Pi_{\rm converged}\|_2$": lambda label, r: self.size * r.momentum_error,
            r"$\|R - R_{\rm converged}\|_2$": lambda label, r: r.attitude_error,
        }
        curves: dict[str, dict[str, Any]] = {
            side: {label: [(r.dt, value(label, r)) for r in self.rows[label]] for label in self.labels}
            for side, value in sides.items()
        }
        return side_by_side(curves, r"step size $\Delta t$", title)


def over_time(name: str, curves: Mapping[str, tuple[Any, Any]]) -> Table:
    """The data of curves over a common time, one column per curve."""
    times = next(iter(curves.values()))[0]
    rows = np.column_stack([times, *(values for _, values in curves.values())]).tolist()
    return Table(name, ("t", *(label.strip("$").replace("_", "") for label in curves)), rows)


def listed(pairs: Sequence[tuple[str, float]]) -> str:
    """Format methods and their figures in one line."""
    return ", ".join(f"{label} {value:.3g}" for label, value in pairs)


def named(name: str) -> Problem:
    """A named problem."""
    return library.get(name)
