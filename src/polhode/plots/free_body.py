"""The free body: polhodes, herpolhode, periods."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..analysis.invariants import polhode_sides
from ..errors import InputError
from ..physics.body import Body
from ..physics.library import title
from ..physics.problem import Problem
from ..physics.validate import positive, several, whole_number
from ..run.exact import exact
from ..run.poinsot import cycles, finite_period, herpolhode, herpolhode_ring, precession_angle
from .polhode import Ellipsoid
from .style import COLOURS, DASHES, TIME, Picture, axes_of, expect, legend_above, momentum_plane, styled, titled
from .trajectories import TrajectoryPlots

SIDES = {1: (COLOURS[0], "smallest moment"), 0: ("black", "separatrix"), -1: (COLOURS[1], "largest moment")}
"""Colours and names of the polhodes around the two stable axes, and of the separatrix between them."""

MOST_PERIODS, MOST_POLHODES = 500, 200
"""Most periods, and most polhodes on each side, in a picture."""


@styled
def polhode_family(body: Body, ax: Any = None, count: int = 5) -> Picture:
    """The polhodes of a free body on its energy ellipsoid: around the largest and the smallest moment, and between."""
    expect("body", body, Body)
    fig, ax = axes_of(ax, (4.6, 4.6), "3d")
    if not body.moments[0] > 0:
        raise InputError("a body whose moment about an axis is zero has no energy ellipsoid, so no polhodes", "body")
    on = Ellipsoid(body.inertia, 1.0)
    on.draw(ax, grey=False)
    labelled: set[int] = set()
    if whole_number("count", count) > MOST_POLHODES:
        raise InputError(f"count must be at most {MOST_POLHODES}; got {count}", "count")
    for curve, side in zip(*polhode_sides(body.inertia, int(count)), strict=True):
        colour, name = SIDES[side]
        on.path(ax, on.above(curve), colour, "" if side in labelled else name, 1.4 if side == 0 else 0.9)
        labelled.add(side)
    on.frame(ax, "body frame; polhodes around the axis of the")
    titled(ax, f"Polhodes, I = ({', '.join(f'{x:.4g}' for x in body.moments)})", "")
    return fig, ax


@styled
def herpolhode_plot(problem: Problem, ax: Any = None, periods: float = 3.0) -> Picture:
    """Path of the angular velocity in the invariable plane, and the ring that bounds it."""
    expect("problem", problem, Problem)
    fig, ax = axes_of(ax, (4.6, 4.6))
    periods = positive("periods", periods)
    path, ring = herpolhode(problem, periods), herpolhode_ring(problem)
    ax.plot(*path.T, color=COLOURS[1], linewidth=0.9, label=r"$\omega(t)$")
    around = np.linspace(0, 2 * math.pi, 361)
    for radius, label in zip(ring, ("ring", ""), strict=True):
        circle = radius * np.cos(around), radius * np.sin(around)
        ax.plot(*circle, color="black", linestyle=DASHES[1], linewidth=0.7, label=label)
    momentum_plane(ax, path[0])
    ax.set_title(f"{_lead(problem)}herpolhode, {periods:g} periods")
    legend_above(ax, 4)
    return fig, ax


@styled
def flip_plot(problem: Problem, ax: Any = None, periods: float = 2.0) -> Picture:
    """Body momentum components over some periods; near the intermediate axis its component flips."""
    expect("problem", problem, Problem)
    fig, ax = axes_of(ax, (6.0, 3.4))
    turn, periods = finite_period(problem), positive("periods", periods)
    if periods > MOST_PERIODS:
        raise InputError(
            f"periods must be at most {MOST_PERIODS}: more cannot be told apart; got {periods:g}", "periods"
        )
    t = problem.t0 + np.linspace(0.0, periods * turn, 2001)
    sol = exact(problem, t)
    shares = sol.momentum @ problem.body.axes / np.linalg.norm(problem.momentum)
    for i, label in enumerate((r"$\Pi_1$", r"$\Pi_2$", r"$\Pi_3$")):
        description = f"{label}, $I_{i + 1} = {problem.body.moments[i]:.4g}$"
        ax.plot(t, shares[:, i], color=COLOURS[i], linestyle=DASHES[i], label=description)
    for k in range(1, int(periods) + 1):
        ax.axvline(problem.t0 + k * turn, color="0.5", linewidth=0.8)
    ax.set(xlabel=TIME, ylabel=r"angular momentum in the body, $\Pi/|\Pi|$", ylim=(-1.08, 1.08))
    ax.margins(x=0.01)
    angle = math.degrees(precession_angle(problem))
    ax.set_title(f"{_lead(problem)}period {turn:.5g}, precession {angle:.5g}$^\\circ$ about $L$")
    legend_above(ax, 3)
    return fig, ax


@styled
def cycle_plot(body: Body, axes: Any = None) -> Picture:
    """Period and precession angle of a free body for all its polhodes; the period is infinite on the separatrix."""
    import matplotlib.pyplot as plt

    expect("body", body, Body)
    if axes is None:
        _, axes = plt.subplots(2, 1, sharex=True, figsize=(6.0, 4.6), layout="constrained")
    given = several(axes, "axes must be two of matplotlib", "axes")
    if len(given) != 2 or not all(hasattr(ax, "axvline") for ax in given):
        raise InputError(f"axes must be two of matplotlib, fig, axes = plt.subplots(2); got {axes!r}", "axes")
    energy, times, angles = cycles(body)
    for ax, values in zip(axes, (times, angles / (2 * math.pi)), strict=True):
        for side, (colour, name) in SIDES.items():
            there = np.sign(energy - 1) == side
            if there.any():
                ax.plot(energy[there], values[there], color=colour, label=f"around the {name}")
        ax.axvline(1.0, color="black", linewidth=0.8, linestyle=(0, (6, 3)))
    axes[0].set(ylabel=r"period $\times\,|L|$", title=f"I = ({', '.join(f'{x:.4g}' for x in body.moments)})")
    legend_above(axes[0], 2)
    axes[1].set(ylabel="precession [turns]", xlabel=r"$2 E I_2/|L|^2$; the separatrix is at 1")
    return axes[0].figure, axes


@styled
def poinsot_plot(problem: Problem) -> Picture:
    """Polhode, herpolhode, momentum and periods of a free body in one figure; returns it with its four or five axes."""
    import matplotlib.pyplot as plt

    expect("problem", problem, Problem)
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
    titled(axes[0], f"{_lead(problem)}polhode, one period", "")
    return fig, np.array(axes)


def _lead(problem: Problem) -> str:
    return f"{title(problem.name)}: " if problem.name else ""
