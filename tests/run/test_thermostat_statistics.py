"""The statistics of validation/thermostats.py with few samples."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_path = Path(__file__).parents[2] / "validation" / "thermostats.py"
_spec = importlib.util.spec_from_file_location("thermostats", _path)
statistics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(statistics)


def test_rescaled_kinetic_energies_are_canonical():
    scores = statistics.rescaled(300, tau=0.25)
    assert np.all(np.abs(scores) < statistics.LIMIT), scores


@pytest.mark.parametrize("moments", [(0.4, 1.0, 1.1), (0.9, 0.9, 0.0)], ids=["three degrees", "linear bodies"])
def test_kinetic_energies_of_each_body_are_canonical(moments):
    scores = statistics.each_rescaled(4000, moments)
    assert np.all(np.abs(scores) < statistics.LIMIT), scores


def test_kinetic_energies_with_chains_are_canonical():
    scores = statistics.chained(10)
    assert np.all(np.abs(scores) < statistics.LIMIT), scores


def test_a_wrong_temperature_is_caught():
    """A tenth too hot: the same scores are far beyond the limit."""
    x = np.random.default_rng(1).gamma(6.0, 1.1 * statistics.KT, 2000)
    scores = statistics.score_of(x, 12)
    assert scores[0] > statistics.LIMIT
    assert scores[2] > statistics.LIMIT
