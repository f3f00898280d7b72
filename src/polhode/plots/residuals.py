"""Residuals of a fit over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .style import COLOURS, Picture, axes_of, styled

if TYPE_CHECKING:
    from ..run.fit.result import Fit


@styled
def residuals(found: Fit, ax: Any) -> Picture:
    """Draw the residuals of all measurements, in standard deviations, with the band of one of them."""
    fig, ax = axes_of(ax, (6.4, 3.6))
    ax.axhspan(-1, 1, color="0.9", zorder=0)
    number = 0
    for one, values in zip(found.data, found.residuals, strict=True):
        for k in range(values.shape[1]):
            label = one.kind if values.shape[1] == 1 else f"{one.kind} {k + 1}"
            ax.plot(one.t, values[:, k], ".", markersize=3, color=COLOURS[number % len(COLOURS)], label=label)
            number += 1
    ax.set_xlabel("time")
    ax.set_ylabel("residual [standard deviations]")
    ax.set_title(f"chi2 = {found.chi2:.4g} for {found.dof} degrees of freedom")
    ax.legend(fontsize="small", ncols=min(number, 3))
    return fig, ax
