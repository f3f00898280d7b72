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

# [orbit], [facets]                 # a satellite: `polhode init --satellite` writes an example of its own

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

[run]                               # method and dt, or tol; t_end, steps or orbits
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

SATELLITE = """\
# A satellite for polhode. Run it with `polhode run` and the name of this file; --csv a.csv --euler ZYX writes angles.
# Lines that begin with # are comments; they show the other keys. `polhode init` explains the tables of all bodies.
# Metres, kilograms, seconds, tesla; angles are in radians unless degrees = true. The origin of the space frame is the
# centre of the Earth; its axes are inertial. Paths are relative to this file.

[body]
tensor = [[4.0, 0.4, 0.3], [0.4, 5.0, 0.5], [0.3, 0.5, 3.0]]    # kg m^2, body axes, about the centre of mass

[orbit]                             # of all fields below
mu = 3.986004418e14                 # G M of the Earth
semi_major_axis = 6.878e6           # or periapsis; for a circle, the radius
inclination = 97.4                  # between the orbit and the x-y plane of space
degrees = true                      # of inclination, node and argument; default: radians
# eccentricity = 0.001
# node = 30.0                       # longitude of the ascending node
# argument = 90.0                   # of the periapsis
# periapsis_time = 0.0              # a time at which the satellite is at the periapsis
# periapsis = 6.778e6               # instead of semi_major_axis: the smallest distance from the centre
# oem = "orbit.oem"                 # instead of elements: an Orbit Ephemeris Message (CCSDS)
# epoch = "2029-04-13T21:46:00"     #   date of t = 0; default: its first
# segment = 1                       #   if it has several
# times = [0.0, 60.0]               # instead of elements: a table of
# positions = [[6.878e6, 0.0, 0.0], [6.863e6, -5.8e4, 4.5e5]]
# velocities = [[0.0, -9.8e2, 7.55e3], [-4.96e2, -9.78e2, 7.53e3]]   # optional

[facets]                            # the surface, in body axes; of all fields below
box = [0.6, 0.6, 0.8]               # edges
centre = [0.0, 0.03, 0.02]          # the centre of mass, seen from the middle of the box
plates = [{ centre = [0.0, 0.7, 0.0], normal = [1.0, 0.0, 0.0], area = 0.4 }]   # two sides; centre: of the plate
# mesh = "part.stl"                 # instead of a box: a closed surface, its
# unit = "mm"                       #   unit of length, and optionally centre, in its axes
# normals = [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]   # instead of a box: unit vectors that point outwards
# areas = [0.4, 0.4]
# centres = [[0.3, 0.0, 0.0], [-0.3, 0.0, 0.0]]   #   from the centre of mass

[[field]]
name = "orbit_gravity_gradient"

[[field]]
name = "facet_drag"
density = 5.0e-13                   # kg/m^3 at the distance
radius = 6.878e6                    # from the centre; it falls with height by the factor e over the
scale_height = 6.0e4
# coefficient = 2.2

[[field]]                           # a magnetic dipole of the body in the field of the Earth
name = "residual_dipole"
moment = [0.05, -0.1, 0.08]         # A m^2, body axes
strength = 7.7e15                   # of the dipole of the Earth, T m^3
tilt = 2.967                        # its angle to the space z axis, radians
rate = 7.292e-5                     # radians per second
# phase = 0.0

# [[field]]
# name = "radiation_pressure"       # without the shadow of the Earth
# pressure = 4.54e-6                # N/m^2
# sun = [0.8, -0.5, 0.3]            # direction to the Sun, space axes
# specular = 0.3                    # fractions of the light that are reflected
# diffuse = 0.2

[start]                             # body to space
euler = [3.0, -2.0, 4.0]
sequence = "XYZ"                    # upper case: axes of the body
degrees = true
omega = [0.0, 0.001, 0.0]           # rad/s, body frame

[run]
method = "METHOD"                   # `polhode methods` lists them
dt = 1.0
orbits = 2                          # length of the run, to the next step; or t_end = 11353.0
every = 10                          # record every 10th state
# tol = 1e-6                        # instead of method and dt: error allowed at the end
# samples = 201                     # instead of every

[output]
file = "problem.zarr"
plot = "problem.png"
view = "problem.html"
"""

INIT_HELP = examples(
    "polhode init",
    "polhode init top.toml && polhode run top.toml",
    "polhode init sat.toml --satellite",
    "polhode init --schema > problem.schema.json",
)


def example(file: Path, satellite: bool = False) -> str:
    """A complete problem file with a comment on every key: a top, or a satellite."""
    text = SATELLITE if satellite else TEXT
    text = text.replace('"METHOD"'.ljust(20), f'"{EXAMPLE}"'.ljust(20))
    for suffix in (".zarr", ".png", ".html"):
        text = text.replace(f'"problem{suffix}"', json.dumps(file.stem + suffix, ensure_ascii=False))
    return text


@app.command("init", epilog=INIT_HELP)
@guarded
def init_command(
    file: Annotated[Path, typer.Argument(help="The problem file to write.")] = Path("problem.toml"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    satellite: Annotated[bool, typer.Option("--satellite", help="A satellite in its orbit instead of a top.")] = False,
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
    file.write_text(example(file, satellite), encoding="utf-8")
    typer.echo(f"written       {file}   edit it, then run: polhode run {file}")
