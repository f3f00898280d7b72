"""Elliptic kernels against mpmath, scanned across every branch, in doubles and in 40 digits."""

import itertools
import math
import random

import mpmath
import pytest

from polhode.kernels import elliptic
from polhode.numbers import double_double
from polhode.numbers.multiprecision import number

EPS = 2.0**-52
PARAMETERS = (
    *(0.0, 1e-300, 1e-100, 1e-32, 1e-16, 1e-8, 1e-3, 0.1, 0.3, 0.49),
    *(0.5 - 1e-16, 0.5, 0.5 + 1e-15, 0.7, 0.99, 1 - 1e-10, 1 - 1e-15, 1.0),
)


def enough(m1):
    """Digits with which 1 - m1 is exact and large arguments are reduced."""
    return 345 if 0 < m1 < 1e-60 else 70


def jacobi(u, m1):
    u, m1 = mpmath.mpf(u), mpmath.mpf(m1)
    if m1 == 0:
        return mpmath.tanh(u), mpmath.sech(u), mpmath.sech(u)
    return tuple(mpmath.ellipfun(name, u, m=1 - m1) for name in ("sn", "cn", "dn"))


def arguments(m1):
    scatter = random.Random(1)
    quarter = elliptic.complete(m1) if m1 else 5.0
    near = [k * quarter * (1 + s) for k in (0.5, 1, 2, 3, -1) for s in (0, 1e-15, -1e-12, 1e-6, -1e-3)]
    return [0.0, 1e-300, -1e-20, 1e-8, 0.3, -0.999, 1.001, *near, *(scatter.uniform(-20, 20) for _ in range(5))]


@pytest.mark.parametrize("m1", PARAMETERS)
def test_sn_cn_dn_have_a_few_units_of_error(m1):
    for u in arguments(m1):
        found = elliptic.sncndn(u, m1)
        with mpmath.workdps(enough(m1)):
            gaps = [float(abs(a - b)) for a, b in zip(found, jacobi(u, m1), strict=True)]
        assert max(gaps) < 4 * EPS, (u, gaps)


@pytest.mark.parametrize("m1", [m for m in PARAMETERS if m])
def test_large_arguments_lose_no_digits(m1):
    scatter = random.Random(2)
    for u in [scatter.uniform(1e3, 1e6) for _ in range(4)] + [1e8 + 0.25, -3e9]:
        found = elliptic.sncndn(u, m1)
        with mpmath.workdps(enough(m1)):
            gaps = [float(abs(a - b)) for a, b in zip(found, jacobi(u, m1), strict=True)]
        assert max(gaps) < 8 * EPS, (u, gaps)


@pytest.mark.parametrize("m1", [1e-300, 1e-32, 1e-12, 1e-3, 0.3])
def test_dn_keeps_its_relative_precision_down_to_the_quarter_period(m1):
    """dn falls to sqrt(m1) there; its condition number is at most K."""
    quarter = elliptic.complete(m1)
    for part in (0.5, 0.9, 0.99, 1.0):
        u = part * quarter
        with mpmath.workdps(enough(m1)):
            dn = jacobi(u, m1)[2]
            assert abs(elliptic.sncndn(u, m1)[2] / dn - 1) < 4 * EPS * (1 + quarter)


@pytest.mark.parametrize("m1", PARAMETERS)
def test_the_squares_add_up_for_tiny_arguments(m1):
    for u in (1e-300, 1e-18, 1e-9):
        s, c, d = elliptic.sncndn(u, m1)
        assert abs(s / u - 1) < 4 * EPS
        assert abs(c - 1) < 4 * EPS
        assert abs(d - 1) < 4 * EPS


@pytest.mark.parametrize("m1", [m for m in PARAMETERS if m])
def test_quarter_period_is_a_pair_of_twice_the_precision(m1):
    high, low = elliptic.quarter_period(m1)
    with mpmath.workdps(enough(m1)):
        true = mpmath.ellipk(1 - mpmath.mpf(m1))
        assert abs(high / true - 1) < EPS
        assert abs((mpmath.mpf(high) + low) / true - 1) < (1e-30 if m1 > 1e-200 else 1e-25)  # low digits underflow


@pytest.mark.parametrize("m1", [m for m in PARAMETERS if m > 0])
@pytest.mark.parametrize("pp", [1.0, 1.0 + 1e-9, 1.3, 1.7, 2.0, 50.0])
def test_complete_integral_of_the_third_kind(m1, pp):
    """R_J(0, m1, 1, p) = 3 K/(2 p) S and R_J(0, m1, 1, m1/p) = 3 K p/(2 m1) (2 - S), in doubles and in 40 digits."""
    with mpmath.workdps(enough(m1)):
        m, p = mpmath.mpf(m1), mpmath.mpf(pp)
        K = mpmath.ellipk(1 - m)
        exact = (mpmath.elliprj(0, m, 1, p) * 2 * p / (3 * K), mpmath.elliprj(0, m, 1, m / p) * 2 * m / (3 * K * p))
    for got, known in zip(elliptic.third_sums(m1, pp), exact, strict=True):
        assert abs(got - known) <= 8 * EPS * known
    with mpmath.workdps(45):
        for got, known in zip(elliptic.third_sums(number(m1), number(pp)), exact, strict=True):
            assert abs(got - known) <= known * mpmath.mpf(10) ** -42


