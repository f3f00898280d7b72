"""The exact motion of the Lagrange top: accuracy, special cases, and which problems are one."""

import json
import math
import random
from importlib import resources

import mpmath
import numpy as np
import pytest
from validation.exact_accuracy import ALLOWED, EPS, TOPS, error, gap, top_case, uniform

import polhode as ph
from polhode.analysis.reference import flow
from polhode.fields import gravity
from polhode.kernels.so3 import conj, matrix, mul, rotate, unit
from representatives import slow_unless

CYCLE = (0.5, 0.5, 0.5, 0.5)
TILT = unit((1.0, 0.2, -0.3, 0.5))
ONE_ULP = 2.0**-53
SINE = math.sqrt(0.75)


def top(moments, strength, momentum, attitude=(1.0, 0.0, 0.0, 0.0), **more):
    return ph.Problem(ph.Body(moments), gravity(strength), attitude=attitude, momentum=momentum, **more)


SPECIAL = {
    "generic": top((2.0, 2.0, 1.0), 1.5, (0.3, -0.7, 1.1), TILT),
    "oblate": top((1.0, 1.0, 1.75), 1.5, (0.3, -0.7, -1.1), TILT),
    "flat": top((1.0, 1.0, 2.0), -1.5, (0.3, -0.7, 1.1), TILT),
    "spherical": top((1.0, 1.0, 1.0), 0.5, (0.3, -0.7, 1.1), TILT),
    "linear": top((1.0, 1.0, 0.0), 1.5, (0.3, -0.7, 0.0), TILT),
    "weak field": top((2.0, 2.0, 1.0), 1e-12, (0.3, -0.7, 1.1), TILT),
    "fast": top((2.0, 2.0, 1.0), 1.5, (0.3, -0.7, 40.0), TILT),
    "from rest": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 0.0), TILT),
    "released with spin": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 3.0), TILT),
    "sleeping, stable": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 8.0)),
    "sleeping, critical": top((4.0, 4.0, 1.0), 16.0, (0.0, 0.0, 16.0)),
    "sleeping, unstable": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 2.0)),
    "upright at rest": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 0.0)),
    "one ulp from sleeping, stable": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 8.0), (1.0, ONE_ULP, 0.0, 0.0)),
    "one ulp from sleeping, critical": top((4.0, 4.0, 1.0), 16.0, (0.0, 0.0, 16.0), (1.0, ONE_ULP, 0.0, 0.0)),
    "one ulp from sleeping, unstable": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 2.0), (1.0, ONE_ULP, 0.0, 0.0)),
    "sleeping, kicked by one ulp": top((2.0, 2.0, 1.0), 1.5, (ONE_ULP, 0.0, 2.0)),
    "one ulp from critical": top((4.0, 4.0, 1.0), 16.0, (1e-16, 0.0, 16.0 * (1 + EPS))),
    "upright, kicked": top((2.0, 2.0, 1.0), 1.5, (0.4, 0.0, 2.0)),
    "hanging at rest": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)),
    "hanging, spinning": top((2.0, 2.0, 1.0), 1.5, (0.0, 0.0, 2.0), (0.0, 0.6, 0.8, 0.0)),
    "hanging, kicked": top((2.0, 2.0, 1.0), 1.5, (0.5, 0.0, 2.0), (0.0, 0.6, 0.8, 0.0)),
    "hanging below": top((2.0, 2.0, 1.0), -1.5, (0.0, 0.5, 0.0)),
    "one ulp from hanging": top((2.0, 2.0, 1.0), -1.5, (0.0, 0.0, 2.0), (1.0, 0.0, ONE_ULP, 0.0)),
    "pendulum": top((2.0, 2.0, 1.0), 1.5, (0.8, 0.0, 0.0), (0.6, 0.8, 0.0, 0.0)),
    "pendulum over the top": top((2.0, 2.0, 1.0), 1.5, (5.0, 0.0, 0.0), (0.6, 0.8, 0.0, 0.0)),
    "pendulum that stops upright": top((1.0, 1.0, 0.5), 1.0, (2.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)),
    "pendulum that nearly stops": top((1.0, 1.0, 0.5), 1.0, (2.0 - 2 * EPS, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)),
    "pendulum that hardly passes": top((1.0, 1.0, 0.5), 1.0, (2.0 + 4 * EPS, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)),
    "conical pendulum": top((1.0, 1.0, 0.5), 1.0, (0.0, math.sqrt(1.5), 0.0), (0.5, SINE, 0.0, 0.0)),
    "regular precession": top((1.0, 1.0, 0.5), 1.0, (0.0, 0.5 * SINE, 2.25), (SINE, 0.5, 0.0, 0.0)),
    "separatrix": top((1.0, 1.0, 0.5), 1.0, np.sqrt((0.875, 0.125, 0.375)), (SINE, 0.5, 0.0, 0.0)),
}  # fmt: skip


