"""Capture into the 3:2 resonance of rotation and orbit: a small version of `validation/mercury.py`."""

import numpy as np
import pytest
from validation import mercury

WIDE = mercury.Planet(2e-3, loss=0.1)


def test_averages_are_those_of_the_literature():
    e, planet = mercury.ECCENTRICITY, mercury.Planet(mercury.MERCURY)
    assert planet.hansen == pytest.approx(7 * e / 2 - 123 * e**3 / 16 + 489 * e**5 / 128, rel=1e-4)
    first, second = planet.tidal_means
    # Correia and Laskar 2004, equation 2
    assert first == pytest.approx((1 + 3 * e**2 + 3 * e**4 / 8) / (1 - e**2) ** 4.5, rel=1e-12)
    assert second == pytest.approx((1 + 7.5 * e**2 + 45 * e**4 / 8 + 5 * e**6 / 16) / (1 - e**2) ** 6, rel=1e-12)
    assert planet.probability == pytest.approx(0.07, abs=0.01)  # "about 7 per cent"


def test_the_period_of_librations():
    """Corrections are of the order of the asymmetry."""
    assert mercury.libration_period(WIDE) * WIDE.libration == pytest.approx(1.0, abs=5e-3)


@pytest.mark.slow
def test_the_share_of_captured_starts():
    found = mercury.captures(WIDE, 128, seed=3)
    assert abs(found.share - WIDE.probability) < 3 * found.sigma
    again = mercury.captures(WIDE, 128, seed=3)
    assert np.array_equal(found.rates, again.rates)
