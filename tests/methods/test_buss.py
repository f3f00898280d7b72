"""Buss's talk: its formulas as printed (dots restored), torques given as L'(t) and their derivatives, his table."""

import math

import mpmath
import numpy as np
import pytest
from validation.papers.buss_table import THRESHOLD, displacement, least_steps

import polhode as ph
from polhode.analysis import reference
from polhode.analysis.checks import EXACT, Setting, distance, generic
from polhode.kernels.so3 import add, along, apply, cross, dexpinv, exp, matrix, mul, rotate, scale, sub, unit, unrotate
from polhode.numbers.multiprecision import number
from polhode.physics.torque_rates import rates_kernel
from polhode.run.integrator import torque_kernel
from polhode.symbolic.expression import symbol
from polhode.taylor import interpreter
from polhode.taylor.writer import plan

H = 2**-3


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(55):
        yield


# --- the talk, in space, with a tensor that turns ---------------------------------------------------


def L1(t, a):
    return (a * math.sin(t), t * t - a, math.exp(-t) / 2)


def L2(t, a):
    return (a * math.cos(t), 2 * t, -math.exp(-t) / 2)


def L3(t, a):
    return (-a * math.sin(t), 2, math.exp(-t) / 2)


def pushed(field=None, start=0):
    problem = generic("free", start)
    field = ph.momentum_rate(L1, L2, L3)(0.7) if field is None else field
    return ph.Problem(
        problem.body, field, attitude=problem.quaternion, momentum=problem.momentum, t0=problem.t0, t_end=1.0
    )


def step_of(name, problem, h):
    method = ph.methods[name]
    y, system = problem.kernel_data(number)
    torque = torque_kernel(problem, number, method)
    return method.build(number)(h, number(problem.t0), y, system, torque)[0]


def in_space(problem, h):
    """w and its derivatives as printed, L and its Taylor terms, all in the space frame."""
    (q, m), system = problem.kernel_data(number)
    R, t, a = matrix(q), number(problem.t0), number(0.7)
    rows = [tuple(sum(R[i][k] * R[j][k] * system[1][k] for k in range(3)) for j in range(3)) for i in range(3)]

    def inverse(v):
        return apply(tuple(rows), v)

    def x(*vectors):
        """a x (b x (... x z))."""
        *others, v = vectors
        for u in reversed(others):
            v = cross(u, v)
        return v

    s, c, e = mpmath.sin(t), mpmath.cos(t), mpmath.exp(-t) / 2
    d = [(a * s, t * t - a, e), (a * c, 2 * t, -e), (-a * s, number(2), e), (-a * c, number(0), -e)]
    L = rotate(q, m)
    w = inverse(L)
    w1 = inverse(sub(d[0], x(w, L)))
    w2 = add(x(w, w1), inverse(add(sub(sub(d[1], x(w1, L)), scale(2, x(w, d[0]))), x(w, w, L))))
    inner = d[2]
    for sign, v in (
        (-3, x(w, d[1])), (-3, x(w1, d[0])), (-1, x(w2, L)), (1, x(w1, w, L)), (2, x(w, w1, L)), (3, x(w, w, d[0])),
        (-1, x(w, w, w, L)),
    ):  # fmt: skip
        inner = along(inner, sign, v)
    w3 = add(sub(scale(2, x(w, w2)), x(w, w, w1)), inverse(inner))
    return q, L, d, (w, w1, w2, w3)