def doubles(sol):
    return sol.quaternion[0], sol.momentum[0]


def moved_axes(p, axis, vertical, sign=1):
    """The same motion with the symmetry axis and the vertical along other coordinate axes."""
    strength = p.field.values["mgl"]
    axes = [np.roll(np.array(v, dtype=float), axis - 2).tolist() for v in (p.body.moments, p.momentum, (0, 0, sign))]
    q = (p.quaternion[0], *np.roll(p.quaternion[1:], axis - 2).tolist())
    for _ in range((vertical - axis) % 3):
        q = mul(CYCLE, q)
    force = np.roll([0.0, 0.0, sign * strength], vertical - 2).tolist()
    return ph.Problem(ph.Body(axes[0]), uniform(force, axes[2]), attitude=q, momentum=axes[1], t0=p.t0)


# --- accuracy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", slow_unless({*SPECIAL} - {"fast"}, SPECIAL))
def test_forty_digits_are_those_of_the_taylor_series(name):
    for p, h in ((SPECIAL[name], 3.25), (moved_axes(SPECIAL[name], 0, 1, -1), -2.5)):
        sol = ph.exact(p, h, digits=40)
        q, m = flow(p, h, digits=44)
        with mpmath.workdps(50):
            assert max(abs(a - b) for a, b in zip(sol.mp.quaternion[0], q, strict=True)) < mpmath.mpf(10) ** -40
            assert max(abs(a - b) for a, b in zip(sol.mp.momentum[0], m, strict=True)) < mpmath.mpf(10) ** -39


@pytest.mark.parametrize("name", SPECIAL)
def test_doubles_are_the_digits_rounded(name):
    """Momenta relative to 1, the attitude as it is; the error does not grow with time."""
    for k, h in enumerate((1e-3, 1.0, -7.5, 40.0, -1e5)):
        p = moved_axes(SPECIAL[name], k % 3, (k + 1) % 3, (-1) ** k)
        true = ph.exact(p, h, digits=40).mp
        size = max(1.0, float(np.linalg.norm(p.momentum)), float(np.linalg.norm(true.momentum[0].astype(float))))
        assert gap(doubles(ph.exact(p, h)), (true.quaternion[0], true.momentum[0]), size) < 20 * EPS


@pytest.mark.parametrize("kind", TOPS)
def test_error_of_random_tops(kind):
    """The promise is 100 EPS (1 + |omega| t); the rates have twice the precision, so 100 EPS hold at any time."""
    scatter = random.Random(kind)
    for _ in range(12):
        case = top_case(scatter, kind)
        found = error(case)
        assert found <= ALLOWED * EPS, (case, found / EPS)


@pytest.mark.parametrize("kind", TOPS)
def test_random_tops_are_those_of_the_taylor_series(kind):
    scatter = random.Random(kind + "!")
    case = top_case(scatter, kind)
    p = case.problem
    h = math.copysign(8.0 / case.pace, case.t)
    sol = ph.exact(p, h, digits=40)
    q, m = flow(p, h, digits=44)
    with mpmath.workdps(50):
        assert gap((sol.mp.quaternion[0], sol.mp.momentum[0]), (q, m), case.size) < 1e-38


@pytest.mark.parametrize("name", ["slow_top", "fast_top"])
def test_the_named_tops_have_their_references(name):
    p = ph.problems.get(name)
    said = json.loads(resources.files("polhode.physics").joinpath("references.json").read_text())[name]
    sol = ph.exact(p, said["t"], digits=34)
    with mpmath.workdps(40):
        for found, key in ((sol.mp.quaternion[0], "quaternion"), (sol.mp.momentum[0], "momentum")):
            assert max(abs(a - mpmath.mpf(b)) for a, b in zip(found, said[key], strict=True)) <= 2 * said["error"]
    true = tuple(mpmath.mpf(x) for x in said["quaternion"]), tuple(mpmath.mpf(x) for x in said["momentum"])
    assert gap(doubles(ph.exact(p, said["t"])), true, float(np.linalg.norm(p.momentum))) < 10 * EPS


# --- structure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECIAL)
def test_energy_and_both_momenta_are_kept_and_the_sign_is_continuous(name):
    p = SPECIAL[name]
    sol = ph.exact(p, np.linspace(-100, 100, 8001))
    fast = 40 if name == "fast" else 1
    assert np.abs(sol.energy - p.energy()).max() < 100 * EPS * fast**2
    assert np.abs(sol.spatial_momentum[:, 2] - p.spatial_momentum[2]).max() < 100 * EPS * fast
    assert np.abs(sol.momentum[:, 2] - p.momentum[2]).max() < 10 * EPS * fast
    turned = np.sum(sol.quaternion[1:] * sol.quaternion[:-1], axis=1)
    assert turned.min() > (0.4 if name == "fast" else 0.95)
    assert np.allclose(np.linalg.norm(sol.quaternion, axis=1), 1, rtol=0, atol=4 * EPS)


