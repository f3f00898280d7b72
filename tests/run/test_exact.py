"""The exact motion of the free body: accuracy, special cases, outside numbers."""

import itertools
import math
import random

import mpmath
import numpy as np
import pytest
from validation.exact_accuracy import ALLOWED, effect_of_one_ulp, free_case, gap, precise

import polhode as ph
from polhode.analysis.reference import flow
from polhode.kernels.so3 import conj, mul, rotate, unit
from polhode.methods.families.jacobi import jacobi, motion, state_after
from polhode.numbers.multiprecision import number
from polhode.run.exact import exact

EPS = 2.0**-52


def problem(inertia, momentum, **more):
    return ph.Problem(ph.Body(inertia), momentum=momentum, **more)


# --- random motions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_error_is_a_hundred_units_or_ten_times_that_of_the_data(seed):
    scatter = random.Random(seed)
    for _ in range(50):
        case = free_case(scatter)
        moments, momentum, h, size = case.problem.body.moments.tolist(), case.problem.momentum, case.t, case.size
        sol = exact(case.problem, h)
        true = precise(moments, momentum, h)
        error = gap((sol.quaternion[0], sol.momentum[0]), true, size)
        if not error <= ALLOWED * case.unit:
            assert error <= 10 * effect_of_one_ulp(moments, momentum, h, true, size), (moments, momentum, h)


# --- the kernel itself ------------------------------------------------------------------------------

SPECIAL = {
    "generic": ((0.6, 0.8, 1.0), (1.8, 0.4, -0.9)),
    "other side": ((0.6, 0.8, 1.0), (0.2, 0.4, -0.9)),
    "symmetric, prolate": ((0.4, 0.8, 0.8), (0.3, 1.8, -0.9)),
    "symmetric, oblate": ((1.0, 0.8, 0.8), (-0.3, 1.8, -0.9)),
    "equator of a symmetric body": ((1.0, 0.8, 0.8), (0.0, 1.8, -0.9)),
    "nearly symmetric": ((1.0, 0.8, 0.8 + 1e-13), (0.3, 1.8, -0.9)),
    "nearly symmetric, equator": ((1.0, 0.8, 0.8 + 1e-13), (1e-8, 1.8, -0.9)),
    "spherical": ((0.7, 0.7, 0.7), (0.3, 1.8, -0.9)),
    "flat": ((0.4, 0.6, 1.0), (0.3, 1.8, -0.9)),
    "linear": ((0.0, 1.0, 1.0), (0.0, 1.8, -0.9)),
    "smallest axis": ((0.6, 0.8, 1.0), (-1.3, 0.0, 0.0)),
    "intermediate axis": ((0.6, 0.8, 1.0), (0.0, -1.3, 0.0)),
    "largest axis": ((0.6, 0.8, 1.0), (0.0, 0.0, 1.3)),
    "next to the smallest axis": ((0.6, 0.8, 1.0), (-1.3, 1e-16, -2e-16)),
    "next to the intermediate axis": ((0.6, 0.8, 1.0), (1e-16, -1.3, 2e-16)),
    "next to the largest axis": ((0.6, 0.8, 1.0), (1e-16, -2e-16, 1.3)),
    "separatrix": ((1.0, 2.0, 3.0), (1.0, 0.5, math.sqrt(3.0))),
    "separatrix, exactly": ((3.0, 4.0, 6.0), (1.5, 0.5, -1.5)),
    "no motion": ((0.6, 0.8, 1.0), (0.0, 0.0, 0.0)),
}
ORDERS = list(itertools.permutations(range(3)))


@pytest.mark.parametrize("name", SPECIAL)
def test_forty_digits_are_those_of_the_taylor_series(name):
    moments, momentum = SPECIAL[name]
    for k, h in ((1, 3.25), (4, -2.5)):
        p = problem([moments[i] for i in ORDERS[k]], [momentum[i] for i in ORDERS[k]], attitude=(0.5, -0.5, 0.5, 0.5))
        sol = exact(p, h, digits=40)
        q, m = flow(p, h, digits=42)
        with mpmath.workdps(50):
            assert max(abs(a - b) for a, b in zip(sol.mp.quaternion[0], q, strict=True)) < mpmath.mpf(10) ** -40
            assert max(abs(a - b) for a, b in zip(sol.mp.momentum[0], m, strict=True)) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SPECIAL)
