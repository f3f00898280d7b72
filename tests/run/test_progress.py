"""Interrupted runs, and what a run reports on its way."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.results.store import integrity
from polhode.run import adaptive, control_to_tolerance
from polhode.run.control_to_tolerance import hopeless_steps

SOLVE = sys.modules["polhode.run.solve"]

pytestmark = pytest.mark.xdist_group("errors")

FREE = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[1.0, 0.1, 0.2])


def test_interrupt_keeps_what_was_computed() -> None:
    def stop(fraction: float) -> None:
        if fraction > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ph.solve(FREE, "imidm", dt=0.01, steps=10_000_000, every=1000, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    assert 0.2 * 10_000_000 < partial.info.steps < 10_000_000
    assert len(partial) == partial.info.steps // 1000 + 1


def test_an_interrupt_does_not_wait_for_the_conversion_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a hundred million states that would be half a minute."""

    def stop(fraction: float) -> None:
        if fraction > 0.2:
            raise KeyboardInterrupt

    heavy = ph.problems.heavy_top()
    whole = ph.solve(heavy, "imidm", dt=0.01, steps=1000)
    with monkeypatch.context() as here:
        here.setattr("polhode.results.convert.primary", lambda *given: pytest.fail("it waits"))
        with pytest.raises(KeyboardInterrupt) as caught:
            ph.solve(heavy, "imidm", dt=0.01, steps=1000, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert 200 < len(partial) < 1000
    for name in ("t", "quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(partial, name), getattr(whole, name)[: len(partial)])
    np.testing.assert_array_equal(partial.last().quaternion, partial.quaternion[-1:])


def test_progress_function() -> None:
    fractions: list[float] = []
    ph.solve(FREE, "imidm", dt=0.01, steps=3_000_000, every=100_000, progress=fractions.append)
    assert len(fractions) > 2
    assert all(0 < x <= 1 for x in fractions)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


@pytest.mark.parametrize("tolerance", ["tol", "step_tol"])
def test_states_of_an_interrupted_run_are_joined_when_they_are_read(
    tolerance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of minutes are gigabytes, for which Ctrl-C waited seconds and which took their memory twice."""
    joins, usual = list[int](), adaptive.joined

    def joined(parts: list[adaptive.Path]) -> adaptive.Path:
        joins.append(len(parts))
        return usual(parts)

    def stop(fraction: float) -> None:
        if fraction > 0.5:
            raise KeyboardInterrupt

    whole = ph.solve(TOP, step_tol=1e-9, t_end=2000.0, progress=False)
    monkeypatch.setattr(adaptive, "joined", joined)
    monkeypatch.setattr(adaptive, "tell", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        ph.solve(TOP, **{tolerance: 1e-9}, t_end=2000.0, progress=False)  # type: ignore[arg-type]
    assert not joins
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    assert len(partial) == len(partial.quaternion) > 1000
    assert joins == [joins[0]]
    assert joins[0] > 2
    if tolerance == "step_tol":
        np.testing.assert_array_equal(partial.t, whole.t[: len(partial)])
        np.testing.assert_array_equal(partial.momentum, whole.momentum[: len(partial)])


def test_progress_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar only on request or on a terminal; never on stdout."""
    monkeypatch.setattr("polhode.results.progress.PATIENCE", -1.0)
    ph.solve(FREE, "imidm", dt=0.01, steps=1000)
    assert capfd.readouterr() == ("", "")
    ph.solve(FREE, "imidm", dt=0.01, steps=1000, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "imidm" in err
    assert "100%" in err


# --- every way to run -------------------------------------------------------------------------------

TOP = ph.problems.fast_top()
SPINNING = ph.Problem(ph.Body([1.0, 1.0, 0.5]), ph.fields.gravity(mgl=1.0), omega=[0.3, 0.0, 3.0])
OMEGA = np.random.default_rng(3).normal(size=(20, 3))


@ph.torque
def relay(omega: Any) -> Any:
    return [ph.where(omega[0] > 0, -0.1, 0.1), 0.0, 0.0]


@ph.states(heat=0.0)
def warming(omega: Any, heat: Any) -> Any:
    return [-0.1 * omega[0], 0.0, 0.0], {"heat": omega[0] ** 2}


def damping(omega: Any, gain: float = 0.1) -> Any:
    return [-gain * omega[0], 0.0, 0.0]


def switching(omega: Any) -> Any:
    return [-0.1 if float(omega[0]) > 0 else 0.1, 0.0, 0.0]


SWITCHED = ph.Problem(ph.Body([1.0, 2.0, 2.5]), relay(), omega=[1.0, 0.1, 0.2])
WARMED = ph.Problem(ph.Body([1.0, 2.0, 2.5]), warming(), omega=[1.0, 0.1, 0.2])
CONTROL = {"control": damping, "period": 0.1}
IN_PYTHON = {"control": switching, "period": 0.1}

SINGLE: dict[str, Any] = {
    "dt": (TOP, "imidm", {"dt": 0.01, "steps": 3000}),
    "times": (TOP, "imidm", {"dt": 0.01, "times": [1.0, 2.0]}),
    "digits": (TOP, "imidm", {"dt": 0.01, "steps": 10, "digits": 20}),
    "relay": (SWITCHED, "mkrk(rk4)", {"dt": 0.01, "steps": 300}),
    "states": (WARMED, None, {"method": "verner87", "dt": 0.01, "steps": 300}),
    "control": (TOP, "mkrk(rk4)", {"dt": 0.01, "steps": 300, **CONTROL}),
    "control in Python": (TOP, "mkrk(rk4)", {"dt": 0.01, "steps": 300, **IN_PYTHON}),
    "its own steps": (TOP, "reversible(imidm)", {"dt": 0.01, "t_end": 3.0}),
    "exact": (SPINNING, "lagrange", {"dt": 0.01, "steps": 100}),
    "tol": (TOP, None, {"tol": 1e-9, "t_end": 30.0}),
    "step_tol": (TOP, None, {"step_tol": 1e-9, "t_end": 30.0}),
    "tol, digits": (TOP, None, {"tol": 1e-15, "t_end": 0.5, "digits": 20}),
    "tol, states": (WARMED, None, {"tol": 1e-9, "t_end": 30.0}),
    "tol, relay": (SWITCHED, None, {"tol": 1e-6, "t_end": 10.0}),
    "tol, a method without an error estimate": (TOP, "trapm", {"tol": 1e-3, "t_end": 3.0}),
    "tol, control": (TOP, None, {"tol": 1e-7, "t_end": 30.0, **CONTROL}),
    "step_tol, control in Python": (TOP, None, {"step_tol": 1e-7, "t_end": 30.0, **IN_PYTHON}),
}
MANY: dict[str, Any] = {
    "dt": (TOP, "imidm", {"omega": OMEGA, "dt": 0.01, "steps": 300, "every": 1}),
    "own steps": (TOP, "imidm", {"omega": OMEGA, "dt": 0.01, "steps": np.arange(20) + 1}),
    "statistics": (TOP, "imidm", {"omega": OMEGA, "dt": 0.01, "steps": 300, "statistics": "energy"}),
    "relay": (SWITCHED, "mkrk(rk4)", {"omega": OMEGA, "dt": 0.01, "steps": 30, "every": 1}),
    "tol": (TOP, None, {"omega": OMEGA, "tol": 1e-9, "t_end": 3.0}),
    "step_tol": (TOP, None, {"omega": OMEGA, "step_tol": 1e-9, "t_end": 3.0}),
    "exact": (FREE, None, {"omega": OMEGA, "tol": 1e-9, "t_end": 3.0}),
    "tol, relay": (SWITCHED, None, {"omega": OMEGA, "step_tol": 1e-6, "t_end": 1.0}),
    "tol, control": (TOP, None, {"omega": OMEGA[:5], "step_tol": 1e-6, "t_end": 1.0, **CONTROL}),
    "chaos": (TOP, None, {"omega": OMEGA[:5], "step_tol": 1e-6, "times": [0.5, 1.0], "statistics": "megno"}),
}
WAYS = [("one", way) for way in SINGLE] + [("many", way) for way in MANY]


def run(kind: str, way: str, **more: Any) -> Any:
    problem, method, given = (SINGLE if kind == "one" else MANY)[way]
    solver: Any = ph.solve if kind == "one" else ph.ensemble
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the trapezoidal rule of a body is not of interest here
        return solver(problem, **({} if method is None else {"method": method}), **given, **more)


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_every_way_reports_its_progress(kind: str, way: str) -> None:
    """It never decreases, and ends with 1; what is no argument `progress` is refused."""
    fractions: list[float] = []
    run(kind, way, progress=fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[0] >= 0
    assert fractions[-1] == 1.0
    for junk in ("yes", 1, [], np.ones(2)):
        with pytest.raises(ph.InputError, match="progress"):
            run(kind, way, progress=junk)


@pytest.mark.parametrize("way", [way for way in SINGLE if way != "exact"])
def test_every_way_keeps_its_states_when_it_is_interrupted(way: str) -> None:
    calls: list[float] = []

    def stop(fraction: float) -> None:
        calls.append(fraction)
        if len(calls) == min(2, most):
            raise KeyboardInterrupt

    counted: list[float] = []
    run("one", way, progress=counted.append)
    most = len(counted) - 1
    with pytest.raises(KeyboardInterrupt) as caught:
        run("one", way, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    assert len(partial.quaternion) == len(partial) >= 1
    assert (partial.control is not None) == ("control" in way)
    assert bool(partial.states) == ("states" in way or "control" in way)


@pytest.mark.parametrize(("kind", "way"), [x for x in WAYS if "method without" not in x[1]])
def test_no_way_keeps_more_states_than_fit_in_memory(kind: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the number of states is known before, at once; else with those that fit."""
    monkeypatch.setattr(integrity, "memory", lambda: 500.0)
    monkeypatch.setattr(SOLVE, "quickly", lambda *given: None)  # it keeps few states, whatever the machine has
    with pytest.raises((ph.InputError, ph.StepError), match="and this machine has") as caught:
        run(kind, way)
    if isinstance(caught.value, ph.StepError):
        assert "tol" in way
        assert caught.value.partial is not None
        assert len(caught.value.partial) > 1


@pytest.mark.filterwarnings("ignore::polhode.errors.ResultWarning")
def test_a_failed_step_with_statistics_keeps_the_states_before_it() -> None:
    def growing(omega: Any) -> Any:
        return [omega[0] ** 3, 0.0, 0.0]

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.torque(growing)(), omega=[1.0, 0.0, 0.0])
    for given in ({"method": "mkrk(rk4)", "dt": 0.01, "t_end": 2.0}, {"tol": 1e-6, "t_end": 2.0, "times": [0.4, 2.0]}):
        with pytest.raises(ph.StepError) as caught:
            ph.solve(problem, **given, statistics="energy")
        assert caught.value.partial is not None
        assert len(caught.value.partial) > 1


def test_a_loop_that_diverges_says_so() -> None:
    """And holds no more states than fit in memory."""

    def pushing(omega: Any, gain: float = 4.0) -> Any:
        return [gain * x for x in (omega[0], omega[1], omega[2])]

    with pytest.MonkeyPatch.context() as here:
        here.setattr("polhode.run.control_to_tolerance.PAIR_STEPS", 20_000)
        with pytest.raises(ph.StepError, match=r"\|omega\| was 1.02 at the start and is .* unstable") as caught:
            ph.solve(FREE, step_tol=1e-8, t_end=1e4, control=pushing, period=0.5)
    assert caught.value.partial.control.torque.shape[1] == 3  # type: ignore[union-attr]


def pushing(omega: Any, gain: float = 4.0) -> Any:
    return [gain * x for x in (omega[0], omega[1], omega[2])]


def pushing_in_python(omega: Any) -> Any:
    return [4.0 * float(x) for x in omega]


@pytest.mark.parametrize(
    ("law", "how"), [(pushing, {"tol": 1e-8}), (pushing, {"step_tol": 1e-8}), (pushing_in_python, {"step_tol": 1e-8})]
)
def test_a_loop_that_diverges_is_abandoned_early(law: Any, how: Any) -> None:
    """Long before the largest number of steps: they are all held."""
    law = ph.controller(law, plain=law is pushing_in_python)
    with pytest.raises(ph.StepError, match=r"of the last 5 periods took more steps .* the rest of the run") as caught:
        ph.solve(FREE, **how, t_end=1e4, control=law, period=0.5)
    assert 5e5 < len(caught.value.partial) < 2e6  # type: ignore[arg-type]
    assert "unstable" in str(caught.value)


def test_a_loop_whose_first_step_after_a_full_buffer_fails_keeps_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    @ph.torque
    def ending(t: float) -> Any:
        return [1e-12 * ph.math.sqrt(1.2 - t), 0.0, 0.0]

    def failing() -> int:
        with pytest.raises(ph.StepError, match="math domain error") as caught:
            ph.solve(FREE.in_field(ending()), step_tol=1e-8, t_end=1e4, control=pushing, period=0.5)
        return len(caught.value.partial)  # type: ignore[arg-type]

    states = failing()
    short = functools.partial(control_to_tolerance.AdaptiveStep, few_rows=states)
    monkeypatch.setattr(control_to_tolerance, "AdaptiveStep", short)
    assert failing() == states


@pytest.mark.filterwarnings("ignore::polhode.errors.ResultWarning")
def test_a_body_of_an_ensemble_whose_loop_diverges_is_abandoned_early() -> None:
    many = ph.ensemble(FREE, omega=[FREE.omega] * 2, step_tol=1e-8, t_end=1e4, control=pushing, period=0.5)
    assert (many.failed < 2e6).all()
    assert (many.failed > 5e5).all()


def test_a_loop_that_recovers_is_not_abandoned() -> None:
    """Steps become ever more for seven periods, and at that rate the run would take far too many."""

    def recovering(t: float, omega: Any) -> Any:
        gain = ph.where(t < 3.4, 4.0, -1.0)
        return [gain * m * x for m, x in zip(FREE.body.moments.tolist(), omega, strict=True)]

    with pytest.MonkeyPatch.context() as here:
        here.setattr("polhode.run.control_to_tolerance.PAIR_STEPS", 100_000)
        sol = ph.solve(FREE, step_tol=1e-8, t_end=1e4, control=recovering, period=0.5)
    assert sol.status == "finished"
    per_period = np.bincount((sol.t / 0.5).astype(int))
    assert (np.diff(per_period[:7]) > 0).all()
    assert per_period[6] * 2e4 > 100 * 100_000


def test_what_a_run_needs_that_diverges() -> None:
    needed = functools.partial(hopeless_steps, most=5_000_000)
    assert needed(np.array([1, 2, 3, 4, 600_000]), 20_000.0) == 1.2e10
    assert needed(np.array([1, 2, 3, 4, 600_000]), 800.0) == 0  # it may still recover
    assert needed(np.array([1, 2, 3, 3, 600_000]), 20_000.0) == 0
    assert needed(np.array([1, 2, 3, 4, 400_000]), 20_000.0) == 0
    assert needed(np.array([2, 3, 4, 600_000]), 20_000.0) == 0
