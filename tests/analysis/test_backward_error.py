"""The modified energy: brackets, the series of Moser and Veselov, and that it is kept better than the energy."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.analysis import checks
from polhode.analysis.backward_error import Mechanics, logarithm
from polhode.kernels.so3 import dot, times
from polhode.methods.flows import kinetic, moser_veselov_energy, moser_veselov_rates
from polhode.numbers.dual import Dual, tangent
from polhode.numbers.exact import converted
from polhode.numbers.multiprecision import number

EXACT = mpmath.mpf(10) ** -45
MADE_OF_FLOWS = [m.name for m in ph.methods.values() if m.flows]


@pytest.fixture
def _digits():
    with mpmath.workdps(55):
        yield


def mechanics(name="nystrom4(jacobi)"):
    problem = checks.generic("potential")
    there = Mechanics(problem, ph.methods[name], number)
    return there, problem.kernel_data(number)[0]


# --- brackets ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_digits")
def test_brackets_are_antisymmetric_and_obey_jacobi():
    there, y = mechanics()
    letters = [kinetic, "U", "V", ph.methods["rot123"].flows[0][0].energy]

    def nested(*words):
        return [there.nested(letters, {word: mpmath.mpf(1)}, y) for word in words]

    ab, ba = nested((0, 1), (1, 0))
    assert abs(ab) > 0.01
    assert abs(ab + ba) < EXACT
    abc, bca, cab = nested((0, 1, 3), (1, 3, 0), (3, 0, 1))
    assert min(abs(abc), abs(bca)) > 0.01
    assert abs(abc + bca + cab) < EXACT


@pytest.mark.usefixtures("_digits")
def test_the_modified_potential_is_a_double_bracket():
    """V = L_U L_U T, and L_U L_U L_U T = 0: what the Nystrom splittings rest on."""
    there, y = mechanics()
    letters, one = [kinetic, "U", "V"], mpmath.mpf(1)
    assert abs(there.nested(letters, {(1, 1, 0): one}, y) - there.energy("V", y)[0]) < EXACT
    assert abs(there.nested(letters, {(1, 1, 1, 0): one}, y)) < EXACT


@pytest.mark.usefixtures("_digits")
def test_the_first_correction_of_strang():
    """H_2 = L_T L_T U/12 - V/24 (half a kick, drift, half a kick)."""
    there, y = mechanics("strang(jacobi)")
    letters, series = logarithm(ph.methods["strang(jacobi)"].flows, 3)
    words = {word: c / 3 for word, c in series[3].items()}
    assert letters[0] == "U"
    one = mpmath.mpf(1)
    due = there.nested(letters, {(1, 1, 0): one / 12}, y) - there.nested(letters, {(0, 0, 1): one / 24}, y)
    assert abs(there.nested(letters, words, y) - due) < EXACT


# --- energies ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_digits")
@pytest.mark.parametrize("name", [*MADE_OF_FLOWS, "strang(rot231)", "saba3c(dmv2)", "processed6(jacobi)"])
def test_the_flows_add_up_to_the_energy(name):
    problem = checks.generic("potential", 1)
    there, (y, system) = Mechanics(problem, ph.methods[name], number), problem.kernel_data(number)
    total = mpmath.mpf(0)
    for flow in ph.methods[name].flows:
        for energy, factors, weight in flow:
            if weight == 1:
                time = mpmath.fprod(converted(t, number) for t in factors)
                total += time * there.energy(energy, y)[0]
    due = dot(y[1], times(system[1], y[1])) / 2
    if ph.methods[name].needs != "free":
        due += problem.potential(y[0], number)
    assert abs(total - due) < EXACT


@pytest.mark.usefixtures("_digits")
@pytest.mark.parametrize("energy", [kinetic, *(t.energy for t in ph.methods["dmv2"].flows[0][1:4]),
                                    *(f[0].energy for f in ph.methods["symrot_auto"].flows[:2])])  # fmt: skip
def test_angular_velocities_are_slopes(energy):
    """DE/dm, by dual numbers: for Moser-Veselov this needs da/dC = db/dH, that is, symplecticity."""
    (_, m), system = checks.generic("free", 1).kernel_data(number)
    omega = energy(m, system)[1]
    for i in range(3):
        moved = tuple(Dual(1, x, mpmath.mpf(i == j)) for j, x in enumerate(m))
        assert abs(tangent(energy(moved, system)[0], 1) - omega[i]) < EXACT


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_step_of_moser_and_veselov_is_exact_for_modified_moments(length):
    """With `length` terms of a and b the motion with 1/I~ = a/I + b is met to order 2 length."""
    problem = checks.generic("free", 1)
    with mpmath.workdps(55):
        y, system = problem.kernel_data(number)
        step, exact = (ph.methods[name].build(number) for name in ("dmv2", "jacobi"))
        rates = moser_veselov_rates(y[1], system, length)
        errors = []
        for h in (mpmath.mpf(2) ** -7, mpmath.mpf(2) ** -8):
            a, b = (sum(c * h ** (2 * k) for k, c in enumerate(terms)) for terms in rates)
            inverse = tuple(a * x + b for x in system[1])
            there = (tuple(1 / x for x in inverse), inverse, ())
            errors.append(checks.distance(step(h, 0, y, system, None)[0], exact(h, 0, y, there, None)[0]))
        assert float(mpmath.log(errors[0] / errors[1], 2)) - 1 == pytest.approx(2 * length, abs=0.1)


def test_the_first_modified_energy_of_moser_and_veselov():
    """-(h^2)(-e1 H^2/6 + e2 H C/6 - e3 C^2/6), from s3 = -e1 H/3 + e2 C/6 and t3 = e2 H/6 - e3 C/3."""
    m, inverse = (0.3, -0.8, 0.5), (1.5, 0.75, 1.0)
    a, b, c = inverse
    H, C = sum(i * x * x for i, x in zip(inverse, m, strict=True)) / 2, sum(x * x for x in m) / 2
    due = (a + b + c) * H * H / 6 - (a * b + b * c + c * a) * H * C / 6 + a * b * c * C * C / 6
    assert moser_veselov_energy(1)(m, (None, inverse))[0] == pytest.approx(due, rel=1e-14)


# --- what is kept -----------------------------------------------------------------------------------

KEPT = [
    ("rot123", "free", 2), ("rot_auto", "free", 1), ("symrot", "free", 2), ("symrot_auto", "free", 2),
    ("strang(jacobi)", "potential", 2), ("strang(symrot)", "potential", 1), ("strang(rot231)", "potential", 1),
    ("strang(dmv2)", "potential", 2), ("nystrom4(jacobi)", "potential", 1), ("yoshida4(symrot)", "potential", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "terms"), KEPT)
def test_each_term_gains_two_orders(name, kind, terms):
    """|H~(t) - H~(0)| over one unit of time: order p, p + 2, p + 4 with 0, 1, 2 corrections, in 50 digits."""
    problem = checks.generic(kind)
    order = ph.methods[name].order_free if kind == "free" else ph.methods[name].order
    found = []
    for n in (16, 32):
        sol = ph.solve(problem, name, dt=1 / n, steps=n, every=n // 2, digits=50)
        energies = [ph.modified_energy(problem, sol, k) for k in range(terms + 1)]
        found.append([max(abs(e - of[0]) for e in of) for of in energies])
    slopes = [float(mpmath.log(a / b, 2)) for a, b in zip(*found, strict=True)]
    assert slopes == pytest.approx([order + 2 * k for k in range(terms + 1)], abs=0.15)


@pytest.mark.parametrize("name", ["strang(jacobi)", "strang(dmv2)", "strang(rot123)", "nystrom4(jacobi)",
                                  "blanes_moan4(jacobi)", "saba2(symrot)", "processed4(symrot)",
                                  pytest.param("processed4(jacobi)", marks=pytest.mark.slow)])  # fmt: skip
def test_declared_flows_hold_with_a_potential(name):
    assert checks.check_flows(ph.methods[name]) == []


def test_false_flows_are_found():
    honest = ph.methods["rot123"]
    lying = dataclasses.replace(honest, flows=ph.methods["rot321"].flows)
    assert any("modified energy" in fault for fault in checks.check_flows(lying))
    plain = dataclasses.replace(ph.methods["strang(dmv2)"], flows=ph.methods["strang(jacobi)"].flows)
    assert any("(potential)" in fault for fault in checks.check_flows(plain))


@pytest.mark.usefixtures("plain_first")
def test_over_a_long_run_in_doubles():
    """Heavy top, 2000 steps: the energy swings by 5e-3, the modified ones by 6e-6 and 2e-8."""
    top = ph.problems.heavy_top()
    sol = ph.solve(top, "strang(symrot)", dt=0.05, steps=2000)
    swings = [np.ptp(ph.modified_energy(top, sol, k)) for k in range(3)]
    assert swings[0] == np.ptp(sol.energy)
    assert swings[0] > 4e-3
    assert swings[1] < 1e-5
    assert swings[2] < 1e-7


@pytest.mark.usefixtures("plain_first")
def test_a_tensor_body_has_the_same_modified_energy():
    turn = Rotation.from_rotvec([0.4, -0.7, 0.2])
    A = turn.as_matrix()

    @ph.potential
    def tilted(R, a):
        return sum(a[j] * R[2][j] for j in range(3)) + R[0][1] * R[2][2]

    @ph.potential
    def plain(R, A):
        turned = [[sum(R[i][k] * A[j][k] for k in range(3)) for j in range(3)] for i in range(3)]
        return turned[2][2] + turned[0][1] * turned[2][2]

    own = ph.Problem(
        ph.Body(A @ np.diag([0.6, 0.8, 1.0]) @ A.T), tilted((0.0, 0.0, 1.0)), momentum=A @ [1.8, 0.4, -0.9]
    )
    same = ph.Problem(ph.Body([0.6, 0.8, 1.0]), plain(tuple(map(tuple, A))), attitude=turn, momentum=[1.8, 0.4, -0.9])
    found = []
    for problem in (own, same):
        sol = ph.solve(problem, "nystrom4(symrot)", dt=0.1, steps=5)
        found.append(ph.modified_energy(problem, sol))
        assert np.abs(found[-1] - sol.energy).max() > 1e-6
    np.testing.assert_allclose(*found, rtol=1e-13)


def test_exact_flows_keep_the_energy_itself():
    body = ph.problems.free_body()
    sol = ph.solve(body, "jacobi", dt=0.5, steps=5)
    np.testing.assert_array_equal(ph.modified_energy(body, sol, 3), sol.energy)


@ph.torque
def drag(omega):
    return (-omega[0], -omega[1], -omega[2])


@pytest.mark.usefixtures("plain_first")
def test_what_has_no_modified_energy_is_refused():
    top, body = ph.problems.heavy_top(), ph.Body([1.0, 2.0, 3.0])
    sol = ph.solve(top, "imidm", dt=0.1, steps=2)
    with pytest.raises(ph.InputError, match="imidm is not symplectic, so its modified energy"):
        ph.modified_energy(top, sol)
    stirred = ph.Problem(body, drag(), omega=[1, 2, 3])
    with pytest.raises(ph.InputError, match=r"needs a potential, and drag\(\) is a torque"):
        ph.modified_energy(stirred, ph.solve(stirred, "imidm", dt=0.1, steps=2))
    sol = ph.solve(top, "strang(symrot)", dt=0.1, steps=2)
    for terms in (-1, 1.5):
        with pytest.raises(ph.InputError, match="terms must be a whole number"):
            ph.modified_energy(top, sol, terms)


def test_the_method_can_be_given():
    top = ph.problems.heavy_top()
    mine = dataclasses.replace(ph.methods["strang(symrot)"], name="mine")
    sol = ph.solve(top, mine, dt=0.1, steps=2)
    with pytest.raises(ph.InputError, match="unknown method 'mine'"):
        ph.modified_energy(top, sol)
    assert math.isfinite(ph.modified_energy(top, sol, method=mine)[-1])