def test_doubles_are_the_digits_rounded(name, order):
    moments, momentum = (tuple(v[i] for i in order) for v in SPECIAL[name])
    for h in (1e-3, 1.0, -7.5, 40.0):
        sol = exact(problem(moments, momentum), h)
        true, size = precise(moments, momentum, h), math.hypot(*momentum)
        error = gap((sol.quaternion[0], sol.momentum[0]), true, size)
        if error > 100 * EPS * (1 + 3 * abs(h)):
            assert error < 10 * effect_of_one_ulp(moments, momentum, h, true, size)


@pytest.mark.parametrize("name", SPECIAL)
def test_two_steps_are_one_and_back_again(name):
    """The group property, with the sign of the quaternion."""
    moments, momentum = SPECIAL[name]
    with mpmath.workdps(45):
        step, system = jacobi.build(number), (tuple(map(number, moments)), None, ())
        start = (unit(tuple(map(number, (1, 2, -3, 1)))), tuple(map(number, momentum)))
        for a, b in ((0.75, 2.5), (-1.25, 6.0), (13.0, -13.0)):
            twice = step(number(b), 0, step(number(a), 0, start, system, None)[0], system, None)[0]
            once = step(number(a) + number(b), 0, start, system, None)[0]
            gaps = [abs(u - v) for x, y in zip(twice, once, strict=True) for u, v in zip(x, y, strict=True)]
            # one rounding grows like exp(0.42 t) next to the intermediate axis, and 1 - k^2 may be a rounding
            assert max(gaps) < mpmath.mpf(10) ** (-38 if "separatrix" not in name else -15)


def test_sign_of_the_attitude_is_continuous():
    for name, (moments, momentum) in SPECIAL.items():
        sol = exact(problem(moments, momentum), np.linspace(-60, 60, 6001))
        turned = np.sum(sol.quaternion[1:] * sol.quaternion[:-1], axis=1)
        assert turned.min() > 0.9, name


def test_conserved_over_thousands_of_periods():
    sol = exact(problem((0.6, 0.8, 1.0), (1.8, 0.4, -0.9)), np.linspace(-1e5, 1e5, 2001))
    drift = sol.drift()
    assert drift["energy"] < 20 * EPS
    assert drift["momentum_norm"] < 20 * EPS
    assert drift["spatial_momentum"] < 40 * EPS


@pytest.mark.parametrize("size", [1e-120, 1e-30, 1e40, 1e120])
def test_units_do_not_matter(size):
    """Time is measured in I/|m|; powers of two change no bit."""
    unit = 2.0 ** round(math.log2(size))
    moments, momentum = (0.6, 0.8, 1.0), (1.8, 0.4, -0.9)
    plain = state_after(3.5, motion(momentum, moments))
    light = state_after(3.5 / unit, motion(tuple(unit * x for x in momentum), moments))
    assert light[0] == plain[0]
    assert light[1] == tuple(unit * x for x in plain[1])


# --- the function -----------------------------------------------------------------------------------


def test_times_may_be_scalar_unsorted_negative_and_start_anywhere():
    p = problem((0.6, 0.8, 1.0), (1.8, 0.4, -0.9), t0=2.0, attitude=(0.5, 0.5, -0.5, 0.5))
    times = [5.0, -3.0, 2.0, 0.5]
    sol = exact(p, times)
    assert sol.t.tolist() == times
    assert len(exact(p, 5)) == 1
    assert np.array_equal(exact(p, 5).momentum[0], sol.momentum[0])
    assert np.allclose(sol.quaternion[2], p.quaternion, rtol=0, atol=4 * EPS)
    assert np.allclose(sol.momentum[2], p.momentum, rtol=0, atol=4 * EPS)
    assert np.abs(sol.spatial_momentum - p.spatial_momentum).max() < 20 * EPS
    assert len(exact(p, [])) == 0


