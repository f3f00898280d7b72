"""Plots of trajectories: of one, as ``sol.plot``, and of several."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis.invariants import energy_change, momentum_change, polhodes
from ..errors import InputError
from ..physics.conserved import AXES, Conserved
from ..physics.validate import several, word
from ..results.trajectory import Trajectory
from ..run.poinsot import omega_across
from .polhode import draw as draw_polhode
from .sphere import ends_of, frame_of, path_on, sphere
from .style import (
    COLOURS,
    DASHES,
    TIME,
    Picture,
    axes_of,
    legend_above,
    legend_right,
    look,
    momentum_plane,
    styled,
    titled,
    worst_so_far,
)

MOMENTA = {"spatial_momentum": "angular momentum", "vertical_momentum": "vertical angular momentum"}
"""Conserved parts of the momentum in words."""

SEGMENT, MOST_POINTS = 0.05, 20_000
"""Rotation between two points of a curve in radians, and the most points used for that."""


class TrajectoryPlots:
    """Plots of one trajectory, as ``sol.plot``."""

    def __init__(self, sol: Trajectory) -> None:
        """Take the trajectory to be drawn."""
        if not len(sol):
            raise InputError("this trajectory has no states to draw; run it to a later end, or keep more states")
        self.sol = sol

    def _titled(self, ax: Any) -> None:
        titled(ax, self.sol.info.title, self.sol.info.made)

    @property
    def _energy(self) -> str:
        """What a change of the energy is: an error if the motion conserves it."""
        known = self.sol.conserved
        return "error of energy" if known is not None and known.energy else "change of energy"

    @functools.cached_property
    def _curve(self) -> Trajectory:
        """The states; for a run to a tolerance, with its long steps, dense output is added for a smooth curve."""
        sol = self.sol
        turn = np.linalg.norm(sol.omega[:-1], axis=1) * np.diff(sol.t)
        if sol.info.tol is None or sol.dense is None or not (turn > SEGMENT).any() or not np.isfinite(turn).all():
            return sol
        pieces = np.clip(np.ceil(turn / SEGMENT), 1, MOST_POINTS // len(turn) + 1).astype(int)
        inner = [a + (b - a) * np.arange(n) / n for a, b, n in zip(sol.t[:-1], sol.t[1:], pieces, strict=True)]
        return sol.at(np.concatenate([*inner, sol.t[-1:]]))

    @styled
    def omega(self, ax: Any = None) -> Picture:
        """Components of the angular velocity in the body frame over time."""
        fig, ax = axes_of(ax)
        for i in range(3):
            line = {"color": COLOURS[i], "linestyle": DASHES[i], "label": rf"$\omega_{i + 1}$"}
            ax.plot(self._curve.t, self._curve.omega[:, i], **line)
        ax.set(xlabel=TIME, ylabel="angular velocity (body frame)")
        ax.margins(x=0.01)
        self._titled(ax)
        legend_above(ax, 3)
        return fig, ax

    @styled
    def energy(self, ax: Any = None) -> Picture:
        """Relative change of the energy over time."""
        fig, ax = axes_of(ax)
        ax.axhline(0, color="0.5", linewidth=0.8)
        ax.plot(self.sol.t, energy_change(self.sol.energy), color=COLOURS[0])
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
        ax.set(xlabel=TIME, ylabel=rf"{self._energy} $(E - E_0)/|E_0|$")
        ax.margins(x=0.01)
        self._titled(ax)
        return fig, ax

    @styled
    def momentum(self, ax: Any = None) -> Picture:
        """Largest relative change so far of the angular momentum: its space components, and its length."""
        fig, ax = axes_of(ax)
        parts = [(rf"$\pi_{name}$", np.eye(3)[i : i + 1]) for i, name in enumerate("xyz")]
        for i, (label, direction) in enumerate(parts):
            self._change(ax, momentum_change(self.sol.spatial_momentum, direction), label, i)
        length = np.linalg.norm(self.sol.momentum, axis=1, keepdims=True)
        self._change(ax, momentum_change(length, np.ones((1, 1))), r"$|L| = |\Pi|$", 3)
        ax.set_yscale("log")
        ax.set(xlabel=TIME, ylabel=r"change of angular momentum, $|\Delta L|/|L_0|$")
        ax.margins(x=0.01)
        self._titled(ax)
        legend_above(ax, 4)
        return fig, ax

    @styled
    def drift(self, ax: Any = None) -> Picture:
        """Largest relative changes so far of energy and momentum: of what the motion conserves, as in ``sol.drift()``.

        Of energy, spatial momentum (as a vector) and |momentum| if it conserves nothing, or if that is not known.
        """
        fig, ax = axes_of(ax)
        known = self.sol.conserved
        kept = Conserved(True, AXES) if known is None or not (known.energy or known.momentum) else known
        if kept.energy:
            self._change(ax, energy_change(self.sol.energy), "energy", 0)
        if kept.momentum:
            part = np.array(kept.directions)
            label = MOMENTA.get(kept.momentum, "angular momentum in space")
            self._change(ax, momentum_change(self.sol.spatial_momentum, part), label, 1)
        if len(kept.directions) == 3:
            length = np.linalg.norm(self.sol.momentum, axis=1, keepdims=True)
            self._change(ax, momentum_change(length, np.ones((1, 1))), "its length", 2)
        ax.set_yscale("log")
        ax.set(xlabel=TIME, ylabel="largest relative error so far" if known else "largest relative change so far")
        ax.margins(x=0.01)
        self._titled(ax)
        legend_above(ax, 3)
        return fig, ax

    def _change(self, ax: Any, change: np.ndarray, label: str, i: int) -> None:
        ax.plot(self.sol.t[1:], worst_so_far(change), color=COLOURS[i], linestyle=DASHES[i], label=label)

    @styled
    def attitude(self, axes: str = "z", ax: Any = None) -> Picture:
        """Paths of the tips of body axes (any of "xyz") on the unit sphere of the space frame."""
        if not isinstance(axes, str) or not axes or set(axes) - set("xyz"):
            raise InputError(f"axes must be some of 'x', 'y', 'z'; got {axes!r}")
        fig, ax = axes_of(ax, (4.6, 4.6), "3d")
        sphere(ax)
        for c in axes:
            i = "xyz".index(c)
            path_on(ax, self._curve.matrix[:, :, i], COLOURS[(1, 2, 0)[i]], f"tip of body axis ${c}$")
        for c in axes:
            ends_of(ax, self.sol.matrix[:, :, "xyz".index(c)], c == axes[0])
        frame_of(ax, ("$x$", "$y$", "$z$"), "space frame")
        self._titled(ax)
        return fig, ax

    @styled
    def polhode(self, ax: Any = None, on: str = "ellipsoid") -> Picture:
        """Path of the angular velocity in the body on the energy ellipsoid, with other polhodes in grey.

        If the kinetic energy changes, as under a torque, there is no such ellipsoid, and the path is drawn alone.
        With on="sphere": path of the direction of the momentum in the body on the unit sphere.
        """
        on = word("on", on, "ellipsoid", "sphere")
        fig, ax = axes_of(ax, (4.6, 4.6), "3d")
        if on == "ellipsoid":
            draw_polhode(ax, self.sol, self._curve, COLOURS[1])
        else:
            self._momentum_on_sphere(ax)
        self._titled(ax)
        return fig, ax

    def _momentum_on_sphere(self, ax: Any) -> None:
        """Path of the direction of the momentum in the body; in grey those of free bodies, if I is constant."""
        sphere(ax)
        for curve in [] if self.sol.has_varying_inertia else polhodes(np.array(self.sol.info.inertia)):
            path_on(ax, curve, "0.55", "", 0.6)
        points = momentum_directions(self._curve)
        path_on(ax, points, COLOURS[1], r"$\Pi(t)/|\Pi(t)|$")
        ends_of(ax, points, True)
        frame_of(ax, (r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$"), "body frame; grey: curves of constant energy")

    @styled
    def herpolhode(self, ax: Any = None) -> Picture:
        """Path of the spatial angular velocity, viewed along the momentum of the first state that is not at rest.

        Without a torque that momentum is fixed, and the path lies in a plane: the herpolhode proper.
        """
        moving = np.flatnonzero(np.linalg.norm(self.sol.spatial_momentum, axis=1) > 0)
        if not len(moving):
            raise InputError("a body at rest has no herpolhode: its momentum has no direction")
        fig, ax = axes_of(ax, (4.6, 4.6))
        path = omega_across(self._curve, self.sol.spatial_momentum[moving[0]])
        ax.plot(*path.T, color=COLOURS[1], linewidth=0.9, label=r"$\omega(t)$")
        momentum_plane(ax, path[0], "L_0")
        ax.plot(
            *path[-1], marker="s", color="black", markersize=7, markerfacecolor="none", linestyle="none", label="end"
        )
        self._titled(ax)
        legend_above(ax, 4)
        return fig, ax

    @styled
    def overview(self) -> Picture:
        """Energy, momentum, attitude and polhode in one figure; returns the figure and its four axes."""
        import matplotlib.pyplot as plt

        fig = plt.figure(figsize=(9.5, 7.0), layout="constrained")
        axes = [fig.add_subplot(2, 2, i + 1, projection=p) for i, p in enumerate((None, None, "3d", "3d"))]
        self.energy(ax=axes[0])
        self.momentum(ax=axes[1])
        self.attitude(ax=axes[2])
        self.polhode(ax=axes[3])
        for ax in axes:
            titled(ax, "", "")
        fig.suptitle(": ".join(filter(None, (self.sol.info.title, self.sol.info.made))), fontsize=10)
        return fig, np.array(axes)


def momentum_directions(sol: Trajectory) -> np.ndarray:
    """Directions (n, 3) of the momentum in the body; NaN at rest, where there is none to mark."""
    length = np.linalg.norm(sol.momentum, axis=1, keepdims=True)
    return np.asarray(sol.momentum / np.where(length > 0, length, np.nan))


@styled
def drift_plot(sols: Trajectory | Iterable[Trajectory], ax: Any = None) -> Picture:
    """Largest relative change of the energy so far, for several trajectories; a cross is the end of a failed run."""
    paths = trajectories_of(sols)
    fig, ax = axes_of(ax, (7.0, 3.8))
    worst = drift_lines(ax, paths, [look(i) for i in range(len(paths))])
    legend_right(ax, [-line[-1] if line.size else math.nan for line in worst])
    return fig, ax


def trajectories_of(sols: Trajectory | Iterable[Trajectory]) -> list[Trajectory]:
    """Trajectories to be drawn together, as a list."""
    expected = "sols must be trajectories, one or several: drift_plot([sol, other])"
    paths = [sols] if isinstance(sols, Trajectory) else several(sols, expected, "sols")
    if not paths or not all(isinstance(s, Trajectory) for s in paths):
        raise InputError(expected, "sols")
    return paths


def drift_lines(ax: Any, paths: Sequence[Trajectory], looks: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """Lines of the drift of the energy, with their looks; returns their values."""
    worst = [worst_so_far(energy_change(s.energy)) for s in paths]
    for i, (s, line, how) in enumerate(zip(paths, worst, looks, strict=True)):
        ax.plot(s.t[1:], line, label=_description(s), markevery=(0.08 + 0.06 * (i % 3), 0.2), gid=s.method, **how)
        if s.status == "failed" and line.size:
            ax.plot(s.t[-1], line[-1], color=how["color"], marker="x", linestyle="none")
    ax.set_yscale("log")
    ax.set(xlabel=TIME, ylabel=r"largest error of energy so far, $|E - E_0|/|E_0|$", title=_common_title(paths))
    ax.margins(x=0.01)
    return worst


def _description(sol: Trajectory) -> str:
    return sol.method if sol.status == "finished" else f"{sol.method} ({sol.status})"


def _common_title(sols: Iterable[Trajectory]) -> str:
    """The problem and the step that all trajectories share."""
    every = list(sols)
    common = {s.info.title for s in every}, {s.info.step for s in every}
    return ", ".join(x for values in common if len(values) == 1 for x in values if x)
