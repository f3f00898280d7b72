"""Tangents across jumps in the state: the saltation matrix, against closed forms and differences of located runs."""

import numpy as np
import pytest
from tests.run.test_tangent import by_differences

import polhode as ph

TENSOR = ph.Body([[1.0, 0.1, 0.2], [0.1, 2.0, 0.0], [0.2, 0.0, 2.4]])
MOMENTS = ph.Body([1.0, 2.0, 2.5])
EQUAL = ph.Body([[1.5, 0.5, 0.0], [0.5, 1.5, 0.0], [0.0, 0.0, 2.0]])
OMEGA = (0.3, 1.9, 1.4)
START = ("ZXZ", [0.3, 0.4, 0.5])
VALUES = {"k": 0.3, "width": 0.25, "push": 0.2}


@ph.torque
def brakes(omega, strong, weak, level):
    """A strong brake above a level of omega_1, and a weak one below."""
    return ph.where(omega[0] > level, -strong, -weak), 0.0, 0.0


@ph.torque
def relays(t, R, omega, k, width, push):
    """Jumps on omega, attitude and a surface that moves, one inside another; a jump in time and a kink."""
    w = omega[0]
    burst = ph.where(abs(w) > width, ph.where(w > 0, 1.0, -1.0), 0.0)
    far = ph.where((R[0, 0] > width) | (R[0, 0] < -0.2), 1.0, -1.0)
    moving = 0.05 * ph.where(R[2, 1] > 0.1 - 0.1 * t, 1.0, -0.4)
    return 0.1 * k * burst, push * far * ph.where(t < 2.0, 1.0, 0.3), moving + 0.1 * abs(R[1, 2])


def relayed(body=MOMENTS, momentum=None, **values):
    momentum = np.asarray(body.inertia) @ OMEGA if momentum is None else momentum
    return ph.Problem(body, relays(**VALUES | values), momentum=momentum, euler=START)


def differences(run, eps=2e-6):
    """The central difference of fourth order of the momentum at the end of `run(change)`."""
    a, b, c, d = (run(x * eps).momentum[-1] for x in (-2, -1, 1, 2))
    return (a - 8 * b + 8 * c - d) / (12 * eps)


def test_two_brakes_in_closed_form():
    """Omega falls at two rates: w(T) = level - weak/I (T - t*), with t* = I (w - level)/strong."""
    strong, weak, level, inertia, start, end = 0.3, 0.1, 0.2, 2.0, 0.5, 4.0
    problem = ph.Problem(ph.Body([inertia] * 3), brakes(strong, weak, level), omega=(start, 0.0, 0.0))
    sol = ph.solve(problem, tol=1e-12, t_end=end, tangent=True)
    at = inertia * (start - level) / strong
    assert sol.momentum[-1, 0] == pytest.approx(inertia * level - weak * (end - at), abs=1e-12)
    tangent = sol.tangent
    before, after = sol.t < at - 1e-9, sol.t > at - 1e-9
    assert np.allclose(tangent.matrix[before, 3, 3], 1.0, atol=1e-12)
    assert np.allclose(tangent.matrix[after, 3, 3], weak / strong, atol=1e-12)
    assert np.allclose(tangent.matrix[-1, 4:, 4:], np.eye(2), atol=1e-12)
    both = sol.at([at - 1e-3, at + 1e-3]).tangent
    assert np.allclose(both.matrix[:, 3, 3], [1.0, weak / strong], atol=1e-12)
    assert np.allclose(both.params["level"][:, 3], [0.0, inertia * (1 - weak / strong)], atol=1e-12)
    assert tangent.params["strong"][-1, 3] == pytest.approx(-weak * inertia * (start - level) / strong**2, abs=1e-12)
    assert tangent.params["weak"][-1, 3] == pytest.approx(at - end, abs=1e-12)
    # at a fixed momentum I w: I level - weak (T - (I w - I level)/strong)
    assert tangent.inertia[-1, 3, 0] == pytest.approx(level - weak * level / strong, abs=1e-12)
    sigma = tangent.covariance([0.0] * 3 + [1e-3] * 3, params={"level": 1e-2}).sigma[-1, 3]
    assert sigma == pytest.approx(np.hypot(1e-3 * weak / strong, 1e-2 * inertia * (1 - weak / strong)), rel=1e-9)


@pytest.mark.parametrize("body", [MOMENTS, TENSOR], ids=["moments", "tensor"])
@pytest.mark.parametrize("end", [3.5, -3.0])
def test_derivatives_by_everything_against_differences(body, end):
    problem, how = relayed(body), {"tol": 1e-13, "t_end": end}
    sol = ph.solve(problem, **how, tangent=True)
    tangent = sol.tangent
    assert len(tangent._switching.crossings.spans) >= 5
    expected = by_differences(problem, lambda p: ph.solve(p, **how), 1e-6)
    assert abs(tangent.matrix[-1] - expected).max() < 1e-7 * abs(expected).max()
    between = 0.61 * end
    expected = by_differences(problem, lambda p: ph.solve(p, **how).at(between), 1e-6)
    assert abs(sol.at(between).tangent.matrix[0] - expected).max() < 1e-7 * abs(expected).max()
    for name, value in VALUES.items():
        expected = differences(lambda x, name=name, value=value: ph.solve(relayed(body, **{name: value + x}), **how))
        assert abs(tangent.params[name][-1, 3:] - expected).max() < 1e-7 * abs(expected).max()


