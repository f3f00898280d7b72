"""One step inside somebody else's loop."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode._memo import MADE
from polhode.compile import program
from polhode.methods.queries import MotionSeries, TorqueRates
from polhode.run import stepper
from polhode.run.stepper import State

pytestmark = pytest.mark.xdist_group("stepper")

BODY = ph.Body([1.0, 2.0, 2.5])
TENSOR = Rotation.from_rotvec([0.7, -1.1, 0.4]).as_matrix()
OWN = ph.Body(TENSOR @ np.diag([1.0, 2.0, 2.5]) @ TENSOR.T)
ATTITUDE = Rotation.from_rotvec([0.4, -0.3, 0.8])
PUSH = (0.3, -0.2, 0.5)


@ph.torque
def held(t, T):
    return T


@ph.torque(frame="space")
def held_in_space(t, T):
    return T


@ph.torque
def general(t, R, omega, k):
    return (k * R[2][1] - k * omega[0] / 8, k * math.cos(t), -k * R[0][2] * omega[1])


@ph.torque
def until(t, end):
    return (math.sqrt(end - t), 0, 0)


TWICE = 2.0


@ph.torque
def doubled(k):
    return (TWICE * k, 0, 0)


def start(body: ph.Body, field: Any = None) -> ph.Problem:
    return ph.Problem(body, field, attitude=ATTITUDE, omega=[0.9, -0.4, 0.6], t0=0.25)


def stepped(body: ph.Body, torque: Any, steps: int, frame: str = "body") -> np.ndarray:
    first = start(body)
    step = ph.stepper(body, "imidm", 0.0625).step
    state: Any = (first.quaternion, first.momentum, first.t0)
    rows = []
    for _ in range(steps):
        state = step(state, torque, frame)
        rows.append((*state.quaternion, *state.momentum, state.t))
    return np.array(rows)


def solved(body: ph.Body, field: Any, steps: int) -> np.ndarray:
    sol = ph.solve(start(body, field), "imidm", dt=0.0625, steps=steps)
    return np.column_stack([sol.quaternion, sol.momentum, sol.t])[1:]


@pytest.mark.usefixtures("plain_first")
def test_held_torque_is_the_constant_field() -> None:
    """To the last bit where the axes are principal."""
    np.testing.assert_array_equal(stepped(BODY, PUSH, 100), solved(BODY, held(PUSH), 100))


@pytest.mark.usefixtures("plain_first")
def test_held_in_space() -> None:
    np.testing.assert_allclose(stepped(BODY, PUSH, 100, "space"), solved(BODY, held_in_space(PUSH), 100), atol=1e-13)


@pytest.mark.parametrize("frame", ["body", "space"])
@pytest.mark.usefixtures("plain_first")
def test_own_axes(frame: str) -> None:
    """A turned copy of a body moves as the body does."""
    first = start(BODY)
    turn = Rotation.from_matrix(TENSOR)
    plain: Any = (first.quaternion, first.momentum)
    turned: Any = ((ATTITUDE * turn.inv()).as_quat(scalar_first=True), TENSOR @ first.momentum)
    torque = np.array(PUSH)
    for _ in range(50):
        plain = ph.stepper(BODY, "imidm", 0.0625).step(plain, torque, frame)
        turned = ph.stepper(OWN, "imidm", 0.0625).step(turned, TENSOR @ torque if frame == "body" else torque, frame)
    np.testing.assert_allclose(turned.momentum, TENSOR @ plain.momentum, atol=1e-13)
    a, b = (Rotation.from_quat(s.quaternion, scalar_first=True).as_matrix() for s in (plain, turned))
    np.testing.assert_allclose(b, a @ TENSOR.T, atol=1e-13)


@pytest.mark.parametrize("body", [BODY, OWN])
@pytest.mark.usefixtures("plain_first")
def test_field(body: ph.Body) -> None:
    np.testing.assert_allclose(stepped(body, general(0.4), 100), solved(body, general(0.4), 100), atol=1e-13)


@pytest.mark.usefixtures("plain_first")
def test_new_parameters_of_a_formula_have_the_bits_of_a_new_stepper(monkeypatch) -> None:
    spun = ph.fields.gyrostat([0.1, 0.0, 0.2]) + general(0.4)
    for body, field, change in ((BODY, general(0.4), "k"), (OWN, spun, "k"), (BODY, spun, "motor")):
        step, state = ph.stepper(body, "imidm", 0.0625).step, start(body)
        now: Any = (state.quaternion, state.momentum, 0.25)
        for i in range(4):
            new = field.bind(**{change: 0.1 * i if change == "k" else (0.1 * i, 0.0, 0.0)})
            other = ph.stepper(body, "imidm", 0.0625).step(now, new)
            if i:
                with monkeypatch.context() as only:
                    only.setattr(stepper, "Problem", None)  # which every other field is checked with
                    now = step(now, new)
            else:
                now = step(now, new)
            assert now == other


def test_new_parameters_are_checked_where_they_matter() -> None:
    """A field that fails, one for another body, and one whose function reads something new."""
    global TWICE
    step, state = step_of(BODY), GOOD
    step(state, until(0.2))
    with pytest.raises(ph.InputError, match=r"the torque until raised ValueError at the start .* end = -1\.0"):
        step(state, until(-1.0))
    pull = ph.fields.gravity_gradient(BODY, mu=1.0, radius=1.0)
    step(state, pull)
    with pytest.warns(ph.ResultWarning, match="another inertia"):
        step(state, ph.fields.gravity_gradient(ph.Body([1.0, 1.5, 2.0]), mu=1.0, radius=1.0))
    first, TWICE = step(state, doubled(0.5)), 4.0
    try:
        assert step(state, doubled(0.5)) == step(state, (2.0, 0.0, 0.0)) != first == step(state, (1.0, 0.0, 0.0))
    finally:
        TWICE = 2.0


@pytest.mark.usefixtures("plain_first")
def test_torque_may_change_from_step_to_step() -> None:
    """A held torque that follows a slow one converges to it: midpoint values make it second order."""
    step = ph.stepper(BODY, "imidm", 1 / 64).step
    state = State(start(BODY).quaternion, start(BODY).momentum, 0.0)
    for _ in range(64):
        state = step(state, (math.cos(state.t + 1 / 128), 0.0, 0.0))
    wave = ph.torque(lambda t: (math.cos(t), 0, 0))()
    free = start(BODY)
    sol = ph.solve(ph.Problem(BODY, wave, attitude=ATTITUDE, momentum=free.momentum), "imidm", dt=1 / 64, steps=64)
    np.testing.assert_allclose(state.momentum, sol.momentum[-1], atol=1e-14)


def test_backwards() -> None:
    """A symmetric method with -dt undoes its step."""
    first = start(BODY)
    there = ph.stepper(BODY, "imidm", 0.0625).step((first.quaternion, first.momentum, 1.0), PUSH)
    back = ph.stepper(BODY, "imidm", -0.0625).step(there, PUSH)
    np.testing.assert_allclose(back.quaternion, first.quaternion, atol=1e-15)
    np.testing.assert_allclose(back.momentum, first.momentum, atol=1e-15)
    assert back.t == 1.0


@pytest.mark.usefixtures("plain_first")
def test_state() -> None:
    """Plain floats in a named tuple; lists and arrays are taken too; single precision is made a rotation."""
    step = ph.stepper(BODY, "imidm", 0.0625).step
    first = start(BODY)
    states = [
        step((first.quaternion, first.momentum)),
        step((list(first.quaternion), np.array(first.momentum))),
        step(State(first.quaternion, first.momentum)),
        step(ph.State(first.quaternion, first.momentum, 0.0), (0, 0, 0)),
    ]
    assert all(s == states[0] for s in states)
    assert states[0].t == 0.0625
    assert all(type(x) is float for x in (*states[0].quaternion, *states[0].momentum, states[0].t))
    rough = step((np.array(first.quaternion, dtype=np.float32), first.momentum))
    np.testing.assert_allclose(rough.quaternion, states[0].quaternion, atol=1e-7)
    assert abs(math.hypot(*rough.quaternion) - 1) < 4e-16


def test_bodies_share_compiled_code() -> None:
    first = start(BODY)
    ph.stepper(BODY, "imidm", 0.0625).step((first.quaternion, first.momentum), PUSH)
    count = len(MADE.values())
    for moments in ([2, 3, 4], [5, 5, 1]):
        ph.stepper(ph.Body(moments), "imidm", 0.01).step((first.quaternion, first.momentum), PUSH)
    assert len(MADE.values()) == count


@pytest.mark.parametrize("torque", [PUSH, general(0.4)])
def test_a_step_makes_few_calls(torque: Any) -> None:
    """What a step costs beside the compiled one: 18 calls of functions today, C functions included."""
    step = ph.stepper(BODY, "imidm", 1e-3).step
    state = step((start(BODY).quaternion, start(BODY).momentum), torque)
    state = step(state, torque)
    calls = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        step(state, torque)
    finally:
        sys.setprofile(before)
    assert 2 < sum(event in ("call", "c_call") for event in calls) < 30


# --- the same methods as ph.solve ---------------------------------------------------------------------

BODIES = {
    "general": (ph.Body([1.0, 1.7, 2.3]), [0.4, -0.3, 0.5]),
    "flat": (ph.Body([0.6, 1.0, 1.6]), [0.4, -0.3, 0.5]),
    "linear": (ph.Body([1.0, 1.0, 0.0]), [0.4, -0.3, 0.0]),
    "spherical": (ph.Body([1.3, 1.3, 1.3]), [0.4, -0.3, 0.5]),
    "with axes of its own": (OWN, [0.4, -0.3, 0.5]),
}


@pytest.fixture
def in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run the kernels themselves, which takes no compiling."""
    monkeypatch.setattr(program, "program", lambda make, *shortcut: program.Program("", make(), True))


