"""Pictures. Each function returns (fig, ax), draws into `ax` if one is given, and never shows anything."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .analysis.convergence import Row, by_method
from .analysis.invariants import energy_change, momentum_change, polhode_sides, polhodes
from .body import Body
from .errors import InputError
from .exact import exact
from .poinsot import cycles, finite_period, herpolhode, herpolhode_ring, precession_angle
from .problem import Problem
from .trajectory import Trajectory

Picture = tuple[Any, Any]
Drawing = TypeVar("Drawing", bound=Callable[..., Any])

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
"""Okabe and Ito's colours, told apart by colour-blind eyes; their yellow is too pale for a line."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
TIME = "time $t$ [units of the problem]"
SMALLEST = 1e-17
"""Changes below this are drawn here: a logarithmic axis has no zero."""


def _styled(draw: Drawing) -> Drawing:
    """Draw in the house style, leaving the user's settings alone."""

    @functools.wraps(draw)
    def styled(*args: Any, **named: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **named)

    return styled  # type: ignore[return-value]


def _axes(ax: Any, size: tuple[float, float] = (6.0, 3.4), projection: str | None = None) -> Picture:
    """The given axes with their figure, or new ones."""
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    fig = plt.figure(figsize=size, layout="constrained")
    return fig, fig.add_subplot(projection=projection)


