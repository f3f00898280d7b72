"""Matrix Lie groups: orders of every method, membership of every group, the talk's formulas, and the user's side."""

import functools
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode import InputError, StepError, lie
from polhode.lie.formulas import Formula
from polhode.lie.groups import group_named
from polhode.lie.magnus import bernoulli, exponent, with_bracket
from polhode.lie.numbers import Digits
from polhode.lie.order_conditions import forests, misses, solution
from polhode.numbers.multiprecision import mp
from polhode.results import observables
from polhode.tableaus import tableaus
from polhode.taylor.interpreter import expansion

EPS = 2.0**-52
DIGITS = 50
GROUPS = ["SO(3)", "SU(2)", "SE(3)", "SO(2)", "SO(4)", "SO(5)", "SL(2,R)", "Heisenberg"]
every_group = pytest.mark.parametrize("name", GROUPS)
both_sides = pytest.mark.parametrize("side", ["right", "left"])


def velocity(group, of_y=True):
    """A generic W(t, y) for a group: nothing in it commutes, nothing is zero."""
    entry = ("y[0][1].real + y[1][1].imag" if group.is_complex else "y[0][1] + y[1][1] * y[0][0]") if of_y else "0.25"
    terms = [
        f"math.cos({1 + 0.25 * i} * t + {i}) + 0.125 * ({entry}) + 0.5 * math.sin(3 * t)"
        for i in range(group.dimension)
    ]
    space = {"math": math}
    exec(f"def W(t{', y' if of_y else ''}):\n    return ({', '.join(terms)},)\n", space)
    return space["W"]


@functools.cache
def start(name):
    """An element that is not the identity."""
    group = group_named(name)
    return group.exp(group.hat([0.5 - 0.25 * i for i in range(group.dimension)])).tolist()


def flow(group, W, side, h, y0):
    """y(h) as the Taylor series of y itself, without any exponential."""
    numbers = Digits(DIGITS)
    with numbers.precision():
        first = group.element(y0, numbers)
        formula = Formula(group, W, side, 0.0, first.astype(complex if group.is_complex else float))
        names = formula.traces[0].names
        values = dict(zip(names, itertools.chain(*numbers.parts(first)), strict=True))
        series = expansion(formula._plan, {"t": mpmath.mpf(0)} | values, 45)
        ends = [mpmath.polyval(series[x], h, asc=True) for x in formula._plan.rates_of]
        n = group.size
        return numbers.array(ends[: n * n], ends[n * n :], (n, n))


@functools.cache
def generic_flow(group, side, h):
    return flow(group, velocity(group), side, h, start(group.name))


def measured(group, method, side, hs=(2.0**-7, 2.0**-8)):
    """The order, from the errors of one step of two sizes in 50 digits."""
    errors = []
    for h in hs:
        sol = lie.solve(
            group, velocity(group), start(group.name), method, dt=h, steps=1, digits=DIGITS, trivialised=side
        )
        with mpmath.workdps(DIGITS):
            errors.append(np.abs(sol.mp.y[-1] - generic_flow(group, side, h)).max())
    return float(mpmath.log(errors[0] / errors[1]) / mpmath.log(hs[0] / hs[1])) - 1


# --- orders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(lie.methods))
def test_every_method_has_the_order_it_declares(method):
    """A slope is off by O(h): 2^-7 times ratios of neighbouring coefficients."""
    name, side = ("SO(3)", "right") if "taylor" in method else ("SL(2,R)", "left")
    group = group_named(name)
    found = measured(group, method, side)
    assert found == pytest.approx(lie.methods[method].order, abs=0.1)


@every_group
@both_sides
@pytest.mark.parametrize("method", ["taylor(4)", "munthe_kaas(rk4)", "crouch_grossman(cg3)"])
def test_orders_on_every_group(name, side, method):
    """On the Heisenberg group and SO(2) an order may be higher, never lower."""
    group = group_named(name)
    found = measured(group, method, side)
    order = lie.methods[method].order
    assert found > order - 0.1
    if name not in ("Heisenberg", "SO(2)"):
        assert found < order + 0.1


