"""The weights of errors in an adaptive step, for momenta and times of all sizes."""

import math

import pytest

from polhode.kernels.loops import FAINT, LATER, weights_of_errors

INVERSE = (1.0, 1 / 2, 1 / 3)


def found(m, left=4.0, tolerance=1e-6, square=0.0):
    return weights_of_errors(tolerance, left, m, square, ((1.0, 2.0, 3.0), INVERSE, ()))


def test_errors_as_large_as_allowed_have_the_weight_one():
    m, left, tolerance = (0.3, -2.0, 1.5), 4.0, 1e-6
    (attitude, momentum), square = found(m, left, tolerance)
    angle = left * math.hypot(*(x * i for x, i in zip(m, INVERSE, strict=True)))
    assert attitude * tolerance**2 == pytest.approx(1, rel=1e-14)
    assert square == pytest.approx(math.hypot(*m) ** 2, rel=1e-14)
    limit = tolerance * math.hypot(*m) / math.hypot(1, LATER * angle)
    assert momentum * limit**2 == pytest.approx(1, rel=1e-14)


def test_the_largest_momentum_so_far_counts():
    (_, slow), square = found((0.0, 0.0, 0.1), left=0.0, square=25.0)
    assert square == 25.0
    assert slow == pytest.approx(1 / (1e-12 * 25.0), rel=1e-14)


@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-200, 1e-145])
def test_a_momentum_near_underflow_is_not_controlled(size):
    (attitude, momentum), square = found((0.0, size, 0.0))
    assert (attitude, momentum) == (pytest.approx(1e12), 0.0)
    assert square * 1e-12 <= FAINT


@pytest.mark.parametrize(
    ("size", "left"), [(1e-100, 1e100), (1e100, 1e-100), (1e-130, 1e131), (1e140, 0.0), (0.0, 1e200)]
)
def test_units_do_not_matter(size, left):
    """The weight of a momentum error is relative to the momentum, and finite for angles that can be turned."""
    (_, momentum), square = found((size, 0.0, 0.0), left)
    turned = 1 + (LATER * left * size) ** 2
    assert momentum * 1e-12 * square == pytest.approx(turned if size else 0.0, rel=1e-13)
