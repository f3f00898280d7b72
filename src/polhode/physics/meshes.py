"""Surfaces from STL, OBJ and PLY files: read with trimesh, check, integrate.

Only the triangles are read. Materials and references to other files are ignored, and nothing in a file is executed.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np

from .. import _files
from .._extras import needed
from ..errors import InputError
from .validate import file_path

SUFFIXES = ("stl", "obj", "ply")

UNITS = {
    "m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048,
}  # fmt: skip
"""Length of a unit in metres."""

LARGEST = 1e30
"""Largest coordinate; its fifth power is far within the range of doubles."""

MESH_BYTES = 1 << 32
"""Largest file: 86 million triangles in binary form."""

SAMPLES = 32
"""Vertices of a part that are tested for lying inside the other parts."""

FLAT, EMPTY = 1e-14, 1e-12
"""Triangle area and part volume below which they count as round-off, relative to the size of the part."""


@dataclasses.dataclass(frozen=True, eq=False)
class Surface:
    """A closed surface of triangles, in metres (with unit "m": in the unit of the file)."""

    vertices: np.ndarray
    faces: np.ndarray

    @property
    def corners(self) -> np.ndarray:
        """(faces, corner, axis)."""
        return self.vertices[self.faces]

    @property
    def size(self) -> float:
        """Longest edge of its bounding box."""
        return float(np.ptp(self.vertices, axis=0).max())

    @property
    def volumes(self) -> np.ndarray:
        """(faces,) signed volumes of the tetrahedra between each face and the mean of the vertices."""
        a, b, c = np.moveaxis(self.corners - self.vertices.mean(axis=0), 1, 0)
        return np.einsum("fi,fi->f", a, np.cross(b, c)) / 6

    def integrals(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Volume, centre c, and central second moments: the integral of (x - c)(x - c)^T over the interior.

        Sums over tetrahedra: one with vertices 0, a, b, c and volume V has the first moment V s/4 and the
        second moment V/20 (s s^T + a a^T + b b^T + c c^T), s = a + b + c.
        """
        middle, volumes = self.vertices.mean(axis=0), self.volumes
        corners, volume = self.corners - middle, float(volumes.sum())
        total = corners.sum(axis=1)
        shift = volumes @ total / 4 / volume
        second = np.einsum("f,fi,fj->ij", volumes, total, total) + np.einsum("f,fci,fcj->ij", volumes, corners, corners)
        return volume, middle + shift, second / 20 - volume * np.outer(shift, shift)


def scale_of(unit: str) -> float:
    """Metres in a unit of length."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise InputError(f"unit must be one of {', '.join(UNITS)}; got {unit!r}", "unit")
    return UNITS[unit]


def read(path: Any, unit: str = "m") -> Surface:
    """Read the surface in a file; raise an error that says what is wrong if it does not bound a solid."""
    kinds = f"a mesh must be a file of type {', '.join(SUFFIXES)}"
    scale, file = scale_of(unit), file_path(path, kinds)
    kind = file.suffix.lower().lstrip(".")
    if kind not in SUFFIXES:
        raise InputError(f"{kinds}; got {file.name!r}")
    if not _is_file(file):
        raise InputError(f"there is no file {str(file)!r}")
    surface = _loaded(needed("trimesh"), file, kind)
    checked(surface, file.name)
    return dataclasses.replace(surface, vertices=surface.vertices * scale)


def _is_file(path: Path) -> bool:
    """True if the file exists; False also for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _loaded(trimesh: Any, file: Path, kind: str) -> Surface:
    """Read the triangles and merge vertices with equal coordinates."""
    options = {"skip_materials": True} if kind == "obj" else {}
    logger = logging.getLogger("trimesh")
    level = logger.level
    try:
        logger.setLevel(logging.CRITICAL + 1)  # trimesh logs its own tracebacks for malformed files
        with _files.ordinary(file, MESH_BYTES) as stream:  # it has no folder: files it refers to are not opened
            mesh = trimesh.load(stream, file_type=kind, force="mesh", process=False, **options)
        points, triangles = np.array(mesh.vertices, dtype=float), np.array(mesh.faces, dtype=np.int64)
    except Exception as problem:  # malformed files raise exceptions of any type
        raise InputError(f"{file.name} cannot be read as {kind.upper()}: {' '.join(str(problem).split())}") from None
    finally:
        logger.setLevel(level)
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"{file.name} has vertices that are not three numbers each; export the mesh again")
    if not len(triangles):
        raise InputError(f"{file.name} has no triangles; save the surface of the part as a mesh")
    if not np.isfinite(points).all():
        raise InputError(f"{file.name} has vertices that are not finite; export the mesh again")
    if np.abs(points).max() > LARGEST:
        raise InputError(f"{file.name} has coordinates beyond {LARGEST:g}; give the unit, or scale the mesh")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.min() < 0 or triangles.max() >= len(points):
        raise InputError(f"{file.name} has triangles that refer to missing vertices; export the mesh again")
    vertices, index = np.unique(points + 0.0, axis=0, return_inverse=True)  # -0 + 0 is 0
    return Surface(vertices, index.reshape(-1)[triangles])