def test_a_taylor_step_of_order_16():
    assert measured(lie.SO3, "taylor(16)", "left", (0.0625, 0.03125)) == pytest.approx(16, abs=0.2)


def test_classical_tableaus_lose_their_order_in_crouch_grossman():
    """13/36 in place of 1/3 in the condition that the classical theory does not know."""
    orders = {name: lie.crouch_grossman_order(tableau) for name, tableau in tableaus.items()}
    assert max(orders.values()) == 2
    assert {"kutta3", "rk4", "gauss2", "gauss3", "radau2a3"} <= {n for n, p in orders.items() if p < tableaus[n].order}
    rk4 = tableaus["rk4"]
    b, c = rk4.b, rk4.c
    value = sum(x * x * y for x, y in zip(b, c, strict=True))
    value += 2 * sum(b[i] * c[i] * b[j] for i in range(4) for j in range(i + 1, 4))
    assert value == Fraction(13, 36)


def test_the_conditions_of_crouch_grossman():
    """1, 2, 5, 14 forests; a forest of single nodes is a product of time steps; CG3 is exact, CG4 to 60 digits."""
    assert [len(forests(k)) for k in range(5)] == [1, 1, 2, 5, 14]
    assert [solution(((),) * k) for k in range(4)] == [1, 1, Fraction(1, 2), Fraction(1, 6)]
    assert all(x == 0 for p in (1, 2, 3) for x in misses(lie.CG3, p))
    assert any(x != 0 for x in misses(lie.CG3, 4))
    assert all(abs(x) < Fraction(1, 10**59) for p in (1, 2, 3, 4) for x in misses(lie.CG4, p))
    assert lie.crouch_grossman_order(lie.CG4) == 4


# --- the talk's formulas ----------------------------------------------------------------------------


class Word(dict):
    """An element of the free algebra: words in the letters 0, 1, 2, ... (W, W', W'', ...) with coefficients."""

    def __add__(self, other):
        return Word({w: c for w in {**self, **other} if (c := self.get(w, 0) + other.get(w, 0))})

    def __rmul__(self, number):
        return Word({w: number * c for w, c in self.items() if number})

    def __mul__(self, other):
        total = Word()
        for (a, x), (b, y) in itertools.product(self.items(), other.items()):
            total += Word({a + b: x * y})
        return total


def commutator(a, b):
    return a * b + (-1) * (b * a)


def bracket(*letters):
    """[a, b, c] = [a, [b, c]]."""
    found = Word({(letters[-1],): Fraction(1)})
    for letter in reversed(letters[:-1]):
        found = commutator(Word({(letter,): Fraction(1)}), found)
    return found


def combined(*terms):
    total = Word()
    for factor, *letters in terms:
        total += Fraction(factor) * bracket(*letters)
    return total


TALK = [
    combined((1, 0)),
    combined((1, 1)),
    combined((1, 2), ("1/2", 1, 0)),
    combined((1, 3), (1, 2, 0)),
    combined((1, 4), ("3/2", 3, 0), (1, 2, 1), ("1/2", 1, 1, 0), ("-1/6", 0, 2, 0), ("-1/6", 0, 0, 1, 0)),
    combined((1, 5), ("5/2", 3, 1), (2, 4, 0), (2, 2, 1, 0), ("1/2", 1, 2, 0), ("-1/2", 0, 3, 0),
             ("-1/2", 0, 0, 2, 0), (-1, 0, 1, 1, 0)),
]  # fmt: skip
"""Y_0 ... Y_5 of the talk with its lost dots put back: Z = sum_k h^k Y_k/(k+1)!."""

STRAY = Fraction(-1, 1440) * bracket(0, 0, 1, 0)
"""The term of weight 5 that stands among those of h^5, which have weight 6."""


def test_the_talks_coefficients_are_those_of_the_recursion():
    letters = [Fraction(1, math.factorial(k)) * bracket(k) for k in range(6)]
    found = exponent(letters, with_bracket(commutator), Fraction)
    assert [math.factorial(k + 1) * y for k, y in enumerate(found)] == TALK


