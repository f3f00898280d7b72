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


ROWS = np.array([[1.0, 2.0, 2.5], [1.5, 1.6, 1.7], [2.0, 2.2, 2.4]])
SYMMETRIC = np.array([[1.0, 2.0, 2.5], [2.0, 3.0, 4.0], [2.5, 4.0, 5.0]])


@pytest.mark.parametrize("rows", [ROWS, SYMMETRIC], ids=["not symmetric", "not positive"])
def test_nine_numbers_that_are_no_tensor_are_the_moments_of_three_bodies(rows: np.ndarray) -> None:
    momenta = np.array([[0.1, 0.2, 0.9], [0.3, 0.1, 0.5], [0.2, 0.7, 0.1]])
    how = {"dt": 0.1, "steps": 3}
    found = ph.ensemble(rows, None, momenta, "fem", **how)
    listed = ph.ensemble([ph.Body(row) for row in rows], None, momenta, "fem", **how)
    np.testing.assert_array_equal(found.moments, rows)
    np.testing.assert_array_equal(found.momentum, listed.momentum)
    problem = ph.Problem(ph.Body(rows[0]), momentum=momenta[0])
    again = ph.ensemble(problem, "fem", body=rows, momentum=momenta, **how)
    np.testing.assert_array_equal(again.momentum, listed.momentum)
    q, m = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)), momenta.copy()
    ph.batch_stepper(rows, "fem", dt=0.1).step(q, m, n=3)
    np.testing.assert_allclose(m, listed.momentum[-1], atol=1e-14)


def test_nine_numbers_that_are_a_tensor_are_that_of_all_bodies() -> None:
    for tensor in TENSORS:
        np.testing.assert_array_equal(inertia_of(tensor).moments, [ph.Body(tensor).moments])


def test_nine_numbers_that_are_neither_are_refused() -> None:
    with pytest.raises(
        ph.InputError, match=r"one inertia tensor for all or .* three bodies; as a tensor: .*symmetric; .*"
    ):
        inertia_of([[1.0, 2.0, 9.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
