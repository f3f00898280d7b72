"""Bodies with varying inertia: closed forms, independent integration, balances of momentum and energy, refusals."""

import math
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode import InputError

OMEGA, T_END = (0.3, 0.5, 1.0), 10.0


def unfolding(t):
    """Arms that unfold about t = 5, in axes that are not the principal ones."""
    s = 1 / (1 + math.exp(5 - t))
    return (2 + 3 * s, 0.1 * s, 0.0), (0.1 * s, 3 + s, 0.2), (0.0, 0.2, 4 - s)


def sphere(t):
    inertia = 2 + 0.5 * math.sin(t)
    return inertia, inertia, inertia


def shrinking(t):
    return 2 - 0.1 * t, 2 - 0.1 * t, 2 - 0.1 * t


def independent(tensor, torque=lambda t, R, w: np.zeros(3), start=OMEGA):
    """Attitude matrix and spatial momentum L at the end, from R' = R hat(I^-1 R^T L), L' = R T."""

    def rates(t, y):
        R, L = y[:9].reshape(3, 3), y[9:]
        w = np.linalg.solve(np.array(tensor(t)), R.T @ L)
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return np.concatenate([(R @ hat).ravel(), R @ torque(t, R, w)])

    first = np.concatenate([np.eye(3).ravel(), np.array(tensor(0.0)) @ start])
    end = solve_ivp(rates, (0, T_END), first, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return end[:9].reshape(3, 3), end[9:]


@pytest.fixture(scope="module")
def unfolded():
    return ph.solve(ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA), t_end=T_END, tol=1e-11)


def test_against_an_independent_integration(unfolded):
    R, L = independent(unfolding)
    assert np.abs(unfolded.matrix[-1] - R).max() < 1e-10
    assert np.abs(unfolded.spatial_momentum[-1] - L).max() < 1e-10


def test_spatial_momentum_is_constant_and_energy_changes(unfolded):
    change = np.linalg.norm(unfolded.spatial_momentum - unfolded.spatial_momentum[0], axis=1)
    assert change.max() < 1e-11
    assert unfolded.energy[-1] - unfolded.energy[0] > 0.5
    work = unfolded.states["work"]
    assert np.abs(unfolded.energy - unfolded.energy[0] - work).max() < 1e-11


def test_quantities_of_the_result(unfolded):
    """Momentum and energy have the tensor of their moment; dense output, pickles and thinned states keep it."""
    tensors = np.array([unfolding(t) for t in unfolded.t])
    assert np.abs(unfolded.inertia - tensors).max() < 1e-14
    assert np.abs(np.einsum("nij,nj->ni", tensors, unfolded.omega) - unfolded.momentum).max() < 1e-14
    for other in (unfolded.at([1.0, 5.5]), pickle.loads(pickle.dumps(unfolded)), unfolded.last()):
        assert other.inertia.shape == (len(other), 3, 3)
        assert np.abs(other.spatial_momentum - unfolded.spatial_momentum[0]).max() < 1e-11
        assert np.abs(other.energy - (other.omega * other.momentum).sum(axis=1) / 2).max() < 1e-14


def test_a_sphere_turns_with_the_inverse_inertia():
    """Omega = L/I(t)."""
    sol = ph.solve(ph.Problem(ph.VaryingBody(sphere), omega=OMEGA), t_end=T_END, tol=1e-11)
    exact = 2 * np.array(OMEGA) / np.array([sphere(t)[0] for t in sol.t])[:, None]
    assert np.abs(sol.omega - exact).max() < 1e-11


def test_spin_about_an_axis():
    """Omega_3 = L/I_3(t) and the angle L int dt/I_3; I_3 = 1 + t/5."""
    body = ph.VaryingBody(lambda t: (3.0, 3.5, 1 + t / 5))
    sol = ph.solve(ph.Problem(body, omega=[0, 0, 2.0]), t_end=T_END, tol=1e-11)
    assert np.abs(sol.omega[:, 2] - 2 / (1 + sol.t / 5)).max() < 1e-11
    expected = Rotation.from_rotvec([0, 0, 10 * math.log(1 + T_END / 5)])
    assert (sol.rotation[-1] * expected.inv()).magnitude() < 1e-10


@pytest.mark.parametrize(("rate", "power"), [(0.0, -1.0), (0.1, 0.0), (0.3, 2.0)])
def test_momentum_that_leaves(rate, power):
    """I' = -0.1 and J = c omega: omega = omega_0 (I/I_0)^((c - 0.1)/0.1)."""
    body = ph.VaryingBody(shrinking, leaving=lambda omega: tuple(rate * x for x in omega))
    sol = ph.solve(ph.Problem(body, omega=OMEGA), t_end=T_END, tol=1e-11)
    exact = np.array(OMEGA) * ((2 - 0.1 * sol.t) / 2)[:, None] ** power
    assert np.abs(sol.omega - exact).max() < 1e-11
    assert np.abs(sol.energy - sol.energy[0] - sol.states["work"]).max() < 1e-11


