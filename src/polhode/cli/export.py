"""``polhode export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..physics.body import Body
from ..results.store import trajectory_store
from ..viewer.animation import RATE, SIZE, SUFFIXES, animate
from .console import app, examples, guarded
from .view import trajectory_in

EXPORT_HELP = examples(
    "polhode export run.zarr run.nc", "polhode export run.nc --to gif", "polhode export run.nc spin.mp4 --speed 0.25",
    "polhode export run.nc.partial.zarr so_far.zarr --overwrite",
)  # fmt: skip
FILMS = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)


@app.command("export", epilog=EXPORT_HELP)
@guarded
def export_command(
    source: Annotated[Path, typer.Argument(help="The file of a finished or unfinished run: .zarr or .nc.")],
    path: Annotated[
        Path | None,
        typer.Argument(help="The new file: .nc (NetCDF) or .zarr; .gif or .mp4 (film); .glb (scene for Blender)."),
    ] = None,
    to: Annotated[str, typer.Option(help="The kind of the new file, if its name is left out: gif, mp4, glb.")] = "",
    speed: Annotated[float | None, typer.Option(help="Film, scene: units of time per second.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Film, scene: longest duration (film: 12).")] = None,
    fps: Annotated[int, typer.Option(help="Film: pictures per second.")] = RATE,
    size: Annotated[tuple[int, int], typer.Option(help="Film: width and height in pixels.")] = SIZE,
    mesh: Annotated[Path | None, typer.Option(help="Film, scene: draw this mesh (.stl, .obj, .ply).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy a run to NetCDF or Zarr, with bounded memory; or write it as a film (GIF, MP4) or moving scene (glTF)."""
    if to and to not in FILMS:
        raise InputError(f"--to must be one of {', '.join(FILMS)}; got {to}")
    if path is None:
        if not to:
            raise InputError("give the name of the new file, or --to gif, mp4 or glb")
        path = source.with_name(f"{source.name.removesuffix(source.suffix)}.{to}")
    if path.suffix.lower() in SUFFIXES:
        if to and path.suffix.lower() != f".{to}":
            raise InputError(f"--to {to} does not fit the name {path}; leave one of them out")
        sol = trajectory_in(source)
        body = None if mesh is None else Body.from_mesh(mesh)
        made = animate(sol, path, speed=speed, seconds=seconds, fps=fps, size=size, body=body, overwrite=overwrite)
        typer.echo(f"written       {made}")
        return
    if speed is not None or seconds is not None or mesh is not None:
        raise InputError("--speed, --seconds and --mesh are for films and scenes: .gif, .mp4, .glb")
    trajectory_store.export(source, path, overwrite)
    copy = trajectory_store.load(path)
    info = getattr(copy, "info", None)  # an ensemble has none
    description = f"{len(copy)} bodies, {copy.method}" if info is None else f"{info.method}, {info.steps} steps"
    typer.echo(f"written       {path}: {description}, {copy.status}")
