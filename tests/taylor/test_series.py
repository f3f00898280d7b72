"""Taylor coefficients of the motion by generated kernels, and the Lie-Taylor methods made of them."""

import ast
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks, reference
from polhode.compile import program
from polhode.methods.families.taylor import lietaylor
from polhode.methods.families.taylor import taylor as plain
from polhode.numbers.multiprecision import number
from polhode.numbers.primitives import workspace
from polhode.physics import taylor_steps
from polhode.symbolic.expression import compiled, symbol
from polhode.taylor import interpreter
from polhode.taylor.graph import plan
from polhode.taylor.karatsuba import PairedWriter
from polhode.taylor.packed import PackedWriter
from polhode.taylor.writer import Writer

BODY = ph.Body([0.6, 0.8, 1.0])
TURNED = ph.Body([[2.0, 0.1, 0.2], [0.1, 3.0, -0.3], [0.2, -0.3, 2.5]])


@ph.torque
def everything(t, R, omega, k):
    """Every operation a torque may use."""
    d = 3 + R[2][2] + ph.math.sin(t) * omega[0]
    a = ph.math.exp(-d) + ph.math.log(d) / d**3 + ph.math.sqrt(d) + d**2.5
    b = ph.math.atan2(R[0][1], d) + ph.math.tanh(omega[1]) + abs(R[0][0] - 5) + ph.math.cos(omega[2] * R[1][1])
    return k * a, ph.where(R[1][2] < 7, b, 100.0), -k / d**7 + 1 / (2 * d) ** 2 - omega[2] * t * t


@ph.torque(frame="space")
def swinging(t, omega):
    return ph.math.cos(2 * t), t * omega[0], 1.0


PROBLEMS = {
    "everything": lambda: ph.Problem(BODY, everything(0.3), momentum=[1.0, 0.4, -0.9], t0=0.7),
    "everything, turned": lambda: ph.Problem(TURNED, everything(0.3), momentum=[1.0, 0.4, -0.9], t0=0.7),
    "swinging": lambda: ph.Problem(TURNED, swinging(), omega=[1.0, 0.2, 0.4], attitude=[0.5, -0.5, 0.5, 0.5]),
    "linear": lambda: ph.Problem(ph.Body([1.0, 1.0, 0.0]), momentum=[1.0, 0.4, 0.0]),
} | {name: (lambda name=name: ph.problems.get(name)) for name in ph.problems.names()}


@pytest.mark.parametrize("writer", [Writer, PairedWriter, PackedWriter])
@pytest.mark.parametrize("name", PROBLEMS)
def test_coefficients_are_those_of_the_reference_solution(name, writer):
    """q, and I w, against the same series by lists of mpmath numbers in the user's axes; 45 digits of each series.

    In a unit of time of its own; the coefficients above some order by the kernel that goes on, here without rounding.
    Vectors hold no coefficients of order 0, and there is no such kernel for them.
    """
    problem, order = PROBLEMS[name](), 12
    with mpmath.workdps(60):
        states = [*(symbol(f"q{i}") for i in range(4)), *(symbol(f"m{i}") for i in range(3))]
        ready = plan(states, reference.equations(problem))
        q, m = tuple(number(x) for x in problem.quaternion), tuple(number(x) for x in problem.momentum)
        (q, _), system = problem.kernel_data(number)
        own = problem.principal(number)[1]
        user = problem.user_axes(q, (number(0),) * 3, number)[0]
        start = reference.constants_of(problem) | dict(zip((s.args[0] for s in states), (*user, *m), strict=True))
        known = interpreter.expansion(ready, start | {"t": number(problem.t0)}, order)
        made = taylor_steps.motion_series(problem.field, problem.body.has_principal_rotation, writer=writer)
        fill, *extend = (compiled(text, made.constants, number) for text in (made.text, made.more) if text)
        (_, mp), _ = problem.kernel_data(number)
        given = number(problem.t0), q, tuple(i * x for i, x in zip(system[1], mp, strict=True)), system
        whole, parts, thin = ([None] * made.size for _ in range(3))
        unit = 1 / number(3)
        fill(*given, 1, whole, order)
        if extend:
            fill(*given, unit, parts, 5)
            extend[0](*given, unit, parts, 5, thin, order)
        else:
            fill(*given, unit, thin, order)
        for work, one in ((whole, 1), (thin, unit)):
            for k in range(writer is PackedWriter, order + 1):
                w = tuple(work[made.rows[i] + made.stride * k] / one**k * system[0][i] for i in range(3))
                turn = tuple(work[made.rows[3 + i] + made.stride * k] / one**k for i in range(4))
                turn, w = problem.user_axes(turn, w, number) if own else (turn, w)
                for got, state in zip((*turn, *w), states, strict=True):
                    scale = max(abs(c) for c in known[state]) + 1
                    assert abs(got - known[state][k]) <= scale * mpmath.mpf(10) ** -45


