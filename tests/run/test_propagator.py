"""Prepared runs to a tolerance: the bits and the errors of `ph.solve`."""

from __future__ import annotations

import contextlib
import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from examples import TILTED, growing
from polhode.run import error_estimate, prepared, prepared_loops
from polhode.run.propagator import Propagator

pytestmark = pytest.mark.xdist_group("propagator")

TOLERANCES = ({"step_tol": 1e-4}, {"step_tol": 1e-11}, {"tol": 1e-6})
NAMES = ph.problems.names()


@ph.torque
def driven(t, R, k):
    return (k * math.cos(t), -k * R[2][0], 0.0)


@ph.torque
def damped(omega, k):
    return (-k * omega[0], -k * omega[1], -k * omega[2])


@ph.torque
def relay(omega, k):
    return (ph.where(omega[0] > 0.2, k, 2 * k), 0.0, 0.05)


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque
def until(R, height):
    return (math.sqrt(height - R[2][2]), 0.0, 0.0)


def starts(problem: ph.Problem) -> list[Any]:
    """The named state and one near it."""
    q = Rotation.from_quat(problem.quaternion, scalar_first=True) * Rotation.from_rotvec([0.01, -0.02, 0.015])
    return [
        (problem.quaternion, problem.momentum),
        (tuple(q.as_quat(scalar_first=True).tolist()), tuple(1.01 * x for x in problem.momentum)),
    ]


def check_same(fly: Propagator, problem: ph.Problem, q: Any, m: Any, end: float, **tolerance: float) -> ph.FinalState:
    """The end of a propagator must have the bits and the properties of that of `ph.solve`."""
    made = fly(q, m, end)
    sol = ph.solve(problem.starting(attitude=q, momentum=m), t_end=end, **tolerance)
    assert np.array_equal(made.quaternion, sol.quaternion[-1])
    assert np.array_equal(made.momentum, sol.momentum[-1])
    assert (made.t, made.method, made.error_estimate) == (end, sol.method, sol.error_estimate)
    assert np.allclose(made.omega, sol.omega[-1], rtol=1e-14, atol=1e-14 * np.abs(sol.omega[-1]).max())
    if problem.field is not None:
        assert made.steps == sol.accepted
    return made


# --- the bits of ph.solve ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_the_bits_are_those_of_solve_in_both_directions_of_time(name, tolerance):
    problem = ph.problems.get(name)
    fly, span = ph.propagator(problem, **tolerance), min(problem.t_end or 5.0, 20.0)
    for q, m in starts(problem):
        for end in (problem.t0 + span, problem.t0 - span / 2):
            check_same(fly, problem, q, m, end, **tolerance)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
@pytest.mark.parametrize("field", [None, driven(0.5), damped(0.1), gravity(2.0)], ids=str)
def test_the_bits_are_those_of_solve_with_axes_of_the_body(field, tolerance):
    problem = ph.Problem(TILTED, field, omega=[0.4, -1.1, 0.7], t0=0.5)
    fly = ph.propagator(problem, **tolerance)
    for end in (4.5, -2.25):
        check_same(fly, problem, *starts(problem)[1], end, **tolerance)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 1e-9, 3e3, 1e8])
def test_slow_and_fast_motion_has_the_bits_of_solve(rate, tolerance):
    body = ph.Body([1.0, 2.0, 2.5])
    problem = ph.Problem(body, gravity(rate**2), omega=[0.3 * rate, -0.5 * rate, 0.7 * rate])
    check_same(
        ph.propagator(problem, **tolerance), problem, problem.quaternion, problem.momentum, 3 / (rate or 1), **tolerance
    )


def test_a_free_body_has_the_bits_of_solve_on_the_short_way():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[0.3, -0.5, 0.7], t0=0.25)
    fly = ph.propagator(problem, tol=1e-8)
    fly(t_end=5.0)  # the first call prepares
    rng = np.random.default_rng(3)
    for rate in (0.0, 1e-9, *10 ** rng.uniform(-3, 3, 100), 1e8):  # some need other units
        q, m = rng.normal(size=4), (rate * rng.normal(size=3)).tolist()
        q *= (1 + 1e-9 * rng.normal()) / np.linalg.norm(q)
        end = 0.25 + 10 ** rng.uniform(0, 3) / (rate or 1.0)
        made = check_same(fly, problem, tuple(q.tolist()), tuple(m), end, tol=1e-8)
        assert made == fly(q.tolist(), m, end) == fly(q, np.array(m), end)


def test_a_strong_torque_has_the_bits_of_solve():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), gravity(1e14), omega=[1.0, 2.0, 0.5])
    check_same(
        ph.propagator(problem, step_tol=1e-8), problem, problem.quaternion, problem.momentum, 1e-6, step_tol=1e-8
    )


