"""Coefficients against the conditions they solve, in exact arithmetic: one wrong digit, however late, is noticed."""

import dataclasses
import functools
import itertools
import math
import re
from fractions import Fraction

import mpmath
import pytest

import polhode as ph
from polhode.kernels import elliptic, so3
from polhode.methods.families import adams
from polhode.numbers.exact import Surd
from polhode.numbers.multiprecision import number
from polhode.tableaus import DORMAND_PRINCE
from rooted_trees import density, trees

# --- Butcher tableaus: every rooted tree ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Root:
    """The number a + b sqrt(r), exactly."""

    a: Fraction
    b: Fraction
    r: int

    def __add__(self, other):
        return Root(self.a + other.a, self.b + other.b, self.r or other.r)

    def __mul__(self, other):
        r = self.r or other.r
        return Root(self.a * other.a + r * self.b * other.b, self.a * other.b + self.b * other.a, r)


def rooted(x):
    return Root(x.rational, x.factor, x.radicand) if isinstance(x, Surd) else Root(Fraction(x), Fraction(0), 0)


def total(terms):
    return functools.reduce(Root.__add__, terms, Root(Fraction(0), Fraction(0), 0))


def fulfilled(tableau, tree):
    """Is sum_i b_i Phi_i(tree) = 1/density, with Phi_i the product over branches of sum_j a_ij Phi_j (Butcher)."""
    a = [[rooted(x) for x in row] for row in tableau.a]
    stages = range(len(tableau.b))

    def stage(tree):
        product = [Root(Fraction(1), Fraction(0), 0)] * len(tableau.b)
        for branch in tree:
            inner = stage(branch)
            product = [product[i] * total(a[i][j] * inner[j] for j in stages) for i in stages]
        return product

    due = total(rooted(b) * x for b, x in zip(tableau.b, stage(tree), strict=True))
    return due.b == 0 and due.a == Fraction(1, density(tree))


TABLEAUS = [*ph.tableaus.tableaus.values(), DORMAND_PRINCE]


def test_there_are_as_many_rooted_trees_as_cayley_counted():
    assert [len(trees(n)) for n in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]


@pytest.mark.parametrize("tableau", TABLEAUS, ids=lambda tableau: tableau.name)
def test_tableaus_fulfil_all_conditions_of_their_order_and_not_of_the_next(tableau):
    for nodes in range(1, tableau.order + 1):
        assert all(fulfilled(tableau, tree) for tree in trees(nodes)), nodes
    assert not all(fulfilled(tableau, tree) for tree in trees(tableau.order + 1))
    for row, c in zip(tableau.a, tableau.c, strict=True):
        gap = total(map(rooted, row)) + rooted(c) * Root(Fraction(-1), Fraction(0), 0)
        assert (gap.a, gap.b) == (0, 0)


def collocation_nodes(name):
    """Polynomials whose roots are the nodes: shifted Legendre, Radau on the right, Lobatto; from Rodrigues' formula."""
    powers = {"gauss2": (2, 2, 2), "gauss3": (3, 3, 3), "radau2a": (1, 2, 1), "radau2a3": (2, 3, 2),
              "lobatto3a": (2, 2, 1), "midpoint": (1, 1, 1)}  # fmt: skip
    left, right, derivatives = powers[name]
    coefficients = [Fraction(0)] * (left + right + 1)
    for k in range(right + 1):
        coefficients[left + k] = Fraction((-1) ** (right - k) * math.comb(right, k))
    for _ in range(derivatives):
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
    return coefficients


@pytest.mark.parametrize("name", ["midpoint", "gauss2", "gauss3", "radau2a", "radau2a3", "lobatto3a"])
def test_collocation_methods_integrate_their_polynomials(name):
    """sum_j a_ij c_j^k = c_i^(k+1)/(k+1), k < s: every entry of a follows from the nodes, and these are known roots."""
    tableau = ph.tableaus.tableaus[name]
    c = [rooted(x) for x in tableau.c]
    for row, node in zip(tableau.a, c, strict=True):
        value = total(
            [Root(Fraction(k), Fraction(0), 0) * power(node, n) for n, k in enumerate(collocation_nodes(name))]
        )
        assert (value.a, value.b) == (0, 0)
        for k in range(len(c)):
            left = total(rooted(a) * power(x, k) for a, x in zip(row, c, strict=True))
            right = power(node, k + 1) * Root(Fraction(1, k + 1), Fraction(0), 0)
            assert (left.a, left.b) == (right.a, right.b)


def power(x, k):
    return functools.reduce(Root.__mul__, [x] * k, Root(Fraction(1), Fraction(0), x.r))


def test_a_wrong_entry_of_a_is_noticed():
    """By 1e-20 in one entry, made up for in the same row; row sums and weights are then right."""
    gauss3 = ph.tableaus.tableaus["gauss3"]
    rows = [list(row) for row in gauss3.a]
    rows[0][0], rows[0][1] = rows[0][0] + Fraction(1, 10**20), rows[0][1] + Fraction(-1, 10**20)
    wrong = ph.Tableau(rows, gauss3.b, gauss3.c, name="wrong", order=6)
    assert all(fulfilled(wrong, tree) for tree in trees(2))
    assert not all(fulfilled(wrong, tree) for tree in trees(3))


# --- Adams' weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("weights", "points"), [(adams.PREDICTOR, (0, -1, -2, -3)), (adams.CORRECTOR, (1, 0, -1, -2))])
def test_adams_weights_integrate_cubics_exactly(weights, points):
    def integral(k):
        return Fraction(sum(w * x**k for w, x in zip(weights, points, strict=True)), 24)

    assert [integral(k) for k in range(4)] == [Fraction(1, k + 1) for k in range(4)]
    assert integral(4) != Fraction(1, 5)


