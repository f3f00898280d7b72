"""Torques and potentials: exact, the same in every number type, in the frames and with the signs of the convention."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import pi as imported_pi
from math import sin
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode._memo import MADE
from polhode.kernels import loops as loop
from polhode.kernels.so3 import exp, matrix, mul, unit
from polhode.numbers import floats, multiprecision
from polhode.numbers.dispatch import KERNELS
from polhode.run import integrator

pytestmark = pytest.mark.xdist_group("fields")

GAIN = 0.35
ROWS = np.array([[0.3, -0.2, 0.9], [1.1, 0.4, -0.7]])
BODY = ph.Body([1.0, 2.0, 2.5])
START = {"attitude": Rotation.from_rotvec([0.4, -0.3, 0.8]), "omega": [0.9, -0.4, 0.6]}


# --- potentials -------------------------------------------------------------------------------------


def cube(x):
    return x * x * x


def nested(x, n):
    return x if n == 0 else nested(math.sin(x), n - 1)


def closure(strength: float) -> Any:
    import math as mathematics

    def inner(R):
        weights = [strength * x for x in R[0]]
        return mathematics.exp(weights[1]) + sum(w * w for w in weights)

    return ph.potential(inner)


@ph.potential
def heavy(R, mgl):
    return mgl * R[2][2]


@ph.potential
def wall(R, a, b):
    d = 1.1 + R[2][2]
    return -a / d + b / d**10


@ph.potential
def smooth_functions(R):
    x, y, z = R[0]
    return (
        math.exp(x) * math.tanh(y) * math.cosh(z) + math.sinh(x) * math.tan(y / 2) + math.asin(x / 2) * math.acos(y / 2)
        + math.atan(z) + math.atan2(x, 2 + y) + math.log(2 + x) * math.sqrt(3 + y) + math.sin(x) * math.cos(y)
    )  # fmt: skip


@ph.potential
def more_functions(R):
    x, y, z = R[1]
    return (
        math.log(2 + x, 3) + math.log10(2 + y) + math.log2(2 + z) + math.exp2(x) + math.pow(2, y) + math.pow(z, 3)
        + math.hypot(x, y, 2) + math.dist(R[0], R[2]) + math.fsum(R[2]) + math.prod(R[0]) + math.fabs(z)
        + math.asinh(x) + math.acosh(2 + y) + math.atanh(z / 2) + math.copysign(y, z) + ph.math.sqrt(2 + x)
    )  # fmt: skip


@ph.potential
def powers(R):
    return (2 + R[0][1]) ** 2.5 + R[1][1] ** -2 + R[2][0] ** 5 + (2 + R[1][2]) ** (1 + R[0][0] * R[0][0])


@ph.potential
def whole_numbers(R):
    return R[0][0] / 3 + 2 ** R[1][1] + 7 * R[2][0] / (3 + R[0][1]) / 10


@ph.potential
def pieces(R):
    z = R[2][2]
    return ph.where((z > 0.1) & (z < 0.9), z**3, ph.where(z < 0, -z, z * z)) + max(R[0][0], R[0][1]) + min(R[1])


@ph.potential
def constants(R):
    return math.pi * R[0][0] + math.e * R[1][1] ** 2 + math.tau * R[2][2] + np.pi * R[0][1] + imported_pi * R[1][0]


@ph.potential
def globals_of_all_kinds(R):
    return GAIN * cube(R[0][2]) + nested(R[1][1], 3) + sin(R[2][1]) + sum(a * x for a, x in zip(ROWS[0], R[0]))  # noqa: B905


@ph.potential
def vectors(R, axis, matrix, offset=0.25, *, scale=1.0):
    s = offset
    for i, row in enumerate(matrix):
        for j in range(len(row)):
            s += axis[i] * row[j] * R[i][j] ** 2
    return scale * s * abs(s)


POTENTIALS = {
    "linear": heavy(2.0),
    "wall": wall(1.0, 0.001),
    "smooth functions": smooth_functions(),
    "more functions": more_functions(),
    "powers": powers(),
    "whole numbers": whole_numbers(),
    "pieces": pieces(),
    "constants": constants(),
    "globals": globals_of_all_kinds(),
    "closure": closure(0.7)(),
    "vectors": vectors([1, -2, 0.5], np.arange(9.0).reshape(3, 3), scale=0.1),
}
ATTITUDES = [(0.3, 0.5, -0.2, 0.6), (0.9, -0.1, 0.4, 0.2)]


def precise(q: tuple[float, ...]) -> Any:
    return unit(tuple(mpmath.mpf(x) for x in q))


def value(field: Any, q: Any) -> Any:
    return field.potential_kernel(multiprecision.number)(matrix(q), tuple(mpmath.mpf(x) for x in field.parameters))


def slope(f: Callable[[Any], Any]) -> Any:
    """f'(0) by a difference formula of order 8: with h = 1e-6 exact to 1e-42 where f is smooth."""
    h = mpmath.mpf(10) ** -6
    weights = ((1, 4 / mpmath.mpf(5)), (2, -1 / mpmath.mpf(5)), (3, 4 / mpmath.mpf(105)), (4, -1 / mpmath.mpf(280)))
    return sum(w * (f(n * h) - f(-n * h)) for n, w in weights) / h


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("name", POTENTIALS)
def test_torque_of_a_potential(name: str, attitude: tuple[float, ...]) -> None:
    """T = -dU/d(rotation about the body axes), against differences of U, in 50 digits."""
    field = POTENTIALS[name]
    with mpmath.workdps(60):
        q = precise(attitude)
        torque = field.torque_kernel(multiprecision.number, False)
        system = ((1, 1, 1), (1, 1, 1), tuple(mpmath.mpf(x) for x in field.parameters))
        for i, component in enumerate(torque(mpmath.mpf(0), q, (0, 0, 0), system)):

            def turned(s: Any, i: int = i) -> Any:
                return value(field, mul(q, exp(tuple(s if j == i else 0 * s for j in range(3)))))

            assert abs(component + slope(turned)) < mpmath.mpf(10) ** -40 * (1 + abs(component))