def test_the_recursion_is_the_logarithm_of_the_dyson_series():
    """Another route: y_n = sum_j w_j y_(n-1-j)/n in the free algebra, then log(1 + x) = x - x^2/2 + ..."""
    order = 7
    w = [Fraction(1, math.factorial(k)) * bracket(k) for k in range(order)]
    y = [Word({(): Fraction(1)})]
    for n in range(1, order + 1):
        y.append(Fraction(1, n) * functools.reduce(Word.__add__, (w[j] * y[n - 1 - j] for j in range(n))))
    power, log = [Word({(): Fraction(1)})] + [Word()] * order, [Word()] * (order + 1)
    for k in range(1, order + 1):
        power = [functools.reduce(Word.__add__, (power[n - j] * y[j] for j in range(1, n + 1)), Word())
                 for n in range(order + 1)]  # fmt: skip
        log = [a + Fraction((-1) ** (k + 1), k) * b for a, b in zip(log, power, strict=True)]
    assert exponent(w, with_bracket(commutator), Fraction) == log[1:]


def evaluated(word, matrices):
    total = 0
    for letters, c in word.items():
        product = functools.reduce(np.matmul, (matrices[k] for k in letters))
        total = total + product * mpmath.mpf(c.numerator) / c.denominator
    return total


@pytest.mark.parametrize(("terms", "stray", "order"), [(5, False, 5), (6, True, 5), (6, False, 6)])
def test_the_talks_fifth_and_sixth_order_formulas(terms, stray, order):
    """Stopped after h^4, order 5; to h^5 with the stray term as printed, still 5; without it, 6."""
    group, W = lie.SL2, velocity(lie.SL2, of_y=False)
    of_both = velocity_of_both(W)
    numbers, errors = Digits(DIGITS), []
    with numbers.precision():
        first = group.element(start("SL(2,R)"), numbers)
        formula = Formula(group, W, "right", 0.0, first.astype(float))
        w = formula.series(numbers, 6)(mp.mpf(0), numbers.parts(first))
        derivatives = [math.factorial(k) * x for k, x in enumerate(w)]
        for h in (2.0**-12, 2.0**-13):
            Z = sum(evaluated(TALK[k], derivatives) * mp.mpf(h) ** k / math.factorial(k + 1) for k in range(terms))
            if not stray:
                assert np.abs(Z - lie.magnus(derivatives, mp.mpf(h), terms)).max() < 1e-48
            else:
                Z = Z + evaluated(STRAY, derivatives) * mp.mpf(h) ** 5
            end = group.exp(h * Z) @ first
            errors.append(np.abs(end - flow(group, of_both, "right", h, start("SL(2,R)"))).max())
        assert float(mp.log(errors[0] / errors[1], 2)) - 1 == pytest.approx(order, abs=0.1)


def velocity_of_both(W):
    def both(t, y):
        return W(t)

    return both


def test_bernoulli_numbers():
    assert [bernoulli(k) for k in (0, 1, 2, 3, 4, 12)] == [1, Fraction(-1, 2), Fraction(1, 6), 0, Fraction(-1, 30),
                                                          Fraction(-691, 2730)]  # fmt: skip


# --- groups -----------------------------------------------------------------------------------------


@every_group
@pytest.mark.parametrize("method", ["taylor(3)", "munthe_kaas(kutta3)", "crouch_grossman(cg3)"])
def test_elements_stay_on_the_group(name, method):
    """Defects are the round-off of one product of matrices; in SL(2,R) that of a determinant of large entries."""
    group = group_named(name)
    sol = lie.solve(group, velocity(group, of_y=False), start(name), method, dt=0.02, steps=150)
    size = max(1.0, np.abs(sol.y).max() ** 2) if name == "SL(2,R)" else 1.0
    assert sol.defect() <= 8 * EPS * size
    assert sol.y.shape == (151, group.size, group.size)


