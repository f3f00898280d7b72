"""What is accepted: end times, attitudes in single precision, flat, linear and thin bodies, and any scale."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.kernels.so3 import exp, matrix, mul
from polhode.run.failures import UNRESOLVED
from polhode.run.step_count import number_of_steps
from python_loop import python_states

pytestmark = pytest.mark.xdist_group("errors")

BODY = ph.Body([1.0, 2.0, 2.5])


def problem(**start: Any) -> ph.Problem:
    return ph.Problem(BODY, **start)


@ph.potential
def spring(R, k):
    return k * (1 - R[2][2]) / 2


@pytest.mark.parametrize(
    ("t0", "dt", "t_end"),
    [(0.0, 0.1, 0.3), (0.0, 0.1, 1e6), (5.0, 1 / 3, 1005.0), (-2.0, 1e-3, 0.0), (0.0, 1e-9, 1.0), (1e6, 1e-2, 1e6 + 1)],
)
def test_whole_number_of_steps(t0: float, dt: float, t_end: float) -> None:
    start = problem(omega=[1, 0, 0], t0=t0)
    assert number_of_steps(start, dt, t_end, None) == round((t_end - t0) / dt)


@pytest.mark.parametrize(
    ("t0", "dt", "t_end"), [(0.0, 1 / 3, 1000.5), (7.0, 0.0123456789, 5e4), (-1.0, 1e-7, 3.00000005)]
)
def test_named_end_times_are_accepted(t0: float, dt: float, t_end: float) -> None:
    """Whoever follows the advice of the message succeeds."""
    start = problem(omega=[1, 0, 0], t0=t0)
    with pytest.raises(ph.InputError, match="the nearest t_end are") as caught:
        number_of_steps(start, dt, t_end, None)
    low, high, step = map(float, re.findall(r"are (\S+) and (\S+); to end at .* dt = (\S+)$", str(caught.value))[0])
    assert low < t_end < high
    assert step <= dt
    assert number_of_steps(start, step, t_end, None) == math.ceil((t_end - t0) / dt)
    counts = [number_of_steps(start, dt, x, None) for x in (low, high)]
    assert counts[1] == counts[0] + 1


def test_too_many_states_for_memory() -> None:
    with pytest.raises(ph.InputError, match=r"^keeping 9e\+14 states needs about .* GB, and this machine has .* GB; "
                                            r"keep fewer with every, or write to a file with out$"):  # fmt: skip
        ph.solve(problem(omega=[1.0, 0.1, 0.2]), "imidm", dt=0.01, steps=9 * 10**14)


def test_too_many_states_of_an_ensemble_for_memory() -> None:
    """Not even their numbers fit."""
    with pytest.raises(ph.InputError, match=r"needs about .* GB, and this machine has .* GB; keep fewer with every or"):
        ph.ensemble(problem(omega=[1.0, 0.1, 0.2]), "imidm", dt=0.01, steps=9 * 10**14, every=1)


def test_single_precision_attitudes_are_made_rotations() -> None:
    R = Rotation.from_rotvec([0.1, -0.7, 0.4])
    for given in (R.as_matrix().astype(np.float32), R.as_quat(scalar_first=True).astype(np.float32)):
        q = problem(attitude=given, omega=[1, 0, 0]).quaternion
        assert abs(math.hypot(*q) - 1) < 4e-16
        np.testing.assert_allclose(q, R.as_quat(scalar_first=True), atol=1e-7)


def test_flat_body() -> None:
    """I3 = I1 + I2 is legal, also when round-off makes it a little more."""
    assert ph.Body([0.1, 0.2, 0.1 + 0.2]).moments.sum() > 0
    sol = ph.solve(ph.Problem(ph.Body([1, 2, 3]), omega=[0.1, 1, 0.2]), "imidm", dt=0.01, steps=100)
    assert sol.drift()["spatial_momentum"] < 1e-13


LINEAR_AXES = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()


@pytest.mark.parametrize("method", [m.name for m in ph.methods.taking("free")])
@pytest.mark.parametrize("tensor", [False, True])
def test_linear_body(method: str, tensor: bool) -> None:
    """[I, I, 0] turns about a fixed axis, R0 exp(t omega): exactly, or with its order, or the method refuses."""
    inertia = np.diag([2.0, 2.0, 0.0])
    omega = np.array([0.3, -0.4, 0.0])
    if tensor:
        inertia, omega = LINEAR_AXES @ inertia @ LINEAR_AXES.T, LINEAR_AXES @ omega
    start = ph.Problem(ph.Body(inertia), attitude=Rotation.from_rotvec([1, 2, 3]), omega=omega)
    if not ph.methods[method].linear_bodies:
        with pytest.raises(ph.InputError, match="divides by the zero moment of a linear body"):
            ph.solve(start, method, dt=0.05, steps=20)
        return
    exact = matrix(mul(start.quaternion, exp(tuple(omega))))
    errors = []
    for dt in (0.1, 0.05):
        (q, m, *_), residual = python_states(start, method, dt, round(1 / dt))
        assert residual is None
        q, m = start.user_axes(q, m)
        errors.append(np.linalg.norm(np.array(matrix(q)) - exact, 2))
        np.testing.assert_allclose(m, inertia @ omega, atol=1e-15)
    order = ph.methods[method].order_free
    assert errors[1] < 2e-14 or abs(np.log2(errors[0] / errors[1]) - order) < 0.1


@pytest.mark.usefixtures("plain_first")
def test_linear_body_with_a_field() -> None:
    """A dumbbell on a spring is a spherical pendulum; compared with the equations of its axis, u'' = -|u'|^2 u + ..."""
    from scipy.integrate import solve_ivp

    start = ph.Problem(
        ph.Body([2, 2, 0]), spring(3.0), attitude=Rotation.from_rotvec([0.5, 0.2, 0]), omega=[0.3, -0.4, 0]
    )
    sol = ph.solve(start, "imidm", dt=1e-3, steps=2000, every=2000)
    u0 = sol.matrix[0][:, 2]
    v0 = sol.matrix[0] @ np.cross(sol.omega[0], [0, 0, 1])

    def pendulum(t: float, y: np.ndarray) -> np.ndarray:
        u, v = y[:3], y[3:]
        force = np.array([0, 0, 1.5]) / 2
        return np.concatenate([v, force - (force @ u) * u - (v @ v) * u])

    exact = solve_ivp(pendulum, (0, 2), np.concatenate([u0, v0]), rtol=1e-12, atol=1e-12).y[:3, -1]
    np.testing.assert_allclose(sol.matrix[-1][:, 2], exact, atol=1e-6)
    np.testing.assert_allclose(sol.momentum[:, 2], 0, atol=1e-15)
    assert abs(sol.energy[-1] - sol.energy[0]) < 1e-6