def _look(i: int) -> dict[str, Any]:
    """Colour, marker and dashes of the i-th line: no two of the first 91 are alike."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
        "fillstyle": "none",
    }


def save(fig: Any, *paths: str | Path) -> None:
    """Write a figure to files, by suffix, and close it. The same figure gives the same bytes."""
    import matplotlib
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(STYLE):
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # laid out once, for all files
        for path in map(Path, paths):
            fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(fig)


def checked(path: str | Path) -> Path:
    """The path, if its suffix names a kind of picture."""
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(path)
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise InputError(f"a picture must end in .png, .svg or .pdf; got {path.name!r}")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist")
    return path


# --- one trajectory ---------------------------------------------------------------------------------


class TrajectoryPlots:
    """Pictures of one trajectory, as ``sol.plot``."""

    def __init__(self, sol: Trajectory) -> None:
        """Take the trajectory to be drawn."""
        self.sol = sol

    @property
    def _title(self) -> str:
        step = f", dt = {self.sol.dt:g}" if self.sol.dt else ""
        made = f"{self.sol.method}{step}" if self.sol.method else ""
        return ": ".join(x for x in (self.sol.info.problem, made) if x)

    @_styled
    def energy(self, ax: Any = None) -> Picture:
        """Relative change of the energy over time."""
        fig, ax = _axes(ax)
        ax.axhline(0, color="0.5", linewidth=0.8)
        ax.plot(self.sol.t, energy_change(self.sol.energy), color=COLOURS[0])
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
        ax.set(xlabel=TIME, ylabel=r"change of energy $(E - E_0)/|E_0|$", title=self._title)
        ax.margins(x=0.01)
        return fig, ax

    @_styled
    def momentum(self, ax: Any = None) -> Picture:
        """Largest relative change so far of the angular momentum: its components in space, and its length."""
        fig, ax = _axes(ax)
        parts = [(rf"$\pi_{name}$", np.eye(3)[i : i + 1]) for i, name in enumerate("xyz")]
        for i, (label, direction) in enumerate(parts):
            self._change(ax, momentum_change(self.sol.spatial_momentum, direction), label, i)
        length = np.linalg.norm(self.sol.momentum, axis=1, keepdims=True)
        self._change(ax, momentum_change(length, np.ones((1, 1))), r"$|\pi| = |\Pi|$", 3)
        ax.set_yscale("log")
        ax.set(xlabel=TIME, ylabel=r"largest $|\Delta\pi|/|\pi_0|$ so far", title=self._title)
        ax.margins(x=0.01)
        _legend_below(ax, 4)
        return fig, ax

    def _change(self, ax: Any, change: np.ndarray, label: str, i: int) -> None:
        ax.plot(self.sol.t[1:], _worst(change), color=COLOURS[i], linestyle=DASHES[i], label=label)

    @_styled
    def attitude(self, axes: str = "z", ax: Any = None) -> Picture:
        """Paths of the tips of body axes (any of "xyz") on the unit sphere of the space frame."""
        wrong = [c for c in axes if c not in "xyz"]
        if wrong or not axes:
            raise InputError(f"axes must be some of 'x', 'y', 'z'; got {axes!r}")
        fig, ax = _axes(ax, (4.6, 4.6), "3d")
        _sphere(ax)
        for c in axes:
            i = "xyz".index(c)
            _path(ax, self.sol.matrix[:, :, i], COLOURS[(1, 2, 0)[i]], f"tip of body axis ${c}$")
        for c in axes:
            _ends(ax, self.sol.matrix[:, :, "xyz".index(c)], c == axes[0])
        _frame(ax, ("$x$", "$y$", "$z$"), "space frame")
        ax.set_title(self._title)
        return fig, ax

    @_styled
    def polhode(self, ax: Any = None) -> Picture:
        """Path of the momentum in the body on the momentum sphere, with the polhodes of the free body."""
        fig, ax = _axes(ax, (4.6, 4.6), "3d")
        _sphere(ax)
        for curve in polhodes(np.array(self.sol.info.inertia)):
            _path(ax, curve, "0.55", "", 0.6)
        length = np.linalg.norm(self.sol.momentum, axis=1, keepdims=True)
        points = self.sol.momentum / np.where(length > 0, length, 1.0)
        _path(ax, points, COLOURS[1], r"$\Pi(t)/|\Pi(t)|$")
        _ends(ax, points, True)
        _frame(ax, (r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$"), "body frame; grey: curves of constant energy")
        ax.set_title(self._title)
        return fig, ax

    @_styled
    def overview(self) -> Picture:
        """The four pictures above in one figure; returns the figure and its four axes."""
        import matplotlib.pyplot as plt

        fig = plt.figure(figsize=(9.5, 7.0), layout="constrained")
        axes = [fig.add_subplot(2, 2, i + 1, projection=p) for i, p in enumerate((None, None, "3d", "3d"))]
        self.energy(ax=axes[0])
        self.momentum(ax=axes[1])
        self.attitude(ax=axes[2])
        self.polhode(ax=axes[3])
        for ax in axes:
            ax.set_title("")
        fig.suptitle(self._title, fontsize=10)
        return fig, np.array(axes)


def _sphere(ax: Any) -> None:
    """A pale unit sphere seen from a fixed place."""
    u, v = np.meshgrid(np.linspace(0, 2 * math.pi, 49), np.linspace(0, math.pi, 25))
    shape = (np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v))
    ax.plot_surface(*shape, color="#dfe8f0", alpha=0.25, linewidth=0, shade=False, rstride=1, cstride=1)
    ax.set_box_aspect((1, 1, 1), zoom=1.25)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.view_init(elev=24, azim=35)
    ax.set_axis_off()


def _path(ax: Any, points: np.ndarray, colour: str, label: str, width: float = 1.1) -> None:
    """A path on the sphere; where it runs behind the sphere it is pale."""
    elev, azim = math.radians(ax.elev), math.radians(ax.azim)
    eye = np.array([math.cos(elev) * math.cos(azim), math.cos(elev) * math.sin(azim), math.sin(elev)])
    front = points @ eye >= 0
    ax.plot(*np.where(front, 1, np.nan) * points.T, color=colour, linewidth=width, label=label, zorder=5)
    ax.plot(*np.where(front, np.nan, 1) * points.T, color=colour, linewidth=0.7 * width, alpha=0.3, zorder=1)


def _ends(ax: Any, points: np.ndarray, label: bool) -> None:
    """Marks at the start and at the end of a path."""
    look = {"linestyle": "none", "markeredgecolor": "black", "markersize": 5.5, "zorder": 9}
    ax.plot(*points[:1].T, marker="o", markerfacecolor="black", label="start" if label else "", **look)
    ax.plot(*points[-1:].T, marker="s", markerfacecolor="white", label="end" if label else "", **look)


def _frame(ax: Any, names: Sequence[str], what: str) -> None:
    """The three axes through the sphere, and the legend."""
    for i, name in enumerate(names):
        tip = np.eye(3)[i]
        ax.plot(*np.stack([tip, 1.25 * tip]).T, color="0.3", linewidth=0.8)
        back = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "boxstyle": "round,pad=0.1"}
        ax.text(*(1.36 * tip), name, ha="center", va="center", zorder=10, bbox=back)
    ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.08), title=what, title_fontsize=8)


def _legend_below(ax: Any, columns: int) -> None:
    ax.legend(ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    ax.set_title(ax.get_title(loc="left"), pad=20)


def _worst(change: np.ndarray) -> np.ndarray:
    """Largest change so far at every time after the first, fit for a logarithmic axis."""
    return np.asarray(np.maximum(np.maximum.accumulate(np.abs(change))[1:], SMALLEST))


# --- many trajectories ------------------------------------------------------------------------------


@_styled
def drift_plot(sols: Iterable[Trajectory], ax: Any = None) -> Picture:
    """Largest relative change of the energy so far, for several trajectories."""
    fig, ax = _axes(ax, (7.0, 3.8))
    paths = list(sols)
    worst = [_worst(energy_change(s.energy)) for s in paths]
    for i, (s, line) in enumerate(zip(paths, worst, strict=True)):
        ax.plot(s.t[1:], line, label=_said(s), markevery=(0.08 + 0.06 * (i % 3), 0.2), **_look(i))
    ax.set_yscale("log")
    ax.set(xlabel=TIME, ylabel=r"largest $|E - E_0|/|E_0|$ so far", title=_common_title(paths))
    ax.margins(x=0.01)
    _legend_right(ax, [-line[-1] if line.size else math.nan for line in worst])
    return fig, ax


def _said(sol: Trajectory) -> str:
    return sol.method if sol.status == "finished" else f"{sol.method} ({sol.status})"


def _common_title(sols: Iterable[Trajectory]) -> str:
    """What all trajectories have in common."""
    every = list(sols)
    common = {s.info.problem for s in every}, {f"dt = {s.dt:g}" for s in every}
    return ", ".join(x for values in common if len(values) == 1 for x in values if x)


LEGEND_ROWS = 20
"""So many labels fit beside a picture, one below the other."""


def _legend_right(ax: Any, ranks: Sequence[float]) -> None:
    """A legend beside the picture, in the order of the lines' ends (lowest rank on top)."""
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(ranks)), key=lambda i: (math.isnan(ranks[i]), ranks[i]))
    order += range(len(ranks), len(handles))
    ax.legend(
        [handles[i] for i in order], [labels[i] for i in order], loc="center left", bbox_to_anchor=(1.01, 0.5),
        handlelength=3.2, ncols=1 + (len(order) - 1) // LEGEND_ROWS,
    )  # fmt: skip


