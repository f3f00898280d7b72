"""Surfaces made of flat facets, for forces on the surface: normals, areas and centres in the axes of the body."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .validate import apart, finite_number, positive, real_array, vector, whole_number

MOST_ANGLES = 10_000
"""Largest number of angles of a mean torque, which takes a time of its square."""

UNIT = 1e-6
"""Allowed deviation of a normal from unit length; it is then normalised."""


class MeanTorque(NamedTuple):
    """Torque averaged over the rotation and the orbit."""

    spin: float
    """Component along the spin axis; it changes the rate of rotation."""
    obliquity: float
    """Component that increases the angle between the spin axis and the normal of the orbit."""


@dataclasses.dataclass(frozen=True, eq=False)
class Facets:
    """A surface of flat facets. No facet shades another one, so the surface should be convex.

    Surfaces are added with ``+``: ``Facets.box(1, 2, 3) + Facets.plate([0, 2, 0], [1, 0, 0], 4.0)``.

    Attributes
    ----------
    normals : (n, 3) unit vectors that point outwards
    areas : (n,)
    centres : (n, 3) from the centre of mass, about which the torques are taken, to the centre of each facet

    Examples
    --------
    >>> box = ph.Facets.box(1.0, 2.0, 3.0)
    >>> float(box.areas.sum())
    22.0
    """

    normals: np.ndarray
    areas: np.ndarray
    centres: np.ndarray

    def __post_init__(self) -> None:
        normals, centres = (_rows(name, getattr(self, name)) for name in ("normals", "centres"))
        areas = real_array(self.areas, "areas must be one number for each facet", key="areas")
        if areas.shape != (len(normals),) or len(centres) != len(normals):
            raise InputError(
                f"normals and centres must be three numbers, areas one number for each facet; got shapes "
                f"{normals.shape}, {centres.shape}, {areas.shape}",
                "areas",
            )
        if not (areas > 0).all() or not np.isfinite(areas).all():
            raise InputError(f"areas must be positive and finite; got {areas.min()!r}", "areas")
        lengths = np.linalg.norm(normals, axis=1)
        if np.abs(lengths - 1).max() > UNIT:
            worst = float(lengths[np.abs(lengths - 1).argmax()])
            raise InputError(f"normals must have length 1; got one of length {apart(worst, 1.0)[0]}, so divide by it")
        for name, value in (("normals", normals / lengths[:, None]), ("areas", areas), ("centres", centres)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.areas)

    def __add__(self, other: Any) -> Facets:
        if not isinstance(other, Facets):
            return NotImplemented
        parts = [np.concatenate([getattr(x, name) for x in (self, other)]) for name in ("normals", "areas", "centres")]
        return Facets(*parts)

    def __repr__(self) -> str:
        return f"Facets({len(self)} facets, area {self.areas.sum():g})"

    @classmethod
    def from_triangles(cls, vertices: Any, faces: Any, centre: Any = (0.0, 0.0, 0.0)) -> Facets:
        """Triangles, counterclockwise seen from outside: vertices (n, 3) and the indices (m, 3) of their corners.

        centre : centre of mass, in the axes of the vertices
        """
        points, corners = _rows("vertices", vertices), real_array(faces, "faces must be rows of three indices")
        if corners.ndim != 2 or corners.shape[1] != 3 or not len(corners) or (corners != corners.round()).any():
            raise InputError(f"faces must be rows of three indices; got shape {corners.shape}", "faces")
        if corners.min() < 0 or corners.max() >= len(points):
            raise InputError(f"faces refer to vertices from 0 to {len(points) - 1}; got others", "faces")
        a, b, c = np.moveaxis(points[corners.astype(int)] - vector("centre", centre), 1, 0)
        doubled = np.cross(b - a, c - a)
        sizes = np.linalg.norm(doubled, axis=1)
        if not (sizes > 0).all():
            raise InputError(f"face {int(sizes.argmin())} has no area; remove it", "faces")
        return cls(doubled / sizes[:, None], sizes / 2, (a + b + c) / 3)

    @classmethod
    def from_mesh(cls, path: Any, *, unit: str = "m", centre: Any = None) -> Facets:
        """The closed surface in an STL, OBJ or PLY file (extra ``polhode[mesh]``), as in `Body.from_mesh`.

        centre : centre of mass, in metres (default: that of the solid with uniform density)
        """
        from . import meshes

        surface = meshes.read(path, unit)
        return cls.from_triangles(surface.vertices, surface.faces, surface.integrals()[1] if centre is None else centre)

    @classmethod
    def box(cls, a: float, b: float, c: float, centre: Any = (0.0, 0.0, 0.0)) -> Facets:
        """The six faces of a box with edges a, b, c along the axes.

        centre : centre of mass, seen from the middle of the box
        """
        edges = np.array([positive(name, x) for name, x in zip("abc", (a, b, c), strict=True)])
        normals = np.concatenate([np.eye(3), -np.eye(3)])
        areas = np.tile(edges.prod() / edges, 2)
        return cls(normals, areas, normals * np.tile(edges, 2)[:, None] / 2 - vector("centre", centre))

    @classmethod
    def plate(cls, centre: Any, normal: Any, area: float) -> Facets:
        """A thin plate with two sides; `centre` is seen from the centre of mass."""
        n, at = vector("normal", normal), vector("centre", centre)
        length = float(np.linalg.norm(n))
        if length == 0:
            raise InputError("normal must not be zero; it gives the direction of the plate", "normal")
        return cls(np.array([n / length, -n / length]), np.full(2, positive("area", area)), np.array([at, at]))

    def radiation_torque(self, sun: Any, pressure: float, specular: Any = 0.0, diffuse: Any = 0.0) -> np.ndarray:
        """Torques (..., 3) of light from the directions `sun` (..., 3), unit vectors in the axes of the body.

        The formula is that of the field `radiation_pressure`.
        """
        specular, diffuse = self.reflections(specular, diffuse)
        pressure = positive("pressure", pressure)
        expected = "sun must be directions of three numbers"
        directions = real_array(sun, expected, key="sun")
        if directions.shape[-1:] != (3,):
            raise InputError(f"{expected}; got shape {directions.shape}", "sun")
        cosines = np.maximum(directions @ self.normals.T, 0.0)
        along = pressure * self.areas * cosines * (1 - specular)
        across = 2 * pressure * self.areas * cosines * (specular * cosines + diffuse / 3)
        arms = np.cross(self.centres, self.normals)
        return -np.cross(along @ self.centres, directions) - across @ arms

    def mean_radiation_torque(
        self,
        pressure: float,
        axis: Any,
        obliquity: float,
        specular: Any = 0.0,
        diffuse: Any = 0.0,
        angles: int = 72,
    ) -> MeanTorque:
        """Torque of sunlight averaged over the rotation about an axis and over a circular orbit (YORP torque).

        With w the spin axis and N the normal of the orbit, at the angle eps, the components are T . w and
        T . ((N . w) w - N)/sin(eps) (Capek and Vokrouhlicky 2004). Heat that is emitted at once, by Lambert's law, acts
        as diffuse reflection: this is Rubincam's model for diffuse = 1. The mean torque of absorbed light is zero for a
        closed surface. Reflections are as in `radiation_torque`.

        axis : direction of the spin, in the axes of the body
        obliquity : eps, radians
        angles : number of angles of the rotation, and of places on the orbit (72: within a percent or two)
        """
        w = vector("axis", axis)
        if not w.any():
            raise InputError(f"axis must not be zero; got {axis!r}", "axis")
        w = w / np.linalg.norm(w)
        tilt, count = finite_number("obliquity", obliquity), whole_number("angles", angles)
        if count > MOST_ANGLES:
            raise InputError(f"angles must be at most {MOST_ANGLES}; got {count}", "angles")
        first = np.cross(w, np.eye(3)[np.abs(w).argmin()])
        first /= np.linalg.norm(first)
        second = np.cross(w, first)
        phases = 2 * math.pi * np.arange(count) / count
        turn, side = np.cos(phases)[:, None], np.sin(phases)[:, None]
        # axes that do not rotate: z along w, and x, which is ((N . w) w - N)/sin(eps), so N = (-sin eps, 0, cos eps)
        x_axis, y_axis = turn * first - side * second, side * first + turn * second
        total = np.zeros(2)
        for place in phases:  # on the orbit; one at a time, for the memory
            x, y, z = math.cos(place) * math.cos(tilt), math.sin(place), math.cos(place) * math.sin(tilt)
            torque = self.radiation_torque(x * x_axis + y * y_axis + z * w, pressure, specular, diffuse)
            total += (torque @ w).mean(), (torque * x_axis).sum(axis=1).mean()
        spin, across = (total / count).tolist()
        return MeanTorque(spin, across)

    def reflections(self, specular: Any, diffuse: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fractions of light reflected specularly and diffusely, one for each facet; the rest is absorbed."""
        found = []
        for name, value in (("specular", specular), ("diffuse", diffuse)):
            given = real_array(value, f"{name} must be one number, or one for each facet", key=name)
            if given.shape not in ((), (len(self),)):
                raise InputError(
                    f"{name} must be one number, or one for each of the {len(self)} facets; got shape {given.shape}",
                    name,
                )
            found.append(np.broadcast_to(given, len(self)))
        if not ((found[0] >= 0) & (found[1] >= 0) & (found[0] + found[1] <= 1)).all():
            worst = int(np.abs(found[0] + found[1] - 0.5).argmax())
            raise InputError(
                "specular and diffuse must not be negative, and their sum at most 1; got "
                f"{found[0][worst]:g} and {found[1][worst]:g}",
                "specular",
            )
        return found[0], found[1]