# --- scale ------------------------------------------------------------------------------------------


@ph.torque
def general(t, R, omega, k):
    return (k * R[2][1] - k * omega[0] / 8, k * math.cos(t), -k * R[0][2] * omega[1])


@pytest.mark.parametrize("power", [-46, -10, 10, 66])
@pytest.mark.usefixtures("plain_first")
def test_scale_of_inertia(power: int) -> None:
    """Moments of 1e-14, 1e3 and 7e19 give the same motion, to the last bit where the factor is a power of two."""
    one, other = (
        ph.solve(
            ph.Problem(ph.Body(s * np.array([1, 2, 2.5])), general(0.7 * s), momentum=s * np.array([1, 0.1, 0.2])),
            "imidm", dt=0.05, steps=200,
        )
        for s in (1.0, 2.0**power)
    )  # fmt: skip
    np.testing.assert_array_equal(one.quaternion, other.quaternion)
    np.testing.assert_array_equal(one.momentum * 2.0**power, other.momentum)
    np.testing.assert_array_equal(one.energy * 2.0**power, other.energy)
    assert one.drift() == other.drift()


@pytest.mark.parametrize("power", [-40, 40])
def test_scale_of_time(power: int) -> None:
    """Seconds or picoseconds: the same motion, to the last bit."""
    s = 2.0**power
    one, other = (
        ph.solve(problem(omega=np.array([1, 0.1, 0.2]) / c, t0=0.0), "imidm", dt=0.05 * c, steps=200) for c in (1.0, s)
    )
    np.testing.assert_array_equal(one.quaternion, other.quaternion)
    np.testing.assert_array_equal(one.t * s, other.t)


@pytest.mark.parametrize("scale", [1e-14, 1e3, 1e20])
@pytest.mark.usefixtures("plain_first")
def test_odd_scales(scale: float) -> None:
    one, other = (
        ph.solve(ph.Problem(ph.Body(s * LINEAR_AXES @ np.diag([1, 2, 2.5]) @ LINEAR_AXES.T), omega=[1, 0.1, 0.2]),
                 "imidm", dt=0.05, steps=200)
        for s in (1.0, scale)
    )  # fmt: skip
    np.testing.assert_allclose(one.quaternion, other.quaternion, atol=1e-13)
    size = scale * np.linalg.norm(one.momentum[0])
    np.testing.assert_allclose(one.momentum * scale, other.momentum, rtol=0, atol=1e-13 * size)


