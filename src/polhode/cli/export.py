"""``polhode export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..results.store import csv_file, trajectory_store
from ..results.trajectory import Trajectory
from .console import app, examples, guarded

EXPORT_HELP = examples(
    "polhode export run.zarr run.nc",
    "polhode export run.zarr run.csv",
    "polhode export run.nc.partial.zarr so_far.zarr --overwrite",
)


@app.command("export", epilog=EXPORT_HELP)
@guarded
def export_command(
    source: Annotated[Path, typer.Argument(help="The file of a finished or unfinished run: .zarr or .nc.")],
    path: Annotated[Path, typer.Argument(help="The new file: .nc (NetCDF), .zarr, or .csv (a table).")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy the trajectory or ensemble in a file to NetCDF or Zarr, or a trajectory to a CSV table."""
    if path.suffix == ".csv":
        _to_table(source, path, overwrite)
        return
    trajectory_store.export(source, path, overwrite)
    copy = trajectory_store.load(path)
    info = getattr(copy, "info", None)  # an ensemble has none
    description = f"{len(copy)} bodies, {copy.method}" if info is None else f"{info.method}, {info.steps} steps"
    typer.echo(f"written       {path}: {description}, {copy.status}")


def _to_table(source: Path, path: Path, overwrite: bool) -> None:
    """Write the states of a trajectory as a table."""
    csv_file.new_path(path, overwrite)
    sol = trajectory_store.load(source)
    if not isinstance(sol, Trajectory):
        raise InputError(f"{source} holds an ensemble; a table has one body: save many[i] from Python")
    csv_file.write(sol, path, overwrite)
    typer.echo(f"written       {path}: {len(sol)} states, {', '.join(csv_file.COLUMNS)}")