@pytest.mark.parametrize("name", POTENTIALS)
def test_plain_function_and_kernels_agree(name: str) -> None:
    """The user's own function, the kernel in doubles and the kernel in 50 digits."""
    field = POTENTIALS[name]
    for attitude in ATTITUDES:
        with mpmath.workdps(50):
            q = precise(attitude)
            exact = float(value(field, q))
        R = matrix(tuple(float(x) for x in q))
        kernel = field.potential_kernel(floats.number)(R, field.parameters)
        plain = field.value(0.0, R, (0.0, 0.0, 0.0), "here")
        assert abs(plain - exact) < 1e-14 * (1 + abs(exact))
        assert abs(kernel - exact) < 1e-14 * (1 + abs(exact))


def test_constants_are_exact() -> None:
    """math.pi, however it is imported, and sqrt(2), have all digits in a 50-digit run."""

    @ph.potential
    def U(R):
        return math.pi * np.e * R[0][0] + imported_pi * math.sqrt(2) + math.radians(180)

    with mpmath.workdps(50):
        got = value(U(), precise((1, 0, 0, 0)))
        assert abs(got - (mpmath.pi * mpmath.e + mpmath.pi * mpmath.sqrt(2) + mpmath.pi)) < mpmath.mpf(10) ** -48


def test_kernels_are_made_once() -> None:
    """Recording, probing and new parameters add no kernels."""
    start = ph.Problem(BODY, heavy(1.0), **START)
    start.potential(start.quaternion)
    count = len(KERNELS)
    for mgl in (2.0, 3.0):
        other = ph.Problem(BODY, heavy(mgl), **START)
        other.potential(other.quaternion)
        other.field.torque_value(0.0, matrix(other.quaternion), (0, 0, 0))
    assert len(KERNELS) == count


# --- torques ----------------------------------------------------------------------------------------


