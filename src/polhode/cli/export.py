"""``polhode export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..results.ensemble import Ensemble
from ..results.formats.formats import FORMATS, OWN, export
from ..results.store import trajectory_store
from .console import app, examples, guarded

EXPORT_HELP = examples(
    "polhode export run.zarr run.nc",
    "polhode export run.zarr run.csv",
    "polhode export run.zarr --to parquet",
    "polhode export run.zarr run.aem --option epoch=2029-04-13T21:46:00 --option system=UTC",
    "polhode export run.nc.partial.zarr so_far.zarr --overwrite",
)
KINDS = ", ".join(FORMATS)


@app.command("export", epilog=EXPORT_HELP)
@guarded
def export_command(
    source: Annotated[Path, typer.Argument(help="The file of a finished or unfinished run: .zarr or .nc.")],
    path: Annotated[
        Path | None,
        typer.Argument(help=f"The new file, by its suffix: {' '.join([*OWN, *(f.suffix for f in FORMATS.values())])}."),
    ] = None,
    to: Annotated[str | None, typer.Option(help=f"The format, instead of a suffix: {KINDS}.")] = None,
    body: Annotated[int | None, typer.Option(help="Of an ensemble, only this body, counting from 0.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the format, NAME=VALUE, such as epoch=2029-04-13T21:46:00.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy the trajectory or ensemble in a file to NetCDF or Zarr, or to a format of other programs."""
    given = dict(map(_option, option or ()))
    place = _place(source, path, to)
    if to is None and place.suffix in OWN and body is None and not given:
        trajectory_store.export(source, place, overwrite)
        result = trajectory_store.load(place)
    else:
        result = _chosen(trajectory_store.load(source), body)
        export(result, place, to, overwrite, **given)
    info = getattr(result, "info", None)  # an ensemble has none
    description = f"{len(result)} bodies, {result.method}" if info is None else f"{info.method}, {info.steps} steps"
    typer.echo(f"written       {place}: {description}, {result.status}")


def _place(source: Path, path: Path | None, to: str | None) -> Path:
    """The new file; with a format and no name, it stands beside the source."""
    if path is not None:
        return path
    if to not in FORMATS:
        raise InputError(f"give the name of the new file, or --to with one of {KINDS}")
    return source.with_suffix(FORMATS[to].suffix)


def _option(text: str) -> tuple[str, Any]:
    """Name and value of NAME=VALUE; numbers, lists and true or false are read as JSON, all else is text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--option must be NAME=VALUE; got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _chosen(result: Any, body: int | None) -> Any:
    if body is None:
        return result
    if not isinstance(result, Ensemble):
        raise InputError("--body is for ensembles; the file holds one body")
    if not 0 <= body < len(result):
        raise InputError(f"--body must be a number from 0 to {len(result) - 1}; got {body}")
    return result[body]
