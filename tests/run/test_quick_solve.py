"""`ph.solve` in the usual case: the results of the general way, bit by bit, with a tenth of the Python calls."""

from __future__ import annotations

import gc
import math
import pickle
import sys
import threading
import types
import weakref
from typing import Any

import numpy as np
import pytest

import polhode as ph
from examples import TILTED
from polhode.run import moderate, quick_solve
from polhode.run import solve as solve_module  # noqa: F401 - the module, whose name the function hides
from polhode.run.prepared_loops import Loops

pytestmark = pytest.mark.xdist_group("propagator")

SOLVE = sys.modules["polhode.run.solve"]

TOLERANCES = ({"step_tol": 1e-3}, {"step_tol": 1e-10}, {"tol": 1e-4}, {"tol": 1e-9})


@ph.potential
def tilted(R, a, b):
    return a * R[2][2] + b * R[0][1]


@ph.torque
def damped(omega, k):
    return (-k * omega[0], -k * omega[1], -k * omega[2])


@ph.torque
def driven(t, k):
    return (k * math.cos(t), 0.0, 0.0)


@ph.torque
def relay(omega, k):
    return (ph.where(omega[0] > 0.2, k, 2 * k), 0.0, 0.05)


@ph.states(wheel=0.0)
def spun(wheel, k):
    return (-k * wheel, 0.0, 0.0), {"wheel": k}


