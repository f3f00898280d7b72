"""Wheels, coils and thrusters under control: conservation, limits, friction, pulses, and what is refused."""

import numpy as np
import pytest

import polhode as ph

BODY = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
PROBLEM = ph.Problem(BODY, euler=("XYZ", [0.5, 1.0, -0.7]), omega=[0.1, -0.2, 0.3])
AXES = np.array([[1.0, 0.0, 0.5], [-1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, -1.0, 0.5]]) / np.sqrt(1.25)
SHARES = np.linalg.pinv(AXES.T).tolist()
PERIOD = 0.1


def error(R):
    """The vector of the attitude error."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


def slewing(R, omega, wheels, stiffness=1.0, damping=2.0):
    """PD control by four wheels in a pyramid."""
    e = error(R)
    wanted = [stiffness * e[i] + damping * omega[i] for i in range(3)]
    return {"wheels": [row[0] * wanted[0] + row[1] * wanted[1] + row[2] * wanted[2] for row in SHARES]}


RUBBING = {"inertia": 0.01, "viscous": 1e-3, "coulomb": 2e-3}
PYRAMID = {"free": {}, "limited": {"max_torque": 0.15, "max_momentum": 0.4}, "rubbing": RUBBING}


def total_momentum(sol, axes=AXES):
    return np.einsum("nij,nj->ni", sol.matrix, sol.momentum + sol.states["wheels"] @ axes)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", PYRAMID)
def test_body_and_wheels_conserve_their_momentum(kind, plain):
    law = ph.controller(slewing, plain=plain, wheels=ph.actuators.wheels(AXES, **PYRAMID[kind]))
    sol = ph.solve(PROBLEM, "verner87", dt=0.02, t_end=40.0, control=law, period=PERIOD)
    assert sol.control.compiled is not plain
    L = total_momentum(sol)
    assert np.abs(L - L[0]).max() < 1e-13  # below half an epsilon in each of the 2000 steps
    between = sol.at(sol.t[1:] - 0.013)
    assert np.abs(total_momentum(between) - L[0]).max() < 1e-13
    if kind == "limited":
        assert np.abs(sol.states["wheels_rate"]).max() == 0.15
        assert np.abs(sol.states["wheels"]).max() == pytest.approx(0.4, abs=1e-14)
    else:
        assert np.abs(sol.omega[-1]).max() < 1e-6


def test_wheels_of_many_bodies():
    law = ph.controller(slewing, wheels=ph.actuators.wheels(AXES, **RUBBING | PYRAMID["limited"]))
    rng = np.random.default_rng(2)
    omega, limit = 0.2 * rng.normal(size=(19, 3)), rng.uniform(0.02, 0.2, (19, 4))
    run = {"method": "fem", "dt": 0.05, "steps": 100, "control": law, "period": PERIOD}
    many = ph.ensemble(PROBLEM, omega=omega, params={"wheels_max_torque": limit}, **run)
    np.testing.assert_array_less(np.abs(many.states["wheels_rate"]).max(0), limit + 2e-3 + 1e-3 * 60)
    wheels = ph.actuators.wheels(AXES, **RUBBING | {"max_momentum": 0.4, "max_torque": limit[5]})
    own = run | {"control": ph.controller(slewing, wheels=wheels)}
    alone = ph.solve(PROBLEM.starting(omega=omega[5]), **own)
    assert np.abs(many.states["wheels"][-1, 5] - alone.states["wheels"][-1]).max() < 1e-13
    assert np.abs(many.momentum[-1, 5] - alone.momentum[-1]).max() < 1e-13


def coasting(omega, wheels, motor=0.0):
    """One wheel with a constant motor torque."""
    return {"wheels": [motor]}


HEAVY = ph.Problem(ph.Body([1e9, 1e9, 1e9]), omega=[0.0, 0.0, 0.0])


def test_friction_stops_a_wheel():
    """The decay is that of J Omega' = -b Omega - c sign(Omega), to the first order in the period, and ends at rest."""
    J, b, c, h0 = 0.02, 2e-4, 1e-3, 0.05
    wheel = ph.actuators.wheels([[0, 0, 1]], momenta=h0, inertia=J, viscous=b, coulomb=c)
    sol = ph.solve(HEAVY, "fem", dt=0.01, t_end=80.0, control=ph.controller(coasting, wheels=wheel), period=0.01)
    exact = np.maximum((h0 + c * J / b) * np.exp(-b / J * sol.t) - c * J / b, 0.0)
    assert np.abs(sol.states["wheels"][:, 0] - exact).max() < 2e-5
    assert abs(sol.states["wheels"][-1, 0] - J * sol.omega[-1, 2]) < 1e-18  # at rest in the body, which it has turned
    stuck = ph.solve(HEAVY, "fem", dt=0.1, t_end=5.0, period=0.1, control=ph.controller(
        coasting, wheels=ph.actuators.wheels([[0, 0, 1]], inertia=J, coulomb=c))(motor=0.9 * c))  # fmt: skip
    assert np.abs(stuck.states["wheels"]).max() < 1e-17
    moved = ph.solve(HEAVY, "fem", dt=0.1, t_end=5.0, period=0.1, control=ph.controller(
        coasting, wheels=ph.actuators.wheels([[0, 0, 1]], inertia=J, coulomb=c))(motor=3 * c))  # fmt: skip
    assert moved.states["wheels"][-1, 0] == pytest.approx(2 * c * 5.0)


