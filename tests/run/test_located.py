"""Jumps and kinks in the state: steps end on them, and keep their order on both sides."""

import math
import pickle

import numpy as np
import pytest

import polhode as ph
from polhode import StepError
from polhode.physics.fields.sides import SidedField, conditions_of

SPHERE, BODY = ph.Body([2.0, 2.0, 2.0]), ph.Body([[1.0, 0.1, 0.2], [0.1, 2.0, 0.0], [0.2, 0.0, 2.4]])
OMEGA = (0.3, 0.9, 0.4)


@ph.torque
def dead_band(omega, k, width):
    """A brake outside a dead band, and a constant push."""
    w = omega[0]
    return -k * ph.where(abs(w) > width, w - ph.where(w > 0, width, -width), 0.0) + 0.02, 0.0, 0.0


@ph.torque
def relay(t, R, push):
    """A relay on the attitude, weaker from t = 4 on, and a kink."""
    x = R[0, 0]
    far = ph.where((x > 0.2) | (x < -0.2), 1.0, -1.0)
    return push * far * ph.where(t < 4.0, 1.0, 0.3), 0.0, 0.1 * abs(R[1, 2])


@ph.torque
def friction(omega, mu):
    return tuple(-mu * ph.where(w > 0, 1.0, -1.0) for w in omega)


def exact_dead_band(t, start, k, width, push, inertia):
    """Omega_1 of a sphere: linear in the band, exponential outside; from above the band, with push < k (start - width).

    Outside, I w' = -k (w - width) + push has the rest width + push/k, above the band, so the surface is not reached
    from there; from below, w rises linearly to -width by the same law, and through the band.
    """
    rest = -width + push / k
    enter = inertia / k * math.log((start - rest) / (-width - rest))  # the time of w = -width
    leave = enter + 2 * width * inertia / push
    if t <= enter:
        return rest + (start - rest) * math.exp(-k / inertia * t)
    if t <= leave:
        return -width + push / inertia * (t - enter)
    return width + push / k * (1 - math.exp(-k / inertia * (t - leave)))


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_dead_band_in_closed_form(tol):
    """The brake, the dead band and the brake again; the error stays below the tolerance with few steps."""
    problem = ph.Problem(SPHERE, dead_band(k=0.4, width=0.05), omega=[-0.5, 0, 0])
    sol = ph.solve(problem, t_end=40.0, tol=tol)
    exact = [exact_dead_band(t, -0.5, 0.4, 0.05, 0.02, 2.0) for t in sol.t]
    assert np.abs(sol.omega[:, 0] - exact).max() < tol
    assert sol.error_estimate <= tol
    assert sol.accepted < 100
    times = np.linspace(0, 40, 401)
    between = [exact_dead_band(t, -0.5, 0.4, 0.05, 0.02, 2.0) for t in times]
    assert np.abs(sol.at(times).omega[:, 0] - between).max() < 2 * tol


def test_steps_end_at_the_changes():
    """The times of entering and leaving the dead band, to round-off of the states there."""
    problem = ph.Problem(SPHERE, dead_band(k=0.4, width=0.05), omega=[-0.5, 0, 0])
    sol = ph.solve(problem, t_end=40.0, tol=1e-12)
    rest = -0.05 + 0.02 / 0.4
    enter = 5 * math.log((-0.5 - rest) / (-0.05 - rest))
    for moment in (enter, enter + 10.0):
        assert np.abs(sol.t - moment).min() < 1e-10


@pytest.mark.parametrize("body", [SPHERE, BODY])
@pytest.mark.parametrize("end", [8.0, -5.0])
def test_a_relay_against_short_steps(body, end):
    """Jumps in time and attitude, or, kinks; forwards and backwards; the pair that does not locate them agrees."""
    problem = ph.Problem(body, relay(0.3), omega=OMEGA)
    sol = ph.solve(problem, t_end=end, tol=1e-9)
    pair = ph.solve(problem, "mkrk(dormand_prince)", t_end=end, tol=1e-11)
    assert sol.reason.startswith("the field has branches: steps end where a condition on the state changes")
    assert np.abs(sol.quaternion[-1] - pair.quaternion[-1]).max() < 2e-9
    assert sol.accepted < pair.accepted / 10
    times = np.linspace(0, end, 101)
    assert np.abs(sol.at(times).quaternion - pair.at(times).quaternion).max() < 2e-9


