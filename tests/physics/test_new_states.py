"""New states of the same body and field: checks and numbers of a new problem, nothing derived twice."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.numbers import floats
from polhode.physics.fields import Field
from polhode.physics.fields.switches import between
from polhode.physics.taylor_steps import motion_series
from polhode.physics.units import ScaledField, Units
from polhode.symbolic.user_function import UserFunction

BODY = ph.Body([1.0, 2.0, 2.5])
AXES = Rotation.from_rotvec([0.7, -1.1, 0.4]).as_matrix()
TENSOR = ph.Body(AXES @ np.diag([1.0, 2.0, 2.5]) @ AXES.T)
ROD = ph.Body([1.0, 1.0, 0.0])


@ph.potential
def spring(R, k, a=(1.0, 2.0)):
    return k * R[2][2] + a[0] * R[0][1] ** 2 + a[1] * math.sin(R[1][1])


@ph.torque
def drag(t, omega, c):
    return (-c * omega[0] * math.cos(t), -c * omega[1], -c * omega[2])


FIELDS = {"free": None, "potential": spring(0.7), "torque": drag(0.1), "sum": spring(0.7) + drag(0.1)}


def same_start(one: ph.Problem, other: ph.Problem) -> bool:
    """Are body, field and the numbers of the start the same, to the last bit."""
    data = [(p.quaternion, p.momentum, p.t0, p.kernel_data(floats.number)) for p in (one, other)]
    return repr(data[0]) == repr(data[1]) and one.body is other.body and one.field is other.field


# --- problems ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, lambda x: np.array(x, dtype=np.float32), lambda x: [*map(np.float64, x)]]
)
def test_numbers_are_read_alike_in_every_form(kind):
    q, m = [0.5, -0.5, 0.5, 0.5], [0.25, 0.5, -0.75]
    plain = ph.Problem(TENSOR, attitude=q, momentum=m)
    made = ph.Problem(TENSOR, attitude=kind(q), momentum=kind(m))
    assert same_start(plain, made)
    assert all(type(x) is float for x in (*made.quaternion, *made.momentum))


BAD = {
    "momentum": [
        [math.nan, 0.0, 1.0], [math.inf, 0.0, 1.0], np.array([0.0, -math.inf, 1.0]), [1.0, 2.0], (1.0, 2.0, 3.0, 4.0),
        np.zeros(4), np.zeros((3, 1)), ["1.0", "x", "2.0"], [1.0, 2.0, 1j], "abc", [1.0, None, 2.0], 3.0,
    ],
    "attitude": [
        (1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (math.nan, 0.0, 0.0, 1.0), np.array([2.0, 0.0, 0.0, 0.0]),
        (1.0, 0.0, 0.0), np.diag([1.0, 1.0, -1.0]), 2 * np.eye(3), "abc",
    ],
    "t0": [math.nan, math.inf, "1", None.__class__],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_no_check_is_lost(name, value):
    """What a problem refuses, `starting` refuses in the same words."""
    given = {"momentum": [1.0, 0.0, 0.0]} | {name: value}
    with pytest.raises(ph.InputError) as first:
        ph.Problem(BODY, **given)
    with pytest.raises(ph.InputError) as second:
        ph.Problem(BODY, momentum=[0.0, 1.0, 0.0]).starting(**given)
    assert str(first.value) == str(second.value)


@pytest.mark.parametrize("body", [BODY, TENSOR])
@pytest.mark.parametrize("field", FIELDS)
def test_starting_is_a_new_problem(body, field):
    first = ph.Problem(body, FIELDS[field], attitude=(0.6, 0.0, 0.8, 0.0), omega=[1.0, 0.1, 0.2], t0=1.5, t_end=9.0)
    for start in ({"momentum": [0.3, 0.1, -0.2]}, {"omega": [0.3, 0.1, -0.2]}, {"spatial_momentum": (0.3, 0.1, 0.0)}):
        for more in ({}, {"attitude": AXES}, {"t0": -2.0}):
            made = first.starting(**start, **more)
            whole = {"attitude": first.quaternion, "t0": first.t0} | start | more
            assert same_start(made, ph.Problem(body, FIELDS[field], **whole))
            assert (made.t_end, made.name, made.reference) == (9.0, "", None)
    turned = first.starting(attitude=AXES)
    assert turned.momentum == first.momentum
    with pytest.raises(ph.InputError, match="exactly one of omega, momentum"):
        first.starting(omega=[1.0, 0.0, 0.0], momentum=[1.0, 0.0, 0.0])


def test_the_field_is_checked_at_every_start():
    singular = ph.potential(lambda R, k: k / R[2][2])(1.0)
    first = ph.Problem(BODY, singular, momentum=[1.0, 0.0, 0.0], t0=2.0)
    with pytest.raises(ph.InputError, match=r"raised ZeroDivisionError at the start \(t = 2\)"):
        first.starting(attitude=(0.5, 0.5, 0.5, 0.5))
    along = ph.torque(lambda R: (0.0, 0.0, R[2][0]))()
    with pytest.raises(ph.InputError, match="torque along the axis of a linear body"):
        ph.Problem(ROD, along, momentum=[1.0, 0.0, 0.0])
    with pytest.raises(ph.InputError, match="nor has momentum along it"):
        ph.Problem(ROD, momentum=[1.0, 0.0, 0.0]).starting(momentum=[1.0, 0.0, 1e-3])


def test_loop_data_follow_a_problem_that_was_changed():
    problem = ph.Problem(TENSOR, spring(0.7), momentum=[1.0, 2.0, 3.0])
    first = problem.kernel_data(floats.number)
    assert problem.kernel_data(floats.number) is first
    for name, value in {
        "momentum": (3.0, 2.0, 1.0), "quaternion": (0.6, 0.0, 0.8, 0.0), "field": spring(0.8), "body": BODY,
    }.items():  # fmt: skip
        changed = copy.copy(problem)
        setattr(changed, name, value)
        whole = {"attitude": changed.quaternion, "momentum": changed.momentum}
        expected = ph.Problem(changed.body, changed.field, **whole).kernel_data(floats.number)
        assert changed.kernel_data(floats.number) == expected != first
    in_place = copy.copy(problem)
    in_place.momentum = np.array([1.0, 2.0, 3.0])
    assert in_place.kernel_data(floats.number) == first
    in_place.momentum[0] = 5.0
    assert in_place.kernel_data(floats.number) != first
    assert problem.kernel_data(floats.number) is first


def test_what_a_body_keeps_follows_its_arrays():
    body = copy.copy(BODY)
    assert body.linear_axis is None
    body.moments, body.inertia = np.array([1.0, 1.0, 0.0]), np.diag([1.0, 1.0, 0.0])
    assert (body.linear_axis, body.inverse_moments.tolist()) == (2, [1.0, 1.0, 0.0])
    assert BODY.inverse_moments.tolist() == [1.0, 0.5, 0.4]


# --- parameters -------------------------------------------------------------------------------------


@pytest.fixture
def traces(monkeypatch):
    """The functions that are traced from now on."""
    seen, plain = [], UserFunction.traced
    monkeypatch.setattr(UserFunction, "traced", lambda self, *given: seen.append(self.owner) or plain(self, *given))
    return seen


@pytest.mark.parametrize("name", ["potential", "torque", "sum"])
def test_rebinding_traces_nothing(name, traces):
    field = FIELDS[name]
    structure = field.structure
    series = motion_series(field, False, 7)
    assert (spring(0.7) + drag(0.1)).structure  # so all formulas are known
    traces.clear()
    for parameter in field.values:
        value = field.values[parameter]
        other = field.bind(**{parameter: tuple(2 * x for x in value) if isinstance(value, tuple) else 2 * value})
        assert other.parameters != field.parameters
        assert other.structure is structure
        assert other.needs == field.needs
        assert motion_series(other, False, 7) is series
        ph.Problem(BODY, other, momentum=[1.0, 2.0, 3.0])
    assert spring(3.0).structure == spring(k=4.0).structure
    assert (spring(3.0) + drag(0.2)).structure == (spring(1.0) + drag(c=0.5)).structure
    assert traces == []


def test_rebinding_gives_the_field_of_those_values():
    made = (spring(0.7) + drag(0.1)).bind(k=2.0, c=0.5)
    whole = spring(2.0) + drag(0.5)
    assert (repr(made), made.parameters, made.kind) == (repr(whole), whole.parameters, whole.kind)
    R, omega = AXES.tolist(), (0.1, 0.2, 0.3)
    assert made.torque_value(0.3, R, omega) == whole.torque_value(0.3, R, omega)
    control = ph.fields.pd_control(AXES, 2.0, 0.3)
    assert control.bind(stiffness=3.0).values["target"] == control.values["target"]  # not read a second time
    assert control.bind(coefficients=0.5).values["coefficients"] == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"b": 1.0}, "has no parameter 'b'; it has k, a"),
        ({"k": math.nan}, "must be a finite number"),
        ({"k": "x"}, "finite"),
    ],
)
def test_bad_values_are_refused(given, words):
    with pytest.raises(ph.InputError, match=words):
        spring(1.0).bind(**given)


def test_values_cannot_be_changed_in_place():
    field = spring(1.0)
    with pytest.raises(TypeError):
        field.values["k"] = 2.0


def test_a_formula_follows_what_its_function_reads():
    """Constants outside are read again when they were changed: in globals, closures, lists, arrays and helpers."""
    space = {"ph": ph, "math": math, "g": 2.0, "steps": [1.0, 2.0], "row": np.array([3.0, 4.0])}
    exec(
        "def helper(x): return g * x\ndef U(R, k): return helper(k) * R[2][2] + steps[0] * R[0][0] + row[1] * R[1][1]",
        space,
    )
    template = ph.potential(space["U"])

    def slope():
        """The torque about two axes at a turned attitude."""
        return template(1.0).torque_value(0.0, AXES.tolist(), (0.0, 0.0, 0.0))

    def expected(g, step, entry):
        made = ph.potential(lambda R, k: g * k * R[2][2] + step * R[0][0] + entry * R[1][1])
        return made(1.0).torque_value(0.0, AXES.tolist(), (0.0, 0.0, 0.0))

    assert slope() == expected(2.0, 1.0, 4.0)
    first = template(1.0).trace
    assert template(5.0).trace is first
    space["g"] = 3.0
    assert slope() == expected(3.0, 1.0, 4.0)
    space["steps"][0] = 7.0
    assert slope() == expected(3.0, 7.0, 4.0)
    space["row"][1] = -1.0
    assert slope() == expected(3.0, 7.0, -1.0)
    exec("def helper(x): return g * x * x + x - x", space)
    assert template(2.0).torque_value(0.0, AXES.tolist(), (0.0,) * 3) != expected(6.0, 7.0, -1.0)


def test_values_of_another_shape_have_another_formula():
    push = ph.torque(lambda t, on: (sum(on), 0.0, on[0]))
    short, long = push((1.0, 2.0)), push((1.0, 2.0, 3.0))
    assert [len(field.parameters) for field in (short, long)] == [2, 3]
    assert short.structure != long.structure
    assert long.torque_value(0.0, AXES.tolist(), (0.0,) * 3) == (6.0, 0.0, 1.0)


def test_fields_in_other_units_share_formulas_of_their_own():
    units = Units(time=3, inertia=2)
    switched = ph.fields.thruster([1.0, 0.0, 0.0], [1.0, 2.0])
    first, second = (ScaledField(switched.bind(torque=x), units) for x in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]))
    assert first.structure is second.structure
    kinds = [switched, between(switched), first, between(first)]
    assert len({field.structure for field in kinds}) == len({id(field.trace) for field in kinds}) == 4
    total = switched + drag(0.1)
    kinds = [total, between(total), ScaledField(total, units)]
    assert len({field.structure for field in kinds}) == 3
    assert all(isinstance(field, Field) for field in kinds)