def magnetic(t):
    """The field along a polar orbit."""
    return 3e-5 * ph.math.cos(0.5 * t), 0.0, -6e-5 * ph.math.sin(0.5 * t)


def test_coils_take_momentum_out_of_wheels():
    @ph.controller(wheels=ph.actuators.wheels(momenta=[0.02, -0.01, 0.03]),
                   coils=ph.actuators.magnetorquer(magnetic, max_dipole=300.0))  # fmt: skip
    def dumping(t, R, omega, wheels, gain=0.5):
        e, b = error(R), R.T @ magnetic(t)
        dipole = gain / ph.math.dot(b, b) * ph.math.cross(wheels, b)
        return {"wheels": [e[i] + 2.0 * omega[i] for i in range(3)], "coils": dipole}

    sol = ph.solve(PROBLEM, "verner87", dt=0.05, t_end=200.0, control=dumping, period=PERIOD)
    assert np.abs(sol.states["coils"]).max() == 300.0
    L = np.linalg.norm(total_momentum(sol, np.eye(3)), axis=1)
    assert L[-1] < 0.05 * L[0]
    # the total momentum changes by the torque of the coils alone
    B = np.stack(np.broadcast_arrays(*magnetic(sol.t[-1])))
    torque = np.cross(sol.matrix[-1] @ sol.states["coils"][-1], B)
    h = 1e-4
    late = sol.at([sol.t[-2], sol.t[-2] + h])
    B0 = np.array(magnetic(late.t[0]))
    change = np.diff(total_momentum(late, np.eye(3)), axis=0)[0] / h
    assert (
        np.abs(change - np.cross(late.matrix[0] @ late.states["coils"][0], B0)).max()
        < 1e-6 + 1e-2 * np.abs(torque).max()
    )


JETS = 0.5 * np.vstack([np.eye(3), -np.eye(3)])


