"""N-dimensional bodies: every declared property measured both ways, the limit of the step size, and the user's side."""

import math

import numpy as np
import pytest
import scipy.linalg

from bodies_in_n_dimensions import setup
from polhode import InputError, StepError, methods, ndim
from polhode.ndim import family, linear
from polhode.ndim.body import WORDS, pfaffians

ROUND_OFF = 2e-14  # relative, after hundreds of steps; measured: at most 4e-15
VISIBLE = 1e-7  # the least that counts as failing; measured failures are 4e-7 and larger
BOOK = ndim.methods
EVERY = [*BOOK, "yoshida4(moser_veselov)", "yoshida4(imr)", "yoshida4(isospectral_midpoint)"]
every_method = pytest.mark.parametrize("name", EVERY)


def hat(v, n):
    A = np.zeros((n, n))
    A[np.triu_indices(n, 1)] = v
    return A - A.T


def vee(A):
    return A[np.triu_indices(len(A), 1)]


def stepper(name, body):
    step = BOOK[name].build(body)
    return lambda h, M, X: step(h, 0.0, (M, X), body, None)[0]


def jacobian(function, x, d=2e-4):
    """Central differences of order four: round-off 1e-12, the rest 1e-13."""
    columns = []
    for e in np.eye(len(x)):
        near, far = (function(x + k * d * e) - function(x - k * d * e) for k in (1, 2))
        columns.append((8 * near - far) / (12 * d))
    return np.array(columns).T


