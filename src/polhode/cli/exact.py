"""``polhode exact``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..errors import InputError
from ..physics.problem import Problem
from ..physics.validate import euler_sequence
from ..results import angles
from ..results.formats.formats import export
from .console import AsJson, app, console, draw_figure, examples, guarded, numbers, print_json, sheet
from .problem import AllowCode, ProblemName, with_end
from .run import new_picture, new_table
from .states import Euler, print_state, state_facts

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

PICTURE_STATES = 2001
"""States in the plot of a top."""

EXACT_HELP = examples(
    "polhode exact free_body",
    "polhode exact fast_top --digits 30",
    "polhode exact t_handle --times 0,5,1e6",
    "polhode exact t_handle --samples 101 --csv handle.csv --plot handle.png",
)


@app.command("exact", epilog=EXACT_HELP)
@guarded
def exact_command(
    problem: ProblemName,
    t: Annotated[float | None, typer.Option("--t", help="Time of the state (default: the problem's end time).")] = None,
    times: Annotated[str | None, typer.Option(help="Several times instead, such as 0,0.5,2.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="This many times, equally spaced from the start to --t or the end.")
    ] = None,
    digits: Annotated[int | None, typer.Option(help="Compute with this many digits.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the states as a table to this .csv file.")] = None,
    euler: Euler = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot the motion (for a free body, Poinsot's curves and periods): .png, .svg, .pdf."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    as_json: AsJson = False,
    allow_code: AllowCode = False,
) -> None:
    """Print exact states of a free body or a Lagrange top, at any time; for a free body, also its periods."""
    from ..run.exact import exact

    what = with_end(problem, allow_code)
    picture = new_picture(plot, overwrite)
    table = new_table(csv, overwrite)
    if euler is not None:
        euler_sequence("--euler", euler, "euler")
    chosen = _times(what, t, times, samples)
    sol = exact(what, chosen, digits=digits)
    free = what.field is None
    if table is not None:
        export(sol, table, overwrite=overwrite, euler=euler)
    if picture is not None:
        path = None if free else exact(what, np.linspace(what.t0, chosen[-1], PICTURE_STATES))
        draw_figure(lambda plots: plots.poinsot_plot(what) if free else plots.TrajectoryPlots(path).overview(), picture)
    files = [path for path in (table, picture) if path is not None]
    if as_json:
        states = [state_facts(sol, i, euler) for i in range(len(sol))]
        print_json({"problem": what.name, "states": states, **(_cycle(what) if free else {}), "files": files})
        return
    _print(what, sol, free, euler)
    for file in files:
        typer.echo(f"written       {file}")


def _times(problem: Problem, t: float | None, times: str | None, samples: int | None) -> list[float]:
    """The times of the states."""
    from ..physics.validate import whole_number

    if times is not None:
        if t is not None or samples is not None:
            raise InputError("--times already gives the times; remove --t and --samples")
        return numbers("--times", times)
    end = t if t is not None else problem.t_end if problem.t_end is not None else problem.t0
    if samples is None:
        return [end]
    if whole_number("samples", samples) < 2:
        raise InputError("--samples must be at least 2 (start and end); got 1")
    return [float(x) for x in np.linspace(problem.t0, end, samples)]


def _print(problem: Problem, sol: Trajectory, free: bool, euler: str | None) -> None:
    if len(sol) > 1:
        typer.secho(f"{problem.name} at {len(sol)} times, exactly", bold=True)
        turned = angles.columns(sol.quaternion, euler)
        rows = [
            [
                f"{t:.12g}",
                *(f"{x:.9f}" for x in q),
                *(f"{x:.9g}" for x in (*w, *(column[i] for column in turned.values()))),
            ]
            for i, (t, q, w) in enumerate(zip(sol.t, sol.quaternion, sol.omega, strict=True))
        ]
        names = ("t", "qw", "qx", "qy", "qz", "omega x", "omega y", "omega z", *turned)
        console().print(sheet("", names, rows, numbers=len(names)))
        typer.echo("quaternion    body to space, scalar first (w, x, y, z); omega in the body frame")
    else:
        typer.secho(f"{problem.name} at t = {sol.t[0]:g}, exactly", bold=True)
        print_state(sol, euler)
    if free:
        _print_cycle(_cycle(problem))


def _cycle(problem: Problem) -> dict[str, Any]:
    """Period of the body momentum, precession in one period, and the ring of the herpolhode."""
    from ..run.poinsot import herpolhode_ring, period, precession_angle

    time = float(period(problem))
    if not math.isfinite(time):
        return {"period": math.inf}
    return {"period": time, "precession": float(precession_angle(problem)), "herpolhode": herpolhode_ring(problem)}


def _print_cycle(cycle: dict[str, Any]) -> None:
    if "precession" not in cycle:
        typer.echo("period        infinite: the body momentum is not periodic")
        return
    angle, ring = cycle["precession"], cycle["herpolhode"]
    typer.echo(f"period        {cycle['period']:.12g}   of the body momentum")
    typer.echo(f"precession    {math.degrees(angle):.12g} degrees per period, {angle / (2 * math.pi):.6g} revolutions")
    typer.echo(f"herpolhode    between {ring[0]:.6g} and {ring[1]:.6g} from the momentum")