@ph.torque
def zoo(t, R, omega, k, centre=(0.1, 0.2, 0.3)):
    """Everything at once, in the user's axes."""
    drag = [-k[0] * (w - c) for w, c in zip(omega, centre, strict=True)]
    push = ph.where(R[2][2] > 0.2, math.sin(3 * t), math.cos(t) * R[0][1])
    return (drag[0] + push, drag[1] + k[1] * R[2][0] * R[1][2], drag[2] * abs(omega[2]) + math.exp(-t) * R[0][0])


def zoo_by_numpy(t: float, R: np.ndarray, w: np.ndarray, k: Any) -> np.ndarray:
    drag = -k[0] * (w - np.array([0.1, 0.2, 0.3]))
    push = np.sin(3 * t) if R[2, 2] > 0.2 else np.cos(t) * R[0, 1]
    return np.array([
        drag[0] + push, drag[1] + k[1] * R[2, 0] * R[1, 2], drag[2] * abs(w[2]) + np.exp(-t) * R[0, 0],
    ])  # fmt: skip


@ph.torque(frame="space")
def wind(t, R, omega, k):
    return (k * R[0][2], k * math.cos(t), -k * omega[1] * R[1][1])


@ph.torque(frame="body")
def wind_in_body(t, R, omega, k):
    T = (k * R[0][2], k * math.cos(t), -k * omega[1] * R[1][1])
    return tuple(sum(R[i][j] * T[i] for i in range(3)) for j in range(3))


def python_run(problem: ph.Problem, method: str, dt: float, steps: int) -> np.ndarray:
    """The loop, not compiled: rows of quaternion and momentum in principal axes."""
    y, system = problem.kernel_data(floats.number)
    step = ph.methods[method].build(floats.number)
    rows = np.empty((steps, 7))
    advance = loop.stepping(step, integrator.torque_kernel(problem, floats.number))
    assert advance(dt, problem.t0, 0, steps, 1, steps, y, system, rows)[-1]
    return rows


def test_frames_agree() -> None:
    a, b = (python_run(ph.Problem(BODY, f(0.4), **START), "imidm", 0.05, 100) for f in (wind, wind_in_body))
    np.testing.assert_allclose(a, b, atol=1e-13)


def test_compiled_plain_and_precise_agree() -> None:
    """The same numbers from numba, from the uncompiled loop, and from 30 digits."""
    start = ph.Problem(BODY, zoo([0.2, 0.5]), t0=0.3, **START)
    sol = ph.solve(start, "imidm", dt=0.02, steps=100)
    rows = python_run(start, "imidm", 0.02, 100)
    np.testing.assert_allclose(np.hstack([sol.quaternion, sol.momentum])[1:], rows, atol=1e-13)
    mp = ph.solve(start, "imidm", dt=0.02, steps=100, digits=30)
    np.testing.assert_allclose(sol.quaternion, mp.quaternion, atol=1e-13)
    np.testing.assert_allclose(sol.momentum, mp.momentum, atol=1e-13)


def test_parameters_without_compiling() -> None:
    ph.solve(ph.Problem(BODY, zoo([0.2, 0.5]), **START), "imidm", dt=0.02, steps=5)
    loops = len(MADE.values())
    ends = []
    for field in (zoo([0.3, 0.5]), zoo(k=(0.3, 0.5)), zoo(np.array([0.3, 0.6])), zoo([0.3, 0.5], centre=[0, 0, 1])):
        ends.append(ph.solve(ph.Problem(BODY, field, **START), "imidm", dt=0.02, steps=50).momentum[-1])
    other = ph.Body([3.0, 4.0, 5.0])
    ph.solve(ph.Problem(other, zoo([0.3, 0.5]), **START), "imidm", dt=0.01, steps=5)
    assert len(MADE.values()) == loops
    np.testing.assert_array_equal(ends[0], ends[1])
    assert np.abs(ends[0] - ends[2]).max() > 1e-3
    assert np.abs(ends[0] - ends[3]).max() > 1e-3