def checked(surface: Surface, name: str) -> None:
    """Reject a surface that does not bound a solid; say what is wrong and how to repair it."""
    edges = surface.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _check_degenerate(surface, name)
    pairs, counts = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    if (counts == 1).any():
        hole = surface.vertices[pairs[counts == 1][0]].mean(axis=0)
        raise InputError(
            f"{name} is not watertight: {int((counts == 1).sum())} edges belong to one triangle only, the first near "
            f"{_point(hole)}; close the holes in the program that made the mesh"
        )
    if (counts > 2).any():
        raise InputError(
            f"{name} is not a simple surface: {int((counts > 2).sum())} edges belong to more than two triangles; "
            f"remove inner walls and duplicate triangles"
        )
    if len(np.unique(edges, axis=0)) < len(edges):
        raise InputError(
            f"the triangles of {name} are not wound consistently: neighbouring triangles traverse an edge in the "
            "same direction; make the normals consistent in the program that made the mesh"
        )
    _check_volume(surface, name)
    _check_parts(surface, name)


def _check_degenerate(surface: Surface, name: str) -> None:
    """Reject triangles without area: they can hide holes."""
    corners = surface.corners
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    flat = np.flatnonzero(areas <= FLAT * surface.size**2)
    if flat.size:
        raise InputError(
            f"{name} has {flat.size} degenerate triangles (without area), the first near "
            f"{_point(corners[flat[0]].mean(axis=0))}; remove them"
        )


def _check_volume(surface: Surface, name: str) -> None:
    volume = float(surface.volumes.sum())
    if abs(volume) <= EMPTY * surface.size**3:
        raise InputError(f"{name} encloses no volume ({volume:.3g}); a solid part is needed")
    if volume < 0:
        raise InputError(f"{name} is inside out (its volume is {volume:.4g}); reverse all its triangles")


def _check_parts(surface: Surface, name: str) -> None:
    """Check several closed parts: a solid must lie outside the other solids, a cavity (wound inwards) inside one."""
    parts = [Surface(surface.vertices, faces) for faces in _separate(surface.faces)]
    if len(parts) == 1:
        return
    boxes = np.array([(part.corners.min(axis=(0, 1)), part.corners.max(axis=(0, 1))) for part in parts])
    for i, part in enumerate(parts):
        near = (boxes[:, 0] <= boxes[i, 1]).all(axis=1) & (boxes[:, 1] >= boxes[i, 0]).all(axis=1)
        others = [parts[j] for j in np.flatnonzero(near) if j != i]
        corners = surface.vertices[np.unique(part.faces)]
        some = corners[:: max(1, len(corners) // SAMPLES)]
        around = sum((_winding(other, some) for other in others), np.zeros(len(some)))
        if part.volumes.sum() < 0 and around.min() < 0.25:
            raise InputError(
                f"a part of {name}, near {_point(corners.mean(axis=0))}, is inside out and not a cavity of another "
                "part; reverse its triangles"
            )
        if part.volumes.sum() > 0 and around.max() > 0.75:
            raise InputError(
                f"parts of {name} overlap, near {_point(some[around.argmax()])}, and their common volume would count "
                f"twice; unite them in the program that made the mesh"
            )


def _separate(faces: np.ndarray) -> list[np.ndarray]:
    """The faces of each part; faces that share an edge belong to the same part."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    order = np.lexsort(edges.T)  # the two triangles of an edge become neighbours
    pairs = (order // 3).reshape(-1, 2)
    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(faces), len(faces)))
    count, label = connected_components(links, directed=False)
    return [faces[label == i] for i in range(count)] if count > 1 else [faces]


def _winding(surface: Surface, points: np.ndarray) -> np.ndarray:
    """Winding number of a closed surface about points: the solid angles of its triangles (Van Oosterom and Strackee
    1983) over 4 pi; 1 inside, 0 outside, -1 inside a surface wound inwards.
    """
    numbers = []
    for point in points:
        a, b, c = np.moveaxis(surface.corners - point, 1, 0)
        x, y, z = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        ab, bc, ca = (np.einsum("fi,fi->f", u, v) for u, v in ((a, b), (b, c), (c, a)))
        volume = np.einsum("fi,fi->f", a, np.cross(b, c))
        numbers.append(np.arctan2(volume, x * y * z + ab * z + bc * x + ca * y).sum() / (2 * np.pi))
    return np.array(numbers)


def _point(x: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.4g}" for v in x) + ")"
