"""Triangles of shapes: closed surfaces with the volume and centre of the solid, seen from outside."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

import polhode as ph
from polhode.physics import triangles
from polhode.physics.shapes import SOLIDS, Shape

SIZES = {
    "box": {"a": 1.0, "b": 2.0, "c": 3.0},
    "ellipsoid": {"a": 1.0, "b": 2.0, "c": 3.0},
    "cylinder": {"radius": 1.0, "height": 2.0},
    "cone": {"radius": 1.0, "height": 2.0},
    "torus": {"R": 2.0, "r": 0.5},
}


@pytest.mark.parametrize("name", SOLIDS)
def test_a_solid(name: str) -> None:
    turn = ph.Body.box(1, 1, 1).turned([0.5, 0.5, 0.5, 0.5]).shapes[0].rotation
    (part,) = triangles.meshes([Shape(name, SIZES[name], np.array([1.0, -2.0, 0.5]), turn)])
    surface = trimesh.Trimesh(part.vertices, part.faces)
    assert surface.is_watertight
    assert surface.volume == pytest.approx(SOLIDS[name](**SIZES[name]).volume, rel=0.02)  # 48 sides
    assert surface.center_mass == pytest.approx([1.0, -2.0, 0.5], abs=1e-9)
    assert part.normals is not None
    assert (np.einsum("ij,ij->i", surface.face_normals, part.normals[part.faces].mean(axis=1)) > 0).all()
    assert len(part.light) == len(part.dark) > 0


def test_points_and_meshes() -> None:
    corners = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    (part,) = triangles.meshes([Shape("points", vertices=corners)])
    assert trimesh.Trimesh(part.vertices, part.faces).body_count == 3
    faces = np.array([[0, 1, 2]])
    (flat,) = triangles.meshes([Shape("mesh", vertices=corners, faces=faces)])
    assert flat.normals is None
    assert flat.faces.tolist() == faces.tolist()
    assert triangles.reach([flat]) == 2.0