def test_matter_that_leaves_with_the_velocity_of_its_place():
    """It leaves the velocity of the rest unchanged: Euler's equations with I(t) and without I'."""
    sol = ph.solve(ph.Problem(ph.VaryingBody(shrinking, leaving="carried"), omega=OMEGA), t_end=T_END, tol=1e-11)
    assert np.abs(sol.omega - OMEGA).max() < 1e-12


def test_with_torques():
    """A torque in space and a drag, against the independent integration."""

    def drag(t, R, w):
        return -0.2 * w + R.T @ [0.0, 0.3 * math.sin(t), 0.1]

    @ph.torque(frame="space")
    def push(t):
        return 0.0, 0.3 * math.sin(t), 0.1

    field = ph.fields.linear_drag(0.2) + push()
    sol = ph.solve(ph.Problem(ph.VaryingBody(unfolding), field, omega=OMEGA), t_end=T_END, tol=1e-11)
    R, L = independent(unfolding, drag)
    assert np.abs(sol.matrix[-1] - R).max() < 1e-10
    assert np.abs(sol.spatial_momentum[-1] - L).max() < 1e-10


def test_the_energy_has_the_potential():
    """With no change of inertia it is constant, and the motion is that of the constant body."""
    field = ph.fields.gravity(mgl=0.7)
    sol = ph.solve(ph.Problem(ph.VaryingBody(lambda t: (1.0, 2.0, 2.5)), field, omega=OMEGA), t_end=5.0, tol=1e-11)
    plain = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 2.5]), field, omega=OMEGA), t_end=5.0, tol=1e-11)
    assert np.abs(sol.energy - plain.energy[0]).max() < 1e-11
    assert np.abs(sol.quaternion[-1] - plain.quaternion[-1]).max() < 1e-10


@pytest.mark.parametrize("count", [9, 101])
def test_tables(count):
    """A table is its spline; the inertia is constant after its end."""
    times = np.linspace(0, 8, count)
    tensors = np.array([unfolding(t) for t in times])
    spline = CubicSpline(times, tensors)
    sol = ph.solve(ph.Problem(ph.VaryingBody(tensors, times=times), omega=OMEGA), t_end=T_END, tol=1e-10)
    R, L = independent(lambda t: spline(min(t, 8.0)))
    assert np.abs(sol.matrix[-1] - R).max() < 1e-8  # the independent integration crosses the end of the table
    assert np.abs(sol.spatial_momentum[-1] - L).max() < 1e-9
    assert np.abs(sol.inertia[-1] - tensors[-1]).max() < 1e-14


def test_linear_tables_and_moments():
    body = ph.VaryingBody([[3.0, 3.5, 1.0], [3.0, 3.5, 2.0], [3.0, 3.5, 1.5]], times=[0, 5, 10], between="linear")
    sol = ph.solve(ph.Problem(body, omega=[0, 0, 2.0]), t_end=T_END, tol=1e-11)
    angle = 2 * (5 * math.log(2) + 10 * math.log(2 / 1.5))
    assert (sol.rotation[-1] * Rotation.from_rotvec([0, 0, angle]).inv()).magnitude() < 1e-10


def test_fixed_steps_and_their_dense_output(unfolded):
    sol = ph.solve(ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA), "verner87", dt=0.05, t_end=T_END)
    assert np.abs(sol.quaternion[-1] - unfolded.quaternion[-1]).max() < 1e-10
    between = sol.at([3.33, 7.77])
    assert np.abs(between.spatial_momentum - sol.spatial_momentum[0]).max() < 1e-11


def test_backwards(unfolded):
    problem = ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA)
    last = {"attitude": unfolded.quaternion[-1], "momentum": unfolded.momentum[-1], "t0": T_END}
    sol = ph.solve(problem.starting(**last), t_end=0.0, tol=1e-11)
    assert np.abs(sol.omega[-1] - OMEGA).max() < 1e-10


def test_ensembles(unfolded):
    problem = ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA)
    starts = np.array([OMEGA, (1.0, 0.0, 0.2), (0.1, -0.4, 1.0)])
    for how in ({"tol": 1e-10, "times": [0.0, 2.0, 5.0, T_END]}, {"method": "verner87", "dt": 0.05, "every": 20}):
        many = ph.ensemble(problem, omega=starts, t_end=T_END, **how)
        assert np.abs(many.omega[0] - starts).max() < 1e-14
        assert np.abs(many.omega[-1, 0] - unfolded.omega[-1]).max() < 1e-9
        assert np.abs(many.spatial_momentum - many.spatial_momentum[0]).max() < 1e-9
        assert np.abs(many.energy[-1, 0] - unfolded.energy[-1]) < 1e-9
        assert np.abs(many[1].omega - many.omega[:, 1]).max() < 1e-14


