"""The statistics of validation/temperature.py with few bodies."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_path = Path(__file__).parents[2] / "validation" / "temperature.py"
_spec = importlib.util.spec_from_file_location("temperature", _path)
statistics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(statistics)

FEW = 2000
METHOD = "baoab(rot123)"


@pytest.mark.parametrize("friction", [0.1, 1.0, 100.0])
def test_every_axis_keeps_the_temperature(friction):
    scores = statistics.temperatures(METHOD, friction, 0.02, FEW)
    assert np.all(np.abs(scores) < statistics.LIMIT), scores


def test_every_axis_reaches_the_temperature_from_rest():
    scores = statistics.cold(METHOD, 1.0, 0.02, FEW)
    assert np.all(np.abs(scores) < statistics.LIMIT), scores


def test_dipoles_have_the_distribution_of_gibbs():
    (score,) = statistics.dipole(FEW)
    assert abs(score) < statistics.LIMIT


def test_noise_drawn_in_independent_components_is_caught():
    """With so few bodies every axis is far too cold; the right noise passes the same test."""
    assert np.all(statistics.drawn_in_components(FEW, diagonal=True) < -statistics.LIMIT)
    assert np.all(np.abs(statistics.drawn_in_components(FEW, diagonal=False)) < statistics.LIMIT)
