"""Dual numbers: exact derivatives of every function a formula may use, over floats, mpmath and arrays."""

import mpmath
import numpy as np
import pytest

from polhode.numbers import arrays, multiprecision, primitives  # noqa: F401 - number types
from polhode.numbers.dual import Dual, plain, tangent
from polhode.numbers.primitives import FUNCTIONS

X, Y = mpmath.mpf("0.7"), mpmath.mpf("0.43")
PAIRS = ("atan2", "power")


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(50):
        yield


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in PAIRS])
def test_second_derivatives_of_functions(name):
    def f(x):
        return getattr(primitives, name)(x * x + Y)

    twice = Dual(2, Dual(1, X, mpmath.mpf(1)), mpmath.mpf(1))
    found = f(twice)
    assert plain(found) == f(X)
    assert abs(tangent(tangent(found, 2), 1) - mpmath.diff(f, X, 2)) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_mixed_derivatives_of_two_arguments(name, which):
    """In both arguments, in the first, in the second."""
    one = mpmath.mpf(1)

    def f(x, y):
        return getattr(primitives, name)(x, y + 2)

    if which == 0:
        found, due = tangent(tangent(f(Dual(1, X, one), Dual(2, Y, one)), 2), 1), mpmath.diff(f, (X, Y), (1, 1))
    elif which == 1:
        found, due = tangent(f(Dual(1, X, one), Y), 1), mpmath.diff(f, (X, Y), (1, 0))
    else:
        found, due = tangent(f(X, Dual(1, Y, one)), 1), mpmath.diff(f, (X, Y), (0, 1))
    assert abs(found - due) < mpmath.mpf(10) ** -40


def test_arithmetic_branches_and_levels():
    def f(x, y):
        return (2 - x) * (y / x - 3 / y) + abs(x - y) - primitives.where(x > y, x * y, y) / (1 - x)

    one = mpmath.mpf(1)
    found = f(Dual(1, X, one), Dual(2, Y, one))
    assert abs(tangent(tangent(found, 2), 1) - mpmath.diff(f, (X, Y), (1, 1))) < mpmath.mpf(10) ** -40
    assert tangent(X, 1) == 0


def test_arrays_of_both_kinds_of_operand():
    x = np.array([0.3, 0.9])
    found = x * Dual(1, x, np.ones(2)) / (x + Dual(1, x, np.ones(2))) + primitives.where(x > 0.5, Dual(1, x, 3 * x), x)
    np.testing.assert_allclose(found.tangent, 0.25 + np.array([0.0, 2.7]), rtol=1e-15)
