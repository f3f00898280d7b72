"""Estimation of initial states, inertia and parameters from measurements."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import polhode as ph
from polhode.run.fit.arcs import Model
from polhode.run.fit.parameters import free_numbers
from polhode.run.fit.starts import guesses, ranked

M = ph.measurements
T = np.linspace(0.0, 5.0, 41)
RNG = np.random.default_rng(3)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN *= np.sign(np.linalg.det(TURN))
TOP = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.8))
TURNED = ph.Problem(ph.Body((TURN * [1.0, 2.0, 2.5]) @ TURN.T), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.8))
FREE_BODY = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=(0.3, 1.0, 0.8))


def motion(problem, t=T):
    return ph.solve(problem, step_tol=1e-12, times=t)


def turned(quaternion, sigma, rng):
    """Attitudes with small random rotations in body axes."""
    half = rng.normal(0, sigma, (len(quaternion), 3)) / 2
    w, x, y, z = quaternion.T
    a, b, c, d = np.ones(len(half)), *half.T
    q = np.stack(
        [w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b,
         w * d + x * c - y * b + z * a], 1,
    )  # fmt: skip
    return q / np.linalg.norm(q, axis=1)[:, None]


def brightness(R, omega, momentum):
    return (R[2, 2] * omega[0] + momentum[1], ph.math.exp(R[0, 1]))


@pytest.mark.parametrize("problem", [TURNED, TOP], ids=["tensor", "moments"])
def test_derivatives_of_all_residuals_are_exact(problem):
    sol = motion(problem, T[::4])
    star = np.array([0.0, 0.6, 0.8])
    seen = np.stack([sol.matrix[:, 2, 2] * sol.omega[:, 0] + sol.momentum[:, 1], np.exp(sol.matrix[:, 0, 1])], 1)
    data = [
        M.attitudes(sol.t, sol.quaternion, sigma=1e-3),
        M.rates(sol.t, sol.omega, sigma=1e-3, bias=True),
        M.directions(sol.t, np.einsum("nji,j->ni", sol.matrix, star), star, sigma=1e-3),
        M.values(sol.t, brightness, seen, sigma=[0.1, 0.2]),
    ]
    names = ["attitude", "omega", "inertia", "mgl"] + ["axes"] * (problem is TURNED)
    free = free_numbers(problem, names, data)
    middle = motion(problem, [0.0, 2.3])
    guess = np.concatenate([middle.quaternion[1], middle.momentum[1]])[None]
    model = Model(free, data, 1e-11, (0.0, 2.3), guess)
    value, _ = model.residuals(model.start)
    assert abs(value).max() < 2e-5  # gaps of 1e-11 over their deviation of 1e-5
    x = model.start + 0.03 * np.random.default_rng(0).normal(size=model.size)
    _, slope = model.residuals(x)
    eps = 1e-5
    for i, unit in enumerate(np.eye(model.size)):
        ahead, behind = (model.residuals(x + s * eps * unit)[0] for s in (1, -1))
        assert abs((ahead - behind) / (2 * eps) - slope[:, i]).max() < 1e-7 * abs(slope[:, i]).max()


def noisy(problem, seed):
    """Star tracker and gyro data with noise, bias and a gap."""
    rng, sol = np.random.default_rng(seed), motion(problem)
    kept = (T < 1.5) | (T > 2.5)
    omega = sol.omega + np.array([0.01, -0.02, 0.005]) + rng.normal(0, 1e-3, sol.omega.shape)
    return [
        M.attitudes(T[kept], turned(sol.quaternion, 1e-3, rng)[kept], sigma=1e-3),
        M.rates(T, omega, sigma=1e-3, bias=True),
    ]


@pytest.mark.parametrize("arcs", [1, 3])
def test_known_numbers_are_recovered(arcs):
    guess = ph.Problem(ph.Body([1.2, 1.8, 2.6]), TOP.field, omega=(0.35, 0.9, 0.75))
    found = ph.fit(guess, noisy(TOP, 1), ["attitude", "omega", "inertia"], arcs=arcs)
    assert found.success
    assert not found.undetermined
    truth = {"omega": TOP.omega, "inertia": TOP.body.moments, "bias 1": [0.01, -0.02, 0.005], "attitude": np.zeros(3)}
    for name, value in truth.items():
        assert (abs(found.values[name] - value) < 4 * found.sigma[name]).all(), name
        assert (found.sigma[name] < 0.1).all()
    assert found.chi2 / found.dof == pytest.approx(1.0, abs=0.3)
    assert np.allclose(found.problem.body.moments, found.values["inertia"])
    assert abs(np.diagonal(found.correlation) - 1).max() < 1e-12
    assert [part.shape for part in found.residuals] == [(len(found.data[0].t), 3), (41, 3)]
    assert "inertia[2]" in str(found)
    fig, ax = found.plot()
    assert len(ax.lines) == 6
    plt.close(fig)


def test_a_poor_guess_needs_arcs():
    t = np.linspace(0.0, 40.0, 161)
    sol, rng = motion(TOP, t), np.random.default_rng(2)
    data = [M.attitudes(t, turned(sol.quaternion, 1e-3, rng), sigma=1e-3)]
    guess = ph.Problem(ph.Body([1.2, 1.8, 2.6]), TOP.field, omega=(0.6, 0.7, 1.1))
    with pytest.warns(ph.ResultWarning, match="standard deviations on average"):
        one = ph.fit(guess, data, ["attitude", "omega", "inertia"])
    several = ph.fit(guess, data, ["attitude", "omega", "inertia"], arcs=8)
    assert several.chi2 / several.dof < 1.2
    assert one.chi2 / one.dof > 10
    assert (abs(several.values["inertia"] - TOP.body.moments) < 4 * several.sigma["inertia"]).all()


def test_torque_free_data_determine_ratios_of_moments_only():
    sol = motion(FREE_BODY)
    data = M.rates(T, sol.omega + np.random.default_rng(0).normal(0, 1e-3, sol.omega.shape), sigma=1e-3)
    found = ph.fit(FREE_BODY, data, ["attitude", "omega", "inertia"])
    assert found.undetermined[0] == "the data do not determine attitude[0], attitude[1], attitude[2]"
    assert "ratios of the moments only" in found.undetermined[1]
    assert np.isinf(found.sigma["inertia"]).all()
    assert (found.sigma["omega"] < 1e-2).all()
    ratios = found.values["inertia"] / found.values["inertia"][2]
    assert np.allclose(ratios, [0.4, 0.8, 1.0], atol=0.02)
    again = ph.fit(FREE_BODY, data, ["omega", "inertia"], priors={"inertia": ([1.0, 2.0, 2.5], [1.0, 1.0, 0.01])})
    assert np.isfinite(again.sigma["inertia"]).all()


def test_a_prior_counts_by_its_deviation():
    t = np.array([0.0, 0.1])
    data = M.attitudes(t, motion(TOP, t).quaternion, sigma=10.0)
    found = ph.fit(TOP, data, ["omega"], priors={"omega": ([0.4, 1.1, 0.9], 0.01)})
    assert np.allclose(found.values["omega"], [0.4, 1.1, 0.9], atol=1e-4)
    assert np.allclose(found.sigma["omega"], 0.01, rtol=1e-3)


def test_a_robust_loss_ignores_wrong_measurements():
    sol, rng = motion(TOP), np.random.default_rng(4)
    omega = sol.omega + rng.normal(0, 1e-3, sol.omega.shape)
    omega[::8] += 0.5
    data = M.rates(T, omega, sigma=1e-3)
    with pytest.warns(ph.ResultWarning, match="standard deviations on average"):
        plain = ph.fit(TOP, data, ["omega"])
    robust = ph.fit(TOP, data, ["omega"], loss="cauchy")
    error = [abs(one.values["omega"] - TOP.omega).max() for one in (plain, robust)]
    assert error[0] > 0.02
    assert error[1] < 2e-3


def test_parameters_and_axes_are_found():
    guess = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.gravity(mgl=1.2), omega=(0.31, 0.98, 0.8))
    small = 0.05
    R = np.array([[1, -small, 0], [small, 1, 0], [0, 0, 1]]) / np.sqrt([1 + small**2, 1 + small**2, 1])
    truth = ph.Problem(ph.Body((R * [1.0, 2.0, 2.5]) @ R.T), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.8))
    found = ph.fit(guess, noisy(truth, 6), ["attitude", "omega", "axes", "mgl"])
    assert found.values["mgl"] == pytest.approx(1.5, abs=4 * found.sigma["mgl"])
    assert found.values["axes"][2] == pytest.approx(np.arctan(small), abs=4 * found.sigma["axes"][2] + 1e-4)
    assert np.allclose(found.problem.body.inertia, truth.body.inertia, atol=0.02)


def test_the_centre_of_mass_is_found():
    """The parameter `arm` of uniform gravity, on an air bearing, with the weight known."""
    body = ph.Body(
        [[1.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 2.5]], mass=3.0, centre=[0.02, -0.03, -0.05], pivot=[0, 0, 0]
    )
    truth = ph.Problem(body, ph.fields.uniform_gravity(body), omega=(0.3, 1.0, 0.8))
    guess = ph.Problem(body, truth.field.bind(arm=[0.0, 0.0, -0.03]), omega=(0.3, 1.0, 0.8))
    found = ph.fit(guess, noisy(truth, 8), ["attitude", "omega", "arm"])
    assert (abs(found.values["arm"] - [0.02, -0.03, -0.05]) < 4 * found.sigma["arm"]).all()
    assert (found.sigma["arm"] < 1e-3).all()
    both = ph.fit(guess, noisy(truth, 8), ["omega", "inertia", "arm"])  # the torque is the arm times the weight
    assert "arm" in both.undetermined[0]
    assert np.isinf(both.sigma["arm"]).all()


LIGHT = ph.Problem(TOP.body, TOP.field, attitude=(0.1, 0.7, 0.7, -0.1), omega=(0.3, 1.0, 0.8))
Q_NEAR = np.array([0.14, 0.7, 0.66, -0.1]) / np.linalg.norm([0.14, 0.7, 0.66, -0.1])
FAR = ph.Problem(TOP.body, TOP.field, omega=(0.2, 0.7, 1.1))


def reflected(R):
    return 1 + 0.5 * R[2, 0] ** 2 + 0.2 * R[2, 1] + 0.1 * R[0, 1]


def light_curve():
    """A light curve with noise of 0.003."""
    t = np.linspace(0.0, 8.0, 65)
    seen = [reflected(R) for R in motion(LIGHT, t).matrix]
    return M.values(t, reflected, seen + np.random.default_rng(5).normal(0, 0.003, len(t)), sigma=0.003)


def test_many_starts_find_what_one_far_guess_does_not():
    data = light_curve()
    with pytest.warns(ph.ResultWarning, match="starts=100"):
        one = ph.fit(FAR, data, ["attitude", "omega"])
    many, again = (ph.fit(FAR, data, ["attitude", "omega"], starts=150) for _ in range(2))
    assert one.chi2 / one.dof > 100
    assert one.starts is None
    assert many.chi2 / many.dof == pytest.approx(1.0, abs=0.5)
    assert (abs(many.values["omega"] - LIGHT.omega) < 4 * many.sigma["omega"]).all()
    assert many.starts is not None
    assert 2 <= many.starts.same <= 8
    assert len(many.starts.problems) == 150
    assert (np.diff(many.starts.chi2) >= 0).all()
    assert many.starts.refined_chi2[0] == pytest.approx(many.chi2, rel=1e-9)
    assert f"{many.starts.same} reached this sum of squares" in str(many)
    assert again.values["omega"].tolist() == many.values["omega"].tolist()
    other = ph.fit(FAR, data, ["attitude", "omega"], starts=150, seed=1)
    assert other.starts is not None
    assert other.starts.chi2[0] != many.starts.chi2[0]


def test_starts_can_be_given():
    near = ph.Problem(TOP.body, ph.fields.gravity(mgl=1.4), attitude=Q_NEAR, omega=(0.3, 0.95, 0.8))
    found = ph.fit(FAR, light_curve(), ["attitude", "omega", "inertia", "mgl"], starts=[near])
    assert found.starts is not None
    assert len(found.starts.problems) == 2
    assert np.allclose(found.starts.problems[0].quaternion, near.quaternion)
    assert found.starts.problems[0].field.values["mgl"] == 1.4
    assert np.allclose(found.starts.problems[0].body.moments, near.body.moments)
    assert found.chi2 / found.dof < 1.5


def test_the_sums_of_squares_of_starts_are_those_of_the_model():
    """With biases and a robust loss; the ranking takes the best bias for each guess."""
    data = noisy(TOP, 1)
    free = free_numbers(TOP, ["attitude", "omega", "inertia"], data)
    x = guesses(free, 5, {"attitude": 0.1, "omega": [0.1, 0.0, 0.2]}, 3)
    assert (x[:, free.places["omega"]][:, 1] == TOP.omega[1]).all()
    order, chi2 = ranked(free, data, x, None)
    model = Model(free, data, 1e-11, (TOP.t0,), np.zeros((0, 7)))
    for one, square in zip(order, chi2, strict=True):
        value, slope = model.residuals(one)
        part = slope[:, free.places["bias 1"]]
        best = value - part @ np.linalg.lstsq(part, value, rcond=None)[0]
        assert square == pytest.approx(best @ best, rel=1e-3)
    robust, _ = ranked(free, data, x, 1.0)
    assert np.array_equal(robust[0], x[0])  # the truth


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"starts": 0}, "starts must be a whole number"),
        ({"starts": 5, "seed": -1}, "seed must be a whole number"),
        ({"starts": 5, "spread": {"mgl": 1.0}}, "which are free"),
        ({"starts": 5, "spread": {"omega": [1.0, 2.0]}}, "standard deviation"),
        ({"starts": [1.0]}, "entry 0 is a float"),
        ({"starts": [FAR], "spread": {"omega": 1.0}}, "remove it"),
    ],
)
def test_mistakes_in_starts_are_told(given, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        ph.fit(FAR, light_curve(), ["attitude", "omega"], **given)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: M.rates([0.0, 2.0, 1.0], np.zeros((3, 3)), sigma=1.0), "must ascend"),
        (lambda: M.rates([0.0, 1.0], [[0, 0, 0], [np.nan, 0, 0]], sigma=1.0), "row 1"),
        (lambda: M.rates([0.0, 1.0], np.zeros((2, 2)), sigma=1.0), r"\(2, 3\)"),
        (lambda: M.rates([0.0, 1.0], np.zeros((2, 3)), sigma=0.0), "positive"),
        (lambda: M.rates([0.0, 1.0], np.zeros((2, 3)), sigma=np.ones((4, 3))), "sigma must be"),
        (lambda: M.attitudes([0.0], [[2.0, 0, 0, 0]], sigma=1.0), "unit quaternions"),
        (lambda: M.directions([0.0], [[2.0, 0, 0]], [0, 0, 1], sigma=1.0), "unit vectors"),
        (lambda: ph.fit(TOP, [], ["omega"]), "data must be measurements"),
        (lambda: ph.fit(TOP.body, [], ["omega"]), "ph.Problem"),
        (lambda: ph.fit(TOP, M.rates([0.0], np.zeros((1, 3)), sigma=1.0), ["omega", "attitude"]), "6 free numbers"),
        (lambda: ph.fit(TOP, M.rates([-1.0], np.zeros((1, 3)), sigma=1.0), ["omega"]), "before the initial state"),
        (lambda: ph.fit(TOP, M.rates([0.0], np.zeros((1, 3)), sigma=1.0), ["size"]), "free must be some of"),
        (lambda: ph.fit(TOP, M.rates([0.0], np.zeros((1, 3)), sigma=1.0), ["omega"], loss="l7"), "loss must be"),
        (
            lambda: ph.fit(TOP, M.rates([0], np.zeros((1, 3)), sigma=1), "inertia", priors={"inertia": ([1, 1, 3], 1)}),
            "none more than the two others",
        ),
        (
            lambda: ph.fit(TOP, M.rates([0.0], np.zeros((1, 3)), sigma=1.0), ["omega"], priors={"omega": (1, -1)}),
            "positive sigma",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(call, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        call()


@pytest.mark.parametrize("axes", [None, TURN], ids=["moments", "tensor"])
def test_the_inertia_in_a_torque_is_that_of_the_body(axes):
    """The gravity gradient depends on the inertia, so it must change with the estimate, and with its derivatives."""

    def orbiting(moments):
        body = ph.Body(moments if axes is None else (axes * moments) @ axes.T)
        field = ph.fields.gravity_gradient(body, mu=1.44, radius=1.0) + ph.fields.linear_drag(0.01)
        return ph.Problem(body, field, omega=[0.3, 1.0, 0.8])

    seen = motion(orbiting([1.0, 2.0, 2.5]))
    data = [M.rates(T, seen.omega, sigma=1e-4), M.attitudes(T, seen.quaternion, sigma=1e-4)]
    found = ph.fit(orbiting([1.05, 1.94, 2.55]), data, ["attitude", "omega", "inertia"] + ["axes"] * (axes is TURN))
    assert found.chi2 < 1e-6
    np.testing.assert_allclose(np.sort(found.values["inertia"]), [1.0, 2.0, 2.5], rtol=1e-6)
    body, inertia = found.problem.body, found.problem.field.values["inertia"]
    np.testing.assert_allclose(inertia, body.moments if axes is None else body.inertia, rtol=1e-12)


def test_axes_under_a_torque_of_the_principal_moments_are_refused():
    body = ph.Body([1.0, 2.0, 2.5])
    guess = ph.Problem(body, ph.fields.gravity_gradient(body, mu=1.44, radius=1.0), omega=[0.3, 1.0, 0.8])
    data = ph.measurements.rates([0.0, 1.0, 2.0], np.ones((3, 3)), sigma=0.1)
    with pytest.raises(ph.InputError, match="axes cannot be free with the field gravity_gradient"):
        ph.fit(guess, data, ["omega", "axes"])