def stepped_once(body: ph.Body, name: str, problem: ph.Problem, torque: Any) -> Any:
    """The state after one step, or why there is none."""
    try:
        return ph.stepper(body, name, 0.0625).step((problem.quaternion, problem.momentum), torque)
    except ph.InputError as refusal:
        return str(refusal)


def solved_once(name: str, problem: ph.Problem) -> Any:
    """The trajectory of one step, or why there is none."""
    try:
        return ph.solve(problem, name, dt=0.0625, steps=1, progress=False)
    except ph.InputError as refusal:
        return str(refusal)


@pytest.mark.usefixtures("in_plain_python")
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("torque", [None, PUSH])
def test_every_method_is_taken_or_refused_as_by_solve(body: str, torque: Any) -> None:
    """With the same words where the body does not fit, and to the same bits where it does."""
    what, momentum = BODIES[body]
    if body == "linear" and torque:
        torque = (0.3, -0.2, 0.0)
    field = None if torque is None else held(torque)
    problem = ph.Problem(what, field, attitude=ATTITUDE, momentum=momentum)
    taken = 0
    for method in ph.methods.taking("free"):
        name = method.name
        if method.memory or method.compensated:
            continue
        ours, theirs = stepped_once(what, name, problem, torque), solved_once(name, problem)
        if isinstance(ours, str) or isinstance(theirs, str):
            assert isinstance(ours, str)
            assert isinstance(theirs, str)
            assert ours.split(";")[0] == theirs.split(";")[0] or "does not take a torque" in ours
            continue
        taken += 1
        tolerance = (
            1e-15
            if what.has_principal_rotation or method.asks.find(TorqueRates) or method.asks.find(MotionSeries)
            else 0
        )
        np.testing.assert_allclose(ours.quaternion, theirs.quaternion[-1], rtol=0, atol=tolerance, err_msg=name)
        np.testing.assert_allclose(ours.momentum, theirs.momentum[-1], rtol=0, atol=tolerance, err_msg=name)
    assert taken > (30 if torque else 50)


