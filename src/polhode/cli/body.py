"""``polhode body``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..physics.body import SHAPES, Body, shape_sizes
from ..physics.meshes import SUFFIXES, UNITS, scale_of
from .console import AsJson, app, console, examples, guarded, print_json, sheet

BODY_HELP = examples(
    "polhode body part.stl --density 2700 --unit mm",
    "polhode body box 1 2 3 --mass 5",
    "polhode body t_handle 1 0.1 0.5 0.1 --json",
    "polhode body robot.urdf --link arm",
)

ROBOTS = {".urdf": Body.from_urdf, ".sdf": Body.from_sdf, ".xml": Body.from_mjcf}
"""Files of robots by suffix."""

WHAT = f"A mesh ({', '.join(SUFFIXES)}), a shape ({', '.join(SHAPES)}) or a robot ({', '.join(ROBOTS)})."


@app.command("body", epilog=BODY_HELP)
@guarded
def body_command(
    what: Annotated[str, typer.Argument(help=WHAT)],
    sizes: Annotated[list[float] | None, typer.Argument(help="Dimensions of the shape, as in ph.Body.")] = None,
    mass: Annotated[float | None, typer.Option(help="Mass (default: 1, unless a density is given).")] = None,
    density: Annotated[
        float | None, typer.Option(help="Mass per unit of volume (per cubic metre with --unit).")
    ] = None,
    unit: Annotated[str, typer.Option(help=f"Unit of the lengths: {', '.join(UNITS)}. Results are in metres.")] = "m",
    link: Annotated[str | None, typer.Option(help="Name of the link of a robot (in MJCF, of the body).")] = None,
    as_json: AsJson = False,
) -> None:
    """Print mass, centre of mass, inertia tensor, principal moments and axes of a mesh, a shape or a robot's link."""
    of_robot = Path(what).suffix.lower() in ROBOTS
    if of_robot:
        body = _link_of(
            what,
            link,
            {"dimensions": sizes, "--mass": mass, "--density": density, "--unit": None if unit == "m" else unit},
        )
    elif link is not None:
        raise InputError(f"--link is for robots, files that end in {', '.join(ROBOTS)}; got {what}")
    else:
        body = _body_of(what, sizes or [], mass, density, unit)
    if as_json:
        print_json(_facts(body))
        return
    typer.secho(Path(what).name, bold=True)
    units = (
        "SI; in the axes of the link"
        if of_robot
        else "metres and the given unit of mass; in the axes of the mesh or shape"
    )
    typer.echo(f"units         {units}")
    typer.echo(f"mass          {body.mass:.10g}")
    typer.echo(f"centre        {_row(body.centre)}")
    rows = [[name, *(f"{x:.10g}" for x in row)] for name, row in zip("xyz", body.tensor, strict=True)]
    console().print(sheet("Inertia tensor about the centre of mass", ("", *"xyz"), rows, numbers=3))
    lines = [
        [f"{moment:.10g}", *(f"{x:.8f}" for x in axis)] for moment, axis in zip(body.moments, body.axes.T, strict=True)
    ]
    console().print(sheet("Principal moments, and their axes", ("moment", *"xyz"), lines, numbers=4))


def _link_of(what: str, link: str | None, options: dict[str, Any]) -> Body:
    """The link of a robot; options of other bodies are refused."""
    given = [name for name, value in options.items() if value not in (None, [])]
    if given:
        raise InputError(f"a robot file gives mass and lengths in SI units; remove {' and '.join(given)}")
    return ROBOTS[Path(what).suffix.lower()](what, link)


def _body_of(what: str, sizes: list[float], mass: float | None, density: float | None, unit: str) -> Body:
    if what in SHAPES:
        words = shape_sizes(what)
        if len(sizes) > len(words):
            raise InputError(f"the shape {what} takes {', '.join(words)}; got {len(sizes)} lengths")
        scale = scale_of(unit)
        lengths = {word: scale * size for word, size in zip(words, sizes, strict=False)}
        return Body.from_shape(what, **lengths, mass=mass, density=density)
    if sizes or not Path(what).suffix:
        shapes, files, robots = ", ".join(SHAPES), ", ".join(SUFFIXES), ", ".join(ROBOTS)
        raise InputError(
            f"{what!r} must be a shape followed by its dimensions ({shapes}), a mesh ({files}) or a robot ({robots})"
        )
    return Body.from_mesh(what, mass=mass, density=density, unit=unit)


def _facts(body: Body) -> dict[str, Any]:
    return {
        "mass": body.mass,
        "centre": body.centre.tolist(),
        "tensor": body.tensor.tolist(),
        "moments": body.moments.tolist(),
        "axes": body.axes.T.tolist(),
    }


def _row(values: Any) -> str:
    return "(" + ", ".join(f"{float(x):.10g}" for x in values) + ")"
