"""Chaos indicators and Lyapunov exponents."""

import pickle
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

import polhode as ph
from polhode.physics import varied_steps
from polhode.physics.fields.variation import state_at_start
from simulated_card import computed

TOP = ph.problems.get("heavy_top")
CHAOTIC = ph.Problem(TOP.body, TOP.field, omega=(0.6, 0.3, 0.6))
REGULAR = ph.Problem(TOP.body, TOP.field, omega=(0.6, 0.3, 3.8))
TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
TENSOR = ph.Problem(
    ph.Body(TURN @ np.diag([1.0, 2.0, 2.5]) @ TURN.T), ph.fields.gravity(mgl=1.5), omega=(0.3, 1.0, 0.2)
)


def test_growth_is_that_of_the_tangent():
    problem = TENSOR
    nu, t_end, inertia, start = 1.7, 4.0, np.array(problem.body.inertia), np.array(state_at_start())
    found = ph.chaos(problem, t_end=t_end, tol=1e-10, frequency=nu)
    tangent = ph.solve(problem, tol=1e-11, t_end=t_end, tangent=True).tangent
    end = tangent.matrix[-1] @ np.concatenate([start[:3], nu * inertia @ start[3:6]])
    length = np.linalg.norm([*end[:3], *np.linalg.solve(inertia, end[3:]) / nu])
    assert found.growth[-1, 0] == pytest.approx(np.log(length), abs=1e-8)
    assert found.exponent[-1, 0] == pytest.approx(np.log(length) / t_end, abs=1e-8)


@pytest.mark.parametrize(("problem", "step_tol", "near"), [(TENSOR, 1e-12, 1e-10), (TOP, 1e-6, 1e-4)])
def test_taylor_steps_have_the_indicators_of_a_pair(problem, step_tol, near):
    """A run to `tol` uses a pair. MEGNO is an integral by a rule of order 12, whose error no tolerance controls."""
    omega = np.random.default_rng(2).normal(size=(20, 3))
    exact = ph.chaos(problem, omega=omega, t_end=6.0, tol=1e-9, times=[0.2, 3.0, 6.0])
    found = ph.chaos(problem, omega=omega, t_end=6.0, step_tol=step_tol, times=[0.2, 3.0, 6.0])
    assert (exact.motions.method, found.motions.method[:6]) == ("verner87", "taylor")
    assert abs(found.growth - exact.growth).max() < near + 1e-8
    assert abs(found.megno - exact.megno).max() < 2 * near + 1e-7
    assert abs(found.mean_megno - exact.mean_megno).max() < near + 1e-5
    assert np.median(abs(found.mean_megno - exact.mean_megno)) < near + 1e-7