def test_long_runs_have_the_bits_of_solve():
    problem = ph.problems.fast_top()
    for tolerance in ({"step_tol": 1e-9}, {"tol": 1e-7}):
        fly = ph.propagator(problem, **tolerance)
        for end in (20.0, 0.5, 20.0):  # long runs, short runs and long ones again
            check_same(fly, problem, *starts(problem)[1], end, **tolerance)
    assert fly(*starts(problem)[1], 20.0).steps > 1300


@pytest.mark.parametrize("tolerance", [{"step_tol": 1e-9}, {"tol": 1e-7}], ids=str)
def test_long_runs_need_no_stored_path(tolerance, monkeypatch):
    problem = ph.problems.fast_top()
    fly, start = ph.propagator(problem, **tolerance), starts(problem)[1]
    made = fly(*start, 20.0)
    monkeypatch.setattr(Propagator, "_flown", None)
    assert fly(*start, 20.0) == made


@pytest.mark.parametrize(("tol", "share", "how"), [(1e-3, 1.0, "finer"), (1e-6, 100.0, "new")])
def test_several_attempts_are_made_on_the_short_way(tol, share, how, monkeypatch):
    """Close to the upright top, errors grow: the first run is repeated, or far from the tolerance made anew."""
    monkeypatch.setattr(error_estimate, "FIRST", share)
    problem = ph.problems.slow_top()
    fly, (q, m) = ph.propagator(problem, tol=tol), starts(problem)[1]
    made = check_same(fly, problem, q, m, 20.0, tol=tol)
    assert made.error_estimate is not None
    tried: dict[str, list[float]] = {"finer": [], "new": []}
    repeated, renewed = error_estimate.more_steps, error_estimate.next_tolerance
    monkeypatch.setattr(prepared, "more_steps", lambda *given: tried["finer"].append(given[0]) or repeated(*given))
    monkeypatch.setattr(
        error_estimate, "next_tolerance", lambda *given: tried["new"].append(given[0]) or renewed(*given)
    )
    monkeypatch.setattr(Propagator, "_flown", None)
    assert fly(q, m, 20.0) == made
    assert len(tried["finer"]) > 1
    assert bool(tried["new"]) == (how == "new")


def test_a_field_with_branches_has_the_bits_of_solve():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), relay(0.3), omega=[-0.3, 0.9, 0.4])
    check_same(ph.propagator(problem, tol=1e-6), problem, problem.quaternion, problem.momentum, 5.0, tol=1e-6)


def test_a_tolerance_that_is_out_of_reach_gives_the_bits_of_solve():
    problem = ph.problems.heavy_top()
    with pytest.warns(ph.ResultWarning, match="give a larger tol, or digits"):
        made = check_same(ph.propagator(problem, tol=1e-15), problem, *starts(problem)[1], 10.0, tol=1e-15)
    assert made.error_estimate is not None
    assert made.error_estimate > 1e-15


# --- forms of the input -----------------------------------------------------------------------------


def test_other_forms_of_the_start_give_the_same_state():
    problem = ph.problems.heavy_top()
    fly, (q, m) = ph.propagator(problem, step_tol=1e-9), starts(problem)[1]
    expected = fly(q, m, 5.0)
    omega = problem.starting(momentum=m).omega
    assert fly(np.array(q), np.array(m), 5.0) == expected
    assert fly(list(q), list(m), 5) == expected
    assert fly(list(q), list(m), np.float64(5.0), t0=0) == expected
    turned = fly(Rotation.from_quat(q, scalar_first=True), omega=omega, t_end=5.0)
    assert np.allclose(turned.quaternion, expected.quaternion, atol=1e-13)
    assert np.allclose(turned.momentum, expected.momentum, atol=1e-13)
    own = ph.solve(problem, step_tol=1e-9)
    assert np.array_equal(fly().quaternion, own.quaternion[-1])


