"""Schemes with a potential: kicks and drifts, compositions, the modified potential."""

import math

import mpmath
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.kernels.so3 import exp, matrix, mul
from polhode.methods.tables.compositions import compositions, splittings
from polhode.numbers.multiprecision import number
from polhode.results.observables import attitude_error, matrices
from representatives import slow_unless

DRIFT = "dmv10"
SYMPLECTIC = "symrot"


SHORT = 12
"""Most torques of a step that is checked in the fast suite; 125 of suzuki8 take a minute in 50 digits."""


def by_length(names, drift):
    """Schemes as parameters, the long ones slow."""
    lengths = {name: ph.methods[f"{name}({drift})"].torque_evals for name in names}
    return slow_unless([name for name in names if lengths[name] <= SHORT], names)


@pytest.mark.parametrize("name", by_length([*compositions, *splittings], DRIFT))
def test_every_scheme_is_what_it_declares(name):
    """Over a drift of order ten: order from both sides, symmetry, the torque points, what is conserved."""
    method = ph.methods[f"{name}({DRIFT})"]
    for check in (checks.check_order, checks.check_symmetric, checks.check_cost, checks.check_conserves):
        assert check(method) == []


@pytest.mark.parametrize("name", by_length(["strang", *compositions], SYMPLECTIC))
def test_compositions_of_a_symplectic_flow_are_symplectic(name):
    method = ph.methods[f"{name}({SYMPLECTIC})"]
    assert method.symplectic is True
    assert checks.check_symplectic(method) == []
    assert checks.check_poisson(method) == []


@pytest.mark.parametrize("name", ["strang", "nystrom4", "blanes_moan4"])
def test_splittings_over_a_symplectic_flow_are_symplectic(name):
    assert checks.check_symplectic(ph.methods[f"{name}({SYMPLECTIC})"]) == []


@pytest.mark.parametrize("base", slow_unless(["akw"], ["imidm", "akw", "imid", "trapm"]))
def test_methods_that_integrate_torques_are_composed(base):
    assert checks.check(ph.methods[f"yoshida4({base})"]) == []


@pytest.mark.parametrize(("name", "order"), [("nystrom4(dmv2)", 2), ("nystrom4(dmv4)", 4), ("blanes_moan6(dmv4)", 4)])
def test_a_drift_of_lower_order_limits_the_scheme_and_it_says_so(name, order):
    method = ph.methods[name]
    assert method.order == order
    assert checks.check_order(method) == []
    assert ("Order" in method.doc) == (order < int(name.split("(")[0][-1]))


@pytest.mark.parametrize("part", ["fe", "bbtrapwd"])
def test_a_method_that_is_not_symmetric_is_not_composed(part):
    with pytest.raises(ph.InputError, match=r"yoshida4\(\) composes a symmetric method"):
        ph.methods[f"yoshida4({part})"]


def test_python_and_strings_agree():
    assert ph.strang(ph.dmv(10)).name == ph.methods["strang(dmv10)"].name == "strang(dmv10)"
    assert ph.yoshida4("symrot").name == "yoshida4(symrot123)"
    with pytest.raises(AttributeError):
        ph.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("problem", [ph.problems.heavy_top(), ph.problems.quadratic_well(), ph.problems.soft_wall()])
def test_torque_of_the_modified_potential(problem):
    """-dV/d(rotation), V = g^T I^-1 g, against differences in 50 digits."""
    with mpmath.workdps(60):
        (q, m), system = problem.kernel_data(number)
        q = mul(q, exp((mpmath.mpf("0.3"), mpmath.mpf("-0.5"), mpmath.mpf("0.2"))))
        pair = problem.field.pair_kernel(number, False)

        def V(attitude):
            g = pair(0, attitude, m, system)[0]
            return sum(i * x * x for i, x in zip(system[1], g, strict=True))

        d = mpmath.mpf(10) ** -20
        for k, value in enumerate(pair(0, q, m, system)[1]):
            ahead, behind = (mul(q, exp(tuple(s * d if j == k else 0 * d for j in range(3)))) for s in (1, -1))
            assert abs(value + (V(ahead) - V(behind)) / (2 * d)) < mpmath.mpf(10) ** -35  # d^2 of the differences


def test_heavy_top_force_of_v_is_the_corrected_formula():
    """(-2 Q32 Q33/I1, 2 Q31 Q33/I2, 2 (1/I1 - 1/I2) Q31 Q32): sign, factor and third component of the errata."""
    problem = ph.problems.heavy_top()
    (q, m), system = problem.kernel_data(float)
    q = mul(q, exp((0.3, -0.5, 0.2)))
    a, b, _ = system[1]
    _, _, (x, y, z) = matrix(q)
    curl = problem.field.pair_kernel(float, False)(0.0, q, m, system)[1]
    assert curl == pytest.approx((-2 * y * z * a, 2 * x * z * b, 2 * (a - b) * x * y), abs=1e-15)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nystrom4(dmv6)", "heavy_top"),
        ("blanes_moan6(dmv10)", "soft_wall"),
        pytest.param("nystrom4(dmv6)", "soft_wall", marks=pytest.mark.slow),
        pytest.param("blanes_moan6(dmv10)", "heavy_top", marks=pytest.mark.slow),
        pytest.param("kahan_li8(symrot)", "heavy_top", marks=pytest.mark.slow),
        pytest.param("kahan_li8(symrot)", "soft_wall", marks=pytest.mark.slow),
    ],
)
def test_compiled_schemes_converge_to_the_reference(name, problem):
    """One with the modified potential and one without; orders are measured in 50 digits above."""
    what, method = ph.problems.get(problem), ph.methods[name]
    errors = []
    for dt in (0.05, 0.025):
        end = ph.solve(what, method, dt=dt, every=10**6).quaternion[-1]
        errors.append(attitude_error(matrices(end), matrices(math_array(what.reference.quaternion))))
    assert errors[1] < 1e-4
    assert errors[1] < 1e-10 or math.log2(errors[0] / errors[1]) > method.order - 1


def math_array(values):
    import numpy as np

    return np.array(values)


def test_a_tensor_body_has_the_same_modified_potential():
    """A body written in turned axes gives the same motion in space, corrector included."""
    import numpy as np
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_rotvec([0.4, -0.7, 0.2])
    A = turn.as_matrix()

    @ph.potential
    def tilted(R, a):
        return sum(a[j] * R[2][j] for j in range(3))

    plain = ph.Problem(ph.Body([0.6, 0.8, 1.0]), tilted((0.0, 0.0, 1.0)), momentum=[1.8, 0.4, -0.9])
    own = ph.Problem(
        ph.Body(A @ np.diag([0.6, 0.8, 1.0]) @ A.T), tilted(tuple(A @ [0.0, 0.0, 1.0])), attitude=turn.inv(),
        momentum=A @ [1.8, 0.4, -0.9],
    )  # fmt: skip
    one, other = (ph.solve(p, "nystrom4(dmv6)", dt=0.05, steps=100) for p in (plain, own))
    assert np.abs(one.spatial_momentum - other.spatial_momentum).max() < 1e-12  # 100 steps, errors grow with t
