"""Steps that fail: the message, and what was computed before."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polhode as ph
from python_loop import failed_in_python, python_states

pytestmark = [pytest.mark.xdist_group("errors"), pytest.mark.usefixtures("in_a_folder")]

FREE = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[1.0, 0.1, 0.2])
OUT = "run.zarr"


def solve(field: Any = None, method: Any = "imidm", **options: Any) -> ph.Trajectory:
    options = {"dt": 0.01, "steps": 20, "out": OUT} | options
    return ph.solve(ph.Problem(FREE.body, field, omega=[1.0, 0.1, 0.2]), method, **options)


@ph.torque
def until(t, R, end):
    return (math.sqrt(end - t), 0, R[0][0])


@ph.torque
def overflowing(t, end):
    huge = ph.where(t > end, 1e308, 0.0) * 10
    return (huge - huge, 0, 0)


def failed(call: Callable[[], Any], message: str) -> ph.StepError:
    with pytest.raises(ph.StepError) as caught:
        call()
    assert str(caught.value) == message
    return caught.value


@pytest.mark.parametrize("digits", [None, 20])
def test_field_fails_at_a_step(digits: int | None) -> None:
    said = {"method": "imidm", "dt": 0.01, "steps": 20, "digits": digits}
    error = failed(
        lambda: solve(until(0.1), **said),
        "imidm failed in step 11 (from t = 0.1 with dt = 0.01): the torque until raised ValueError at t = 0.105: "
        "math domain error; its parameters are end = 0.1; the 11 states before it are in .partial",
    )
    good = solve(until(0.1), **said | {"steps": 10, "out": None})
    partial = error.partial
    assert partial is not None
    assert (partial.status, partial.info.steps) == ("failed", 10)
    for name in ("t", "quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(partial, name), getattr(good, name))
        np.testing.assert_array_equal(getattr(ph.load(OUT), name), getattr(good, name))


def test_field_returns_nan_at_a_step() -> None:
    failed(
        lambda: solve(overflowing(0.1), dt=0.015625, out=None),
        "imidm failed in step 7 (from t = 0.09375 with dt = 0.015625): the torque overflowing must return finite "
        "numbers; it returned (nan, 0, 0) at t = 0.1; the 7 states before it are in .partial",
    )


def test_last_good_state_is_kept() -> None:
    with pytest.raises(ph.StepError) as caught:
        solve(until(0.1), every=4, out=None)
    assert caught.value.partial is not None
    np.testing.assert_allclose(caught.value.partial.t, [0, 0.04, 0.08, 0.1], rtol=1e-15)


@pytest.mark.parametrize("method", [m.name for m in ph.methods.values() if m.implicit])
def test_unsolved_step(method: str) -> None:
    """A hopeless step names method, step, time, dt, residual and a smaller dt; here in plain Python."""
    error = failed_in_python(FREE, method, dt=1e6)
    if error is None:  # it found a root after all
        return
    assert re.fullmatch(
        re.escape(method) + r" failed in step 1 \(from t = 0 with dt = 1e\+06\): its equation was not solved "
        r"\(relative residual (\d\.\de[+-]\d+|infinite)\); the step is long: the body turns by 1e\+06 rad in it; "
        r"try dt = 0\.\d+; the state before it is in \.partial",
        error,
    ), error
    suggested = float(re.findall(r"try dt = ([\d.e+-]+)", error)[0])
    assert python_states(FREE, method, suggested, 1)[1] is None


def test_unsolved_step_with_a_strong_torque() -> None:
    """A slow body with a torque that turns it far in one step: the message says so."""
    attitude = np.array([-0.75, 0.38, -0.08, -0.54])
    field = ph.torque(lambda t, R: (6.85 * R[2][1], -6.85 * R[2][0], 6.85 * ph.math.sin(t)))()
    start = ph.Problem(
        ph.Body([0.91, 1.07, 0.77]), field, attitude=attitude / np.linalg.norm(attitude), momentum=[0.0, -0.01, 0.0]
    )
    error = failed_in_python(start, "trapm", 1.72)
    assert error is not None
    assert re.search(
        r"; the step is long: the body turns by 0\.016 rad in it and its torque turns it by 7\.3 rad more; try dt",
        error,
    ), error


def test_unsolved_step_of_a_run() -> None:
    with pytest.raises(ph.StepError) as caught:
        solve(dt=1e6)
    assert re.fullmatch(
        r"imidm failed in step 1 \(from t = 0 with dt = 1e\+06\): its equation was not solved \(relative residual "
        r"\d\.\de-\d+\); the step is long: the body turns by 1e\+06 rad in it; try dt = 0\.\d+; "
        r"the state before it is in \.partial",
        str(caught.value),
    )
    assert caught.value.partial is not None
    assert caught.value.partial.t.tolist() == [0.0]
    assert ph.load(OUT).status == "failed"


# --- to a tolerance ---------------------------------------------------------------------------------

SLOW = {"tol": 1e-3, "t_end": 1.5}
NEAR = r"(1|1\.0\d*|0\.99\d*)"
DOMAIN = rf"failed at t = {NEAR}: the torque until raised ValueError at t = {NEAR}: math domain error"


@ph.torque
def pole(t, place):
    return (1 / (t - place), 0, 0)


@ph.torque
def driven(t):
    return (0.1 * math.sin(t), 0, 0)


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "trapm"}, {"method": "rk4_quat"}, {"method": "verner87"}, {"method": "taylor(8)"},
     {"digits": 16}, {"digits": 16, "method": "imidm", "tol": 0.1}, {"control": lambda: (0, 0, 0), "period": 0.25}],
    ids=lambda options: " ".join(map(str, options)),
)  # fmt: skip
def test_undefined_torque_on_the_way_to_a_tolerance(options: dict[str, Any]) -> None:
    """The time, the fault of the torque and the states before it, whatever the method and the numbers."""
    start = ph.Problem(FREE.body, until(1.0), omega=[1.0, 0.1, 0.2])
    with pytest.raises(ph.StepError, match=DOMAIN) as caught:
        ph.solve(start, **({"method": None} | SLOW | options), progress=False)
    partial = caught.value.partial
    assert partial is not None
    assert 0.99 < partial.t[-1] <= 1.01
    assert len(partial) > 3


def test_undefined_torque_of_bodies_under_control() -> None:
    start = ph.Problem(FREE.body, until(1.0), omega=[1.0, 0.1, 0.2])
    with pytest.warns(ph.ResultWarning, match=DOMAIN):
        many = ph.ensemble(start, **SLOW, control=lambda: (0, 0, 0), period=0.25)
    assert many.failed[0] > 0


@pytest.mark.parametrize("tol", [1e-9, 1e-12])
def test_pole_of_a_torque(tol: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torque that grows without bounds does not jump."""
    monkeypatch.setattr("polhode.run.step_control.PAIR_STEPS", 20_000)
    start = ph.Problem(FREE.body, pole(1.0), omega=[1.0, 0.1, 0.2])
    with pytest.raises(ph.StepError, match=r"at t = (1|0\.9\d+).*the torque grows beyond all bounds there"):
        ph.solve(start, tol=tol, t_end=2.0, progress=False)


