"""Rotation kernels against 50 digits, scanned across every branch point."""

import math

import mpmath
import numpy as np
import pytest

from polhode.kernels import so3
from polhode.numbers.dispatch import Floats
from polhode.numbers.multiprecision import number

EPS = Floats.epsilon()
SWITCHES = (EPS, 64 * EPS**0.125, 32 * EPS**0.125)


def scan():
    """Squares of angles from 1e-30 to just below (2 pi)^2, dense on both sides of every switch."""
    spread = np.logspace(-30, math.log10(39.0), 300)
    near = [s * (1 + sign * d) for s in SWITCHES for d in (0, 1e-15, 1e-9, 1e-3) for sign in (1, -1)]
    return [0.0, *spread, *near]


def exact(function, x2):
    with mpmath.workdps(60):
        x = mpmath.sqrt(mpmath.mpf(x2))
        return function(x)


def sinc(x):
    return mpmath.sin(x) / x if x else mpmath.mpf(1)


def tail(x):
    return (x - mpmath.sin(x)) / x**3 if x else mpmath.mpf(1) / 6


def cot_tail(x):
    return (1 - x / 2 * mpmath.cot(x / 2)) / x**2 if x else mpmath.mpf(1) / 12


@pytest.mark.parametrize("x2", scan())
def test_sinc_and_cosine(x2):
    """Rounding of the root, the sine and the quotient: each half an epsilon; the angle's own error counts x."""
    s, c = so3.sinc_cos(x2)
    allowed = EPS * (2 + math.sqrt(x2))
    assert abs(s - exact(sinc, x2)) <= allowed
    assert abs(c - exact(mpmath.cos, x2)) <= allowed


@pytest.mark.parametrize("x2", scan())
def test_tail(x2):
    """Series: relative 4 EPS. Closed form: cancellation of numbers of size 1 against a difference x2/6."""
    truth = exact(tail, x2)
    allowed = 4 * EPS if x2 < SWITCHES[1] else EPS * (3 + math.sqrt(x2)) / (x2 * float(truth))
    assert abs(so3.tail(x2) - truth) <= allowed * truth


@pytest.mark.parametrize("x2", scan())
def test_cot_tail(x2):
    """Series: relative 4 EPS. Closed form: cancellation of 1 - c/s, c/s of size up to x/(2 pi - x) near 2 pi."""
    truth = exact(cot_tail, x2)
    size = 1 + abs(float(exact(lambda x: x / 2 * mpmath.cot(x / 2) if x else mpmath.mpf(1), x2)))
    near_pole = 1 / abs(math.sin(math.sqrt(x2) / 2)) if x2 > 1 else 1
    allowed = 4 * EPS if x2 < SWITCHES[2] else 4 * EPS * size * near_pole / (x2 * float(truth))
    assert abs(so3.cot_tail(x2) - truth) <= allowed * truth


@pytest.mark.parametrize("digits", [30, 50, 80])
@pytest.mark.parametrize("name", ["tail", "cot_tail"])
def test_series_and_closed_form_agree_at_any_precision(digits, name):
    """On both sides of the switch, in any number of digits: what enters a step is x2 times the function."""
    import polhode.numbers.multiprecision  # noqa: F401

    truth = {"tail": tail, "cot_tail": cot_tail}[name]
    with mpmath.workdps(digits):
        switch = {"tail": 64, "cot_tail": 32}[name] * mpmath.eps ** (mpmath.mpf(1) / 8)
        values = [(x2, getattr(so3, name)(x2)) for x2 in (switch * 0.999, switch * 1.001, switch * 1e-6)]
    with mpmath.workdps(digits + 30):
        for x2, value in values:
            assert abs(value - truth(mpmath.sqrt(x2))) * x2 < mpmath.mpf(10) ** (2 - digits)


def series_exp(v):
    """exp(hat v) by its power series in 50 digits."""
    x, y, z = (mpmath.mpf(c) for c in v)
    hat = mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return mpmath.expm(hat, method="taylor")