@every_group
def test_closed_exponentials_are_exponentials(name):
    """In doubles to their round-off, in 50 digits to 1e-48, for small and large velocities."""
    group, numbers = group_named(name), Digits(DIGITS)
    for scale in (1e-9, 1e-3, 1.0, 3.0):
        v = [scale * (0.6 - 0.35 * i) for i in range(group.dimension)]
        with numbers.precision():
            A = group.hat([mp.mpf(x) for x in v])
            exact = np.array(mp.expm(mp.matrix(A.tolist())).tolist(), dtype=object).reshape(A.shape)
            assert np.abs(group.exp(A, numbers) - exact).max() < 1e-48 * max(1, float(np.abs(exact).max()))
        found = group.exp(group.hat(v))
        norm = max(1, float(np.linalg.norm(group.hat(v), 2)))  # the condition number of exp
        assert np.abs(found - exact.astype(found.dtype)).max() < 8 * EPS * norm * max(1, np.abs(found).max())


@every_group
def test_hat_and_vee(name):
    group = group_named(name)
    v = [0.5 - 0.25 * i for i in range(group.dimension)]
    assert group.vee(group.hat(v)) == pytest.approx(v, abs=4 * EPS)


def test_so3_and_su2_turn_alike():
    """Both take the angular velocity as coordinates; the rotation of the quaternion is the matrix."""
    W = velocity(lie.SO3, of_y=False)
    R = lie.solve("SO(3)", W, dt=0.0625, steps=32).y
    y = lie.solve("SU(2)", W, dt=0.0625, steps=32).y
    q = (y[:, 0, 0].real, -y[:, 1, 0].imag, y[:, 1, 0].real, -y[:, 0, 0].imag)
    assert np.abs(np.moveaxis(np.array(observables.matrix(q)), 2, 0) - R).max() < 64 * EPS


def test_left_and_right_are_inverse_to_each_other():
    """(y^-1)' = -y^-1 W: the left equation with -W, step by step, for every kind of method."""
    W = velocity(lie.SL2, of_y=False)

    def negative(t):
        return tuple(-x for x in W(t))

    for method in ("taylor(5)", "munthe_kaas(rk4)", "crouch_grossman(rk4)"):
        right = lie.solve("SL(2,R)", W, method=method, dt=0.125, steps=8).y
        left = lie.solve("SL(2,R)", negative, method=method, dt=0.125, steps=8, trivialised="left").y
        reversed_order = [np.abs(a @ b - np.eye(2)).max() for a, b in zip(left, right, strict=True)]
        size = np.abs(right).max() * np.abs(left).max()
        assert max(reversed_order) < 64 * EPS * size
        assert np.abs(left - lie.solve("SL(2,R)", negative, method=method, dt=0.125, steps=8).y).max() > 1e-3


def test_a_group_of_ones_own():
    """The affine maps of the line: y' = W y with W = (1/(1+t), 1) has y = [[1+t, (1+t) log(1+t)], [0, 1]]."""
    affine = lie.Group("Aff(1)", [[[1, 0], [0, 0]], [[0, 1], [0, 0]]], defect=lambda y: y[1] - np.array([0, 1]))

    def W(t):
        return 1 / (1 + t), 1.0

    sol = lie.solve(affine, W, method="taylor(12)", t_end=1.0, steps=8)
    assert np.abs(sol.y[-1] - [[2, 2 * math.log(2)], [0, 1]]).max() < 1e-12  # 2 sum (h/(1+t))^13/13 = 3e-13
    assert sol.defect() == 0
    assert "Aff(1)" in repr(affine)
    assert "Aff(1)" in repr(sol)


def test_a_tableau_of_ones_own():
    """Ralston's: nothing is declared, so the whole series of dexp^-1 that its stages could need is taken."""
    ralston = ph.Tableau([[0, 0], ["2/3", 0]], ["1/4", "3/4"], name="ralston")
    for make in (lie.munthe_kaas, lie.crouch_grossman):
        assert measured(lie.SL2, make(ralston), "left") == pytest.approx(2, abs=0.1)
    assert lie.munthe_kaas(ralston).order is None
    assert lie.crouch_grossman(ralston).order == 2


# --- the user's side --------------------------------------------------------------------------------