@_styled
def convergence_plot(rows: Iterable[Row], ax: Any = None, title: str = "") -> Picture:
    """Attitude error against the step size, with the slopes of the orders declared."""
    fig, ax = _axes(ax, (7.0, 4.2))
    lines = by_method(rows)
    _error_lines(ax, lines, lambda row: row.dt)
    _slopes(ax, [r for of in lines.values() for r in of if not r.failure])
    ax.margins(x=0.12)
    ax.set(xlabel=r"step size $\Delta t$ [units of the problem]", title=title)
    return fig, ax


@_styled
def work_precision_plot(rows: Iterable[Row], ax: Any = None, title: str = "") -> Picture:
    """Attitude error against the time spent."""
    fig, ax = _axes(ax, (7.0, 4.2))
    _error_lines(ax, by_method(rows), lambda row: row.seconds)
    ax.set(xlabel="computing time [s]", title=title)
    return fig, ax


def _error_lines(ax: Any, lines: dict[str, list[Row]], across: Callable[[Row], float]) -> None:
    """One line of attitude errors per method; runs that failed are left out."""
    for i, (name, of) in enumerate(lines.items()):
        ax.plot([across(r) for r in of], [max(r.attitude_error, SMALLEST) for r in of], label=name, **_look(i))
    if any(not r.failure for of in lines.values() for r in of):
        ax.set(xscale="log", yscale="log")
    ax.set_ylabel(r"attitude error $\|R - R_{\rm ref}\|_2$")
    _legend_right(ax, [-_finest(of) for of in lines.values()])