PRINTED = {
    "buss1": (1, lambda h, w, w1, w2, w3: []),
    "buss2": (2, lambda h, w, w1, w2, w3: [(h / 2, w1)]),
    "buss2plus": (2, lambda h, w, w1, w2, w3: [(h / 2, w1), (h * h / 12, cross(w1, w))]),
    "buss3_false": (2, lambda h, w, w1, w2, w3: [(h / 2, w1), (h * h / 6, w2)]),
    "buss3": (3, lambda h, w, w1, w2, w3: [(h / 2, w1), (h * h / 6, w2), (h * h / 12, cross(w1, w))]),
    "buss4": (4, lambda h, w, w1, w2, w3: [
        (h / 2, w1), (h * h / 6, w2), (h * h / 12, cross(w1, w)), (h**3 / 24, w3), (h**3 / 24, cross(w2, w)),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("start", [0, 1])
def test_the_update_is_the_printed_one(name, start):
    """Omega_1 = R_(h wbar) Omega_0 with wbar as printed, and the momentum by its Taylor series."""
    problem, h = pushed(start=start), number(H)
    q, L, d, w = in_space(problem, h)
    terms, more = PRINTED[name]
    mean = w[0]
    for factor, vector in more(h, *w):
        mean = along(mean, factor, vector)
    for n in range(terms):
        L = along(L, h ** (n + 1) / math.factorial(n + 1), d[n])
    end = mul(exp(scale(h, mean)), q)
    assert distance(step_of(name, problem, h), (end, unrotate(end, L))) < EXACT


def test_the_first_order_update_is_the_forward_euler_step_of_the_momentum():
    for kind in ("free", "velocity"):
        assert distance(*(Setting(ph.methods[n], kind).step(H) for n in ("buss1", "fem"))) < EXACT


def test_runge_kutta_with_the_corrections_is_the_one_of_munthe_kaas():
    """Written in space: s' = dexp_s^-1 w, R = exp(s) R_0, with the classical weights."""
    problem, h = generic("free"), number(H)
    (q, m), system = problem.kernel_data(number)
    L = rotate(q, m)

    def slope(s):
        turned = mul(exp(s), q)
        return dexpinv(s, rotate(turned, tuple(a * b for a, b in zip(system[1], unrotate(turned, L), strict=True))))

    k1 = slope((0 * h, 0 * h, 0 * h))
    k2 = slope(scale(h / 2, k1))
    k3 = slope(scale(h / 2, k2))
    k4 = slope(scale(h, k3))
    end = mul(exp(scale(h / 6, add(add(k1, k4), scale(2, add(k2, k3))))), q)
    assert distance(Setting(ph.methods["rk4_mk"], "free").step(H), (end, unrotate(end, L))) < EXACT
    assert ph.methods["rk4_mk"] is ph.methods["mkrk(rk4)"]


def test_labels_of_the_symplectic_rows():
    assert ph.methods["mry2_231"] is ph.methods["rot231"]
    assert ph.methods["MRY4_231"].name == "yoshida4(rot231)"
    assert "mry4_312" in ph.methods
    assert ph.methods["ep(mry4_231)"].name == "ep(yoshida4(rot231))"


# --- L'(t) ------------------------------------------------------------------------------------------


def test_derivatives_that_are_left_out_are_derived():
    told, derived = pushed(), pushed(ph.momentum_rate(L1)(0.7))
    assert distance(step_of("buss4", told, number(H)), step_of("buss4", derived, number(H))) == 0


def test_a_momentum_rate_is_a_torque_in_space_for_every_method():
    twin = pushed(ph.torque(L1, frame="space")(0.7))
    for name in ("imidm", "strang(dmv4)", "buss3"):
        assert distance(step_of(name, pushed(), number(H)), step_of(name, twin, number(H))) == 0


def test_polynomial_rates_lose_nothing():
    """L is of degree 3 in t, so the third-order update has it to round-off."""
    field = ph.momentum_rate(lambda t: (t * t, 1 - t, 0.5))
    assert isinstance(field, ph.fields.Field)  # nothing to bind
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), field, momentum=[0.3, 0.2, 0.9], t_end=1.0)
    sol = ph.solve(problem, "buss3", dt=0.25, digits=30)
    expected = np.array([0.3 + 1 / 3, 0.2 + 0.5, 0.9 + 0.5])
    assert np.abs(sol.spatial_momentum[-1].astype(float) - expected).max() < 4 * 2.0**-53


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pushed(ph.momentum_rate(L1, L3)(0.7)), r"L3 is not the derivative of order 1 of L1"),
        (lambda: pushed(ph.momentum_rate(L1, L2, L2)(0.7)), r"L2 is not the derivative of order 2 of L1"),
        (lambda: ph.momentum_rate(lambda R: (R[0][0], 0, 0)), r"takes R, so make it a @ph.torque\(frame=\"space\"\)"),
        (lambda: ph.momentum_rate(3), r"L1 must be a plain Python function of t and parameters; got int"),
        (lambda: ph.momentum_rate(L1, lambda t, b: (b, 0, 0)), r"L2 may take t and the parameters of L1; <lambda>"),
        (lambda: ph.momentum_rate(L1)(), r"takes the parameters \(a\)"),
    ],
)  # fmt: skip
def test_wrong_rates_are_refused(make, said):
    with pytest.raises(ph.InputError, match=said):
        make()


