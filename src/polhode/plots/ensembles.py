"""Pictures of ensembles, as ``many.plot``: all bodies by quantiles, or a few of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..analysis.invariants import energy_change
from ..errors import InputError
from ..physics.library import title
from ..physics.validate import word
from ..results import one_body
from ..results.ensemble import Ensemble
from ..results.trajectory import Trajectory
from .polhode import draw_several
from .sphere import frame_of, path_on, sphere
from .style import COLOURS, DASHES, TIME, Picture, axes_of, legend_above, styled, titled, worst_so_far
from .trajectories import momentum_directions

QUANTILES = (("median", 0.5), ("90 %", 0.9), ("largest", 1.0))


class EnsemblePlots:
    """Pictures of many bodies. `bodies` are the numbers of those drawn one by one, by default the first few."""

    def __init__(self, many: Ensemble) -> None:
        """Take the ensemble to be drawn."""
        if not len(many):
            raise InputError("this ensemble has no bodies to draw")
        self.many = many

    def _titled(self, ax: Any) -> None:
        name = title(self.many.known_bodies.name) or "Ensemble"
        titled(ax, f"{name}, {len(self.many)} bodies", self.many.method)

    def _chosen(self, bodies: Iterable[int] | None) -> list[tuple[int, Trajectory]]:
        """Some bodies, as many as there are colours."""
        chosen = one_body.some(self.many, bodies, len(COLOURS))
        if not 1 <= len(chosen) <= len(COLOURS):
            raise InputError(f"draw 1 to {len(COLOURS)} bodies at a time; got {len(chosen)}")
        return chosen

    @styled
    def energy(self, bodies: Iterable[int] | None = None, ax: Any = None) -> Picture:
        """Relative change of the energy over time, of some bodies."""
        chosen = self._chosen(bodies)
        fig, ax = axes_of(ax)
        ax.axhline(0, color="0.5", linewidth=0.8)
        for colour, (i, sol) in zip(COLOURS, chosen, strict=False):
            ax.plot(sol.t, energy_change(sol.energy), color=colour, label=f"body {i}")
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
        ax.set(xlabel=TIME, ylabel=r"change of energy $(E - E_0)/|E_0|$")
        ax.margins(x=0.01)
        self._titled(ax)
        legend_above(ax, 4)
        return fig, ax

    @styled
    def drift(self, ax: Any = None) -> Picture:
        """Largest relative change of the energy so far: median, 90 % and largest among all bodies that did not fail.

        Only of bodies that conserve their energy, as in ``many.drift()``, if there are any.
        """
        many = self.many
        if many.t.ndim > 1:
            raise InputError("the bodies have different times; draw some of them: many.plot.energy(bodies=[0, 1])")
        whole = np.flatnonzero(many.failed == -1)
        if not whole.size or len(many.t) < 2:
            raise InputError(
                "the drift needs two states at least, of a body that did not fail; keep more states with every= or "
                "times="
            )
        kept = np.array([one.energy for one in many.conserved or []], dtype=bool)
        whole = whole[kept[whole]] if kept.any() and kept[whole].any() else whole
        worst = np.stack([worst_so_far(energy_change(many.energy[:, i])) for i in whole], -1)
        fig, ax = axes_of(ax)
        for k, (label, q) in enumerate(QUANTILES):
            line = np.quantile(worst, q, axis=-1)
            ax.plot(many.t[1:], line, color=COLOURS[k], linestyle=DASHES[k], label=label)
        ax.set_yscale("log")
        ax.set(xlabel=TIME, ylabel=r"largest error of energy so far, $|E - E_0|/|E_0|$")
        ax.margins(x=0.01)
        self._titled(ax)
        legend_above(ax, len(QUANTILES))
        return fig, ax

    @styled
    def attitude(self, bodies: Iterable[int] | None = None, axis: str = "z", ax: Any = None) -> Picture:
        """Paths of the tip of one body axis ("x", "y" or "z") of some bodies on the unit sphere of the space frame."""
        i = "xyz".index(word("axis", axis, *"xyz"))
        return self._on_sphere(
            bodies, lambda sol: sol.matrix[:, :, i], ("$x$", "$y$", "$z$"), f"space frame; tips of body axis {axis}", ax
        )

    @styled
    def polhode(self, bodies: Iterable[int] | None = None, ax: Any = None, on: str = "ellipsoid") -> Picture:
        """Paths of the angular velocities of some bodies, in their body frames, on the energy ellipsoid.

        Divided by the square root of 2 T, for one ellipsoid holds all. If kinetic energies change, or the bodies have
        different inertias, the paths are drawn alone. With on="sphere": directions of the momenta on the unit sphere.
        """
        if word("on", on, "ellipsoid", "sphere") == "sphere":
            return self._on_sphere(
                bodies, momentum_directions, (r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$"), r"body frame; $\Pi/|\Pi|$", ax
            )
        chosen = self._chosen(bodies)
        fig, ax = axes_of(ax, (4.6, 4.6), "3d")
        paths = [(sol, colour, f"body {i}") for colour, (i, sol) in zip(COLOURS, chosen, strict=False)]
        draw_several(ax, paths)
        self._titled(ax)
        return fig, ax

    def _on_sphere(
        self, bodies: Any, points: Callable[[Trajectory], np.ndarray], names: tuple[str, ...], what: str, ax: Any
    ) -> Picture:
        chosen = self._chosen(bodies)
        fig, ax = axes_of(ax, (4.6, 4.6), "3d")
        sphere(ax)
        for colour, (i, sol) in zip(COLOURS, chosen, strict=False):
            path_on(ax, points(sol), colour, f"body {i}")
        frame_of(ax, names, what)
        self._titled(ax)
        return fig, ax