@_styled
def side_by_side(
    curves: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], across: str, title: str = ""
) -> Any:
    """Panels with one logarithmic line (x, y) for every label; failed points (NaN) are left out. Returns the figure."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, len(curves), figsize=(4.2 * len(curves), 3.8), layout="constrained", squeeze=False)
    for ax, (up, lines) in zip(axes[0], curves.items(), strict=True):
        for i, (label, points) in enumerate(lines.items()):
            x, y = np.array(points, dtype=float).T
            ax.plot(x, np.maximum(y, SMALLEST), label=label, **_look(i))
        ax.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    fig.suptitle(title, fontsize=10)
    return fig


@_styled
def stacked(
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
    across: str,
    up: str,
    title: str,
    limits: tuple[float, float] | None = None,
) -> Any:
    """One panel above the other, a line over time in each, on the same scale. Returns the figure."""
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


@_styled
def bars(
    names: Sequence[str], groups: dict[str, Sequence[float | None]], up: str, title: str, log: bool = False
) -> Any:
    """Groups of bars beside each other for every name; None is left out. Returns the figure."""
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


def _finest(of: Sequence[Row]) -> float:
    good = [r.attitude_error for r in of if not r.failure]
    return good[-1] if good else math.nan


def _slopes(ax: Any, rows: Sequence[Row]) -> None:
    """Dashed lines with the slopes of the orders declared, from one point below the errors at the largest step."""
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
            rf"$\Delta t^{order:g}$", (end, low), xytext=(-3, 0), textcoords="offset points", color="0.3",
            ha="right", va="center",
        )  # fmt: skip


@_styled
def growth_plot(curves: dict[str, tuple[Sequence[int], Sequence[float]]], ax: Any = None, title: str = "") -> Picture:
    """Errors against the number of steps, one line a label, with the slopes of N and of its square root."""
    fig, ax = _axes(ax, (5.0, 3.6))
    for i, (label, (steps, errors)) in enumerate(curves.items()):
        ax.plot(steps, np.maximum(errors, SMALLEST), label=label, **_look(i))
    span = np.array([min(s[0] for s, _ in curves.values()), max(s[-1] for s, _ in curves.values())], dtype=float)
    for power, name in ((1.0, "$N$"), (0.5, r"$\sqrt{N}$")):
        guide = np.finfo(float).eps * (span / span[0]) ** power
        ax.plot(span, guide, color="0.5", linestyle=(0, (6, 3)), linewidth=0.8, zorder=1)
        ax.annotate(name, (span[1], guide[1]), xytext=(3, 0), textcoords="offset points", color="0.3", va="center")
    ax.set(xscale="log", yscale="log", xlabel="steps $N$", ylabel="relative error", title=title)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return fig, ax


@_styled
def comparison_plot(rows: Iterable[Row], sols: Iterable[Trajectory], title: str = "") -> Picture:
    """Error against step size and energy drift over time side by side, methods in the same order in both."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
    paths = list(sols)
    convergence_plot(rows, axes[0], title)
    drift_plot(paths, axes[1])
    axes[0].get_legend().remove()
    return fig, axes


# --- the free body ----------------------------------------------------------------------------------


SIDES = {1: (COLOURS[0], "smallest moment"), 0: ("black", "separatrix"), -1: (COLOURS[1], "largest moment")}
"""Colours and names of the polhodes around the two stable axes, and of those between."""


