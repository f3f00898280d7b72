"""Layout of a few bodies by NumPy: the bits of the compiled conversion."""

import collections

import numpy as np
import pytest

from polhode.compile.batch import few_bodies, layout
from polhode.kernels.so3 import unit
from polhode.run.ensemble.start import is_unit

NUMBER = 21


def described(axes, several=True):
    """Arrays that describe an ensemble: some linear bodies, axes of their own or none, one row for all or each."""
    rng = np.random.default_rng(5)
    n = NUMBER if several else 1
    q, a = (x / np.linalg.norm(x, axis=1)[:, None] for x in rng.normal(size=(2, n, 4)))
    moments = rng.uniform(1.0, 2.0, (n, 3))
    moments[::4, 1] = 0.0
    given = q, rng.normal(size=(NUMBER, 3)), moments, rng.normal(size=(n, 2)), a[:, : 4 * axes]
    return *map(np.ascontiguousarray, given), np.full((1, 1), 0.1), rng.integers(1, 9, (NUMBER, 1)).astype(float)


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(layout, "FEW", 0)
    monkeypatch.setattr(layout, "MANY", 0)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("axes", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_bits_are_those_of_compiled_code(axes, several):
    given = described(axes, several)
    for order, first in ((layout.EVERYBODY, 0), (np.random.default_rng(1).permutation(NUMBER), 8)):
        width = layout.padded(NUMBER - first)
        data = np.full((2, layout.sizes(given).rows + 2, width), np.nan)
        layout.lay_out(given, order, NUMBER, data[0], first)
        few_bodies.lay_out(given, order, NUMBER, data[1], first)
        np.testing.assert_array_equal(data[0], data[1])
        rows = np.random.default_rng(2).normal(size=(2, 9, width))
        found = [(np.zeros((3, NUMBER, 4)), np.zeros((3, NUMBER, 3)), np.zeros((2, NUMBER, 2))) for _ in range(2)]
        few_bodies.hand_all_over(given, order, rows, first, NUMBER, found[1])
        layout.hand_all_over(given, order, rows.copy(), first, NUMBER, found[0])
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_conversion_is_compiled_only_for_many_bodies(monkeypatch, tmp_path):
    """NumPy converts the bodies of the first calls: for them it takes less time than compiling."""
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path / "cache"))  # the usual one has it from the last run of the tests
    monkeypatch.setattr(layout, "CONVERTED", collections.Counter())

    def found(number):
        return layout.compiled_if_worthwhile(lambda: lambda x: x + 1.25, number, "a conversion for this test")

    for _ in range(1 + layout.MANY // layout.FEW):
        assert found(layout.FEW) is None
    assert found(layout.MANY) is None
    run = found(layout.FEW + 1)
    assert run(1.0) == 2.25
    layout.CONVERTED.clear()
    assert found(layout.FEW + 1) is run, "what is compiled already is used"
    assert found(layout.FEW) is None


@pytest.mark.usefixtures("compiled")
def test_quaternions_are_checked_and_normalised_alike():
    q = described(True)[0] * (1 + 1e-9)
    np.testing.assert_array_equal(layout.changed(is_unit, unit, q), few_bodies.changed(is_unit, unit, q))
    for wrong in (np.nan, 3.0):
        bad = q.copy()
        bad[7, 2] = wrong
        assert few_bodies.changed(is_unit, unit, bad) is None
        assert layout.changed(is_unit, unit, bad) is None