def bracket_matrix(M):
    """<M, [E_a, E_b]> over the basis of so(N): the Poisson tensor of so(N)*."""
    n = len(M)
    basis = [hat(e, n) for e in np.eye(n * (n - 1) // 2)]
    return np.array([[vee(a @ b - b @ a) @ vee(M) for b in basis] for a in basis])


# --- the equations and their invariants -------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 6, 7])
def test_the_integrals_are_the_coefficients_of_the_characteristic_polynomial(n):
    body, M, _ = setup(n)
    J2 = np.diag(body.J**2)
    found = iter(body.integrals(M))
    c = {(a, b): next(found) for b in range(2, n + 1, 2) for a in range(n - b, -1, -1)}
    c |= {(n - k, 0): x for k, x in enumerate(np.poly(body.J**2))}
    for nu, s in ((0.3, 0.7), (-1.1, 2.0), (2.5, -0.4)):
        expected = np.linalg.det(nu * np.eye(n) - s * M - J2)
        terms = [x * nu**a * s**b for (a, b), x in c.items()]
        assert abs(sum(terms) - expected) <= 1e-13 * sum(map(abs, terms))
        at = np.linalg.det(nu**2 * np.eye(n) - nu * M - J2)
        assert np.polyval(body.polynomial(M), nu) == pytest.approx(at, rel=1e-11, abs=1e-12)
    assert pfaffians(M)[tuple(range(n - n % 2))] ** 2 == pytest.approx(np.linalg.det(M[: n - n % 2, : n - n % 2]))


def test_energy_and_velocity():
    body, M, _ = setup(5)
    J = np.diag(body.J)
    omega = body.omega(M)
    assert np.allclose(J @ omega + omega @ J, M, rtol=0, atol=1e-15)
    assert body.energy(M) == pytest.approx(np.trace(M.T @ omega) / 4, rel=1e-14)


@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_the_reference_solves_the_equations_and_keeps_everything(n):
    body, M0, X0 = setup(n)
    d = 1e-3
    sol = ndim.reference(body, M0, [*(1 + k * d for k in (-2, -1, 0, 1, 2)), 7.0, -3.0], X0)
    M, X, omega = sol.M, sol.X, sol.omega[2]
    slope = [(8 * (Y[3] - Y[1]) - (Y[4] - Y[0])) / (12 * d) for Y in (M, X)]
    assert np.allclose(slope[0], M[2] @ omega - omega @ M[2], rtol=0, atol=2e-11)
    assert np.allclose(slope[1], X[2] @ omega, rtol=0, atol=2e-11)
    assert max(sol.drift().values()) < ROUND_OFF


def test_the_reference_in_many_digits():
    body, M0, X0 = setup(4)
    plain, precise = (ndim.reference(body, M0, [0.75, -0.5], X0, digits=digits) for digits in (None, 30))
    assert np.abs(plain.M - precise.M).max() < 3e-15
    assert np.abs(plain.X - precise.X).max() < 3e-15
    gap = precise.mp.X[0] @ precise.mp.X[0].T - X0 @ X0.T
    assert np.abs(gap.astype(float)).max() < 1e-14  # that of X0 itself, which is orthogonal in doubles only
    back = ndim.reference(body, M0, 0.0, X0, digits=30)
    assert (back.mp.M[0] == M0).all()


# --- declarations -----------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("n", [4, 6, 10])
def test_order(name, n):
    body, M0, X0 = setup(n)
    exact = ndim.reference(body, M0, 1.0, X0)
    errors = []
    for h in (1 / 10, 1 / 20):
        sol = ndim.solve(body, M0, X0, name, h=h, t_end=1.0)
        errors.append([np.linalg.norm(sol.M[-1] - exact.M[0], 2), np.linalg.norm(sol.X[-1] - exact.X[0], 2)])
    order = np.log2(np.array(errors[0]) / errors[1])
    assert np.abs(order - BOOK[name].order).max() < 0.1


@every_method
def test_time_symmetry(name):
    assert BOOK[name].symmetric
    for n in (3, 4, 6):
        body, M, X = setup(n)
        step = stepper(name, body)
        back = step(-0.3, *step(0.3, M, X))
        assert np.abs(back[0] - M).max() < 4e-15
        assert np.abs(back[1] - X).max() < 4e-15


@every_method
@pytest.mark.parametrize("n", [3, 4])
def test_poisson_and_symplectic(name, n):
    """A P(M0) A^T = P(M1) for A = dM1/dM0; and the canonical two-form of T*SO(N), left-trivialised."""
    body, M, _ = setup(n)
    step, k, h, one = stepper(name, body), n * (n - 1) // 2, 0.4, np.eye(n)
    M1, X1 = step(h, M, one)
    A = jacobian(lambda v: vee(step(h, hat(v, n), one)[0]), vee(M))
    poisson = np.abs(A @ bracket_matrix(M) @ A.T - bracket_matrix(M1)).max()

    def both(z):
        new, X = step(h, hat(z[k:], n), scipy.linalg.expm(hat(z[:k], n)))
        return np.concatenate([vee((X1.T @ X - X.T @ X1) / 2), vee(new)])

    def form(M):
        return np.block([[-bracket_matrix(M), -np.eye(k)], [np.eye(k), np.zeros((k, k))]])

    T = jacobian(both, np.concatenate([np.zeros(k), vee(M)]))
    symplectic = np.abs(T.T @ form(M1) @ T - form(M)).max()
    for declared, measured in ((BOOK[name].poisson, poisson), (BOOK[name].symplectic, symplectic)):
        assert measured < 1e-10 if declared else measured > VISIBLE


@every_method
@pytest.mark.parametrize("n", [6, 10])
def test_what_is_conserved_and_what_is_not(name, n):
    """N = 6 and more: in fewer dimensions some of it is conserved by accident, see below."""
    body, M, X = setup(n)
    sol = ndim.solve(body, M, X, name, h=0.4, steps=60 if name.startswith("y") else 200)
    for word, size in sol.drift().items():
        assert size < ROUND_OFF if word in BOOK[name].conserves else size > VISIBLE, word
    assert np.abs(np.swapaxes(sol.X, 1, 2) @ sol.X - np.eye(n)).max() < 2e-15
    assert (-np.swapaxes(sol.M, 1, 2) == sol.M).all()


@pytest.mark.parametrize("n", [3, 4, 5])
def test_moser_veselov_keeps_everything_in_few_dimensions(n):
    body, M, X = setup(n)
    drift = ndim.solve(body, M, X, h=0.25, steps=400).drift()
    assert set(drift) == set(WORDS)
    assert max(drift.values()) < ROUND_OFF


def test_what_the_midpoint_rule_keeps_depends_on_the_dimension():
    """Every integral is quadratic for N = 3; for N = 4 the only other one is the square of the Pfaffian, which is."""
    drifts = {n: ndim.solve(*setup(n), "imr", h=0.25, steps=200).drift() for n in (3, 4, 5)}
    assert max(drifts[3].values()) < ROUND_OFF
    assert max(size for word, size in drifts[4].items() if word != "spatial_momentum") < ROUND_OFF
    assert drifts[4]["spatial_momentum"] > VISIBLE
    assert min(drifts[5][word] for word in ("casimirs", "integrals", "polynomial", "spatial_momentum")) > VISIBLE


def test_the_energy_of_the_isospectral_rule_swings_and_does_not_drift():
    body, M, X = setup(6)
    change = ndim.solve(body, M, X, "isospectral_midpoint", h=0.25, steps=1000).energy
    change = np.abs(change - change[0])
    assert change.max() < 2 * change[:200].max()


# --- Moser-Veselov ----------------------------------------------------------------------------------


def test_three_dimensions_are_the_discrete_body_of_quaternions():
    """2 I e = v + v x e + (v.e) e for the Cayley vector e, v = h y, solved here by plain iteration."""
    J = np.array([0.9218, 0.7382, 0.1763])
    inertia = J.sum() - J
    y, R, h = np.array([0.4165, 0.9072, 0.0588]), np.eye(3), 0.25

    def cross(a):
        return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])

    sol = ndim.solve(J, cross(y), h=h, steps=40)
    for n in range(41):
        assert np.abs(sol.M[n] - cross(y)).max() < 4e-15
        assert np.abs(sol.X[n] - R).max() < 4e-15
        v, e = h * y, np.zeros(3)
        for _ in range(200):
            e = (v + np.cross(v, e) + (v @ e) * e) / (2 * inertia)
        y = y + 4 / (h * (1 + e @ e)) * np.cross(inertia * e, e)
        R = R @ np.linalg.solve(np.eye(3) - cross(e), np.eye(3) + cross(e))


