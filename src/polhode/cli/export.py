"""``polhode export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..physics.body import Body
from ..results.ensemble import Ensemble
from ..results.formats.formats import FORMATS, MOVING, OWN, export
from ..results.store import trajectory_store
from ..viewer.animation import RATE, SIZE, animate
from .console import app, examples, guarded
from .states import Euler
from .view import trajectory_in

EXPORT_HELP = examples(
    "polhode export run.zarr run.nc",
    "polhode export run.zarr run.csv --euler ZYX",
    "polhode export run.zarr --to parquet",
    "polhode export run.zarr run.aem --option epoch=2029-04-13T21:46:00 --option system=UTC",
    "polhode export run.nc spin.mp4 --speed 0.25",
    "polhode export run.nc.partial.zarr so_far.zarr --overwrite",
)
FILMS = tuple(suffix.removeprefix(".") for suffix in MOVING)
SUFFIX_OF = {name: one.suffix for name, one in FORMATS.items()} | {name: f".{name}" for name in FILMS}
KINDS = ", ".join(SUFFIX_OF)


@app.command("export", epilog=EXPORT_HELP)
@guarded
def export_command(
    source: Annotated[Path, typer.Argument(help="The file of a finished or unfinished run: .zarr or .nc.")],
    path: Annotated[
        Path | None,
        typer.Argument(help=f"The new file, by its suffix: {' '.join([*OWN, *SUFFIX_OF.values()])}."),
    ] = None,
    to: Annotated[str | None, typer.Option(help=f"The format, instead of a suffix: {KINDS}.")] = None,
    body: Annotated[int | None, typer.Option(help="Of an ensemble, only this body, counting from 0.")] = None,
    speed: Annotated[float | None, typer.Option(help="Film, scene: units of time per second.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Film, scene: longest duration (film: 12).")] = None,
    fps: Annotated[int, typer.Option(help="Film: frames per second.")] = RATE,
    size: Annotated[tuple[int, int], typer.Option(help="Film: width and height in pixels.")] = SIZE,
    mesh: Annotated[Path | None, typer.Option(help="Film, scene: draw this mesh (.stl, .obj, .ply).")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the format, NAME=VALUE, such as epoch=2029-04-13T21:46:00.")
    ] = None,
    euler: Euler = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy the trajectory or ensemble in a file to NetCDF or Zarr, to a format of other programs, or to a film."""
    given = dict(map(_option, option or ())) | ({} if euler is None else {"euler": euler})
    place = _place(source, path, to)
    if to in FILMS or (to is None and place.suffix.lower() in MOVING):
        if given:
            raise InputError(
                "--option and --euler are for formats of other programs; for films use --speed, --seconds and --fps"
            )
        _film(source, place, to, body, mesh, overwrite, speed=speed, seconds=seconds, fps=fps, size=size)
        return
    if speed is not None or seconds is not None or mesh is not None:
        raise InputError("--speed, --seconds and --mesh are for films and scenes: .gif, .mp4, .glb")
    if to is None and place.suffix in OWN and body is None and not given:
        trajectory_store.export(source, place, overwrite)
        result = trajectory_store.load(place)
    else:
        result = _chosen(trajectory_store.load(source), body)
        export(result, place, to, overwrite, **given)
    info = getattr(result, "info", None)  # an ensemble has none
    description = f"{len(result)} bodies, {result.method}" if info is None else f"{info.method}, {info.steps} steps"
    typer.echo(f"written       {place}: {description}, {result.status}")


def _film(
    source: Path, place: Path, to: str | None, body: int | None, mesh: Path | None, overwrite: bool, **how: Any
) -> None:
    """Write a run as a film or a moving scene."""
    if to is not None and place.suffix.lower() != f".{to}":
        raise InputError(f"--to {to} does not match the name {place}; remove one of them")
    sol = trajectory_in(source) if body is None else _chosen(trajectory_store.load(source), body)
    made = animate(sol, place, body=None if mesh is None else Body.from_mesh(mesh), overwrite=overwrite, **how)
    typer.echo(f"written       {made}")


def _place(source: Path, path: Path | None, to: str | None) -> Path:
    """The new file; with a format and no name, it is next to the source."""
    if path is not None:
        return path
    if to not in SUFFIX_OF:
        raise InputError(f"give the name of the new file, or --to with one of {KINDS}")
    return source.with_suffix(SUFFIX_OF[to])


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
