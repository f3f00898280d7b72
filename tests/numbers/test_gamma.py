"""Counted gamma numbers and sums of squares: their distribution, and that they depend on their counters only."""

import pytest
import scipy.stats

from polhode.numbers.gamma import gamma_number, sum_of_squares

SAMPLES = 2000


@pytest.mark.parametrize("count", [1, 2, 3, 20, 3001])
def test_sums_of_squares_have_their_distribution(count):
    """The probability of a deviation as large as the one found is above 0.3 %."""
    found = [sum_of_squares(count, 5.0, 3.0, float(step), 1) for step in range(SAMPLES)]
    assert scipy.stats.kstest(found, scipy.stats.chi2(count).cdf).pvalue > 0.003


def test_no_number_has_no_square():
    assert sum_of_squares(0, 1.0, 2.0, 3.0, 0) == 0.0


def test_the_counters_choose_the_number():
    place = 2.5, 1.0, 2.0, 3.0, 0
    assert gamma_number(*place) == gamma_number(*place)
    others = [gamma_number(2.5, *(x + (i == j) for j, x in enumerate((1.0, 2.0, 3.0))), 0) for i in range(3)]
    assert len({gamma_number(*place), *others}) == 4
