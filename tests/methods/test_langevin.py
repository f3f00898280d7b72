"""Declarations of methods with noise: weak order and invariant measure, true ones confirmed and false ones caught."""

import dataclasses
import itertools
import math

import mpmath
import pytest

import polhode as ph
from polhode.analysis.setting import fifty
from polhode.kernels.so3 import matrix
from proofs.checks import check
from proofs.cubature import degree_1, degree_3, degree_5, degree_7
from proofs.gibbs import KT, MGL, check_measure, density_slope, gauss, points
from proofs.noise import check_drawn, check_weak_order, weak_slope
from proofs.polynomials import Polynomial

TRUE = ["baoab(rot123)", "obabo(rot123)", "aboba(imr)", "oabao(dmv4)"]


@pytest.mark.parametrize("name", TRUE)
def test_declarations_are_confirmed(name):
    assert check(ph.methods[name]) == []


def declared(name="baoab(rot123)", **changes):
    method = ph.methods[name]
    return dataclasses.replace(method, noise=method.noise._replace(**changes))


LIES = [
    (check_weak_order, {"weak_order": 1}),
    (check_weak_order, {"weak_order": 3}),
    (check_measure, {"invariant_measure": 1}),
    (check_measure, {"invariant_measure": None}),
    (check_measure, {"invariant_measure": math.inf}),
    (check_measure, {"invariant_measure_free": 4}),
    (check_measure, {"invariant_measure_free": math.inf}),
]


def test_an_exact_measure_and_one_of_high_order_are_told_apart():
    """The noiseless step of dmv4 keeps the density; that of a composition of rotations does not."""
    assert density_slope(ph.methods["oabao(dmv4)"], "free") == math.inf
    assert density_slope(ph.methods["yoshida4(rot123)"], "free") == pytest.approx(4, abs=0.1)
    for lie in ({"invariant_measure_free": 4}, {"invariant_measure_free": 2}):
        (fault,) = check_measure(declared("oabao(dmv4)", **lie), (0,))
        assert "measured inf" in fault


@pytest.mark.parametrize(("verify", "lie"), LIES, ids=[str(lie) for _, lie in LIES])
def test_false_declarations_are_caught(verify, lie):
    (fault,) = verify(declared(**lie), (0,))
    assert f"declared {next(iter(lie.values()))}, measured " in fault
    assert float(fault.split("measured ")[1].split()[0]) == pytest.approx(2, abs=0.1)


def with_draws(change):
    """A method whose normal numbers are changed before use."""
    plain = ph.methods["baoab(rot123)"].noise.driven

    def driven(number, draw):
        return plain(number, lambda *place: change(draw(*place)))

    return declared(driven=driven)


WRONG = {
    "too little noise": lambda xi: tuple(x * 9 / 10 for x in xi),
    "no noise": lambda xi: tuple(0 * x for x in xi),
    "one number for two axes": lambda xi: (xi[0], xi[0], xi[2]),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_noise_is_caught(change):
    wrong = with_draws(change)
    assert abs(weak_slope(wrong)) < 0.1
    assert check_weak_order(wrong, (0,))
    assert len(check_measure(wrong, (0,))) == 2
    assert check_drawn(wrong, (0,))


def test_the_sign_of_the_numbers_does_not_matter():
    """The check sees distributions, not numbers."""
    assert check_weak_order(with_draws(lambda xi: tuple(-x for x in xi)), (0,)) == []


# --- the tools of the check -------------------------------------------------------------------------


def moment(powers):
    """E of a monomial in independent normal numbers."""
    return math.prod(0 if p % 2 else math.prod(range(1, p, 2)) for p in powers)


@pytest.mark.parametrize(("rule", "n", "degree"), [
    (degree_7, 3, 7), (degree_7, 6, 7), (degree_5, 6, 5), (degree_5, 9, 5), (degree_3, 6, 3), (degree_1, 6, 1),
])  # fmt: skip
@fifty
def test_cubature_is_exact_up_to_its_degree(rule, n, degree):
    points = list(rule(n))
    for powers in itertools.product(range(degree + 1), repeat=3):
        if sum(powers) <= degree:
            found = sum(w * x[0] ** powers[0] * x[1] ** powers[1] * x[n - 1] ** powers[2] for x, w in points)
            assert abs(found - moment(powers)) < 1e-45


def test_gauss_integrates_over_heights():
    """The mean height is minus the Langevin function of the slope."""
    with mpmath.workdps(50):
        mean = sum(weight * z for z, weight in gauss(0.8, 3))
        assert abs(mean + mpmath.coth(0.8) - 1 / mpmath.mpf(0.8)) < 1e-45


@fifty
def test_points_have_the_distribution_of_gibbs_up_to_degree_5():
    """Monomials of a normal number, of the height z of the third axis, and of the height x of the first."""
    slope, found = MGL / KT, list(points(6))
    heights = gauss(slope, 6)
    for a, b, c in itertools.product(range(6), (0, 2), (0, 1, 2, 4)):
        if a + b + c <= 5:
            cubature = sum(w * matrix(q)[2][2] ** a * matrix(q)[2][0] ** b * x[4] ** c for q, x, w in found)
            exact = sum(w * z**a * ((1 - z * z) / 2) ** (b // 2) for z, w in heights) * moment((c,))
            assert abs(cubature - exact) < 1e-45


def test_polynomials_multiply_and_differentiate():
    x, y = Polynomial.variables(2, 1)
    p = (x + 2 * y) * (x - y) - 3 * x / 1 + 5
    assert p.at((2, 3)) == (2 + 6) * (2 - 3) - 6 + 5
    assert p.derivative(0).at((2, 3)) == 2 * 2 + 3 - 3
    assert p.derivative(1).derivative(1).at((2, 3)) == -4


@pytest.mark.parametrize("name", TRUE)
def test_declared_numbers(name):
    method = ph.methods[name]
    assert method.declaration()["weak_order"] == method.noise.weak_order == 2
    assert method.noise.vectors == name.split("(")[0].count("o")