def test_clock_too_coarse_for_steps() -> None:
    told = r"neighbouring doubles at this time are 2 apart, .* choose a t0 closer to 0"
    start = ph.Problem(FREE.body, driven(), omega=[0.1, 1.0, 0.1], t0=1e16)
    with pytest.raises(ph.StepError, match=told):
        ph.solve(start, tol=1e-8, t_end=1e16 + 1000, progress=False)
    with pytest.warns(ph.ResultWarning, match=told):
        ph.solve(start.starting(omega=[1.0, 0.1, 0.2]), tol=1e-8, t_end=1e16 + 1000, progress=False)


# --- torques that begin with the root of zero -------------------------------------------------------

AT_REST = ph.Problem(
    FREE.body, ph.fields.quadratic_drag(0.1) + ph.fields.gravity(1.0), euler_deg=("ZXZ", [0, 30, 0]), omega=[0, 0, 0]
)
NO_SERIES = "no derivatives or Taylor series at this state, .* use a method that takes values of the torque only"


@pytest.mark.parametrize("name", ["tol", "step_tol"])
def test_bodies_at_rest_in_a_drag_with_a_root(name: str) -> None:
    """Their first steps are those of a pair; the others keep the bits that they have among themselves."""
    one = ph.solve(AT_REST, tol=1e-11, t_end=2.0)
    moving = [[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]]
    many = ph.ensemble(AT_REST, omega=[moving[0], [0, 0, 0], moving[1]], **{name: 1e-9}, t_end=2.0)
    assert (many.failed < 0).all()
    np.testing.assert_allclose(many.quaternion[-1, 1], one.quaternion[-1], atol=1e-7)
    np.testing.assert_allclose(many.momentum[-1, 1], one.momentum[-1], atol=1e-7)
    others = ph.ensemble(AT_REST, omega=moving, **{name: 1e-9}, t_end=2.0)
    np.testing.assert_array_equal(many.quaternion[:, [0, 2]], others.quaternion)


