"""Solving to a tolerance: the true error, the choice of the method, states between steps, bad input."""

import concurrent.futures
import copy
import dataclasses
import warnings

import numpy as np
import pytest

import polhode as ph
from polhode.analysis import bench, reference
from polhode.errors import ToleranceWarning
from polhode.results import observables
from polhode.run import adaptive, prepared, schedule, step_control, system, tolerance

TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-12, 1e-13)
EPS = 2.0**-52


def momentum_error(problem, sol):
    m = np.array(problem.reference.momentum)
    return np.linalg.norm(sol.momentum[-1] - m) / np.linalg.norm(problem.momentum)


def effect_of_one_ulp(problem):
    """How far the end moves when one number of the start does by one unit in its last place."""

    def end(m):
        start = ph.Problem(problem.body, problem.field, attitude=problem.quaternion, momentum=m)
        return adaptive.Run(start, step_control.taylor(start), problem.t_end, EPS / 16)().rows[-1]

    m = np.array(problem.momentum)
    scale = np.linalg.norm(m)
    moved = [end(m + np.spacing(m) * (np.arange(3) == i)) for i in range(3)]
    return max(adaptive.distance(row, end(m), scale) for row in moved)


OWN_FIELD = ("coulomb_wall", "dipole_in_field", "libration", "quadratic_well", "soft_wall")
"""Problems with few steps and fields that no other problem has: their programs would be compiled for this alone."""


@pytest.mark.parametrize("name", [name for name in ph.problems.names() if name not in OWN_FIELD])
def test_the_true_error_is_what_was_asked_for(name):
    true_error_is_what_was_asked_for(name)


@pytest.mark.parametrize("name", OWN_FIELD)
@pytest.mark.usefixtures("plain_first")
def test_the_true_error_in_a_field_of_its_own(name):
    true_error_is_what_was_asked_for(name)


