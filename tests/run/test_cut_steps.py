"""Equal steps in fields that jump in time: steps are made in parts, and methods keep their order."""

import math

import numpy as np
import pytest

import polhode as ph

BODY = ph.Body([1.0, 1.4, 1.9])
TENSOR = ph.Body([[1.0, 0.1, 0.0], [0.1, 1.4, -0.1], [0.0, -0.1, 1.9]])
END = 3.5
BURN = ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[1.0, 2.0], [2.5, 2.75]])
KNOTS = np.linspace(-1.0, 5.0, 25)
TABLE = ph.fields.tabulated(KNOTS, np.stack([0.3 * np.sin(2 * KNOTS), 0.2 * np.cos(3 * KNOTS), 0.1 * KNOTS], 1))


@ph.torque
def comb(t, size, rate):
    """Pulses again and again: a condition of time whose edges have no formula."""
    return size * ph.where(math.sin(rate * t) > 0.3, 1.0, -0.5), 0.1 * size * t, 0.0


@ph.torque
def steady(x, y, z):
    return x, y, z


def problem(field=BURN, body=BODY, **more):
    return ph.Problem(body, field, omega=[0.3, 1.1, 0.7], **more)


def distance(sol, exact):
    return abs(sol.momentum[-1] - exact.momentum[-1]).max() + abs(sol.quaternion[-1] - exact.quaternion[-1]).max()


def measured_order(method, given, counts, end=END):
    exact = ph.solve(given, tol=1e-13, t_end=given.t0 + end)
    found = []
    for n in counts:
        sol = ph.solve(given, method, dt=end / n, steps=n)
        assert sol.t == pytest.approx(given.t0 + end / n * np.arange(n + 1), rel=1e-15)
        found.append(distance(sol, exact))
    return math.log(found[0] / found[1]) / math.log(counts[1] / counts[0])


METHODS = ["imidm", "strang(dmv6)", "mkrk(rk4)", "mkrk(gauss3)", "yoshida6(strang(dmv2))"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("field", [BURN, TABLE], ids=["thruster", "table"])
@pytest.mark.parametrize("counts", [(28, 56), (27, 55)], ids=["on the grid", "off the grid"])
def test_the_order_is_kept(method, field, counts):
    """Orders 2, 4 and 6; steps that cross the jumps have order 1, those that cross the kinks of the table order 2."""
    assert measured_order(method, problem(field), counts) > ph.methods[method].order - 0.35


@pytest.mark.parametrize("body", [BODY, TENSOR], ids=["moments", "tensor"])
def test_several_jumps_in_a_step(body):
    """14 edges between t = 0 and 3.5, in 5 and 7 steps."""
    given = problem(comb(0.3, 12.0), body)
    assert ph.solve(given, "verner87", dt=0.5, steps=7).t == pytest.approx(0.5 * np.arange(8))
    exact = ph.solve(given, tol=1e-13, t_end=END)
    few, more = (distance(ph.solve(given, "verner87", dt=END / n, steps=n), exact) for n in (5, 7))
    assert few < 1e-10
    assert more < 1e-11


@pytest.mark.parametrize("method", ["mkrk(rk4)", "yoshida6(strang(dmv2))"])
def test_backwards_in_time(method):
    order = measured_order(method, problem(BURN, TENSOR, t0=3.1), (55, 111), end=-2.9)
    assert order > ph.methods[method].order - 0.35


def test_an_edge_at_the_end_or_at_the_start():
    """The last stage of a step to t = 1 does not see the burn, nor does the first one back from there."""
    free = ph.solve(problem(None), "mkrk(rk4)", dt=0.1, steps=10)
    burning = ph.solve(problem(BURN), "mkrk(rk4)", dt=0.1, steps=10)
    assert abs(burning.momentum - free.momentum).max() < 1e-15
    back = ph.solve(problem(BURN, t0=1.0), "mkrk(rk4)", dt=-0.1, steps=5)
    assert abs(back.momentum - ph.solve(problem(None, t0=1.0), "mkrk(rk4)", dt=-0.1, steps=5).momentum).max() < 1e-15


@pytest.mark.parametrize("width", [1e-3, 1e-12])
def test_a_burn_shorter_than_a_step_counts(width):
    """Also where it begins at the end of a step."""
    burn = ph.fields.thruster([0, 0, 0.2 / width], [[0.5, 0.5 + width]])
    sol = ph.solve(ph.Problem(ph.Body([2.0, 2.0, 2.0]), burn, omega=[0.0, 0.0, 0.1]), "mkrk(rk4)", dt=0.1, steps=10)
    assert sol.momentum[-1, 2] == pytest.approx(0.4, rel=1e-3)


def test_a_step_without_edges_is_as_it_was():
    """A constant torque written with a condition gives the bits of the constant."""
    on = ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[-1.0, 2.05]])
    constant = ph.solve(problem(steady(0.3, -0.2, 0.25)), "mkrk(rk4)", dt=0.1, steps=20)
    assert (ph.solve(problem(on), "mkrk(rk4)", dt=0.1, steps=30).momentum[:21] == constant.momentum).all()


@pytest.mark.parametrize("end", [END, -3.0])
def test_states_between_steps_and_events(end):
    field = BURN if end > 0 else ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[-2.13, -0.77]])
    given, crossing, how = problem(field, TENSOR), ph.event(lambda R: R[0, 0] - 0.25), {"dt": end / 40, "steps": 40}
    exact = ph.solve(given, tol=1e-13, t_end=end, events=[crossing])
    sol = ph.solve(given, "verner87", **how, events=[crossing])
    times = np.linspace(0, 0.999 * end, 222)
    assert abs(sol.at(times).momentum - exact.at(times).momentum).max() < 1e-11
    assert abs(sol.at(times).quaternion - exact.at(times).quaternion).max() < 1e-11
    assert len(sol.events[0]) == len(exact.events[0]) > 0
    assert abs(sol.events[0].t - exact.events[0].t).max() < 1e-10
    kept = ph.solve(given, "verner87", **how, times=times)
    assert abs(kept.momentum - exact.at(times).momentum).max() < 1e-11