def test_derivatives_and_functions_and_matrices_are_the_same():
    def W(t):
        return math.sin(t), t * t, 1.0

    def first(t):
        return math.cos(t), 2 * t, 0.0

    def second(t):
        return -math.sin(t), 2.0, 0.0

    def as_matrix(t):
        a, b, c = math.sin(t), t * t, 1.0
        return (0, -c, b), (c, 0, -a), (-b, a, 0)

    whole = lie.solve("SO(3)", W, method="taylor(3)", dt=0.125, steps=8).y
    given = lie.solve("SO(3)", [W, first, second], method="taylor(3)", dt=0.125, steps=8).y
    matrix = lie.solve("SO(3)", as_matrix, method="taylor(3)", t_end=1.0, steps=8).y
    assert np.abs(whole - given).max() < 8 * EPS
    assert np.abs(whole - matrix).max() < 8 * EPS
    Z = lie.magnus([W(0.0), first(0.0), second(0.0)], 0.125, group="SO(3)")
    assert np.abs(lie.SO3.exp(0.125 * lie.SO3.hat(Z)) - whole[1]).max() < 4 * EPS
    opposite = lie.magnus([[-x for x in f(0.0)] for f in (W, first, second)], 0.125, group="SO(3)", trivialised="left")
    assert np.abs(Z + opposite).max() < 4 * EPS


def test_an_exponent_in_fractions():
    A, B = np.array([[0, 1], [0, 0]], dtype=object), np.array([[0, 0], [1, 0]], dtype=object)
    Z = lie.magnus([Fraction(1) * A, Fraction(1) * B, 0 * A], Fraction(1, 2))
    assert Z.tolist() == [[Fraction(-1, 48), 1], [Fraction(1, 4), Fraction(1, 48)]]  # W + h/2 W' + h^2/12 [W', W]


def test_what_a_velocity_may_use():
    """Branches, abs, min and powers are followed; entries of a complex y add and multiply like numbers."""

    def W(t):
        return ph.where(t < 10, abs(t - 2), 0.0), min(t, 3.0) ** 2, math.pow(1 + t, 0.5)

    def smooth(t):
        return 2 - t, t * t, math.sqrt(1 + t)

    for method in ("taylor(5)", "munthe_kaas(rk4)"):
        both = [lie.solve("SO(3)", f, method=method, dt=0.125, steps=8, digits=30).mp.y[-1] for f in (W, smooth)]
        assert np.abs(both[0] - both[1]).max() < 1e-29

    def of_y(t, y):
        z = 2 * y[0][0] * y[1][1].conjugate() - (1 - y[0][1]) + t
        return z.real, z.imag, (-y[1][0]).imag

    def by_hand(t, y):
        (a, b), (c, d) = y
        return (
            2 * (a.real * d.real + a.imag * d.imag) - 1 + b.real + t,
            2 * (a.imag * d.real - a.real * d.imag) + b.imag,
            -c.imag,
        )

    both = [lie.solve("SU(2)", f, dt=0.125, steps=8).y[-1] for f in (of_y, by_hand)]
    assert np.abs(both[0] - both[1]).max() < 16 * EPS


def test_every_and_the_last():
    sol = lie.solve("SO(3)", velocity(lie.SO3), dt=0.25, steps=7, every=3, t0=1.0)
    assert sol.t.tolist() == [1.0, 1.75, 2.5, 2.75]
    assert len(sol) == 4


def test_a_step_that_fails_keeps_what_was_before():
    def W(t):
        return 1 / (1 - t), 0.0, 0.0

    with pytest.raises(StepError, match=r"failed in step 5 .*raised ZeroDivisionError at t = 1") as caught:
        lie.solve("SO(3)", W, method="taylor(2)", dt=0.25, steps=8)
    assert len(caught.value.partial) == 5

    def stiff(t, y):
        return 100 * y[0][1] + 1, 100 * y[1][2], 100 * y[2][0] + 2

    with pytest.raises(StepError, match="was not solved"):
        lie.solve("SO(3)", stiff, method="munthe_kaas(gauss2)", dt=0.5, steps=8)


@every_group
@pytest.mark.parametrize("method", ["taylor(4)", "munthe_kaas(gauss2)", "crouch_grossman(rk4)"])
def test_a_velocity_without_a_value_fails_in_digits_as_in_doubles(name, method):
    """Complex groups have room for the complex value that functions of mpmath return there."""
    group = group_named(name)
    rest = (1.0,) * (group.dimension - 1)

    def W(t):
        return (*rest, ph.math.sqrt(0.6 - t))

    found = []
    for digits in (None, 20):
        with pytest.raises(StepError, match="the velocity W raised ValueError") as caught:
            lie.solve(group, W, None, method, dt=0.125, steps=8, digits=digits)
        found.append(caught.value.partial.t.tolist())
    assert found[0] == found[1]


