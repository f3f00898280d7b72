"""Figures with several panels, and bar charts, for the tables and figures of papers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polhode.plots.style import COLOURS, SMALLEST, log_axes, look, styled


@styled
def side_by_side(
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], across: str, title: str = ""
) -> Any:
    """Panels with one logarithmic line (x, y) per label, without failed points (NaN). Returns the figure."""
    import matplotlib.pyplot as plt

    size = (4.2 * len(curves) + 1.6, 3.8)  # the legend is at the right
    fig, axes = plt.subplots(1, len(curves), figsize=size, layout="constrained", squeeze=False)
    for ax, (up, lines) in zip(axes[0], curves.items(), strict=True):
        for i, (label, points) in enumerate(lines.items()):
            x, y = np.array(points, dtype=float).T
            ax.plot(x, np.maximum(y, SMALLEST), label=label, **look(i))
        log_axes(ax)
        ax.set(xlabel=across, ylabel=up)
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    fig.suptitle(title, fontsize=10)
    return fig


@styled
def stacked(
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
    across: str,
    up: str,
    title: str,
    limits: tuple[float, float] | None = None,
) -> Any:
    """Stacked panels, one line over time in each, on the same scale. Returns the figure."""
    import matplotlib.pyplot as plt

    size = (7.0, 0.6 + 1.3 * len(curves))
    fig, axes = plt.subplots(
        len(curves), 1, figsize=size, layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    for ax, (label, (x, y)), colour in zip(axes[:, 0], curves.items(), COLOURS * 2, strict=False):
        ax.plot(x, y, color=colour, linewidth=0.6)
        ax.set_title(label)
        ax.set_ylabel(up)
        if limits is not None:
            ax.set_ylim(limits)
    axes[-1, 0].set_xlabel(across)
    fig.suptitle(title, fontsize=10)
    return fig


@styled
def bars(
    names: Sequence[str], groups: dict[str, Sequence[float | None]], up: str, title: str, log: bool = False
) -> Any:
    """A group of bars for every name; None is skipped. Returns the figure."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    width = 0.8 / len(groups)
    for i, (label, values) in enumerate(groups.items()):
        where = np.arange(len(names)) + (i - (len(groups) - 1) / 2) * width
        ax.bar(
            where, [math.nan if v is None else v for v in values], width, label=label, color=COLOURS[i % len(COLOURS)]
        )
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right")
    ax.set(ylabel=up, title=title)
    if log:
        ax.set_yscale("log")
    ax.legend()
    return fig