@_styled
def polhode_family(body: Body, ax: Any = None, count: int = 5) -> Picture:
    """The polhodes of a free body on the momentum sphere: around the largest and the smallest moment, and between."""
    fig, ax = _axes(ax, (4.6, 4.6), "3d")
    _sphere(ax)
    told: set[int] = set()
    for curve, side in zip(*polhode_sides(body.inertia, count), strict=True):
        colour, name = SIDES[side]
        _path(ax, curve, colour, "" if side in told else name, 1.4 if side == 0 else 0.9)
        told.add(side)
    _frame(ax, (r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$"), "body frame; polhodes around the axis of the")
    ax.set_title(f"polhodes, I = ({', '.join(f'{x:.4g}' for x in body.moments)})")
    return fig, ax


@_styled
def herpolhode_plot(problem: Problem, ax: Any = None, periods: float = 3.0) -> Picture:
    """Path of the angular velocity in the invariable plane, in the ring that it touches."""
    fig, ax = _axes(ax, (4.6, 4.6))
    path, ring = herpolhode(problem, periods), herpolhode_ring(problem)
    ax.plot(*path.T, color=COLOURS[1], linewidth=0.9, label=r"$\omega(t)$")
    around = np.linspace(0, 2 * math.pi, 361)
    for radius, label in zip(ring, ("ring", ""), strict=True):
        circle = radius * np.cos(around), radius * np.sin(around)
        ax.plot(*circle, color="black", linestyle=DASHES[1], linewidth=0.7, label=label)
    ax.plot(0, 0, marker="+", color="black", linestyle="none", label="$L$")
    ax.plot(*path[0], marker="o", color="black", linestyle="none", label="start")
    ax.set_aspect("equal")
    ax.set(
        xlabel=r"$\omega$ across $L$ [units of the problem]", ylabel=r"$\omega$ across $L$",
        title=f"{_lead(problem)}herpolhode, {periods:g} periods",
    )  # fmt: skip
    _legend_below(ax, 4)
    return fig, ax


@_styled
def flip_plot(problem: Problem, ax: Any = None, periods: float = 2.0) -> Picture:
    """Momentum components in the body over some periods: next to the intermediate axis that one turns over."""
    fig, ax = _axes(ax, (6.0, 3.4))
    turn = finite_period(problem)
    t = problem.t0 + np.linspace(0.0, periods * turn, 2001)
    sol = exact(problem, t)
    shares = sol.momentum @ problem.body.axes / np.linalg.norm(problem.momentum)
    for i, label in enumerate((r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$")):
        said = f"{label}, $I_{i + 1} = {problem.body.moments[i]:.4g}$"
        ax.plot(t, shares[:, i], color=COLOURS[i], linestyle=DASHES[i], label=said)
    for k in range(1, int(periods) + 1):
        ax.axvline(problem.t0 + k * turn, color="0.5", linewidth=0.8)
    ax.set(xlabel=TIME, ylabel=r"$\Pi/|\Pi|$, principal axes", ylim=(-1.08, 1.08))
    ax.margins(x=0.01)
    angle = math.degrees(precession_angle(problem))
    ax.set_title(f"{_lead(problem)}period {turn:.5g}, then turned by {angle:.5g}$^\\circ$ about $L$")
    _legend_below(ax, 3)
    return fig, ax


@_styled
def cycle_plot(body: Body, axes: Any = None) -> Picture:
    """Period and precession angle of the free body over its polhodes; the period is infinite on the separatrix."""
    import matplotlib.pyplot as plt

    if axes is None:
        _, axes = plt.subplots(2, 1, sharex=True, figsize=(6.0, 4.6), layout="constrained")
    energy, times, angles = cycles(body)
    for ax, values in zip(axes, (times, angles / (2 * math.pi)), strict=True):
        for side, (colour, name) in SIDES.items():
            there = np.sign(energy - 1) == side
            if there.any():
                ax.plot(energy[there], values[there], color=colour, label=f"around the {name}")
        ax.axvline(1.0, color="black", linewidth=0.8, linestyle=(0, (6, 3)))
    axes[0].set(ylabel=r"period $\times\,|L|$", title=f"I = ({', '.join(f'{x:.4g}' for x in body.moments)})")
    _legend_below(axes[0], 2)
    axes[1].set(ylabel="precession [turns]", xlabel=r"$2 E I_2/|L|^2$; the separatrix is at 1")
    return axes[0].figure, axes


@_styled
def poinsot_plot(problem: Problem) -> Picture:
    """Polhode, herpolhode, momentum and the family's periods of a free body in one figure; its four or five axes."""
    import matplotlib.pyplot as plt

    fig = plt.figure(figsize=(9.5, 7.4), layout="constrained")
    grid = fig.add_gridspec(4, 2)
    axes = [fig.add_subplot(grid[:2, 0], projection="3d"), fig.add_subplot(grid[:2, 1]), fig.add_subplot(grid[2:, 0])]
    upper = fig.add_subplot(grid[2, 1])
    axes += [upper, fig.add_subplot(grid[3, 1], sharex=upper)]
    sol = exact(problem, problem.t0 + np.linspace(0.0, finite_period(problem), 721))
    TrajectoryPlots(sol).polhode(ax=axes[0])
    herpolhode_plot(problem, axes[1])
    flip_plot(problem, axes[2])
    cycle_plot(problem.body, axes[3:])
    upper.tick_params(labelbottom=False)
    axes[0].set_title(f"{_lead(problem)}polhode, one period")
    return fig, np.array(axes)


def _lead(problem: Problem) -> str:
    return f"{problem.name}: " if problem.name else ""
