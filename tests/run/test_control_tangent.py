"""Derivatives under sampled-data control: of the closed loop, against differences of runs."""

import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from representatives import slow_unless

TENSOR = np.array([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]])
START = {"euler": ("XYZ", [0.5, 1.0, -0.7]), "omega": [0.1, -0.2, 0.3]}
PROBLEM = ph.Problem(ph.Body(TENSOR), ph.fields.linear_drag(0.1), **START)
SMALL = 1e-6
"""Changes of which differences are taken: their relative errors are about 1e-12 and 1e-16/1e-6."""


def error(R):
    """The axis of the attitude error, times the sine of its angle."""
    return (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2


@ph.controller(integral=[0.1, 0.0, -0.2])
def pid(t, R, omega, integral, period, stiffness=1.0, damping=2.0):
    """PID control, and a push that depends on time."""
    e = error(R)
    new = [integral[i] + period * e[i] for i in range(3)]
    torque = [-stiffness * e[i] - damping * omega[i] - 0.1 * new[i] for i in range(3)]
    return (torque[0], torque[1], torque[2] + 0.1 * ph.math.sin(t)), {"integral": new}


@ph.controller
def clipped(R, omega, stiffness=1.0, damping=2.0, limit=0.3):
    """PD control with a limit, which acts on some of the axes for some of the time."""
    e = error(R)
    wanted = [-stiffness * e[i] - damping * omega[i] for i in range(3)]
    return [ph.where(x > limit, limit, ph.where(x < -limit, -limit, x)) for x in wanted]


WHEELS = {"max_torque": 0.3, "max_momentum": 0.5, "inertia": 0.05, "viscous": 2e-3, "coulomb": 3e-3}


@ph.controller(wheels=ph.actuators.wheels(momenta=[0.3, -0.2, 0.1], **WHEELS))
def turning(R, omega, wheels, stiffness=1.0, damping=2.0):
    """PD control by wheels with limits and friction."""
    e = error(R)
    return {"wheels": [stiffness * e[i] + damping * omega[i] for i in range(3)]}


@ph.controller(jets=ph.actuators.thrusters(2.0 * np.vstack([np.eye(3), -np.eye(3)])))
def pulsing(R, omega, period, stiffness=1.0, damping=2.0):
    """PD control by the lengths of pulses, which end within steps."""
    e = error(R)
    on = [-period * (stiffness * e[i] + damping * omega[i]) / 2.0 for i in range(3)]
    return {"jets": [*on, -on[0], -on[1], -on[2]]}


def field(t):
    """A magnetic field that turns."""
    return ph.math.cos(0.5 * t), 0.3, -ph.math.sin(0.5 * t)


@ph.controller(coils=ph.actuators.magnetorquer(field, max_dipole=0.5))
def dumping(t, R, omega, stiffness=1.0, damping=2.0):
    """Dipoles against the attitude error, with a limit."""
    e, b = error(R), R.T @ field(t)
    return {"coils": ph.math.cross(b, [-stiffness * e[i] - damping * omega[i] for i in range(3)])}


LAWS = {"memory": pid, "limit": clipped, "wheels": turning, "thrusters": pulsing, "coils": dumping}
RUN = {"method": "fem", "dt": 0.05, "t_end": 2.0, "period": 0.2}


def difference(sol, plus, minus):
    """Derivatives (n, 6) of the states of `sol` from two runs with changes +-SMALL."""
    turns = [Rotation.from_matrix(np.einsum("nji,njk->nik", sol.matrix, x.matrix)).as_rotvec() for x in (plus, minus)]
    return np.hstack([turns[0] - turns[1], plus.momentum - minus.momentum]) / (2 * SMALL)


def changed(problem, law, run, **change):
    """The run of a changed problem or controller."""
    turn, momentum, tensor = (change.pop(name, 0.0) for name in ("turn", "momentum", "tensor"))
    attitude = Rotation.from_quat(problem.quaternion, scalar_first=True)
    if np.any(turn):
        attitude = attitude * Rotation.from_rotvec(turn)
    body = ph.Body(problem.body.inertia + tensor) if np.any(tensor) else problem.body
    start = {"attitude": attitude.as_quat(scalar_first=True), "momentum": np.add(problem.momentum, momentum)}
    return ph.solve(ph.Problem(body, problem.field, **start), control=law(**change), **run)


def by_differences(sol, problem, law, run, **change):
    """Derivatives (n, 6) along a change of the data, which is the given one times a number."""
    runs = (changed(problem, law, run, **{k: s * SMALL * np.asarray(x) for k, x in change.items()}) for s in (1, -1))
    return difference(sol, *runs)


def check(found, expected):
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def check_all(problem, law, run):
    """Check derivatives by initial state, inertia and stiffness."""
    sol = ph.solve(problem, control=law, tangent=True, **run)
    assert sol.tangent.matrix.shape == (len(sol), 6, 6)
    for i, unit in enumerate(np.eye(3)):
        check(sol.tangent.matrix[:, :, i], by_differences(sol, problem, law, run, turn=unit))
        check(sol.tangent.matrix[:, :, 3 + i], by_differences(sol, problem, law, run, momentum=unit))
    variation = np.array([[0.3, 0.1, 0.05], [0.1, -0.2, 0.07], [0.05, 0.07, 0.4]])
    if sol.tangent.inertia.ndim == 3:
        variation = np.diag(np.diag(variation))
        found = sol.tangent.inertia @ np.diag(variation)
    else:
        found = np.einsum("nkij,ij->nk", sol.tangent.inertia, variation)
    check(found, by_differences(sol, problem, law, run, tensor=variation))
    check(sol.tangent.params["stiffness"], along(sol, problem, law, run, "stiffness", 1.0))
    return sol


def along(sol, problem, law, run, name, value, unit=1.0):
    """Derivatives (n, 6) along a parameter of the controller."""
    runs = (changed(problem, law, run, **{name: value + s * SMALL * np.asarray(unit)}) for s in (1, -1))
    return difference(sol, *runs)


@pytest.mark.parametrize("law", slow_unless(["limit", "thrusters"], LAWS))
def test_derivatives_are_those_of_differences(law):
    sol = check_all(PROBLEM, LAWS[law], RUN)
    assert not {"period", "clock", "torque"} & set(sol.tangent.params)
    if law == "memory":
        found = sol.tangent.params["integral"] @ [1.0, -2.0, 0.5]
        check(found, along(sol, PROBLEM, pid, RUN, "integral", np.array([0.1, 0.0, -0.2]), [1.0, -2.0, 0.5]))
    if law == "limit":
        torque = np.abs(sol.control.torque)
        assert (torque == 0.3).any()
        assert (torque < 0.3).any()
        check(sol.tangent.params["limit"], along(sol, PROBLEM, clipped, RUN, "limit", 0.3))
    if law == "wheels":
        assert np.abs(sol.states["wheels"]).max() == pytest.approx(0.5, abs=1e-14)


@pytest.mark.parametrize("method", slow_unless(["imidm"], ["imidm", "strang(dmv6)", "verner87"]))
@pytest.mark.parametrize("law", ["memory", pytest.param("thrusters", marks=pytest.mark.slow)])
def test_every_kind_of_step(method, law):
    """Principal moments, two of them equal; steps whose lengths depend on the state."""
    body = ph.Body([1.0, 2.0, 2.5] if method == "strang(dmv6)" else [1.0, 2.0, 2.0])
    check_all(ph.Problem(body, **START), LAWS[law], RUN | {"method": method, "dt": 0.1})


@pytest.mark.slow
def test_equal_moments_in_other_axes():
    turn = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()
    check_all(ph.Problem(ph.Body(turn @ np.diag([1.0, 2.0, 2.0]) @ turn.T), **START), turning, RUN)


@functools.cache
def fixed():
    return ph.solve(PROBLEM, control=pid, tangent=True, **RUN | {"method": "verner87"})


@pytest.mark.slow
def test_thrusters_to_a_tolerance():
    """Adaptive steps end where a thruster is switched off, which depends on the state before."""
    run = {"control": pulsing, "tangent": True, "t_end": 2.0, "period": 0.2}
    few, sol = ph.solve(PROBLEM, "verner87", dt=0.1, **run), ph.solve(PROBLEM, tol=1e-11, **run)
    assert sol.tangent.matrix.shape == (len(sol), 6, 6)
    np.testing.assert_allclose(sol.tangent.at(few.t).matrix, few.tangent.matrix, atol=1e-9)
    np.testing.assert_allclose(sol.tangent.at(few.t).params["damping"], few.tangent.params["damping"], atol=1e-9)


@pytest.mark.parametrize("how", slow_unless(["tol"], ["tol", "step_tol"]))
def test_to_a_tolerance(how):
    sol = ph.solve(PROBLEM, control=pid, tangent=True, t_end=2.0, period=0.2, **{how: 1e-11})
    kept = sol.at(fixed().t)
    np.testing.assert_allclose(kept.tangent.matrix, fixed().tangent.matrix, atol=1e-9)
    np.testing.assert_allclose(kept.tangent.params["damping"], fixed().tangent.params["damping"], atol=1e-9)
    assert sol.tangent.error < 1e-9


def test_kept_states():
    """Some steps, given times, and events have the derivatives of the run."""
    sol, given = fixed(), {"control": pid, "tangent": True, **RUN, "method": "verner87"}
    third = ph.solve(PROBLEM, every=3, **given)
    chosen = [*range(0, 40, 3), 40]
    np.testing.assert_array_equal(third.tangent.matrix, sol.tangent.matrix[chosen])
    fine = ph.solve(PROBLEM, **given | {"dt": 0.0125})
    times = fine.t[[3, 16, 17, 101, 160]]
    some = ph.solve(PROBLEM, times=times, **given)
    np.testing.assert_allclose(some.tangent.matrix, fine.tangent.matrix[[3, 16, 17, 101, 160]], atol=1e-10)
    np.testing.assert_allclose(some.tangent.inertia, fine.tangent.inertia[[3, 16, 17, 101, 160]], atol=1e-10)
    np.testing.assert_array_equal(some.tangent.symplectic_defect.shape, (5,))
    event = ph.event(lambda omega: omega[0] - 0.05)
    seen = ph.solve(PROBLEM, events=[event], **given).events[0]
    assert len(seen) > 0
    np.testing.assert_allclose(seen.tangent.matrix, sol.tangent.at(seen.t).matrix, atol=1e-14)
    assert sol.tangent.covariance(np.full(6, 1e-3), params={"stiffness": 0.1}).sigma.shape == (41, 6)


def test_a_field_of_its_own_has_parameters_too():
    sol = fixed()
    assert list(sol.tangent.params) == ["coefficients", "stiffness", "damping", "integral"]
    runs = (
        ph.solve(
            ph.Problem(ph.Body(TENSOR), ph.fields.linear_drag(0.1 + s * SMALL), **START),
            control=pid, **RUN | {"method": "verner87"},
        ) for s in (1, -1)
    )  # fmt: skip
    found = sol.tangent.params["coefficients"].reshape(len(sol), 6, -1).sum(-1)
    check(found, difference(sol, *runs))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"control": lambda omega: np.clip(-omega, -1.0, 1.0)}, "tangent=True needs a controller that is a formula"),
        ({"out": "x.zarr"}, "leave out `out` or `tangent`"),
        ({"digits": 30}, "digits is not available with control"),
    ],
)
def test_what_has_no_derivatives_is_refused(given, sentence):
    with pytest.raises(ph.InputError, match=sentence):
        ph.solve(PROBLEM, **{"control": pid, "tangent": True, **RUN, **given})


def test_a_field_with_jumps_in_the_state_is_refused():
    @ph.torque
    def relay(omega):
        return (ph.where(omega[0] > 0, -1.0, 1.0), 0.0, 0.0)

    problem = ph.Problem(ph.Body(TENSOR), relay(), **START)
    for how in ({"method": "fem", "dt": 0.05}, {"tol": 1e-9}):
        with pytest.raises(ph.InputError, match="tangent=True with control needs a field that is smooth in the state"):
            ph.solve(problem, control=pid, period=0.2, t_end=2.0, tangent=True, **how)