def test_adams_weights_are_those_of_the_page():
    shown = re.findall(r"\\bar r &= \\tfrac\{1\}\{24\}\\,\((.*?)\)", adams.abm4.formula)
    found = [
        tuple(int(f"{sign}{number or 1}") for sign, number in re.findall(r"([+-]?) ?(\d*)\\?,?r_", s)) for s in shown
    ]
    assert found == [adams.PREDICTOR, adams.CORRECTOR]


# --- series of Carlson's integrals at nearly equal arguments ----------------------------------------


def rising(x, n):
    return math.prod((x + k for k in range(n)), start=Fraction(1))


def carlson_series(a, variables, degree):
    """sum_N (a)_N/(c)_N T_N, sum T_N t^N = prod (1 - t Z_j)^(-1/2), c half the number of variables (DLMF 19.19)."""
    series = [Fraction(1)] + [Fraction(0)] * degree
    for z in variables:
        factor = [rising(Fraction(1, 2), n) / math.factorial(n) * z**n for n in range(degree + 1)]
        series = [sum(series[k] * factor[n - k] for k in range(n + 1)) for n in range(degree + 1)]
    c = Fraction(len(variables), 2)
    return sum(rising(a, n) / rising(c, n) * series[n] for n in range(degree + 1))


TRIPLES = [
    tuple(Fraction(n, 60) for n in numbers) for numbers in itertools.permutations((-17, 5, 8, 23, -11), 3)
]  # fmt: skip


def test_the_tail_of_r_j_has_the_coefficients_of_its_series():
    """All terms through the seventh degree in four variables; the arguments are far apart, so that each term counts."""
    for a, b, c in TRIPLES:
        p = -(a + b + c) / 2
        assert elliptic._tail5(a, b, c, p) == 4084080 * carlson_series(Fraction(3, 2), (a, b, c, p, p), 7)


def test_the_tail_of_r_f_has_the_coefficients_of_its_series():
    """Of R_F(x, y, z) with the mean 1: the kernel stops at once where digits are few."""
    for a, b, _ in TRIPLES:
        found = elliptic._tail3(a, b)
        assert found == 240240 * (carlson_series(Fraction(1, 2), (a, b, -a - b), 7) - 1)


# --- series of the angle near zero ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tail", "cot_tail"])
def test_series_near_zero_have_their_coefficients(name):
    """With so many digits, and an argument so small, that each of the eight terms is seen to sixty digits."""
    digits = 600
    with mpmath.workdps(digits):
        x2 = number(10) ** -(digits // 8 + 2)
        terms = {
            "tail": [(-x2) ** k / mpmath.factorial(2 * k + 3) for k in range(8)],
            "cot_tail": [abs(mpmath.bernoulli(2 * k)) * x2 ** (k - 1) / mpmath.factorial(2 * k) for k in range(1, 9)],
        }[name]
        assert abs(getattr(so3, name)(x2) - mpmath.fsum(terms)) < mpmath.mpf(10) ** (5 - digits)


# --- splittings: every flow in 50 digits ------------------------------------------------------------

STATE = ((0.8, 0.4, 0.2, -0.4), (1.8, 0.4, -0.9))


def turned(state, vector):
    """Y turned by -vector, Q followed by it, by mpmath's matrix exponential."""
    y, Q = state
    x, v, w = vector
    turn = mpmath.expm(mpmath.matrix([[0, -w, v], [w, 0, -x], [-v, x, 0]]), method="taylor")
    return turn.T * y, Q * turn


def about(axis, angle):
    return [angle if i == axis else mpmath.mpf(0) for i in range(3)]


def three_rotations(axes, h, inverse, state):
    for axis, part in zip((*axes, *axes[-2::-1]), (1, 1, 2, 1, 1), strict=True):
        state = turned(state, about(axis, part * h / 2 * inverse[axis] * state[0][axis]))
    return state


def symmetric_and_rotation(axes, h, inverse, state):
    r, e, s = axes
    for part in (1, 2, 1):
        if part == 1:
            state = turned(state, about(r, h / 2 * (inverse[r] - inverse[e]) * state[0][r]))
        else:
            y, Q = state
            spin = about(s, h * (inverse[s] - inverse[e]) * y[s])
            state = turned((y, turned((y, Q), h * inverse[e] * y)[1]), spin)
    return state


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
@pytest.mark.parametrize(("name", "made"), [("rot", three_rotations), ("symrot", symmetric_and_rotation)])
def test_splittings_are_their_flows_to_all_digits(name, made, axes):
    label = name + "".join(str(i + 1) for i in axes)
    with mpmath.workdps(50):
        moments = tuple(mpmath.mpf(x) / 10 for x in (6, 8, 11))
        inverse, h = tuple(1 / x for x in moments), mpmath.mpf(1) / 8
        q, m = so3.unit(tuple(map(mpmath.mpf, STATE[0]))), tuple(map(mpmath.mpf, STATE[1]))
        kernel = ph.methods[label].build(number)
        (q1, m1), _ = kernel(h, mpmath.mpf(0), (q, m), (moments, inverse, ()), None)
        y, Q = made(axes, h, inverse, (mpmath.matrix(m), mpmath.matrix(so3.matrix(q))))
        assert mpmath.norm(mpmath.matrix(m1) - y, mpmath.inf) < 1e-47
        assert mpmath.norm(mpmath.matrix(so3.matrix(q1)) - Q, mpmath.inf) < 1e-47
