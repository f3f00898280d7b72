"""Processed methods: a change of variables before the run, its inverse where a state is looked at."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.kernels.loops import stepping
from polhode.methods.combinators.compose import halves, whole
from polhode.methods.registry import method
from polhode.methods.tables.compositions import processed
from polhode.numbers import floats
from polhode.numbers.dispatch import kernel
from polhode.results.observables import attitude_error, matrices
from polhode.run.integrator import torque_kernel
from representatives import slow_unless

NAMES = list(processed)
DRIFT = "dmv10"


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_is_what_it_declares(name):
    declared = ph.methods[f"{name}({DRIFT})"]
    assert checks.check(declared) == []
    assert declared.order == processed[name].order


@pytest.mark.parametrize("name", [f"{name}({flow})" for name in NAMES for flow in ("symrot", "dmv2")])
def test_over_a_symplectic_flow_it_is_symplectic_and_of_the_flows_order(name):
    declared = ph.methods[name]
    assert (declared.symplectic, declared.order) == (True, 2)
    assert "Order 2 only" in declared.doc
    for check in (checks.check_symplectic, checks.check_poisson, checks.check_order):
        assert check(declared) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_alone_is_of_order_two(name):
    """What the processors are for; the checks see that they are gone."""
    bare = dataclasses.replace(ph.methods[f"{name}({DRIFT})"], before=None, after=None)
    assert any("measured 2.0" in fault for fault in checks.check_order(bare))
    assert any("not symmetric" in fault for fault in checks.check_symmetric(bare))


@pytest.mark.parametrize("name", NAMES)
def test_the_processors_undo_each_other(name):
    declared = ph.methods[f"{name}({DRIFT})"]
    with mpmath.workdps(checks.DIGITS + 5):
        s = checks.Setting(declared, "potential")
        before, after = declared.processors(checks.number)
        h = mpmath.mpf(checks.LARGE_STEP)
        changed, _ = before(h, s.t, s.y, s.system, s.torque)
        back, _ = after(h, s.t, changed, s.system, s.torque)
        assert checks.distance(changed, s.y) > checks.VISIBLE
        assert checks.distance(back, s.y) < checks.EXACT


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", slow_unless(["heavy_top"], ["heavy_top", "soft_wall"]))
def test_compiled_runs_converge_to_the_reference(name, problem):
    what, order = ph.problems.get(problem), processed[name].order
    errors = []
    for dt in (0.1, 0.05):
        end = ph.solve(what, f"{name}({DRIFT})", dt=dt, every=10**6).quaternion[-1]
        errors.append(attitude_error(matrices(end), matrices(np.array(what.reference.quaternion))))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("name", NAMES)
def test_looking_does_not_change_the_run(name):
    """Rows of a run kept rarely are those of one kept often, to the last bit, over several chunks."""
    top = ph.problems.heavy_top()
    often, rarely = (ph.solve(top, f"{name}({DRIFT})", dt=0.02, steps=700, every=k) for k in (1, 50))
    for array in ("quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(rarely, array), getattr(often, array)[::50])
    assert tuple(often.momentum[0]) == top.momentum


def test_a_run_repeats_the_kernel_alone():
    """Torques of n steps looked at once: those of two processors (3 each) and n kernels (1 each)."""
    top = ph.problems.heavy_top()
    declared = ph.methods[f"processed4({DRIFT})"]
    before, after = declared.processors(floats.number)
    torque, calls = torque_kernel(top, floats.number, ph.methods[f"nystrom4({DRIFT})"]), []

    def counting(*given):
        calls.append(given[0])
        return torque(*given)

    advance = stepping(declared.build(floats.number), counting, before=before, after=after)
    y, system = top.kernel_data(floats.number)
    rows = np.empty((3, 7))
    y, *_ = advance(0.1, 0.0, 0, 20, 100, 20, y, system, rows)
    assert len(calls) == 3 + 20 + 3
    calls.clear()
    advance(0.1, 0.0, 20, 10, 100, 40, y, system, rows)  # a later chunk begins where the first ended
    assert len(calls) == 10


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("plain_first")
def test_runs_and_steppers_and_whole_steps_agree(name):
    top = ph.problems.heavy_top()
    run = ph.solve(top, f"{name}({DRIFT})", dt=0.05, steps=20)
    stepper = ph.stepper(top.body, f"{name}({DRIFT})", dt=0.05)
    state = ph.State(top.quaternion, top.momentum)
    for _ in range(20):
        state = stepper.step(state, top.field)
    assert np.abs(np.array(state.quaternion) - run.quaternion[-1]).max() < 1e-14  # round-off of 20 steps
    precise = ph.solve(top, f"{name}({DRIFT})", dt=0.05, steps=3, digits=40)
    with mpmath.workdps(45):
        y, system = top.kernel_data(checks.number)
        step, torque = (
            whole(ph.methods[f"{name}({DRIFT})"])(checks.number),
            torque_kernel(top, checks.number, ph.methods[f"{name}({DRIFT})"]),
        )
        for _ in range(3):
            y, _ = step(checks.number(0.05), checks.number(0), y, system, torque)
        assert max(abs(a - b) for a, b in zip(y[0], precise.mp.quaternion[-1], strict=True)) < mpmath.mpf(10) ** -40


def test_halves_take_the_whole_step():
    part = ph.methods[f"processed4({DRIFT})"]
    both = halves(part, part, register=False)
    with mpmath.workdps(55):
        s, h = checks.Setting(part, "free"), mpmath.mpf(1) / 8
        twice = s.step(h / 2, y=s.step(h / 2))
        assert checks.distance(both.build(checks.number)(h, s.t, s.y, s.system, s.torque)[0], twice) == 0


@ph.potential
def cliff(R, edge):
    return ph.math.sqrt(R[2][2] - edge) + R[0][1]


def test_a_run_that_fails_keeps_its_last_state_changed_back():
    """Unless the change back meets the fault itself: then the last state before is the last that was kept."""
    body = ph.Body([0.6, 0.8, 1.0])
    over = ph.Problem(body, cliff(0.7), momentum=[1.8, 0.4, -0.9])
    kept = []
    for dt in (0.01, 0.02, 0.0125):
        with pytest.raises(ph.StepError, match="the potential cliff") as caught:
            ph.solve(over, f"processed4({DRIFT})", dt=dt, t_end=10.0, every=7)
        partial = caught.value.partial
        steps = round(partial.t[-1] / dt)
        kept.append(steps % 7 > 0)
        good = ph.solve(over, f"processed4({DRIFT})", dt=dt, steps=steps)
        assert np.abs(partial.quaternion[-1] - good.quaternion[-1]).max() < 1e-15  # the same kernels, not compiled
    assert True in kept
    assert False in kept


@pytest.mark.parametrize("digits", [None, 20])
@pytest.mark.usefixtures("plain_first")
def test_a_run_that_cannot_begin_says_so(digits):
    with pytest.raises(ph.StepError, match=r"failed in step 1 .*equation was not solved.*try dt = 0\.") as caught:
        ph.solve(ph.problems.heavy_top(), "processed6(dmv2)", dt=50.0, steps=3, digits=digits)
    assert len(caught.value.partial) == 1


def test_flows_that_cannot_be_undone_are_refused():
    said = dict.fromkeys(("symplectic", "poisson")) | {"order": 1, "order_free": 1, "solves": 0, "torque_evals": 0}

    @method(**said, symmetric=False, needs="free", cite="", where="", register=False)
    @kernel
    def crooked(h, t, y, system, torque):
        return y, 0

    with pytest.raises(ph.InputError, match=r"processed4\(\) undoes its change of variables .* crooked is not sym"):
        ph.processed4(crooked)
    with pytest.raises(ph.InputError, match=r"yoshida4\(\) composes a symmetric method"):
        ph.yoshida4(ph.processed4(DRIFT))
    with pytest.raises(ph.InputError, match=r"processed6\(\) needs a method for free bodies as its drift"):
        ph.processed6("imidm")