@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_the_discrete_euler_arnold_equation(n):
    """M_k = w^T J - J w, M_{k+1} = w M_k w^T with w = X_k^T X_{k-1}, and W = w^T J has the same spectrum for ever."""
    body, M, X = setup(n)
    h, J = 0.4, np.diag(body.J)
    sol = ndim.solve(body, M, X, h=h, steps=20)
    spectra = []
    for k in range(20):
        w = sol.X[k + 1].T @ sol.X[k]
        assert np.abs(w.T @ J - J @ w - h * sol.M[k]).max() < 5e-15
        assert np.abs(w @ sol.M[k] @ w.T - sol.M[k + 1]).max() < 5e-15
        spectra.append(np.sort_complex(np.round(np.linalg.eigvals(w.T @ J), 9)))
    assert (spectra[0].real > 0).all()
    assert np.abs(np.array(spectra) - spectra[0]).max() < 1e-8


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_schur_route_alone_is_right_and_newton_refines_it(n):
    body, M, _ = setup(n)
    m = 0.5 * M
    W = family.riccati(body.J, m)
    assert np.abs(W - W.T - m).max() < 1e-13
    assert np.abs(W.T @ W - np.diag(body.J**2)).max() < 1e-12
    A, residual = family.moser_veselov_root(body, m)
    assert residual == 0
    assert np.abs(family.cayley(A) * body.J - W).max() < 1e-12


@pytest.mark.parametrize("small", [1e-2, 1e-4, 1e-8, 0.0])
@pytest.mark.parametrize("n", [3, 6])
def test_flat_bodies_lose_no_digits(n, small):
    """Some integrals then hang on small entries of M alone, hence the larger bound; measured: at most 1.5e-14."""
    body, M, X = setup(n)
    J = body.J.copy()
    J[1] = small
    flat = ndim.Body(J)
    M = flat.momentum(body.omega(M))
    limit = ndim.largest_step(flat, M)
    for part in (0.1, 0.9):
        assert max(ndim.solve(flat, M, X, h=part * limit, steps=100).drift().values()) < 3 * ROUND_OFF
    with pytest.raises(StepError, match="no solution"):
        ndim.solve(flat, M, X, h=1.01 * limit, steps=1)


