"""Plots of errors against step size and computing time, and of drift."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis.comparison import middle, table
from ..analysis.convergence import Row, by_method
from ..errors import InputError
from ..methods import methods
from ..physics.validate import real_array, several
from ..results.trajectory import Trajectory
from .style import GREY, SMALLEST, Picture, axes_of, legend_right, log_axes, look, looks, styled
from .trajectories import drift_lines, trajectories_of

Lines = dict[str, list[Row]]
Looks = Mapping[str, Mapping[str, Any]]

FEW = 7
"""As many methods are all named in a comparison: there are as many colours."""

FAILED_ROWS = 0.03
"""Distance of the rows of crosses for failed runs, as a part of the height."""


@styled
def convergence_plot(rows: Iterable[Row], ax: Any = None, title: str = "") -> Picture:
    """Attitude error against step size, with the slopes of the declared orders; crosses on the edge are failed runs."""
    fig, ax = axes_of(ax, (7.0, 4.2))
    lines = _lines(rows)
    _against_step(ax, lines, looks(lines), title)
    _slopes(ax, [r for of in lines.values() for r in of if not r.failure])
    _legend(ax, lines)
    return fig, ax


@styled
def work_precision_plot(rows: Iterable[Row], ax: Any = None, title: str = "") -> Picture:
    """Attitude error against computing time."""
    fig, ax = axes_of(ax, (7.0, 4.2))
    lines = _lines(rows)
    _error_lines(ax, lines, looks(lines), lambda row: row.seconds)
    ax.set(xlabel="computing time [s]", title=title)
    _legend(ax, lines)
    return fig, ax


def _against_step(ax: Any, lines: Lines, drawn: Looks, title: str) -> None:
    """Lines of errors against the step size, with marks of failures."""
    _error_lines(ax, lines, drawn, lambda row: row.dt)
    _failed_marks(ax, lines, drawn)
    ax.set(xlabel=r"step size $\Delta t$ [units of the problem]", title=title)


def _lines(rows: Iterable[Row]) -> Lines:
    """The rows of every method."""
    expected = "rows must be those of polhode.analysis.convergence.convergence(problem, methods, dts)"
    every = several([rows] if isinstance(rows, Row | str) else rows, expected, "rows")
    if not every or not all(isinstance(row, Row) for row in every):
        raise InputError(f"{expected}; got {type(every[0]).__name__ if every else 'none'}", "rows")
    return by_method(every)


def _error_lines(ax: Any, lines: Lines, drawn: Looks, across: Callable[[Row], float]) -> None:
    """One line of attitude errors per method; the legend counts its failed runs, which have no error."""
    for name, of in lines.items():
        errors = [max(r.attitude_error, SMALLEST) for r in of]
        ax.plot([across(r) for r in of], errors, label=name + _failures(of), gid=name, **drawn[name])
    ax.margins(x=0.12)
    if any(not r.failure for of in lines.values() for r in of):
        log_axes(ax)
    ax.set_ylabel(r"attitude error $\|R - R_{\rm ref}\|_2$")


def _legend(ax: Any, lines: Lines) -> None:
    """The names of the methods beside the plot, the largest error on top."""
    legend_right(ax, [-_finest(of) for of in lines.values()])


def _failures(of: Sequence[Row]) -> str:
    """How many runs of a method failed, for the legend."""
    failed = sum(bool(r.failure) for r in of)
    return f" ({failed} of {len(of)} failed)" if failed else ""


def _failed_marks(ax: Any, lines: Lines, drawn: Looks) -> None:
    """Crosses at the upper edge, at the step sizes with which a method failed: a row for each, coloured as its line."""
    height = 1.0
    for name, of in lines.items():
        steps = [r.dt for r in of if r.failure]
        if steps:
            there = {"transform": ax.get_xaxis_transform(), "clip_on": False}
            ax.plot(steps, [height] * len(steps), color=drawn[name]["color"], marker="x", linestyle="none", **there)
            height -= FAILED_ROWS


def _finest(of: Sequence[Row]) -> float:
    good = [r.attitude_error for r in of if not r.failure]
    return good[-1] if good else math.nan


def _slopes(ax: Any, rows: Sequence[Row]) -> None:
    """Dashed lines with the slopes of the declared orders, from a point below the errors at the largest step."""
    if not rows:
        return
    right, left = max(r.dt for r in rows), min(r.dt for r in rows)
    top = 0.3 * min(r.attitude_error for r in rows if r.dt == right)
    bottom = min(r.attitude_error for r in rows) / 3
    for order in sorted({r.order for r in rows if math.isfinite(r.order)}):
        end = max(left, right * (bottom / top) ** (1 / order)) if 0 < bottom < top else left
        low = top * (end / right) ** order
        ax.plot([end, right], [low, top], color="0.4", linestyle=(0, (6, 3)), linewidth=0.8, zorder=1)
        ax.annotate(
            rf"$\Delta t^{{{order:g}}}$", (end, low), xytext=(-3, 0), textcoords="offset points", color="0.3",
            ha="right", va="center",
        )  # fmt: skip


@styled
def growth_plot(curves: dict[str, tuple[Sequence[int], Sequence[float]]], ax: Any = None, title: str = "") -> Picture:
    """Errors against the number of steps, one line per label, with the slopes of N and sqrt(N)."""
    expected = "curves must be a dictionary of numbers of steps and their errors, {label: (steps, errors)}"
    if not isinstance(curves, Mapping) or not curves:
        raise InputError(f"{expected}; got {curves!r}", "curves")
    for label, curve in curves.items():
        shapes = [real_array(part, expected, key="curves").shape for part in several(curve, expected, "curves")]
        if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
            raise InputError(f"{expected}; got {curve!r} for {label!r}", "curves")
    fig, ax = axes_of(ax, (5.0, 3.6))
    for i, (label, (steps, errors)) in enumerate(curves.items()):
        ax.plot(steps, np.maximum(errors, SMALLEST), label=label, **look(i))
    span = np.array([min(s[0] for s, _ in curves.values()), max(s[-1] for s, _ in curves.values())], dtype=float)
    for power, name in ((1.0, "$N$"), (0.5, r"$\sqrt{N}$")):
        guide = np.finfo(float).eps * (span / span[0]) ** power
        ax.plot(span, guide, color="0.5", linestyle=(0, (6, 3)), linewidth=0.8, zorder=1)
        ax.annotate(name, (span[1], guide[1]), xytext=(3, 0), textcoords="offset points", color="0.3", va="center")
    ax.set(xscale="log", yscale="log", xlabel="steps $N$", ylabel="relative error", title=title)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return fig, ax


@styled
def comparison_plot(rows: Iterable[Row], sols: Iterable[Trajectory], title: str = "") -> Picture:
    """Error against step size and energy drift over time side by side, methods with the same look in both.

    Of many methods the best of each order are drawn strong and named, and the others are grey.
    """
    import matplotlib.pyplot as plt

    paths, lines = trajectories_of(sols), _lines(rows)
    names = list(dict.fromkeys([*lines, *(s.method for s in paths)]))
    strong, why = (names, "") if len(names) <= FEW else best_of_each_order(lines)
    drawn = looks(names, strong)
    fig, axes = plt.subplots(1, 2, figsize=(9.2, 5.0), layout="constrained")
    _against_step(axes[0], lines, drawn, title)
    drift_lines(axes[1], paths, [drawn[s.method] for s in paths])
    handles = [plt.Line2D([], [], **drawn[name]) for name in strong]
    labels = [_in_words(name) + _failures(lines.get(name, [])) for name in strong]
    if len(names) > len(strong):
        handles += [plt.Line2D([], [], **GREY)]
        labels += [f"{len(names) - len(strong)} other methods"]
    fig.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=3.2, title=why, title_fontsize=8)
    return fig, axes


def best_of_each_order(lines: Lines) -> tuple[list[str], str]:
    """The methods that are named among many, of each order the one with the smallest error, and these words.

    The errors are those at the middle step size: at the smallest one round-off decides.
    """
    dt = middle(sorted({row.dt for of in lines.values() for row in of}))
    best: dict[float, str] = {}
    for row, _ in table([row for of in lines.values() for row in of if row.dt == dt], dt):
        best.setdefault(row.order, row.method)
    orders = sorted(best)
    named = ", ".join(f"{order:g}" for order in orders)
    return [best[order] for order in orders], f"the best method of each order ({named}) at $\\Delta t = {dt:g}$"


def _in_words(name: str) -> str:
    """What a method is, from the first words of its description, and its name."""
    method = methods.get(name)
    words = re.split(r"[:.] | \(|,? (?:on|with|in|by) |, of ", method.summary)[0] if method else ""
    words = words.removeprefix("The ").rstrip(".")
    return f"{words[:1].upper()}{words[1:]}: {name}" if words else name