def test_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new field is traced anew: constants outside the function are part of its formula."""

    def push() -> float:
        return float(globals_of_all_kinds().torque_value(0.0, matrix((0.5, 0.5, -0.1, 0.7)), (0, 0, 0))[1])

    before = push()
    monkeypatch.setattr(f"{__name__}.GAIN", 2 * GAIN)
    assert push() != before


def test_equality_is_no_python_comparison() -> None:
    """An == in a function must not be decided while it is traced."""
    switch = ph.torque(lambda t: (ph.where(t == 0.5, 1, 0), ph.where(t != 0.5, 1, 0), 0))()
    assert tuple(switch.torque_value(0.5, None, None)) == (1, 0, 0)
    assert tuple(switch.torque_value(0.25, None, None)) == (0, 1, 0)


def test_what_a_field_needs() -> None:
    assert heavy(1.0).needs == "potential"
    assert ph.torque(lambda t, R, omega: (t, 0, R[0][0]))().needs == "attitude"
    assert zoo([1, 1]).needs == "velocity"
    assert ph.Problem(BODY, **START).needs == "free"


# --- conventions (design, section 4) ----------------------------------------------------------------

DT = 1e-3


@pytest.fixture(scope="module", params=["own axes", "principal axes"])
def fine(request: pytest.FixtureRequest) -> ph.Trajectory:
    """A finely resolved trajectory under a torque that depends on everything."""
    inertia = np.diag([1.0, 2.0, 2.5])
    if request.param == "own axes":
        Q = Rotation.from_rotvec([0.5, -1.0, 0.2]).as_matrix()
        inertia = Q @ inertia @ Q.T
    start = ph.Problem(ph.Body(inertia), zoo([0.2, 0.5]), t0=0.3, **START)
    return ph.solve(start, "imidm", dt=DT, steps=600)


def rate(values: np.ndarray) -> np.ndarray:
    """Time derivative at the inner points, by differences of order 4."""
    return (8 * (values[3:-1] - values[1:-3]) - (values[4:] - values[:-4])) / (12 * DT)


def inner(values: np.ndarray) -> np.ndarray:
    return values[2:-2]


def hat(w: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(w, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], -2)


def body_torque(sol: ph.Trajectory) -> np.ndarray:
    given = zip(sol.t, sol.matrix, sol.omega, strict=True)
    return np.array([zoo_by_numpy(t, R, w, (0.2, 0.5)) for t, R, w in given])


SECOND_ORDER = 2e-6
"""Error of a second-order method in rates, at DT: measured 7e-7 at most; a wrong sign or frame gives 0.1 and more."""


def test_kinematics(fine: ph.Trajectory) -> None:
    """R' = R hat(omega), omega in the body frame, R from body to space."""
    np.testing.assert_allclose(rate(fine.matrix), inner(fine.matrix @ hat(fine.omega)), atol=SECOND_ORDER)


def test_dynamics(fine: ph.Trajectory) -> None:
    """Pi' = Pi x omega + T, Pi = I omega."""
    right = np.cross(fine.momentum, fine.omega) + body_torque(fine)
    np.testing.assert_allclose(rate(fine.momentum), inner(right), atol=SECOND_ORDER)
    np.testing.assert_allclose(fine.omega @ np.array(fine.info.inertia), fine.momentum, atol=1e-14)


def test_spatial_momentum(fine: ph.Trajectory) -> None:
    """L = R Pi, L' = R T."""
    np.testing.assert_allclose(fine.spatial_momentum, np.einsum("nij,nj->ni", fine.matrix, fine.momentum), atol=1e-14)
    right = np.einsum("nij,nj->ni", fine.matrix, body_torque(fine))
    np.testing.assert_allclose(rate(fine.spatial_momentum), inner(right), atol=SECOND_ORDER)


def test_power(fine: ph.Trajectory) -> None:
    """Kinetic energy omega.Pi/2 changes by omega.T."""
    np.testing.assert_allclose(fine.energy, (fine.omega * fine.momentum).sum(1) / 2, atol=1e-14)
    np.testing.assert_allclose(rate(fine.energy), inner((fine.omega * body_torque(fine)).sum(1)), atol=SECOND_ORDER)


