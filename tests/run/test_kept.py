"""Which states a run keeps, and runs backwards in time."""

import numpy as np
import pytest

import polhode as ph

WAYS = {"tol": {"tol": 1e-9}, "step_tol": {"step_tol": 1e-9}, "fixed": {"method": "mkrk(rk4)", "dt": 0.01}}


@ph.torque
def driven(t, R, omega, size=0.3):
    """A torque of time, attitude and velocity that switches once."""
    return size * ph.math.sin(3 * t) - 0.1 * omega[0], ph.where(t > 0.5, 0.2, 0.0), R[2][0] - 0.1 * omega[2] * t


@pytest.fixture(scope="module")
def problem():
    return ph.Problem(ph.Body([1.0, 1.5, 2.0]), driven(), omega=[0.3, 4.0, 0.2], t_end=2.0)


def angles(a, b):
    return np.linalg.norm(a - b, axis=(1, 2), ord=2)


@pytest.mark.parametrize("way", WAYS)
def test_at_given_times(problem, way):
    times = [0.0, 0.123, 0.5, 1.7]
    sol, whole = ph.solve(problem, times=times, **WAYS[way]), ph.solve(problem, **WAYS[way])
    assert sol.t.tolist() == times
    assert angles(sol.matrix, whole.at(times).matrix).max() < 1e-8
    assert ph.solve(problem, times=[0.3], t_end=2.0, **WAYS[way]).t.tolist() == [0.3]
    assert sol.at(0.7).t.tolist() == [0.7]
    assert sol.info.steps > len(times)


@pytest.mark.parametrize("way", WAYS)
def test_a_largest_turn(problem, way):
    sol, whole = ph.solve(problem, max_turn=0.01, **WAYS[way]), ph.solve(problem, **WAYS[way])
    assert set(whole.t) <= set(sol.t)
    between = (sol.rotation[:-1].inv() * sol.rotation[1:]).magnitude()
    assert between.max() < 0.0102
    assert len(sol) < 3 * 8 / 0.01 + len(whole)


def test_every(problem):
    sol, whole = ph.solve(problem, tol=1e-9, every=3), ph.solve(problem, tol=1e-9)
    assert sol.t.tolist() == [*whole.t[:-1:3], whole.t[-1]]
    assert (sol.at([0.77]).momentum == whole.at([0.77]).momentum).all()


def test_an_event_ends_a_run_with_times(problem):
    end = ph.event(lambda t: t - 0.6, terminal=True)
    sol = ph.solve(problem, tol=1e-9, times=[0.2, 0.4, 0.8], t_end=2.0, events=[end])
    assert (sol.t.tolist(), sol.events[0].t.tolist()) == ([0.2, 0.4], [0.6])


def test_an_exact_solution_is_evaluated_at_the_times_alone():
    free = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.1, 1.0, 0.2])
    for t_end in (1e3, -1e3):
        sol = ph.solve(free, tol=1e-9, times=[t_end])
        assert sol.t.tolist() == [t_end]
        assert np.abs(sol.momentum - ph.exact(free, [t_end]).momentum).max() < 1e-15


def test_files_of_runs_to_a_tolerance_can_be_drawn(tmp_path):
    problem = ph.problems.fast_top()
    steps = ph.solve(problem, tol=1e-9)
    sol = ph.solve(problem, tol=1e-9, out=tmp_path / "run.zarr")
    back = ph.load(tmp_path / "run.zarr")
    assert (back.momentum == sol.momentum).all()
    assert set(steps.t) < set(back.t)
    assert (back.rotation[:-1].inv() * back.rotation[1:]).magnitude().max() < 0.26
    kept = ph.solve(problem, tol=1e-9, times=[0.5, 1.0], out=tmp_path / "times.zarr")
    assert ph.load(tmp_path / "times.zarr").t.tolist() == kept.t.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"times": [0.1, 3.0], "t_end": 2.0}, "between t0 = 0 and t_end = 2"), ({"times": [0.2, 0.1]}, "each after"),
        ({"times": []}, "in one dimension"), ({"times": "x"}, "times must be"), ({"times": [[1.0]]}, "one dimension"),
        ({"times": [1.0], "every": 2}, "one of every and times"), ({"max_turn": 0.0}, "max_turn must be positive"),
        ({"times": [1.0], "max_turn": 1.0}, "one of times and max_turn"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS)
