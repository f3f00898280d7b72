"""Vectors and matrices in a user's function: the same formulas as component by component, and the values of NumPy."""

import math

import numpy as np
import pytest

import polhode as ph
from polhode.numbers.nested import Nested, nested

BODY, OMEGA = ph.Body([1.0, 2.0, 2.5]), [1.0, 0.1, 0.2]
ARM = np.array([0.3, -0.2, 0.9])
STIFFNESS = np.array([[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]])
ARM_LIST, STIFFNESS_LIST = ARM.tolist(), STIFFNESS.tolist()
ROTATION = nested([[0.0, -1.0, 0.0], [0.6, 0.0, -0.8], [0.8, 0.0, 0.6]])


def by_rows(M, v):
    return [M[i][0] * v[0] + M[i][1] * v[1] + M[i][2] * v[2] for i in range(3)]


def by_columns(M, v):
    return [M[0][i] * v[0] + M[1][i] * v[1] + M[2][i] * v[2] for i in range(3)]


def crossed(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


PAIRS = {
    "drag": (lambda omega, k: -k * omega, lambda omega, k: [-k * omega[i] for i in range(3)]),
    "squares": (lambda omega, k: omega * omega, lambda omega, k: [omega[i] * omega[i] for i in range(3)]),
    "power": (lambda omega, k: omega**2, lambda omega, k: [omega[i] ** 2 for i in range(3)]),
    "quotient": (lambda omega, k: omega / k, lambda omega, k: [omega[i] / k for i in range(3)]),
    "less a tuple": (lambda omega, k: k * (omega - (1.0, 2.0, 3.0)),
                     lambda omega, k: [k * (omega[0] - 1.0), k * (omega[1] - 2.0), k * (omega[2] - 3.0)]),
    "list less": (lambda omega, k: [1.0, 2.0, 3.0] - omega,
                  lambda omega, k: [1.0 - omega[0], 2.0 - omega[1], 3.0 - omega[2]]),
    "R v": (lambda R, omega, k: R @ omega, lambda R, omega, k: by_rows(R, omega)),
    "R^T v": (lambda R, k: k * (R.T @ ARM), lambda R, k: [k * x for x in by_columns(R, ARM_LIST)]),
    "R^T of a tuple": (lambda R, k: R.T @ (0.0, k, 1.0), lambda R, k: by_columns(R, (0.0, k, 1.0))),
    "entries": (lambda R, k: (R[0, 1], k * R[2, 2], R[1, 0]), lambda R, k: (R[0][1], k * R[2][2], R[1][0])),
    "column": (lambda R, k: k * R[:, 2], lambda R, k: [k * R[i][2] for i in range(3)]),
    "row": (lambda R, k: R[2] * k, lambda R, k: [R[2][i] * k for i in range(3)]),
    "array times": (lambda omega, k: STIFFNESS @ omega, lambda omega, k: by_rows(STIFFNESS_LIST, omega)),
    "minus an array": (lambda omega, k: -ARM * omega, lambda omega, k: [-ARM[i] * omega[i] for i in range(3)]),
    "cross": (lambda omega, k: k * ph.math.cross(omega, ARM),
              lambda omega, k: [k * x for x in crossed(omega, ARM_LIST)]),
    "matvec": (lambda R, omega, k: ph.math.matvec(R, omega), lambda R, omega, k: by_rows(R, omega)),
    "norm": (lambda omega, k: -k * ph.math.norm(omega) * omega,
             lambda omega, k: [-k * math.sqrt(omega[0] * omega[0] + omega[1] * omega[1] + omega[2] * omega[2]) * w
                               for w in omega]),
    "dot": (lambda R, omega, k: ph.math.dot(omega, R[0]) * omega,
            lambda R, omega, k: [(omega[0] * R[0][0] + omega[1] * R[0][1] + omega[2] * R[0][2]) * w for w in omega]),
    "inner": (lambda omega, k: (omega @ ARM) * omega,
              lambda omega, k: [(omega[0] * ARM[0] + omega[1] * ARM[1] + omega[2] * ARM[2]) * w for w in omega]),
    "parameters": (lambda omega, k, c=(1.0, 2.0, 3.0): -c * omega, lambda omega, k, c=(1.0, 2.0, 3.0): [
        -c[i] * omega[i] for i in range(3)]),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_the_formula_is_that_of_the_components(case):
    """The same nodes, so the same kernels to the last bit."""
    short, long = (ph.torque(f)(0.5) for f in PAIRS[case])
    assert all(a is b for a, b in zip(short.graph[0], long.graph[0], strict=True))


@pytest.mark.parametrize("case", PAIRS)
def test_the_function_itself_gives_the_values_of_its_formula(case):
    field = ph.Problem(BODY, ph.torque(PAIRS[case][0])(0.5), omega=OMEGA).field
    plain = field.value(0.0, ROTATION, OMEGA, "here")
    assert field.torque_value(0.0, ROTATION, OMEGA) == pytest.approx(tuple(plain), rel=1e-15)


def test_a_potential_in_arrays():
    short = ph.potential(lambda R, k: -k * (R @ ARM)[2])(2.0)
    long = ph.potential(lambda R, k: -k * (R[2][0] * ARM[0] + R[2][1] * ARM[1] + R[2][2] * ARM[2]))(2.0)
    assert short.graph[1] is long.graph[1]


def test_constants_keep_all_digits():
    field = ph.torque(lambda omega: ph.math.norm((1.0, 1.0, 0.0)) * omega)()
    by_hand = ph.torque(lambda omega: [math.sqrt(2.0) * x for x in omega])()
    sol, other = (
        ph.solve(ph.Problem(BODY, f, omega=OMEGA), "fem", dt=0.1, steps=1, digits=40) for f in (field, by_hand)
    )
    assert (sol.mp.momentum == other.mp.momentum).all()


def numpy_of(value):
    return np.array(value, dtype=float)


@pytest.mark.parametrize(
    "operation",
    [
        lambda A, v: A @ v, lambda A, v: v @ A, lambda A, v: A @ A, lambda A, v: A.T, lambda A, v: A + v,
        lambda A, v: v - A, lambda A, v: A * A, lambda A, v: 2 * A / v, lambda A, v: A[0:2, 1], lambda A, v: A[1, :],
        lambda A, v: -A, lambda A, v: abs(v), lambda A, v: 2**v, lambda A, v: v.dot(v), lambda A, v: v.T,
        lambda A, v: np.float64(3.0) * v, lambda A, v: v[1:], lambda A, v: A.shape,
    ],
)  # fmt: skip
def test_the_rules_are_those_of_numpy(operation):
    v = [0.3, -1.5, 2.0]
    expected = operation(numpy_of(ROTATION), numpy_of(v))
    found = operation(ROTATION, nested(v))
    np.testing.assert_allclose(numpy_of(found), expected, rtol=1e-15, atol=1e-15)


def test_arrays_meet_numpy():
    v = nested([1.0, 2.0, 3.0])
    assert isinstance(STIFFNESS @ v, Nested)
    assert np.cross(v, ARM) == pytest.approx(np.cross([1.0, 2.0, 3.0], ARM))
    assert np.sin(v) == pytest.approx(np.sin([1.0, 2.0, 3.0]))
    assert tuple(v) == (1.0, 2.0, 3.0)
    assert v == (1.0, 2.0, 3.0)


MISTAKES = {
    "lengths": (lambda omega: omega - (1.0, 2.0), "arrays of 3 and of 2 items cannot be combined"),
    "cross": (
        lambda omega: ph.math.cross(omega, (1.0, 2.0)),
        "two vectors of three components; got 3 components and 2",
    ),
    "dot": (lambda R, omega: ph.math.dot(R, omega), "two vectors of the same length; got an array of 2 dimensions"),
    "number": (lambda t, omega: t @ omega, "a product needs vectors or matrices; got a number and 3 components"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_combined_is_explained(case):
    function, said = MISTAKES[case]
    with pytest.raises(ph.InputError, match=rf"raised TypeError at the start .*{said}.*R\[i, j\] and omega\[i\] are"):
        ph.Problem(BODY, ph.torque(function)(), omega=OMEGA)
