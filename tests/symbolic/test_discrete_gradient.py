"""Discrete gradients: the identity they satisfy for every operation, and the methods that conserve energy with them."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks, generic_problems
from polhode.numbers import floats
from polhode.numbers.multiprecision import number
from polhode.numbers.primitives import where
from polhode.run import integrator
from polhode.symbolic.discrete_gradient import discrete_gradient
from polhode.symbolic.expression import compiled, gradient, ordered, source, symbol

EPS = 2.0**-52
X, Y = (symbol("x0"), symbol("x1")), (symbol("y0"), symbol("y1"))
FORMULAS = {
    "product": lambda a, b: a * b * a,
    "quotient": lambda a, b: a / (b + 3) - 2 / a,
    "whole powers": lambda a, b: a**5 - b**-3,
    "powers inside powers": lambda a, b: (a * b) ** 6 - (a * b) ** 3 * a + a * a * a * b,
    "real power": lambda a, b: (a + 2) ** 1.5 + (b + 2) ** -0.3,
    "power of both": lambda a, b: (a + 2) ** b,
    "sqrt": lambda a, b: ph.math.sqrt(a * a + b * b),
    "exp": lambda a, b: ph.math.exp(a * b - 2 * a),
    "log": lambda a, b: ph.math.log(a * a + b) * b,
    "sin": lambda a, b: ph.math.sin(3 * a - b),
    "cos": lambda a, b: ph.math.cos(3 * a * b),
    "tan": lambda a, b: ph.math.tan(a / 3) * b,
    "asin": lambda a, b: ph.math.asin(a / 4) - b,
    "acos": lambda a, b: ph.math.acos(a * b / 9),
    "atan": lambda a, b: ph.math.atan(a - 7 * b),
    "atan2": lambda a, b: ph.math.atan2(a, b) * a,
    "sinh": lambda a, b: ph.math.sinh(a - b),
    "cosh": lambda a, b: ph.math.cosh(a * b),
    "tanh": lambda a, b: ph.math.tanh(2 * a - b),
    "abs": lambda a, b: abs(a - b) * a,
    "where": lambda a, b: where(a < b, a * a, b * a),
}
POINTS = ((0.9, 1.3), (1.1, 0.7))
"""Two points; a - b changes its sign between them."""


def difference(formula):
    """Kernels (x, y) -> (G0, G1, U1 - U0) and (x, y) -> (U, dU/dx0, dU/dx1 at x)."""
    U = formula(*X)
    slopes, change = discrete_gradient(U, X, Y)
    unpack = {f"{letter}{i}": f"{letter}[{i}]" for letter in "xy" for i in range(2)}
    texts = source("mean", "x, y", unpack, [*slopes, change]), source("plain", "x, y", unpack, [U, *gradient(U, X)])
    return lambda kind: tuple(compiled(*text, kind) for text in texts)


def test_a_whole_power_has_a_short_derivative():
    """10 x^9 by x^2, x^4, x^8 and x^9."""
    [slope] = gradient(X[0] ** 10, [X[0]])
    assert len([node for node in ordered([slope]) if node.op == "mul"]) == 5


@pytest.mark.parametrize("name", FORMULAS)
def test_the_change_is_exact_and_symmetric_and_becomes_the_gradient(name):
    build = difference(FORMULAS[name])
    with mpmath.workdps(55):
        mean, plain = build(number)
        x, y = (tuple(number(v) for v in point) for point in POINTS)
        *slopes, change = mean(x, y)
        assert abs(change - (plain(y, y)[0] - plain(x, x)[0])) < 1e-50
        assert abs(change) > 1e-3
        assert abs(slopes[0] * (y[0] - x[0]) + slopes[1] * (y[1] - x[1]) - change) < 1e-50
        assert max(abs(a - b) for a, b in zip(slopes, mean(y, x)[:2], strict=True)) < 1e-50
        for point in (x, y):
            assert max(abs(a - b) for a, b in zip(mean(point, point)[:2], plain(point, point)[1:], strict=True)) < 1e-50


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("size", [1e-3, 1e-8, 1e-13, 1e-17, 1e-300, 0.0])
def test_close_points_lose_nothing(name, size):
    """In doubles the slopes are right to round-off however close the points are: no difference is divided by one."""
    build = difference(FORMULAS[name])
    x = POINTS[0]
    y = (x[0] + size, x[1] - 2 * size)
    found = build(floats.number)[0](x, y)[:2]
    with mpmath.workdps(55):
        exact = build(number)[0](*(tuple(number(v) for v in point) for point in (x, y)))[:2]
        scale = max(abs(v) for v in exact)
        assert max(abs(a - b) for a, b in zip(found, exact, strict=True)) < 64 * EPS * scale


def test_an_angle_is_continued_through_its_jump():
    """A periodic function of atan2 that passes the cut from pi to -pi."""
    mean, plain = difference(lambda a, b: ph.math.cos(ph.math.atan2(a, b)) ** 2)(floats.number)
    x, y = (0.1, -1.0), (-0.3, -0.8)
    assert mean(x, y)[2] == pytest.approx(plain(y, y)[0] - plain(x, x)[0], abs=8 * EPS)
    assert mean(x, y)[2] != 0


# --- potentials for runs ----------------------------------------------------------------------------


@ph.potential
def rough(R, a, b):
    """Every kind of operation: an elementary function of a quotient, a root, a corner, a real power."""
    d = 1.6 + R[2][2]
    corner = ph.where(R[0][1] < R[1][0], R[0][1], R[1][0])
    return a * math.exp(-R[0][0] / d) + b * math.log(d) + abs(R[1][2]) * corner + math.atan2(R[2][0], d) + d**-1.5


def energies(problem, method, dt, steps, digits):
    sol = ph.solve(problem, method, dt=dt, steps=steps, digits=digits)
    energy = sol.mp.energy if digits else sol.energy
    return energy - energy[0]


TENSOR = [[1.2, 0.1, -0.2], [0.1, 0.9, 0.05], [-0.2, 0.05, 1.5]]


@pytest.mark.parametrize("inertia", [[0.6, 0.8, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.4], TENSOR])
@pytest.mark.parametrize("method", ["dg2", "dg4", "yoshida4(dg2)"])
def test_energy_is_kept_in_50_digits(inertia, method):
    """A corner of the potential is passed too; spheres, symmetric bodies and bodies in axes of their own."""
    problem = ph.Problem(ph.Body(inertia), rough(0.7, -0.4), omega=[1.8, 0.4, -0.9], attitude=[0.6, 0.0, 0.8, 0.0])
    with pytest.warns(ph.ResultWarning, match="the order is lost at a jump; use another one-step method"):
        change = energies(problem, method, 0.25, 6, 50)
    assert np.abs(change).max() < 1e-47


@pytest.mark.parametrize("name", ["slow_top", "soft_wall"])
def test_energy_is_kept_over_long_runs_of_large_steps(name):
    """10^4 steps of Krysl's examples: round-off, where the second-order methods of his paper are off by percents."""
    problem = getattr(ph.problems, name)()
    dt = {"slow_top": 0.02, "soft_wall": 0.5}[name]
    assert np.abs(energies(problem, "dg2", dt, 10_000, None)).max() < 1e4 * 4 * EPS * abs(problem.energy())


