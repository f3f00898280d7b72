"""Paths on a sphere or an ellipsoid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

SPHERE_VIEW, BODY_VIEW = (24.0, 35.0), (32.0, 60.0)
"""Elevation and azimuth of the viewer in degrees; axis 2, about which bodies flip, is towards the viewer of a body."""


def sphere(ax: Any) -> None:
    """Draw a pale unit sphere from a fixed viewpoint."""
    surface(ax, np.eye(3))
    look_at(ax, 1.0, SPHERE_VIEW)


def surface(ax: Any, shape: np.ndarray) -> None:
    """Draw the pale image of the unit sphere under a matrix."""
    u, v = np.meshgrid(np.linspace(0, 2 * math.pi, 49), np.linspace(0, math.pi, 25))
    unit = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    points = np.einsum("ij,jkl->ikl", shape, unit)
    ax.plot_surface(*points, color="#dfe8f0", alpha=0.25, linewidth=0, shade=False, rstride=1, cstride=1)


def look_at(ax: Any, size: float, view: tuple[float, float], height: float = 1.0) -> None:
    """A fixed viewpoint, from which what has a size, with an axis 3 of a height, fills the picture, without a frame."""
    size = max(size, 0.85 * (height + 0.36 * size) * math.cos(math.radians(view[0])))  # the name of the axis fits
    ax.set_box_aspect((1, 1, 1), zoom=1.25)
    ax.set(xlim=(-size, size), ylim=(-size, size), zlim=(-size, size))
    ax.view_init(*view)
    ax.set_proj_type("ortho")  # so that one direction to the viewer tells what is hidden
    ax.set_axis_off()


def towards(view: tuple[float, float]) -> np.ndarray:
    """The direction towards the viewer."""
    elev, azim = map(math.radians, view)
    return np.array([math.cos(elev) * math.cos(azim), math.cos(elev) * math.sin(azim), math.sin(elev)])


def path_on(
    ax: Any, points: np.ndarray, colour: str, label: str, width: float = 1.1, normals: np.ndarray | None = None
) -> None:
    """Draw a path on a surface with given normals, by default a sphere; its hidden part is pale."""
    front = (points if normals is None else normals) @ towards((ax.elev, ax.azim)) >= 0
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


def frame_of(
    ax: Any, names: Sequence[str], what: str, reaches: Sequence[float] = (1.0, 1.0, 1.0), size: float = 1.0
) -> None:
    """Draw the three axes, each from where it leaves the surface, and the legend."""
    for i, (name, reach) in enumerate(zip(names, reaches, strict=True)):
        axis = np.eye(3)[i]
        ax.plot(*np.stack([reach * axis, (reach + 0.25 * size) * axis]).T, color="0.3", linewidth=0.8)
        back = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "boxstyle": "round,pad=0.1"}
        ax.text(*((reach + 0.36 * size) * axis), name, ha="center", va="center", zorder=10, bbox=back)
    lines, labels = ax.get_legend_handles_labels()
    ax.legend(lines, labels, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.08), title=what, title_fontsize=8)
