"""Common style of all plots: colours, lines, legends, axes, files."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .._extras import needed
from ..errors import InputError
from ..physics.validate import file_path
from ..results.store.atomic import place_for

Picture = tuple[Any, Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "polhode",
    "figure.dpi": 150,
    "savefig.dpi": "figure",
}

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The colour-blind safe palette of Okabe and Ito, without its yellow, which is too pale for a line."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
TIME = "time $t$ [units of the problem]"
SMALLEST = 1e-17
"""Changes below this are drawn at this value: a logarithmic axis has no zero."""


def styled(draw: Callable[Given, Result]) -> Callable[Given, Result]:
    """Draw in the common style without changing the user's settings."""

    @functools.wraps(draw)
    def styled(*args: Given.args, **named: Given.kwargs) -> Result:
        with needed("matplotlib").rc_context(STYLE):
            return draw(*args, **named)

    return styled


def axes_of(ax: Any, size: tuple[float, float] = (6.0, 3.4), projection: str | None = None) -> Picture:
    """The figure and axes to draw into: the given axes, or new ones."""
    plt = needed("matplotlib.pyplot")
    if ax is not None:
        kind, make = (projection, "projection='3d'") if projection else ("rectilinear", "")
        if not isinstance(ax, plt.Axes) or ax.name != kind:
            description = f"{ax.name} axes" if isinstance(ax, plt.Axes) else type(ax).__name__
            raise InputError(f"ax must be axes made by fig.add_subplot({make}); got {description}")
        return ax.figure, ax

    fig = plt.figure(figsize=size, layout="constrained")
    return fig, fig.add_subplot(projection=projection)


def expect(name: str, value: Any, kind: type) -> None:
    """Raise an error for an argument of the wrong type."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a ph.{kind.__name__}; got {type(value).__name__}")


def look(i: int) -> dict[str, Any]:
    """Colour, marker and dashes of the i-th line: the first 91 are all different."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
        "fillstyle": "none",
    }


GREY: Mapping[str, Any] = {"color": "0.82", "linewidth": 0.8, "zorder": 1}
"""Look of the lines behind those that matter."""


def looks(names: Iterable[str], strong: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """The look of each line: all different, or grey apart from the strong ones."""
    every = list(names)
    chosen = every if strong is None else list(strong)
    return {name: look(chosen.index(name)) if name in chosen else dict(GREY) for name in every}


def save(fig: Any, *paths: str | Path) -> None:
    """Write a figure to files in the formats of their suffixes, and close it. Equal figures give equal bytes."""
    matplotlib, plt = needed("matplotlib"), needed("matplotlib.pyplot")
    if not isinstance(fig, plt.Figure):
        raise InputError(f"save takes a figure and the files to write: fig, ax = ...; got {type(fig).__name__}")
    for path in paths:
        checked(path)
    with matplotlib.rc_context(STYLE):
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # one layout for all files
        for path in map(Path, paths):
            fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(fig)


def checked(path: str | Path) -> Path:
    """The path, if its suffix is an image format."""
    path = file_path(path, "the path of a plot must be a file")
    kinds = needed("matplotlib.backend_bases").FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise InputError(f"the name of a plot file must end in .png, .svg or .pdf; got {path.name!r}")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    return place_for(path)


def momentum_plane(ax: Any, start: np.ndarray, name: str = "L") -> None:
    """Set up the plane perpendicular to a momentum; mark the momentum and the start of a path of omega."""
    ax.plot(0, 0, marker="+", color="black", linestyle="none", label=f"${name}$")
    ax.plot(*start, marker="o", color="black", linestyle="none", label="start")
    ax.set_aspect("equal")
    ax.set(xlabel=rf"$\omega \perp {name}$ [units of the problem]", ylabel=rf"$\omega \perp {name}$")


def log_axes(ax: Any) -> None:
    """Make both axes logarithmic; below two decades only 1, 2 and 5 are labelled, so that labels do not overlap."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    ax.set(xscale="log", yscale="log")
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        axis.set_minor_formatter(NullFormatter())
        if low > 0 and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(
                LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(math.inf, math.inf))
            )


def titled(ax: Any, name: str, small: str) -> None:
    """Write what is drawn above the plot at the left, and how it was computed in small print at the right."""
    ax.set_title(name, loc="left")
    ax.set_title(small, loc="right", fontsize=7, color="0.45")


def legend_above(ax: Any, columns: int) -> None:
    """Put the legend between the title and the plot."""
    ax.legend(ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    ax.set_title(ax.get_title(loc="left"), pad=20)


LEGEND_ROWS = 20
"""Number of labels that fit in one column beside a plot."""


def legend_right(ax: Any, ranks: Sequence[float]) -> None:
    """Put the legend beside the plot, in the order of the lines' ends (lowest rank on top)."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(ranks)), key=lambda i: (math.isnan(ranks[i]), ranks[i]))
    order += range(len(ranks), len(handles))
    ax.legend(
        [handles[i] for i in order], [labels[i] for i in order], loc="center left", bbox_to_anchor=(1.01, 0.5),
        handlelength=3.2, ncols=1 + (len(order) - 1) // LEGEND_ROWS,
    )  # fmt: skip


def worst_so_far(change: np.ndarray) -> np.ndarray:
    """Largest change so far at every time after the first, for a logarithmic axis."""
    return np.asarray(np.maximum(np.maximum.accumulate(np.abs(change))[1:], SMALLEST))
