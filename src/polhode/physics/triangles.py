"""Shapes as triangles: one geometry for the page of the viewer, for glTF and VTK files and for films.

The faces of a solid are in two groups, which are drawn in two colours, so that its rotation is visible.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from .shapes import Shape

AROUND, SECTORS = 48, 8
"""Sides of a round solid, and sectors in alternating colours."""

DOT, MANY_DOTS = 0.06, 200
"""Radius of a point relative to the extent of its body; so many points are drawn as octahedra, fewer as spheres."""


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles in the axes of the body.

    Attributes
    ----------
    vertices : (n, 3)
    normals : (n, 3) outward; None for flat faces
    light, dark : (m, 3) vertices of the triangles of either colour, counterclockwise seen from outside
    hole : True for a shape that is cut out of the body
    """

    vertices: np.ndarray
    normals: np.ndarray | None
    light: np.ndarray
    dark: np.ndarray
    hole: bool = False

    @property
    def faces(self) -> np.ndarray:
        """All triangles."""
        return np.concatenate([self.light, self.dark])

    def placed(self, shape: Shape) -> Mesh:
        """The mesh with the pose of a shape."""
        turned = None if self.normals is None else self.normals @ shape.rotation.T
        vertices = self.vertices @ shape.rotation.T + shape.position
        return dataclasses.replace(self, vertices=vertices, normals=turned, hole=shape.hole)


def meshes(shapes: Sequence[Shape]) -> list[Mesh]:
    """The shapes of a body as triangles."""
    return [_made(shape).placed(shape) for shape in shapes]