def in_the_general_way(monkeypatch: pytest.MonkeyPatch, problem: ph.Problem, **how: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(SOLVE, "quickly", lambda *given: None)
        return ph.solve(problem, **how)


def is_quick(problem: ph.Problem, t_end: Any, tol: Any = None, step_tol: Any = None) -> bool:
    """Whether a run goes the quick way, once it went the other one."""
    for _ in range(3):
        found = quick_solve.quickly(problem, tol, step_tol, t_end)
    return found is not None


def check_same(monkeypatch: pytest.MonkeyPatch, problem: ph.Problem, **how: Any) -> None:
    expected = in_the_general_way(monkeypatch, problem, **how)
    for _ in range(3):
        found = ph.solve(problem, **how)
    for name in ("t", "quaternion", "momentum", "energy", "omega"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    for name in (
        "method", "reason", "error_estimate", "accepted", "rejected", "steps", "status", "tol", "step_tol", "field",
        "dt", "inertia",
    ):  # fmt: skip
        assert getattr(found.info, name) == getattr(expected.info, name)
    between = np.linspace(expected.t[0], expected.t[-1], 23)
    assert np.array_equal(found.at(between).quaternion, expected.at(between).quaternion)
    assert np.array_equal(found.last().momentum, expected.momentum[-1:])
    assert np.array_equal(ph.solve(problem, **how).last().quaternion, expected.quaternion[-1:])
    assert found.drift() == expected.drift()
    assert np.array_equal(pickle.loads(pickle.dumps(ph.solve(problem, **how))).energy, expected.energy)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ["heavy_top", "slow_top", "fast_top", "soft_wall", "free_body", "prism"])
def test_named_problems_have_the_bits_of_the_general_way(name, tolerance, monkeypatch):
    problem = ph.problems.get(name)
    new = problem.starting(momentum=[1.03 * x for x in problem.momentum])
    check_same(monkeypatch, new, t_end=2.5, **tolerance)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
@pytest.mark.parametrize("field", [None, tilted(1.0, 0.4), damped(0.1), tilted(1.0, 0.4) + damped(0.1)], ids=str)
def test_bodies_with_axes_of_their_own(field, tolerance, monkeypatch):
    problem = ph.Problem(TILTED, field, omega=[0.4, -1.1, 0.7], t0=0.5)
    assert is_quick(problem, 4.5, **tolerance)
    check_same(monkeypatch, problem, t_end=4.5, **tolerance)


def test_other_parameters_and_bodies_in_turn(monkeypatch):
    """The last run is remembered; another body, field or tolerance is not taken for it."""
    for mgl in (1.0, 2.0):
        for moments in ([1.0, 2.0, 2.5], [1.0, 2.0, 2.6]):
            for tol in (1e-6, 1e-7):
                problem = ph.Problem(ph.Body(moments), tilted(mgl, 0.1), omega=[0.4, -1.1, 0.7])
                check_same(monkeypatch, problem, t_end=3.0, tol=tol)


def test_a_long_run_and_one_that_misses_the_tolerance_at_first(monkeypatch):
    check_same(monkeypatch, ph.problems.fast_top(), t_end=20.0, step_tol=1e-9)
    check_same(monkeypatch, ph.problems.fast_top(), t_end=20.0, tol=1e-7)
    far = ph.problems.fast_top()
    assert not is_quick(far, 2000.0, tol=1e-6)


BODY = ph.Body([1.0, 2.0, 2.5])
MOVING = {"omega": [0.4, -1.1, 0.7]}


@pytest.mark.parametrize(
    ("field", "start"),
    [
        (driven(0.5), MOVING),
        (relay(0.1), MOVING),
        (spun(0.1), MOVING),
        (tilted(1.0, 0.4), {"omega": [0.0, 0.0, 0.0]}),
        (tilted(1.0, 0.4), {"omega": [1e7, 0.0, 0.0]}),
        (tilted(1e20, 0.4), MOVING),
    ],
    ids=["time", "jumps", "states", "rest", "fast", "strong"],
)
def test_what_is_special_goes_the_general_way(field, start):
    assert not is_quick(ph.Problem(BODY, field, **start), 1.0, tol=1e-6)


def test_linear_bodies_go_the_general_way():
    assert not is_quick(ph.Problem(ph.Body([0.0, 1.0, 1.0]), omega=[0.0, 1.0, 0.5]), 1.0, tol=1e-6)


def test_backwards_and_special_ends_go_the_general_way(monkeypatch):
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    assert is_quick(problem, 3, tol=1e-6)
    assert is_quick(problem, np.float64(3), tol=1e-6)
    for end in (-3.0, 0.0, math.nan, math.inf, "3", None, 10**400, True):
        assert not is_quick(problem, end, tol=1e-6)
    check_same(monkeypatch, problem, t_end=3, tol=1e-6)


@pytest.mark.parametrize("wrong", [{"tol": 1.0}, {"tol": 0.0}, {"tol": math.nan}, {"step_tol": -1e-3}, {"tol": "1e-6"}])
def test_wrong_tolerances_are_refused(wrong):
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    for _ in range(2):
        with pytest.raises(ph.InputError, match="tol"):
            ph.solve(problem, t_end=1.0, **wrong)
    with pytest.raises(ph.InputError, match="not both"):
        ph.solve(problem, tol=1e-6, step_tol=1e-6, t_end=1.0)


def test_a_run_that_fails_has_the_error_of_the_general_way():
    @ph.torque
    def until(R, height):
        return (math.sqrt(height - R[2][2]), 0.0, 0.0)

    problem = ph.Problem(BODY, until(0.9), attitude=[0.0, 1.0, 0.0, 0.0], omega=[0.3, 0.2, 0.1])
    for _ in range(3):
        with pytest.raises(ph.StepError) as failed:
            ph.solve(problem, step_tol=1e-6, t_end=50.0)
    assert len(failed.value.partial.t) > 1


def test_a_call_makes_few_python_calls():
    """A new state costs what its run costs: at most 300 Python calls were asked for."""
    problem = ph.problems.heavy_top()
    made = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event == "call"

    for i, (tolerance, most) in enumerate((({"step_tol": 1e-6}, 40), ({"tol": 1e-6}, 60))):
        for j in range(4):
            new = problem.starting(momentum=[1.0 + 0.01 * i, 0.2 + 0.01 * j, 20.0])
            made = 0
            sys.setprofile(count)
            try:
                ph.solve(new, t_end=problem.t_end, **tolerance)
            finally:
                sys.setprofile(None)
        assert made <= most


def test_threads_share_the_loops():
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    states = [problem.starting(omega=[0.4, -1.1, 0.7 + 0.01 * i]) for i in range(16)]
    expected = [ph.solve(x, tol=1e-7, t_end=4.0).quaternion[-1] for x in states]
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        for _ in range(20):
            found[i] = ph.solve(states[i], tol=1e-7, t_end=4.0).quaternion[-1]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[i], expected[i]) for i in range(16))


