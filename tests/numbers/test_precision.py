"""`digits=` does not depend on mpmath's process-wide precision, nor change it, in one thread or in many."""

import sys
import threading

import mpmath
import numpy as np
import pytest

import polhode as ph

TOP = ph.Problem(ph.Body([3.0, 2.0, 1.0]), ph.fields.gravity(2.0), omega=[0.1, 0.2, 3.0])
TILTED = ph.Body([[3.0, 0.5, 0.0], [0.5, 2.5, 0.2], [0.0, 0.2, 2.0]])
FREE = ph.Problem(TILTED, omega=[0.3, 1.0, 0.1])
LAGRANGE = ph.Problem(ph.Body([5.0, 5.0, 1.0]), ph.fields.gravity(20.0), attitude=[0.8, 0.6, 0, 0], omega=[0.1, 0.2, 3])


def solved(digits):
    sol = ph.solve(TOP, "imidm", dt=0.01, steps=4, digits=digits, progress=False)
    return np.concatenate([sol.mp.quaternion.ravel(), sol.mp.energy])


def own_axes(digits):
    return ph.solve(FREE, "dmv4", dt=0.01, steps=3, digits=digits, progress=False).mp.momentum


def spin(t):
    return (ph.math.cos(t), 0.1 * t, 1.0)


def modified(digits):
    problem = ph.Problem(ph.Body([3.0, 2.0, 1.0]), ph.fields.gravity(2.0), omega=[0.1, 0.2, 3.0])
    sol = ph.solve(problem, "strang(jacobi)", dt=0.01, steps=2, digits=digits, progress=False)
    return ph.modified_energy(problem, sol, terms=1)


def oscillator(u):
    return (-ph.math.sin(u[0]), -u[1])


MASS = [[2, 1], [1, 3]]
SKEW = np.triu(np.ones((4, 4)), 1) - np.tril(np.ones((4, 4)), -1)
CALCULATIONS = {
    "solve": solved,
    "principal axes": own_axes,
    "exact, free": lambda d: ph.exact(FREE, [1.0, 2.0], digits=d).mp.quaternion,
    "exact, top": lambda d: ph.exact(LAGRANGE, [1.0], digits=d).mp.quaternion,
    "period": lambda d: np.array([ph.period(FREE, digits=d), ph.precession_angle(FREE, digits=d)]),
    "lie": lambda d: ph.lie.solve("SO(3)", spin, method="taylor(4)", dt=0.1, steps=2, digits=d).mp.y,
    "lie, complex": lambda d: ph.lie.solve("SU(2)", spin, method="taylor(4)", dt=0.1, steps=2, digits=d).mp.y,
    "vector": lambda d: ph.vector.solve(oscillator, MASS, [1, 0], [0, 1], "verlet", dt=0.1, steps=3, digits=d).mp.p,
    "ndim": lambda d: ph.ndim.reference([1.0, 2.0, 3.0, 4.0], SKEW, [0.1], digits=d).mp.M,
    "modified energy": modified,
}  # fmt: skip


def bits(values):
    """Every number exactly."""
    return [x._mpc_ if hasattr(x, "_mpc_") else x._mpf_ for x in np.ravel(values)]


@pytest.fixture
def user_digits():
    """Sets the user's precision; at the end it is 15 digits again."""
    yield lambda digits: setattr(mpmath.mp, "dps", digits)
    mpmath.mp.dps = 15


@pytest.mark.parametrize("name", CALCULATIONS)
def test_results_have_their_digits_whatever_the_users_precision_is(name, user_digits):
    found = []
    for digits in (15, 4, 90):
        user_digits(digits)
        found.append(CALCULATIONS[name](40))
        assert mpmath.mp.dps == digits
    assert bits(found[0]) == bits(found[1]) == bits(found[2])
    assert all(isinstance(x, mpmath.mpf | mpmath.mpc) for x in np.ravel(found[0])), "a number of a private context"
    user_digits(60)
    better = CALCULATIONS[name](50)
    for x, y in zip(np.ravel(found[0]), np.ravel(better), strict=True):
        assert abs(x - y) <= mpmath.mpf(10) ** -38 * max(1, abs(y))
    assert bits(found[0]) != bits(better)


def test_threads_with_different_digits_do_not_disturb_one_another():
    """Each result is, bit for bit, that of a run alone; another thread that uses mpmath sees its own precision."""
    alone = {digits: bits(solved(digits)) for digits in (20, 33, 60)}
    interval, wrong, others, done = sys.getswitchinterval(), [], set(), threading.Event()

    def work(digits):
        for _ in range(4):
            try:
                if bits(solved(digits)) != alone[digits]:
                    wrong.append(digits)
            except Exception as fault:
                wrong.append(fault)

    def watch():
        while not done.is_set():
            others.add((mpmath.mp.dps, str(mpmath.mpf(1) / 3)))

    threads = [threading.Thread(target=work, args=(digits,)) for digits in (20, 60, 33, 60)]
    watcher = threading.Thread(target=watch)
    sys.setswitchinterval(1e-5)
    try:
        for thread in (watcher, *threads):
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        done.set()
        watcher.join()
        sys.setswitchinterval(interval)
    assert wrong == []
    assert others == {(15, "0.333333333333333")}
    assert mpmath.mp.dps == 15


def test_a_run_with_digits_leaves_the_precision_alone_when_it_fails():
    bad = ph.Problem(ph.Body([3.0, 2.0, 1.0]), ph.torque(lambda t: (ph.math.log(0.02 - t), 0, 0))(), omega=[1, 1, 1])
    with pytest.raises(ph.StepError):
        ph.solve(bad, "rk4_quat", dt=0.01, steps=10, digits=30, progress=False)
    assert mpmath.mp.dps == 15


def test_contexts_of_ended_threads_are_used_again():
    """Threads that come and go make no context each: mpmath's number types would be kept for ever."""
    from polhode.numbers import dispatch

    def run():
        thread = threading.Thread(target=lambda: solved(20))
        thread.start()
        thread.join()

    run()
    before = len(dispatch._SPACES)
    for _ in range(5):
        run()
    assert len(dispatch._SPACES) == before
