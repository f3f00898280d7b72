"""Solids of uniform density: volume, principal moments, and geometry for pictures.

Moments are for unit mass about the centre of mass, in the axes of the shape; they follow from the integrals of
x^2, y^2 and z^2 over the solid (defined in Goldstein, Poole and Safko 2002, chapter 5).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Shape:
    """One piece of a body, for pictures: a named solid with its sizes, or a mesh, and its pose in the body.

    A point x of the shape, in its own axes, is at ``position + rotation @ x`` in the axes of the body.
    """

    name: str
    sizes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    position: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3))
    hole: bool = False
    """True for a shape cut out of the body."""
    vertices: np.ndarray | None = None
    """(n, 3): the vertices of a mesh, or points."""
    faces: np.ndarray | None = None
    """(n, 3): vertex indices of each triangle, counterclockwise seen from outside."""

    def moved(self, by: np.ndarray) -> Shape:
        """The shape translated."""
        return dataclasses.replace(self, position=self.position + by)

    def turned(self, by: np.ndarray) -> Shape:
        """The shape rotated about the origin."""
        return dataclasses.replace(self, position=by @ self.position, rotation=by @ self.rotation)

    def removed(self) -> Shape:
        """The shape as a hole; a hole becomes solid."""
        return dataclasses.replace(self, hole=not self.hole)


MOST_LETTERS = 30_000
"""Longest JSON text of shapes that is stored in a file; larger meshes are not stored."""


def to_json(shapes: Sequence[Shape]) -> str:
    """Shapes as JSON; empty if there are none or the text is too long."""
    text = json.dumps([_plain(shape) for shape in shapes]) if shapes else ""
    return text if len(text) <= MOST_LETTERS else ""


def _plain(shape: Shape) -> dict[str, Any]:
    """A shape as lists and numbers."""
    arrays = {"position": shape.position, "rotation": shape.rotation, "vertices": shape.vertices, "faces": shape.faces}
    lists = {name: None if array is None else np.asarray(array).tolist() for name, array in arrays.items()}
    return {"name": shape.name, "sizes": dict(shape.sizes), "hole": shape.hole} | lists


def read(text: str) -> tuple[Shape, ...]:
    """Read shapes from the text of `to_json`."""
    if not text:
        return ()
    arrays = ("position", "rotation", "vertices", "faces")
    return tuple(
        Shape(**item | {name: None if item[name] is None else np.array(item[name]) for name in arrays})
        for item in json.loads(text)
    )


@dataclasses.dataclass(frozen=True)
class Solid:
    """Volume, and principal moments for unit mass about the centre of mass."""

    volume: float
    moments: tuple[float, float, float]


def _from_squares(volume: float, xx: float, yy: float, zz: float) -> Solid:
    """From the means of x^2, y^2, z^2: I_1 = <y^2> + <z^2> and so on."""
    return Solid(volume, (yy + zz, zz + xx, xx + yy))


def box(a: float, b: float, c: float) -> Solid:
    """Edges a, b, c along x, y, z: <x^2> = a^2/12, so I_1 = (b^2 + c^2)/12."""
    return _from_squares(a * b * c, a * a / 12, b * b / 12, c * c / 12)


def ellipsoid(a: float, b: float, c: float) -> Solid:
    """Semi-axes a, b, c along x, y, z: <x^2> = a^2/5, so I_1 = (b^2 + c^2)/5."""
    return _from_squares(4 * math.pi / 3 * a * b * c, a * a / 5, b * b / 5, c * c / 5)


def cylinder(radius: float, height: float) -> Solid:
    """Axis z: <x^2> = r^2/4, <z^2> = h^2/12, so I_3 = r^2/2 and I_1 = (3 r^2 + h^2)/12."""
    across = radius * radius / 4
    return _from_squares(math.pi * radius * radius * height, across, across, height * height / 12)


def cone(radius: float, height: float) -> Solid:
    """Axis z: <x^2> = 3 r^2/20, <(z - centre)^2> = 3 h^2/80, so I_3 = 3/10 r^2 and I_1 = 3 (4 r^2 + h^2)/80."""
    across = 3 * radius * radius / 20
    return _from_squares(math.pi * radius * radius * height / 3, across, across, 3 * height * height / 80)


def torus(R: float, r: float) -> Solid:
    """Axis z: <x^2> = R^2/2 + 3 r^2/8, <z^2> = r^2/4, so I_3 = R^2 + 3/4 r^2 and I_1 = R^2/2 + 5/8 r^2."""
    across = R * R / 2 + 3 * r * r / 8
    return _from_squares(2 * math.pi**2 * R * r * r, across, across, r * r / 4)


SOLIDS = {solid.__name__: solid for solid in (box, ellipsoid, cylinder, cone, torus)}