@pytest.mark.parametrize("body", [MOMENTS, TENSOR], ids=["moments", "tensor"])
def test_derivatives_by_the_inertia_against_differences(body):
    problem, how = relayed(body), {"tol": 1e-13, "t_end": 3.5}
    found = ph.solve(problem, **how, tangent=True).tangent.inertia[-1, 3:]
    for i, j in ((0, 0), (1, 1), (0, 2)):
        change = np.zeros((3, 3))
        change[i, j] = change[j, i] = 1.0
        if i != j and body is MOMENTS:
            continue

        def run(x, change=change):
            tensor = np.asarray(body.inertia) + x * change
            varied = ph.Body(tensor if body is TENSOR else np.diag(tensor))
            return ph.solve(relayed(varied, problem.momentum), **how)

        expected = differences(run)
        slope = (found * change).sum((1, 2)) if body is TENSOR else found[:, i]
        assert abs(slope - expected).max() < 1e-7 * abs(expected).max()


def test_kept_states_have_the_tangents_of_all_steps():
    how = {"step_tol": 1e-10, "t_end": 3.5, "tangent": True}
    whole = ph.solve(relayed(), **how)
    times = ph.solve(relayed(), **how, times=whole.t[::3])
    assert abs(times.tangent.matrix - whole.tangent.matrix[::3]).max() < 1e-12
    assert whole.tangent.error < 1e-8


def test_lyapunov_exponents_have_the_jumps():
    """The sum of the exponents is the logarithm of the determinant of the matrix over time."""
    problem, how = relayed(), {"step_tol": 1e-10, "t_end": 3.5}
    exponents = ph.lyapunov(problem, **how).exponents
    determinant = np.linalg.det(ph.solve(problem, **how, tangent=True).tangent.matrix[-1])
    assert exponents.sum() == pytest.approx(np.log(abs(determinant)) / 3.5, abs=1e-9)
    assert abs(exponents.sum()) > 1e-3  # only the jumps change the volume


def test_fit_finds_the_level_of_a_relay():
    truth = ph.Problem(ph.Body([2.0, 2.0, 2.0]), brakes(0.3, 0.1, 0.2), omega=(0.5, 0.1, 0.0))
    times = np.linspace(0.0, 6.0, 25)
    data = ph.measurements.rates(times, ph.solve(truth, tol=1e-11, times=times).omega, sigma=1e-4)
    guess = ph.Problem(truth.body, brakes(0.3, 0.1, 0.25), omega=(0.48, 0.1, 0.0))
    found = ph.fit(guess, data, ["omega", "level"])
    assert found.values["level"] == pytest.approx(0.2, abs=1e-7)


@pytest.mark.parametrize("body", [MOMENTS, TENSOR, EQUAL], ids=["moments", "tensor", "equal moments"])
def test_gradients_have_the_jumps(body):
    """`ph.gradient` of a located run is the tangent of its end, for all that may vary."""
    problem, how = relayed(body), {"method": "verner87", "dt": 0.05, "steps": 70}
    found = ph.gradient(lambda momentum: momentum, problem, **how)
    sol = ph.solve(problem, **how, tangent=True)
    assert abs(found.value - sol.momentum[-1]).max() < 1e-14
    assert abs(found.attitude - sol.tangent.matrix[-1, 3:, :3]).max() < 1e-13
    assert abs(found.momentum - sol.tangent.matrix[-1, 3:, 3:]).max() < 1e-13
    assert abs(found.inertia - sol.tangent.inertia[-1, 3:]).max() < 1e-12
    assert abs(found.params["width"] - sol.tangent.params["width"][-1, 3:]).max() < 1e-13


def test_a_grazing_motion_is_refused():
    """Omega_1 of a sphere turns back at a level; the jump depends on whether it is reached."""

    @ph.torque
    def bounce(t, omega, level, kick):
        return 1.0 - t + ph.where(omega[0] > level, kick, 0.0), 0.0, 0.0

    problem = ph.Problem(ph.Body([1.0, 1.0, 1.0]), bounce(0.5 - 1e-14, 0.1), omega=(0.0, 0.0, 0.0))
    sol = ph.solve(problem, step_tol=1e-12, t_end=1.5, max_step=0.01, tangent=True)
    with pytest.raises(ph.StepError, match="grazes the surface of a jump of bounce at t = 1"):
        _ = sol.tangent.matrix


def test_a_start_on_the_surface_is_refused():
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), brakes(0.3, 0.1, 0.5), omega=(0.5, 0.1, 0.2))
    sol = ph.solve(problem, tol=1e-9, t_end=1.0, tangent=True)
    with pytest.raises(ph.StepError, match="start lies on the surface of a jump of brakes"):
        _ = sol.tangent.matrix


def test_two_surfaces_at_once_are_refused():
    @ph.torque
    def corner(omega):
        return ph.where(omega[0] > 0.2, -0.3, -0.1), ph.where(omega[1] > 0.2, -0.3, -0.1), 0.0

    problem = ph.Problem(ph.Body([1.0, 1.0, 1.0]), corner(), omega=(0.5, 0.5, 0.0))
    sol = ph.solve(problem, tol=1e-9, t_end=2.0, tangent=True)
    with pytest.raises(ph.StepError, match="two jumps of corner at once"):
        _ = sol.tangent.matrix