def test_where_the_solution_ends():
    """`largest_step` is sharp, and far beyond the sufficient condition M^2/4 + J^2 > 0."""
    random = np.random.default_rng(0)
    beyond = 0
    for _ in range(60):
        n = int(random.integers(2, 8))
        body, A = ndim.Body(np.exp(random.normal(size=n))), random.normal(size=(n, n))
        M = A - A.T
        limit = ndim.largest_step(body, M)
        beyond += np.linalg.eigvalsh((0.9 * limit) ** 2 * M @ M / 4 + np.diag(body.J**2)).min() < 0
        for part, exists in ((0.9, True), (1 - 1e-6, True), (1 + 1e-6, False), (3, False)):
            assert (family.moser_veselov_root(body, part * limit * M)[1] == 0) == exists
    assert beyond > 20
    plane = np.zeros((5, 5))
    plane[1, 3], plane[3, 1] = 2.0, -2.0
    assert ndim.largest_step([1, 2, 3, 4, 5], plane) == pytest.approx((2 + 4) / 2, rel=1e-12)
    assert ndim.largest_step([1, 2, 3], np.zeros((3, 3))) == math.inf


def test_the_limit_is_a_constant_of_the_motion():
    body, M, X = setup(6)
    sol = ndim.reference(body, M, [0.0, 1.0, 4.0], X)
    assert [ndim.largest_step(body, m) for m in sol.M] == pytest.approx([ndim.largest_step(body, M)] * 3, rel=1e-9)


@pytest.mark.parametrize(
    "J", [[1, 1, 1, 1], [1, 1, 2, 2], [1, 1, 1, 3], [1e-20, 3e-20, 2e-20, 5e-20], [1e20, 3e20, 2e20, 5e20]]
)
@pytest.mark.parametrize("name", list(BOOK))
def test_symmetric_bodies_and_any_units(J, name):
    body, (other, M, X) = ndim.Body(J), setup(4)
    drift = ndim.solve(body, body.momentum(other.omega(M)), X, name, h=0.1, steps=50).drift()
    assert max(drift[word] for word in BOOK[name].conserves) < ROUND_OFF
    still = ndim.solve(body, np.zeros((4, 4)), X, name, h=0.1, steps=3)
    assert np.abs(still.X - X).max() < 1e-15


def test_two_dimensions():
    """sin(angle of a step) = h m / (J1 + J2)."""
    sol = ndim.solve([1.0, 2.0], [[0, -1.5], [1.5, 0]], h=0.5, steps=3)
    angle = np.arctan2(sol.X[1:, 1, 0], sol.X[1:, 0, 0])
    assert angle == pytest.approx(np.arcsin(0.25) * np.arange(1, 4), rel=1e-14)


# --- the user's side --------------------------------------------------------------------------------


def test_the_result():
    body, M, X = setup(4)
    sol = ndim.solve(body, M, X, h=0.1, t_end=1.05 + 0.05, t0=0.1, every=4)
    assert sol.t == pytest.approx([0.1, 0.5, 0.9, 1.1])
    assert len(sol) == 4
    assert sol.M.shape == sol.X.shape == sol.omega.shape == (4, 4, 4)
    assert set(sol.invariants()) == set(sol.drift()) == set(WORDS)
    assert sol.energy == pytest.approx([body.energy(M)] * 4)
    assert repr(sol) == "<Motion of a body in 4 dimensions, moser_veselov: 4 states, t = 0.1 to 1.1, finished>"
    assert (sol.method, sol.h, sol.status) == ("moser_veselov", 0.1, "finished")
    assert np.array_equal(ndim.solve(np.diag(body.J), M, X, "mv", h=0.1, steps=10, t0=0.1).M[-1], sol.M[-1])


def test_many_dimensions():
    body, M, X = setup(20)
    drift = ndim.solve(body, M, X, h=0.2, steps=20).drift()
    assert max(drift.values()) < ROUND_OFF
    assert set(drift) == {"energy", "momentum_norm", "spatial_momentum", "quadratic"}
    with pytest.raises(InputError, match="N up to 14"):
        body.integrals(M)


@pytest.mark.parametrize("name", ["moser_veselov", "yoshida4(moser_veselov)"])
def test_a_step_without_a_solution_says_so_and_names_one_that_has(name):
    body, M, X = setup(6)
    with pytest.raises(StepError, match=r"no solution for steps of .* or more here.*; try h = ") as caught:
        ndim.solve(body, M, X, name, h=1.2, steps=5)
    assert len(caught.value.partial) == 1
    assert caught.value.partial.status == "failed"
    better = float(str(caught.value).split("try h = ")[1].split(";")[0])
    assert ndim.solve(body, M, X, name, h=better, steps=5).status == "finished"


