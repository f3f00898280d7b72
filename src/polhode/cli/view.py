"""``polhode view``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..physics.body import Body
from ..results.trajectory import Trajectory
from ..run.loaded import load
from .console import app, examples, guarded
from .problem import AllowCode

VIEW_HELP = examples(
    "polhode view run.zarr", "polhode view one.zarr other.nc --out both.html", "polhode view problem.toml --open"
)


@app.command("view", epilog=VIEW_HELP)
@guarded
def view_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Saved trajectories (.zarr or .nc) or problem files (.toml, which are run), side by side."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: the first file's name with .html).")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Draw this mesh (.stl, .obj, .ply) as the body.")] = None,
    title: Annotated[str, typer.Option(help="Title of the page (default: the problem's name).")] = "",
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    allow_code: AllowCode = False,
) -> None:
    """Write a self-contained HTML page that shows the rotating body in a browser, without network access."""
    from ..viewer import view

    body = None if mesh is None else Body.from_mesh(mesh)
    sols = [_trajectory(file, allow_code) for file in files]
    target = out or files[0].with_suffix(".html")
    page = view(sols, target, body=body, title=title, overwrite=overwrite)
    typer.echo(f"written       {page}   open it in any browser")
    if show:
        webbrowser.open(page.resolve().as_uri())


def _trajectory(file: Path, allow_code: bool) -> Trajectory:
    """The trajectory in a file, or that of a problem file; an ensemble is an error."""
    if file.suffix == ".toml":
        from ..config import problem_file

        return problem_file.load(file, allow_code=allow_code).solve()
    sol = load(file)
    if not isinstance(sol, Trajectory):
        raise InputError(f"{file} holds an ensemble; view shows trajectories: run one body with ph.solve")
    return sol
