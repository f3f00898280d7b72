"""Pictures of chaos: indicators over a plane of starts, and the convergence of Lyapunov exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .style import Picture, axes_of, styled

if TYPE_CHECKING:
    from ..run.chaos import ChaosMap
    from ..run.lyapunov import Lyapunov

INDICATORS = {
    "mean_megno": "mean MEGNO (2: regular)",
    "megno": "MEGNO (2: regular)",
    "fli": "FLI, logarithm of the growth",
    "growth": "logarithm of the growth",
    "exponent": "largest Lyapunov exponent",
}
"""Labels of the indicators."""

REGULAR, CHAOTIC = 1.5, 8.0
"""Limits of the colours of the MEGNO."""


@styled
def chaos_map(found: ChaosMap, indicator: str, ax: Any) -> Picture:
    """Draw an indicator over the plane of starts."""
    if not isinstance(indicator, str) or indicator not in INDICATORS:
        raise InputError(f"indicator must be one of {', '.join(INDICATORS)}; got {indicator!r}")
    fig, ax = axes_of(ax, (5.4, 4.2))
    limits: dict[str, Any] = {"vmin": REGULAR, "vmax": CHAOTIC} if "megno" in indicator else {}
    values = np.ma.masked_invalid(getattr(found, indicator))
    image = ax.pcolormesh(found.x, found.y, values, shading="nearest", cmap="viridis", rasterized=True, **limits)
    fig.colorbar(image, ax=ax, label=INDICATORS[indicator], extend="max" if limits else "neither")
    ax.set_xlabel(found.names[0])
    ax.set_ylabel(found.names[1])
    return fig, ax


@styled
def lyapunov(found: Lyapunov, ax: Any) -> Picture:
    """Draw the exponents over time."""
    fig, ax = axes_of(ax)
    for i, values in enumerate(found.history.T, start=1):
        ax.plot(abs(found.t[1:] - found.t[0]), values[1:], linewidth=1, label=f"{i}")
    ax.set_xscale("log")
    ax.set_xlabel("time")
    ax.set_ylabel("Lyapunov exponents (1/time)")
    ax.legend(ncols=3, fontsize="small")
    return fig, ax