def test_a_run_can_be_continued():
    problem = ph.problems.heavy_top()
    fly, (q, m) = ph.propagator(problem, step_tol=1e-12), starts(problem)[1]
    half, whole = fly(q, m, 2.5), fly(q, m, 5.0)
    rest = fly(half.quaternion, half.momentum, 5.0, t0=half.t)
    back = fly(rest.quaternion, rest.momentum, 0.0, t0=rest.t)
    assert np.allclose(rest.quaternion, whole.quaternion, atol=1e-10)
    assert np.allclose(back.quaternion, q, atol=1e-10)
    assert np.allclose(back.momentum, m, atol=1e-10)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_new_values_of_parameters_have_the_bits_of_solve(tolerance):
    body = ph.Body([1.0, 2.0, 2.5])
    problem = ph.Problem(body, gravity(2.0), omega=[0.3, 0.5, -0.9])
    fly, (q, m) = ph.propagator(problem, **tolerance), starts(problem)[1]
    for mgl in (1.0, 3.0, 3.0, 2.0):
        made = fly(q, m, 4.0, params={"mgl": mgl})
        sol = ph.solve(ph.Problem(body, gravity(mgl), attitude=q, momentum=m), t_end=4.0, **tolerance)
        assert np.array_equal(made.quaternion, sol.quaternion[-1])
    assert fly(q, m, 4.0) == made


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_new_values_of_parameters_prepare_nothing(tolerance, monkeypatch):
    body = ph.Body([1.0, 2.0, 2.5])
    problem = ph.Problem(body, gravity(2.0) + damped(0.1), omega=[0.3, 0.5, -0.9])
    fly, (q, m) = ph.propagator(problem, **tolerance), starts(problem)[1]
    for end in (4.0, -1.0):
        fly(q, m, end, params={"mgl": 1.9})
        for _ in range(2):
            ph.solve(problem, t_end=end, **tolerance)
    monkeypatch.setattr(prepared.Direction, "__init__", None)
    monkeypatch.setattr(prepared_loops.Loops, "_choice", None)
    for mgl in (0.3, 7.0, 2.0, -3.0):
        for end in (4.0, -1.0):
            made = fly(q, m, end, params={"mgl": mgl})
            sol = ph.solve(problem.in_field(gravity(mgl) + damped(0.1)).starting(attitude=q, momentum=m), t_end=end,
                           **tolerance)  # fmt: skip
            assert np.array_equal(made.quaternion, sol.quaternion[-1])
            assert made.error_estimate == sol.error_estimate


def test_extreme_values_of_parameters_have_the_bits_of_solve():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), gravity(2.0), omega=[0.3, 0.5, -0.9])
    fly, (q, m) = ph.propagator(problem, step_tol=1e-8), starts(problem)[1]
    for mgl in (1.0, 1e14, 3.0):  # the second one needs other units
        made = fly(q, m, 1e-6, params={"mgl": mgl})
        sol = ph.solve(problem.in_field(gravity(mgl)).starting(attitude=q, momentum=m), t_end=1e-6, step_tol=1e-8)
        assert np.array_equal(made.quaternion, sol.quaternion[-1])


# --- mistakes ---------------------------------------------------------------------------------------

BAD = {
    "no unit quaternion": {"attitude": (1.0, 0.5, 0.0, 0.0)},
    "three numbers": {"attitude": (1.0, 0.0, 0.0)},
    "NaN": {"attitude": (math.nan, 0.0, 0.0, 0.0)},
    "text": {"attitude": "up"},
    "infinite momentum": {"momentum": (1.0, math.inf, 0.0)},
    "momentum and omega": {"omega": (1.0, 0.0, 0.0)},
    "no span": {"t_end": 0.0},
    "NaN as end": {"t_end": math.nan},
    "infinite end": {"t_end": -math.inf},
    "text as end": {"t_end": "10"},
    "few doubles": {"t_end": 1e9 + 1e-6, "t0": 1e9},
    "NaN as start": {"t0": math.nan},
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("field", [None, gravity(2.0)], ids=str)
def test_bad_input_is_refused_in_the_words_of_solve(name, field):
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), field, omega=[0.3, 0.5, -0.9])
    start = {"attitude": (1.0, 0.0, 0.0, 0.0), "momentum": (0.3, 1.0, -2.0), "t_end": 4.0} | BAD[name]
    fly = ph.propagator(problem, step_tol=1e-8)
    fly((1.0, 0.0, 0.0, 0.0), (0.3, 1.0, -2.0), 4.0)  # later calls go the short way
    with pytest.raises(ph.InputError) as ours:
        fly(**start)
    end = start.pop("t_end")
    with pytest.raises(ph.InputError) as expected:
        ph.solve(problem.starting(**start), step_tol=1e-8, t_end=end)
    assert str(ours.value) == str(expected.value)


@pytest.mark.parametrize("tolerance", TOLERANCES, ids=str)
def test_a_run_that_fails_says_what_solve_says(tolerance):
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), growing(5.0), omega=[1.0, 0.1, 0.1])
    fly = ph.propagator(problem, **tolerance)
    with pytest.raises(ph.StepError) as ours:
        fly(problem.quaternion, problem.momentum, 10.0)
    with pytest.raises(ph.StepError) as expected:
        ph.solve(problem, t_end=10.0, **tolerance)
    assert str(ours.value) == str(expected.value)
    assert len(ours.value.partial) == len(expected.value.partial)