def test_momentum_about_an_axis_of_symmetry_is_kept():
    """U(R33) turns with the body about the vertical and, the body being symmetric, about its own axis."""
    with mpmath.workdps(55):
        problem = ph.Problem(
            ph.Body([0.7, 0.7, 0.3]), ph.potential(lambda R: R[2][2] ** 3 - 1 / (2 + R[2][2]))(),
            attitude=[0.5, 0.5, 0.1, 0.7], omega=[0.5, -0.3, 2.0],
        )  # fmt: skip
        sol = ph.solve(problem, "dg2", dt=0.3, steps=8, digits=50)
        mp = sol.mp
        for kept in (mp.spatial_momentum[:, 2], mp.momentum[:, 2], mp.energy):
            assert np.abs(kept - kept[0]).max() < 1e-48
        assert np.abs(mp.momentum[:, 0] - mp.momentum[0, 0]).max() > 0.1


def test_with_a_linear_potential_it_is_akw():
    problem = checks.generic("linear")
    runs = [ph.solve(problem, name, dt=0.2, steps=5, digits=40) for name in ("dg2", "akw")]
    assert np.abs(runs[0].mp.momentum - runs[1].mp.momentum).max() < 1e-37
    assert np.abs(runs[0].mp.quaternion - runs[1].mp.quaternion).max() < 1e-37


