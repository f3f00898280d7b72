"""Solids with given moments: the drawn shapes of the named problems have the moments of their bodies."""

from __future__ import annotations

import numpy as np
import pytest

import polhode as ph
from polhode.physics import equimomental
from polhode.physics.shapes import SOLIDS, Shape


def moments_about_the_pivot(shape: Shape) -> np.ndarray:
    """The inertia of a shape of unit mass about the origin."""
    central = shape.rotation @ np.diag(SOLIDS[shape.name](**shape.sizes).moments) @ shape.rotation.T
    d = shape.position
    return np.asarray(central + d @ d * np.eye(3) - np.outer(d, d))


@pytest.mark.parametrize("name", ["book", "prism", "slow_top", "fast_top"])
def test_the_shape_of_a_named_problem_has_its_moments(name: str) -> None:
    body = ph.problems.get(name).body
    (shape,) = body.looks
    assert moments_about_the_pivot(shape) == pytest.approx(body.inertia, abs=1e-12)


def test_the_edges_of_the_prism() -> None:
    (shape,) = ph.problems.get("prism").body.looks
    a, b, c = shape.sizes.values()
    assert (b / a, c / a) == pytest.approx((4.0, 18.0))


def test_the_pivot_of_a_top_is_the_apex_of_its_cone() -> None:
    (shape,) = ph.problems.get("fast_top").body.looks
    apex = shape.position + shape.rotation @ [0.0, 0.0, 0.75 * shape.sizes["height"]]
    assert apex == pytest.approx(np.zeros(3), abs=1e-12)
    assert shape.position[2] > 0  # the centre of mass is where gravity(mgl) has it


def test_the_t_handle_is_a_t_of_thin_rods() -> None:
    """Rods of one density: I = sum of m (L^2/12) and the parallel axis theorem, about the common centre of mass."""
    bar, stem = ph.problems.get("t_handle").body.looks
    masses = np.array([bar.sizes["height"], stem.sizes["height"]])
    masses *= 2.0 / (masses[0] ** 3 / 12)  # the bar alone has the moment about the stem
    assert masses @ [bar.position, stem.position] == pytest.approx(np.zeros(3), abs=1e-12)
    along_y = masses[1] * stem.sizes["height"] ** 2 / 12 + masses @ [bar.position[1] ** 2, stem.position[1] ** 2]
    assert along_y == pytest.approx(1.0)
    foot = stem.position[1] - stem.sizes["height"] / 2
    assert foot == pytest.approx(bar.position[1])
    assert bar.rotation[:, 2].tolist() == [1, 0, 0]
    assert stem.rotation[:, 2].tolist() == [0, 1, 0]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("moments", [(0.6, 0.8, 1.0), (5.0, 5.0, 1.0)])
def test_a_plate_on_an_axle(moments: tuple[float, ...], axis: int) -> None:
    """The thin plate, without its axle, has the moments."""
    turned = tuple(np.roll(moments, axis + 1))
    _, plate = equimomental.plate(turned, axis, -1.0)
    flat = dict(plate.sizes)
    flat[list(flat)[-1]] = 1e-9
    thin = Shape(plate.name, flat, plate.position, plate.rotation)
    assert moments_about_the_pivot(thin) == pytest.approx(np.diag(turned), abs=1e-8)
    assert plate.position[axis] < 0


def test_the_box_of_a_body() -> None:
    (shape,) = equimomental.box((2.0, 3.0, 4.5))
    assert moments_about_the_pivot(shape) == pytest.approx(np.diag([2.0, 3.0, 4.5]))
    (flat,) = equimomental.box((1.0, 2.0, 3.0))
    assert min(flat.sizes.values()) > 0
