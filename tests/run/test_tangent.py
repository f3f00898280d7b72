"""Tangents of runs: derivatives along a trajectory, and covariances."""

import warnings

import numpy as np
import pytest

import polhode as ph
from polhode.kernels.so3 import conj, mul

LENGTH = 1.0
RNG = np.random.default_rng(5)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN *= np.sign(np.linalg.det(TURN))
TENSOR = ph.Problem(
    ph.Body(TURN @ np.diag([1.0, 2.0, 2.5]) @ TURN.T), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.2)
)
EQUAL = ph.Problem(ph.Body(TURN @ np.diag([1.0, 2.0, 2.0]) @ TURN.T), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.2))
FIXED = {"method": "strang(dmv6)", "dt": 0.02}
TO_TOL = {"tol": 1e-10}


def varied(problem, change):
    turn = np.array([1.0, *(change[:3] / 2)])
    q = mul(problem.quaternion, tuple(turn / np.linalg.norm(turn)))
    momentum = np.array(problem.momentum) + change[3:]
    return ph.Problem(problem.body, problem.field, attitude=q, momentum=momentum, t0=problem.t0)


def by_differences(problem, run, eps=1e-5):
    """The matrix at the end of a run, by central differences."""
    first, found = run(problem), np.empty((6, 6))

    def at_end(sol):
        turn = np.array(mul(conj(tuple(first.quaternion[-1])), tuple(sol.quaternion[-1])))
        return np.concatenate([2 * np.sign(turn[0]) * turn[1:], sol.momentum[-1]])

    for i, unit in enumerate(np.eye(6)):
        ahead, behind = (at_end(run(varied(problem, sign * eps * unit))) for sign in (1, -1))
        found[:, i] = (ahead - behind) / (2 * eps)
    return found


@pytest.mark.parametrize("how", [FIXED, TO_TOL], ids=["fixed", "tol"])
@pytest.mark.parametrize("problem", [ph.problems.get("heavy_top"), TENSOR], ids=["top", "tensor"])
def test_matrix_is_the_derivative_by_the_initial_state(problem, how):
    sol = ph.solve(problem, **how, t_end=LENGTH, tangent=True)
    expected = by_differences(problem, lambda p: ph.solve(p, **how, t_end=LENGTH))
    assert abs(sol.tangent.matrix[0] - np.eye(6)).max() < 1e-15
    assert abs(sol.tangent.matrix[-1] - expected).max() < 2e-7
    middle = 0.4937
    expected = by_differences(problem, lambda p: ph.solve(p, **how, t_end=LENGTH).at(middle))
    assert abs(sol.at(middle).tangent.matrix[0] - expected).max() < 2e-7


@pytest.mark.parametrize("problem", [TENSOR, EQUAL], ids=["tensor", "equal moments"])
def test_derivatives_by_inertia_and_parameters_are_those_of_gradient(problem):
    sol = ph.solve(problem, **FIXED, t_end=LENGTH, tangent=True)
    expected = ph.gradient(lambda momentum: momentum, problem, **FIXED, t_end=LENGTH)
    tangent = sol.tangent
    assert abs(tangent.matrix[-1, 3:, :3] - expected.attitude).max() < 1e-13
    assert abs(tangent.matrix[-1, 3:, 3:] - expected.momentum).max() < 1e-13
    assert abs(tangent.inertia[-1, 3:] - expected.inertia).max() < 1e-13
    assert abs(tangent.params["mgl"][-1, 3:] - expected.params["mgl"]).max() < 1e-13
    between = sol.at([0.507, 0.513]).tangent
    ends = ph.solve(problem, **FIXED, t_end=0.5, tangent=True).at(0.5).tangent
    assert abs(between.inertia[0] - ends.inertia[0]).max() < 0.02
    assert abs(between.inertia[0] - ends.inertia[0]).max() > 1e-5


def test_kept_states_have_the_matrices_of_all_steps():
    problem, how = ph.problems.get("heavy_top"), {**FIXED, "t_end": LENGTH, "tangent": True}
    every, all_steps = ph.solve(problem, **how, every=7), ph.solve(problem, **how)
    kept = [*range(0, 50, 7), 50]
    assert len(every) == len(kept)
    assert abs(every.tangent.matrix - all_steps.tangent.matrix[kept]).max() < 1e-13
    times = ph.solve(problem, **how, times=[0.0, 0.3, 1.0])
    assert abs(times.tangent.matrix - all_steps.tangent.matrix[[0, 15, 50]]).max() < 1e-13
    with pytest.raises(ph.InputError, match="need every step"):
        _ = every.tangent.at(0.31).matrix


@pytest.mark.parametrize(
    ("method", "symplectic"), [("strang(dmv2)", True), ("strang(rot123)", True), ("mkrk(rk4)", False)]
)
def test_tangent_of_a_symplectic_method_is_symplectic(method, symplectic):
    sol = ph.solve(TENSOR, method, dt=0.1, t_end=10.0, tangent=True)
    assert ph.methods[method].symplectic is symplectic
    assert bool(sol.tangent.symplectic_defect.max() < 1e-12) is symplectic


def test_backwards_is_the_inverse():
    there = ph.solve(TENSOR, tol=1e-11, t_end=LENGTH, tangent=True)
    begin = ph.Problem(TENSOR.body, TENSOR.field, attitude=there.quaternion[-1], momentum=there.momentum[-1], t0=LENGTH)
    back = ph.solve(begin, tol=1e-11, t_end=0.0, tangent=True)
    assert abs(back.tangent.matrix[-1] @ there.tangent.matrix[-1] - np.eye(6)).max() < 1e-9
    assert back.tangent.error < 1e-9


