"""``polhode view``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..physics.body import Body
from ..results.ensemble import Ensemble
from ..results.trajectory import Trajectory
from ..run.loaded import load
from .console import app, examples, guarded
from .problem import AllowCode

VIEW_HELP = examples(
    "polhode view run.zarr",
    "polhode view one.zarr other.nc --out both.html",
    "polhode view problem.toml --open",
    "polhode view ensemble.nc --colour drift",
)


@app.command("view", epilog=VIEW_HELP)
@guarded
def view_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Trajectories (.zarr or .nc) or problem files (.toml, which are run), side by side; or an ensemble."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: the first file's name with .html).")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Draw this mesh (.stl, .obj, .ply) as the body.")] = None,
    colour: Annotated[
        str | None, typer.Option(help="Ensemble: what colours the bodies: energy, drift, steps, or a statistic.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page (default: the problem's name).")] = "",
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    allow_code: AllowCode = False,
) -> None:
    """Write a self-contained HTML page that shows the rotating body in a browser, without network access."""
    from ..viewer import view

    found = None if files[0].suffix == ".toml" else load(files[0])
    target = out or files[0].with_suffix(".html")
    if isinstance(found, Ensemble):
        if len(files) > 1 or mesh is not None:
            raise InputError(f"{files[0]} holds an ensemble, which is shown alone; remove the other files and --mesh")
        page = found.view(target, together=True, colour=colour, title=title, overwrite=overwrite)
    else:
        if colour is not None:
            raise InputError("--colour is only for ensembles; remove it")
        body = None if mesh is None else Body.from_mesh(mesh)
        sols = [trajectory_in(file, allow_code) for file in files]
        page = view(sols, target, body=body, title=title, overwrite=overwrite)
    typer.echo(f"written       {page}   open it in any browser")
    if show:
        show_page(page)


def show_page(page: Path) -> None:
    """Open a page in the browser, or say that there is none."""
    from ..viewer.delivery import opened

    if not opened(page.resolve()):
        typer.echo("no browser could be opened here", err=True)


def trajectory_in(file: Path, allow_code: bool = False) -> Trajectory:
    """The trajectory in a file, or that of a problem file; an ensemble is an error."""
    if file.suffix == ".toml":
        from ..config import problem_file

        return problem_file.load(file, allow_code=allow_code).solve()
    sol = load(file)
    if not isinstance(sol, Trajectory):
        raise InputError(f"{file} holds an ensemble, not a trajectory; `polhode view` shows it")
    return sol