def test_two_motions_are_one_and_back_again():
    for p in (SPECIAL["generic"], SPECIAL["fast"], SPECIAL["hanging, kicked"], SPECIAL["pendulum over the top"]):
        there = ph.exact(p, 1.25)
        again = ph.Problem(p.body, p.field, attitude=there.quaternion[0], momentum=there.momentum[0], t0=1.25)
        once, twice = ph.exact(p, [4.0, 0.0]), ph.exact(again, [4.0, 0.0])
        assert np.abs(once.quaternion - twice.quaternion).max() < 1e-13
        assert np.abs(once.momentum - twice.momentum).max() < 1e-12


def test_a_sleeping_top_sleeps_for_ever():
    for name in ("sleeping, stable", "sleeping, critical", "sleeping, unstable", "upright at rest"):
        sol = ph.exact(SPECIAL[name], [1.0, 1e3, -1e6])
        assert np.abs(sol.quaternion[:, 1:3]).max() == 0
        assert np.abs(sol.momentum[:, :2]).max() == 0
    turned = ph.Problem(ph.Body([2.0, 2.0, 2.0]), uniform((1.0, 2.0, -3.0), (1.0, 2.0, -3.0)), momentum=(0.0, 0.0, 0.0))
    assert np.abs(ph.exact(turned, 1e3).quaternion[0] - (1, 0, 0, 0)).max() < 1e-16  # products may be fused


def test_digits_do_not_get_lost_with_time():
    for name in ("generic", "fast", "released with spin"):
        few, many = (ph.exact(SPECIAL[name], 1e12, digits=n).mp for n in (30, 60))
        with mpmath.workdps(60):
            assert gap((few.quaternion[0], few.momentum[0]), (many.quaternion[0], many.momentum[0]), 1.0) < 1e-30


def test_the_separatrix_is_the_hyperbolic_secant():
    """A pendulum that stops upright: tan((pi - tilt)/4) = tanh(t/2), gravity 1, never turning back."""
    p = SPECIAL["pendulum that stops upright"]
    t = np.array([0.5, 2.0, 10.0, 1e4])
    q = ph.exact(p, t).quaternion
    lean = 2 * np.arctan2(np.hypot(q[:, 1], q[:, 2]), np.hypot(q[:, 0], q[:, 3]))
    assert np.abs((np.pi - lean) - 4 * np.arctan(np.tanh(t / 2))).max() < 8 * EPS


def test_times_start_anywhere_and_are_exact():
    p = top((2.0, 2.0, 1.0), 1.5, (0.3, -0.7, 1.1), TILT, t0=0.1)
    sol = ph.exact(p, [1e4 + 0.3, 0.1, -5.0])
    assert np.allclose(sol.quaternion[1], p.quaternion, rtol=0, atol=4 * EPS)
    for k, t in ((0, 1e4 + 0.3), (2, -5.0)):
        true = ph.exact(p, t, digits=40).mp
        assert gap((sol.quaternion[k], sol.momentum[k]), (true.quaternion[0], true.momentum[0]), 2.0) < 20 * EPS
    assert len(ph.exact(p, [])) == 0
    assert (sol.method, sol.info.field) == ("lagrange", "gravity(mgl=1.5)")


# --- what is a top ----------------------------------------------------------------------------------

COMMON = {"attitude": TILT, "momentum": (0.3, -0.7, 1.1)}


@ph.potential
def lifted(R, k):
    """A constant more, and the orthogonality of R."""
    return 7 + k * R[2][2] * (R[0][0] ** 2 + R[1][0] ** 2 + R[2][0] ** 2)


@ph.torque
def body_torque(R, k):
    return (k * R[2][1], -k * R[2][0], 0.0)


@ph.torque(frame="space")
def space_torque(R, k):
    return (-k * R[1][2], k * R[0][2], 0.0)


@ph.torque
def shaken(t, R, omega, k, depth, drag):
    k = k * (1 + depth * math.sin(t))
    return (k * R[2][1] - drag * omega[0], -k * R[2][0] - drag * omega[1], -drag * omega[2])


@pytest.mark.parametrize("field", [lifted(1.5), body_torque(1.5), space_torque(1.5), shaken(1.5, 0.0, 0.0)], ids=repr)
def test_a_top_is_known_by_its_torque(field):
    body = ph.Body([2.0, 2.0, 1.0])
    sol = ph.exact(ph.Problem(body, field, **COMMON), [1.0, 30.0])
    same = ph.exact(SPECIAL["generic"], [1.0, 30.0])
    assert np.array_equal(sol.quaternion, same.quaternion)
    assert np.array_equal(sol.momentum, same.momentum)


