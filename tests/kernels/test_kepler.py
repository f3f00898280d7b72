"""Kepler's equation in universal variables against separate solutions for ellipses, parabolas and hyperbolas."""

import math

import mpmath
import pytest

from polhode.kernels.kepler import conic, nearest_passage, stumpff
from polhode.numbers import floats  # noqa: F401
from polhode.numbers.multiprecision import number

DIGITS = 70
TINY = [1e-9, 1e-5, 1e-3, 0.03]
ECCENTRICITIES = [0.0, 1e-3, 0.3, 0.7, 0.9, *(1 - x for x in TINY), 1.0, *(1 + x for x in TINY), 1.3, 3.0, 20.0]
TIMES = [0.0, 1e-6, -0.01, 0.3, -1.0, 4.0, -30.0, 1e3, -1e6, 1e9]


def anomaly(f, slope, start):
    """Root of an increasing odd function, by Newton's method with bisection as a safeguard."""
    low, high = (min(0, start), max(0, start))
    x = (low + high) / 2
    for _ in range(400):
        value = f(x)
        low, high = (x, high) if value < 0 else (low, x)
        new = x - value / slope(x)
        new = new if low < new < high else (low + high) / 2
        if abs(new - x) <= mpmath.eps * abs(x):
            return new
        x = new
    return x


def by_its_own_formula(e, tau):
    """Position on a conic with q = mu = 1, in 70 digits: Barker's, Kepler's or the hyperbolic equation."""
    e, tau = mpmath.mpf(e), mpmath.mpf(tau)
    if e == 1:
        B = 3 * tau / mpmath.sqrt(8)
        y = mpmath.cbrt(abs(B) + mpmath.sqrt(B * B + 1))
        D = mpmath.sign(B) * (y - 1 / y)  # tan of half the true anomaly
        return 1 - D * D, 2 * D
    a = 1 / (1 - e)
    M = tau / mpmath.sqrt(abs(a) ** 3)
    if e < 1:
        M -= 2 * mpmath.pi * mpmath.nint(M / (2 * mpmath.pi))
        E = anomaly(lambda E: E - e * mpmath.sin(E) - M, lambda E: 1 - e * mpmath.cos(E), M + mpmath.sign(M) * e)
        return a * (mpmath.cos(E) - e), a * mpmath.sqrt(1 - e * e) * mpmath.sin(E)
    most = mpmath.sign(M) * (mpmath.asinh(abs(M) / e) + 2 if abs(M) > 10 else mpmath.cbrt(6 * abs(M)))
    F = anomaly(lambda F: e * mpmath.sinh(F) - F - M, lambda F: e * mpmath.cosh(F) - 1, most)
    return a * (mpmath.cosh(F) - e), -a * mpmath.sqrt(e * e - 1) * mpmath.sinh(F)


def times(e):
    """Times, for an ellipse also near the apoapsis and after many revolutions."""
    own = [M / (1 - e) ** 1.5 for M in (math.pi, -3.1415, 2.5, 6.3, 1e5)] if e < 1 else []
    return TIMES + own


def phase(e, tau):
    """Revolutions: a rounding error of tau is that many times larger in the position."""
    return max(1.0, abs(tau) * (1 - e) ** 1.5) if e < 1 else 1.0


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_the_position_is_right_to_round_off_on_every_conic(e):
    """Measured: 5e-15 at e = 0.97, at the periapsis after a revolution, else 6e-16."""
    with mpmath.workdps(DIGITS):
        for tau in times(e):
            goal = by_its_own_formula(e, tau)
            r = mpmath.hypot(*goal)
            found = conic(e, tau)[0]
            assert mpmath.hypot(*(a - b for a, b in zip(found, goal, strict=True))) < 1e-14 * r * phase(e, tau)
            precise = conic(number(e), number(tau))[0]
            gap = mpmath.hypot(*(mpmath.mpf(a) - b for a, b in zip(precise, goal, strict=True)))
            assert gap < 1e-50 * r * phase(e, tau)


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_energy_and_angular_momentum(e):
    """v^2/2 - 1/r = (e - 1)/2 and x v_y - y v_x = sqrt(1 + e), which the position alone does not determine."""
    for tau in (0.0, 0.4, -3.0, 50.0):
        (x, y), (u, v) = conic(e, tau)
        assert abs((u * u + v * v) / 2 - 1 / math.hypot(x, y) - (e - 1) / 2) < 2e-15
        assert abs(x * v - y * u - math.sqrt(1 + e)) < 1e-14 * math.hypot(x, y)


def test_the_nearest_passage_of_the_periapsis():
    period = 2 * math.pi / 0.5**1.5
    assert abs(nearest_passage(0.5, 3 * period + 0.25) - 0.25) < 1e-13
    assert nearest_passage(1.0, 1e6) == 1e6
    assert nearest_passage(1.5, -1e6) == -1e6


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("s", [0.5, -2.0])
def test_stumpff_functions(x, s):
    """G_k = s^k c_k(beta s^2), |beta| s^2 = x^2, on ellipses and hyperbolas."""
    with mpmath.workdps(DIGITS):
        S = mpmath.mpf(s)
        for sign in (1, -1):
            beta = sign * (x / s) ** 2
            X = mpmath.sqrt(abs(beta)) * abs(S)
            C, D = (mpmath.cos(X), mpmath.sin(X)) if sign > 0 else (mpmath.cosh(X), mpmath.sinh(X))
            goal = [C, S * D / X, S**2 * sign * (1 - C) / X**2, S**3 * sign * (X - D) / X**3]
            for a, b, c in zip(stumpff(s, beta), stumpff(number(s), number(beta)), goal, strict=True):
                assert abs(a - c) < 2e-15 * max(1, abs(c))
                assert abs(mpmath.mpf(b) - c) < 1e-50 * max(1, abs(c))