@pytest.mark.parametrize("m1", ["0", "1e-60", "1e-20", "0.001", "0.3", "0.5", "0.6", "0.99", "1"])
@pytest.mark.parametrize("digits", [40, 120])
def test_jacobi_in_many_digits(m1, digits):
    for u in ("1e-10", "0.7", "3.3", "-55.1"):
        with mpmath.workdps(digits + 5):
            x, y = mpmath.mpf(u), mpmath.mpf(m1)
            found = elliptic.sncndn(x, y)
        with mpmath.workdps(2 * digits + 20):
            gaps = [abs(a - b) for a, b in zip(found, jacobi(x, y), strict=True)]
            assert max(gaps) < mpmath.mpf(10) ** -(digits + 2), u


SIZES = (0.0, 1e-300, 1e-12, 1e-3, 0.4, 1.0, 1.0 + 1e-9, 7.0, 1e6)
INTEGRALS = {
    "rf": (elliptic.carlson_rf, mpmath.elliprf, 3),
    "rj": (elliptic.carlson_rj, mpmath.elliprj, 4),
}


def allowed(name, x):
    """At most one zero, and none where the integral would diverge."""
    return x.count(0.0) <= 1 and (name == "rf" or x[-1] > 0)


@pytest.mark.parametrize("name", INTEGRALS)
def test_carlson_integrals_in_doubles(name):
    ours, true, count = INTEGRALS[name]
    scatter = random.Random(3)
    cases = [x for x in itertools.product(SIZES, repeat=count) if allowed(name, x) and 1e-300 not in x[2:]]
    for x in scatter.sample(cases, min(len(cases), 250)):
        with mpmath.workdps(40):
            expected = true(*(mpmath.mpf(v) for v in x))
            assert abs(ours(*x) / expected - 1) < 12 * EPS, x


@pytest.mark.parametrize("name", INTEGRALS)
def test_carlson_integrals_in_forty_digits(name):
    ours, true, count = INTEGRALS[name]
    scatter = random.Random(4)
    cases = [x for x in itertools.product(SIZES[2:], repeat=count) if allowed(name, x)]
    for x in scatter.sample(cases, min(len(cases), 40)):
        with mpmath.workdps(45):
            found = ours(*(number(v) for v in x))
        with mpmath.workdps(80):
            assert abs(found / true(*(mpmath.mpf(v) for v in x)) - 1) < mpmath.mpf(10) ** -42, x


def test_sums_and_products_are_error_free():
    scatter = random.Random(5)
    for _ in range(200):
        a, b = (scatter.uniform(-1, 1) * 10.0 ** scatter.randint(-20, 20) for _ in range(2))
        with mpmath.workdps(120):
            s, p = double_double.two_sum(a, b), double_double.two_product(a, b)
            assert mpmath.mpf(s[0]) + s[1] == mpmath.mpf(a) + b
            assert mpmath.mpf(p[0]) + p[1] == mpmath.mpf(a) * b


def test_pairs_have_twice_the_precision():
    x, y = (3.7, 1e-17), (0.21, -3e-18)
    with mpmath.workdps(60):
        big, small = (mpmath.mpf(v[0]) + v[1] for v in (x, y))
        for found, true in (
            (double_double.pair_sum(x, y), big + small),
            (double_double.pair_product(x, y), big * small),
            (double_double.pair_quotient(x, y), big / small),
            (double_double.pair_sqrt(x), mpmath.sqrt(big)),
        ):
            assert abs((mpmath.mpf(found[0]) + found[1]) / true - 1) < 1e-31


@pytest.mark.parametrize("digits", [None, 40])
def test_whole_numbers_and_powers_of_two(digits):
    with mpmath.workdps(digits or 15):
        make = float if digits is None else number
        for x, n in ((0.3, 0), (-0.7, -1), (12345.4, 12345), (1e9 + 0.6, 1e9 + 1)):
            assert double_double.nearest(make(x)) == n
        assert bool(elliptic.odd(make(7)))
        assert not bool(elliptic.odd(make(-4)))
        for x in (1.0, 1.5, 3.99, 1e-200, 7e150):
            assert double_double.leading(make(x)) == 2.0 ** math.floor(math.log2(x))
