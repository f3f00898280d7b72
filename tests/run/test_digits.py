"""Dense output, events and tolerances with many digits."""

import mpmath
import numpy as np
import pytest

import polhode as ph
from representatives import representatives

TOP = ph.problems.fast_top()


def away(sol, exact, row=-1):
    """The larger of the angle and the relative difference of the momenta at one state."""
    with mpmath.workdps(60):
        turn = 2 * mpmath.norm(sol.mp.quaternion[row] - exact.mp.quaternion[0])
        return float(
            max(turn, mpmath.norm(sol.mp.momentum[row] - exact.mp.momentum[0]) / mpmath.norm(sol.mp.momentum[row]))
        )


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("tol", [1e-20, 1e-33])
def test_a_tolerance_below_double_precision(tol, way):
    sol = ph.solve(TOP, tol=tol, digits=35, t_end=0.4 * way)
    error = away(sol, ph.exact(TOP, [0.4 * way], digits=50))
    assert 0.3 * error < sol.error_estimate <= tol
    assert away(sol.at([0.123 * way]), ph.exact(TOP, [0.123 * way], digits=50)) < tol
    assert (sol.info.digits, sol.info.tol) == (35, tol)


def test_the_error_of_each_step():
    sol = ph.solve(TOP, step_tol=1e-25, digits=30, t_end=0.4)
    assert away(sol, ph.exact(TOP, [0.4], digits=50)) < 1e-24
    assert sol.error_estimate is None


def test_a_free_body_is_solved_exactly():
    free = ph.Problem(ph.Body([[1.0, 0.1, 0.0], [0.1, 2.0, 0.2], [0.0, 0.2, 2.5]]), omega=[0.1, 1.0, 0.2])
    sol = ph.solve(free, tol=1e-38, digits=40, t_end=-7.0, times=[-0.1, -7.0])
    assert away(sol, ph.exact(free, [-7.0], digits=50)) < 1e-38
    assert away(sol.at(-3.3), ph.exact(free, [-3.3], digits=50)) < 1e-38


def test_against_a_finer_run():
    """A torque of time and velocity, and a body whose axes are not its principal axes."""

    @ph.torque
    def driven(t, R, omega):
        return 3 * t * t - 0.1 * omega[0], R[2][0], 0.2

    body = ph.Body([[1.0, 0.1, 0.0], [0.1, 1.5, 0.2], [0.0, 0.2, 2.0]])
    problem = ph.Problem(body, driven(), omega=[0.3, 4.0, 0.2])
    sol, fine = (ph.solve(problem, tol=tol, digits=35, t_end=0.3) for tol in (1e-20, 1e-28))
    assert 0.3 * away(sol, fine.last()) < sol.error_estimate <= 1e-20


def test_a_switch_between_two_doubles():
    """The torque begins at t = 1/3, which is no double: the spin grows by (t_end - 1/3) torque/moment."""

    @ph.torque
    def late(t, R, omega):
        return 0.0, 0.0, ph.where(3 * t > 1, 1.0, 0.0)

    problem = ph.Problem(ph.Body([1.0, 1.0, 2.0]), late(), omega=[0.0, 0.0, 1.0])
    sol = ph.solve(problem, tol=1e-25, digits=30, t_end=1.0)
    with mpmath.workdps(40):
        assert abs(sol.mp.momentum[-1][2] - (2 + mpmath.mpf(2) / 3)) < 1e-25


@pytest.mark.parametrize("method", ["verner87", "imidm"])
def test_given_methods(method):
    sol = ph.solve(TOP, method, tol=1e-5, digits=20, t_end=0.1)
    assert away(sol, ph.exact(TOP, [0.1], digits=30)) < 1e-5


def test_refused_tolerances():
    with pytest.raises(ph.InputError, match="in double precision; got 1e-25; for 1e-25 give digits=30"):
        ph.solve(TOP, tol=1e-25)
    with pytest.raises(ph.InputError, match="with digits=20; got 1e-25"):
        ph.solve(TOP, tol=1e-25, digits=20)
    with pytest.raises(ph.InputError, match=r"digits=400; got 0$"):
        ph.solve(TOP, step_tol=0.0, digits=400)


