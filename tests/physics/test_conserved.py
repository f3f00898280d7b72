"""What the exact motion conserves: energy, and momentum along some directions."""

import numpy as np
import pytest

import polhode as ph
from polhode.physics.conserved import conserved

BODY = ph.Body([1.0, 2.0, 2.5])
GRAVITY = ph.fields.gravity(2.0)
DIRECTION = np.array([0.4, 0.1, 0.9]) / 0.98**0.5


def of(field):
    return conserved(ph.Problem(BODY, field, omega=[1.0, 0.2, 0.3]))


@pytest.mark.parametrize(
    ("field", "energy", "momentum"),
    [
        (None, True, "spatial_momentum"),
        (GRAVITY, True, "vertical_momentum"),
        (ph.fields.dipole([0.3, -0.2, 0.5], [0.4, 0.1, 0.9]), True, "conserved_momentum"),
        (ph.fields.attitude_spring([0.6, 0.0, 0.8, 0.0], 2.0), True, ""),
        (ph.fields.gyrostat([0.5, -0.3, 1.0]), True, ""),
        (GRAVITY + ph.fields.gyrostat([0.5, -0.3, 1.0]), True, ""),
        (ph.fields.linear_drag(0.2), False, ""),
        (GRAVITY + ph.fields.linear_drag(1e-7), False, ""),
        (ph.fields.constant_torque([0.1, 0.2, -0.3], frame="space"), False, "conserved_momentum"),
        (ph.fields.rotating_dipole([0.3, -0.2, 0.5], [0.4, 0.1, 0.9], rate=0.7), False, ""),
        (ph.fields.heat_bath(kT=0.1, friction=0.5, seed=1), False, ""),
    ],
    ids=repr,
)
def test_fields(field, energy, momentum):
    found = of(field)
    assert (found.energy, found.momentum) == (energy, momentum)


def test_directions():
    np.testing.assert_allclose(of(ph.fields.dipole([0.3, -0.2, 0.5], [0.4, 0.1, 0.9])).directions, [DIRECTION])
    across = of(ph.fields.constant_torque([0.0, 0.0, 1.0], frame="space")).directions
    np.testing.assert_allclose(np.array(across) @ [0.0, 0.0, 1.0], [0.0, 0.0], atol=1e-12)


def test_what_is_not_a_formula_is_not_known():
    @ph.torque(plain=True)
    def push(t):
        return (0.0, 0.0, 1.0 if t < 1 else 0.0)

    assert of(push()) is None


@pytest.mark.parametrize("name", ph.problems.names())
def test_named_problems_conserve_energy(name):
    assert conserved(ph.problems.get(name)).energy