def test_the_order_is_kept():
    """With steps of order 8 the number of steps grows like tol^(-1/8), not like tol^(-1/5) and with each jump."""
    problem = ph.Problem(BODY, relay(0.3), omega=OMEGA)
    few, many = (ph.solve(problem, t_end=8.0, step_tol=tol).accepted for tol in (1e-5, 1e-9))
    changes = 12
    assert (many - changes) / (few - changes) < 1e4 ** (1 / 6)


def test_friction_before_it_stops_the_body():
    """Omega falls linearly for a rotation about one axis."""
    sol = ph.solve(ph.Problem(SPHERE, friction(0.02), omega=[0.3, 0.4, 0.5]), t_end=20.0, tol=1e-11)
    assert np.abs(sol.omega[-1] - (np.array([0.3, 0.4, 0.5]) - 0.01 * 20)).max() < 1e-11


@ph.torque
def switched(omega, push, level):
    return 0.0, 0.0, ph.where(omega[1] > level, push, 0.0)


@ph.controller
def idle(omega):
    return 0.0 * omega[0], 0.0, 0.0


FREE = ph.Problem(ph.Body([1.0, 1.4, 1.9]), omega=[0.2, 0.6, 1.1])
TO_END = 3.0


def top():
    """Time and value of the largest omega_2 of the free body, to round-off."""
    motion, times = ph.solve(FREE, tol=1e-13, t_end=TO_END), np.linspace(0.0, TO_END, 1001)
    for _ in range(3):
        omega = motion.at(times).omega[:, 1]
        k = omega.argmax()
        times = np.linspace(times[k - 1], times[k + 1], 1001)
    return times[500], omega.max()


def stepped(problem):
    stepper, state = ph.stepper(problem.body, "verner87", 0.1), (problem.quaternion, problem.momentum)
    for _ in range(30):
        state = stepper.step(state, problem.field)
    return state.momentum


GRAZING = {
    "tol": lambda p: ph.solve(p, tol=1e-10, t_end=TO_END).momentum[-1],
    "step_tol": lambda p: ph.solve(p, step_tol=1e-10, t_end=TO_END).momentum[-1],
    "dt": lambda p: ph.solve(p, "verner87", dt=0.1, t_end=TO_END).momentum[-1],
    "method to tol": lambda p: ph.solve(p, "mkrk(rk4)", tol=1e-10, t_end=TO_END).momentum[-1],
    "stepper": stepped,
    "propagator": lambda p: ph.propagator(p, tol=1e-10)(t_end=TO_END).momentum,
    "control to tol": lambda p: ph.solve(p, tol=1e-10, t_end=TO_END, control=idle, period=1.0).momentum[-1],
    "control, dt": lambda p: ph.solve(p, "verner87", dt=0.1, t_end=TO_END, control=idle, period=1.0).momentum[-1],
    "ensemble to tol": lambda p: ph.ensemble(p, tol=1e-10, t_end=TO_END).momentum[-1, 0],
    "ensemble, dt": lambda p: ph.ensemble(p, method="verner87", dt=0.1, t_end=TO_END).momentum[-1, 0],
    "between steps": lambda p: ph.solve(p, "verner87", dt=0.1, t_end=TO_END).at([TO_END - 1e-9]).momentum[0],
    "tangent": lambda p: ph.solve(p, "verner87", dt=0.1, t_end=TO_END, tangent=True).momentum[-1],
}