def test_needle() -> None:
    """Moments (1, 1, 1e-6): precession with L/I1 and spin about the axis, reached with the order of the method."""
    start = ph.Problem(ph.Body([1.0, 1.0, 1e-6]), omega=[0.3, 0.4, 2.0])
    spin = (1 / 1e-6 - 1) * start.momentum[2]
    exact = (Rotation.from_rotvec(start.spatial_momentum) * Rotation.from_rotvec([0, 0, spin])).as_matrix()
    errors = []
    for steps in (2000, 4000, 8000):
        sol = ph.solve(start, "imidm", dt=1 / steps, steps=steps, every=steps)
        errors.append(np.linalg.norm(sol.matrix[-1] - exact, 2))
        assert sol.drift()["spatial_momentum"] < 1e-12
    assert errors[0] < 0.02
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 4, rtol=0.01)


SLENDER = {
    "needle": [1e-6, 1.0, 1.0],
    "thin needle": [1.0, 1.0, 1e-8],
    "rod": [1.0, 1.0, 1e-6],
    "bar": [1e-3, 1.0, 1.0],
}
LONG = {"dt": 2.5e-3, "steps": 400}


def spinning(moments: list[float]) -> ph.Problem:
    return ph.Problem(ph.Body(moments), omega=[0.3, 1.1, -0.7])


def told(run: Callable[[], object]) -> bool:
    """Does a run say that its steps do not follow the body?"""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run()
    return any("do not follow a body" in str(one.message) for one in said)


@pytest.mark.parametrize("method", [m.name for m in ph.methods.taking("free") if m.has_step])
@pytest.mark.parametrize("body", SLENDER)
def test_steps_that_do_not_follow_a_slender_body_are_told(method: str, body: str) -> None:
    """The free motion is known: an error of order 1 is told, and a motion that is right is not."""
    start = spinning(SLENDER[body])
    momentum = float(np.linalg.norm(start.momentum))
    smallest, largest = min(SLENDER[body]), max(SLENDER[body])
    assert momentum * (1 / smallest - 1 / largest) * LONG["dt"] > UNRESOLVED
    error = math.nan

    def run() -> None:
        nonlocal error
        end = ph.solve(start, method, **LONG).matrix[-1]
        error = float(np.linalg.norm(end - ph.exact(start, [1.0]).matrix[-1], 2))

    try:
        said = told(run)
    except ph.StepError:
        return
    assert not (said and error < 0.02)
    assert said or error < 0.2


def by_a_controller(start: ph.Problem, method: str) -> object:
    return ph.solve(start, method, **LONG, control=lambda omega: [-1e-9 * w for w in omega], period=LONG["dt"])


def of_a_body_at_rest(start: ph.Problem, method: str) -> object:
    """The torque makes the body turn."""
    push = ph.fields.constant_torque([0.0, 3.0, 3.0])
    return ph.solve(ph.Problem(start.body, push, omega=[0.0, 1e-9, 0.0]), method, **LONG)


def by_a_stepper(start: ph.Problem, method: str) -> object:
    step, state = ph.stepper(start.body, method, LONG["dt"]).step, ph.State(start.quaternion, (0.0, 0.0, 0.0))
    for _ in range(3):
        state = step(state)
    state = ph.State(start.quaternion, start.momentum)
    for _ in range(5):
        state = step(state, torque=(0.0, 0.0, 1e-9))
    return state


def by_a_batch_stepper(start: ph.Problem, method: str, masses: float | None = None, **form: Any) -> object:
    """The first body is an ordinary one, and both turn from the fourth call on."""
    stepper = ph.batch_stepper([[1.0, 1.4, 1.9], start.body.moments], method, LONG["dt"], masses=masses, **form)
    q, pi = np.tile(start.quaternion, (2, 1)), np.zeros((2, 3))
    moved = () if masses is None else (np.zeros((2, 3)), np.zeros((2, 3)))
    for k in range(8):
        pi[:] = start.omega if "vector" in form else start.momentum
        pi *= k > 2
        stepper.step(*moved, q, pi)
    return q


