"""Equal steps in fields that jump with the state: steps are made in parts, and methods keep their order."""

import numpy as np
import pytest
from tests.run.test_located import SPHERE, friction
from tests.run.test_saltation import MOMENTS, TENSOR, brakes, relayed

import polhode as ph

END = 3.5
"""The relays jump in time at t = 2, and several times in the state before the end."""


@ph.torque
def beacons(t, R, width, push):
    """Jumps on the attitude and on a surface that moves; a jump in time and a kink."""
    far = ph.where((R[0, 0] > width) | (R[0, 0] < -0.2), 1.0, -1.0)
    moving = 0.05 * ph.where(R[2, 1] > 0.1 - 0.1 * t, 1.0, -0.4)
    return 0.1, push * far * ph.where(t < 2.0, 1.0, 0.3), moving + 0.1 * abs(R[1, 2])


def errors(method, problem, counts, end=END):
    exact = ph.solve(problem, tol=1e-13, t_end=end)
    found = []
    for n in counts:
        sol = ph.solve(problem, method, dt=end / n, steps=n)
        assert len(sol) == n + 1
        assert np.allclose(sol.t, end / n * np.arange(n + 1), rtol=1e-15)
        found.append(
            abs(sol.momentum[-1] - exact.momentum[-1]).max() + abs(sol.quaternion[-1] - exact.quaternion[-1]).max()
        )
    return np.array(found)


@pytest.mark.parametrize(
    ("method", "counts"),
    [("imidm", (140, 560)), ("mkrk(rk4)", (140, 560)), ("mkrk(gauss3)", (35, 140)), ("strang(dmv6)", (140, 560)),
     ("yoshida6(strang(dmv2))", (70, 280))],
)  # fmt: skip
@pytest.mark.parametrize("body", [MOMENTS, TENSOR], ids=["moments", "tensor"])
def test_the_order_is_kept(method, counts, body):
    """Orders 2, 4 and 6 are measured; steps that cross the jumps would have order 1."""
    problem = relayed(body)
    if ph.methods[method].needs != "velocity":
        problem = ph.Problem(body, beacons(0.25, 0.2), omega=(0.3, 1.9, 1.4), attitude=problem.quaternion)
    first, last = errors(method, problem, counts)
    assert np.log(first / last) / np.log(counts[1] / counts[0]) > ph.methods[method].order - 0.3


@pytest.mark.parametrize("end", [END, -3.0])
def test_high_order_reaches_round_off(end):
    assert errors("verner87", relayed(), [150], end)[0] < 1e-12


def test_a_jump_in_time_needs_no_step_that_ends_there():
    """13 steps to t = 3.5: t = 2 lies inside of one."""
    first, last = errors("mkrk(rk4)", relayed(), (130, 520))
    assert np.log(first / last) / np.log(4) > 3.8


@pytest.mark.parametrize("end", [END, -3.0])
def test_states_between_steps_and_events(end):
    """Dense output, events and kept times see both sides of a jump inside of a step."""
    problem, how = relayed(TENSOR), {"dt": end / 100, "steps": 100}
    crossing = ph.event(lambda R: R[0, 0] - 0.25)
    exact = ph.solve(problem, tol=1e-13, t_end=end, events=[crossing])
    sol = ph.solve(problem, "verner87", **how, events=[crossing])
    times = np.linspace(0, end, 333)
    assert abs(sol.at(times).quaternion - exact.at(times).quaternion).max() < 1e-12
    assert abs(sol.at(times).momentum - exact.at(times).momentum).max() < 1e-12
    assert len(sol.events[0]) == len(exact.events[0]) > 1
    assert abs(sol.events[0].t - exact.events[0].t).max() < 1e-12
    kept = ph.solve(problem, "verner87", **how, times=times)
    assert abs(kept.momentum - exact.at(times).momentum).max() < 1e-12


@pytest.mark.parametrize("end", [END, -3.0])
def test_tangents_of_equal_steps(end):
    problem, how = relayed(TENSOR), {"dt": end / 140, "steps": 140, "tangent": True}
    exact = ph.solve(problem, tol=1e-13, t_end=end, tangent=True)
    sol = ph.solve(problem, "verner87", **how)
    at = exact.at(sol.t).tangent
    assert abs(sol.tangent.matrix - at.matrix).max() < 1e-11
    assert abs(sol.tangent.inertia - at.inertia).max() < 1e-11
    assert abs(sol.tangent.params["width"] - at.params["width"]).max() < 1e-11
    between = np.linspace(0, end, 77)
    assert abs(sol.at(between).tangent.matrix - exact.at(between).tangent.matrix).max() < 1e-11
    every = ph.solve(problem, "verner87", **how, every=7)
    assert abs(every.tangent.matrix - sol.tangent.matrix[::7]).max() < 1e-13


def test_chunks_and_files_do_not_change_a_run(tmp_path):
    """States do not depend on where a run is interrupted."""
    problem, name = relayed(), tmp_path / "run.nc"
    whole = ph.solve(problem, "mkrk(rk4)", dt=0.02, steps=175)
    ph.solve(problem, "mkrk(rk4)", dt=0.02, steps=61, out=name)
    resumed = ph.solve(problem, "mkrk(rk4)", dt=0.02, steps=175, out=name, resume=True)
    assert (resumed.quaternion == whole.quaternion).all()
    assert (resumed.momentum == whole.momentum).all()
    assert abs(resumed.at([0.511, 2.345]).momentum - whole.at([0.511, 2.345]).momentum).max() == 0
    every = ph.solve(problem, "mkrk(rk4)", dt=0.02, steps=175, every=10)
    assert (every.momentum[:-1] == whole.momentum[::10]).all()


