"""N-dimensional bodies in many digits: every declared property measured both ways, and potentials of the attitude."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from bodies_in_n_dimensions import setup
from polhode import InputError, ndim
from polhode.kernels.so3 import matrix
from polhode.ndim import family, linear
from polhode.ndim.body import precise
from polhode.ndim.reference import series

DIGITS = 50
EXACT, VISIBLE = 1e-44, 1e-22
FREE = [*ndim.methods, *(f"yoshida4({name})" for name in ndim.methods)]
free_methods = pytest.mark.parametrize("name", FREE)


def size(A):
    return max(abs(x) for x in A.ravel())


def hat(v, n):
    A = np.zeros((n, n), dtype=object)
    A[np.triu_indices(n, 1)] = v
    return A - A.T


def vee(A):
    return A[np.triu_indices(len(A), 1)]


# --- the free body ----------------------------------------------------------------------------------


def local_order(name, n=4, h=2.0**-24):
    """From the errors of one step: below 1e-34 at order 4, so a weight that is wrong by 1e-12 shows as order 2."""
    body, M, X = setup(n)
    errors = []
    with mpmath.workdps(75):
        own = body.in_digits()
        y = precise(M), precise(X)
        Ms, Xs = series(*y, own.rates, 12)  # the next term is below 1e-90
        for size_of_step in (mpmath.mpf(h), mpmath.mpf(h / 2)):
            new, _ = ndim.methods[name].build(own)(size_of_step, 0, y, own, None)
            exact = [sum(c * size_of_step**k for k, c in enumerate(terms)) for terms in (Ms, Xs)]
            errors.append(max(size(a - b) for a, b in zip(new, exact, strict=True)))
        return float(mpmath.log(errors[0] / errors[1], 2)) - 1


@free_methods
def test_order(name):
    assert local_order(name) == pytest.approx(ndim.methods[name].order, abs=1e-3)


def test_a_weight_that_is_wrong_by_1e_12_is_noticed(monkeypatch):
    right = family.triple_jump

    def wrong(number):
        outer = right(number)[0] + 1e-12
        return outer, 1 - 2 * outer, outer

    monkeypatch.setattr(family, "triple_jump", wrong)
    assert local_order("yoshida4(imr)") == pytest.approx(2, abs=0.01)


@free_methods
def test_time_symmetry(name):
    body, M, X = setup(5)
    with mpmath.workdps(DIGITS + 5):
        own = body.in_digits()
        step, y = ndim.methods[name].build(own), (precise(M), precise(X))
        there, _ = step(mpmath.mpf("0.3"), 0, y, own, None)
        back, _ = step(mpmath.mpf("-0.3"), 0, there, own, None)
        assert max(size(a - b) for a, b in zip(back, y, strict=True)) < EXACT


@free_methods
def test_what_is_conserved_and_what_is_not(name):
    """N = 6: in fewer dimensions some of it is conserved by accident."""
    method = ndim.methods[name]
    sol = ndim.solve(*setup(6), name, h=0.4, steps=2, digits=DIGITS)
    for word, change in sol.drift().items():
        assert change < EXACT if word in method.conserves else change > VISIBLE, word
    with mpmath.workdps(DIGITS + 5):
        assert size(sol.mp.X[-1].T @ sol.mp.X[-1] - np.eye(6)) < EXACT


@free_methods
def test_poisson_and_symplectic(name):
    """A P(M0) A^T = P(M1) for A = dM1/dM0, and the two-form of T*SO(N); central differences leave 1e-28."""
    n, k, d = 4, 6, mpmath.mpf(10) ** -14
    body, M, _ = setup(n)
    with mpmath.workdps(DIGITS + 5):
        own, h, basis = body.in_digits(), mpmath.mpf("0.4"), [hat(e, n) for e in np.eye(k)]
        step, one, M = ndim.methods[name].build(own), precise(np.eye(n)), precise(M)

        def moved(z):
            A = hat(z[:k] / 2, n)
            turned = linear.solve(np.eye(n) - A, np.eye(n) + A)
            return step(h, 0, (hat(z[k:], n), turned), own, None)[0]

        start = np.concatenate([0 * vee(M), vee(M)])
        M1, X1 = step(h, 0, (M, one), own, None)[0]
        columns = []
        for e in np.eye(2 * k):
            (up, X_up), (down, X_down) = moved(start + d * e), moved(start - d * e)
            turn = X1.T @ (X_up - X_down)
            columns.append(np.concatenate([vee(turn - turn.T) / 2, vee(up - down)]) / (2 * d))
        T = np.array(columns).T

        def tensor(M):
            return np.array([[vee(a @ b - b @ a) @ vee(M) for b in basis] for a in basis])

        def form(M):
            return np.block([[-tensor(M), -np.eye(k)], [np.eye(k), np.zeros((k, k))]])

        A = T[k:, k:]
        defects = size(A @ tensor(M) @ A.T - tensor(M1)), size(T.T @ form(M1) @ T - form(M))
    method = ndim.methods[name]
    for declared, defect in zip((method.poisson, method.symplectic), defects, strict=True):
        assert defect < 1e-25 if declared else defect > VISIBLE


@free_methods
def test_doubles_and_digits_agree(name):
    runs = [ndim.solve(*setup(5), name, h=0.2, steps=4, digits=digits) for digits in (None, 30)]
    assert np.abs(runs[0].M - runs[1].M).max() < 4e-15
    assert np.abs(runs[0].X - runs[1].X).max() < 4e-15
    assert abs(float(runs[1].mp.energy[0]) - runs[0].energy[0]) < 1e-14


def test_flat_bodies_in_digits():
    body = ndim.Body([1.0, 0.0, 1.7, 0.6])
    _, M, X = setup(4)
    drift = ndim.solve(body, M, X, h=0.2, steps=2, digits=DIGITS).drift()
    assert max(drift.values()) < EXACT


# --- a potential ------------------------------------------------------------------------------------


def uneven(X):
    """Neither linear nor symmetric."""
    return 0.7 * X[2][2] * X[0][1] - 0.4 * X[1][0] ** 2 + math.exp(X[2][1] / 2)


@ph.potential
def uneven_in_space(R):
    return uneven(R)


@pytest.mark.parametrize(
    ("name", "same"),
    [("strang(moser_veselov)", "strang(dmv2)"), ("yoshida4(strang(moser_veselov))", "yoshida4(dmv2)")],
)
def test_three_dimensions_are_the_body_of_quaternions(name, same):
    """Moser-Veselov with kicks of a potential, in both representations, to 38 digits."""
    moments, (x, y, z) = np.array([0.75, 0.875, 1.0]), (1.75, 0.5, -0.875)
    problem = ph.Problem(ph.Body(moments), uneven_in_space(), momentum=(x, y, z))
    one = ph.solve(problem, same, dt=0.125, steps=4, digits=40).mp
    M = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    other = ndim.solve(moments.sum() / 2 - moments, M, None, name, h=0.125, steps=4, potential=uneven, digits=40).mp
    with mpmath.workdps(45):
        assert size(np.stack([other.M[:, 2, 1], other.M[:, 0, 2], other.M[:, 1, 0]], 1) - one.momentum) < 1e-38
        assert size(other.X[-1] - np.array(matrix(tuple(one.quaternion[-1])))) < 1e-38
        assert size(other.energy - one.energy) < 1e-38


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize(
    ("name", "order"),
    [("strang(moser_veselov)", 2), ("strang(imr)", 2), ("yoshida4(strang(isospectral_midpoint))", 4)],
)
def test_order_with_a_potential(n, name, order):
    """From one step of h against two of h/2, and how the total energy changes."""
    assert ndim.methods[name].needs == "potential"
    body, M, X = setup(n)
    gaps, changes = [], []
    for h in (2.0**-14, 2.0**-15):
        one = ndim.solve(body, M, X, name, h=h, steps=1, potential=uneven, digits=60).mp
        two = ndim.solve(body, M, X, name, h=h / 2, steps=2, potential=uneven, digits=60).mp
        with mpmath.workdps(65):
            gaps.append(max(size(one.M[1] - two.M[2]), size(one.X[1] - two.X[2])))
            changes.append(abs(one.energy[1] - one.energy[0]))
    for errors in (gaps, changes):
        assert float(mpmath.log(errors[0] / errors[1], 2)) == pytest.approx(order + 1, abs=0.01)


def test_the_energy_in_a_potential_does_not_drift():
    body, M, X = setup(4)
    sol = ndim.solve(body, M, X, "strang(moser_veselov)", h=0.1, steps=2000, potential=uneven)
    change = np.abs(sol.energy - sol.energy[0])
    assert sol.drift().keys() == {"energy"}
    assert 1e-6 < change.max() < 2 * change[:400].max()


def test_without_a_potential_kicks_are_nothing():
    body, M, X = setup(4)
    runs = [ndim.solve(body, M, X, name, h=0.1, steps=20) for name in ("moser_veselov", "strang(moser_veselov)")]
    assert (runs[0].M == runs[1].M).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"potential": uneven}, r"takes no potential; use strang\(moser_veselov\)"),
        ({"potential": 3.0, "method": "strang(mv)"}, "must be a function of X"),
        ({"potential": lambda X: np.linalg.norm(X), "method": "strang(mv)"}, "cannot be compiled"),
        ({"potential": lambda X: 1.0 if X[0][0] > 0 else 0.0, "method": "strang(mv)"}, "branches on a number"),
        ({"potential": lambda X: X[7][0], "method": "strang(mv)"}, "cannot be compiled"),
        ({"digits": 0}, "digits must be"),
        ({"method": "strang(strang(mv))"}, "takes a free method"),
    ],
)
def test_bad_input(change, message):
    body, M, X = setup(4)
    with pytest.raises(InputError, match=message):
        ndim.solve(body, M, X, **({"h": 0.1, "steps": 1} | change))


def test_a_step_too_large_is_refused_in_digits():
    body, M, X = setup(4)
    limit = ndim.largest_step(body, M)
    with pytest.raises(ph.StepError, match="no solution for steps of"):
        ndim.solve(body, M, X, h=1.01 * limit, steps=2, digits=20)


@pytest.mark.parametrize("digits", [None, 20])
def test_a_potential_without_a_value_ends_the_run_with_what_was_before(digits):
    """The states before the step that fails are kept, and the dt named lets the run go on."""

    def edge(X):
        return 30 * X[0][0] + 1e-3 * math.sqrt(X[0][0] - 0.98)

    body, M, _ = setup(4)
    run = {"method": "strang(mv)", "h": 0.05, "steps": 90, "potential": edge, "digits": digits}
    with pytest.raises(
        ph.StepError, match=r"the potential has no value there; try h = 0\.0\d+; the \d+ states"
    ) as caught:
        ndim.solve(body, M, **run)
    sol = caught.value.partial
    assert sol.status == "failed"
    assert 1 < len(sol) < 90
    assert (sol.X[:, 0, 0] > 0.98).all()