def test_the_body_and_field_of_a_problem_start_at_another_time(unfolded):
    """The momentum is then that of the inertia at that time, however the problem is made."""
    half = unfolded.at([T_END / 2])
    q, m, first = half.quaternion[0], half.momentum[0], unfolded.problem
    for problem in (
        ph.Problem(first.body, first.field, attitude=q, momentum=m, t0=T_END / 2),
        ph.Problem(ph.VaryingBody(unfolding), attitude=q, momentum=m, t0=T_END / 2),
        first.starting(attitude=q, momentum=m, t0=T_END / 2),
    ):
        np.testing.assert_allclose(problem.omega, half.omega[0], rtol=1e-14)
        end = ph.solve(problem, tol=1e-10, t_end=T_END)
        np.testing.assert_allclose(end.momentum[-1], unfolded.momentum[-1], rtol=1e-8)


def test_events_see_the_velocity(unfolded):
    slow = ph.event(lambda omega: omega[0] - 0.2)
    problem = ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA)
    found = ph.solve(problem, t_end=T_END, tol=1e-11, events=[slow]).events[0]
    assert len(found) > 0
    assert np.abs(found.omega[:, 0] - 0.2).max() < 1e-11
    assert np.abs(found.spatial_momentum - unfolded.spatial_momentum[0]).max() < 1e-11


def test_problems_are_pickled(unfolded):
    problem = pickle.loads(pickle.dumps(ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA)))
    sol = ph.solve(problem, t_end=T_END, tol=1e-11)
    assert np.abs(sol.quaternion[-1] - unfolded.quaternion[-1]).max() < 1e-14


def test_what_is_not_available():
    problem = ph.Problem(ph.VaryingBody(unfolding), omega=OMEGA)
    with pytest.raises(InputError, match=r"only ph\.solve and ph\.ensemble"):
        ph.solve(problem, "dmv10", dt=0.1, t_end=1.0)
    with pytest.raises(InputError, match="is not added to others"):
        ph.fields.linear_drag(0.1) + problem.field
    with pytest.raises(InputError, match="acts on that body only"):
        ph.Problem(ph.Body([1.0, 2.0, 2.5]), problem.field, omega=OMEGA)
    with pytest.raises(InputError, match="files do not hold"):
        ph.solve(problem, t_end=1.0, tol=1e-8).save("never.zarr")


def test_bodies_that_differ_at_the_start():
    def grows(t, first=2.0):
        return first + t, first + t, first + t

    problem = ph.Problem(ph.VaryingBody(grows), omega=OMEGA)
    with pytest.raises(InputError, match="must have the inertia of the problem at t0 = 0"):
        ph.ensemble(problem, params={"first": [2.0, 2.5]}, t_end=1.0, tol=1e-8)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([1.0, 2.0, 3.0],), "for a constant one use ph.Body"),
        ((lambda t, R: (1, 1, 1),), "a function of t"),
        ((lambda t, size: (size, size, size),), "must have defaults"),
    ],
)
def test_wrong_inertia(given, said):
    with pytest.raises(InputError, match=said):
        ph.VaryingBody(*given)


@pytest.mark.parametrize(
    ("inertia", "said"),
    [
        (lambda t: (1.0, 2.0), "must return a tensor"),
        (lambda t: (1.0, 1.0, math.inf), "must return a tensor"),
        (lambda t: (1.0, 1.0, -1.0), "returned no inertia tensor at t = 0"),
        (lambda t: 1 / t, "raised ZeroDivisionError"),
    ],
)
def test_wrong_values(inertia, said):
    with pytest.raises(InputError, match=said):
        ph.Problem(ph.VaryingBody(inertia), omega=OMEGA)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inertia": np.ones((2, 4))}, r"got shape \(2, 4\)"),
        ({"inertia": [[1.0, 1.0, 3.0], [1.0, 1.0, 1.0]]}, "tensor 0 of the table is not that of a body"),
        ({"inertia": [np.eye(3), [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]]}, "tensor 1 of the table is not"),
        ({"times": [1.0, 0.0]}, "times must increase"),
        ({"between": "square"}, "between must be"),
        ({"leaving": "slowly"}, "leaving must be None"),
        ({"leaving": lambda R: (0, 0, 0)}, "a function of t and omega"),
    ],
)
def test_wrong_tables(given, said):
    given = {"inertia": [[1.0, 1.0, 1.0], [1.0, 1.5, 1.5]], "times": [0.0, 1.0]} | given
    with pytest.raises(InputError, match=said):
        ph.VaryingBody(given.pop("inertia"), **given)