def _rows(name: str, value: Any) -> np.ndarray:
    expected = f"{name} must be three numbers for each facet"
    rows = real_array(value, expected, key=name)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows) or not np.isfinite(rows).all():
        raise InputError(f"{expected}, all of them finite; got an array of shape {rows.shape}", name)
    return rows


def facets_of(value: Any) -> Facets:
    """The facets that a user gave: `Facets`, or a table: a box, a mesh, or normals, areas and centres; and plates."""
    if isinstance(value, Facets):
        return value
    if not isinstance(value, Mapping):
        raise InputError(f"{TABLE}; got {value!r}", "facets")
    plates = value.get("plates", ())
    if not all(isinstance(plate, Mapping) and set(plate) == {"centre", "normal", "area"} for plate in plates):
        raise InputError(f"plates must be tables with centre, normal and area; got {plates!r}", "plates")
    closed = _closed({name: x for name, x in value.items() if name != "plates"})
    parts = [*([] if closed is None else [closed]), *(Facets.plate(**plate) for plate in plates)]
    if not parts:
        raise InputError(f"{TABLE}; got none of them", "facets")
    return sum(parts[1:], parts[0])


TABLE = (
    "facets must be ph.Facets, or a table with box = [a, b, c], with mesh, or with normals, areas and centres; and "
    "plates"
)
"""What describes facets."""


def _closed(table: Mapping[str, Any]) -> Facets | None:
    """The facets of a table without its plates; None if there are no others."""
    if not table:
        return None
    if set(table) == {"normals", "areas", "centres"}:
        return Facets(**table)
    if set(table) - {"centre"} == {"box"}:
        a, b, c = vector("box", table["box"]).tolist()
        return Facets.box(a, b, c, table.get("centre", (0.0, 0.0, 0.0)))
    if set(table) - {"centre", "unit"} == {"mesh"}:
        return Facets.from_mesh(table["mesh"], unit=table.get("unit", "m"), centre=table.get("centre"))
    raise InputError(f"{TABLE}; got {', '.join(map(str, table))}", "facets")
