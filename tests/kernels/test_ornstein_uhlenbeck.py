"""The exact Ornstein-Uhlenbeck step against the matrix exponential, in doubles and in 50 digits."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

from polhode.compile.program import compiled
from polhode.kernels.ornstein_uhlenbeck import EQUAL, eigen, relaxation
from polhode.numbers.multiprecision import mp, number, working

RNG = np.random.default_rng(4)
MOMENTS = (0.2, 1.0, 1.1)


def friction_tensor(size):
    root = RNG.normal(size=(3, 3))
    return size * root @ root.T


def parts(G):
    """A symmetric matrix as the kernels take it."""
    return tuple(np.diag(G).tolist()), (float(G[1, 2]), float(G[2, 0]), float(G[0, 1]))


def system(moments):
    return tuple(moments), tuple(1 / x if x else 0.0 for x in moments), ()


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("run", [relaxation, compiled(lambda *given: relaxation(*given)).run])
def test_mean_and_covariance_are_those_of_the_process(size, run):
    """A = exp(-h Gamma I^-1) and B B^T = kT (I - A I A^T), the integral of the noise over the step."""
    G, h, kT, inertia = friction_tensor(size), 0.3, 1.7, np.diag(MOMENTS)
    mean, noise = map(np.array, run(h, kT, parts(G), system(MOMENTS)))
    A = scipy.linalg.expm(-h * G / MOMENTS)
    assert mean == pytest.approx(A, abs=1e-13)
    covariance = kT * (inertia - A @ inertia @ A.T)
    assert noise.T @ noise == pytest.approx(covariance, rel=1e-11, abs=1e-13)


def test_covariance_is_exact_in_fifty_digits():
    G = friction_tensor(1.0)
    with working(60):
        diagonal, off = ((number(x) for x in part) for part in parts(G))
        moments = tuple(number(x) for x in MOMENTS)
        given = (tuple(diagonal), tuple(off)), (moments, tuple(1 / x for x in moments), ())
        h, kT = number(1) / 3, number(2)
        mean, noise = relaxation(h, kT, *given)
        S = mp.matrix([[number(G[i, j]) / moments[j] for j in range(3)] for i in range(3)])
        A, inertia, B = mp.expm(-h * S), mp.diag(moments), mp.matrix(noise).T
        assert mp.mnorm(mp.matrix(mean) - A) < mpmath.mpf(10) ** -50
        assert mp.mnorm(B * B.T - kT * (inertia - A * inertia * A.T)) < mpmath.mpf(10) ** -50


def test_short_steps_lose_no_digits():
    """The variance of a step of friction times time 1e-12 is 2e-12 kT to all digits: no difference from 1 is taken."""
    _, noise = relaxation(1e-12, 1.0, ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), system((1.0, 1.0, 1.0)))
    assert np.array(noise).T @ np.array(noise) == pytest.approx(np.diag([2e-12] * 3), rel=1e-11)


def test_infinite_friction_gives_the_distribution_of_gibbs():
    mean, noise = relaxation(1e6, 2.0, parts(friction_tensor(100.0)), system(MOMENTS))
    assert np.array(mean) == pytest.approx(np.zeros((3, 3)), abs=1e-300)
    assert np.array(noise).T @ np.array(noise) == pytest.approx(2.0 * np.diag(MOMENTS), rel=1e-13, abs=1e-14)


def test_axis_without_inertia_gets_no_momentum():
    mean, noise = relaxation(0.1, 1.0, parts(friction_tensor(1.0)), system((1.0, 1.0, 0.0)))
    assert np.array(mean)[2].tolist() == [0.0] * 3
    assert np.array(noise)[:, 2].tolist() == [0.0] * 3


@pytest.mark.parametrize("equal", [0, EQUAL])
@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.eye(3), np.diag([3.0, 1.0, 2.0]), np.ones((3, 3))])
def test_eigenvectors_of_degenerate_matrices(matrix, equal):
    values, vectors = map(np.array, eigen(*parts(matrix), equal))
    assert vectors @ vectors.T == pytest.approx(np.eye(3), abs=1e-14)
    assert vectors.T @ np.diag(values) @ vectors == pytest.approx(matrix, abs=1e-14)


def test_round_off_does_not_turn_axes_with_equal_entries():
    """Equal entries and a coupling of round-off: any two perpendicular axes are eigenvectors, and these stay."""
    matrix = np.eye(3) + 1e-16 * np.array(((0.0, 3.0, 1.0), (3.0, 2.0, 2.0), (1.0, 2.0, 0.0)))
    assert np.array_equal(eigen(*parts(matrix), EQUAL)[1], np.eye(3))