@pytest.mark.parametrize("options", [{"dt": 0.1, "steps": 3}, {"tol": 1e-5, "t_end": 1.0}], ids=["dt", "tol"])
def test_series_of_a_root_of_zero(options: dict[str, Any]) -> None:
    with pytest.raises(ph.StepError, match=NO_SERIES):
        ph.solve(AT_REST, "taylor(8)", **options, progress=False)


def test_series_of_a_root_of_zero_in_other_ways() -> None:
    with pytest.raises(ph.StepError, match=NO_SERIES):
        ph.solve(AT_REST, tol=1e-12, t_end=0.1, digits=16, progress=False)
    with pytest.raises(ph.StepError, match=NO_SERIES):
        ph.stepper(AT_REST.body, "taylor(8)", 0.1).step((AT_REST.quaternion, AT_REST.momentum), AT_REST.field)
    with pytest.warns(ph.ResultWarning, match=NO_SERIES):
        ph.ensemble(AT_REST, "taylor(8)", dt=0.1, steps=3)
    with pytest.warns(ph.ResultWarning, match="a variation needs derivatives of the torque, which may not exist"):
        ph.chaos(AT_REST, t_end=1.0)


@ph.torque
def gap(t):
    """Not defined within 1e-4 of t = 0.0375, where no stage of a step of 0.1 lies."""
    return (0, 0, 1e-3 * ph.math.sqrt((t - 0.0375) ** 2 - 1e-8))


@ph.states(z=0.5)
def gap_with_state(t, z):
    return (0, 0, 1e-3 * ph.math.sqrt((t - 0.0375) ** 2 - 1e-8)), {"z": -z}


@ph.event
def never(t):
    return t + 1.0


RUNS: dict[str, Any] = {
    "dt": (gap(), {"method": "mkrk(rk4)", "dt": 0.1}),
    "digits": (gap(), {"method": "verner87", "dt": 0.1, "digits": 20}),
    "tol": (gap(), {"tol": 1e-3}),
    "states, dt": (gap_with_state(), {"method": "verner87", "dt": 0.1}),
    "states, tol": (gap_with_state(), {"tol": 1e-3}),
}


@pytest.mark.parametrize("way", RUNS)
def test_a_state_between_two_steps_that_does_not_exist(way: str) -> None:
    field, how = RUNS[way]
    problem = ph.Problem(FREE.body, field, omega=[0.1, 0.2, 0.3])
    sol = ph.solve(problem, t_end=0.1, **how)
    start = float(sol.t[sol.t < 0.0375].max())
    where = re.escape(f"the state at t = 0.0375, by a step of {0.0375 - start!r} from {start!r}, could")
    with pytest.raises(ph.InputError, match=f"{where} not be computed: the field is not finite in between"):
        sol.at([0.01, 0.0375, 0.05])
    with pytest.raises(ph.InputError, match=where):
        ph.solve(problem, t_end=0.1, times=[0.01, 0.0375, 0.05], **how)
    assert len(sol.at([0.01, 0.05])) == 2


def test_an_event_search_names_the_state_that_does_not_exist() -> None:
    field, how = RUNS["dt"]
    problem = ph.Problem(FREE.body, field, omega=[0.1, 0.2, 0.3])
    with pytest.raises(ph.StepError, match=r"in the event search, the state at t = 0\.0375.* not finite in between"):
        ph.solve(problem, t_end=0.1, events=[never()], **how)


def test_dense_output_that_fails_for_no_reason_in_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sol = ph.solve(ph.Problem(FREE.body, gap_with_state(), omega=[0.1, 0.2, 0.3]), t_end=0.1, tol=1e-3)
    run = sol.dense.run
    found = run.state_at
    monkeypatch.setattr(run, "state_at", lambda times, *path: found(times, *path) if len(times) == 1 else None)
    with pytest.raises(ph.InputError, match="together with others, but can be alone: compiled code or memory is dam"):
        sol.at([0.01, 0.05])