@ph.controller(jets=ph.actuators.thrusters(JETS, min_pulse=0.01))
def jetting(R, omega, period, stiffness=0.5, damping=1.0):
    """PD control by pulses."""
    e = error(R)
    on = [period * (-stiffness * e[i] - damping * omega[i]) / 0.5 for i in range(3)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


def test_pulses_of_thrusters():
    """No step crosses the end of a pulse: coarse and fine steps agree, though the torque jumps within them."""
    coarse, fine = (
        ph.solve(PROBLEM, "verner87", dt=dt, t_end=20.0, control=jetting, period=PERIOD) for dt in (0.1, 0.0125)
    )
    assert np.abs(coarse.momentum - fine.momentum[::8]).max() < 1e-12
    pulses = coarse.control.memory["jets"]
    assert (pulses[(pulses > 0)] >= 0.01).all()
    assert (pulses > 0).any(axis=0).all()
    assert np.abs(coarse.at(fine.t).momentum - fine.momentum).max() < 1e-12
    assert np.abs(coarse.omega[-1]).max() < 0.02


@pytest.mark.slow
def test_wheels_and_thrusters_to_a_tolerance():
    law = ph.controller(slewing, wheels=ph.actuators.wheels(AXES, **RUBBING))
    sol = ph.solve(PROBLEM, t_end=20.0, control=law, period=PERIOD, tol=1e-11)
    L = total_momentum(sol)
    assert np.abs(L - L[0]).max() < 1e-11
    fine = ph.solve(PROBLEM, "verner87", dt=0.0125, t_end=5.0, control=jetting, period=PERIOD)
    sol = ph.solve(PROBLEM, t_end=5.0, control=jetting, period=PERIOD, tol=1e-11)
    assert np.abs(sol.at(fine.t).momentum - fine.momentum).max() < 1e-11
    assert len(sol) > len(sol.control)  # steps that end with pulses


def test_the_impulse_of_a_pulse():
    """The momentum gained is torque times duration; a command beyond the period is the period."""
    still = ph.Problem(ph.Body([1.0, 1.0, 1.0]), omega=[0.0, 0.0, 0.0])

    def law(t, on):
        return {"jets": [on, 0.03, 0.009]}

    jets = ph.actuators.thrusters([[0.2, 0, 0], [0, 0.4, 0], [0, 0, 1.0]], min_pulse=0.01)
    for on, gained in ((0.05, 0.05), (0.1, 0.1), (0.5, 0.1), (-1.0, 0.0)):
        sol = ph.solve(still, "verner87", dt=0.05, t_end=1.0, control=ph.controller(law, jets=jets)(on), period=PERIOD)
        assert sol.momentum[-1] == pytest.approx([0.2 * gained * 10, 0.4 * 0.03 * 10, 0.0], abs=1e-14)


@ph.torque
def stopped(omega):
    """A torque that switches with the state."""
    return ph.where(omega[1] > 0.2, -0.02, 0.0), 0.0, 0.0


def blipping(pulse, plain=False):
    """Short pulses of three thrusters, one after another."""

    def law(t):
        return {"jets": [pulse, 0.7 * pulse, (1.0 + 1e-9) * pulse]}

    return ph.controller(law, plain=plain, jets=ph.actuators.thrusters(np.eye(3) / pulse / 100))


NEARBY = [(1e-4, 0.0, None), (1e-9, 0.0, stopped()), (1e-18, 0.0, None), (1e-4, 1e9, None), (1e-9, 1e9, None)]


@pytest.mark.parametrize(("pulse", "t0", "field"), NEARBY)
def test_pulses_near_the_spacing_of_times(pulse, t0, field):
    """Pulses have their full length, however coarse the doubles are at the time of the run: in all ways to a tolerance.

    The same pulses in equal steps are exact: parts of steps are not rounded to times.
    """
    problem = ph.Problem(BODY, field, omega=[0.1, -0.2, 0.3], t0=t0)
    run = {"t_end": t0 + 9.5, "period": 0.5}
    steps = ph.solve(problem, "verner87", dt=0.05, control=blipping(pulse), **run)
    ways = [(False, {"tol": 1e-9}), (False, {"step_tol": 1e-11})]
    for plain, to in [*ways, (True, {"step_tol": 1e-11})] if field is None else ways:
        sol = ph.solve(problem, control=blipping(pulse, plain), **run, **to)
        assert np.abs(sol.momentum[-1] - steps.momentum[-1]).max() < 1e-11
        assert np.abs(sol.quaternion[-1] - steps.quaternion[-1]).max() < 1e-11
        assert (np.diff(sol.t) > 0).all()
        between = sol.at(sol.control.t[1:] - 0.25)
        assert np.abs(between.momentum - steps.at(between.t).momentum).max() < 1e-11
    for _, to in ways:
        many = ph.ensemble(problem, control=blipping(pulse), **run, **to)
        assert np.abs(many.momentum[-1] - steps.momentum[-1]).max() < 1e-11


def test_thrusters_of_many_bodies():
    omega = 0.2 * np.random.default_rng(3).normal(size=(19, 3))
    run = {"method": "fem", "dt": 0.05, "steps": 100, "control": jetting, "period": PERIOD}
    many = ph.ensemble(PROBLEM, omega=omega, every=1, **run)
    for i in (0, 8, 18):
        alone = ph.solve(PROBLEM.starting(omega=omega[i]), **run)
        assert np.abs(many.momentum[:, i] - alone.momentum).max() < 1e-13


REFUSED = {
    "max_torque must not be negative": lambda: ph.actuators.wheels(max_torque=-1.0),
    "max_momentum must not be negative": lambda: ph.actuators.wheels(max_momentum=[1.0, 2.0, -1.0]),
    "inertia must be positive": lambda: ph.actuators.wheels(inertia=0.0),
    "also give inertia": lambda: ph.actuators.wheels(viscous=0.1),
    "momenta must not exceed max_momentum": lambda: ph.actuators.wheels(momenta=2.0, max_momentum=1.0),
    "axes must be rows of three numbers": lambda: ph.actuators.wheels([1.0, 2.0]),
    "the axis of a wheel must not be zero": lambda: ph.actuators.wheels([[0.0, 0.0, 0.0]]),
    "or one for each of 3": lambda: ph.actuators.wheels(coulomb=[1.0, 2.0], inertia=1.0),
    "torques must be rows of three numbers": lambda: ph.actuators.thrusters([1.0, 2.0, 3.0]),
    "min_pulse must not be negative": lambda: ph.actuators.thrusters([[1.0, 2.0, 3.0]], min_pulse=-0.1),
    "max_dipole must not be negative": lambda: ph.actuators.magnetorquer(magnetic, max_dipole=-1.0),
    "field must be a function of t": lambda: ph.actuators.magnetorquer(3.0),
    "must return three numbers; it returned 2": lambda: ph.actuators.magnetorquer(lambda t: (t, t)),
    "wheels in the shape of": lambda: ph.solve(
        PROBLEM, "fem", dt=0.1, t_end=1.0, period=0.1,
        control=ph.controller(lambda omega: {"wheels": [1.0, 2.0]}, wheels=ph.actuators.wheels()),
    ),
    "a torque .three numbers. and .'wheels': ...": lambda: ph.solve(
        PROBLEM, "fem", dt=0.1, t_end=1.0, period=0.1,
        control=ph.controller(lambda omega: (0.0, 0.0, 0.0), wheels=ph.actuators.wheels()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(ph.InputError, match=message):
        REFUSED[message]()