def test_parts_of_a_result_do_not_depend_on_the_order_in_which_they_are_read():
    problem = ph.Problem(TILTED, tilted(1.0, 0.4), **MOVING)
    one, other = (ph.solve(problem, tol=1e-7, t_end=4.0) for _ in range(2))
    energy, attitude = one.energy, one.quaternion
    assert np.array_equal(other.quaternion, attitude)
    assert np.array_equal(other.energy, energy)
    other.quaternion[:] = 0.0
    assert np.array_equal(other.at([1.0]).quaternion, one.at([1.0]).quaternion)


@pytest.mark.parametrize("field", [None, tilted(1.0, 0.4)], ids=str)
def test_the_last_state_keeps_no_others(field):
    """A list of last states needs little memory."""
    for _ in range(2):  # the general way, the quick one
        sol = ph.solve(ph.Problem(BODY, field, **MOVING), tol=1e-7, t_end=4.0)
        steps, path = sol.info.steps, weakref.ref(sol.stored.path)
        last = sol.last()
        del sol
        gc.collect()  # the general way has a cycle
        assert path() is None
        assert last.stored.path.rows.base is None
        assert (len(last), last.info.steps) == (1, steps)


def test_a_state_at_which_the_field_fails_is_refused():
    @ph.potential
    def inverse(R, k):
        return k / R[2][2]

    problem = ph.Problem(BODY, inverse(1.0), **MOVING)
    ph.solve(problem, tol=1e-6, t_end=0.1)
    with pytest.raises(ph.InputError, match="division"):
        problem.starting(attitude=[0.5, 0.5, 0.5, 0.5])


def again(problem: ph.Problem, **how: Any) -> Any:
    """The last of several runs, which goes the quick way."""
    return [ph.solve(problem, **how) for _ in range(4)][-1]


@pytest.mark.parametrize("field", [None, tilted(1.0, 0.4)], ids=str)
def test_a_result_keeps_the_problem_as_it_was(field, monkeypatch):
    """Whatever is read from it later: attributes of a problem may be replaced."""
    for solved in (again, lambda problem, **how: in_the_general_way(monkeypatch, problem, **how)):
        problem = ph.Problem(BODY, field, **MOVING)
        expected, sol = (solved(problem, tol=1e-7, t_end=3.0) for _ in range(2))
        names = "t", "quaternion", "momentum", "omega", "energy"
        known = [getattr(expected, name) for name in names]
        about, drift = expected.info.problem, expected.drift()
        problem.t0, problem.body, problem.name = 1.0, ph.Body([7.0, 7.0, 3.0]), "other"
        if field is not None:
            problem.field = tilted(3.0, 0.0)
        for name, values in zip(names, known, strict=True):
            assert np.array_equal(getattr(sol, name), values), name
        assert sol.info.problem == about
        assert sol.drift() == drift


@pytest.mark.parametrize("body", [BODY, ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 2.5]])], ids=str)
def test_replaced_starts_are_converted_as_in_the_general_way(body, monkeypatch):
    problem = ph.Problem(body, tilted(1.0, 0.4), **MOVING)
    again(problem, step_tol=1e-7, t_end=2.0)
    for momentum in ([0.1, 0.2, 0.3], np.array([0.1, 0.2, 0.3]), tuple(np.array([0.1, 0.2, 0.3], np.float32))):
        problem.momentum = momentum
        sol = ph.solve(problem, step_tol=1e-7, t_end=2.0)
        expected = in_the_general_way(monkeypatch, problem, step_tol=1e-7, t_end=2.0)
        assert np.array_equal(sol.momentum, expected.momentum)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tol": math.nan}, "tol must be finite"), ({"step_tol": math.inf}, "step_tol must be finite"),
        ({"tol": 5.0, "t_end": math.nan}, "t_end must be finite"),
    ],
)  # fmt: skip
def test_messages_are_those_of_the_general_way(given, said):
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    for _ in range(3):
        with pytest.raises(ph.InputError, match=said):
            ph.solve(problem, **{"t_end": 1.0} | given)


