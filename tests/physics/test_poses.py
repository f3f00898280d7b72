"""Rotations and poses of SciPy, in and out."""

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import polhode as ph

RNG = np.random.default_rng(3)
POSES = RigidTransform.from_components(RNG.normal(size=(5, 3)), Rotation.random(5, rng=RNG))


def test_poses_are_centres_and_attitudes_with_the_scalar_first():
    x, q = ph.formats.from_rigid_transform(POSES)
    np.testing.assert_array_equal(x, POSES.translation)
    np.testing.assert_allclose(np.abs(q[:, 0]), np.cos(POSES.rotation.magnitude() / 2), atol=1e-15)
    again = ph.formats.to_rigid_transform(x, q)
    np.testing.assert_allclose(again.as_matrix(), POSES.as_matrix(), atol=1e-15)


def test_the_sites_of_a_molecule_are_where_poses_put_them():
    water = ph.sites([15.9994, 1.008, 1.008], [[0, 0, 0], [0.8165, 0.5774, 0], [-0.8165, 0.5774, 0]])
    places = water.positions(*ph.formats.from_rigid_transform(POSES))
    for i in range(5):
        np.testing.assert_allclose(places[i], POSES[i].apply(water.arms), atol=1e-14)


def test_one_pose_and_trajectories():
    sol = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=10)
    poses = ph.formats.to_rigid_transform(None, sol.quaternion)
    np.testing.assert_allclose(poses.apply([0, 0, 1.0]), sol.matrix[:, :, 2], atol=1e-15)
    one = ph.formats.to_rigid_transform([1.0, 2, 3], [0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(one.apply([1.0, 0, 0]), [1, 3, 3], atol=1e-15)
    x, q = ph.formats.from_rigid_transform(one)
    assert (x.shape, q.shape) == ((3,), (4,))


def test_a_body_is_placed():
    """Its points are where the pose puts them."""
    points = RNG.normal(size=(6, 3))
    body = ph.Body.from_points(points)
    placed = body.placed(POSES[0])
    again = ph.Body.from_points(POSES[0].apply(points))
    np.testing.assert_allclose(placed.tensor, again.tensor, atol=1e-13)
    np.testing.assert_allclose(placed.centre, again.centre, atol=1e-14)


def test_rotations_in_and_out():
    """One attitude and those of an ensemble; `sol.rotation` gives them back."""
    turns = POSES.rotation
    sol = ph.solve(ph.Problem(ph.Body([1, 2, 2.5]), attitude=turns[0], omega=[0, 1, 0.1]), "dmv2", dt=0.01, steps=2)
    np.testing.assert_allclose(sol.rotation[0].as_matrix(), turns[0].as_matrix(), atol=1e-15)
    many = ph.ensemble([1, 2, 2.5], turns, np.ones((5, 3)), "dmv2", dt=0.01, steps=2)
    np.testing.assert_allclose(many.matrix[0], turns.as_matrix(), atol=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ph.formats.to_rigid_transform(None, [1.0, 1, 0, 0]), "q must hold unit quaternions; that of body 0"),
        (lambda: ph.formats.to_rigid_transform(None, [1.0, 0, 0]), r"q must have the shape \(N, 4\)"),
        (lambda: ph.formats.to_rigid_transform([1.0, 2], [1.0, 0, 0, 0]), r"x must have the shape \(3,\)"),
        (lambda: ph.formats.from_rigid_transform(POSES.rotation), "pose must be a scipy RigidTransform; got Rotation"),
        (lambda: ph.Body([1, 2, 3]).placed(3), "pose must be a scipy RigidTransform; got int"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(ph.InputError, match=words):
        call()
