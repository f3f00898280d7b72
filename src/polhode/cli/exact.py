"""``polhode exact``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..physics import library
from ..physics.problem import Problem
from .console import app, draw_figure, examples, guarded
from .run import new_picture, print_state

PICTURE_STATES = 2001
"""States in the plot of a top."""

EXACT_HELP = examples(
    "polhode exact free_body", "polhode exact fast_top --digits 30", "polhode exact t_handle --t 5 --plot handle.png"
)


@app.command("exact", epilog=EXACT_HELP)
@guarded
def exact_command(
    problem: Annotated[str, typer.Argument(help="A named free body or symmetric top; `polhode problems` lists them.")],
    t: Annotated[float | None, typer.Option("--t", help="Time of the state (default: the problem's end time).")] = None,
    digits: Annotated[int | None, typer.Option(help="Compute with this many digits.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot the motion (for a free body, Poinsot's curves and periods): .png, .svg, .pdf."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Print the exact state of a free body or a Lagrange top at one time; for a free body, also its periods."""
    from ..run.exact import exact

    what = library.get(problem)
    picture = new_picture(plot, overwrite)
    end = t if t is not None else what.t_end if what.t_end is not None else what.t0
    sol = exact(what, [end], digits=digits)
    typer.secho(f"{what.name} at t = {end:g}, exactly", bold=True)
    print_state(sol)
    free = what.field is None
    if free:
        _print_cycle(what)
    if picture is not None:
        path = None if free else exact(what, np.linspace(what.t0, end, PICTURE_STATES))
        draw_figure(lambda plots: plots.poinsot_plot(what) if free else plots.TrajectoryPlots(path).overview(), picture)
        typer.echo(f"written       {picture}")


def _print_cycle(problem: Problem) -> None:
    """Print period and precession."""
    from ..run.poinsot import herpolhode_ring, period, precession_angle

    time = float(period(problem))
    if not math.isfinite(time):
        typer.echo("period        infinite: the body momentum is not periodic")
        return
    angle, ring = float(precession_angle(problem)), herpolhode_ring(problem)
    typer.echo(f"period        {time:.12g}   of the body momentum")
    typer.echo(f"precession    {math.degrees(angle):.12g} degrees per period, {angle / (2 * math.pi):.6g} revolutions")
    typer.echo(f"herpolhode    between {ring[0]:.6g} and {ring[1]:.6g} from the momentum")
