"""The inertia of many bodies is that of each, diagonalised in one pass."""

from __future__ import annotations

import numpy as np
import pytest

import polhode as ph
from polhode.physics.validate import quaternion_of, quaternions_of
from polhode.run.ensemble.inertia import inertia_of

RNG = np.random.default_rng(11)
TURNS = np.linalg.qr(RNG.normal(size=(60, 3, 3)))[0]
TENSORS = TURNS * RNG.uniform(1.0, 1.9, (60, 1, 3)) @ TURNS.swapaxes(1, 2)
TENSORS = (TENSORS + TENSORS.swapaxes(1, 2)) / 2
TENSORS[7] = np.diag([1.0, 2.0, 2.5])  # in principal axes
TENSORS[8] = TURNS[8] @ np.diag([0.0, 1.0, 1.0]) @ TURNS[8].T  # linear
TENSORS[9] = 2 * np.eye(3)


def test_tensors_become_the_bodies_that_each_of_them_is() -> None:
    many = inertia_of(TENSORS)
    assert many.own is not None
    for i, tensor in enumerate(TENSORS):
        body = ph.Body(tensor)
        np.testing.assert_array_equal(many.moments[i], body.moments)
        np.testing.assert_array_equal(many.own[i], quaternion_of(body.axes.tolist()))


def test_diagonal_tensors_are_principal_moments() -> None:
    moments = RNG.uniform(1.0, 1.9, (5, 3))
    many = inertia_of(np.array([np.diag(m) for m in moments]))
    assert many.own is None
    np.testing.assert_array_equal(many.moments, moments)


def test_quaternions_of_rotations_of_every_kind() -> None:
    proper = TURNS * np.linalg.det(TURNS)[:, None, None]
    half_turns = np.array([np.diag(d) for d in ([1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0])])
    for R in (proper, half_turns):
        np.testing.assert_array_equal(quaternions_of(R), [quaternion_of(r.tolist()) for r in R])


@pytest.mark.parametrize(
    ("entry", "message"),
    [(0.5, "body 4: the inertia tensor must be symmetric"), (np.nan, "body 4: inertia must be finite")],
)
def test_faults_name_the_body(entry: float, message: str) -> None:
    tensors = TENSORS.copy()
    tensors[4, 0, 1] += entry
    with pytest.raises(ph.InputError, match=message):
        inertia_of(tensors)
    with pytest.raises(ph.InputError, match=r"body 2: .* triangle inequality"):
        inertia_of(np.array([np.diag(m) for m in ([1, 1, 1], [1, 2, 2], [1, 1, 3])]))