def test_a_body_with_axes_of_its_own():
    turn = unit((0.3, -0.4, 0.5, 0.7))
    axes = np.array([rotate(turn, e) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]).T
    own = problem(axes @ np.diag([0.6, 0.8, 1.0]) @ axes.T, axes @ (1.8, 0.4, -0.9))
    plain = problem((0.6, 0.8, 1.0), (1.8, 0.4, -0.9), attitude=turn)
    a, b = exact(own, [1.0, 7.0]), exact(plain, [1.0, 7.0])
    # the tensor is rounded, hence so is the rate of each of its motions: 5 EPS of the angle, as in docs/exact.md
    allowed = 5 * 2.0**-52 * (1 + 7.0 * float(np.linalg.norm(plain.omega)))
    assert np.allclose(a.momentum, b.momentum @ axes.T, rtol=0, atol=allowed)
    back = [mul(tuple(q), conj(turn)) for q in b.quaternion]
    assert np.allclose(a.matrix, exact_matrices(back), rtol=0, atol=allowed)


def exact_matrices(quaternions):
    from polhode.kernels.so3 import matrix

    return [matrix(q) for q in quaternions]


def test_what_cannot_be_is_refused():
    p = problem((0.6, 0.8, 1.0), (1.8, 0.4, -0.9))
    for wrong in ("soon", [1.0, math.nan], [[1.0]], math.inf):
        with pytest.raises(ph.InputError, match="t must be"):
            exact(p, wrong)
    for wrong in (0, 2.5):
        with pytest.raises(ph.InputError, match="digits must be a whole number"):
            exact(p, 1.0, digits=wrong)


# --- outside numbers --------------------------------------------------------------------------------


def test_hairer_and_vilmart():
    """The reference of the DMV10 driver, I = (0.6, 0.8, 1), t = 10."""
    sol = exact(problem((0.6, 0.8, 1.0), (1.8, 0.4, -0.9)), 10.0)
    m = (1.7659625085182075, -0.69546419703308912, 0.77955498148187109)
    q = (-0.73606136416079394, -0.57078695124035073, -0.29938857183079009, -0.20683908610467319)
    assert np.abs(sol.momentum[0] - m).max() < 20 * EPS
    assert np.abs(sol.quaternion[0] - q).max() < 20 * EPS


def test_tumbling_brick():
    """NASA/TM-2015-218675, check case 2: published velocities (SIM 4) and a 34-digit reference at 30 s."""
    moments, degree = np.array([0.001894220, 0.006211019, 0.007194665]), math.pi / 180
    sol = exact(ph.Problem(ph.Body(moments), omega=np.array([10, 20, 30]) * degree), [10.0, 20.0, 30.0])
    published = [
        (-2.41890222177, -23.5525695195, 28.12859263),
        (-5.42273467991, 22.7159305765, 28.6082817473),
        (12.6183907757, -17.3974747619, 31.1195888868),
    ]
    assert np.abs(sol.omega / degree - published).max() < 4e-10
    reference = (12.6183907759142197, -17.3974747616113931, 31.1195888869443444)
    q = (-0.88114718531042352, 0.47018252776669253, 0.0117282523248711814, 0.0486875394720837703)
    assert np.abs(sol.omega[2] / degree - reference).max() < 1e-12
    assert np.abs(sol.quaternion[2] - q).max() < 40 * EPS


FREE = ph.problems.free_body()
SPINNING = ph.Problem(ph.Body([1.0, 1.0, 0.5]), ph.fields.gravity(mgl=1.0), omega=[0.3, 0.0, 3.0])


@pytest.mark.parametrize("problem", [FREE, SPINNING], ids=["free", "top"])
def test_many_times_are_done_in_parts_that_ctrl_c_can_come_between(monkeypatch, problem):
    times = np.linspace(0.0, 3.0, 50)
    whole = ph.exact(problem, times)
    monkeypatch.setattr("polhode.run.exact.BLOCK", 7)
    parts = ph.exact(problem, times)
    for name in ("quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
