"""Torques that are no formulas: compiled as they stand, or called as plain Python; their uses and refusals."""

import json
import math
import types
import warnings

import numpy as np
import pytest

import polhode as ph
from polhode.errors import SpeedWarning
from polhode.physics.fields.untraced import COMPILED as AS_IT_STANDS
from polhode.results.store import trajectory_store
from polhode.run.ensemble import one_by_one
from polhode.run.integrator import prepare
from polhode.symbolic.returns import with_returns_through
from polhode.symbolic.snapshot import frozen

BODY, OMEGA = ph.Body([1.0, 2.0, 2.5]), [1.0, 0.1, 0.2]
TABLE = [[0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.3]]
KNOTS = np.linspace(0.0, 1.0, 5)
LONG = [0.01 * i for i in range(200)]
GAIN = 1.0
RUN = {"dt": 0.01, "t_end": 1.0}
ROTATION = ((0.0, -1.0, 0.0), (0.6, 0.0, -0.8), (0.8, 0.0, 0.6))


def problem(field, **start):
    return ph.Problem(BODY, field, **({"omega": OMEGA} | start))


def switched(t, omega, k):
    """Two types of return, of which a compiler makes one."""
    if t > 0.5:
        return (math.sin(t), 0, 0)
    return -k * omega


branch, declared_plain = ph.torque(switched), ph.torque(switched, plain=True)


@ph.torque
def formula(t, omega, k):
    return [ph.where(t > 0.5, (math.sin(t), 0.0, 0.0)[i], -k * omega[i]) for i in range(3)]


def clipped(x):
    return x if abs(x) < 0.15 else math.copysign(0.15, x)


def with_helper(omega, k):
    return (clipped(-k * omega[0]), clipped(-k * omega[1]), clipped(-k * omega[2]))


def with_loop(t, omega):
    left, total = t + 2.5, 0.0
    while left > 0:
        total += 0.1
        left -= 1.0
    return total * omega


def with_table(t):
    return TABLE[int(t) % 3]


def with_long_table(t, R):
    return (LONG[int(10 * abs(t))], KNOTS[1], R[0, 1])


def with_numpy(R, omega):
    return np.cross(R.T @ np.array([0.0, 0.0, 1.0]), KNOTS[1:4]) - 0.1 * np.linalg.norm(omega) * omega


def unpacked(omega, c=((1.0, 2.0), (3.0,))):
    a, b, d = omega
    return (-c[1][0] * a if a > 0 else a, b, d)


def with_ph_math(t, R, omega):
    if ph.math.norm(omega) > 100:
        return omega
    return 0.1 * ph.math.cross(R[2], omega) * ph.where(t > 0, 1.0, 2.0)


COMPILED = {
    "helper": (with_helper, {"k": 0.2}), "loop": (with_loop, {}), "table": (with_table, {}),
    "long table": (with_long_table, {}), "numpy": (with_numpy, {}), "unpacked": (unpacked, {}),
    "ph.math": (with_ph_math, {}), "branch": (switched, {"k": 0.1}),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPILED)
def test_what_numba_takes_is_compiled_as_it_stands(case):
    function, values = COMPILED[case]
    field = problem(ph.torque(function)(**values)).field
    prepare(problem(field))
    (untraced,) = field.untraced
    assert untraced.mode == AS_IT_STANDS
    for t in (0.0, 0.7, 1.5):
        ((_, point),) = field.opaque_arguments(t, ROTATION, (0.3, -0.4, 0.5))
        expected = [float(x) for x in field.value(t, ROTATION, (0.3, -0.4, 0.5), "here")]
        np.testing.assert_allclose(untraced.run(*point), expected, rtol=1e-14, atol=1e-16)


