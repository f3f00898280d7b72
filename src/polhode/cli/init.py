"""``polhode init``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .console import EXAMPLE, app, examples, guarded

TEXT = """\
# A problem for polhode. Run it with `polhode run` and the name of this file.
# Lines that begin with # are comments; they show the other keys.
# Use any consistent units, here metres, kilograms and seconds; angles are in radians.
# The body frame is fixed in the body, the space frame is inertial. Paths are relative to this file.

[body]                              # exactly one of shape, moments, tensor, mesh, points
shape = "cylinder"                  # a disc, its axis along z; also box, ellipsoid, cone, torus, t_handle
dimensions = { radius = 0.05, height = 0.02 }
mass = 0.2                          # or density = 2700.0
pivot = [0.0, 0.0, -0.04]           # the fixed point, in body axes; default: the centre of mass
# moments = [1.0, 2.0, 3.0]         # principal moments about the body axes; optional: mass, centre
# tensor = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]
# physical = false                  # with moments or tensor: allow unphysical moments, such as 3, 3, 9
# mesh = "part.stl"                 # a closed surface; with density or mass, and unit = "mm"
# points = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
# masses = [1.0, 2.0, 3.0]          # of the points

[[field]]                           # acts on the body; several are added; none for a free body
name = "uniform_gravity"            # a built-in field (docs/fields.md) and its keywords
g = [0.0, 0.0, -9.80665]            # space frame

[[field]]
name = "linear_drag"                # torque -k omega, body frame
coefficients = 1.0e-6

# [[field]]
# python = "mine.py:drag"           # your own torque or potential: RUNS mine.py, so it needs --allow-code
# k = 0.1                           # its parameters

[start]
rotation_vector = [0.3, 0.0, 0.0]   # attitude, body to space: axis times angle; default: the identity
# quaternion = [1.0, 0.0, 0.0, 0.0] # or a unit quaternion, SCALAR FIRST
# euler = [0.0, 17.0, 0.0]          # or Euler angles
# sequence = "ZXZ"                  #   about body axes; "zxz" about space axes
# degrees = true                    #   for euler and rotation_vector
# matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
omega = [0.0, 0.0, 200.0]           # angular velocity, body frame; exactly one of the four
# momentum = [0.0, 0.0, 0.05]       # angular momentum, body frame
# spatial_omega = [0.0, 0.0, 5.0]   # angular velocity, space frame
# spatial_momentum = [0.0, 0.0, 0.1] # angular momentum, space frame
# t0 = 0.0                          # time of this state

[run]                               # method and dt, or tol; t_end or steps
method = "METHOD"                   # `polhode methods` lists them
dt = 0.001
# tol = 1e-8                        # instead of method and dt: error allowed at the end
# step_tol = 1e-8                   # instead of tol: error allowed in each step
# stops = [0.05, 0.1]               # with tol: times at which steps must end
# max_step = 0.02                   # with tol: the longest step allowed
t_end = 2.0
# steps = 2000
every = 4                           # record every 4th state; default: all
# times = [0.5, 1.0, 2.0]           # instead of every: record the states at these times
# samples = 101                     # or this many states, equally spaced in time
# max_turn = 0.1                    # or states at most this angle apart, in radians
# digits = 50                       # compute with this many digits (slow)

[output]                            # all optional
file = "problem.zarr"               # the states; or .nc
plot = "problem.png"                # energy, momentum, attitude, polhode; or .svg, .pdf
view = "problem.html"               # the rotating body, in a browser
"""

INIT_HELP = examples(
    "polhode init", "polhode init top.toml && polhode run top.toml", "polhode init --schema > problem.schema.json"
)


def example(file: Path) -> str:
    """A complete problem file with a comment on every key."""
    text = TEXT.replace('"METHOD"'.ljust(20), f'"{EXAMPLE}"'.ljust(20))
    for suffix in (".zarr", ".png", ".html"):
        text = text.replace(f'"problem{suffix}"', json.dumps(file.stem + suffix, ensure_ascii=False))
    return text


@app.command("init", epilog=INIT_HELP)
@guarded
def init_command(
    file: Annotated[Path, typer.Argument(help="The problem file to write.")] = Path("problem.toml"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of problem files instead.")] = False,
) -> None:
    """Write an example problem file, complete and with a comment on every key."""
    if schema:
        from ..config import problem_file

        typer.echo(json.dumps(problem_file.schema(), indent=1))
        return
    if file.suffix != ".toml":
        raise InputError(f"a problem file's name must end in .toml; got {file}")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists; choose another name or use --overwrite")
    if not file.parent.is_dir():
        raise InputError(f"the folder {file.parent} does not exist; create it first")
    file.write_text(example(file), encoding="utf-8")
    typer.echo(f"written       {file}   edit it, then run: polhode run {file}")
