"""Surfaces of solids as triangles, for files and pictures, through trimesh (extra ``polhode[mesh]``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .shapes import Shape

AROUND = 48
"""Sides of a round solid."""


def surface(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3), in the axes of the body, and triangles (m, 3) of a shape; points have no triangles."""
    if shape.vertices is not None:
        vertices = np.asarray(shape.vertices, dtype=float)
        faces = np.empty((0, 3), dtype=np.int64) if shape.faces is None else np.asarray(shape.faces, dtype=np.int64)
    else:
        vertices, faces = _solid(shape)
    return vertices @ shape.rotation.T + shape.position, faces


def _solid(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of a named solid whose centre of mass is the origin."""
    try:
        from trimesh import creation
    except ImportError:
        raise InputError("surfaces of solids need trimesh: pip install 'polhode[mesh]'") from None
    made = SOLIDS[shape.name](creation, *shape.sizes.values())
    return np.array(made.vertices, dtype=float), np.array(made.faces, dtype=np.int64)


def _ellipsoid(creation: Any, a: float, b: float, c: float) -> Any:
    return creation.icosphere(subdivisions=3).apply_scale([a, b, c])


def _cone(creation: Any, radius: float, height: float) -> Any:
    """A cone with its base at -h/4; that of trimesh stands on its base."""
    return creation.cone(radius, height, sections=AROUND).apply_translation([0, 0, -height / 4])


SOLIDS: dict[str, Callable[..., Any]] = {
    "box": lambda creation, a, b, c: creation.box((a, b, c)),
    "ellipsoid": _ellipsoid,
    "cylinder": lambda creation, radius, height: creation.cylinder(radius, height, sections=AROUND),
    "cone": _cone,
    "torus": lambda creation, R, r: creation.torus(R, r, major_sections=AROUND),
}