@pytest.mark.parametrize(("nodes", "order"), [(varied_steps.LOW, 8), (varied_steps.HIGH, 12)])
def test_integrals_of_the_growth(nodes, order):
    """Weights of Lobatto's rule: of degree order - 1 over a step, and of half the order up to its nodes."""
    for i, weights in enumerate(varied_steps.integrals(nodes)):
        for k in range(1, order if i == len(nodes) - 1 else order // 2 + 1):
            total = sum(weight * node**k for weight, node in zip(weights, nodes, strict=True))
            assert abs(total - nodes[i] ** (k + 1) / (k + 1)) < 1e-38


def test_variations_survive_coarse_steps():
    """A pair lets the length of a shrinking variation grow without bounds."""
    omega = np.random.default_rng(0).normal(size=(2000, 3))[1700:]
    found = ph.chaos(ph.problems.heavy_top(), omega=omega, step_tol=1e-3, t_end=20.0)
    assert (found.motions.failed < 0).all()


def test_indicators_tell_regular_from_chaotic_motion():
    omega = np.array([CHAOTIC.omega, REGULAR.omega])
    found = ph.chaos(TOP, t_end=600.0, omega=omega, times=np.linspace(10.0, 600.0, 60))
    megno, mean = found.megno[-1], found.mean_megno[-1]
    assert mean[1] == pytest.approx(2.0, abs=0.1)
    assert found.fli[-1, 1] < 9
    assert megno[0] == pytest.approx(found.exponent[-1, 0] * 600, rel=0.3)
    assert mean[0] == pytest.approx(megno[0] / 2, rel=0.3)
    assert megno[0] > 15
    assert (np.diff(found.fli, axis=0) >= 0).all()
    # MEGNO from its definition, 2/t int (growth' s) ds = 2 growth - 2/t int growth ds
    s, growth = found.t, found.growth[:, 1]
    integral = np.concatenate([[0.0], np.cumsum(np.diff(s) * (growth[1:] + growth[:-1]) / 2)])
    assert found.megno[-1, 1] == pytest.approx(2 * growth[-1] - 2 * integral[-1] / s[-1], abs=0.3)


def test_exponents_come_in_pairs_and_agree_with_the_variation():
    run = {"t_end": 2000.0, "step_tol": 1e-9}
    found = ph.lyapunov(CHAOTIC, **run)
    assert abs(found.exponents + found.exponents[::-1]).max() < 0.002
    assert (np.diff(found.exponents) <= 0).all()
    assert found.exponents[0] == pytest.approx(ph.chaos(CHAOTIC, **run).exponent[-1, 0], abs=0.02)
    assert found.exponents[0] > 0.04
    assert abs(found.exponents[1:5]).max() < 0.01  # time, and the momentum about the vertical
    assert found.time == 1 / found.exponents[0]
    assert found.spread[0] < 0.05
    assert np.isnan(found.history[0]).all()


def test_a_fixed_step_gives_the_same_exponents():
    found = ph.lyapunov(CHAOTIC, "strang(dmv2)", dt=0.02, t_end=1000.0)
    assert found.exponents[0] > 0.04
    assert abs(found.exponents + found.exponents[::-1]).max() < 0.002
    assert abs(found.exponents.sum()) < 1e-9  # the method is symplectic and keeps volumes


WORDS = ["megno", "mean_megno", "fli", "lyapunov", "energy"]
STARTS = {"omega": np.array([CHAOTIC.omega, REGULAR.omega, (0.1, 0.9, 1.0)]), "t_end": 30.0}


def indicators(found):
    """The last values of the indicators of `ph.chaos`, by the words of statistics."""
    return {
        "megno": found.megno[-1], "mean_megno": found.mean_megno[-1], "fli": found.growth[-1],
        "lyapunov": found.exponent[-1],
    }  # fmt: skip


def test_words_of_statistics_to_a_tolerance_are_the_indicators():
    times = np.linspace(0.5, 30.0, 60)
    expected = ph.chaos(TOP, **STARTS, times=np.append(0.0, times))
    many = ph.ensemble(TOP, **STARTS, times=times, step_tol=1e-9, statistics=WORDS)
    for name, values in indicators(expected).items():
        assert np.allclose(many.statistics[name].last, values, rtol=1e-12)
        assert (many.statistics[name].first == 0).all()
    assert np.allclose(many.statistics["fli"].max, expected.fli[-1], rtol=1e-12)
    assert np.allclose(many.statistics["megno"].mean, expected.megno.mean(0), rtol=1e-12)
    assert not many.states
    energy = ph.ensemble(TOP, **STARTS, times=times, step_tol=1e-9, statistics="energy").statistics["energy"]
    assert np.allclose(many.statistics["energy"].mean, energy.mean, atol=1e-8)
    one = ph.solve(REGULAR, t_end=30.0, times=times, step_tol=1e-9, statistics=WORDS)
    for name, values in indicators(ph.chaos(REGULAR, t_end=30.0, times=times)).items():
        assert one.statistics[name].last == pytest.approx(values[0], rel=1e-9)  # along the steps of its own run
    assert len(one) == len(times)


def test_words_of_statistics_with_equal_steps_tend_to_the_indicators():
    expected, gaps = indicators(ph.chaos(TOP, **STARTS, step_tol=1e-11)), []
    for dt in (0.02, 0.01):
        many = ph.ensemble(TOP, "strang(rot123)", **STARTS, dt=dt, statistics=WORDS)
        gaps.append({name: abs(many.statistics[name].last - values) for name, values in expected.items()})
    for name, gap in gaps[1].items():
        assert (gap[:2] < 0.002 * (1 + abs(expected[name][:2]))).all()
        assert (gap[:2] < 0.4 * gaps[0][name][:2]).all()  # of second order: the steps, and the quadrature
    one = ph.solve(REGULAR, "strang(rot123)", dt=0.01, t_end=30.0, statistics=WORDS)
    alone = ph.ensemble(REGULAR, "strang(rot123)", dt=0.01, t_end=30.0, statistics=WORDS)
    assert all(one.statistics[name].last == alone.statistics[name].last[0] for name in WORDS)
    assert one.statistics["energy"].mean == pytest.approx(one.energy.mean(), rel=1e-12)


@ph.torque
def brakes(t, R, omega, level, burn):
    """A brake that changes with the spin, and a burn."""
    return ph.where(omega[0] > level, -0.5, -0.1), 0.3 * R[2][1] + ph.where(t < burn, 0.2, 0.0), -0.2 * R[2][0]


BRAKED = ph.Problem(TENSOR.body, brakes(level=0.2, burn=0.7), omega=(0.9, 0.4, 0.3))


def test_jumps_change_the_variation_by_the_saltation_matrix():
    nu, times, inertia, start = 1.3, np.linspace(0.0, 4.0, 401), BRAKED.body.inertia, np.array(state_at_start())
    found = ph.chaos(BRAKED, t_end=4.0, step_tol=1e-10, frequency=nu, times=times)
    tangent = ph.solve(BRAKED, step_tol=1e-10, t_end=4.0, tangent=True).at(found.t).tangent
    ends = tangent.matrix @ np.concatenate([start[:3], nu * inertia @ start[3:6]])
    ends[:, 3:] = np.linalg.solve(inertia, ends[:, 3:].T).T / nu
    growth = np.log(np.linalg.norm(ends, axis=1))
    assert np.allclose(found.growth[:, 0], growth, atol=1e-9)
    assert abs(np.diff(growth)).max() > 0.02  # at the jump, ten times as much as elsewhere
    integral = np.concatenate([[0.0], np.cumsum(np.diff(found.t) * (growth[1:] + growth[:-1]) / 2)])
    megno = 2 * growth[1:] - 2 * integral[1:] / found.t[1:]
    assert np.allclose(found.megno[1:, 0], megno, atol=1e-3)  # trapezia across the jump: half a step times its size
    mean = np.cumsum(np.diff(found.t) * (found.megno[1:, 0] + found.megno[:-1, 0]) / 2) / found.t[1:]
    assert np.allclose(found.mean_megno[1:, 0], mean, atol=1e-3)


def test_words_of_statistics_across_jumps():
    times, omega = [1.0, 2.0, 4.0], np.array([BRAKED.omega, (0.5, 0.1, 0.2)])
    expected = ph.chaos(BRAKED, omega=omega, t_end=4.0, step_tol=1e-8, times=times)
    many = ph.ensemble(BRAKED, omega=omega, t_end=4.0, step_tol=1e-8, times=times, statistics=WORDS)
    for name, values in indicators(expected).items():
        assert np.allclose(many.statistics[name].last, values, rtol=1e-12)
    one = ph.solve(BRAKED, t_end=4.0, step_tol=1e-8, times=times, statistics="lyapunov")
    assert one.statistics["lyapunov"].last == pytest.approx(expected.exponent[-1, 0], rel=1e-8)  # along its own steps


def test_motions_without_a_tangent_have_no_indicators():
    omega = [(0.2, 0.1, 0.3), (0.9, 0.1, 0.3)]  # the first starts on the surface of the jump
    straight = ph.Problem(TOP.body, BRAKED.field, omega=omega[0])
    with pytest.warns(ph.ResultWarning, match="1 of 2 bodies have no chaos indicators .* lies on the surface"):
        found = ph.chaos(straight, omega=omega, t_end=1.0, step_tol=1e-6)
    assert np.isnan(found.growth[-1]).tolist() == [True, False]


def test_free_bodies_are_regular():
    problem = ph.problems.get("free_body")
    assert ph.chaos(problem, t_end=200.0).mean_megno[-1, 0] == pytest.approx(2.0, abs=0.3)
    found = ph.lyapunov(problem, tol=1e-10, t_end=200.0)
    assert abs(found.exponents).max() < 5 / 200 * np.log(200)
    assert ph.lyapunov(problem, "rot123", dt=0.1, steps=1).time > 0


def test_maps_have_their_picture():
    found = ph.chaos_map(
        TOP, ("spin", np.linspace(0, 4, 5)), ("rate", np.linspace(-1, 1, 3)),
        lambda spin, rate: {"omega": np.stack([rate, 0.3 + 0 * spin, spin], 1)}, t_end=30.0,
    )  # fmt: skip
    one = ph.chaos(TOP, omega=(1.0, 0.3, 3.0), t_end=30.0)
    for name in ("growth", "exponent", "megno", "mean_megno", "fli"):
        assert getattr(found, name).shape == (3, 5)
        assert getattr(found, name)[2, 3] == pytest.approx(getattr(one, name)[-1, 0], rel=1e-4)
    fig, ax = found.plot("fli")
    assert ax.get_xlabel() == "spin"
    plt.close(fig)
    fig, ax = ph.lyapunov(TOP, step_tol=1e-6, t_end=5.0).plot()
    assert len(ax.lines) == 6
    plt.close(fig)
    with pytest.raises(ph.InputError, match="indicator must be one of"):
        found.plot("colour")


def test_a_problem_with_a_variation_can_be_pickled():
    field = ph.chaos(TOP, t_end=1.0).motions.bodies.field
    again = pickle.loads(pickle.dumps(field))
    assert dict(again.values) == dict(field.values)
    assert repr(again.coupled) == repr(field.coupled)


def mapped(start):
    return ph.chaos_map(TOP, ("a", [1.0, 2.0]), ("b", [1.0]), start, t_end=0.1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ph.chaos(TOP.body), "must be a ph.Problem"),
        (lambda: ph.chaos(CHAOTIC), "t_end"),
        (lambda: ph.chaos(TOP, t_end=-1.0), "after t0"),
        (lambda: ph.chaos(TOP, t_end=1.0, device="gpu"), "device must be one of"),
        (lambda: ph.chaos(TOP, t_end=1.0, frequency=-1.0), "frequency"),
        (lambda: ph.chaos(TOP, t_end=1.0, omega=np.ones((3, 2))), "omega"),
        (lambda: ph.chaos_map(TOP, [1.0], ("b", [1.0]), dict), "x must be a name and values"),
        (lambda: ph.chaos_map(TOP, ("a", [np.nan]), ("b", [1.0]), dict), "finite"),
        (lambda: ph.chaos_map(TOP, ("a", [1.0]), ("b", [1.0]), 3), "start must be a function"),
        (lambda: ph.chaos_map(TOP, ("a", [1.0]), ("b", [1.0]), lambda a, b: 3), "must return a dictionary"),
        (lambda: mapped(int), "start raised TypeError for arrays of x and y: "),
        (lambda: mapped(lambda a, b: 1 // 0), "start raised ZeroDivisionError"),
        (lambda: mapped(lambda a, b: {"omgea": np.ones((2, 3))}), "'omgea' is not one of them"),
        (lambda: mapped(lambda a, b: {1: 1}), "1 is not one of them"),
        (lambda: mapped(lambda a, b: {"problem": TOP}), "'problem' is not one of them"),
        (lambda: mapped(lambda a, b: {"t_end": 0.1}), "t_end is given and returned by start too"),
        (lambda: mapped(lambda a, b: {"omega": np.ones((3, 3))}), "for 2 motions, .* it returned 3"),
        (lambda: mapped(lambda a, b: {}), "for 2 motions, .* it returned 1"),
        (lambda: ph.lyapunov(TOP, "abm4", dt=0.1, t_end=1.0), "from state to state"),
        (lambda: ph.ensemble(TOP, "abm4", dt=0.1, t_end=1.0, statistics="megno"), "attitude and momentum only"),
        (lambda: ph.ensemble(TOP, "imidm", dt=0.1, t_end=1.0, statistics="megno", out="x.zarr"), "leave out `out`"),
        (lambda: ph.ensemble(TOP, "imidm", dt=[0.1, 0.2], steps=3, statistics="fli"), "equal steps"),
        (lambda: ph.ensemble(TOP, tol=1e-6, t_end=-1.0, times=[-1.0], statistics="fli"), "after t0"),
        (
            lambda: ph.ensemble(TOP, body=[[1, 2, 2.5], [1, 2, 2.8]], tol=1e-6, times=[1.0], statistics="fli"),
            "the same inertia for all bodies",
        ),
        (lambda: ph.solve(TOP, "imidm", dt=0.1, t_end=1.0, statistics="megno", digits=30), "leave out `digits`"),
        (lambda: ph.ensemble(BRAKED, "imidm", dt=0.1, t_end=1.0, statistics="fli"), "give step_tol and times instead"),
        (lambda: ph.chaos(BRAKED, t_end=1.0, device="cuda"), "one by one on the processor"),
    ],
)
def test_mistakes_are_told_in_a_sentence(call, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        call()


# --- on a GPU -----------------------------------------------------------------------------------------

ON_CARD = {
    "steps": {"method": "strang(dmv2)", "dt": 0.05},
    "every": {"method": "imidm", "dt": 0.05, "every": 4, "t_end": -1.0},
    "tensor": {"method": "mkrk(rk4)", "dt": 0.05, "body": TENSOR.body},
    "step_tol": {"step_tol": 1e-9, "times": [0.3, 0.6, 1.0]},
    "tol": {"tol": 1e-8, "times": [0.5, 1.0]},
}


INTEGRAL = 2e-6
"""Error of the mean of MEGNO after three Taylor steps, that of its integral (docs/chaos.md); a card uses a pair."""


def statistics(case, device):
    """All statistics of a case, by word."""
    many = ph.ensemble(TOP, **STARTS | {"t_end": 1.0} | ON_CARD[case], statistics=WORDS, device=device)
    assert (many.failed < 0).all()
    return {word: np.array([x.first, x.last, x.min, x.max, x.mean]) for word, x in many.statistics.items()}


def variation_at_end(device):
    """All indicators of `ph.chaos` at the end."""
    return np.array(list(indicators(ph.chaos(TOP, **STARTS | {"t_end": 1.0}, device=device)).values()))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("cuda") / "chaos.npz")


@pytest.mark.parametrize("case", ON_CARD)
def test_the_card_has_the_statistics_of_the_processor(simulated, case):
    """With equal steps to round-off; with a tolerance the steps may differ by round-off, and by that in length."""
    for word, values in statistics(case, "cpu").items():
        near = 1e-13 if "dt" in ON_CARD[case] else INTEGRAL if (case, word) == ("step_tol", "mean_megno") else 1e-8
        np.testing.assert_allclose(simulated[f"{case}: {word}"], values, rtol=0, atol=near * abs(values).max())


def test_the_card_has_the_indicators_of_the_processor(simulated):
    near = np.array([1e-8, INTEGRAL, 1e-8, 1e-8])[:, None]
    assert (abs(simulated["ph.chaos"] - variation_at_end("cpu")) < near).all()


def write_all(path):
    """What the card (its simulator) computes."""
    found = {f"{case}: {word}": x for case in ON_CARD for word, x in statistics(case, "cuda").items()}
    np.savez(path, **found, **{"ph.chaos": variation_at_end("cuda")})


if __name__ == "__main__":
    write_all(sys.argv[1])
