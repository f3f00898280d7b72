"""Problem files: body, field, start, run and output of one computation, in TOML.

    [body]    moments, tensor, shape, mesh or points
    [field]   a built-in field by name with its keywords, or python = "mine.py:name"; several [[field]] are added
    [orbit]   the orbit of all fields that need one
    [facets]  the surface of all fields that act on one
    [start]   attitude, and one of omega, momentum, spatial_omega, spatial_momentum
    [run]     method and dt, or tol; t_end, steps or orbits
    [output]  the files to write

`polhode init` writes an example with a comment on every key.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, field_validator, model_validator
from scipy.spatial.transform import Rotation

from ..errors import InputError
from ..methods import EXAMPLE, methods
from ..physics.body import SHAPES, Body, shape_sizes
from ..physics.meshes import UNITS
from ..physics.problem import Problem
from ..physics.validate import attitude_quaternion, euler_sequence, whole_number
from ..results.trajectory import Trajectory
from ..run.integrator import check_fit
from ..run.kept import Kept
from ..run.schedule import Bounds
from ..run.solve import solve
from ..run.step_count import end_time, length, signed_step
from .field_tables import Absent, FacetsPart, FieldPart, OrbitPart, Shared, field_of
from .toml import Fault, Positive, Quaternion, Strict, Vector, Whole, at, key, nearest, one_of, read, table

Matrix = Annotated[list[Vector], Field(min_length=3, max_length=3)]
Sequence = Annotated[str, Field(pattern="^([xyz]{3}|[XYZ]{3})$")]

IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


# --- the tables of a file ---------------------------------------------------------------------------


class BodyPart(Strict):
    """The rigid body. Lengths and masses are in any consistent units; vectors are in the axes of the body."""

    moments: Vector | Absent = key(
        "three principal moments of inertia, above 0, about the body's axes", [1.0, 2.0, 3.0]
    )
    tensor: Matrix | Absent = key("an inertia tensor, three rows of three numbers in the axes of the body", IDENTITY)
    shape: str | Absent = key(f"a shape: {', '.join(SHAPES)}", "box", schema={"enum": list(SHAPES)})
    dimensions: list[float] | dict[str, float] | Absent = key(
        "the lengths of the shape, by name or in order", {"a": 3.0, "b": 2.0, "c": 1.0}
    )
    mesh: str | Absent = key("a closed surface of triangles in an STL, OBJ or PLY file", "part.stl")
    unit: str | Absent = key(
        "the length unit of the mesh; lengths are converted to metres", "mm", schema={"enum": list(UNITS)}
    )
    points: list[Vector] | Absent = key("a list of points of three numbers", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    masses: float | list[float] | Absent = key("one mass for each point, or one for all, above 0", [1.0, 2.0])
    mass: Positive | Absent = key("a number above 0: the mass of the whole body", 2.0)
    density: Positive | Absent = key("a number above 0: mass per unit of volume", 2700.0)
    centre: Vector | Absent = key("three numbers: the centre of mass of a body given by its inertia", [0.0, 0.0, 0.1])
    pivot: Vector | Absent = key(
        "three numbers: the fixed point about which the body turns (default: the centre of mass)", [0.0, 0.0, -0.1]
    )

    physical: bool | Absent = key(
        "true or false: false accepts positive moments that no mass distribution has, with a warning", False
    )

    @model_validator(mode="after")
    def _whole(self) -> BodyPart:
        what = one_of(self, "body", *ALONGSIDE)
        one_of(self, "body", "mass", "density", none=True)
        for name in ("dimensions", "unit", "masses", "mass", "density", "centre", "physical"):
            if getattr(self, name) is not None and name not in ALONGSIDE[what or ""]:
                others = " or ".join(kind for kind, keys in ALONGSIDE.items() if name in keys)
                raise Fault(f"body.{name}", f"this cannot be combined with {what}, only with {others}; remove it")
        return self


ALONGSIDE = {
    "moments": ("mass", "centre", "physical"),
    "tensor": ("mass", "centre", "physical"),
    "shape": ("dimensions", "mass", "density"),
    "mesh": ("unit", "mass", "density"),
    "points": ("masses",),
}
"""The keys that define a body, and the keys that each may be combined with."""


ATTITUDES = ("quaternion", "rotation_vector", "euler", "matrix")
"""The keys that define an attitude."""

MOTIONS = ("omega", "momentum", "spatial_omega", "spatial_momentum")
"""The ways to give the motion."""


class StartPart(Strict):
    """The state at t0. The attitude maps body to space components (default: the identity)."""

    quaternion: Quaternion | Absent = key(
        "four numbers, the SCALAR FIRST: a unit quaternion, body to space", [1.0, 0.0, 0.0, 0.0]
    )
    rotation_vector: Vector | Absent = key("three numbers: axis times angle, body to space", [0.3, 0.0, 0.0])
    euler: Vector | Absent = key("three Euler angles, body to space, in the order of sequence", [0.1, 0.3, 0.0])
    sequence: Sequence | Absent = key(
        "three letters: XYZ, ZXZ, ... for rotating (body) axes, xyz, zxz, ... for fixed (space) axes", "ZXZ"
    )
    degrees: bool | Absent = key("true or false: angles in degrees (default: false, radians)", True)
    matrix: Matrix | Absent = key("a rotation matrix, three rows of three numbers, body to space", IDENTITY)
    omega: Vector | Absent = key("three numbers: angular velocity in the body frame", [0.0, 0.1, 5.0])
    momentum: Vector | Absent = key("three numbers: angular momentum in the body frame", [0.0, 0.1, 5.0])
    spatial_omega: Vector | Absent = key("three numbers: angular velocity in the space frame", [0.0, 0.0, 5.0])
    spatial_momentum: Vector | Absent = key("three numbers: angular momentum in the space frame", [0.0, 0.0, 5.0])
    t0: float | Absent = key("a number: the time of this state (default: 0)", 0.0)

    @model_validator(mode="after")
    def _whole(self) -> StartPart:
        how = one_of(self, "start", *ATTITUDES, none=True)
        one_of(self, "start", *MOTIONS)
        if (how == "euler") != (self.sequence is not None):
            raise Fault(
                "start.euler", 'euler and sequence go together; write for example sequence = "ZXZ" beside euler'
            )
        if self.degrees is not None and how not in ("euler", "rotation_vector"):
            raise Fault("start.degrees", "this is only for euler or rotation_vector; remove it")
        return self

    def attitude(self) -> Any:
        """The attitude for `ph.Problem`."""
        if self.rotation_vector is not None:
            return Rotation.from_rotvec(self.rotation_vector, degrees=bool(self.degrees))
        if self.euler is not None and self.sequence is not None:
            axes = at("start", lambda: euler_sequence("this", self.sequence, "sequence"), main="sequence")
            return Rotation.from_euler(axes, self.euler, degrees=bool(self.degrees))
        return self.quaternion or self.matrix


class RunPart(Strict):
    """Settings of the run."""

    method: str | Absent = key("a method; `polhode methods` lists them", EXAMPLE)
    dt: float | Absent = key("a number: the step size; a negative one runs backwards in time", 0.01)
    tol: Positive | Absent = key("a number above 0: the error allowed at the end, instead of method and dt", 1e-10)
    step_tol: Positive | Absent = key("a number above 0: the error allowed in each step, instead of tol", 1e-10)
    stops: list[float] | Absent = key("a list of times at which steps must end, with tol: [3.0, 4.5]", [3.0, 4.5])
    max_step: Positive | Absent = key("a number above 0: the longest step allowed, with tol", 0.5)
    t_end: float | Absent = key("a number: the end time; one before t0 runs backwards in time", 20.0)
    steps: Whole | Absent = key("a whole number of at least 1: the number of steps", 1000)
    orbits: Positive | Absent = key("a number above 0: the length of the run in revolutions of [orbit]", 2.0)
    every: Whole | Absent = key("a whole number k of at least 1: record every k-th state", 10)
    times: list[float] | Absent = key("a list of times: record the states at these times", [0.5, 1.0, 2.0])
    samples: Whole | Absent = key("a whole number: record this many states, equally spaced from t0 to the end", 101)
    max_turn: Positive | Absent = key(
        "a number above 0: record states between which the body turns by at most this angle in radians", 0.1
    )
    digits: Whole | Absent = key("a whole number of at least 1: compute with this many digits (slow)", 50)

    @model_validator(mode="after")
    def _whole(self) -> RunPart:
        tol = one_of(self, "run", *TOLERANCES, none=True)
        if tol is not None:
            for name in ("method", "dt", "steps"):
                if getattr(self, name) is not None:
                    raise Fault(
                        f"run.{name}",
                        f"this cannot be combined with {tol}, which chooses method and steps; remove {name} or {tol}",
                    )
        elif self.method is None or self.dt is None:
            missing = "method" if self.method is None else "dt"
            raise ValueError(f"{missing} is missing: give method and dt, or tol = 1e-10 to have them chosen")
        else:
            for name in ("stops", "max_step"):
                if getattr(self, name) is not None:
                    raise Fault(f"run.{name}", f"this is for adaptive steps; give tol or remove {name}")
        one_of(self, "run", *KEPT, none=True)
        one_of(self, "run", *ENDS, none=self.times is not None)
        return self


ENDS = ("t_end", "steps", "orbits")
TOLERANCES = ("tol", "step_tol")
KEPT = ("every", "times", "samples", "max_turn")
"""The keys that give the end, those that choose steps by a tolerance, and those that choose the states to record."""


def resolved(problem: Problem, settings: dict[str, Any], shared: Shared) -> dict[str, Any]:
    """Return settings as keywords of `ph.solve`: `orbits` as an end, `samples` as equally spaced times up to it."""
    if "orbits" in settings:
        settings = dict(settings)
        settings["t_end"] = shared.end(problem.t0, settings.pop("orbits"), settings.get("dt"))
    if "samples" not in settings:
        return settings
    chosen = [name for name in KEPT if name in settings]
    if len(chosen) > 1:
        raise InputError(
            f"give one of {' and '.join(chosen)}: each of them chooses the states that are kept", "samples"
        )
    kept = {name: value for name, value in settings.items() if name != "samples"}
    count, dt, steps = whole_number("samples", settings["samples"]), kept.get("dt"), kept.get("steps")
    counted = None if dt is None or steps is None else problem.t0 + steps * dt
    end = counted if counted is not None else end_time(problem, kept.get("t_end"), backward=True)
    if count < 2:
        raise InputError("samples must be at least 2, the start and the end; got 1", "samples")
    return kept | {"times": np.linspace(problem.t0, end, count)}


def ending(*suffixes: str) -> Any:
    """A file name with one of these suffixes and without control characters."""
    return Field(pattern=rf"^[^\x00-\x1f]*\.({'|'.join(suffixes)})$")


class OutputPart(Strict):
    """The files to write. Paths are relative to the problem file."""

    file: Annotated[str, ending("zarr", "nc")] | Absent = key("a .zarr or .nc file for the states", "spin.zarr")
    plot: Annotated[str, ending("png", "svg", "pdf")] | Absent = key(
        "a .png, .svg or .pdf file for a picture", "spin.png"
    )
    view: Annotated[str, ending("html")] | Absent = key(
        "an .html file that shows the rotating body in a browser", "spin.html"
    )


class Contents(Strict):
    """A problem file for polhode."""

    body: BodyPart = Field(description="a table, [body]: the rigid body; `polhode init` writes an example")
    field: list[FieldPart] = Field(
        [], description="a table, [field], or several, [[field]]: the fields that act on the body"
    )
    orbit: OrbitPart | None = table("a table, [orbit]: the orbit of all fields that need one")
    facets: FacetsPart | None = table("a table, [facets]: the surface of all fields that act on one")
    start: StartPart = Field(description="a table, [start]: attitude and motion; `polhode init` writes an example")
    run: RunPart = Field(description="a table, [run]: method and dt, or tol; `polhode init` writes an example")
    output: OutputPart = Field(OutputPart(), description="a table, [output]: the files to write")

    @field_validator("field", mode="before")
    @classmethod
    def _one_or_several(cls, contents: Any) -> Any:
        return one_or_several(contents)


def one_or_several(contents: Any) -> Any:
    """A list of tables: [field] is one, [[field]] several."""
    return [contents] if isinstance(contents, dict) else contents


def schema() -> dict[str, Any]:
    """The JSON schema of a problem file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Contents.model_json_schema()}
    several = schema["properties"]["field"]
    schema["properties"]["field"] = {"description": several["description"], "anyOf": [several["items"], several]}
    schema["properties"]["output"].pop("default", None)
    return schema


