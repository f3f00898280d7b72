"""The commutator-free method and its error estimate, the discrete Euler top, generalised alpha."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.checks import Setting, distance
from polhode.analysis.reference import flow
from polhode.kernels.so3 import add, along, cross, exp, mul, scale, times
from polhode.methods.families.commutator_free import cf4_attempt
from polhode.methods.families.generalized_alpha import parameters
from polhode.numbers.multiprecision import number


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(55):
        yield


# --- commutator-free --------------------------------------------------------------------------------


def attempts(kind, h):
    s = Setting(ph.methods["cf4"], kind)
    return s, cf4_attempt(number(h), s.t, s.y, s.system, s.torque)


@pytest.mark.parametrize("kind", ["free", "velocity"])
def test_the_error_estimate_is_that_of_order_3(kind):
    """It falls as h^4, and is above the error of the step, which falls as h^5."""
    coarse, fine = (attempts(kind, h)[1] for h in (2**-7, 2**-8))
    for i in (1, 2):
        assert abs(mpmath.log(coarse[i] / fine[i], 2) - 4) < 0.1
    s, (end, angle, _) = attempts(kind, 2**-6)
    assert distance(end, s.step(2**-6)) == 0
    with mpmath.workdps(60):
        exact = flow(s.problem, 2**-6, digits=50)
    assert distance((end[0],), (exact[0],)) < angle


def test_steps_controlled_by_the_estimate_meet_the_tolerance():
    """Accepted or halved by the estimate alone: the error at the end is of the size of the tolerance."""
    s = Setting(ph.methods["cf4"], "velocity")
    tolerance, t, y, h = mpmath.mpf(10) ** -10, s.t, s.y, number(0.125)
    end = s.t + number(0.5)
    steps = 0
    while t < end:
        h = min(h, end - t)
        new, angle, push = cf4_attempt(h, t, y, s.system, s.torque)
        if max(angle, push) <= tolerance:
            t, y, steps = t + h, new, steps + 1
        h = h * min(2, max(mpmath.mpf(0.2), mpmath.mpf(0.9) * (tolerance / max(angle, push)) ** (mpmath.mpf(1) / 4)))
    with mpmath.workdps(60):
        error = distance(y, flow(s.problem, 0.5, digits=50))
    assert 10 < steps < 2000
    assert error < tolerance * steps


@pytest.mark.usefixtures("plain_first")
def test_a_tolerance_controls_its_steps():
    """A swing through the top of a steep potential: steps of very different lengths, fewer than equal ones."""
    top = ph.Problem(
        ph.Body([1.0, 1.2, 0.4]), ph.fields.gravity(20.0), attitude=[0.8, 0.6, 0, 0], omega=[0.1, 0.2, 9.0]
    )
    found = ph.solve(top, "cf4", tol=1e-7, t_end=3.0)
    assert found.method == "cf4"
    assert "estimates of their errors" in found.reason
    lengths = np.diff(found.t)[1:-1]
    assert lengths.max() > 1.5 * lengths.min()
    exact = ph.solve(top, tol=1e-12, t_end=3.0)
    turn = (found.rotation[-1].inv() * exact.rotation[-1]).magnitude()
    assert 1e-10 < turn <= 1e-7
    assert found.error_estimate <= 1e-7
    middle = ph.solve(top, tol=1e-12, t_end=1.234).momentum[-1]
    np.testing.assert_allclose(found.at(1.234).momentum[-1], middle, atol=1e-5)


@pytest.mark.usefixtures("plain_first")
def test_its_controlled_steps_end_on_the_edges_of_a_burn():
    burn = ph.fields.thruster(torque=[0, 0, 0.2], on=[[10.0, 10.5], [40.0, 40.001]])
    body = ph.Body([[3.0, 0.1, 0.0], [0.1, 4.0, 0.0], [0.0, 0.0, 5.0]])
    found = ph.solve(ph.Problem(body, burn, omega=[0, 0, 0]), "cf4", tol=1e-9, t_end=100.0)
    assert {10.0, 10.5, 40.0, 40.001} <= set(found.t.tolist())
    assert abs(found.momentum[-1, 2] / 0.1002 - 1) < 1e-9
    assert found.error_estimate <= 1e-9


# --- Hirota and Kimura ------------------------------------------------------------------------------


def discrete_integrals(h, m, system):
    """The integrals F_1, F_2, F_3 of the map; two of them are independent."""
    inverse = system[1]
    a, b, c = inverse[2] - inverse[1], inverse[0] - inverse[2], inverse[1] - inverse[0]
    s = h * h / 4
    x, y, z = 1 - s * b * c * m[0] * m[0], 1 - s * c * a * m[1] * m[1], 1 - s * a * b * m[2] * m[2]
    return (y / z, z / x, x / y)


@pytest.mark.parametrize("which", range(3))
def test_the_discrete_euler_top_keeps_its_own_integrals(which):
    s, h = Setting(ph.methods["Hirota-Kimura"], "free", which), number(0.125)
    first, y = discrete_integrals(h, s.y[1], s.system), s.y
    for n in range(8):
        y = s.step(h, s.t + n * h, y)
    last = discrete_integrals(h, y[1], s.system)
    assert distance((last,), (first,)) < mpmath.mpf(10) ** -48
    assert abs(first[0] - 1) > mpmath.mpf(10) ** -6  # not by being trivial
    energy, length = (lambda m: sum(m[i] ** 2 * s.system[1][i] for i in range(3))), (lambda m: sum(x * x for x in m))
    for conserved in (energy, length):
        assert abs(conserved(y[1]) - conserved(s.y[1])) > mpmath.mpf(10) ** -8


def test_the_discrete_euler_top_is_the_printed_one():
    s, h = Setting(ph.methods["kahan"], "free"), number(0.125)
    (q0, m0), (q1, m1) = s.y, s.step(0.125)
    w0, w1 = (times(s.system[1], m) for m in (m0, m1))
    assert distance((along(m0, h / 2, add(cross(m0, w1), cross(m1, w0))),), (m1,)) < mpmath.mpf(10) ** -50
    assert distance((mul(q0, exp(scale(h / 2, add(w0, w1)))),), (q1,)) < mpmath.mpf(10) ** -50


# --- generalised alpha ------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", ["0", "0.5", "0.8", "1"])
def test_generalised_alpha_solves_the_printed_equations_over_two_steps(rho):
    alpha_m, alpha_f, gamma, beta = (number(x.numerator) / x.denominator for x in parameters(Fraction(rho)))
    s, h = Setting(ph.methods[f"galpha({rho})"], "velocity", repeated=True), number(0.125)
    y0 = s.step(h)
    y1 = s.step(h, s.t + h, y0)
    (q0, m0, k0), (q1, m1, k1) = y0, y1
    (a0, d0), (a1, d1) = ((k[:3], k[3:]) for k in (k0, k1))
    end = add(cross(m1, times(s.system[1], m1)), s.torque(s.t + 2 * h, q1, m1, s.system))
    mixed = along(scale(1 - alpha_m, a1), alpha_m, a0), along(scale(1 - alpha_f, d1), alpha_f, d0)
    moved = along(along(m0, (1 - gamma) * h, a0), gamma * h, a1)
    swept = along(along(m0, (number(1) / 2 - beta) * h, a0), beta * h, a1)
    turned = mul(q0, exp(scale(h, times(s.system[1], swept))))
    assert distance((d1, mixed[0], m1, q1), (end, mixed[1], moved, turned)) < mpmath.mpf(10) ** -45


@pytest.mark.parametrize("rho", ["0", "0.8", "1"])
def test_generalised_alpha_has_order_2_over_many_steps(rho):
    """With its memory carried along: the order of a run, not of one step."""
    s = Setting(ph.methods[f"galpha({rho})"], "velocity", repeated=True)
    with mpmath.workdps(60):
        exact = flow(s.problem, 1.0, digits=40)
    errors = []
    for n in (16, 32):
        h = number(1) / n
        y = s.initial_state(h)
        for i in range(n):
            y = s.step(h, s.t + i * h, y)
        errors.append(distance(y[:2], exact))
    assert abs(mpmath.log(errors[0] / errors[1], 2) - 2) < 0.2


@pytest.mark.parametrize("rho", ["-0.1", "1.1", "nan", "inf", "much", ""])
def test_generalised_alpha_refuses_other_radii(rho):
    with pytest.raises(ph.InputError):
        ph.methods[f"galpha({rho})"]


def test_generalised_alpha_is_named_by_its_radius():
    assert ph.methods["galpha(0.80)"] is ph.methods["galpha(0.8)"]
    assert ph.galpha(0.8) is ph.methods["generalized_alpha"]
    with pytest.raises(ph.InputError, match="has memory"):
        ph.methods["yoshida4(galpha(1))"]


def test_they_run_compiled_as_in_digits():
    for name in ("cf4", "strang(kahan)", "galpha(0.8)"):
        compiled, digits = (ph.solve(ph.problems.heavy_top(), name, dt=0.01, steps=5, digits=d) for d in (None, 30))
        np.testing.assert_allclose(compiled.momentum, digits.momentum, rtol=1e-12, atol=1e-12)
