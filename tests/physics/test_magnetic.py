"""The dipole field along an orbit: against the gradient of its potential, and in a control law."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.physics.fields.magnetic import dipole_field

fields = ph.fields
BODY = ph.Body([2.0, 3.0, 4.0])
OMEGA = (0.1, 0.2, 0.3)
ORBIT = ph.Orbit(2.0, 0.9, 0.3, inclination=1.2, node=1.0, argument=0.3)
PLANET = {"strength": 0.7, "tilt": 0.4, "rate": 0.6, "phase": 0.2}
ROTATIONS = Rotation.random(4, rng=np.random.default_rng(5)).as_matrix().tolist()


def moment_of_planet(t):
    a = PLANET["rate"] * t + PLANET["phase"]
    tilt = PLANET["tilt"]
    return np.array([math.sin(tilt) * math.cos(a), math.sin(tilt) * math.sin(a), math.cos(tilt)])


def test_the_field_is_the_gradient_of_the_potential_of_a_dipole():
    """B = -grad(k e . r/r^3), by central differences."""
    step = 1e-4
    for t, r in ((0.0, [1.0, 2.0, 0.5]), (1.3, [-0.4, 0.3, 1.1])):
        e = moment_of_planet(t)

        def potential(x, e=e):
            return 0.7 * e @ x / np.linalg.norm(x) ** 3

        slope = [(potential(r + step * d) - potential(r - step * d)) / (2 * step) for d in np.eye(3)]
        assert dipole_field(t, tuple(r), **PLANET) == pytest.approx(-np.array(slope), rel=1e-6)


def test_at_the_pole_and_at_the_equator():
    """2 k/r^3 along the moment on its axis, -k/r^3 at right angles."""
    assert dipole_field(0.0, (0.0, 0.0, 2.0), 0.8, 0.0, 0.0, 0.0) == pytest.approx([0, 0, 0.2])
    assert dipole_field(0.0, (0.0, 2.0, 0.0), 0.8, 0.0, 0.0, 0.0) == pytest.approx([0, 0, -0.1])


def test_the_torque_on_a_residual_dipole():
    m = np.array([0.3, -0.2, 0.5])
    field = fields.residual_dipole(m, ORBIT, **PLANET)
    B = fields.magnetic_field(ORBIT, **PLANET)
    for R, t in zip(ROTATIONS, (0.0, 1.0, -2.0, 30.0), strict=True):
        goal = dipole_field(t, tuple(ORBIT.position(t)), **PLANET)
        assert B(t) == pytest.approx(goal, rel=1e-13)
        assert field.torque_value(t, R, OMEGA) == pytest.approx(np.cross(m, np.array(R).T @ goal), rel=1e-13)
    assert field.needs == "attitude"


def test_a_magnetorquer_takes_energy(interpreted):
    """The law m = k omega x b gives T = -k |b|^2 omega across b: the energy falls, and T is at right angles to b."""
    B = fields.magnetic_field(ORBIT, **PLANET)

    @ph.torque
    def magnetorquer(t, R, omega, gain):
        b = R.T @ B(t)
        return ph.math.cross(gain * ph.math.cross(omega, b), b)

    law = magnetorquer(gain=2.0)
    sol = ph.solve(ph.Problem(BODY, law, omega=OMEGA), "mkrk(rk4)", dt=0.05, t_end=5.0)
    assert (np.diff(sol.energy) < 0).all()
    torque = law.torque_value(1.0, np.eye(3).tolist(), OMEGA)
    assert np.dot(torque, B(1.0)) == pytest.approx(0, abs=1e-15)


MISTAKES = [
    (lambda: fields.residual_dipole([1, 2], ORBIT, 1.0), "moment must be three numbers"),
    (lambda: fields.residual_dipole([1, 2, 3], ORBIT, 0.0), "strength must be positive; got 0"),
    (lambda: fields.residual_dipole([1, 2, 3], ORBIT, 1.0, tilt=math.nan), "tilt must be finite; got nan"),
    (lambda: fields.magnetic_field("low", 1.0), "orbit must be a ph.Orbit, a ph.Ephemeris"),
]


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)