@pytest.mark.parametrize("moments", [(1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.0, 2.0, 3.0)])
def test_free_bodies_have_tangents_even_where_the_exact_formulas_have_none(moments):
    problem = ph.Problem(ph.Body(moments), omega=(0.0, 0.0, 1.3))
    sol = ph.solve(problem, tol=1e-12, t_end=2.0, tangent=True)
    fixed = ph.solve(problem, "verner87", dt=0.05, t_end=2.0, tangent=True)
    assert abs(sol.tangent.matrix[-1] - fixed.tangent.matrix[-1]).max() < 1e-12
    assert abs(sol.tangent.inertia[-1] - fixed.tangent.inertia[-1]).max() < 1e-12


def test_no_step_with_tangents_crosses_a_jump():
    @ph.torque
    def pulse(t, size):
        return (ph.where(t < 0.37, size, 0.0), 0.0, 0.0)

    problem = ph.Problem(ph.Body((1.0, 2.0, 3.0)), pulse(0.8), omega=(0.1, 0.5, 0.2))
    sol = ph.solve(problem, tol=1e-11, t_end=LENGTH, tangent=True)
    half = (
        ph.solve(ph.Problem(problem.body, pulse(x), omega=problem.omega), tol=1e-12, t_end=LENGTH)
        for x in (0.801, 0.799)
    )
    ahead, behind = (one.momentum[-1] for one in half)
    assert abs(sol.tangent.params["size"][-1, 3:] - (ahead - behind) / 0.002).max() < 1e-7


def test_covariance_is_that_of_many_starts():
    problem, sigma = ph.problems.get("heavy_top"), np.array([1e-3, 2e-3, 1e-3, 1e-3, 2e-3, 3e-3])
    sol = ph.solve(problem, tol=1e-9, t_end=LENGTH, tangent=True)
    cov = sol.tangent.covariance(sigma, params={"mgl": 0.01})
    A, slope = sol.tangent.matrix[-1], sol.tangent.params["mgl"][-1]
    assert np.allclose(cov.matrix[-1], A @ np.diag(sigma**2) @ A.T + 1e-4 * np.outer(slope, slope), rtol=1e-12)
    axes, directions = cov.attitude
    shape = directions[-1] @ np.diag(axes[-1] ** 2) @ directions[-1].T
    assert np.allclose(shape, cov.matrix[-1, :3, :3], rtol=1e-10, atol=1e-18)
    assert (np.diff(axes, axis=1) <= 0).all()
    assert np.allclose(cov.sigma[0], sigma)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "abm4", "dt": 0.1}, "needs steps from state to state"),
        ({"method": "imidm", "dt": 0.1, "digits": 30}, "leave out `digits`"),
        ({"tol": 1e-6, "out": "x.nc"}, "leave out `out`"),
        ({"tol": 1e-6, "tangent": 3}, "tangent"),
    ],
)
def test_what_has_no_tangent_is_refused(given, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        ph.solve(ph.problems.get("heavy_top"), t_end=1.0, **{"tangent": True} | given)


def test_conditions_on_the_state_are_refused_where_they_are_not_located():
    @ph.torque
    def relay(omega, k):
        return (ph.where(omega[0] > 0.2, -k, 0.0), 0.1, 0.0)

    @ph.torque
    def equal(omega, k):
        return (ph.where(omega[0] == 0.2, -k, 0.0), 0.1, 0.0)

    body = ph.Body([1.0, 2.0, 3.0])
    problem, other = (ph.Problem(body, field(0.3), omega=(0.5, 0.1, 0.2)) for field in (relay, equal))
    linear = ph.Problem(ph.Body([0.0, 1.0, 1.0]), omega=(0.0, 1.0, 0.0))
    data = ph.measurements.rates([0.0, 1.0], np.zeros((2, 3)), sigma=1.0)
    for call in (
        lambda: ph.solve(problem, "abm4", dt=0.1, t_end=1.0, tangent=True),
        lambda: ph.chaos(other, t_end=1.0),
        lambda: ph.solve(other, tol=1e-8, t_end=1.0, tangent=True),
        lambda: ph.lyapunov(other, step_tol=1e-8, t_end=1.0),
        lambda: ph.fit(other, data, ["omega"]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ph.ResultWarning)  # that steps cross the jumps, where a run comes first
            with pytest.raises(ph.InputError, match="smooth in the state"):
                call()
    for call in (lambda: ph.chaos(linear, t_end=1.0), lambda: ph.fit(linear, data, ["omega"])):
        with pytest.raises(ph.InputError, match="linear body"):
            call()


@pytest.mark.parametrize(
    ("P", "sentence"),
    [
        (np.eye(5), "covariance"),
        ([1, 1, 1, 1, 1, -1], "not negative"),
        (np.diag([1, 1, 1, 1, 1, -1.0]), "negative eigenvalues"),
        (np.full((6, 6), np.nan), "finite"),
        (np.triu(np.ones((6, 6))), "symmetric"),
        ("all", "covariance"),
    ],
)
def test_what_is_no_covariance_is_refused(P, sentence):
    sol = ph.solve(ph.problems.get("heavy_top"), **FIXED, t_end=0.1, tangent=True)
    with pytest.raises(ph.InputError, match=sentence):
        sol.tangent.covariance(P)