def bernoulli(n):
    b = [Fraction(1)]
    for m in range(1, n + 1):
        b.append(-sum(math.comb(m + 1, k) * b[k] for k in range(m)) / (m + 1))
    return b[n]


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def averaged(w, order):
    """Y by the recursion (n+1) y_(n+1) = sum_k B_k/k! c^k_n of the talk, turned to the body frame: ad_(-Y)."""
    y = [[Fraction(0)] * 3]
    c = [[w[n] for n in range(order)]]
    for n in range(order):
        for k in range(1, n + 1):
            if len(c) <= k:
                c.append([])
            while len(c[k]) < n:
                c[k].append([Fraction(0)] * 3)
            total = [Fraction(0)] * 3
            for j in range(1, n + 1):
                if n - j < len(c[k - 1]):
                    total = [a - b for a, b in zip(total, cross(y[j], c[k - 1][n - j]), strict=True)]
            c[k].append(total)
        terms = [[bernoulli(k) / math.factorial(k) * x for x in c[k][n]] for k in range(min(n, len(c) - 1) + 1)]
        y.append([sum(t[i] for t in terms) / (n + 1) for i in range(3)])
    return y


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8, 11])
def test_the_averaged_rotation_is_that_of_the_bernoulli_recursion(order):
    """In exact rationals: the kernel for Y of a free body, and the recursion of the errata."""
    made = taylor_steps.lie_taylor_series(None, False, order)
    fill, work = compiled(made.text, made.constants, Fraction), [None] * made.size
    inertia, w = (Fraction(3, 5), Fraction(4, 5), Fraction(1)), (Fraction(3), Fraction(1, 2), Fraction(-9, 10))
    one, zero = Fraction(1), Fraction(0)
    fill(zero, (one, zero, zero, zero), w, (inertia, tuple(1 / i for i in inertia), ()), 1, work, order)
    series = [[work[made.rows[3 + i] + made.stride * k] for i in range(3)] for k in range(order + 1)]
    turned = [[work[made.rows[i] + made.stride * k] for i in range(3)] for k in range(order + 1)]
    assert turned == averaged(series, order)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24])
@pytest.mark.parametrize(("made", "kind"), [(lietaylor, "free"), (lietaylor, "velocity"), (plain, "velocity")])
def test_orders(order, made, kind):
    """Local errors at two step sizes, against Taylor series that share nothing with the kernel."""
    digits = 60
    with mpmath.workdps(digits + 5):
        setting = checks.Setting(made(order), kind)
        errors = []
        for h in (2.0**-5, 2.0**-6):
            exact = reference.flow(setting.problem, h, digits=digits)
            errors.append(checks.distance(setting.step(h), exact))
        assert float(mpmath.log(errors[0] / errors[1], 2)) - 1 == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("name", [pytest.param("lietaylor(12)", marks=pytest.mark.slow), "taylor(12)"])
def test_compiled_runs_agree_with_many_digits(name):
    problem = PROBLEMS["everything, turned"]()
    compiled_run = ph.solve(problem, name, dt=0.02, steps=20)
    precise = ph.solve(problem, name, dt=0.02, steps=20, digits=30)
    assert np.abs(compiled_run.quaternion - precise.quaternion).max() < 1e-14
    assert np.abs(compiled_run.momentum - precise.momentum).max() < 1e-14


@pytest.mark.parametrize("bad", [0, 41, "x", 2.5, -1, None])
def test_orders_that_do_not_exist(bad):
    for made in (lietaylor, plain):
        with pytest.raises(ph.InputError, match=f"^{made.__name__}.. takes an order from 1 to 40"):
            made(bad)
    with pytest.raises(ph.InputError, match="takes an order"):
        ph.methods["lietaylor(many)"]


@pytest.mark.parametrize("writer", [Writer, PairedWriter, PackedWriter])
def test_generated_kernels_assign_no_name_that_they_do_not_read(writer):
    """Each line takes time to compile, also where the result does not depend on it."""
    written = taylor_steps.motion_series(everything(0.3), False, writer=writer)
    for function in ast.parse(written.text + written.more).body:
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        single = {
            x.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for x in node.targets
            if isinstance(x, ast.Name)
        }
        assert single
        assert single <= read


def compiled_coefficients(field, writer, order):
    """Coefficients of orders 1 to `order` in double precision, in a unit of time of its own."""
    made = taylor_steps.motion_series(field, False, writer=writer)
    fill, size, rows, stride = compiled(made.text, made.constants, float), made.size, made.rows, made.stride

    def run(t, q, w, system, order, found):
        work = workspace(q[0], size)
        fill(t, q, w, system, 0.3, work, order)
        for k in range(order):
            for i in range(7):
                found[k, i] = work[rows[i] + stride * (k + 1)]

    (q, m), system = ph.Problem(BODY, field, momentum=[1.0, 0.4, -0.9]).kernel_data(float)
    found = np.empty((order, 7))
    program.compiled(run).run(0.7, q, tuple(i * x for i, x in zip(system[1], m, strict=True)), system, order, found)
    return found


@pytest.mark.parametrize("field", [None, ph.fields.gravity(1.0), everything(0.3)], ids=["free", "top", "everything"])
@pytest.mark.parametrize("order", [1, 2, 3, 20, 21])
def test_vectors_give_the_coefficients_of_numbers(field, order):
    """Compiled: one vector or many, sums of odd and even orders, factors from several vectors."""
    one, other = (compiled_coefficients(field, writer, order) for writer in (Writer, PackedWriter))
    assert np.abs(one - other).max() < 1e-13 * np.abs(one).max()