# --- the problem of a file --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ProblemFile:
    """A validated problem file.

    `settings` are keywords of `ph.solve`, and `samples` and `orbits`; `shared` has the orbit and the facets; `file`,
    `plot` and `view` are paths to write, or None.
    """

    problem: Problem
    settings: dict[str, Any]
    shared: Shared
    file: Path | None
    plot: Path | None
    view: Path | None

    def solve(self, **others: Any) -> Trajectory:
        """Run it in memory; keywords are those of `ph.solve` and override the file's. No file is written."""
        settings = {
            name: value for name, value in self.settings.items() if name not in ENDS or not set(ENDS) & set(others)
        }
        return solve(self.problem, **resolved(self.problem, settings | others, self.shared))


def load(path: str | Path, *, allow_code: bool = False) -> ProblemFile:
    """Read a problem file.

    allow_code : allow ``python = "mine.py:name"`` to run that file; otherwise no problem file runs code
    """
    path = Path(path)

    def build(contents: Contents, text: str) -> ProblemFile:
        shared = Shared.of(contents.orbit, contents.facets, path.parent)
        problem = problem_of(contents.body, contents.field, contents.start, shared, path, allow_code)
        settings = {name: value for name, value in contents.run if value is not None}
        _check_run(problem, contents.run, shared)
        return ProblemFile(
            problem,
            settings,
            shared,
            **{keyword: _out(path.parent, keyword, name) for keyword, name in contents.output},
        )

    return read(path, Contents, build)