@pytest.mark.parametrize("end", [END, -3.0])
def test_tangents(end):
    field = BURN if end > 0 else ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[-2.13, -0.77]])
    given = problem(field, TENSOR)
    exact = ph.solve(given, tol=1e-13, t_end=end, tangent=True)
    sol = ph.solve(given, "verner87", dt=end / 47, steps=47, tangent=True)
    for name in ("matrix", "inertia"):
        assert abs(getattr(sol.tangent, name)[-1] - getattr(exact.tangent, name)[-1]).max() < 1e-10
    assert abs(sol.tangent.params["torque"][-1] - exact.tangent.params["torque"][-1]).max() < 1e-10
    times = np.linspace(0, 0.999 * end, 33)
    assert abs(sol.at(times).tangent.matrix - exact.at(times).tangent.matrix).max() < 1e-10


def test_files_and_kept_steps_have_the_same_bits(tmp_path):
    given, name = problem(comb(0.3, 5.0)), tmp_path / "run.nc"
    whole = ph.solve(given, "mkrk(rk4)", dt=0.02, steps=175)
    ph.solve(given, "mkrk(rk4)", dt=0.02, steps=61, out=name)
    resumed = ph.solve(given, "mkrk(rk4)", dt=0.02, steps=175, out=name, resume=True)
    assert (resumed.quaternion == whole.quaternion).all()
    assert (resumed.momentum == whole.momentum).all()
    assert (resumed.at([0.511, 2.345]).momentum == whole.at([0.511, 2.345]).momentum).all()
    every = ph.solve(given, "mkrk(rk4)", dt=0.02, steps=175, every=10)
    assert (every.momentum[:-1] == whole.momentum[::10]).all()


def test_compensated_steps_and_many_digits():
    given = problem(BURN)
    plain = ph.solve(given, "strang(dmv6)", dt=END / 47, steps=47)
    carried = ph.solve(given, "compensated(strang(dmv6))", dt=END / 47, steps=47)
    precise = ph.solve(given, "strang(dmv6)", dt=END / 47, steps=47, digits=25)
    assert abs(plain.momentum - carried.momentum).max() < 1e-13
    assert abs(plain.momentum - precise.momentum).max() < 1e-13
    assert abs(plain.at(1.03).momentum - precise.at(1.03).momentum).max() < 1e-13


def test_large_numbers_are_rescaled():
    """In other units of time the edges are in these units too."""
    slow = ph.fields.thruster(torque=[3e-13, -2e-13, 2.5e-13], on=[[1.0e6, 2.0e6], [2.5e6, 2.75e6]])
    scaled = ph.Problem(BODY, slow, omega=[0.3e-6, 1.1e-6, 0.7e-6])
    one, other = (
        ph.solve(scaled, "mkrk(rk4)", dt=0.1e6, steps=35),
        ph.solve(problem(BURN), "mkrk(rk4)", dt=0.1, steps=35),
    )
    assert abs(1e6 * one.momentum - other.momentum).max() < 1e-13


def test_gradients_are_those_of_the_tangent():
    sol = ph.solve(problem(BURN), "mkrk(rk4)", dt=0.11, steps=30, tangent=True)
    found = ph.gradient(lambda momentum: momentum[0], problem(BURN), "mkrk(rk4)", dt=0.11, steps=30)
    assert found.value == sol.momentum[-1, 0]
    assert found.momentum == pytest.approx(sol.tangent.matrix[-1, 3, 3:], abs=1e-13)
    assert found.params["torque"] == pytest.approx(sol.tangent.params["torque"][-1, 3], abs=1e-13)


@ph.states(z=0.0)
def lag(t, omega, z, k):
    on = ph.where(t < 1.03, 1.0, 0.0)
    return (k * on, 0.0, z), {"z": on - z}


def test_fields_with_states_of_their_own():
    given = problem(lag(k=0.3))
    exact = ph.solve(given, tol=1e-12, t_end=3.0)
    sol = ph.solve(given, "verner87", dt=0.15, steps=20)
    assert distance(sol, exact) < 1e-11
    assert abs(sol.at(1.11).momentum - exact.at(1.11).momentum).max() < 1e-11
    many = ph.ensemble(given, "verner87", omega=[[0.3, 1.1, 0.7]] * 2, dt=0.15, steps=20)
    assert (many.momentum[-1] == sol.momentum[-1]).all()


def damping(t, R, omega):
    """Not a formula."""
    return [float(str(-0.1 * omega[0])), 0.0, 0.0]


@pytest.mark.filterwarnings("ignore::polhode.errors.SpeedWarning")
def test_torques_that_are_not_formulas():
    given = problem(ph.torque(damping)() + BURN)
    coarse, fine, exact = (ph.solve(given, "mkrk(rk4)", dt=3.3 / n, steps=n) for n in (30, 60, 480))
    assert math.log2(distance(coarse, exact) / distance(fine, exact)) > 3.7


def test_steps_that_cross_jumps_are_told():
    with pytest.warns(
        ph.ResultWarning, match="thruster has a jump or a kink in time at t = 1, and steps of .* do not end"
    ):
        ph.solve(problem(BURN), "abm4", dt=0.1, steps=15)
    ph.solve(problem(BURN), "abm4", dt=0.1, steps=5)  # before the first burn
