"""Poincaré sections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..analysis.sections import TOLERANCE, coordinate, surface
from ..analysis.sections import section as crossings_of
from ..errors import InputError
from ..methods import Method
from ..physics.observers.event import Event, event
from ..physics.problem import Problem
from ..physics.validate import several
from .style import COLOURS, Picture, axes_of, styled

DOT = 1.2
"""Marker size of a crossing, in points."""


@styled
def poincare(
    problems: Problem | Iterable[Problem],
    section: Any,
    axes: Any,
    *,
    t_end: float | None = None,
    step_tol: float = TOLERANCE,
    method: str | Method | None = None,
    dt: float | None = None,
    ax: Any = None,
    progress: Any = None,
    tol: None = None,
) -> Picture:
    """Poincaré section: points at which motions cross a surface, in two coordinates, one colour per initial state.

    Parameters
    ----------
    problems : one initial state or several; several form one section if their conserved quantities are equal
    section : a ``ph.event``, or a function of t, R, omega and parameters, crossed when it rises through zero
    axes : two functions of the same arguments, the horizontal and vertical coordinates; their names are the labels
    t_end, step_tol, method, dt, progress, tol : see `polhode.analysis.sections.section`
    """
    starts = [problems] if isinstance(problems, Problem) else _several(problems)
    cut, (across, up) = surface(section), _pair(axes)
    found = [
        crossings_of(start, cut, t_end=t_end, step_tol=step_tol, method=method, dt=dt, progress=progress, tol=tol)
        for start in starts
    ]
    total = sum(map(len, found))
    if not total:
        raise InputError(
            f"no motion crosses {cut.name} = 0 in this direction before its end; give a later t_end, or more problems"
        )
    fig, ax = axes_of(ax, (5.4, 4.6))
    for i, (start, states) in enumerate(zip(starts, found, strict=True)):
        points = coordinate(across, start, states), coordinate(up, start, states)
        look = {"markersize": DOT, "markeredgewidth": 0, "color": COLOURS[i % len(COLOURS)]}
        ax.plot(*points, linestyle="none", marker="o", rasterized=True, **look)
    names = {start.name for start in starts if start.name}
    lead = f"{names.pop()}: " if len(names) == 1 else ""
    motions = f"{len(starts)} motions" if len(starts) > 1 else "a motion"
    ax.set_title(f"{lead}{total} crossings of {_description(cut)} = 0 by {motions}")
    ax.set(xlabel=_description(across), ylabel=_description(up))
    return fig, ax


def _several(problems: Any) -> list[Problem]:
    """The initial states as a list, at least one."""
    starts = several(problems, "problems must be a ph.Problem or several", "problems")
    if not starts:
        raise InputError(f"problems must be a ph.Problem or several of them; got {problems!r}")
    return starts


def _pair(axes: Any) -> tuple[Event, Event]:
    """The two coordinates, as functions of the state."""
    given = list(axes) if isinstance(axes, list | tuple) else []
    if len(given) != 2 or not all(callable(one) for one in given):
        raise InputError(f"axes must be two functions of t, R, omega; got {axes!r}")
    across, up = (one if isinstance(one, Event) else event(one) for one in given)
    return across, up


def _description(function: Event) -> str:
    return function.name.replace("_", " ")