def test_quaternions(fine: ph.Trajectory) -> None:
    """Unit, scalar first, R(q1 q2) = R(q1) R(q2), the same rotation as scipy's."""
    np.testing.assert_allclose(np.linalg.norm(fine.quaternion, axis=1), 1, atol=1e-15)
    ours = Rotation.from_quat(fine.quaternion, scalar_first=True)
    np.testing.assert_allclose(ours.as_matrix(), fine.matrix, atol=1e-15)
    np.testing.assert_allclose(ours.apply(fine.momentum), fine.spatial_momentum, atol=1e-14)
    product = matrix(mul(tuple(fine.quaternion[0]), tuple(fine.quaternion[-1])))
    np.testing.assert_allclose(product, fine.matrix[0] @ fine.matrix[-1], atol=1e-15)
    np.testing.assert_allclose(product, (ours[0] * ours[-1]).as_matrix(), atol=1e-15)


def test_times(fine: ph.Trajectory) -> None:
    """t = t0 + n dt, not summed."""
    np.testing.assert_array_equal(fine.t, 0.3 + np.arange(601) * DT)


def test_attitude_may_be_given_in_three_ways() -> None:
    R = Rotation.from_rotvec([1.0, -2.0, 0.7])
    starts = [
        ph.Problem(BODY, attitude=given, spatial_momentum=[1, 2, 3])
        for given in (R, R.as_matrix(), R.as_quat(scalar_first=True))
    ]
    for start in starts:
        np.testing.assert_allclose(matrix(start.quaternion), R.as_matrix(), atol=1e-15)
        np.testing.assert_allclose(start.momentum, R.as_matrix().T @ [1, 2, 3], atol=1e-15)
        np.testing.assert_allclose(start.spatial_momentum, [1, 2, 3], atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, math.pi - 1e-9, math.pi, 4.0])
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, -0.8), (2 / 3, -1 / 3, 2 / 3)])
def test_matrix_to_quaternion(axis: tuple[float, float, float], angle: float) -> None:
    R = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
    q = ph.Problem(BODY, attitude=R, omega=[1, 0, 0]).quaternion
    np.testing.assert_allclose(matrix(q), R, atol=1e-15)


# --- axes of the user -------------------------------------------------------------------------------

TURN = Rotation.from_rotvec([0.7, -1.1, 0.4]).as_matrix()
"""Vectors in the turned axes are TURN times vectors in the principal ones; attitudes are R TURN^T."""


def into(R, Q):
    """R Q: the attitude of the principal axes, from the attitude of the turned ones."""
    return tuple(tuple(sum(R[i][k] * Q[k][j] for k in range(3)) for j in range(3)) for i in range(3))


@ph.potential
def turned_potential(R, Q):
    P = into(R, Q)
    return P[2][2] + 0.3 * P[0][1] ** 2 + math.exp(P[1][2])


@ph.torque
def turned_body_torque(t, R, omega, Q):
    w = [sum(Q[k][i] * omega[k] for k in range(3)) for i in range(3)]
    P = into(R, Q)
    T = (0.3 * P[2][1] - 0.1 * w[0], math.cos(t) * P[0][0], 0.2 * w[1] * P[1][1])
    return tuple(sum(Q[i][k] * T[k] for k in range(3)) for i in range(3))


@ph.torque(frame="space")
def turned_space_torque(t, R, omega, Q):
    P = into(R, Q)
    w = [sum(Q[k][i] * omega[k] for k in range(3)) for i in range(3)]
    return (0.3 * P[2][1] - 0.1 * w[0], math.cos(t) * P[0][0], 0.2 * w[1] * P[1][1])


