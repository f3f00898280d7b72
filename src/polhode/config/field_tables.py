"""The tables of a file that describe torques: [field], and [orbit] and [facets], which several fields share."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from ..physics import fields
from ..physics.body import Body
from ..physics.facets import Facets, facets_of
from ..physics.fields import Field as BoundField
from ..physics.meshes import UNITS
from ..physics.path_input import OEM, path_of
from ..physics.paths import Path as Motion
from .toml import (
    Fault,
    Positive,
    Strict,
    Vector,
    Whole,
    at,
    key,
    nearest,
    needed,
    one_of,
    python_field,
    toml,
    validated,
    within,
)

Absent = SkipJsonSchema[None]

# --- [orbit] ----------------------------------------------------------------------------------------

ANGLES = ("inclination", "node", "argument")
ELEMENTS = ("semi_major_axis", "periapsis", OEM, "times")
"""The keys of which one says how the orbit is given: by its elements, by a file, or by a table."""

ALONGSIDE_ORBIT = {
    "eccentricity": ELEMENTS[:2], "periapsis_time": ELEMENTS[:2], **dict.fromkeys((*ANGLES, "degrees"), ELEMENTS[:2]),
    "epoch": (OEM,), "segment": (OEM,), "positions": ("times",), "velocities": ("times",),
}  # fmt: skip
"""The keys of an orbit, and those among `ELEMENTS` that each goes with."""


class OrbitPart(Strict):
    """The orbit of the body about an attracting centre: elements, a file, or a table. The centre is the origin."""

    mu: Positive = needed("a number above 0: G M of the attracting centre", 3.986004418e14)
    semi_major_axis: float | Absent = key("a number: a, above 0 (below 0 for a hyperbola)", 6.878e6)
    periapsis: Positive | Absent = key("a number above 0: the smallest distance from the centre", 6.778e6)
    eccentricity: Annotated[float, Field(ge=0)] | Absent = key("a number of at least 0 (default: 0, a circle)", 0.01)
    inclination: float | Absent = key("an angle: between the orbit and the x-y plane of space (default: 0)", 1.7)
    node: float | Absent = key("an angle: longitude of the ascending node (default: 0)", 0.5)
    argument: float | Absent = key("an angle: argument of the periapsis (default: 0)", 0.2)
    periapsis_time: float | Absent = key("a number: a time at which the body is at the periapsis (default: 0)", 0.0)
    degrees: bool | Absent = key("true or false: these angles are in degrees (default: false, radians)", True)
    oem: str | Absent = key("an Orbit Ephemeris Message (CCSDS), in metres and seconds", "flyby.oem")
    epoch: str | Absent = key("the date of t = 0 in the file, in quotes (default: its first)", "2029-04-13T21:46:00")
    segment: Whole | Absent = key("a whole number of at least 1: the segment of the file", 1)
    times: list[float] | Absent = key("a list of increasing times", [0.0, 60.0])
    positions: list[Vector] | Absent = key(
        "three numbers for each of the times: the body seen from the centre", [[7e6, 0.0, 0.0], [6.98e6, 4.5e5, 0.0]]
    )
    velocities: list[Vector] | Absent = key(
        "three numbers for each of the times", [[0.0, 7.5e3, 0.0], [-4.9e2, 7.5e3, 0.0]]
    )

    @model_validator(mode="after")
    def _whole(self) -> OrbitPart:
        how = one_of(self, "orbit", *ELEMENTS)
        for name, kinds in ALONGSIDE_ORBIT.items():
            if getattr(self, name) is not None and how not in kinds:
                raise Fault(f"orbit.{name}", f"this goes with {' or '.join(kinds)}, not with {how}; remove one of them")
        return self

    def motion(self, folder: Path) -> Motion:
        """The orbit; names of files are relative to a folder."""
        given = self.model_dump(exclude_none=True)
        if given.pop("degrees", False):
            given |= {name: math.radians(given[name]) for name in ANGLES if name in given}
        if OEM in given:
            given[OEM] = str(folder / given[OEM])
        return path_of(given)


# --- [facets] ---------------------------------------------------------------------------------------

SURFACES = ("box", "mesh", "normals")


class PlatePart(Strict):
    """A thin plate with two sides."""

    centre: Vector = needed("three numbers: from the centre of mass to the middle of the plate", [0.0, 0.7, 0.0])
    normal: Vector = needed("three numbers: a direction at right angles to the plate", [1.0, 0.0, 0.0])
    area: Positive = needed("a number above 0: of one side", 0.4)


class FacetsPart(Strict):
    """The surface on which air and light act, in the axes of the body; facets do not shade each other."""

    box: Vector | Absent = key("three numbers: the edges of a box along x, y, z", [0.6, 0.6, 0.8])
    mesh: str | Absent = key("a closed surface of triangles in an STL, OBJ or PLY file", "part.stl")
    unit: str | Absent = key("the length unit of the mesh", "mm", schema={"enum": list(UNITS)})
    centre: Vector | Absent = key(
        "three numbers: the centre of mass, seen from the middle of the box or in the axes of the mesh",
        [0.0, 0.03, 0.02],
    )
    normals: list[Vector] | Absent = key("a list of unit vectors that point outwards", [[1.0, 0.0, 0.0]])
    areas: list[float] | Absent = key("a list of areas, one for each of the normals", [0.4])
    centres: list[Vector] | Absent = key("a list of points, seen from the centre of mass", [[0.3, 0.0, 0.0]])
    plates: list[PlatePart] | None = key(
        "a list of plates, beside the other facets",
        [{"centre": [0.0, 0.7, 0.0], "normal": [1.0, 0.0, 0.0], "area": 0.4}],
    )

    @model_validator(mode="after")
    def _whole(self) -> FacetsPart:
        how = one_of(self, "facets", *SURFACES, none=self.plates is not None)
        alongside = {"unit": ("mesh",), "centre": ("box", "mesh"), "areas": ("normals",), "centres": ("normals",)}
        for name, kinds in alongside.items():
            if getattr(self, name) is not None and how not in kinds:
                raise Fault(f"facets.{name}", f"this goes with {' or '.join(kinds)}; remove it")
        return self

    def surface(self, folder: Path) -> Facets:
        """The facets; names of files are relative to a folder."""
        given = self.model_dump(exclude_none=True)
        return facets_of(given | ({"mesh": str(folder / given["mesh"])} if "mesh" in given else {}))


# --- what fields share ------------------------------------------------------------------------------

SHARED = ("orbit", "facets")
"""Keywords of fields that a file may give once, as tables."""


@dataclasses.dataclass(frozen=True)
class Shared:
    """The orbit and the surface that the fields of a file share; each may be None."""

    orbit: Motion | None = None
    facets: Facets | None = None

    @classmethod
    def of(cls, orbit: OrbitPart | None, facets: FacetsPart | None, folder: Path) -> Shared:
        """Build them from their tables."""
        return cls(
            None if orbit is None else _orbit("orbit", orbit, folder),
            None if facets is None else _surface("facets", facets, folder),
        )

    def for_field(self, name: str, known: list[str], parameters: dict[str, Any]) -> dict[str, Any]:
        """Those that a field takes and does not have of its own.

        Drag with a velocity needs no orbit. Light needs none unless a distance from the Sun says that the orbit is
        about the Sun.
        """
        apart = {"facet_drag": "velocity" in parameters, "radiation_pressure": "distance" not in parameters}
        found = {"facets": self.facets, "orbit": None if apart.get(name) else self.orbit}
        return {word: x for word, x in found.items() if word in known and word not in parameters and x is not None}

    def end(self, t0: float, orbits: float, dt: float | None) -> float:
        """The end of a run over a number of orbits; with a step size, that of the step in which it is reached."""
        if self.orbit is None:
            raise Fault("run.orbits", "this needs the table [orbit]; add it, or give t_end instead")
        period = getattr(self.orbit, "period", math.inf)  # a table or a file has none
        if not math.isfinite(period):
            raise Fault("run.orbits", "this needs an orbit by elements with eccentricity < 1; give t_end instead")
        span = orbits * period
        steps = span / abs(dt) if dt else 0.0
        return t0 + (math.ceil(steps - 1e-9) * abs(dt) if dt and math.isfinite(steps) else span)


def _orbit(where: str, part: OrbitPart, folder: Path) -> Motion:
    return at(where, lambda: part.motion(folder), OrbitPart.model_fields)


def _surface(where: str, part: FacetsPart, folder: Path) -> Facets:
    return at(where, lambda: part.surface(folder), FacetsPart.model_fields)


# --- [field] ----------------------------------------------------------------------------------------


def _schema(schema: dict[str, Any]) -> None:
    """Add the keywords of every built-in field to the schema."""
    schema["allOf"] = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {
                "required": [word for word in required if word not in SHARED],
                "propertyNames": {"enum": ["name", *known]},
            },
        }
        for name in fields.names()
        for known, required in [_keywords(name)]
    ]
    schema["oneOf"] = [{"required": ["name"]}, {"required": ["python"]}]


def _keywords(name: str) -> tuple[list[str], list[str]]:
    """All keywords of a built-in field in a file, and the required ones; the body comes from the file."""
    known = {name: default for name, default in fields.keywords(name).items() if name != "body"}
    return list(known), [name for name, default in known.items() if default is inspect.Parameter.empty]


class FieldPart(Strict):
    """A field that acts on the body, built-in or user-defined, with its parameters."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_schema)

    name: str | Absent = key("a built-in field", "gravity", schema={"enum": fields.names()})
    python: str | Absent = key("a field of your own: a Python file and a name in it", "mine.py:drag")

    @model_validator(mode="after")
    def _whole(self) -> FieldPart:
        if (self.name is None) == (self.python is None):
            got = "both" if self.name else f"neither, but {', '.join(self.parameters) or 'nothing'}"
            raise ValueError(f'give name or python, for example name = "gravity"; got {got}')
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys other than `name` and `python`."""
        return dict(self.model_extra or {})


def field_of(i: int, contents: FieldPart, body: Body, shared: Shared, path: Path, allow_code: bool) -> BoundField:
    """The field of the i-th table [[field]] of a file."""
    parameters = {
        name: _parameter(f"field.{i}.{name}", name, x, path.parent) for name, x in contents.parameters.items()
    }
    keys = {"name", "python", *parameters}
    if contents.python is None:
        return at(f"field.{i}", lambda: _built_in(i, contents.name or "", parameters, body, shared), keys)
    if not allow_code:
        raise Fault(
            f"field.{i}.python", f"this runs the Python code in {contents.python}; if you trust it, use --allow-code"
        )
    template = at(f"field.{i}.python", lambda: python_field(contents.python or "", path.parent))
    return at(f"field.{i}", lambda: template(**parameters), keys)


def _parameter(where: str, name: str, value: Any, folder: Path) -> Any:
    """A parameter of a field; an orbit or a surface of its own is a table."""
    if isinstance(value, dict) and name == "orbit":
        return _orbit(where, within(where, lambda x: validated(OrbitPart, x), value), folder)
    if isinstance(value, dict) and name == "facets":
        return _surface(where, within(where, lambda x: validated(FacetsPart, x), value), folder)
    _check_value(where, value)
    return value


def _built_in(i: int, name: str, parameters: dict[str, Any], body: Body, shared: Shared) -> BoundField:
    if name not in fields.names():
        raise Fault(f"field.{i}.name", f"unknown field {name!r}; {nearest(name, fields.names())}")
    known, required = _keywords(name)
    for keyword in parameters:
        if keyword not in known:
            raise Fault(f"field.{i}.{keyword}", f"the field {name} has no such keyword; {nearest(keyword, known)}")
    parameters = parameters | shared.for_field(name, known, parameters)
    for keyword in required:
        if keyword not in parameters:
            table = f"; write it as a table, [{keyword}]" if keyword in SHARED else ""
            raise Fault(f"field.{i}.{keyword}", f"is missing; the field {name} needs {', '.join(required)}{table}")
    return fields.make(name, body, **parameters)


def _check_value(location: str, value: Any) -> None:
    """Reject a parameter that is not a number, a list of numbers or a text."""
    if isinstance(value, bool | dict | datetime.date | datetime.time):
        raise Fault(location, f"must be a number, a list of numbers or a text in quotes; got {toml(value)}")
    for inner in value if isinstance(value, list) else ():
        _check_value(location, inner)
