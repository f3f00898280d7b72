"""``polhode export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..results.store import trajectory_store
from .console import app, examples, guarded

EXPORT_HELP = examples("polhode export run.zarr run.nc", "polhode export run.nc.partial.zarr so_far.zarr --overwrite")


@app.command("export", epilog=EXPORT_HELP)
@guarded
def export_command(
    source: Annotated[Path, typer.Argument(help="The file of a finished or unfinished run: .zarr or .nc.")],
    path: Annotated[Path, typer.Argument(help="The new file: .nc (NetCDF) or .zarr.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy the trajectory or ensemble in a file to NetCDF or Zarr, with bounded memory; xarray opens both."""
    trajectory_store.export(source, path, overwrite)
    copy = trajectory_store.load(path)
    info = getattr(copy, "info", None)  # an ensemble has none
    description = f"{len(copy)} bodies, {copy.method}" if info is None else f"{info.method}, {info.steps} steps"
    typer.echo(f"written       {path}: {description}, {copy.status}")