def test_bad_input(problem, way, given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.solve(problem, **WAYS[way], **given)


def test_times_and_events_of_fixed_steps_go_into_a_file(problem, tmp_path):
    given = {"times": [0.2, 0.4], "events": [ph.event(lambda t: t - 0.3)], **WAYS["fixed"]}
    sol, path = ph.solve(problem, **given), tmp_path / "run.zarr"
    assert ph.solve(problem, **given, out=path).events[0].t.tolist() == sol.events[0].t.tolist()
    back = ph.load(path)
    assert back.t.tolist() == [0.2, 0.4]
    assert (back.momentum == sol.momentum).all()
    with pytest.raises(ph.InputError, match="exists"):
        ph.solve(problem, **given, out=path)


# --- backwards in time -------------------------------------------------------------------------------


def end_of(problem, sol):
    return problem.starting(attitude=sol.quaternion[-1], momentum=sol.momentum[-1], t0=float(sol.t[-1]))


@pytest.mark.parametrize("way", WAYS)
def test_there_and_back(problem, way):
    there = ph.solve(problem, **WAYS[way])
    switch = ph.event(lambda t: t - 0.5)
    back = ph.solve(end_of(problem, there), t_end=0.0, events=[switch], **WAYS[way])
    assert (back.t[0], back.t[-1]) == (2.0, 0.0)
    assert (np.diff(back.t) < 0).all()
    assert angles(back.matrix[-1:], there.matrix[:1]).max() < 1e-8
    assert np.abs(back.momentum[-1] - there.momentum[0]).max() < 1e-8
    assert angles(back.at([0.3, 1.1]).matrix, there.at([0.3, 1.1]).matrix).max() < 1e-7
    assert abs(back.events[0].t - 0.5).max() < 1e-12
    some = ph.solve(end_of(problem, there), times=[1.5, 0.5], **WAYS[way])
    assert some.t.tolist() == [1.5, 0.5]


@pytest.mark.parametrize("method", ["imidm", "dmv10", "verner87", "jacobi"])
def test_negative_steps(method):
    """Symmetric methods and exact ones come back to round-off."""
    body = ph.Body([[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]])
    free = ph.Problem(body, omega=[0.3, 1.0, 0.2], t0=1.0)
    there = ph.solve(free, method, dt=0.01, steps=100)
    back = ph.solve(end_of(free, there), method, dt=-0.01, steps=100)
    assert back.dt == -0.01
    assert angles(back.matrix, there.matrix[::-1]).max() < 1e-13
    assert np.abs(back.t - there.t[::-1]).max() < 1e-14


def test_a_motion_in_far_units_goes_back():
    tiny = ph.Problem(ph.Body([1e-30, 2e-30, 3e-30]), ph.fields.gravity(mgl=1e-23), omega=[1e-9, 2e-9, 1e-9])
    there = ph.solve(tiny, tol=1e-9, t_end=1e-4)
    back = ph.solve(end_of(tiny, there), tol=1e-9, t_end=0.0)
    assert angles(back.matrix[-1:], there.matrix[:1]).max() < 1e-8


def test_a_file_goes_back_and_on(tmp_path):
    top = ph.problems.heavy_top()
    whole = ph.solve(top, "imidm", dt=0.01, t_end=-1.0)
    ph.solve(top, "imidm", dt=0.01, t_end=-0.5, out=tmp_path / "run.zarr")
    more = ph.solve(top, "imidm", dt=0.01, t_end=-1.0, out=tmp_path / "run.zarr", resume=True)
    assert (more.momentum == whole.momentum).all()
    assert (more.t == whole.t).all()


def test_varying_steps_and_digits_go_back():
    top = ph.problems.heavy_top()
    back = ph.solve(top, "reversible(imidm)", dt=0.01, t_end=-0.2)
    assert back.t[-1] <= -0.2 < back.t[-2]
    there = ph.solve(end_of(top, back), tol=1e-9, t_end=0.0)
    assert angles(there.matrix[-1:], back.matrix[:1]).max() < 1e-3
    few = ph.solve(top, "imidm", dt=-0.01, steps=5, digits=30)
    assert np.abs(few.momentum - ph.solve(top, "imidm", dt=-0.01, steps=5).momentum).max() < 1e-12