def test_a_torque_without_a_value_at_the_start_is_an_input_error():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), until(0.5), euler=("XYZ", [2.0, 0.0, 0.0]), omega=[0.3, 0.5, -0.9])
    fly = ph.propagator(problem, step_tol=1e-8)
    with pytest.raises(ph.InputError, match="at the start"):
        fly((1.0, 0.0, 0.0, 0.0), problem.momentum, 1.0)


def test_bad_preparations_are_refused():
    problem = ph.problems.heavy_top()
    with pytest.raises(ph.InputError, match="tol"):
        ph.propagator(problem)
    with pytest.raises(ph.InputError, match="not both"):
        ph.propagator(problem, tol=1e-6, step_tol=1e-6)
    with pytest.raises(ph.InputError, match=r"between 1e-15 and 0\.1 in double precision; got 1"):
        ph.propagator(problem, step_tol=1.0)
    with pytest.raises(ph.InputError, match=r"ph\.Problem"):
        ph.propagator(problem.body, tol=1e-6)  # type: ignore[arg-type]
    with pytest.raises(ph.InputError, match="no parameter"):
        ph.propagator(problem, tol=1e-6)(params={"mass": 1.0})
    with pytest.raises(ph.InputError, match="no field"):
        ph.propagator(ph.problems.free_body(), tol=1e-6)(params={"mass": 1.0})


# --- pickles and threads ----------------------------------------------------------------------------


def test_a_propagator_comes_back():
    problem = ph.problems.heavy_top()
    fly, (q, m) = ph.propagator(problem, step_tol=1e-9), starts(problem)[1]
    same = pickle.loads(pickle.dumps(fly))
    made, expected = same(q, m, 5.0), fly(q, m, 5.0)
    assert (made.quaternion, made.momentum) == (expected.quaternion, expected.momentum)
    again = pickle.loads(pickle.dumps(made))
    assert (again.quaternion, again.omega) == (made.quaternion, made.omega)


def test_threads_share_a_propagator():
    problem = ph.problems.fast_top()
    fly, (q, m) = ph.propagator(problem, step_tol=1e-6), starts(problem)[1]
    ends = [1.0 + 0.25 * i for i in range(16)]
    expected, got = [fly(q, m, end) for end in ends], [None] * len(ends)

    def work(first: int) -> None:
        for _ in range(20):
            for i in range(first, len(ends), 4):
                got[i] = fly(q, m, ends[i])  # type: ignore[call-overload]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == expected


@ph.torque
def dead_band(omega, k):
    return (-k * ph.where(abs(omega[0]) > 0.1, omega[0], 0.0), 0.05, -k * omega[2])


@pytest.mark.parametrize("tolerance", [{"step_tol": 1e-5}, {"tol": 1e-5}])
def test_jumps_are_located_as_by_solve(tolerance):
    """With `step_tol` a propagator crossed them in short steps, with another method."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), dead_band(0.7), momentum=[-1.5, 0.6, 0.7])
    with contextlib.nullcontext() if "tol" in tolerance else pytest.warns(ph.ResultWarning, match="order is lost"):
        sol = ph.solve(problem, **tolerance, t_end=5.0)  # slides along a jump, where step_tol promises nothing
        end = ph.propagator(problem, **tolerance)(t_end=5.0)
    assert (end.quaternion, end.momentum) == (tuple(sol.quaternion[-1]), tuple(sol.momentum[-1]))
    assert end.method == sol.method


def test_sums_over_rows():
    """A column of data is no number, of which a bound could be looked for."""

    @ph.potential
    def charged(R, charges):
        return ph.total(lambda c: c[0] * R[2][2] + c[1] * R[1][2], charges)

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), charged(charges=[[0.1, 0.2], [0.3, 0.1]]), momentum=[0.3, 1.0, 0.2])
    fly, sol = ph.propagator(problem, tol=1e-6), ph.solve(problem, tol=1e-6, t_end=1.0)
    for _ in range(3):
        assert fly(problem.quaternion, problem.momentum, 1.0).quaternion == tuple(sol.quaternion[-1].tolist())


def test_parameters_that_are_arrays_may_repeat_and_change_in_place():
    """The propagator of the last parameters is kept; which they were does not depend on the arrays given."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.gyrostat((0.1, 0.0, 0.2)), omega=[0.3, 1.0, 0.2])
    fly, rotor = ph.propagator(problem, step_tol=1e-8), np.array([0.1, 0.0, 0.2])
    first = fly(t_end=1.0, params={"momentum": rotor})
    assert fly(t_end=1.0, params={"momentum": rotor.copy()}) == first
    rotor[0] = 0.5
    assert fly(t_end=1.0, params={"momentum": rotor}).momentum != first.momentum
    with pytest.raises(ph.InputError, match="params must be"):
        fly(t_end=1.0, params=rotor)
