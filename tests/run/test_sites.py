"""Rigid molecules made of sites: positions, forces and torques, fits to atoms, and periodic boxes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.kernels.so3 import matrix
from polhode.numbers.arrays import components

MASSES = [15.9994, 1.008, 1.008]
POINTS = np.array([[0.0, 0.0, 0.0], [0.8165, 0.5774, 0.0], [-0.8165, 0.5774, 0.0]])
RNG = np.random.default_rng(4)
NUMBER = 7
X = RNG.normal(size=(NUMBER, 3))
Q = RNG.normal(size=(NUMBER, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]
TURN = np.array(matrix((0.5, -0.1, 0.7, -0.5)))


def water() -> ph.Sites:
    return ph.sites(MASSES, POINTS)


def matrices(q: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.array(matrix(components(q))), -1, 0)


def test_moments_are_those_of_points() -> None:
    turned = ph.sites(MASSES, POINTS @ TURN.T + [3.0, -2.0, 1.0])
    body = ph.Body.from_points(POINTS, MASSES)
    assert turned.mass == water().mass == pytest.approx(sum(MASSES))
    np.testing.assert_allclose(np.sort(turned.moments), np.sort(body.moments), rtol=1e-13)
    np.testing.assert_allclose(MASSES @ turned.arms, 0, atol=1e-13)
    second = np.einsum("s,si,sj->ij", MASSES, turned.arms, turned.arms)
    np.testing.assert_allclose(np.trace(second) * np.eye(3) - second, np.diag(turned.moments), atol=1e-13)
    np.testing.assert_allclose(
        turned.arms @ turned.axes.T + turned.centre, POINTS @ TURN.T + [3.0, -2.0, 1.0], atol=1e-13
    )


def test_axes_that_are_principal_are_kept() -> None:
    assert np.array_equal(water().axes, np.eye(3))
    np.testing.assert_allclose(water().arms, POINTS - water().centre, atol=1e-15)


def test_positions_are_turned_from_body_to_space() -> None:
    quarter = np.array([[np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]])  # x to y, about z
    x = np.array([[1.0, 2.0, 3.0]])
    arms = water().arms
    expected = x[:, None] + np.stack([-arms[:, 1], arms[:, 0], arms[:, 2]], -1)
    np.testing.assert_allclose(water().positions(x, quarter), expected, atol=1e-15)


def test_forces_become_force_and_torque_in_both_frames() -> None:
    sites, f = water(), RNG.normal(size=(NUMBER, 3, 3))
    arms = sites.positions(X, Q) - X[:, None]
    force, torque = sites.gather(f, Q, frame="space")
    np.testing.assert_allclose(force, f.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(torque, np.cross(arms, f).sum(axis=1), atol=1e-14)
    in_body = np.einsum("nji,nj->ni", matrices(Q), torque)
    np.testing.assert_allclose(sites.gather(f, Q)[1], in_body, atol=1e-14)


def test_forces_of_a_potential_do_the_work_of_force_and_torque() -> None:
    """d/dt of sum U(r_s) along a motion is -(F.v + T.omega): the signs of both cannot be wrong."""
    sites, omega, v, h = water(), RNG.normal(size=(NUMBER, 3)), RNG.normal(size=(NUMBER, 3)), 1e-5

    def energy(s: float) -> np.ndarray:
        many = ph.ensemble([1.0, 1.0, 1.0], Q, omega, "jacobi", dt=s, steps=1).quaternion[-1]
        return np.sin(sites.positions(X + s * v, many)).sum(axis=(1, 2))

    force, torque = sites.gather(-np.cos(sites.positions(X, Q)), Q)
    rate = (energy(h) - energy(-h)) / (2 * h)
    np.testing.assert_allclose(rate, -(force * v).sum(axis=1) - (torque * omega).sum(axis=1), atol=1e-8)


def test_momenta_of_sites_are_those_of_the_body() -> None:
    sites, v, omega = water(), RNG.normal(size=(NUMBER, 3)), RNG.normal(size=(NUMBER, 3))
    speeds = sites.velocities(v, Q, omega)
    p, pi = sites.gather(np.array(MASSES)[:, None] * speeds, Q)
    np.testing.assert_allclose(p, sites.mass * v, atol=1e-13)
    np.testing.assert_allclose(pi, sites.moments * omega, atol=1e-13)


def test_results_fill_given_arrays() -> None:
    sites, f = water(), RNG.normal(size=(NUMBER, 3, 3))
    r, out = np.empty((NUMBER, 3, 3)), (np.empty((NUMBER, 3)), np.empty((NUMBER, 3)))
    assert sites.positions(X, Q, out=r) is r
    assert np.array_equal(r, sites.positions(X, Q))
    force, torque = sites.gather(f, Q, out=out)
    assert force is out[0]
    assert torque is out[1]
    assert np.array_equal(torque, sites.gather(f, Q)[1])


def test_fit_finds_the_molecules_of_atoms() -> None:
    sites = water()
    x, q = sites.fit(sites.positions(X, Q))
    np.testing.assert_allclose(x, X, atol=1e-14)
    np.testing.assert_allclose(q * np.sign((q * Q).sum(axis=1))[:, None], Q, atol=1e-13)


def test_fit_joins_molecules_that_a_box_cuts() -> None:
    sites, box = water(), ph.PeriodicBox([5.0, 6.0, 7.0])
    cut = box.wrap(sites.positions(X, Q))
    with pytest.raises(ph.InputError, match=r"molecule \d+ do not fit its sites.*give box="):
        sites.fit(cut)
    x, q = sites.fit(cut, box=box)
    np.testing.assert_allclose(box.minimum_image(sites.positions(x, q) - cut), 0, atol=1e-13)


def test_a_mirrored_molecule_does_not_fit() -> None:
    chiral = ph.sites([1.0, 2.0, 3.0, 4.0], RNG.normal(size=(4, 3)))
    r = chiral.positions(X, Q)
    chiral.fit(r)
    with pytest.raises(ph.InputError, match="do not fit"):
        chiral.fit(r * [1.0, 1.0, -1.0])


@pytest.mark.parametrize("direction", [[0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
def test_linear_molecules(direction: list[float]) -> None:
    """No torque about the axis, to the last bit, so the stepper takes them for any number of steps."""
    dimer = ph.sites([14.0, 16.0], [[0.0, 0.0, 0.0], direction])
    axis = int(np.flatnonzero(dimer.moments == 0)[0])
    _, torque = dimer.gather(RNG.normal(size=(NUMBER, 2, 3)), Q)
    assert not torque[:, axis].any()
    x, q = dimer.fit(dimer.positions(X, Q))
    np.testing.assert_allclose(dimer.positions(x, q), dimer.positions(X, Q), atol=1e-13)


def test_sites_without_mass_have_forces() -> None:
    """The charge of TIP4P: its site has no mass."""
    four = ph.sites([*MASSES, 0.0], [*POINTS, [0.0, 0.15, 0.0]])
    np.testing.assert_allclose(four.moments, water().moments, rtol=1e-14)
    f = np.zeros((NUMBER, 4, 3))
    f[:, 3] = RNG.normal(size=(NUMBER, 3))
    force, torque = four.gather(f, Q, frame="space")
    np.testing.assert_allclose(force, f[:, 3])
    np.testing.assert_allclose(torque, np.cross(four.positions(X, Q)[:, 3] - X, f[:, 3]), atol=1e-14)


def test_several_kinds() -> None:
    other = POINTS * 1.5
    kinds = np.array([0, 1, 1, 0, 0, 1, 0])
    both = ph.sites([MASSES, [3.0, 2.0, 1.0]], [POINTS, other], kinds)
    alone = [ph.sites(MASSES, POINTS), ph.sites([3.0, 2.0, 1.0], other)]
    f = RNG.normal(size=(NUMBER, 3, 3))
    r, (force, torque) = both.positions(X, Q), both.gather(f, Q)
    for i, kind in enumerate(kinds):
        one = slice(i, i + 1)
        assert both.mass[i] == alone[kind].mass
        assert np.array_equal(both.moments[i], alone[kind].moments)
        assert np.array_equal(r[one], alone[kind].positions(X[one], Q[one]))
        assert np.array_equal(torque[one], alone[kind].gather(f[one], Q[one])[1])
    np.testing.assert_allclose(both.fit(r)[0], X, atol=1e-13)
    assert force.shape == (NUMBER, 3)


def test_sites_and_boxes_are_pickled() -> None:
    sites, box = pickle.loads(pickle.dumps((water(), ph.PeriodicBox(3.0))))
    assert np.array_equal(sites.positions(X, Q), water().positions(X, Q))
    assert box.volume == 27.0


def test_a_box_wraps_and_finds_the_nearest_image() -> None:
    box = ph.PeriodicBox([2.0, 3.0, 4.0])
    x = np.array([[-0.5, 3.0, 9.0], [-1e-18, 2.9, 0.0]])
    np.testing.assert_allclose(box.wrap(x), [[1.5, 0.0, 1.0], [0.0, 2.9, 0.0]])
    assert (box.wrap(x) < box.lengths).all()
    np.testing.assert_allclose(box.minimum_image([1.5, -2.0, 9.0]), [-0.5, 1.0, 1.0])
    assert box.wrap(x, out=x) is x


SAME = np.empty((NUMBER, 3))

BAD = [
    (lambda: ph.sites([], []), r"masses must have the shape \(S,\), or \(K, S\)"),
    (lambda: ph.sites("ab", POINTS), "masses must be the masses of sites"),
    (lambda: ph.sites([1.0, -1.0, 1.0], POINTS), "masses must be positive numbers, or zero"),
    (lambda: ph.sites([0.0, 0.0, 0.0], POINTS), "at least two sites need masses"),
    (lambda: ph.sites([1.0, 0.0, 0.0], POINTS), "all points coincide"),
    (lambda: ph.sites(MASSES, POINTS[:2]), r"positions must have the shape \(3, 3\); got \(2, 3\)"),
    (lambda: ph.sites(MASSES, POINTS * np.nan), r"positions must be finite; entry \(0, 0\) is nan"),
    (lambda: ph.sites(MASSES, POINTS, [0]), "kinds is for several kinds"),
    (lambda: ph.sites([MASSES], [POINTS]), "give kinds, the kind of each molecule"),
    (lambda: ph.sites([MASSES], [POINTS], [0, 1]), "kinds must be numbers from 0 to 0; got 0 to 1"),
    (lambda: ph.sites([MASSES], [POINTS], [0.5]), "kinds must be a row of whole numbers"),
    (lambda: ph.sites([MASSES, [1.0, 0.0, 0.0]], [POINTS, POINTS], [0]), "kind 1: all points coincide"),
    (
        lambda: ph.sites([1.0, 1.0, 0.0], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        "site 2 has no mass and is not on the axis of a linear molecule",
    ),
    (lambda: water().positions(X[:3], Q), r"x must have the shape \(7, 3\); got \(3, 3\)"),
    (lambda: water().positions(X, Q[:, :3]), r"q must have the shape \(N, 4\); got \(7, 3\)"),
    (lambda: water().positions(X, 2 * Q), "q must hold unit quaternions; that of molecule 0 is"),
    (
        lambda: water().positions(X, Q, out=np.empty((7, 3))),
        r"out must be an array of floats with the shape \(7, 3, 3\)",
    ),
    (lambda: water().positions(X, Q, out=np.broadcast_to(0.0, (7, 3, 3))), "out is read-only"),
    (lambda: water().gather(np.zeros((7, 2, 3)), Q), r"forces must have the shape \(7, 3, 3\); got \(7, 2, 3\)"),
    (lambda: water().gather(np.zeros((7, 3, 3)), Q, frame="world"), "frame must be 'body' or 'space'"),
    (lambda: water().gather(np.zeros((7, 3, 3)), Q, out=np.empty((7, 3))), "out must be two arrays"),
    (lambda: water().gather(np.zeros((7, 3, 3)), Q, out=(SAME, SAME)), "force and torque share memory"),
    (lambda: water().velocities(X, Q, X[:2]), r"omega must have the shape \(7, 3\)"),
    (lambda: water().fit(X), r"positions must have the shape \(N, 3, 3\); got \(7, 3\)"),
    (lambda: water().fit(RNG.normal(size=(2, 3, 3))), "do not fit its sites"),
    (lambda: water().fit(water().positions(X, Q), tolerance=-1), "tolerance"),
    (lambda: ph.PeriodicBox(0.0), "lengths must be one positive number, or three; got 0.0"),
    (lambda: ph.PeriodicBox([1.0, 2.0]), "lengths must be one positive number, or three"),
    (lambda: ph.PeriodicBox(1.0).wrap([1.0, 2.0]), r"x must hold vectors of three numbers; got shape \(2,\)"),
    (lambda: ph.PeriodicBox(1.0).wrap([1.0, 2.0, np.inf]), r"x must be finite; entry \(2,\) is inf"),
    (lambda: ph.PeriodicBox(1.0).wrap(X, out=X[:2].copy()), r"out must be an array of floats with the shape \(7, 3\)"),
    (lambda: ph.PeriodicBox([2.0, 3.0, 4.0]).check_cutoff(1.5), "at most half the shortest edge, 1; got 1.5"),
]


@pytest.mark.parametrize(("call", "sentence"), BAD)
def test_bad_input_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ph.InputError, match=sentence):
        call()