def test_an_interrupted_run_has_a_part(monkeypatch):
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    expected = again(problem, tol=1e-7, t_end=2.0)
    monkeypatch.setattr(quick_solve.PathRun, "_choose_steps", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        ph.solve(problem, tol=1e-7, t_end=2.0)
    partial = stop.value.partial
    assert (len(partial), partial.status) == (1, "interrupted")
    assert np.array_equal(partial.quaternion[0], expected.quaternion[0])


def test_short_runs_need_little_memory(monkeypatch):
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    short = {"step_tol": 1e-7, "t_end": 0.5}
    for sol in (again(problem, **short), in_the_general_way(monkeypatch, problem, **short)):
        assert len(sol) < 20
        assert sol.stored.path.rows.base is None
    kept = [again(problem, step_tol=1e-7, t_end=t).momentum.copy() for t in (0.5, 0.6)]
    sols = [ph.solve(problem, step_tol=1e-7, t_end=t) for t in (0.5, 0.6)]  # which use the same buffer in turn
    assert all(np.array_equal(sol.momentum, m) for sol, m in zip(sols, kept, strict=True))


def test_the_reason_of_a_second_choice_keeps_no_path():
    """A tolerance that Taylor steps miss, so that a pair is tried."""
    body = ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 2.5]])
    with pytest.warns(ph.ResultWarning, match="more than tol"):
        sol = ph.solve(ph.Problem(body, ph.fields.gravity(mgl=1.5), momentum=[0.3, 1.0, 0.2]), tol=1e-10, t_end=500.0)
    path, last = weakref.ref(sol.stored.path), sol.last()
    described = last._info
    del sol, last
    gc.collect()
    assert path() is None
    assert not any(isinstance(x, np.ndarray) for x in gc.get_referents(described))
    assert not any(type(x).__name__ in ("Solution", "Path") for x in reachable(described))


def reachable(thing: Any) -> list[Any]:
    """What a partial function holds, without modules and classes."""
    seen: dict[int, Any] = {}
    waiting = [thing]
    while waiting:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, type(sys) | type) or len(seen) > 100_000:
            continue
        seen[id(x)] = x
        if isinstance(x, types.FunctionType):
            waiting += [cell.cell_contents for cell in x.__closure__ or ()]
        elif isinstance(x, tuple | list | dict) or type(x).__name__ in ("partial", "Solution", "Path"):
            waiting += gc.get_referents(x)
    return list(seen.values())


def test_bounds_of_torques_are_found_once(monkeypatch):
    """Not again for each tolerance, or when fields and parameter values take turns."""
    walls = [ph.problems.soft_wall(), *(ph.Problem(BODY, tilted(a, 0.1), **MOVING) for a in (1.0, 900.0))]
    for problem in walls:
        again(problem, step_tol=1e-4, t_end=1.0)

    def asked(*given: Any) -> bool:
        raise AssertionError("the bound is known")

    monkeypatch.setattr(moderate.bounds, "is_below", asked)
    for tol in (1e-4, 2e-4):
        for problem in walls:
            again(problem, step_tol=tol, t_end=1.0)


def test_choices_of_steps_are_kept_for_states_of_any_speed(monkeypatch):
    problem = ph.Problem(BODY, tilted(1.0, 0.4), **MOVING)
    states = [problem.starting(momentum=[0.0, 0.02 * size, size]) for size in np.logspace(-1, 3.2, 60).tolist()]
    for _ in range(4):
        again(states[0], step_tol=1e-9, t_end=1.0)
    ends = [ph.solve(x, step_tol=1e-9, t_end=1.0).momentum[-1] for x in states]

    def looked_up(*given: Any) -> float:
        raise AssertionError("the choice is known")

    monkeypatch.setattr(Loops, "_edge", looked_up)
    for state, end in zip(states, ends, strict=True):
        assert np.array_equal(ph.solve(state, step_tol=1e-9, t_end=1.0).momentum[-1], end)