def solved(problem, tol):
    """A run to a tolerance, which warns exactly if it estimates a larger error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sol = ph.solve(problem, tol=tol)
    assert [x.category for x in told] == [ToleranceWarning] * (sol.error_estimate > tol)
    return sol


def true_error_is_what_was_asked_for(name):
    """At most ten times the tolerance (or the effect of one rounding), not a thousand times smaller unless exact."""
    problem = ph.problems.get(name)
    for tol in TOLERANCES:
        sol = solved(problem, tol)
        error = max(bench.reference_error(problem, sol.quaternion[-1]), momentum_error(problem, sol))
        allowed = 10 * tol
        if error > allowed:
            allowed = max(allowed, 10 * effect_of_one_ulp(problem))
        assert error <= allowed + problem.reference.error, (name, tol, sol.method)
        assert error >= tol / 1000 or problem.field is None or tol < 1e-12, (name, tol, sol.method)
        assert (sol.t[0], sol.t[-1]) == (problem.t0, problem.t_end)
        assert sol.accepted == len(sol) - 1
        assert sol.rejected >= 0
        assert sol.reason
        assert sol.error_estimate <= tol or "round-off and the sensitivity" in sol.reason or problem.field is None
        if tol >= 1e-9:  # above round-off the estimate is of the right size
            assert error <= 10 * sol.error_estimate


@pytest.mark.parametrize(
    ("name", "tol", "why"),
    [
        ("free_body", 1e-8, "the exact solution"), ("fast_top", 1e-12, "Taylor steps at this tolerance need less"),
        ("soft_wall", 1e-8, "pair 8(7) at this tolerance needs less"),
    ],
)  # fmt: skip
def test_three_kinds_of_method_are_chosen_on_the_named_problems(name, tol, why):
    sol = ph.solve(ph.problems.get(name), tol=tol)
    assert why in sol.reason
    assert ph.methods[sol.method].name == sol.method


@pytest.mark.parametrize(
    ("name", "step_tol", "method"),
    [
        ("fast_top", 1e-9, "taylor(19)"), ("heavy_top", 1e-9, "verner87"), ("heavy_top", 1e-13, "taylor(21)"),
        ("fast_top", 1e-5, "verner87"), ("heavy_top", 1e-3, "enright_verner76"),
    ],
)  # fmt: skip
def test_the_series_at_the_start_decide_between_kinds_of_steps(name, step_tol, method):
    """A top that spins fast has series that converge fast; one that tumbles has not."""
    problem = ph.problems.get(name)
    sol = ph.solve(problem, step_tol=step_tol, t_end=2.0)
    assert sol.method == method
    end = ph.propagator(problem, step_tol=step_tol)(problem.quaternion, problem.momentum, 2.0)
    assert (end.method, end.quaternion) == (method, tuple(sol.quaternion[-1].tolist()))


def test_long_formulas_take_the_pair_wherever_it_is_accurate_enough():
    body, orbit = ph.Body([1.0, 1.5, 2.0]), ph.Orbit(mu=1.0, semi_major_axis=1.0, eccentricity=0.3)
    long, short = ph.fields.orbit_gravity_gradient(body, orbit), ph.fields.gravity(1.0)
    kinds = [step_control.formula(ph.Problem(body, field, omega=[0.1, 0.2, 1.0])) for field in (long, short)]
    assert kinds[0].series >= step_control.MANY_SERIES > kinds[1].series
    assert [kinds[0].choice(tol, 10.0, 0.05).kinds[0].name for tol in (1e-3, 1e-10, 1e-12)] == ["verner87"] * 2 + [
        "taylor"
    ]


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
def test_the_tolerance_of_steps_needs_one_run(tol, monkeypatch):
    """No second run is made, so there is no estimate; the error is that of the steps."""
    runs, problem = [], ph.problems.heavy_top()
    for kind in (adaptive.Run, prepared.EndRun):  # of the first call and of later ones
        monkeypatch.setattr(kind, "__call__", lambda run, usual=kind.__call__: runs.append(run) or usual(run))
    for calls in (1, 2):
        sol = ph.solve(problem, step_tol=tol)
        assert len(runs) == calls
    assert (sol.error_estimate, sol.info.tol, sol.info.step_tol) == (None, None, tol)
    assert "not estimated" in sol.reason
    assert bench.reference_error(problem, sol.quaternion[-1]) < 20 * tol


@pytest.mark.usefixtures("plain_first")
def test_a_torque_of_time_is_sampled_once_for_all_states_of_one_size(monkeypatch):
    @ph.torque
    def push(t, a):
        return a * ph.math.sin(3 * t), 0.0, a

    field, body = push(0.1), ph.Body([1.0, 2.0, 2.5])

    def solved(x):
        return ph.solve(ph.Problem(body, field, omega=[0.7 + x, 0.1, 0.2]), tol=1e-7, t_end=3.0)

    solved(0.0)
    monkeypatch.setattr(schedule, "_cells", None)
    assert solved(0.01).status == "finished"


@pytest.mark.parametrize("name", ["free_body", "soft_wall", "fast_top"])
@pytest.mark.usefixtures("plain_first")
def test_states_between_steps_are_as_accurate_as_the_steps(name):
    problem = ph.problems.get(name)
    sol = ph.solve(problem, tol=1e-9, t_end=5.0)
    times = np.array([0.0, 0.3, 1.234567, 4.99, 5.0])
    seen = sol.at(times)
    fine = ph.solve(problem, tol=1e-12, t_end=5.0).at(times)
    assert seen.t.tolist() == times.tolist()
    assert np.abs(seen.matrix - fine.matrix).max() < 1e-8
    assert np.abs(seen.momentum - fine.momentum).max() < 1e-8 * np.linalg.norm(problem.momentum)
    assert np.abs(sol.at(sol.t).quaternion - sol.quaternion).max() == 0


@pytest.mark.usefixtures("plain_first")
def test_states_between_fixed_steps():
    problem = ph.problems.heavy_top()
    sol = ph.solve(problem, "strang(dmv10)", dt=0.01, steps=100)
    fine = ph.solve(problem, tol=1e-12, t_end=1.0).at([0.5, 0.505, 0.5051])
    assert np.abs(sol.at([0.5, 0.505, 0.5051]).matrix - fine.matrix).max() < 1e-4
    assert np.abs(sol.at([0.5]).quaternion - sol.quaternion[50]).max() < 4 * EPS
    with pytest.raises(ph.InputError, match="kept every step"):
        ph.solve(problem, "strang(dmv10)", dt=0.01, steps=100, every=2).at(0.5)


@pytest.mark.parametrize("bad", [-1.0, 5.1, np.nan, [[1.0]], "x"])
def test_times_outside_are_refused(bad):
    with pytest.raises(ph.InputError, match="t must be"):
        ph.solve(ph.problems.heavy_top(), tol=1e-6, t_end=5.0).at(bad)


@pytest.mark.usefixtures("plain_first")
def test_a_given_method_gets_the_steps_it_needs():
    problem = ph.problems.heavy_top()
    sol = ph.solve(problem, "imidm", tol=1e-4)
    error = bench.reference_error(problem, sol.quaternion[-1])
    assert sol.method == "imidm"
    assert 1e-7 < error < 1e-3
    assert sol.dt == pytest.approx(10 / sol.accepted)
    with pytest.raises(ph.InputError, match="does not reach"):
        ph.solve(problem, "fe", tol=1e-12)


@pytest.mark.usefixtures("plain_first")
def test_rest_and_torques_of_time_and_velocity():
    """A body that starts from rest under a torque that grows and drag: no scale but that of the torque is known."""

    @ph.torque
    def push(t, omega, k):
        return 0.3 * t - k * omega[0], -k * omega[1], 0.1 - k * omega[2]

    start = ph.Problem(ph.Body([1.0, 2.0, 2.5]), push(0.2), momentum=[0.0, 0.0, 0.0])
    coarse, fine = (ph.solve(start, tol=tol, t_end=10.0) for tol in (1e-6, 1e-12))
    assert 1e-9 < np.abs(coarse.matrix[-1] - fine.matrix[-1]).max() < 1e-5


def test_a_motion_that_blows_up_says_so():
    @ph.torque
    def runaway(omega):
        return omega[0] * omega[0], 0.0, 0.0

    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), runaway(), omega=[1.0, 0.0, 0.0])
    with pytest.raises(ph.StepError, match="failed at t = ") as caught:
        ph.solve(start, tol=1e-6, t_end=10.0)
    assert 0.99 < caught.value.partial.t[-1] < 1.1  # omega = 1/(1 - t)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tol": 0.0}, "tol must lie between"), ({"tol": 2.0}, "tol must lie between"), ({"tol": "x"}, "be a number"),
        ({"tol": 1e-6, "dt": 0.1}, "give dt or tol"), ({"tol": 1e-6, "steps": 5}, "give steps or tol"),
        ({"tol": 1e-6, "step_tol": 1e-6}, "not both"), ({"step_tol": 2.0}, "step_tol must lie between"),
        ({"step_tol": 1e-6, "method": "imidm"}, "does not estimate"),
        ({"tol": 1e-6, "every": 0}, "whole number"), ({"tol": 1e-36, "digits": 30}, "digits=30"),
        ({}, "give a method and dt"),
        ({"method": "imidm"}, "give a method and dt"), ({"dt": 0.1}, "give a method and dt"),
        ({"tol": 1e-6, "t_end": 0.0}, "differ from t0"), ({"tol": 1e-6, "method": "nonsense"}, "unknown method"),
    ],
)  # fmt: skip
def test_bad_input(given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.solve(ph.problems.heavy_top(), **given)


def test_files(tmp_path):
    path = tmp_path / "run.zarr"
    sol = ph.solve(ph.problems.heavy_top(), tol=1e-6, out=path)
    back = ph.load(path)
    assert (back.momentum == sol.momentum).all()
    assert (back.reason, back.error_estimate, back.accepted) == (sol.reason, sol.error_estimate, sol.accepted)
    with pytest.raises(ph.InputError, match="exists"):
        ph.solve(ph.problems.heavy_top(), tol=1e-6, out=path)
    assert np.abs(back.at(1.0).matrix - sol.at(1.0).matrix).max() < 1e-5


def test_a_run_does_not_depend_on_earlier_ones():
    """Nothing is kept of a problem: the same problem again, and an equal one, give the same bits."""
    problem = ph.problems.soft_wall()
    first = ph.solve(problem, tol=1e-8)
    for other in (problem, ph.problems.soft_wall()):
        again = ph.solve(other, tol=1e-8)
        assert (first.quaternion == again.quaternion).all()
        assert first.error_estimate == again.error_estimate


def test_a_new_state_costs_no_planning(monkeypatch):
    """What depends on the formula alone is made once; another start and other parameters make nothing anew."""
    field = ph.problems.soft_wall().field
    body, rng = ph.Body([1.0, 2.0, 2.5]), np.random.default_rng(3)

    def solved():
        return ph.solve(ph.Problem(body, field, omega=rng.normal(size=3)), tol=1e-7, t_end=1.0)

    solved()
    monkeypatch.setattr(step_control, "_formula", None)
    monkeypatch.setattr(step_control, "compiled", None)
    monkeypatch.setattr(system.System, "built", None)
    assert solved().status == "finished"


def test_nothing_is_hidden_in_a_problem_that_was_solved():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[1.0, 0.1, 0.2])
    before = dict(vars(problem))
    first = ph.solve(problem, tol=1e-8, t_end=1.0)
    assert vars(problem) == before
    changed = copy.copy(problem)
    changed.momentum = tuple(2 * x for x in problem.momentum)
    second = ph.solve(changed, tol=1e-8, t_end=1.0)
    assert np.allclose(second.momentum[0], 2 * first.momentum[0])
    problem.momentum = changed.momentum
    assert (ph.solve(problem, tol=1e-8, t_end=1.0).momentum == second.momentum).all()


@ph.torque
def friction(omega, mu):
    """Dry friction about the first axis, viscous about the others: a jump at omega[0] = 0."""
    return ph.where(omega[0] < 0, mu, -mu), -0.1 * omega[1], -0.1 * omega[2]


@ph.torque
def switched(t, omega, k):
    """A thruster that is on for a while."""
    return ph.where((t > 1) & (t < 1.7), k, 0.0), 0.0, -0.1 * omega[2]


@ph.torque
def bumper(R, k):
    """A spring that acts beyond an angle: continuous, with a kink."""
    return ph.where(R[2][2] < 0.5, k * (0.5 - R[2][2]), 0.0), 0.1 * abs(R[0][1]), 0.0


@pytest.mark.usefixtures("plain_first")
@pytest.mark.parametrize("field", [switched(0.5), bumper(2.0)])
def test_fields_with_branches(field):
    """Those of the state are met by a pair; between those of time alone the torque is smooth, and steps end there."""
    start = ph.Problem(ph.Body([1.0, 2.0, 2.5]), field, omega=[0.3, 1.0, 0.2])
    coarse, fine = (ph.solve(start, tol=tol, t_end=5.0) for tol in (1e-5, 1e-9))
    if field.name == "bumper":
        assert "branches" in fine.reason
    else:
        assert "switches" in fine.reason
        assert {1.0, 1.7} <= set(fine.t.tolist())
    assert 1e-9 < np.abs(coarse.matrix[-1] - fine.matrix[-1]).max() < 1e-4
    assert np.abs(coarse.at([1.0, 4.0]).matrix - fine.at([1.0, 4.0]).matrix).max() < 1e-4


def test_a_jump_that_holds_the_motion_is_given_up(monkeypatch):
    """Dry friction at rest: an explicit step cannot stay on the jump."""
    impatient = lambda problem: step_control.Formula(  # noqa: E731
        False, (dataclasses.replace(step_control.pair(problem), most=20_000),)
    )
    for module in (step_control, tolerance):
        monkeypatch.setattr(module, "formula", impatient)
    start = ph.Problem(ph.Body([1.0, 2.0, 2.0]), friction(0.5), omega=[0.3, 0.0, 0.0])
    with pytest.raises(ph.StepError, match=r"gave up at t = .*tanh") as caught:
        ph.solve(start, tol=1e-6, t_end=5.0)
    assert len(caught.value.partial) > 1000


def test_friction_that_stops_a_body(monkeypatch):
    """Steps on the jump are many, and what they miss is not blamed on round-off."""
    start = ph.Problem(ph.Body([1.0, 2.0, 2.0]), friction(0.5), omega=[0.3, 0.0, 0.0])
    counts = [len(ph.solve(start, tol=tol, t_end=5.0)) for tol in (1e-3, 1e-4)]
    assert 500 < counts[0] < 2_000 < 5_000 < counts[1] < 20_000
    measured = tolerance.estimated
    monkeypatch.setattr(tolerance, "estimated", lambda *given: dataclasses.replace(measured(*given), error=np.inf))
    with pytest.warns(ph.ResultWarning, match=r"error at the end is not known: the field jumps .*tanh"):
        ph.solve(start, tol=1e-3, t_end=5.0)


def test_progress_and_interruption():
    """A run tells how far it is, and what it had when it was stopped is kept."""
    told = []
    top = ph.problems.heavy_top()
    whole = ph.solve(top, tol=1e-6, t_end=3000.0, progress=told.append)
    assert told == sorted(told)
    assert (told[0] > 0, told[-1]) == (True, 1)
    count = len(told)

    def stop(part):
        told.append(part)
        if len(told) == count + 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ph.solve(top, tol=1e-6, t_end=3000.0, progress=stop)
    kept = caught.value.partial
    assert step_control.AdaptiveStep.few_rows <= len(kept) < len(whole)
    assert (kept.status, kept.method) == ("interrupted", whole.method)
    assert np.abs(kept.momentum - whole.at(kept.t).momentum).max() < 1e-4 * np.linalg.norm(top.momentum)


def reference_state(problem, t_end):
    """Rotation matrix and momentum by Taylor series that share nothing with the solution."""
    q, m = reference.flow(problem, t_end - problem.t0, digits=25)
    return observables.matrices(np.array([[float(x) for x in q]]))[0], np.array([float(x) for x in m])


def true_error(problem, sol):
    R, m = reference_state(problem, sol.t[-1])
    scale = np.linalg.norm(sol.momentum, axis=1).max()
    return max(np.linalg.norm(sol.matrix[-1] - R, 2), np.linalg.norm(sol.momentum[-1] - m) / scale)


@pytest.mark.parametrize("name", ["soft_wall", "heavy_top", "slow_top"])
@pytest.mark.parametrize("t_end", [0.1, 0.3, 1.0, 1.5, 2.0])
def test_short_runs(name, t_end):
    """Few steps: nothing averages, and runs that are compared must not be cut where the run itself is not."""
    problem = ph.problems.get(name)
    for tol in (1e-3, 1e-6, 1e-9):
        sol = ph.solve(problem, tol=tol, t_end=t_end)
        error = true_error(problem, sol)
        assert error <= 10 * tol
        assert error <= 10 * sol.error_estimate + 100 * EPS


@ph.potential
def weak(R, mgl):
    return mgl * R[2][2] + mgl / 3 * R[0][1]


@pytest.mark.usefixtures("plain_first")
@pytest.mark.parametrize(
    ("body", "momentum"),
    [
        (ph.Body([1.0, 1.5, 2.0]), [10.0, 0.0, 0.0]), (ph.Body([1.0, 2.0, 3.0]), [10.0, 0.3, 0.2]),
        (ph.Body([1.0, 1.0, 2.0]), [10.0, 0.0, 0.0]),
        (ph.Body([[2.0, 0.1, 0.2], [0.1, 3.0, -0.3], [0.2, -0.3, 2.5]]), [9.0, 1.0, 3.0]),
    ],
)  # fmt: skip
def test_fast_spins_of_all_bodies(body, momentum):
    """Principal axes, flat bodies, own axes: no method of the library may stumble while one is chosen."""
    start = ph.Problem(body, weak(0.01), momentum=momentum, attitude=[0.5, 0.5, 0.5, 0.5], t0=2.0)
    sol = ph.solve(start, tol=1e-6, t_end=7.0)
    assert 1e-10 < true_error(start, sol) < 1e-5


@ph.torque
def pulse(t, a, centre, width):
    return a * ph.math.exp(-(((t - centre) / width) ** 2)), 0.0, 0.0


@pytest.mark.usefixtures("plain_first")
@pytest.mark.parametrize("omega", [[0.0, 0.0, 0.1], [0.0, 0.0, 0.0]])
def test_a_pulse_is_not_stepped_over(omega):
    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), pulse(1.0, 5.0, 0.2), omega=omega)
    sol = ph.solve(start, tol=1e-8, t_end=10.0)
    fine = ph.solve(start, "lietaylor(12)", dt=0.02, t_end=10.0, every=500)
    assert np.abs(sol.matrix[-1] - fine.matrix[-1]).max() < 1e-7
    assert abs(sol.momentum[-1][0]) > 0.1


@pytest.mark.usefixtures("plain_first")
def test_large_start_times_lose_nothing_between_steps():
    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), weak(1.0), omega=[1.0, 0.2, 0.4], t0=1e6)
    other = ph.Problem(ph.Body([1.0, 1.5, 2.0]), weak(1.0), omega=[1.0, 0.2, 0.4])
    looks = np.array([0.5, 1.25, 2.625])
    late, early = (ph.solve(p, tol=1e-12, t_end=p.t0 + 3).at(p.t0 + looks) for p in (start, other))
    assert np.abs(late.matrix - early.matrix).max() < 1e-11


def test_threads_do_not_mix_their_states():
    top = ph.problems.heavy_top()
    alone = ph.solve(top, tol=1e-9, t_end=500.0)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for sol in pool.map(lambda _: ph.solve(top, tol=1e-9, t_end=500.0), range(9)):
            assert (sol.quaternion == alone.quaternion).all()


def test_far_ends_are_refused_or_named():
    with pytest.raises(ph.InputError, match="one rounding error in the data"):
        ph.solve(ph.problems.free_body(), tol=1e-6, t_end=1e17)
    with pytest.warns(
        ph.ResultWarning, match="the error at the end is about 2e-06, more than tol=1e-10: that is what round-off"
    ):
        far = ph.solve(ph.problems.free_body(), tol=1e-10, t_end=1e9)
    assert "round-off and the sensitivity" in far.reason
    with pytest.raises(ph.InputError, match="too far for imidm"):
        ph.solve(ph.problems.free_body(), "imidm", tol=1e-3, t_end=1e14)


def test_a_torque_without_a_series_at_the_start():
    @ph.torque
    def drag(omega, k):
        speed = ph.math.sqrt(omega[0] ** 2 + omega[1] ** 2 + omega[2] ** 2)
        return 0.3 - k * speed * omega[0], -k * speed * omega[1], 0.1 - k * speed * omega[2]

    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), drag(0.2), momentum=[0.0, 0.0, 0.0])
    sol = ph.solve(start, tol=1e-12, t_end=5.0)
    fine = ph.solve(start, "mkrk(rk4)", dt=0.001, t_end=5.0, every=5000)
    assert "without a Taylor series" in sol.reason
    assert np.abs(sol.matrix[-1] - fine.matrix[-1]).max() < 1e-5


def test_a_failed_run_is_kept_in_its_file(tmp_path):
    @ph.torque
    def runaway(omega):
        return omega[0] * omega[0], 0.0, 0.0

    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), runaway(), omega=[1.0, 0.0, 0.0])
    with pytest.raises(ph.StepError):
        ph.solve(start, tol=1e-6, t_end=10.0, out=tmp_path / "run.zarr")
    assert len(ph.load(tmp_path / "run.zarr")) > 10
