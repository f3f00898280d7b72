"""Declarations of methods with noise: weak order and invariant measure, true ones confirmed and false ones caught."""

import dataclasses
import itertools
import math

import pytest

import polhode as ph
from polhode.analysis.checks import check
from polhode.analysis.noise import (
    attitudes,
    check_measure,
    check_weak_order,
    cubature,
    gauss,
    small_cubature,
    weak_slope,
)
from polhode.analysis.polynomials import Polynomial

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
    assert len(check_measure(wrong)) == 2


def test_the_sign_of_the_numbers_does_not_matter():
    """The check sees distributions, not numbers."""
    assert check_weak_order(with_draws(lambda xi: tuple(-x for x in xi)), (0,)) == []


# --- the tools of the check -------------------------------------------------------------------------


def moment(powers):
    """E of a monomial in independent normal numbers."""
    return math.prod(0 if p % 2 else math.prod(range(1, p, 2)) for p in powers)


@pytest.mark.parametrize(("points", "n", "degree"), [
    (list(cubature(3, math.sqrt, 1.0)), 3, 7), (list(cubature(6, math.sqrt, 1.0)), 6, 7),
    (list(small_cubature(6)), 6, 5), (list(small_cubature(9)), 9, 5),
])  # fmt: skip
def test_cubature_is_exact_up_to_its_degree(points, n, degree):
    for powers in itertools.product(range(degree + 1), repeat=3):
        if sum(powers) <= degree:
            found = sum(w * x[0] ** powers[0] * x[1] ** powers[1] * x[n - 1] ** powers[2] for x, w in points)
            assert found == pytest.approx(moment(powers), abs=1e-12)


def test_attitudes_have_the_distribution_of_gibbs():
    """The mean height is minus the Langevin function of the slope."""
    z, weights = gauss(0.8, 4)
    assert weights @ z == pytest.approx(-(1 / math.tanh(0.8) - 1 / 0.8), abs=1e-8)
    assert sum(weight for _, weight in attitudes(0.4)) == pytest.approx(1)


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
