"""Kernels of thermostats: the flow of a chain against its equations, and the factor of a rescaling."""

import math

import mpmath
import numpy as np
import pytest
import scipy.integrate

from polhode.kernels.nose_hoover import Chain, chain_energy, chain_of, chain_step
from polhode.kernels.velocity_rescaling import rescaling
from polhode.run.batch_stepper.thermostats import WEIGHTS

KT, DEGREES, KINETIC = 1.3, 5, 9.1
CHAIN = chain_of(3, KT, 0.7, DEGREES)._replace(positions=(0.1, -0.2, 0.3), velocities=(0.4, -0.3, 0.2))


def rates(t, y):
    """The equations of the chain, for (log p, eta, v)."""
    m, v = CHAIN.masses, y[4:]
    first = (math.exp(2 * y[0]) * KINETIC - DEGREES * KT) / m[0] - v[1] * v[0]
    second = (m[0] * v[0] ** 2 - KT) / m[1] - v[2] * v[1]
    third = (m[1] * v[1] ** 2 - KT) / m[2]
    return [-v[0], *v, first, second, third]


def test_a_chain_moves_by_its_equations_to_fourth_order():
    start = [0.0, *CHAIN.positions, *CHAIN.velocities]
    errors = []
    for h in (0.4, 0.2):
        exact = scipy.integrate.solve_ivp(rates, (0, h), start, rtol=1e-13, atol=1e-13).y[:, -1]
        factor, chain = chain_step(h, KINETIC, CHAIN, WEIGHTS)
        found = [math.log(factor), *chain.positions, *chain.velocities]
        errors.append(np.abs(np.array(found) - exact).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(5, abs=0.4)


def test_the_energy_of_momenta_and_chain_is_conserved_to_fourth_order():
    changes = []
    with mpmath.workdps(30):
        numbers = Chain(*(tuple(map(mpmath.mpf, x)) if isinstance(x, tuple) else mpmath.mpf(x) for x in CHAIN))
        for h in (mpmath.mpf(1) / 128, mpmath.mpf(1) / 256):
            factor, chain = chain_step(h, mpmath.mpf(KINETIC), numbers, [mpmath.mpf(w) for w in WEIGHTS])
            before, after = KINETIC / 2 + chain_energy(numbers), factor**2 * KINETIC / 2 + chain_energy(chain)
            changes.append(abs(after - before))
        assert mpmath.log(changes[0] / changes[1], 2) == pytest.approx(5, abs=0.3)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_a_step_backwards_returns(length):
    chain = chain_of(length, KT, 0.7, DEGREES)
    factor, moved = chain_step(0.3, KINETIC, chain, WEIGHTS)
    back, again = chain_step(-0.3, factor**2 * KINETIC, moved, WEIGHTS)
    assert factor * back == pytest.approx(1, abs=1e-14)
    assert [*again.positions, *again.velocities] == pytest.approx([0] * 2 * length, abs=1e-14)


def test_rescaling_is_the_formula_of_bussi():
    h, tau, xi, rest = 0.3, 0.5, -0.8, 4.2
    c, ratio = math.exp(-h / tau), KT / KINETIC  # K0/(f K) = kT/(2 K)
    square = c + ratio * (1 - c) * (xi**2 + rest) + 2 * xi * math.sqrt(c * ratio * (1 - c))
    assert rescaling(h, tau, KT, KINETIC, xi, rest) == pytest.approx(math.sqrt(square), rel=1e-14)


def test_rescaling_may_reverse_momenta():
    assert rescaling(5.0, 0.5, KT, 0.1, -2.0, 0.0) < 0
    assert rescaling(5.0, 0.5, KT, 0.1, 2.0, 0.0) > 0


def test_long_steps_forget_the_start():
    assert rescaling(1e3, 0.5, KT, KINETIC, 0.6, 4.2) ** 2 * KINETIC == pytest.approx(KT * (0.36 + 4.2), rel=1e-12)