@pytest.mark.parametrize("name", ["imr", "isospectral_midpoint"])
def test_a_midpoint_step_that_fails_names_one_that_does_not(name, monkeypatch):
    """Newton is given few iterations, since these equations have roots for all steps."""
    monkeypatch.setattr(linear, "ITERATIONS", 4)
    body, M, X = setup(6)
    with pytest.raises(StepError, match=r"was not solved .*; try h = ") as caught:
        ndim.solve(body, M, X, name, h=4.0, steps=5)
    better = float(str(caught.value).split("try h = ")[1].split(";")[0])
    assert ndim.solve(body, M, X, name, h=better, steps=1).status == "finished"


GOOD = {"J": [1.0, 2.0, 3.0], "M0": hat([1, 2, 3], 3), "h": 0.1, "steps": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"J": [1.0, -2.0, 3.0]}, "cannot be negative"),
        ({"J": [1.0, 0.0, 0.0]}, "at most one entry"),
        ({"J": [1.0]}, "N >= 2"),
        ({"J": [1.0, np.nan, 1.0]}, "J must be finite"),
        ({"J": "abc"}, "array of numbers"),
        ({"J": 3.0}, "array of numbers"),
        ({"J": [[1.0, 2.0, 3.0], [1.0, 2.0]]}, "array of numbers"),
        ({"J": [[1.0, 0.1], [0.1, 2.0]]}, "diagonal"),
        ({"J": np.ones((2, 3))}, "shape"),
        ({"J": [1.0, 2.0]}, r"M0 must have shape \(2, 2\)"),
        ({"M0": np.eye(3)}, "skew"),
        ({"M0": np.full((3, 3), np.inf)}, "finite"),
        ({"M0": [1.0, 2.0, 3.0]}, "shape"),
        ({"X0": 2 * np.eye(3)}, "orthogonal"),
        ({"X0": np.eye(4)}, "shape"),
        ({"h": 0.0}, "h must be positive"),
        ({"h": "a"}, "h must be a number"),
        ({"steps": 0}, "steps"),
        ({"steps": None}, "t_end or steps"),
        ({"steps": None, "t_end": 0.25}, r"whole number of steps h = 0.1"),
        ({"every": 0.5}, "every"),
        ({"method": "rattle_snake"}, "there are moser_veselov, imr, isospectral_midpoint"),
        ({"method": methods["imid"]}, "not a method for N-dimensional bodies"),
        ({"method": "yoshida4(yoshida4(imr))"}, "symmetric method of order 2"),
    ],
)
def test_bad_input(change, message):
    given = GOOD | change
    with pytest.raises(InputError, match=message):
        ndim.solve(given.pop("J"), given.pop("M0"), **given)


@pytest.mark.parametrize(
    ("t", "digits"), [("a", None), ([[1.0]], None), ([], None), (np.inf, None), (1.0, 0), (1.0, 2.5)]
)
def test_bad_input_of_the_reference(t, digits):
    with pytest.raises(InputError, match=r"^(t|digits) must be"):
        ndim.reference([1.0, 2.0, 3.0], hat([1, 2, 3], 3), t, digits=digits)


@pytest.mark.parametrize(
    ("size", "times", "message"),
    [
        (1.0, {"t": 1e308}, "one rounding error"),
        (1.0, {"t": -(2.0**53)}, "one rounding error"),
        (1.0, {"t": 1.0, "t0": 1e20}, "one rounding error"),
        (1.0, {"t": 1e25, "digits": 20}, "one rounding error"),
        (1e20, {"t": 1.0}, "exceeds all doubles"),
        (1e300, {"t": 1.0}, "exceeds all doubles"),
    ],
)
def test_the_reference_does_not_run_for_ever(size, times, message):
    """It goes on in pieces, which cannot be subtracted from a span that is too long, or have no length."""
    with pytest.raises(InputError, match=message):
        ndim.reference([1.0, 2.0, 3.0], size * hat([1, 2, 3], 3), **times)


def test_unknown_names_in_a_declaration_are_refused():
    with pytest.raises(ValueError, match="unknown names"):
        family.declared(family.imr, name="liar", order=2, conserves=("temperature",))