@pytest.mark.parametrize("omega", [[0.0, 0.0, 0.0], [1e-9, 0.0, 1e-9], [1e-200, 0.0, 0.0]])
@pytest.mark.parametrize("dt", [1e-9, 1e-3, 0.1])
def test_near_rest(omega, dt):
    """Increments far below round-off of the attitude: finite, and close to the exact acceleration."""
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), generic_problems.hills(0.7, -0.4), omega=omega)
    method = ph.methods["dg2"]
    y, system = problem.kernel_data(float)
    torque = integrator.torque_kernel(problem, floats.number, method)
    (_, m), residual = method.build(float)(dt, 0.0, y, system, torque)
    force = torque(0.0, *y, system)
    assert residual == 0
    assert m == pytest.approx([a + dt * f for a, f in zip(y[1], force, strict=True)], abs=2 * dt**2 + 1e-17 * dt)
    assert max(abs(x) for x in m) > 0.1 * dt


@pytest.mark.filterwarnings("ignore::polhode.errors.ResultWarning")
@pytest.mark.slow
def test_all_ways_to_run_agree():
    """Six steps, compiled, in lanes and in 20 digits: apart by round-off."""
    body, attitude, field = ph.Body(TENSOR), [0.6, 0.0, 0.64, 0.48], rough(0.7, -0.4)
    problem = ph.Problem(body, field, omega=[0.8, 0.4, -0.2], attitude=attitude)
    one = ph.solve(problem, "dg2", dt=0.05, steps=6)
    precise = ph.solve(problem, "dg2", dt=0.05, steps=6, digits=20)
    many = ph.ensemble(body, [attitude] * 9, [problem.momentum] * 9, "dg2", field=field, dt=0.05, steps=6)
    assert np.abs(one.momentum - precise.momentum).max() < 1e-14
    assert np.abs(many.momentum[-1] - one.momentum[-1]).max() < 1e-14


@pytest.mark.slow
def test_gradients_of_a_run():
    """By dual numbers and by JAX backwards: slopes by a parameter against differences in 40 digits."""
    jax = pytest.importorskip("jax")
    body, start = ph.Body([0.6, 0.8, 1.0]), [0.8, 0.4, -0.2]

    def made(a):
        return ph.Problem(body, generic_problems.hills(a, -0.4), omega=start)

    def end(a):
        return ph.solve(made(a), "dg2", dt=0.1, steps=4, digits=40).mp.momentum[-1][1]

    ends = end(0.7 + 2.0**-30), end(0.7 - 2.0**-30)
    slope = float((ends[0] - ends[1]) * 2**29)
    found = ph.gradient(lambda momentum: momentum[1], made(0.7), "dg2", dt=0.1, steps=4, wrt=("params",))
    assert found.params["a"] == pytest.approx(slope, rel=1e-9)
    run = ph.jax.flow(made(0.7), "dg2", dt=0.1, steps=4)
    with jax.enable_x64(True):
        assert jax.grad(lambda a: run(params={"a": a})[1][1])(0.7) == pytest.approx(slope, rel=1e-9)


@pytest.mark.filterwarnings("ignore::polhode.errors.ResultWarning")
@pytest.mark.usefixtures("plain_first")
def test_the_stepper_tells_potentials_apart():
    """Two potentials with one stepper: each with its own mean torque."""
    stepper = ph.stepper(ph.Body([0.6, 0.8, 1.0]), "dg2", 0.1)
    state = ((1.0, 0.0, 0.0, 0.0), (0.3, 0.2, -0.4))
    for field in (generic_problems.hills(0.7, -0.4), rough(0.7, -0.4)):
        problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), field, momentum=state[1])
        expected = ph.solve(problem, "dg2", dt=0.1, steps=1).momentum[-1]
        assert stepper.step(state, field).momentum == pytest.approx(expected, abs=1e-15)


def test_a_torque_without_potential_is_refused():
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), generic_problems.stir(0.7), omega=[1.0, 0.2, 0.3])
    with pytest.raises(ph.InputError, match=r"dg2 takes potentials U\(R\) only"):
        ph.solve(problem, "dg2", dt=0.1, steps=1)
