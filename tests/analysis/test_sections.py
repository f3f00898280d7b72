"""Poincaré sections: every crossing is found once, however long the run; of an integrable top they lie on a curve."""

import math

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.sections import coordinate, on_energy_level, section
from polhode.run import step_control
from polhode.run.adaptive import Run

METHOD = ph.methods["imidm"]  # many tests share its programs
FREE, TOP = ph.problems.free_body(), ph.problems.heavy_top()
ENERGY, VERTICAL = 2.0, 0.5


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def second(omega):
    return omega[1]


def leaning(R):
    return R[2][0]


def angle(R):
    return math.atan2(R[2][1], R[2][2])


def rate(omega):
    return omega[0]


def start(body, tilt, first, energy=ENERGY):
    """A top on the section, with the vertical momentum and the energy given: the vertical in the body is (0, s, c)."""
    s, c = math.sin(tilt), math.cos(tilt)
    rough = ph.Problem(
        body, TOP.field, attitude=(math.cos(tilt / 2), math.sin(tilt / 2), 0, 0),
        momentum=[first, VERTICAL * s, VERTICAL * c],
    )  # fmt: skip
    return on_energy_level(rough, energy, (0.0, -c, s))


def test_a_free_body_crosses_once_in_every_period():
    """Also where one piece of the run ends and the next begins."""
    end = 20000.0
    run = Run(FREE, step_control.taylor(FREE), end, 1e-12)
    assert sum(1 for _ in run.pieces()) > 1
    found = section(FREE, second, t_end=end)
    assert len(found) == pytest.approx(end / ph.period(FREE), abs=1)
    assert np.diff(found.t) == pytest.approx(ph.period(FREE), abs=1e-8)
    assert np.abs(found.omega[:, 1]).max() < 1e-12


def test_crossings_with_a_method_are_the_events_of_its_run():
    falling = ph.event(leaning, direction=-1)
    found = section(TOP, falling, t_end=100.0, method=METHOD, dt=0.02)
    (expected,) = ph.solve(TOP, METHOD, dt=0.02, t_end=100.0, events=[falling]).events
    assert len(found) > 20
    assert found.t == pytest.approx(expected.t, abs=1e-12)
    assert found.momentum == pytest.approx(expected.momentum, abs=1e-12)
    assert found.energy == pytest.approx(expected.energy, abs=1e-12)
    assert (found.method, found.dt) == (METHOD.name, 0.02)


def test_the_section_of_a_lagrange_top_is_a_curve_in_closed_form():
    """With Pi_3 = c and Pi_2 = (L_z - c cos a)/sin a, the energy is (Pi_1^2 + Pi_2^2)/(2 I_1) + c^2/(2 I_3) + cos a."""
    body = ph.Body([0.7, 0.7, 1.0])
    top = start(body, 1.2, 0.3)
    found = section(top, leaning, t_end=500.0)
    a, p = coordinate(angle, top, found), 0.7 * coordinate(rate, top, found)
    c = top.momentum[2]
    other = (VERTICAL - c * np.cos(a)) / np.sin(a)
    assert len(found) > 100
    assert np.ptp(a) > 0.1
    assert (p**2 + other**2) / 1.4 + c**2 / 2 + np.cos(a) == pytest.approx(ENERGY, abs=1e-9)


@pytest.mark.usefixtures("plain_first")
def test_coordinates_are_those_of_the_states():
    """In the user's axes, also where these are not the principal ones."""
    turn = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    problem = ph.Problem(
        ph.Body(turn @ np.diag([0.6, 0.8, 1.0]) @ turn.T), TOP.field, attitude=(0.8, 0.4, 0.2, -0.4), omega=[1, -2, 0.7]
    )
    found = section(problem, leaning, t_end=20.0)
    assert len(found) > 3
    assert coordinate(angle, problem, found) == pytest.approx(np.arctan2(*found.matrix[:, 2, 1:].T), abs=1e-14)
    assert coordinate(rate, problem, found) == pytest.approx(found.omega[:, 0], abs=1e-14)
    assert np.abs(found.matrix[:, 2, 0]).max() < 1e-12
    assert found.energy == pytest.approx(problem.energy(), abs=1e-10)


def test_starts_on_one_energy():
    top = start(TOP.body, 0.5, 0.2)
    assert top.energy() == pytest.approx(ENERGY, abs=1e-14)
    assert top.spatial_momentum[2] == pytest.approx(VERTICAL, abs=1e-15)
    assert top.omega @ (0.0, -math.cos(0.5), math.sin(0.5)) > 0
    with pytest.raises(ph.InputError, match="the least is"):
        start(TOP.body, 0.5, 0.2, energy=0.5)
    with pytest.raises(ph.InputError, match="three numbers"):
        on_energy_level(TOP, 2.0, (0, 0, 0))


def test_poincare_draws_the_crossings():
    starts = [start(TOP.body, tilt, 0.1) for tilt in (-2.0, 0.2)]
    fig, ax = ph.plots.poincare(starts, leaning, (angle, ph.event(rate)), t_end=60.0)
    assert len(ax.lines) == 2
    for line, one in zip(ax.lines, starts, strict=True):
        found = section(one, leaning, t_end=60.0)
        assert len(found) > 10
        assert np.array_equal(line.get_xdata(), coordinate(angle, one, found))
        assert np.array_equal(line.get_ydata(), found.omega[:, 0])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("angle", "rate")
    assert "by 2 motions" in ax.get_title(loc="left")
    assert ph.plots.poincare(starts[0], leaning, (angle, rate), t_end=20.0, ax=ax) == (fig, ax)


def never(R):
    return R[2][2] + 2


@pytest.mark.parametrize(
    ("said", "where", "axes", "more"),
    [
        ("must not be a terminal event", ph.event(leaning, terminal=True), (angle, rate), {}),
        ("no motion crosses never = 0", never, (angle, rate), {}),
        ("two functions", leaning, angle, {}),
        ("two functions", leaning, (angle, 3), {}),
        ("a function of t, R, omega or a ph.event", "R", (angle, rate), {}),
        ("both method and dt", leaning, (angle, rate), {"dt": 0.1}),
        ("dt must be positive", leaning, (angle, rate), {"method": METHOD, "dt": -0.1}),
        ("give step_tol=1e-09, the error of one step", leaning, (angle, rate), {"tol": 1e-9}),
        ("step_tol must lie", leaning, (angle, rate), {"step_tol": 0}),
        ("t_end must lie after", leaning, (angle, rate), {"t_end": -1.0}),
    ],
)
def test_what_is_refused(said, where, axes, more):
    with pytest.raises(ph.InputError, match=said):
        ph.plots.poincare(TOP, where, axes, **more)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("given", [["heavy_top"], [], 3])
def test_what_is_no_problem(given):
    with pytest.raises(ph.InputError, match=r"a ph\.Problem.*; got"):
        ph.plots.poincare(given, leaning, (angle, rate))


@ph.torque
def blow_up(t):
    return 1 / (4 - t), 0.0, 0.0


@pytest.mark.parametrize("how", [{}, {"method": METHOD, "dt": 0.25}])
def test_a_run_that_fails_has_its_crossings(how):
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), blow_up(), omega=[0.1, 3.0, 0.2])
    with pytest.raises(ph.StepError, match=r"crossings? before.* in \.partial") as failed:
        section(problem, leaning, t_end=8.0, **how)
    assert failed.value.partial.status == "failed"
    assert len(failed.value.partial) >= 1
    assert failed.value.partial.t.max() < 4
