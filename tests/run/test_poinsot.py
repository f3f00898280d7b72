"""Period and precession of the free body: against Taylor series, Montgomery's formula, and known limits."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import reference
from polhode.kernels.so3 import conj, dot, mul, norm, rotate
from polhode.run.poinsot import cycles, herpolhode, herpolhode_ring

DIGITS = 40
ATTITUDE = (0.5, 0.5, -0.5, 0.5)


def body_at(inertia, momentum):
    return ph.Problem(ph.Body(inertia), momentum=momentum, attitude=ATTITUDE, t0=0.25)


def scattered(count):
    """All orderings of the moments, both stable axes, both directions; some next to an axis or the separatrix."""
    rng = np.random.default_rng(5)
    orders = itertools.cycle(itertools.permutations((1.0, 1.7, 2.2)))
    for k, inertia in zip(range(count), orders, strict=False):
        m = rng.normal(size=3)
        if k % 4 == 3:
            m = np.eye(3)[k % 3] * m + 1e-3 * rng.normal(size=3)
        yield body_at(inertia, m)


PROBLEMS = [*scattered(24), ph.problems.free_body(), ph.problems.book(), ph.problems.t_handle()]


SOME = [*PROBLEMS[:8], *PROBLEMS[-3:]]
"""Each of the six orderings, next to an axis too, and the named bodies; a second of series each."""


@pytest.mark.parametrize(
    "problem",
    [pytest.param(p, marks=() if p in SOME else pytest.mark.slow) for p in PROBLEMS],
    ids=lambda p: p.name or None,
)
def test_after_a_period_the_body_has_turned_about_its_momentum(problem):
    """Against the Taylor flow in 40 digits: the same momentum in the body, the attitude turned by the angle."""
    T, angle = ph.period(problem, digits=DIGITS), ph.precession_angle(problem, digits=DIGITS)
    q, m = reference.flow(problem, T, digits=DIGITS)
    tolerance = mpmath.mpf(10) ** (6 - DIGITS)  # T is rounded to 40 digits, and some thousand radians are made
    with mpmath.workdps(DIGITS + 5):
        (q0, m0), _ = problem.kernel_data(mpmath.mpf)
        assert max(abs(a - b) for a, b in zip(m, m0, strict=True)) < tolerance
        L = rotate(q0, m0)
        turn = mul(q, conj(q0))
        found = 2 * mpmath.atan2(dot(turn[1:], L) / norm(L), turn[0])
        turns = (angle - found) / (2 * mpmath.pi)
        assert abs(turns - mpmath.nint(turns)) < tolerance
    assert ph.period(problem) == pytest.approx(float(T), rel=1e-12)
    assert ph.precession_angle(problem) == pytest.approx(float(angle), rel=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name or None)
def test_it_is_the_least_period(problem):
    T = ph.period(problem)
    early = ph.exact(problem, problem.t0 + T * np.linspace(0.1, 0.9, 17)).momentum
    assert np.linalg.norm(early - problem.momentum, axis=1).min() > 1e-4 * np.linalg.norm(problem.momentum)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name or None)
def test_montgomery(problem):
    """Angle = 2 E T/|L| - solid angle, whole turns included.

    The solid angle of the polhode is the integral of (1 - cos theta) dphi about the axis it goes around; the rule of
    equal steps converges geometrically for a closed smooth curve.
    """
    T, points = ph.period(problem), 6000
    m = ph.exact(problem, problem.t0 + T * np.arange(points) / points).momentum
    length = np.linalg.norm(problem.momentum)
    twice = 2 * problem.energy()
    order = np.argsort(problem.body.moments)
    a = order[2] if twice * problem.body.moments[order[1]] < length**2 else order[0]
    b, c = (a + 1) % 3, (a + 2) % 3
    if m[0, a] < 0:
        b, c = c, b
    rate = np.cross(m, m / problem.body.moments)
    dphi = (m[:, b] * rate[:, c] - m[:, c] * rate[:, b]) / (m[:, b] ** 2 + m[:, c] ** 2)
    solid = np.mean((1 - np.abs(m[:, a]) / length) * dphi) * T
    assert 0 < abs(solid) < 2 * math.pi
    assert ph.precession_angle(problem) == pytest.approx(twice * T / length - solid, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_spin_about_a_stable_axis_has_the_period_of_small_motions(axis, sign):
    """Of the wobble: T = 2 pi/(omega sqrt((I_a - I_b)(I_a - I_c)/(I_b I_c))), and the angle is omega T."""
    inertia = np.array([1.0, 2.0, 3.0])
    others = np.delete(inertia, axis)
    speed = 0.7 / inertia[axis]
    rate = speed * math.sqrt(np.prod(inertia[axis] - others) / np.prod(others))
    for nudge in (0.0, 1e-9):
        problem = body_at(inertia, sign * 0.7 * np.eye(3)[axis] + nudge * np.eye(3)[1])
        assert ph.period(problem) == pytest.approx(2 * math.pi / rate, rel=1e-14)
        assert ph.precession_angle(problem) == pytest.approx(2 * math.pi * speed / rate, rel=1e-14)


def test_a_symmetric_body():
    """Axis 1, I = (1, 2, 2): T = 2 pi/(m_1 (1/I_1 - 1/I_2)), and the axis precesses at |L|/I_2: one turn less."""
    problem = body_at([1.0, 2.0, 2.0], [1.0, 0.3, 0.2])
    T = 2 * math.pi / 0.5
    assert ph.period(problem) == pytest.approx(T, rel=1e-15)
    length = math.sqrt(1.13)
    assert ph.precession_angle(problem) == pytest.approx(length / 2 * T + 2 * math.pi, rel=1e-14)


@pytest.mark.parametrize(
    ("inertia", "momentum"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 1, 0]), ([1, 2, 3], [0, 0, 0])]
)
@pytest.mark.parametrize("digits", [None, 20])
def test_motions_that_do_not_go_around(inertia, momentum, digits):
    problem = body_at(inertia, momentum)
    assert ph.period(problem, digits=digits) == math.inf
    assert ph.precession_angle(problem, digits=digits) == math.inf
    with pytest.raises(ph.InputError, match="its period is infinite"):
        herpolhode(problem)


def test_the_period_grows_as_the_logarithm_of_the_distance_from_the_separatrix():
    """Two decades closer: 4 ln(100)/rate more; the rate of escape is sqrt((I_3 - I_2)(I_2 - I_1)/(I_1 I_3)) omega_2."""
    near, nearer = (ph.period(body_at([1.0, 2.0, 3.0], [d, 2.0, 0.0])) for d in (1e-8, 1e-10))
    assert nearer - near == pytest.approx(4 * math.log(100) * math.sqrt(3), rel=1e-12)


def test_torques_and_other_things_are_refused():
    with pytest.raises(ph.InputError, match=r"gravity.* acts on this one"):
        ph.period(ph.problems.fast_top())
    with pytest.raises(ph.InputError, match=r"must be a ph\.Problem; got Body"):
        ph.precession_angle(ph.Body([1, 2, 3]))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name or None)
def test_the_herpolhode_fills_its_ring(problem):
    path, ring = herpolhode(problem, periods=1.0), herpolhode_ring(problem)
    distance = np.linalg.norm(path, axis=1)
    speed = np.linalg.norm(problem.omega)
    assert distance.min() >= ring[0] - 1e-7 * speed  # the root of a difference of squares
    assert distance.max() <= ring[1] + 1e-7 * speed
    assert distance.min() == pytest.approx(ring[0], abs=2e-3 * speed)  # 4001 points do not meet it
    assert distance.max() == pytest.approx(ring[1], abs=2e-3 * speed)


def test_the_ring_of_a_symmetric_body_is_a_circle():
    inner, outer = herpolhode_ring(body_at([1.0, 2.0, 2.0], [1.0, 0.3, 0.2]))
    assert inner == pytest.approx(outer, rel=1e-12)


def test_turned_axes_change_nothing():
    from scipy.spatial.transform import Rotation

    A = Rotation.from_rotvec([0.4, -0.7, 0.2]).as_matrix()
    plain = body_at([1.0, 1.7, 2.2], [0.5, 0.8, -0.4])
    turned = body_at(A @ np.diag([1.0, 1.7, 2.2]) @ A.T, A @ [0.5, 0.8, -0.4])
    assert ph.period(turned) == pytest.approx(ph.period(plain), rel=1e-12)
    assert ph.precession_angle(turned) == pytest.approx(ph.precession_angle(plain), rel=1e-12)


def test_cycles_of_a_family():
    energy, times, angles = cycles(ph.Body([1.0, 2.0, 3.0]), points=21)
    assert energy[[0, -1]] == pytest.approx([2 / 3, 2])
    assert (np.diff(times[energy < 1]) > 0).all()
    assert (np.diff(times[energy > 1]) < 0).all()
    assert angles[[0, -1]] == pytest.approx(2 * math.pi * np.array([1.0, math.sqrt(3)]), rel=1e-12)