def surface(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3), in the axes of the body, and triangles (m, 3) of a shape; points have no triangles."""
    if shape.vertices is not None and shape.faces is None:
        places = np.asarray(shape.vertices, dtype=float) @ shape.rotation.T + shape.position
        return places, np.empty((0, 3), dtype=np.int64)
    made = _made(shape).placed(shape)
    return made.vertices, made.faces


def reach(parts: Sequence[Mesh]) -> float:
    """The distance of the farthest vertex from the pivot."""
    return max((float(np.linalg.norm(part.vertices, axis=1).max(initial=0.0)) for part in parts), default=0.0) or 1.0


def _made(shape: Shape) -> Mesh:
    """A shape in its own axes."""
    if shape.vertices is None:
        return SOLIDS[shape.name](*shape.sizes.values())
    if shape.faces is None:
        return points(np.asarray(shape.vertices, dtype=float))
    faces = np.asarray(shape.faces)
    return Mesh(np.asarray(shape.vertices, dtype=float), None, faces, faces[:0])


# --- solids -----------------------------------------------------------------------------------------


def box(a: float, b: float, c: float) -> Mesh:
    """A box with the edges a, b, c; the faces towards x, y and z are light."""
    half = np.array([a, b, c]) / 2
    corners, normals = [], []
    for axis in range(3):
        for sign in (1, -1):
            e, f, n = np.roll(np.eye(3), -axis, axis=0)[[1, 2, 0]]
            e, n = sign * e, sign * n
            corners += [half * (n + x * e + y * f) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += 4 * [n]
    squares = np.array([[0, 1, 2], [0, 2, 3]])
    light, dark = (np.concatenate([squares + 4 * (2 * axis + side) for axis in range(3)]) for side in (0, 1))
    return Mesh(np.array(corners), np.array(normals), light, dark)


def _revolved(profile: Sequence[tuple[float, float, float, float]], sectors: int = SECTORS) -> Mesh:
    """The surface that a profile, points (r, z) with normals, sweeps about z; it runs upwards on the outside."""
    angle = np.linspace(0.0, 2 * math.pi, AROUND + 1)
    c, s = np.cos(angle), np.sin(angle)
    r, z, outward, upward = (np.array(column)[:, None] for column in zip(*profile, strict=True))
    still = np.ones(AROUND + 1)
    vertices = np.stack([r * c, r * s, z * still], -1).reshape(-1, 3)
    normals = np.stack([outward * c, outward * s, upward * still], -1).reshape(-1, 3)
    i, k = (grid.ravel() for grid in np.meshgrid(np.arange(len(profile) - 1), np.arange(AROUND), indexing="ij"))
    here = i * (AROUND + 1) + k
    above = here + AROUND + 1
    faces = np.stack([np.stack([here, here + 1, above + 1], -1), np.stack([here, above + 1, above], -1)], 1)
    corner = vertices[faces]
    area = np.linalg.norm(
        np.cross(corner[..., 1, :] - corner[..., 0, :], corner[..., 2, :] - corner[..., 0, :]), axis=-1
    )
    dark = np.broadcast_to((k * sectors // AROUND % 2 == 1)[:, None], area.shape)
    solid = area > 1e-12 * area.max()  # at the axis one of the two triangles is a line
    return Mesh(vertices, normals, faces[solid & ~dark], faces[solid & dark])


def cylinder(radius: float, height: float) -> Mesh:
    """A cylinder about z."""
    z = height / 2
    return _revolved(
        [(0, -z, 0, -1), (radius, -z, 0, -1), (radius, -z, 1, 0), (radius, z, 1, 0), (radius, z, 0, 1), (0, z, 0, 1)]
    )


def cone(radius: float, height: float) -> Mesh:
    """A cone about z, its centre of mass at the origin: the base at -h/4, the apex at 3 h/4."""
    slant = math.hypot(radius, height)
    outward, upward = height / slant, radius / slant
    base, apex = -height / 4, 3 * height / 4
    return _revolved(
        [(0, base, 0, -1), (radius, base, 0, -1), (radius, base, outward, upward), (0, apex, outward, upward)]
    )


def torus(R: float, r: float) -> Mesh:
    """A torus about z."""
    angles = np.linspace(0.0, 2 * math.pi, 25)
    return _revolved([(R + r * math.cos(a), r * math.sin(a), math.cos(a), math.sin(a)) for a in angles])


@functools.cache
def _sphere() -> Mesh:
    """The unit sphere, with its octants in two colours."""
    rows = np.linspace(-math.pi / 2, math.pi / 2, 25)
    made = _revolved([(math.cos(a), math.sin(a), math.cos(a), math.sin(a)) for a in rows], sectors=4)
    faces = made.faces
    dark = made.vertices[faces].mean(axis=1).prod(axis=1) < 0
    return dataclasses.replace(made, light=faces[~dark], dark=faces[dark])


def ellipsoid(a: float, b: float, c: float) -> Mesh:
    """An ellipsoid with the semi-axes a, b, c."""
    ball, axes = _sphere(), np.array([a, b, c])
    normals = ball.vertices / axes
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return dataclasses.replace(ball, vertices=ball.vertices * axes, normals=normals)


SOLIDS = {solid.__name__: solid for solid in (box, ellipsoid, cylinder, cone, torus)}


def _ball(steps: int) -> Mesh:
    """A sphere of few triangles, an octahedron with its edges divided."""
    vertices = np.array(
        [[x, 0, 0] for x in (1, -1)] + [[0, y, 0] for y in (1, -1)] + [[0, 0, z] for z in (1, -1)], float
    )
    faces = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
    for _ in range(steps):
        corner = vertices[faces]
        middle = (corner + np.roll(corner, -1, axis=1)) / 2
        a, b, c = (corner[:, i] for i in range(3))
        d, e, f = (middle[:, i] for i in range(3))
        vertices = np.concatenate(
            [np.stack(three, 1) for three in ((a, d, f), (d, b, e), (f, e, c), (d, e, f))]
        ).reshape(-1, 3)
        vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
        vertices, places = np.unique(vertices.round(12), axis=0, return_inverse=True)
        faces = places.reshape(-1, 3)
    return Mesh(vertices, vertices, faces, faces[:0])


def balls(centres: np.ndarray, radii: np.ndarray, dark: np.ndarray | None = None) -> Mesh:
    """Spheres as one mesh; `dark` says which have the other colour."""
    one = _ball(2 if len(centres) <= MANY_DOTS else 0)
    vertices = (centres[:, None] + radii[:, None, None] * one.vertices).reshape(-1, 3)
    assert one.normals is not None
    normals = np.broadcast_to(one.normals, (len(centres), *one.normals.shape)).reshape(-1, 3)
    faces = one.light + (np.arange(len(centres)) * len(one.vertices))[:, None, None]
    other = np.zeros(len(centres), dtype=bool) if dark is None else dark
    return Mesh(vertices, normals, faces[~other].reshape(-1, 3), faces[other].reshape(-1, 3))


def points(centres: np.ndarray) -> Mesh:
    """Point masses as small spheres."""
    size = DOT * (float(np.linalg.norm(centres, axis=1).max()) or 1.0)
    return balls(centres, np.full(len(centres), size))
