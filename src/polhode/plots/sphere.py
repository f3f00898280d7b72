"""Paths on the unit sphere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def sphere(ax: Any) -> None:
    """Draw a pale unit sphere from a fixed viewpoint."""
    u, v = np.meshgrid(np.linspace(0, 2 * math.pi, 49), np.linspace(0, math.pi, 25))
    shape = (np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v))
    ax.plot_surface(*shape, color="#dfe8f0", alpha=0.25, linewidth=0, shade=False, rstride=1, cstride=1)
    ax.set_box_aspect((1, 1, 1), zoom=1.25)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.view_init(elev=24, azim=35)
    ax.set_axis_off()


def path_on(ax: Any, points: np.ndarray, colour: str, label: str, width: float = 1.1) -> None:
    """Draw a path on the sphere; its hidden part is pale."""
    elev, azim = math.radians(ax.elev), math.radians(ax.azim)
    eye = np.array([math.cos(elev) * math.cos(azim), math.cos(elev) * math.sin(azim), math.sin(elev)])
    front = points @ eye >= 0
    behind = ~front
    behind[1:] |= ~front[:-1]  # with the next point on either side, to leave no gap
    behind[:-1] |= ~front[1:]
    ax.plot(*np.where(front, 1, np.nan) * points.T, color=colour, linewidth=width, label=label, zorder=5)
    ax.plot(*np.where(behind, 1, np.nan) * points.T, color=colour, linewidth=0.7 * width, alpha=0.3, zorder=1)


def ends_of(ax: Any, points: np.ndarray, label: bool) -> None:
    """Mark the start and the end of a path."""
    look = {"linestyle": "none", "markeredgecolor": "black", "zorder": 9}
    ax.plot(*points[:1].T, marker="o", markersize=4.5, markerfacecolor="black", label="start" if label else "", **look)
    ax.plot(*points[-1:].T, marker="s", markersize=7, markerfacecolor="none", label="end" if label else "", **look)


def frame_of(ax: Any, names: Sequence[str], what: str) -> None:
    """Draw the three axes through the sphere, and the legend."""
    for i, name in enumerate(names):
        tip = np.eye(3)[i]
        ax.plot(*np.stack([tip, 1.25 * tip]).T, color="0.3", linewidth=0.8)
        back = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "boxstyle": "round,pad=0.1"}
        ax.text(*(1.36 * tip), name, ha="center", va="center", zorder=10, bbox=back)
    lines, labels = ax.get_legend_handles_labels()
    ax.legend(lines, labels, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.08), title=what, title_fontsize=8)