def test_a_field_that_does_nothing_leaves_the_free_body():
    body = ph.Body([0.6, 0.8, 1.0])
    sol = ph.exact(ph.Problem(body, gravity(0.0), **COMMON), [1.0, 30.0])
    assert np.array_equal(sol.quaternion, ph.exact(ph.Problem(body, **COMMON), [1.0, 30.0]).quaternion)
    assert sol.method == "jacobi"


@pytest.mark.parametrize("a", [(0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.3, -0.4, 1.2), (0.1, 0.2, -0.9), (1.0, -1.0, 0.0)])
@pytest.mark.parametrize(
    "b",
    [
        (0.5, 0.1, -0.7),
        pytest.param((0.0, 0.0, 1.0), marks=pytest.mark.slow),
        pytest.param((0.0, -1.0, 0.0), marks=pytest.mark.slow),
    ],
)
def test_a_spherical_body_takes_any_direction(a, b):
    p = ph.Problem(ph.Body([0.7, 0.7, 0.7]), uniform(a, b), **COMMON)
    true = ph.exact(p, -3.5, digits=40)
    q, m = flow(p, -3.5, digits=44)
    with mpmath.workdps(50):
        assert gap((true.mp.quaternion[0], true.mp.momentum[0]), (q, m), 1.0) < 1e-39
    assert gap(doubles(ph.exact(p, -3.5)), (q, m), 1.0) < 20 * EPS


def test_a_body_with_axes_of_its_own():
    """The tensor is symmetric about a line to round-off only; the result is as good as that."""
    turn = unit((0.3, -0.4, 0.5, 0.7))
    axes = np.array([rotate(turn, e) for e in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]).T
    field = uniform((0.0, 0.0, 1.5), axes[:, 2])
    body = ph.Body(axes @ np.diag([2.0, 2.0, 1.0]) @ axes.T)
    own = ph.Problem(body, field, momentum=axes @ COMMON["momentum"], attitude=mul(TILT, conj(turn)))
    a, b = ph.exact(own, [1.0, 7.0]), ph.exact(SPECIAL["generic"], [1.0, 7.0])
    assert np.allclose(a.momentum, b.momentum @ axes.T, rtol=0, atol=1e-14)
    assert np.allclose(a.matrix, [matrix(mul(tuple(q), conj(turn))) for q in b.quaternion], rtol=0, atol=1e-14)
    with pytest.raises(ph.InputError, match=r"only to round-off .* so there is no exact solution to 40 digits"):
        ph.exact(own, 1.0, digits=40)


@ph.potential
def two_directions(R):
    return R[2][2] + R[1][1]


@ph.potential
def clipped(R):
    return max(R[2][2], -2.0)


@ph.torque
def not_a_gradient(R):
    return (R[2][1], R[2][0], 0.0)


SYMMETRIC = ph.Body([2.0, 2.0, 1.0])
WRONG = {
    "asymmetric body": (ph.problems.heavy_top(), "not symmetric about the line"),
    "wrong axis": (
        ph.Problem(ph.Body([2.0, 1.0, 2.0]), gravity(1.0), **COMMON),
        "moments 1.5 perpendicular and 2 parallel",
    ),
    "oblique": (ph.Problem(SYMMETRIC, uniform((0, 0, 1), (0, 0.1, 1)), **COMMON), "not symmetric about the line"),
    "nearly symmetric": (ph.Problem(ph.Body([2.0, 2.0 + 1e-13, 1.0]), gravity(1.0), **COMMON), "differs by 2.5e-14"),
    "wall": (ph.problems.soft_wall(), "not linear in the attitude"),
    "quadratic": (ph.problems.quadratic_well(), "not linear in the attitude"),
    "time": (ph.Problem(SYMMETRIC, shaken(1.5, 0.1, 0.0), **COMMON), "the same at all times and velocities"),
    "velocity": (ph.Problem(SYMMETRIC, shaken(1.5, 0.0, 0.1), **COMMON), "the same at all times and velocities"),
    "no potential": (ph.Problem(SYMMETRIC, not_a_gradient(), **COMMON), "not linear in the attitude"),
    "two directions": (ph.Problem(SYMMETRIC, two_directions(), **COMMON), "one vector a in space"),
    "branch": (ph.Problem(SYMMETRIC, clipped(), **COMMON), "has branches"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_exact_solution_is_refused(name):
    problem, said = WRONG[name]
    with pytest.raises(ph.InputError, match=said) as caught:
        ph.exact(problem, 1.0)
    assert "use ph.solve" in str(caught.value)