# --- derivatives of any torque along the motion -----------------------------------------------------


@ph.torque
def involved(t, R, omega, a):
    """Every kind of node: quotients, powers, functions, a branch."""
    spin = math.sqrt(1 + omega[0] ** 2)
    lag = math.atan2(R[0][1] + 2, spin) + (1.5 + R[2][2]) ** 0.3
    return (
        a * math.sin(t * R[0][0]) / spin + math.exp(-omega[1]) * lag,
        ph.where(R[1][1] < 2, abs(R[1][2] - 3) * math.log(2 + R[2][0]), 7),
        math.tanh(omega[2] * t) - R[2][1] ** 3 / (2 + math.cos(R[0][2])),
    )


def space_involved(t, R, omega, a):
    return (a * R[0][1] * omega[2] + t, math.sin(t) * R[2][2], omega[0] / (2 + R[1][0]))


TENSOR = ((2.0, 0.2, -0.1), (0.2, 2.5, 0.3), (-0.1, 0.3, 3.0))


@pytest.mark.parametrize("field", [involved(0.4), ph.torque(space_involved, frame="space")(0.4)], ids=["body", "space"])
@pytest.mark.parametrize("inertia", [(0.9, 1.1, 1.6), TENSOR], ids=["principal", "tensor"])
def test_derivatives_of_the_spatial_momentum_are_those_of_its_taylor_series(field, inertia):
    """f_n, turned into space, against the coefficients of R Pi from the equations of motion."""
    problem = ph.Problem(
        ph.Body(inertia), field, momentum=[0.7, -0.4, 0.9], attitude=generic("free").quaternion, t0=0.3
    )
    states = [*(symbol(f"q{i}") for i in range(4)), *(symbol(f"m{i}") for i in range(3))]
    pi = rotate(tuple(states[:4]), tuple(states[4:]))
    ready = plan([*states, *(symbol(f"u{i}") for i in range(3))], [*reference.equations(problem), *pi])
    q, m = unit(tuple(number(x) for x in problem.quaternion)), tuple(number(x) for x in problem.momentum)
    values = dict(zip((s.args[0] for s in states), (*q, *m), strict=True)) | {"t": number(0.3)}
    zero = {f"u{i}": number(0) for i in range(3)}
    series = interpreter.expansion(ready, reference.constants_of(problem) | values | zero, 5)
    y, system = problem.kernel_data(number)
    rates = rates_kernel(field, 3, number, problem.body.has_principal_rotation)(number(0.3), *y, system)
    for n, f in enumerate(rates):
        ours = rotate(y[0], f)
        for i in range(3):  # u' = R Pi, so the coefficient n + 2 of u holds the derivative n + 1 of R Pi
            exact = series[symbol(f"u{i}")][n + 2] * math.factorial(n + 2)
            assert abs(ours[i] - exact) < 1e-44 * math.factorial(n + 2) * 100  # round-off of 55 digits, amplified


@pytest.mark.parametrize("frame", ["body", "space"])
@pytest.mark.usefixtures("plain_first")
def test_a_torque_held_over_a_step_has_derivatives_too(frame):
    """One step each of two methods of order 4: apart by 0.01^5 times a small number."""
    body, state = ph.Body(TENSOR), ((1.0, 0.0, 0.0, 0.0), (1.0, 0.5, 0.2))
    one, two = (ph.stepper(body, n, 0.01).step(state, (0.1, 0.2, -0.3), frame) for n in ("buss4", "mkrk(rk4)"))
    gap = np.abs(np.array([*one.quaternion, *one.momentum]) - [*two.quaternion, *two.momentum]).max()
    assert gap < 1e-12


# --- his table --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "steps"), [("ep(buss3)", 567), ("ep(mry4_321)", 204), ("ep(buss4)", 718)])
def test_steps_on_the_prism(name, steps):
    assert least_steps(name, most=4096) == steps


def test_an_energy_that_drifts_costs_steps():
    """Third order without EP needs eight times as many steps: it fails where EP passes with room."""
    assert displacement("buss3", 567) > 10 * THRESHOLD
    assert displacement("buss3", 4766) <= THRESHOLD < displacement("buss3", 4765)
