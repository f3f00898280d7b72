"""Strapdown integration: the coning motion from samples, sculling against quadrature, and what is refused."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode import InputError

EPS = 2.0**-52
ANGLE, RATE = 0.2, 2 * math.pi
SLOW = 2 * RATE * math.sin(ANGLE / 2) ** 2


def exact(t):
    """Coning: the rotation vector has length ANGLE and turns in the 12 plane at RATE."""
    t, s = np.asarray(t, dtype=float), math.sin(ANGLE / 2)
    return np.stack([math.cos(ANGLE / 2) + 0 * t, s * np.cos(RATE * t), s * np.sin(RATE * t), 0 * t], -1)


def rates(t):
    s = RATE * math.sin(ANGLE)
    return np.stack([-s * np.sin(RATE * t), s * np.cos(RATE * t), -SLOW + 0 * t], -1)


def increments(t):
    s = math.sin(ANGLE)
    return np.diff(np.stack([s * np.cos(RATE * t), s * np.sin(RATE * t), -SLOW * t], -1), axis=0)


def force(t):
    return np.stack([np.cos(3 * t), 0.5 * np.sin(RATE * t), 2 + np.sin(t)], -1)


def force_increments(t):
    whole = np.stack([np.sin(3 * t) / 3, -0.5 * np.cos(RATE * t) / RATE, 2 * t - np.cos(t)], -1)
    return np.diff(whole, axis=0)


def times(count, uneven):
    x = np.linspace(0, 2, count + 1)
    return x + 0.1 * np.sin(3 * x) * np.sin(math.pi * x / 2) if uneven else x


def error(sol):
    """The largest rotation angle between the attitudes and the exact ones."""
    return 2 * np.linalg.norm(sol.quaternion - exact(sol.t), axis=1).max()


def velocity(t, gravity):
    """The integral of R f + g by Gauss-Legendre quadrature with 20 points in each of 16 parts."""
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, t, 17)
    s = (edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2).ravel()
    weights = (np.diff(edges)[:, None] * w / 2).ravel()
    return weights @ (Rotation.from_quat(exact(s), scalar_first=True).apply(force(s)) + gravity)


def cone(count, kind, samples, uneven=False, **more):
    t = times(count, uneven)
    data = rates(t) if kind == "rates" else increments(t)
    return ph.strapdown(t, attitude=exact(0.0), samples=samples, **{kind: data}, **more)


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("samples", range(1, 8))
@pytest.mark.parametrize("kind", ["rates", "increments"])
def test_orders_on_the_coning_motion(kind, samples, uneven):
    """With increments at even spacing the measured order may be one higher: errors of neighbours cancel."""
    coarse, fine = (cone(n, kind, samples, uneven) for n in (64, 128))
    order = math.log2(error(coarse) / error(fine))
    assert fine.order == samples + (kind == "increments")
    assert fine.order - 0.25 < order < fine.order + 1.45


@pytest.mark.parametrize("kind", ["rates", "increments"])
def test_between_the_samples(kind):
    coarse, fine = (error(cone(n, kind, 4).at(np.linspace(0, 2, 333))) for n in (64, 128))
    assert math.log2(coarse / fine) > 3.7
    sol = cone(64, kind, 4)
    assert np.abs(sol.at(sol.t).quaternion - sol.quaternion).max() < 8 * EPS


def test_against_the_product_of_exponentials():
    """One increment at a time is the uncorrected product; two of them already gain two digits."""
    t = times(128, False)
    naive = Rotation.from_quat(exact(0.0), scalar_first=True)
    for turn in increments(t):
        naive = naive * Rotation.from_rotvec(turn)
    one = cone(128, "increments", 1)
    assert (naive * one.rotation[-1].inv()).magnitude() < 1e3 * EPS
    assert error(one) > 300 * error(cone(128, "increments", 2))


def test_the_two_sample_algorithm():
    """Y = a + b + 2/3 a x b up to terms of the third degree in the angles."""
    gaps = []
    for size in (0.02, 0.01):
        a, b = size * np.array([1.0, 0.2, -0.4]), size * np.array([0.3, 0.9, 0.5])
        sol = ph.strapdown([0.0, 0.1, 0.2], increments=[a, b], samples=2)
        gaps.append(np.linalg.norm(sol.rotation[-1].as_rotvec() - (a + b + 2 / 3 * np.cross(a, b))))
    assert gaps[0] / gaps[1] == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize("kind", ["rates", "increments"])
@pytest.mark.parametrize("integrated", [False, True])
def test_sculling(kind, integrated):
    """Velocities against quadrature with the exact attitude, on an uneven grid: order 4 at least."""
    g = np.array([0.1, -0.2, -9.8])
    gaps = []
    for count in (64, 128):
        t = times(count, True)
        data = {"velocity_increments": force_increments(t)} if integrated else {"specific_force": force(t)}
        sol = cone(count, kind, 4, True, gravity=g, velocity=[1.0, 2.0, 3.0], **data)
        gaps.append(np.abs(sol.velocity[-1] - velocity(t[-1], g) - [1, 2, 3]).max())
        assert np.abs(sol.at(1.234).velocity[0] - velocity(1.234, g) - [1, 2, 3]).max() < 1e-4
    assert gaps[1] < 5e-6
    assert math.log2(gaps[0] / gaps[1]) > 3.7


def test_a_constant_rotation_is_exact():
    t = np.array([0.0, 0.3, 0.4, 1.7, 2.0])
    omega = np.array([0.3, -0.5, 0.7])
    sol = ph.strapdown(t, rates=np.tile(omega, (5, 1)))
    for turned, s in zip(sol.rotation, t, strict=True):
        assert (turned * Rotation.from_rotvec(omega * s).inv()).magnitude() < 1e-14
    assert sol.velocity is None
    assert "5 attitudes" in repr(sol)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give rates"),
        ({"rates": np.zeros((3, 3)), "increments": np.zeros((2, 3))}, "not both"),
        ({"t": [0.0, 2.0, 1.0], "rates": np.zeros((3, 3))}, r"t must ascend; t\[2\] = 1"),
        ({"t": [0.0, 1.0, 1.0], "rates": np.zeros((3, 3))}, "drop those that occur twice"),
        ({"t": [0.0, math.nan, 1.0], "rates": np.zeros((3, 3))}, r"t\[1\] is nan"),
        ({"t": [0.0], "rates": np.zeros((1, 3))}, "at least two times"),
        ({"rates": [[0, 0, 0], [0, math.nan, 0], [0, 0, 0]]}, "row 1 is"),
        ({"rates": np.zeros((2, 3))}, r"shape \(3, 3\), one row for each time; got shape \(2, 3\)"),
        ({"increments": np.zeros((3, 3))}, r"shape \(2, 3\), one row for each interval"),
        ({"rates": "fast"}, "rates must have the shape"),
        ({"rates": np.zeros((3, 3)), "samples": 4}, "needs as many rows; rates has 3"),
        ({"rates": np.zeros((3, 3)), "samples": 9}, "from 1 to 8"),
        ({"rates": np.zeros((3, 3)), "gravity": 9.8}, "gravity must be three numbers"),
        ({"rates": np.zeros((3, 3)), "specific_force": np.zeros((2, 3))}, "specific_force must have the shape"),
    ],
)
def test_refused(given, said):
    given = {"t": [0.0, 0.5, 1.0]} | given
    with pytest.raises(InputError, match=said):
        ph.strapdown(given.pop("t"), **given)


def test_outside_the_samples():
    with pytest.raises(InputError, match="between 0 and 2"):
        cone(8, "rates", 2).at(2.1)