def test_the_three_ways_give_the_same_motion():
    """Up to the jump: steps end there only in a formula."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpeedWarning)
        first, second, third = (
            ph.solve(problem(f(0.1)), "fem", dt=0.01, t_end=0.5) for f in (branch, formula, declared_plain)
        )  # fmt: skip
    np.testing.assert_array_equal(first.momentum, second.momentum)
    np.testing.assert_allclose(third.momentum, second.momentum, rtol=1e-13)
    assert first.info.torque == "the torque switched: compiled as it stands (it branches on a number)"
    assert second.info.torque == ""
    assert third.info.torque == "the torque switched: called as plain Python (it is declared plain)"
    np.testing.assert_array_equal(first.at([0.3]).momentum, second.at([0.3]).momentum)


class Controller:
    """A state of its own, and a reason not to be compiled."""

    def __init__(self):
        self.calls = 0

    def torque(self, omega):
        self.calls += 1
        return -0.1 * omega


def test_an_object_with_state_is_called_as_plain_python_and_said_so_once():
    controller = Controller()

    @ph.torque
    def driven(omega):
        return controller.torque(omega)

    with pytest.warns(
        SpeedWarning, match=r"^the torque driven is called as plain Python, about \S+ us a call, because"
    ):
        sol = ph.solve(problem(driven()), "imidm", dt=0.01, steps=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = controller.calls
        ph.solve(problem(driven()), "fem", dt=0.01, steps=20)
    assert 20 <= controller.calls - before <= 24
    assert sol.info.torque.startswith("the torque driven: called as plain Python (it uses controller")
    same = ph.solve(problem(ph.fields.linear_drag(coefficients=0.1)), "imidm", dt=0.01, steps=20)
    np.testing.assert_allclose(sol.momentum, same.momentum, rtol=1e-12)


def integrating():
    """A function with a state of its own, which is a number."""
    total = 0.0

    def integral(omega):
        nonlocal total
        total += omega[0]
        return (-0.1 * total, 0.0, 0.0)

    return ph.torque(integral, plain=True)()


def test_equal_functions_have_states_of_their_own():
    first, second = integrating(), integrating()
    one = ph.solve(problem(first), "fem", dt=0.01, steps=5)
    other = ph.solve(problem(second), "fem", dt=0.01, steps=5)
    np.testing.assert_array_equal(one.momentum, other.momentum)


def test_arrays_with_all_their_methods_reach_a_plain_function():
    @ph.torque(plain=True)
    def summed(R, omega):
        return -0.1 * omega.copy() * R.sum() / np.trace(np.asarray(R))

    sol = ph.solve(problem(summed()), "fem", dt=0.01, steps=2)
    assert np.isfinite(sol.momentum).all()


def test_a_plain_function_sees_what_changes_between_steps():
    wind = np.zeros(3)

    @ph.torque(plain=True)
    def blown(t):
        return wind

    stepper, state = ph.stepper(BODY, "fem", 0.1), ph.State((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    field = blown()
    still = stepper.step(state, field)
    wind[:] = (1.0, 0.0, 0.0)
    moved = stepper.step(state, field)
    assert still.momentum == (0.0, 0.0, 0.0)
    assert moved.momentum[0] == pytest.approx(0.1)


def test_a_stepper_with_a_compiled_function_makes_the_steps_of_the_formula():
    state = ph.State((1.0, 0.0, 0.0, 0.0), (1.0, 0.2, 0.5), 0.45)
    one, other = (ph.stepper(BODY, "fem", 0.01).step(state, f(0.1)) for f in (branch, formula))
    assert one == other


def test_values_from_outside_are_part_of_the_code(monkeypatch):
    def made(size):
        return ph.torque(lambda t: (size if t < 5 else 0.0, 0.0, 0.0))

    def gained(t):
        return (GAIN if t < 5 else 0.0, 0.0, 0.0)

    def compiled(field):
        start = problem(field)
        prepare(start)
        assert field.untraced[0].mode == AS_IT_STANDS
        return field.untraced[0].run(0.0)[0]

    assert compiled(made(1.0)()) == 1.0
    assert compiled(made(2.0)()) == 2.0
    assert compiled(ph.torque(gained)()) == 1.0
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    assert compiled(ph.torque(gained)()) == 3.0


def test_a_sum_with_a_formula():
    """Up to the jump: steps end there only in a formula, because a function does not tell where it jumps."""
    gravity = ph.fields.gravity(2.0)
    sol = ph.solve(problem(gravity + declared_plain(0.1)), "fem", dt=0.01, steps=50)
    same = ph.solve(problem(gravity + formula(0.1)), "fem", dt=0.01, steps=50)
    np.testing.assert_allclose(sol.momentum, same.momentum, rtol=1e-12)
    np.testing.assert_allclose(sol.energy, same.energy, rtol=1e-12)


# --- many bodies ------------------------------------------------------------------------------------


def indexed(t, omega, place):
    return KNOTS[int(place)] * omega if t > 0.05 else 0.1 * omega


def test_lanes_run_a_compiled_function_and_an_exception_in_one_fails_its_body_alone():
    place, momenta = np.arange(9.0), np.random.default_rng(0).normal(size=(9, 3))
    field, run = ph.torque(indexed), {"dt": 0.01, "steps": 10}
    with pytest.warns(ph.ResultWarning):
        many = ph.ensemble([[1.0, 2.0, 2.5]], None, momenta, "fem", field=field, params={"place": place}, **run)
    assert (many.failed >= 0).tolist() == [False] * 5 + [True] * 4
    for i in (1, 4):
        alone = ph.solve(ph.Problem(BODY, field(place[i]), momentum=momenta[i]), "fem", **run)
        np.testing.assert_allclose(many.momentum[-1, i], alone.momentum[-1], rtol=1e-14)


# --- what goes wrong --------------------------------------------------------------------------------


def beyond(t):
    return (KNOTS[int(10 * t)], 0.0, 0.0)


@pytest.mark.parametrize("plain", [False, True])
def test_an_exception_during_the_run_is_told_with_its_time(plain):
    with pytest.raises(
        ph.StepError, match=r"the torque beyond raised IndexError at t = 0\.5: index 5 is out of"
    ) as told:
        ph.solve(problem(ph.torque(beyond, plain=plain)()), "fem", **RUN)
    assert len(told.value.partial) == 51


def test_a_value_that_is_no_torque_is_told():
    field = ph.torque(lambda t: (0.0, 0.0, 1.0) if t < 0.105 else None, plain=True)()
    with pytest.raises(ph.StepError, match=r"must return three numbers; it returned None at t = 0\.11"):
        ph.solve(problem(field), "fem", **RUN)
    stepper, state = ph.stepper(BODY, "fem", 0.1), ph.State((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    stepper.step(state, field)
    with pytest.raises(ph.StepError, match=r"^fem failed in one step from t = 1 .*: the torque <lambda> must return"):
        stepper.step(state._replace(t=1.0), field)


def refused(said, call):
    with pytest.raises(ph.InputError, match=said):
        call()


def test_what_needs_more_than_values_is_refused(tmp_path):
    why = r"the torque switched is not a formula \(it branches on a number\)"
    start = problem(branch(0.1))
    out = tmp_path / "run.zarr"
    refused(rf"^taylor\(8\) asks a field for Taylor series .*, and {why}", lambda: ph.solve(start, "taylor(8)", **RUN))
    refused(rf"^digits needs a formula, and {why}", lambda: ph.solve(start, "fem", digits=30, **RUN))
    refused(
        rf"^ph\.gradient needs derivatives of the torque, and {why}",
        lambda: ph.gradient(lambda R: R[0][0], start, "fem", dt=0.01, steps=1),
    )
    ph.solve(start, "fem", out=out, **RUN)
    refused(
        rf"cannot be resumed: {why}, and a file does not hold Python functions",
        lambda: ph.solve(start, "fem", dt=0.01, t_end=2.0, out=out, resume=True),
    )
    _, attributes = trajectory_store.read(out)
    assert json.loads(attributes["begun"])["formula"] == "a Python function, which files do not hold"


def test_what_needs_compiled_code_is_refused():
    start, why = problem(declared_plain(0.1)), r"the torque switched: called as plain Python \(it is declared plain\)"
    refused(rf"^tol needs a torque that can be compiled; {why}", lambda: ph.solve(start, tol=1e-6, t_end=1.0))
    refused(
        rf"^an ensemble needs a torque that can be compiled; {why}: run ph\.solve for each body",
        lambda: ph.ensemble([[1.0, 2.0, 2.5]], None, [OMEGA], "fem", field=declared_plain(0.1), dt=0.01, steps=2),
    )
    refused(
        rf"^an event search needs a torque that can be compiled; {why}",
        lambda: ph.solve(start, "fem", events=ph.event(lambda t: t - 0.3), **RUN),
    )
    for name, value in {"times": [0.1, 0.2], "max_turn": 0.1}.items():
        refused(
            rf"^{name} with dt needs a torque that can be compiled; {why}: leave out `{name}`, and keep states",
            lambda name=name, value=value: ph.solve(start, "fem", **RUN, **{name: value}),
        )
    refused(
        r"^exact states need a field U = .*, and the torque switched is not a formula", lambda: ph.exact(start, [1.0])
    )
    refused(r"^dense output needs .* compiled torque", lambda: ph.solve(start, "fem", **RUN).at([0.1]))
    refused(r"^plain must be True or False; got 1$", lambda: ph.torque(plain=1))


def test_potentials_must_be_formulas():
    well = ph.potential(lambda R, k: k * R[2][2] if R[2][2] > 0 else k)
    refused("cannot be compiled: it branches on a number", lambda: problem(well(1.0)))


@pytest.mark.slow
def test_a_tolerance_with_an_embedded_pair():
    one, other = (
        ph.solve(problem(f(0.1)), "mkrk(dormand_prince)", tol=1e-8, t_end=1.0) for f in (branch, formula)
    )  # fmt: skip
    np.testing.assert_allclose(one.momentum[-1], other.momentum[-1], atol=1e-7)
    assert one.info.torque.endswith("compiled as it stands (it branches on a number)")


# --- copies -----------------------------------------------------------------------------------------


def test_a_source_that_is_not_that_of_the_code_is_not_used():
    assert with_returns_through(switched) is not None
    moved = types.FunctionType(switched.__code__.replace(co_firstlineno=1), globals(), "switched")
    other = types.FunctionType(switched.__code__.replace(co_consts=(None, 0.6, 0)), globals(), "switched")
    assert with_returns_through(moved) is None
    assert with_returns_through(other) is None


def test_copies_do_not_follow_changes():
    array, rows = np.ones(3), [[1.0, 2.0], [3.0, 4.0]]
    copy, short, long = frozen(array), frozen(rows), frozen(LONG)
    array[0] = rows[0][0] = 5.0
    assert copy.tolist() == [1.0, 1.0, 1.0]
    assert not copy.flags.writeable
    assert short == ((1.0, 2.0), (3.0, 4.0))
    assert isinstance(long, np.ndarray)
    assert frozen([1, "a"]) == [1, "a"]


@ph.torque
def brake(t, R, omega, *, k):
    total = 0.0
    for x in omega:
        if x > 0:
            total += x
    return -k * total, 0.0, 0.0


MOMENTA = np.random.default_rng(3).normal(size=(3, 3))
STRENGTHS = [0.01, 0.02, 0.03]


@pytest.mark.parametrize("how", [{"tol": 1e-6}, {"step_tol": 1e-6}, {"step_tol": 1e-6, "max_step": 0.1}])
@pytest.mark.parametrize("end", [{"t_end": 1.0}, {"t_end": -1.0}, {"t_end": 1.0, "times": [0.25, 0.5]}])
def test_many_bodies_to_a_tolerance_have_the_bits_of_single_runs(how, end):
    many = ph.ensemble([1.0, 2.0, 2.5], None, MOMENTA, field=brake(k=0.0), params={"k": STRENGTHS}, **how, **end)
    for i, (m, k) in enumerate(zip(MOMENTA, STRENGTHS, strict=True)):
        one = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 2.5]), brake(k=k), momentum=m), **how, **end)
        both = np.isin(many.t, one.t)
        assert both.sum() >= 2
        np.testing.assert_array_equal(many.quaternion[both, i], one.quaternion[np.isin(one.t, many.t)])
        np.testing.assert_array_equal(many.momentum[both, i], one.momentum[np.isin(one.t, many.t)])
        assert (many.error_estimate is None) == ("tol" not in how)
    assert many.method == one.method
    assert len(many.t) == 2


def test_many_bodies_to_a_tolerance_say_what_they_cannot_do(tmp_path):
    given = {"field": brake(k=0.1), "step_tol": 1e-6, "t_end": 1.0}
    with pytest.raises(ph.InputError, match=r"that is no formula.*one by one, in memory; leave out `out`"):
        ph.ensemble([1.0, 2.0, 2.5], None, MOMENTA, **given, out=tmp_path / "many.zarr")
    with pytest.raises(ph.InputError, match=r"that is no formula.*on the processor; leave out `device`"):
        ph.ensemble([1.0, 2.0, 2.5], None, MOMENTA, **given, device="cuda")


def test_many_bodies_one_by_one_take_long(monkeypatch):
    monkeypatch.setattr(one_by_one, "MANY", 2)
    with pytest.warns(SpeedWarning, match="torques that are formulas, so that the 3 bodies are run one by one"):
        ph.ensemble([1.0, 2.0, 2.5], None, MOMENTA, field=brake(k=0.1), step_tol=1e-6, t_end=0.1)