def turned(field: Any, Q: np.ndarray, **said: Any) -> ph.Trajectory:
    """The same motion, written in principal axes (Q = 1) or in axes turned by Q."""
    body = ph.Body(Q @ np.diag([1.0, 2.0, 2.5]) @ Q.T)
    R0 = START["attitude"].as_matrix() @ Q.T  # type: ignore[attr-defined]
    start = ph.Problem(body, field and field(Q.tolist()), attitude=R0, omega=Q @ START["omega"], t0=0.2)
    assert body.has_principal_rotation == (Q is TURN)
    return ph.solve(start, "imidm", dt=0.05, **said)


def same_motion(a: ph.Trajectory, b: ph.Trajectory, accuracy: float) -> None:
    np.testing.assert_allclose(b.matrix, a.matrix @ TURN.T, atol=accuracy)
    np.testing.assert_allclose(b.momentum, a.momentum @ TURN.T, atol=accuracy)
    np.testing.assert_allclose(b.omega, a.omega @ TURN.T, atol=accuracy)
    np.testing.assert_allclose(b.spatial_momentum, a.spatial_momentum, atol=accuracy)
    np.testing.assert_allclose(b.energy, a.energy, atol=accuracy)
    np.testing.assert_array_equal(b.t, a.t)


@pytest.mark.parametrize("field", [None, turned_potential, turned_body_torque, turned_space_torque])
def test_tensor_bodies_stay_in_the_axes_of_the_user(field: Any) -> None:
    """A turned copy of a problem moves as the problem does, in every quantity (here in 20 digits, not compiled)."""
    same_motion(*(turned(field, Q, steps=30, digits=20) for Q in (np.eye(3), TURN)), accuracy=1e-13)


def test_tensor_bodies_compiled() -> None:
    same_motion(*(turned(turned_body_torque, Q, steps=200) for Q in (np.eye(3), TURN)), accuracy=1e-12)


def test_energy_of_a_tensor_body_in_a_potential() -> None:
    sol = turned(turned_potential, TURN, steps=30, digits=30)
    assert abs(sol.mp.energy - sol.energy).max() < 1e-15 * abs(sol.energy).max() * 10
    assert sol.drift()["energy"] < 1e-3


@pytest.mark.parametrize("name", [n for n in ph.problems.names() if ph.problems.get(n).needs == "potential"])
def test_derived_torques_are_right_to_ten_roundings(name):
    """The torque of U(R) in doubles against 50 digits, at scattered attitudes; the quaternions count as exact.

    Next to the wall one rounding of the attitude changes the torque by more: ten times that effect is allowed.
    """
    problem = ph.problems.get(name)
    scatter = np.random.default_rng(4)
    (_, m), system = problem.kernel_data(floats.number)
    double = problem.field.torque_kernel(floats.number, problem.body.has_principal_rotation)
    for _ in range(50):
        q = scatter.normal(size=4)
        q = tuple((q / np.linalg.norm(q)).tolist())
        with mpmath.workdps(50):
            (_, big), same = problem.kernel_data(multiprecision.number)
            precise = problem.field.torque_kernel(multiprecision.number, problem.body.has_principal_rotation)

            def exact(q, big=big, same=same, precise=precise):
                return precise(mpmath.mpf(0), tuple(map(mpmath.mpf, q)), big, same)

            def gap(a, b):
                return max(abs(mpmath.mpf(x) - y) for x, y in zip(a, b, strict=True))

            true = exact(q)
            size = mpmath.sqrt(sum(x * x for x in true))
            nudged = [(*q[:i], np.nextafter(q[i], 2.0), *q[i + 1 :]) for i in range(4)]
            effect = max(gap(exact(near), true) for near in nudged)
            assert gap(double(0.0, q, m, system), true) <= 10 * max(2.0**-52 * size, effect)


def test_a_sum_with_a_field_that_was_not_called_is_explained():
    @ph.torque
    def drag(omega, k):
        return [-k * w for w in omega]

    for add in (lambda: drag + ph.fields.gravity(1.0), lambda: sum([drag])):
        with pytest.raises(ph.InputError, match=r"the field drag has no parameters bound; call it: drag\(k\)"):
            add()