def test_compensated_steps():
    problem = ph.Problem(MOMENTS, beacons(0.25, 0.2), omega=(0.3, 1.9, 1.4), attitude=relayed().quaternion)
    plain, carried = (ph.solve(problem, m, dt=0.01, steps=350) for m in ("strang(dmv6)", "compensated(strang(dmv6))"))
    assert abs(plain.momentum - carried.momentum).max() < 1e-12


def test_a_step_of_any_length_to_a_tolerance():
    """The number of equal steps for a tolerance follows from the order of the method."""
    problem = relayed()
    exact = ph.solve(problem, tol=1e-13, t_end=END)
    sol = ph.solve(problem, "mkrk(rk4)", tol=1e-7, t_end=END)
    assert abs(sol.momentum[-1] - exact.momentum[-1]).max() < 1e-6
    assert sol.accepted < 1000
    times = np.linspace(0, END, 55)
    assert abs(sol.at(times).momentum - exact.at(times).momentum).max() < 1e-6


def test_sliding_steps_are_counted():
    """Friction stops the body at t = 3; from then on steps cross the jump, and the result says so."""
    problem = ph.Problem(SPHERE, friction(0.2), omega=[0.3, 0.35, 0.4])
    with pytest.warns(ph.ResultWarning, match=r"in \d+ of 60 steps friction holds the motion on the surface of a jump"):
        sol = ph.solve(problem, "mkrk(rk4)", dt=0.1, steps=60)
    assert abs(sol.omega[-1]).max() < 0.01
    assert abs(sol.omega[20] - (np.array([0.3, 0.35, 0.4]) - 0.2)).max() < 1e-8
    assert np.isfinite(sol.at(5.55).omega).all()
    with pytest.warns(ph.ResultWarning), pytest.raises(ph.StepError, match="slides along one"):
        ph.solve(problem, "mkrk(rk4)", dt=0.1, steps=60, tangent=True)


@pytest.mark.parametrize(
    ("method", "more", "instead"),
    [("mkrk(rk4)", {"digits": 20}, "leave out `digits`"), ("abm4", {}, "use another one-step method")],
)
def test_steps_that_cross_jumps_are_told(method, more, instead):
    problem = ph.Problem(MOMENTS, brakes(0.3, 0.1, 0.2), omega=(0.5, 0.1, 0.2))
    with pytest.warns(ph.ResultWarning, match=f"do not end where they change.*{instead}"):
        ph.solve(problem, method, dt=0.1, steps=15, **more)
    ph.solve(problem, method, dt=0.1, steps=3, **more)  # before the first change


@pytest.mark.parametrize(
    "how",
    [
        {"step_tol": 1e-5, "digits": 20}, {"method": "mkrk(dormand_prince)", "step_tol": 1e-6},
        {"method": "mkrk(rk4)", "dt": 0.1, "digits": 20, "every": 15}, {"method": "abm4", "dt": 0.1, "every": 15},
    ],
    ids=["digits", "a pair", "some states, digits", "some states"],
)  # fmt: skip
def test_steps_without_an_estimate_at_the_end_say_that_they_cross_jumps(how):
    """Also where the states that are kept do not show the changes."""
    problem = ph.Problem(MOMENTS, brakes(0.3, 0.1, 0.2), omega=(0.5, 0.1, 0.2))
    with pytest.warns(ph.ResultWarning, match="has conditions on the state .* do not end where they change"):
        ph.solve(problem, t_end=1.5, **how)


@ph.torque
def equal(omega):
    return ph.where(omega[0] == 0.2, 1.0, 0.0), 0.0, 0.0


def test_other_jumps_are_told():
    with pytest.warns(ph.ResultWarning, match="use a smooth formula instead of =="):
        ph.solve(ph.Problem(MOMENTS, equal(), omega=(0.5, 0.1, 0.2)), "mkrk(rk4)", dt=0.1, steps=3)


def test_steps_under_control_that_cross_jumps_are_told():
    """Limits of the controller are no jumps, as its commands are held."""

    def law(t, R, omega):
        return tuple(ph.where(w > 0.1, -0.1, -w) for w in omega)

    body, run = ph.Body([1.0, 1.3, 1.7]), {"method": "mkrk(rk4)", "dt": 0.05, "control": law, "period": 0.1}
    free = ph.Problem(body, omega=[0.3, 0.2, 1.0])
    assert ph.solve(free, steps=4, **run).status == "finished"
    jumping = ph.Problem(body, equal(), omega=[0.01, 0.2, 1.0])
    with pytest.warns(ph.ResultWarning, match="the order is lost at a jump; use a smooth formula instead of =="):
        ph.solve(jumping, steps=4, **run)
    with pytest.warns(ph.ResultWarning, match="the order is lost at a jump; make the jump a steep slope"):
        ph.ensemble(jumping, steps=4, omega=[[0.01, 0.2, 1.0]] * 2, **run)


@ph.torque(frame="body")
def one_relay(omega, k):
    return ph.where(omega[0] > 0, -k, k), 0.0, 0.0