def _out(folder: Path, keyword: str, name: str | None) -> Path | None:
    """The path of an output file."""
    if name is None:
        return None
    path = folder / name
    if not path.parent.is_dir():
        raise Fault(f"output.{keyword}", f"the folder {path.parent} does not exist; create it first")
    return path


def problem_of(
    described: BodyPart, parts: list[FieldPart], start: StartPart, shared: Shared, path: Path, allow_code: bool
) -> Problem:
    """The problem of the tables [body], [[field]] and [start] of a file."""
    what = next(name for name in ALONGSIDE if getattr(described, name) is not None)
    body = at("body", lambda: _body(described, path.parent), BodyPart.model_fields, what)
    acting = [field_of(i, part, body, shared, path, allow_code) for i, part in enumerate(parts)]
    state = {name: getattr(start, name) for name in (*MOTIONS, "t0")}
    state = {name: value for name, value in state.items() if value is not None}
    attitude_key = next((name for name in ATTITUDES if getattr(start, name) is not None), None)
    at("start", lambda: attitude_quaternion(start.attitude()), main=attitude_key)
    named = {"attitude": start.attitude(), "name": path.stem, **state}
    free = at("start", lambda: Problem(body, **named))
    return at("field", lambda: Problem(body, sum(acting[1:], acting[0]), **named)) if acting else free