@pytest.mark.parametrize("name", ["dmv10", "jacobi"])
def test_free_flows_compiled(name: str) -> None:
    first = start(BODY)
    state: Any = (first.quaternion, first.momentum, first.t0)
    for _ in range(3):
        state = ph.stepper(BODY, name, 0.0625).step(state)
    sol = ph.solve(first, name, dt=0.0625, steps=3)
    np.testing.assert_array_equal(state.quaternion, sol.quaternion[-1])
    np.testing.assert_array_equal(state.momentum, sol.momentum[-1])


# --- bad input --------------------------------------------------------------------------------------

GOOD = ((1.0, 0.0, 0.0, 0.0), (1.0, 0.2, 0.5))
LINEAR = "a linear body neither rotates about its axis nor has momentum along it"
BAD: dict[str, tuple[Any, str]] = {
    "body": (
        lambda: ph.stepper([1, 2, 3], "imidm", 0.1),
        "body must be a ph.Body; got list. Write ph.Body([I1, I2, I3])",
    ),
    "dt": (lambda: ph.stepper(BODY, "imidm", 0), "dt must not be zero"),
    "dt nan": (lambda: ph.stepper(BODY, "imidm", math.nan), "dt must be finite; got nan"),
    "state": (
        lambda: step_of(BODY)(GOOD[0]),
        "state must be (quaternion, momentum) or (quaternion, momentum, t); got (1.0, 0.0, 0.0, 0.0)",
    ),
    "no state": (
        lambda: step_of(BODY)(None),
        "state must be (quaternion, momentum) or (quaternion, momentum, t); got None",
    ),
    "quaternion": (lambda: step_of(BODY)(((1, 0, 0), GOOD[1])), "quaternion must be four numbers; got (1, 0, 0)"),
    "quaternion norm": (
        lambda: step_of(BODY)(((2, 0, 0, 0), GOOD[1])),
        "attitude must be a unit quaternion (scalar first); its length is 2, so divide by it",
    ),
    "quaternion nan": (
        lambda: step_of(BODY)(((math.nan, 0, 0, 0), GOOD[1])),
        "attitude must be finite; got [nan, 0.0, 0.0, 0.0]",
    ),
    "momentum": (lambda: step_of(BODY)((GOOD[0], "abc")), "momentum must be three numbers; got 'abc'"),
    "momentum nan": (
        lambda: step_of(BODY)((GOOD[0], (math.inf, 0, 0))),
        "momentum must be finite; got [inf, 0.0, 0.0]",
    ),
    "t": (lambda: step_of(BODY)((*GOOD, math.nan)), "t must be finite; got nan"),
    "torque": (lambda: step_of(BODY)(GOOD, (1, 2)), "torque must be three numbers; got (1, 2)"),
    "torque nan": (lambda: step_of(BODY)(GOOD, (1, 2, math.nan)), "torque must be finite; got [1.0, 2.0, nan]"),
    "frame": (lambda: step_of(BODY)(GOOD, PUSH, "boddy"), "frame must be 'body' or 'space'; got 'boddy'"),
    "field not called": (
        lambda: step_of(BODY)(GOOD, general),
        "the field general has no parameters bound; call it: general(k)",
    ),
    "field that cannot be taken": (
        lambda: ph.stepper(BODY, "nmb", 0.1).step(GOOD, general(1.0)),
        "nmb takes torques T(t, R) only, and general(k=1.0) is a torque that depends on omega; methods that take it: "
        "verner87, ",
    ),
    "free flow": (
        lambda: ph.stepper(BODY, "dmv10", 0.1).step(GOOD, PUSH),
        "dmv10 does not take a torque that is constant over a step; methods that do: ",
    ),
    "flat body": (
        lambda: ph.stepper(ph.Body([0.6, 1.0, 1.6]), "mv_explicit", 0.1),
        "mv_explicit divides by half the difference between the sum of two moments and the third, which is zero",
    ),
    "linear body": (
        lambda: step_of(ph.Body([2, 2, 0]))(GOOD),
        f"{LINEAR}; momentum has the component 0.5 there, and it must be 0",
    ),
    "linear body, torque": (
        lambda: step_of(ph.Body([2, 2, 0]))((GOOD[0], (1, 0, 0)), PUSH),
        f"{LINEAR}; torque has the component 0.5 there, and it must be 0",
    ),
}  # fmt: skip