@pytest.mark.parametrize("length", [0, 1e-12, 1e-8, 1e-3, 0.5, 3.0, 6.0])
def test_exp_is_the_matrix_exponential(length):
    v = tuple(length * c for c in (0.36, -0.48, 0.8))
    with mpmath.workdps(50):
        truth = series_exp(v)
    rows = so3.matrix(so3.exp(v))
    worst = max(abs(rows[i][j] - truth[i, j]) for i in range(3) for j in range(3))
    assert worst < EPS * (6 + 2 * length)  # six roundings of numbers up to 1, and the angle's own error


def test_cay_is_the_cayley_map():
    v = (0.3, -0.5, 0.7)
    hat = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    truth = np.linalg.solve(np.eye(3) - hat / 2, np.eye(3) + hat / 2)
    assert np.abs(np.array(so3.matrix(so3.cay(v))) - truth).max() < 8 * EPS


@pytest.mark.parametrize("length", [0.0, 1e-9, 1e-4, 0.3, 0.65, 0.9, 2.0, 5.5])
def test_dexp_and_its_inverse(length):
    """dexpinv undoes dexp, and dexp is the derivative of exp: exp(-v) d exp(v) = hat(dexp_{-v} dv)."""
    v = tuple(length * c for c in (0.6, 0.0, -0.8))
    a = (0.3, -1.1, 0.7)
    back = so3.dexpinv(v, so3.dexp(v, a))
    condition = 1 / (1 - math.cos(length)) if length > 2 else 1
    assert max(abs(x - y) for x, y in zip(back, a, strict=True)) < 20 * EPS * max(condition, 1)
    with mpmath.workdps(50):
        d = mpmath.mpf(10) ** -20
        vm = tuple(mpmath.mpf(x) for x in v)
        up, down = (so3.exp(tuple(x + s * d * y for x, y in zip(vm, a, strict=True))) for s in (1, -1))
        here = so3.conj(so3.exp(vm))
        turn = [(x - y) / d for x, y in zip(so3.mul(here, up), so3.mul(here, down), strict=True)]
    truth = so3.dexp(so3.negative(v), a)
    assert max(abs(x - y) for x, y in zip(turn[1:], truth, strict=True)) < 20 * EPS


def test_quaternion_product_is_the_matrix_product():
    p, q = so3.unit((0.3, -0.2, 0.9, 0.4)), so3.unit((-0.7, 0.1, 0.5, 0.2))
    product = np.array(so3.matrix(p)) @ np.array(so3.matrix(q))
    assert np.abs(np.array(so3.matrix(so3.mul(p, q))) - product).max() < 8 * EPS


def test_rotate_and_unrotate():
    q, v = so3.unit((0.3, -0.2, 0.9, 0.4)), (1.0, 2.0, -0.5)
    assert np.abs(np.array(so3.matrix(q)) @ v - so3.rotate(q, v)).max() < 16 * EPS
    assert np.abs(np.array(so3.matrix(q)).T @ v - so3.unrotate(q, v)).max() < 16 * EPS


def test_solve3():
    a, b, c, v = (2.0, 0.1, -0.3), (0.4, 1.5, 0.2), (-0.1, 0.3, 3.0), (1.0, -2.0, 0.5)
    x = so3.solve3(a, b, c, v)
    assert np.abs(np.column_stack([a, b, c]) @ x - v).max() < 16 * EPS


@pytest.mark.parametrize("digits", [None, 50])
def test_nearly_unit_is_a_newton_step(digits):
    """A length off by d is then off by 3 d^2/2; one off by round-off stays as it is."""
    with mpmath.workdps(digits or 15):
        make = float if digits is None else number
        q = so3.unit(tuple(map(make, (0.8, 0.4, 0.2, -0.4))))
        for d in (1e-3, -1e-3, 1e-6):
            length = so3.norm2(so3.nearly_unit(tuple((1 + make(d)) * x for x in q)))
            assert abs(length - 1 + 3 * make(d) ** 2) < 8 * abs(d) ** 3 + 8 * EPS * (digits is None)
        assert so3.nearly_unit(q) == q