@every_group
def test_motions_are_pickled(name):
    group = group_named(name)
    sol = lie.solve(group, velocity(group), start(name), dt=0.125, steps=2)
    back = pickle.loads(pickle.dumps(sol))
    assert (back.y == sol.y).all()
    assert back.defect() == sol.defect()


def plain(t):
    return 1.0, 0.0, t


BAD = [
    ({"group": "SO(0)"}, r"a whole number from 2 to 100; got 0"),
    ({"group": "U(1)"}, r"one of SO\(n\), SU\(2\), SE\(3\)"),
    ({"W": 3.0}, "must be a plain Python function of t, or of t and y; got float"),
    ({"W": []}, "got none"),
    ({"W": [plain, lambda t, y: y], "method": "taylor(2)"}, "must be a plain Python function of t; it takes"),
    ({"W": [plain], "method": "taylor(2)"}, "order 2 needs W and its first 1 derivatives, 2 functions; got 1"),
    ({"W": lambda t: (1.0, t)}, r"must return 3 coordinates of SO\(3\) or a 3 x 3 matrix; .* shape \(2,\)"),
    ({"W": lambda t: ((1.0, 0, 0), (0, 0, 0), (0, 0, t))}, "a matrix of the Lie algebra .* off by 1"),
    ({"W": lambda t: "abc"}, "it returned 'abc'"),
    ({"W": lambda t: (math.inf, 0.0, t)}, "must return finite numbers"),
    ({"W": lambda t: (np.sin(t), 0.0, t)}, r"calls np\.sin, which cannot be compiled; write math\.sin"),
    ({"W": lambda t: (1.0 if t < 1 else 2.0, 0.0, t)}, "use ph.where"),
    ({"y0": np.eye(4)}, r"3 x 3 matrix of SO\(3\); got shape \(4, 4\)"),
    ({"y0": 2 * np.eye(3)}, r"an element of SO\(3\); it is off by 3"),
    ({"y0": np.diag([1.0, 1.0, -1.0])}, r"off by 2"),
    ({"method": "taylor(0)"}, "an order from 1 to 64; got '0'"),
    ({"method": "taylor(2.5)"}, "an order from 1 to 64"),
    ({"method": "imidm"}, "unknown method 'imidm' for a Lie group"),
    ({"method": "munthe_kaas(rk5)"}, "unknown tableau 'rk5'"),
    ({"trivialised": "body"}, "must be 'right'"),
    ({"steps": 4, "t_end": 1.0}, "two of dt, t_end and steps"),
    ({"dt": -1.0}, "dt must be positive"),
    ({"digits": 0.5}, "digits must be a whole number"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_refused_with_a_sentence(change, message):
    given = {"group": "SO(3)", "W": plain, "dt": 0.125, "steps": 1} | change
    with pytest.raises(InputError, match=message):
        lie.solve(given.pop("group"), given.pop("W"), **given)


def test_bad_groups_are_refused():
    with pytest.raises(InputError, match="matrix 2 depends on the previous ones"):
        lie.Group("G", [[[0, 1], [0, 0]], [[0, 2], [0, 0]]])
    with pytest.raises(InputError, match="does not span a Lie algebra: the bracket of matrices 1 and 2"):
        lie.Group("G", [[[0, 1], [0, 0]], [[0, 0], [1, 0]]])
    with pytest.raises(InputError, match="square matrices of one size"):
        lie.Group("G", [[[0, 1, 2], [0, 0, 0]]])
    with pytest.raises(InputError, match="has no defect function"):
        lie.Group("G", [[[0, 1], [0, 0]]]).defect(np.eye(2))
    with pytest.raises(InputError, match="order 3 needs W and its first 2 derivatives"):
        lie.magnus([np.eye(2)], 0.1, 3)
    with pytest.raises(InputError, match="one size"):
        lie.magnus([np.eye(2), np.eye(3)], 0.1)