def step_of(body: ph.Body) -> Any:
    return ph.stepper(body, "imidm", 0.0625).step


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(ph.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_unsolved_step() -> None:
    message = (
        r"^imidm failed in one step from t = 0 with dt = 1e\+06: its equation was not solved "
        r"\(relative residual \d\.\de[+-]\d+\); try a smaller dt$"
    )
    with pytest.raises(ph.StepError, match=message):
        ph.stepper(BODY, "imidm", 1e6).step(GOOD)


def test_field_that_fails_later() -> None:
    field, step = until(0.2), step_of(BODY)
    state = step(step(step(GOOD, field), field), field)
    message = (
        r"^imidm failed in one step from t = 0\.1875 with dt = 0\.0625: the torque until raised ValueError "
        r"at t = 0\.25: math domain error; its parameters are end = 0\.2$"
    )
    with pytest.raises(ph.StepError, match=message):
        step(state, field)


# --- jumps ------------------------------------------------------------------------------------------

TURNED = ph.Body([[1.0, 0.1, 0.0], [0.1, 1.4, -0.1], [0.0, -0.1, 1.9]])


@ph.torque
def relay_and_burn(t, omega, k):
    return ph.where(omega[0] > 0.2, -k, k), ph.where(t < 1.03, 0.1, 0.0), 0.0


@pytest.mark.parametrize("dt", [0.1, -0.1])
@pytest.mark.parametrize(
    "field",
    [ph.fields.thruster([0.3, -0.2, 0.25], [[-1.17, -0.6], [0.55, 1.17]]), relay_and_burn(0.3)],
    ids=["in time", "in the state"],
)
def test_steps_end_at_jumps(field, dt, monkeypatch):
    """As those of `ph.solve`; jumps in time are found for some steps at once."""
    monkeypatch.setattr("polhode.run.stepper.WINDOW", 5)
    problem = ph.Problem(TURNED, field, omega=[0.3, 1.1, 0.7])
    sol = ph.solve(problem, "mkrk(rk4)", dt=dt, steps=15)
    step, state = ph.stepper(TURNED, "mkrk(rk4)", dt).step, ph.State(problem.quaternion, problem.momentum)
    for n in range(15):
        state = step(state, field)
        assert state.momentum == pytest.approx(sol.momentum[n + 1], abs=1e-13)
        assert state.quaternion == pytest.approx(sol.quaternion[n + 1], abs=1e-13)


def test_steps_that_cross_jumps_are_told():
    @ph.torque
    def equal(omega):
        return ph.where(omega[0] == 0.2, 1.0, 0.0), 0.0, 0.0

    state = ph.State((1.0, 0.0, 0.0, 0.0), (0.1, 0.2, 3.0))
    with pytest.warns(ph.ResultWarning, match="equal has conditions on the state .* use a smooth formula"):
        ph.stepper(TURNED, "mkrk(rk4)", 0.1).step(state, equal())


def test_a_motion_that_slides_is_told():
    @ph.torque
    def friction(omega):
        return tuple(ph.where(w > 0, -0.2, 0.2) for w in omega)

    state = ph.State((1.0, 0.0, 0.0, 0.0), (0.01, 0.02, 0.01))
    with pytest.warns(ph.ResultWarning, match="in 1 of 1 steps friction holds the motion on the surface of a jump"):
        ph.stepper(ph.Body([1.0, 1.0, 1.0]), "mkrk(rk4)", 0.5).step(state, friction())