@pytest.mark.parametrize("way", [1, -1])
def test_states_between_steps_have_the_order_of_the_method(way):
    """Half a step of a method of order 8 has an error of h^9: halving the step divides it by about 512."""
    errors = []
    for dt in (0.02, 0.01):
        sol = ph.solve(TOP, "taylor(8)", dt=dt, t_end=2 * way * dt, digits=40)
        first = sol.at(way * dt / 2)
        errors.append(away(first, ph.exact(TOP, first.t, digits=50)))
    assert 400 < errors[0] / errors[1] < 700


def test_the_states_at_the_steps_are_those_of_the_run():
    sol = ph.solve(TOP, "imidm", dt=0.1, steps=7, digits=30)
    seen = sol.at(sol.mp.t)
    assert (seen.mp.quaternion == sol.mp.quaternion).all()
    with mpmath.workdps(40):
        assert list(sol.mp.t) == [n * mpmath.mpf(0.1) for n in range(8)]


def test_events_in_all_digits():
    level = ph.event(lambda R: R[2][2] - 0.8)
    sol = ph.solve(ph.problems.heavy_top(), tol=1e-28, digits=30, t_end=1.5, events=[level])
    assert len(sol.events[0]) > 0
    with mpmath.workdps(40):
        for w, x, y, z in sol.events[0].mp.quaternion:
            assert abs(w * w - x * x - y * y + z * z - mpmath.mpf(0.8)) < 1e-27


def test_a_terminal_event():
    third = ph.event(lambda t: 3 * t - 1, terminal=True)
    for how in ({"tol": 1e-20}, {"method": "imidm", "dt": 0.1}):
        sol = ph.solve(TOP, digits=30, t_end=1.0, events=[third], **how)
        with mpmath.workdps(40):
            assert abs(sol.mp.t[-1] - mpmath.mpf(1) / 3) < 1e-30
        assert len(sol.events[0]) == 1


def test_choices_of_states():
    for how in ({"tol": 1e-20}, {"method": "imidm", "dt": 0.05}):
        whole = ph.solve(TOP, digits=25, t_end=0.2, **how)
        close = ph.solve(TOP, digits=25, t_end=0.2, max_turn=0.1, **how)
        assert set(whole.mp.t) < set(close.mp.t)
        assert ph.solve(TOP, digits=25, t_end=0.2, times=[0.07, 0.2], **how).mp.t.tolist() == [0.07, 0.2]
    some, whole = (ph.solve(TOP, digits=25, t_end=0.2, tol=1e-20, every=every) for every in (2, 1))
    assert some.mp.t.tolist() == [*whole.mp.t[:-1:2], whole.mp.t[-1]]


STEPPING = [m for m in map(ph.methods.__getitem__, ph.methods) if m.has_step and not m.has_own_time]


@pytest.mark.parametrize("digits", [None, 30])
def test_the_exact_top_between_steps(digits):
    sol = ph.solve(TOP, "lagrange", dt=0.1, t_end=0.3, times=[0.07, 0.3], digits=digits)
    truth = ph.exact(TOP, [0.07, 0.3])
    assert sol.t.tolist() == [0.07, 0.3]
    assert np.abs(sol.quaternion - truth.quaternion).max() < 1e-14
    assert np.abs(sol.at(0.2).momentum - ph.exact(TOP, 0.2).momentum).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(representatives(STEPPING)))
def test_every_kind_of_method(name):
    """With digits, the states between steps are those in doubles, with more digits."""
    problem = ph.Problem(ph.Body([1.0, 1.5, 2.0]), omega=[0.3, 4.0, 0.2])
    sol, plain = (ph.solve(problem, name, dt=0.01, steps=3, digits=digits) for digits in (25, None))
    t = 0.4 * sol.t[1:] + 0.6 * sol.t[:-1]
    assert np.abs(sol.at(t).momentum - plain.at(t).momentum).max() < 1e-13