@pytest.mark.parametrize("way", GRAZING)
def test_a_graze_is_found(way):
    """A torque that acts for a moment, around the largest value of a velocity: its impulse is push times that time."""
    t, highest = top()
    a, b, c = FREE.body.moments
    w = ph.solve(FREE, tol=1e-13, t_end=t).omega[-1]
    bend = (c - a) / b * w[2] * (b - c) / a * w[1] * w[2]  # of omega_2, where omega_1 is zero
    start = np.linalg.norm(FREE.momentum)
    for depth in (1e-3, 1e-5, 1e-7):
        lasts = 2 * math.sqrt(2 * depth / abs(bend))
        gained = np.linalg.norm(GRAZING[way](ph.Problem(FREE.body, switched(0.05, highest - depth), omega=FREE.omega)))
        assert gained - start == pytest.approx(0.05 * lasts * c * w[2] / start, rel=0.05)
        above = ph.Problem(FREE.body, switched(0.05, highest + depth), omega=FREE.omega)
        assert np.linalg.norm(GRAZING[way](above)) == pytest.approx(start, rel=1e-11)


@pytest.mark.parametrize("how", [{"tol": tol} for tol in (1e-9, 1e-10, 1e-11, 1e-12)] + [{"dt": 0.5}, {"dt": 1.0}])
def test_a_start_on_the_surface_that_is_left_and_met_again(how):
    """R_23 is zero at the start, and again before a first long step is looked at."""

    @ph.torque
    def three(omega, R, push):
        far = ph.where((R[0, 0] > 0.2) | (R[0, 0] < -0.2), 1.0, -1.0)
        inner = ph.where(omega[1] + 0.1 * far > 0, -1.0, 0.5)
        return push * inner, 0.1 * abs(R[1, 2]), 0.2 * push * far

    omega = [0.06307688422998452, 1.2839187162126646, 1.0231855912355452]
    problem = ph.Problem(FREE.body, three(0.3), omega=omega)
    method = "taylor(18)" if "dt" in how else None
    sol, short = ph.solve(problem, method, t_end=8.0, **how), ph.solve(problem, "verner87", dt=0.02, t_end=8.0)
    assert np.abs(sol.momentum[-1] - short.momentum[-1]).max() < how.get("tol", 1e-6)


def test_a_start_on_the_surface():
    problem = ph.Problem(BODY, friction(0.02), omega=[0.0, 0.9, 0.4])
    sol, pair = (ph.solve(problem, m, t_end=3.0, tol=1e-9) for m in (None, "mkrk(dormand_prince)"))
    assert np.abs(sol.quaternion[-1] - pair.quaternion[-1]).max() < 2e-9


def test_sliding_is_told():
    """Friction that stops the body holds it on the surface: the steps of the pair become too short."""
    problem = ph.Problem(SPHERE, friction(0.2), omega=[0.3, 0.0, 0.0])
    with pytest.raises(StepError, match="holds the motion at the jump"):
        ph.solve(problem, t_end=20.0, step_tol=1e-9)


def test_events_on_a_located_run():
    problem = ph.Problem(BODY, relay(0.3), omega=OMEGA)
    crossing = ph.event(lambda R: R[0, 0] - 0.2)
    found = ph.solve(problem, t_end=8.0, tol=1e-10, events=[crossing]).events[0]
    assert len(found) > 2
    assert np.abs(found.matrix[:, 0, 0] - 0.2).max() < 1e-12


def test_which_fields_are_held():
    assert len(conditions_of(relay(0.3))) == 3
    assert conditions_of(ph.fields.linear_drag(0.1)) == []

    @ph.torque
    def equal(omega):
        return ph.where(omega[0] == 0, 1.0, 0.0), 0.0, 0.0

    assert conditions_of(equal()) == []
    held = pickle.loads(pickle.dumps(SidedField(relay(0.3))))
    assert held.parameters == (0.3, 0.0, 0.0, 0.0)


def test_a_tolerance_near_round_off_costs_no_more_steps():
    """Pairs cannot reach it either; millions of their steps were tried, and another result taken that was no better."""

    @ph.torque
    def band(omega, k):
        return (-k * ph.where(abs(omega[0]) > 0.1, omega[0], 0.0), 0.05, -k * omega[2])

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), band(0.3), momentum=[-3.53, -5.61, 2.76])
    with pytest.warns(ph.errors.ResultWarning, match=r"more than tol=5e-15"):
        sol = ph.solve(problem, tol=5e-15, t_end=-10.0)
    assert len(sol) < 1000
    assert 5e-15 < sol.error_estimate < 1e-12