def _body(contents: BodyPart, folder: Path) -> Body:
    if contents.moments is not None or contents.tensor is not None:
        centre = contents.centre or [0.0, 0.0, 0.0]
        inertia, physical = contents.moments or contents.tensor, contents.physical is not False
        return Body(inertia, mass=contents.mass, centre=centre, pivot=contents.pivot, physical=physical)
    if contents.shape is not None:
        body = _shape(contents)
    elif contents.mesh is not None:
        body = Body.from_mesh(
            folder / contents.mesh, mass=contents.mass, density=contents.density, unit=contents.unit or "m"
        )
    else:
        body = Body.from_points(contents.points, 1.0 if contents.masses is None else contents.masses)
    return body if contents.pivot is None else body.about(contents.pivot)


def _shape(contents: BodyPart) -> Body:
    name, sizes = contents.shape or "", contents.dimensions or {}
    if name not in SHAPES:
        raise Fault("body.shape", f"unknown shape {name!r}; {nearest(name, list(SHAPES))}")
    keys = shape_sizes(name)
    if isinstance(sizes, list):
        if len(sizes) != len(keys):
            raise Fault("body.dimensions", f"the shape {name} has {', '.join(keys)}; got {len(sizes)} numbers")
        sizes = dict(zip(keys, sizes, strict=True))
    unknown = [name for name in sizes if name not in keys]
    if unknown:
        raise Fault(
            f"body.dimensions.{unknown[0]}", f"the shape {name} has no such length; {nearest(unknown[0], keys)}"
        )
    if not sizes and name != "t_handle":  # t_handle has default lengths
        lengths = ", ".join(f"{name} = 1.0" for name in keys)
        raise Fault("body.shape", f"its lengths are missing; write for example dimensions = {{ {lengths} }}")
    where = "body.dimensions" if contents.dimensions is not None else "body.shape"
    return at(where, lambda: Body.from_shape(name, **sizes, mass=contents.mass, density=contents.density))


def _check_run(problem: Problem, run: RunPart, shared: Shared) -> None:
    """Before the run, reject a method that cannot solve the problem and steps that do not fit the time span."""
    kept = at("run.times", lambda: Kept.of(run.every or 1, run.times, run.max_turn))
    how = {name: value for name, value in run if value is not None}
    end = next((name for name in ENDS if name in how), "t_end")
    t_end = at("run.samples", lambda: resolved(problem, how, shared)).get("t_end")
    if run.steps is None:
        end_of_run = at(f"run.{end}", lambda: end_time(problem, kept.end(t_end), backward=True))
        at("run.times", lambda: kept.check(problem.t0, end_of_run))
        at("run.stops", lambda: Bounds.of(problem.t0, end_of_run, run.stops))
    if run.method is not None and run.dt is not None:
        name, given = run.method, run.dt
        dt = at("run.dt", lambda: signed_step(problem, given, kept.end(t_end), run.steps))
        method = at("run.method", lambda: methods[name])
        at("run.method", lambda: check_fit(method, problem))
        if end in how:
            at(f"run.{end}", lambda: length(problem, method, dt, t_end, run.steps))


__all__ = [
    "ProblemFile",
    "load",
    "schema",
]
