"""VTK collections, read by meshio and by the parser of the standard library."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import meshio
import numpy as np
import pytest

import polhode as ph
from polhode.physics.body import SHAPES
from polhode.physics.triangles import surface
from polhode.results.formats import vtk


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(body: ph.Body, **options: Any) -> ph.Trajectory:
    return ph.solve(ph.Problem(body, omega=[0.1, 1.0, 0.2]), "imidm", **{"dt": 0.1, "steps": 4} | options)


def collection(path: str) -> list[tuple[float, str]]:
    root = ElementTree.parse(path).getroot()
    return [(float(one.get("timestep", "nan")), one.get("file", "")) for one in root.iter("DataSet")]


def fields(path: str) -> dict[str, np.ndarray]:
    """The field data of a grid."""
    found = {}
    for one in ElementTree.parse(path).getroot().iter("FieldData"):
        for array in one:
            data = base64.b64decode(array.text or "")
            assert np.frombuffer(data[:8], "<u8")[0] == len(data) - 8
            width = int(array.get("NumberOfComponents", 1))
            found[array.get("Name")] = np.frombuffer(data[8:], "<f8").reshape(-1, width)
            assert len(found[array.get("Name")]) == int(array.get("NumberOfTuples", 0))
    return found


def test_a_box_at_every_state_by_meshio() -> None:
    sol = run(ph.Body.box(3, 2, 1))
    sol.export("run.pvd")
    named = collection("run.pvd")
    assert [t for t, _ in named] == sol.t.tolist()
    corners = {tuple(sign * np.array([1.5, 1, 0.5])) for sign in np.array(np.meshgrid(*[[-1, 1]] * 3)).T.reshape(-1, 3)}
    for i, (_, name) in enumerate(named):
        grid = meshio.read(name)
        assert {tuple(p.round(12)) for p in grid.points @ sol.matrix[i]} == corners
        assert grid.cells_dict["triangle"].shape == (12, 3)
        assert (grid.cell_data["body"][0] == 0).all()
        held = fields(name)
        assert held["TimeValue"] == [[sol.t[i]]]
        np.testing.assert_array_equal(held["quaternion"], sol.quaternion[[i]])
        for vector in ("momentum", "spatial_momentum", "omega", "spatial_omega"):
            np.testing.assert_array_equal(held[vector], getattr(sol, vector)[[i]])


def test_an_ensemble_stands_at_its_centres() -> None:
    body = ph.Body.cylinder(1, 2)
    momenta = np.array([[0.1, 0.2, 0.3], [1.0, 0.2, 0.1]])
    many = ph.ensemble(body, None, momenta, "imidm", dt=0.1, steps=4, every=2)
    centres = np.array([[0, 0, 0], [5.0, 0, 0]])
    many.export("two.pvd", centres=centres)
    grid = meshio.read(collection("two.pvd")[-1][1])
    half = len(grid.points) // 2
    points, _ = surface(body.looks[0])
    for i in (0, 1):
        np.testing.assert_allclose(
            grid.points[i * half : (i + 1) * half], centres[i] + points @ many.matrix[-1, i].T, atol=1e-14
        )
    assert set(grid.cell_data["body"][0]) == {0, 1}


def test_bodies_without_shapes_have_axes_and_points_are_vertices() -> None:
    sol = run(ph.Body([1, 2, 2.5]))
    sol.export("axes.pvd")
    grid = meshio.read(collection("axes.pvd")[2][1])
    assert grid.cells_dict["line"].tolist() == [[0, 1], [0, 2], [0, 3]]
    np.testing.assert_allclose(grid.points[1:].T, sol.matrix[2], atol=1e-15)
    run(ph.Body.from_points([[1, 0, 0], [-1, 0, 0], [0, 2, 0]])).export("points.pvd")
    assert meshio.read(collection("points.pvd")[0][1]).cells_dict["vertex"].shape == (3, 1)


SIZES = {
    "box": (1, 2, 3),
    "ellipsoid": (1, 2, 3),
    "cylinder": (1, 2),
    "cone": (1, 2),
    "torus": (2, 0.5),
    "t_handle": (),
}


@pytest.mark.parametrize("name", SHAPES)
def test_surfaces_have_the_volume_and_centre_of_their_solids(name: str) -> None:
    """To the accuracy of 48 sides: 0.3 % for round solids, 1 % for the sphere of triangles and the torus."""
    body = getattr(ph.Body, name)(*SIZES[name], density=1.0)
    volume, moment = 0.0, np.zeros(3)
    for shape in body.shapes:
        vertices, faces = surface(shape)
        a, b, c = np.moveaxis(vertices[faces], 1, 0)
        parts = np.einsum("fi,fi->f", a, np.cross(b, c)) / 6
        volume += parts.sum()
        moment += parts @ (a + b + c) / 4
    assert volume == pytest.approx(body.mass, rel=0.015)
    np.testing.assert_allclose(moment / volume, body.centre, atol=2e-3)


def test_nothing_remains_and_nothing_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    sol = run(ph.Body.box(3, 2, 1))
    sol.export("run.pvd")
    with pytest.raises(ph.InputError, match=r"^run.pvd exists"):
        sol.export("run.pvd")
    run(ph.Body.box(3, 2, 1), steps=2).export("run.pvd", overwrite=True)
    assert len(collection("run.pvd")) == 3
    assert sorted(path.name for path in Path("run_states").iterdir()) == ["000000.vtu", "000001.vtu", "000002.vtu"]
    Path("run_states/mine.txt").write_text("mine")
    with pytest.raises(ph.InputError, match="run_states is a folder that holds other files"):
        sol.export("run.pvd", overwrite=True)
    monkeypatch.setattr(vtk, "MOST", 3)
    with pytest.raises(ph.InputError, match="each state becomes a file, at most 3; there are 5"):
        sol.export("other.pvd")
    assert sorted(path.name for path in Path().iterdir()) == ["run.pvd", "run_states"]
