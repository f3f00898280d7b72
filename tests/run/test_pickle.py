"""Pickles: the same bits from what comes back, here and in another process that knows none of the user's code."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import polhode as ph
from examples import KEYWORDS, TILTED
from polhode import lie, ndim
from polhode.methods.registry import declare
from polhode.numbers import floats
from polhode.physics.fields.switches import between
from polhode.physics.units import ScaledField, Units

BODY = ph.Body([1.0, 2.0, 2.5])
G = 9.81


@ph.potential
def spring(R, k, a=(1.0, 2.0)):
    """A spring."""
    return k * G * R[2][2] + a[0] * R[0][1] ** 2 + a[1] * math.sin(R[1][1])


def fields() -> dict[str, ph.physics.fields.Field]:
    """Bound fields of every kind, most of them made of functions that no other process can import."""
    scale = 0.7
    drag = ph.torque(lambda t, omega, c: [-c * omega[0] * math.cos(t), -scale * omega[1], 3.141592653589793 * omega[2]])
    rate = ph.momentum_rate(lambda t, s: (math.sin(t), 0, s), lambda t, s: (math.cos(t), 0, 0))
    by_hand = ph.potential(lambda R, k: k * R[2][2], torque=lambda R, k: (k * R[2][1], -k * R[2][0], 0))
    table = np.random.default_rng(0).normal(size=(80, 3))
    made = {
        "potential": spring(0.7), "lambda": drag(0.1), "sum": spring(0.7) + drag(0.1), "rate": rate(0.3),
        "by hand": by_hand(2.0), "space": ph.torque(lambda t, R: (math.exp(-t), R[0][1], 1), frame="space")(),
        "rotor": ph.fields.rotor(lambda t, h: (h * t, math.cos(t), 0.1))(0.2),
        "long table": ph.fields.tabulated(np.arange(80.0), table),
        "limits": ph.torque(lambda t, omega, c: (min(c, omega[0]), ph.where(t < 1, 0.0, c), abs(omega[2])))(0.5),
    }  # fmt: skip
    return made | {name: ph.fields.make(name, body=TILTED, **words) for name, words in KEYWORDS.items()}


FIELDS = fields()


def sent(thing):
    """What comes back from a pickle."""
    return pickle.loads(pickle.dumps(thing))


# --- fields and problems ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_comes_back(name):
    field = FIELDS[name]
    for other in (sent(field), sent(sent(field))):
        assert type(other) is type(field)
        assert (repr(other), other.kind, other.needs) == (repr(field), field.kind, field.needs)
        assert dict(other.values) == dict(field.values)
        assert other.structure == field.structure  # so the compiled code is the same too
        R, omega = TILTED.axes.tolist(), (0.1, -0.2, 0.3)
        assert other.torque_value(0.3, R, omega) == field.torque_value(0.3, R, omega)
        other.check(0.3, R, omega, "here")


@pytest.mark.parametrize("name", FIELDS)
def test_no_code_is_in_the_pickle_of_a_field(name):
    data = pickle.dumps(FIELDS[name])
    assert b"test_pickle" not in data
    assert b"__main__" not in data
    assert b"code" not in data


def test_a_field_that_came_back_can_be_bound_and_added():
    other = sent(spring(0.7))
    R, omega = TILTED.axes.tolist(), (0.1, -0.2, 0.3)
    for made, plain in (
        (other.bind(k=2.0), spring(2.0)), (other.template(2.0), spring(2.0)), (other.template(k=2.0), spring(2.0)),
        (other + FIELDS["lambda"], spring(0.7) + FIELDS["lambda"]),
        (sent(FIELDS["sum"]).bind(k=2.0), FIELDS["sum"].bind(k=2.0)),
    ):  # fmt: skip
        assert (repr(made), made.structure) == (repr(plain), plain.structure)
        assert made.torque_value(0.3, R, omega) == plain.torque_value(0.3, R, omega)
    assert other.template.function.__doc__ == "A spring."
    with pytest.raises(ph.InputError, match="parameter a must be as many numbers as before"):
        ph.Problem(BODY, other.bind(a=(1.0, 2.0, 3.0)), momentum=[1.0, 2.0, 3.0])
    with pytest.raises(ph.InputError, match="raised ZeroDivisionError"):
        ph.Problem(BODY, sent(ph.potential(lambda R, k: 1 / (R[2][2] - k))(1.5)).bind(k=1.0), momentum=[1.0, 2.0, 3.0])


def test_equal_fields_that_came_back_share_their_formula():
    one, other = sent(spring(0.7)), sent(spring(0.9))
    assert one.trace is other.trace
    whole = ph.torque(lambda t, k: (k * 1, -0.0, 0))(1.0), ph.torque(lambda t, k: (k * 1.0, 0.0, 0))(1.0)
    assert len({sent(field).structure for field in whole}) == len({field.structure for field in whole}) == 2


def test_fields_of_runs_come_back():
    field = ph.fields.thruster([1.0, 0.0, 0.0], [1.0, 2.0])
    for made in (between(field), ScaledField(field, Units(3, 2)), ScaledField(FIELDS["sum"], Units(3, 2))):
        assert sent(made).structure == made.structure
        assert sent(made).parameters == made.parameters


def test_templates_are_found_by_name_or_say_why_not():
    assert sent(ph.fields.gravity) is ph.fields.gravity
    assert sent(spring) is spring
    local = ph.torque(lambda omega, c: omega)
    with pytest.raises(ph.InputError, match=r"the torque <lambda> cannot be pickled before its parameters are bound"):
        pickle.dumps(local)
    assert copy.deepcopy(local) is local


@ph.controller(period=0.1, integral=[0.0, 0.0, 0.0])
def pid(omega, integral, period, gain):
    new = [integral[i] + period * omega[i] for i in range(3)]
    return [-gain * omega[i] - 0.5 * new[i] for i in range(3)], {"integral": new}


@ph.controller(period=0.1, plain=True)
def clipped(omega, gain):
    return np.clip(-gain * omega, -0.1, 0.1)


jets = ph.controller(lambda omega, gain: {"jets": [-gain * omega[0], gain * omega[0]]}, period=0.1,
                     jets=ph.actuators.thrusters([[0.3, 0.0, 0.1], [-0.3, 0.0, 0.0]]))  # fmt: skip
LAWS = {"memory": pid(gain=0.4), "actuators": jets(gain=0.02), "by name": clipped(gain=0.4)}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("how", [{"method": "fem", "dt": 0.05}, {"step_tol": 1e-6}])
def test_a_controller_comes_back(name, how):
    """As its formula, or one in plain Python by its name."""
    problem, control = ph.Problem(BODY, spring(0.7), omega=[1.0, 0.1, 0.2]), LAWS[name]
    one, *others = (
        ph.solve(problem, control=c, t_end=1.0, **how) for c in (control, sent(control), sent(sent(control)))
    )
    for other in others:
        same_bits(other, one)
        assert (other.control.torque == one.control.torque).all()


def test_an_ensemble_under_a_controller_comes_back():
    problem = ph.Problem(BODY, spring(0.7), omega=[1.0, 0.1, 0.2])
    many = ph.ensemble(problem, "fem", dt=0.05, steps=4, control=LAWS["memory"])
    other = sent(many)
    assert other.momentum.tobytes() == many.momentum.tobytes()
    assert other.bodies.field.structure == many.bodies.field.structure


def test_unbound_controllers_are_found_by_name_or_say_why_not():
    assert sent(pid).template is pid.template
    with pytest.raises(
        ph.InputError, match="the controller <lambda> is no formula with its parameters bound; any other"
    ):
        pickle.dumps(jets)


def test_a_torque_in_plain_python_is_not_pickled():
    plain = ph.torque(lambda omega: (-0.1 * np.sin(omega[0]), 0.0, 0.0), plain=True)
    with pytest.raises(ph.InputError, match=r"^the torque <lambda> is no formula, which is what a pickle holds"):
        pickle.dumps(ph.Problem(ph.Body([1.0, 2.0, 2.5]), plain(), omega=[1.0, 2.0, 3.0]))


@pytest.mark.parametrize("name", ["potential", "lambda", "sum", "by hand"])
def test_a_problem_comes_back(name):
    problem = ph.Problem(TILTED, FIELDS[name], attitude=(0.6, 0.0, 0.8, 0.0), omega=[1.0, 0.1, 0.2], t0=0.5, name="it")
    problem.kernel_data(floats.number)
    other = sent(problem)
    assert repr(other.kernel_data(floats.number)) == repr(problem.kernel_data(floats.number))
    assert (other.name, other.t0, other.energy()) == (problem.name, problem.t0, problem.energy())
    assert sent(ph.problems.heavy_top()).reference == ph.problems.heavy_top().reference


def test_a_body_comes_back():
    other = sent(TILTED)
    assert repr(other) == repr(TILTED)
    for name in ("inertia", "moments", "axes", "centre", "pivot"):
        assert (getattr(other, name) == getattr(TILTED, name)).all()
        with pytest.raises(ValueError, match="read-only"):
            getattr(other, name)[0] = 1.0
    assert other.principal == TILTED.principal
    assert [shape.name for shape in other.looks] == [shape.name for shape in TILTED.looks]


# --- methods, steppers, results ---------------------------------------------------------------------


def test_methods_are_sent_by_name():
    for book in (ph.methods, lie.family.methods, ndim.family.methods):
        for method in book.values():
            assert sent(method) is method
    for expression in ("mkrk(rk4)", "strang(dmv10)"):
        assert sent(ph.methods[expression]) is ph.methods[expression]
    assert copy.deepcopy(ph.methods["imidm"]) is ph.methods["imidm"]


def test_a_method_that_is_not_registered_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "cloudpickle", raising=False)
    words = {name: getattr(ph.methods["imidm"], name) for name in ("order", "order_free", "symmetric", "symplectic")}
    made = declare(
        ph.methods["imidm"].build, register=False, name="imidm", poisson=None, implicit=True, solves=1, torque_evals=1,
        needs="velocity", cite="", where="", **words,
    )  # fmt: skip
    with pytest.raises(ph.InputError, match="the method imidm cannot be pickled"):
        pickle.dumps(made)
    unknown = pickle.dumps(ph.methods["imidm"]).replace(b"imidm", b"imidx")
    with pytest.raises(ph.InputError, match="'imidx', which is not known here"):
        pickle.loads(unknown)


def test_a_stepper_comes_back():
    stepper = ph.stepper(TILTED, "imidm", 0.1)
    state = ((0.6, 0.0, 0.8, 0.0), (1.0, 0.2, 0.3), 0.5)
    first = stepper.step(state, spring(0.7))
    other = sent(stepper)
    assert other.step(state, sent(spring(0.7))) == first
    assert other.step(state) == stepper.step(state)
    assert other.step(state, (0.1, 0.2, 0.3)) == stepper.step(state, (0.1, 0.2, 0.3))


def same_bits(one, other) -> None:
    """Are the arrays the same, to the last bit."""
    for name in ("t", "quaternion", "momentum", "energy", "omega", "matrix"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_a_trajectory_comes_back(tmp_path):
    problem = ph.Problem(TILTED, spring(0.7), omega=[1.0, 0.1, 0.2])
    event = ph.event(lambda omega: omega[0])
    sol = ph.solve(problem, "imidm", dt=0.05, steps=200, events=[event])
    other = sent(sol)
    same_bits(sol, other)
    assert other.info == sol.info
    assert [len(part) for part in other.events] == [len(part) for part in sol.events]
    same_bits(other.events[0], sol.events[0])
    with pytest.raises(ph.InputError, match="dense output needs a run that kept every step"):
        other.at(0.2)
    assert (copy.copy(sol).at(0.2).momentum == sol.at(0.2).momentum).all()
    same_bits(sent(ph.load(sol.save(tmp_path / "kept.nc"))), sol)
    same_bits(sent(ph.load(sol.save(tmp_path / "kept.zarr"))), sol)


def test_digits_come_back():
    sol = ph.exact(ph.Problem(BODY, omega=[1.0, 0.1, 0.2]), [0.0, 1.0], digits=40)
    other = sent(sol)
    assert [[str(x) for x in row] for row in other.mp.momentum] == [[str(x) for x in row] for row in sol.mp.momentum]


def test_an_ensemble_comes_back():
    made = ph.ensemble(
        BODY, None, np.eye(3) + 0.1, "dmv4", dt=0.05, steps=20, statistics=["energy", "spatial_momentum"]
    )
    other = sent(made)
    for name in ("t", "quaternion", "momentum", "moments", "failed", "matrix"):
        assert getattr(other, name).tobytes() == getattr(made, name).tobytes()
    assert (other.method, len(other)) == (made.method, len(made))
    assert other.statistics["energy"].mean.tobytes() == made.statistics["energy"].mean.tobytes()


# --- another process --------------------------------------------------------------------------------

THERE = """
import pickle, sys
import polhode as ph
problem, rebound, stepper, state, sol, method = pickle.load(sys.stdin.buffer)
run = ph.solve(problem, method, dt=0.05, steps=50)
again = ph.solve(problem.starting(momentum=(0.3, 0.1, -0.2)), method, dt=0.05, steps=50)
other = ph.solve(ph.Problem(problem.body, rebound.bind(k=1.25), momentum=(1.0, 2.0, 3.0)), method, dt=0.05, steps=50)
sys.stdout.buffer.write(pickle.dumps((run, again, other, stepper.step(state, problem.field), sol)))
"""


def test_another_process_gives_the_same_bits():
    """A fresh interpreter, which cannot import this file: what it is sent is data."""
    method, state = ph.methods["strang(dmv4)"], ((0.6, 0.0, 0.8, 0.0), (1.0, 0.2, 0.3), 0.5)
    field = spring(0.7) + ph.potential(lambda R, b: b * R[0][0] * math.pi)(0.2)
    problem = ph.Problem(TILTED, field, omega=[1.0, 0.1, 0.2])
    stepper, sol = ph.stepper(TILTED, "imidm", 0.1), ph.exact(ph.Problem(TILTED, omega=[1.0, 0.1, 0.2]), [0.0, 2.0])
    data = pickle.dumps((problem, spring(0.7), stepper, state, sol, method))
    back = subprocess.run([sys.executable, "-c", THERE], input=data, capture_output=True, check=True, cwd="/").stdout
    run, again, other, stepped, kept = pickle.loads(back)
    same_bits(run, ph.solve(problem, method, dt=0.05, steps=50))
    same_bits(again, ph.solve(problem.starting(momentum=(0.3, 0.1, -0.2)), method, dt=0.05, steps=50))
    whole = ph.Problem(TILTED, spring(1.25), momentum=(1.0, 2.0, 3.0))
    same_bits(other, ph.solve(whole, method, dt=0.05, steps=50))
    assert stepped == stepper.step(state, field)
    same_bits(kept, sol)


def test_an_event_is_pickled_as_its_formula():
    """So workers of a cluster need not have its module."""
    event = ph.event(lambda t, R, omega, k=2.0: k * omega[0] + R[2][2] - t, direction=1)
    other = pickle.loads(pickle.dumps(event))
    assert (other.direction, other.terminal, other.parameters) == (1, False, (2.0,))
    R, omega = np.eye(3).tolist(), (0.1, 0.2, 0.3)
    assert other.value(0.25, R, omega) == event.value(0.25, R, omega) == 0.95
    assert pickle.loads(pickle.dumps(other)).text == event.text