WAYS: dict[str, Callable[[ph.Problem, str], object]] = {
    "stepper": by_a_stepper,
    "batch stepper": by_a_batch_stepper,
    "batch stepper, omega": lambda start, method: by_a_batch_stepper(start, method, vector="omega", scalar="last"),
    "batch stepper, translation": lambda start, method: by_a_batch_stepper(start, method, masses=1.0),
    "one": lambda start, method: ph.solve(start, method, **LONG),
    "one backwards": lambda start, method: ph.solve(start, method, dt=-LONG["dt"], steps=400),
    "states at times": lambda start, method: ph.solve(start, method, dt=LONG["dt"], times=[0.5, 1.0]),
    "potential": lambda start, method: ph.solve(
        ph.Problem(start.body, ph.fields.gravity(1e-3), omega=start.omega), method, **LONG
    ),
    "controller": by_a_controller,
    "body at rest": of_a_body_at_rest,
    "many": lambda start, method: ph.ensemble(
        [[1.0, 1.4, 1.9], start.body.moments], None, [[1.0, 0.0, 0.0], start.momentum], method, **LONG
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_tells_of_slender_bodies(way: str) -> None:
    start, ordinary = spinning([1e-6, 1.0, 1.0]), spinning([1.0, 1.4, 1.9])
    assert told(lambda: WAYS[way](start, "mkrk(rk4)"))
    assert not told(lambda: WAYS[way](ordinary, "mkrk(rk4)"))


def test_an_ensemble_names_the_slender_body() -> None:
    with pytest.warns(ph.ResultWarning, match=r"^body 1: steps of mkrk\(rk4\) with dt = 0\.0025 do not follow a body "
                                              r"whose moments differ by a factor of 1e\+06: without a torque, its "
                                              r"attitude would be off by 0\.2"):  # fmt: skip
        WAYS["many"](spinning([1e-6, 1.0, 1.0]), "mkrk(rk4)")


@pytest.mark.parametrize("way", [by_a_stepper, by_a_batch_stepper])
def test_a_stepper_tells_once(way: Callable[[ph.Problem, str], object]) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        way(spinning([1e-6, 1.0, 1.0]), "mkrk(rk4)")
    (one,) = said
    assert str(one.message).removeprefix("body 1: ").startswith("steps of mkrk(rk4) with dt = 0.0025 do not follow")
    assert "give tol" not in str(one.message)
    assert one.filename == __file__


def slow(power: int, exponent: int) -> dict[str, Any]:
    """A body with moments 2^power that turns with 2^exponent, and a time in which it turns by about a radian."""
    return {"moments": np.ldexp([1.0, 2.0, 2.5], power), "omega": np.ldexp([0.1, 1.0, 0.2], exponent)}


@pytest.mark.parametrize(("power", "exponent"), [(-200, -1000), (-200, -874), (0, -1060), (330, 800)])
@pytest.mark.parametrize("way", ["problem", "space", "starting", "propagator", "ensemble"])
def test_momentum_out_of_range(way: str, power: int, exponent: int) -> None:
    """I omega below the range of doubles loses digits, or is 0; above it, it is infinite."""
    given = slow(power, exponent)
    body, omega = ph.Body(given["moments"]), given["omega"]
    calls = {
        "problem": lambda: ph.Problem(body, omega=omega),
        "space": lambda: ph.Problem(body, spatial_omega=omega, euler_deg=("ZXZ", [0, 17, 0])),
        "starting": lambda: ph.Problem(body, omega=[0, 0, 0]).starting(omega=omega),
        "propagator": lambda: ph.propagator(ph.Problem(body, omega=[0, 0, 0]), tol=1e-9)(omega=omega, t_end=1.0),
        "ensemble": lambda: ph.ensemble(given["moments"], omega=[[0, 0, 0], omega], method="imidm", dt=1.0, steps=1),
    }
    with pytest.raises(ph.InputError, match=r"omega.* gives an angular momentum outside the range of doubles"):
        calls[way]()


@pytest.mark.parametrize(("power", "exponent"), [(-200, -815), (0, -1015), (330, 400)])
def test_momentum_just_in_range(power: int, exponent: int) -> None:
    one, other = (
        ph.solve(ph.Problem(ph.Body(x["moments"]), omega=x["omega"]), tol=1e-9, t_end=math.ldexp(1.0, -k))
        for k, x in ((0, slow(0, 0)), (exponent, slow(power, exponent)))
    )
    np.testing.assert_array_equal(one.quaternion[-1], other.quaternion[-1])


def test_faint_momentum_about_another_axis() -> None:
    """A momentum below the range about an axis that hardly turns changes nothing."""
    body = ph.Body([1e-12, 1.0, 1.0])
    sol = ph.solve(ph.Problem(body, omega=[1e-300, 1.0, 0.0]), tol=1e-9, t_end=1.0)
    np.testing.assert_allclose(sol.quaternion[-1], [math.cos(0.5), 0, math.sin(0.5), 0], atol=1e-15)


def test_own_steps_far_from_unit_time() -> None:
    """Steps that follow from the motion take products of angular velocities, which would underflow."""
    with pytest.raises(ph.InputError, match="dt must lie between"):
        ph.solve(problem(omega=[1e-160, 1e-160, 0.0]), "reversible(imidm)", dt=1e159, steps=3)
