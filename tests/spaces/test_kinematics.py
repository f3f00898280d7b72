"""Kinematics alone: the coning motion and other known attitudes, orders, tolerances, and what is refused."""

import math

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode import InputError, StepError, lie

EPS = 2.0**-52
ANGLE, RATE = 0.2, 2 * math.pi


def coning(t):
    """Body rates of a coning motion: the rotation vector has length ANGLE and turns in the 12 plane at RATE.

    From omega = 2 q* q' with the quaternion of `exact` (Bortz 1971; Savage 1998, section on coning).
    """
    s = RATE * math.sin(ANGLE)
    return -s * math.sin(RATE * t), s * math.cos(RATE * t), -2 * RATE * math.sin(ANGLE / 2) ** 2


def coning_space(t):
    """The same motion, omega in the space frame: 2 q' q*."""
    s = RATE * math.sin(ANGLE)
    return -s * math.sin(RATE * t), s * math.cos(RATE * t), 2 * RATE * math.sin(ANGLE / 2) ** 2


def exact(t):
    t = np.asarray(t, dtype=float)
    s = math.sin(ANGLE / 2)
    return np.stack([math.cos(ANGLE / 2) + 0 * t, s * np.cos(RATE * t), s * np.sin(RATE * t), 0 * t], -1)


def error(sol):
    """The largest rotation angle between the attitudes and the exact ones."""
    return 2 * np.linalg.norm(sol.quaternion - exact(sol.t), axis=1).max()


def cone(**said):
    return ph.kinematics(coning, 2.0, attitude=exact(0.0), **said)


@pytest.mark.parametrize("order", [*range(1, 9), 12])
def test_orders_on_the_coning_motion(order):
    """Halved steps; in the second pair of order 12 the errors are still 1e3 times round-off."""
    steps = (2.0**-4, 2.0**-5) if order < 9 else (2.0**-2, 2.0**-3)
    coarse, fine = (error(cone(dt=h, order=order)) for h in steps)
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.35 if order < 9 else 1)


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
def test_the_tolerance_is_met(tol):
    """The steps' errors turn with the motion and partly cancel, so the sum of their sizes is above the error."""
    sol = cone(tol=tol)
    assert error(sol) <= sol.error_estimate + 40 * EPS
    assert error(sol) > tol / 1000
    assert tol / 10 < sol.error_estimate <= 1.01 * tol
    assert error(sol.at(np.linspace(0, 2, 101))) <= sol.error_estimate + 40 * EPS


def test_the_space_frame():
    sol = ph.kinematics(coning_space, 2.0, attitude=exact(0.0), frame="space", tol=1e-12)
    assert error(sol) < 1e-12
    assert sol.frame == "space"
    other = ph.kinematics(coning, 2.0, attitude=exact(0.0), frame="space", tol=1e-12)
    assert error(other) > 1e-2


@pytest.mark.parametrize(("frame", "omega"), [("body", coning), ("space", coning_space)])
@pytest.mark.parametrize("steps", [{"tol": 1e-12}, {"dt": 1 / 32, "order": 12}, {"dt": -1 / 32, "order": 12}])
def test_backwards_in_time(frame, omega, steps):
    sol = ph.kinematics(omega, -1.5, attitude=exact(0.5), t0=0.5, frame=frame, **steps)
    assert sol.t[0] == 0.5
    assert sol.t[-1] == -1.5
    assert (np.diff(sol.t) < 0).all()
    assert error(sol) < 1e-12
    assert error(sol.at(np.linspace(0.5, -1.5, 101))) < 1e-12
    with pytest.raises(InputError, match=r"t must be times between -1\.5 and 0\.5"):
        sol.at(1.0)


def test_it_is_the_left_equation_of_lie():
    """R' = R hat(omega): the matrices of `lie.solve` with the same order and steps."""
    sol = cone(dt=0.125, order=6)
    R = lie.solve("SO(3)", coning, sol.matrix[0], "taylor(6)", dt=0.125, steps=16, trivialised="left").y
    assert np.abs(R - sol.matrix).max() < 40 * EPS
    assert np.abs(sol.rotation.as_matrix() - sol.matrix).max() < 8 * EPS


def test_it_is_the_attitude_of_a_free_body():
    """A symmetric body: omega_1 + i omega_2 turns at a constant rate; the exact attitude is that of `ph.exact`."""
    body = ph.Body([1.0, 1.0, 2.0])
    problem = ph.Problem(body, omega=[0.5, 0.0, 1.5])

    def omega(t):
        return 0.5 * math.cos(1.5 * t), 0.5 * math.sin(1.5 * t), 1.5

    sol = ph.kinematics(omega, 10.0, tol=1e-13)
    assert np.abs(sol.matrix - ph.exact(problem, sol.t).matrix).max() < 2e-13


def test_in_digits():
    """Half a turn of the cone is a rotation through -2 ANGLE about axis 1; 2 pi means 2 pi in every number type."""
    sol = ph.kinematics(coning, 0.5, tol=1e-30, digits=40)
    with mpmath.workdps(40):
        expected = (mpmath.cos(ANGLE), -mpmath.sin(ANGLE), 0, 0)
        assert max(abs(x - y) for x, y in zip(sol.mp.quaternion[-1], expected, strict=True)) < 1e-30


def test_a_jump_is_stepped_over():
    """omega doubles at t = 1: the step across it is short enough for the tolerance."""

    def omega(t):
        return ph.where(t < 1.0, 1.0, 2.0), 0.0, 0.0

    sol = ph.kinematics(omega, 2.0, tol=1e-9)
    assert sol.rejected > 0
    assert np.abs(sol.rotation[-1].as_rotvec() - [3.0, 0, 0]).max() < 1e-9


def test_constant_velocity_is_one_step():
    start = Rotation.from_rotvec([0.1, 0.2, 0.3])
    sol = ph.kinematics(lambda t: (0.0, 0.0, 3.0), 100.0, attitude=start)
    assert sol.accepted == 1
    assert (start.inv() * sol.rotation[-1]).as_rotvec()[2] == pytest.approx(300 - 96 * math.pi, abs=300 * EPS)
    assert "1 steps of order 13" in repr(sol)
    assert len(sol) == 2


def test_bad_input_is_refused_with_a_sentence():
    with pytest.raises(InputError, match="give tol or dt, not both"):
        cone(tol=1e-3, dt=0.1)
    with pytest.raises(InputError, match="frame must be 'body' or 'space'; got 'inertial'"):
        cone(frame="inertial")
    with pytest.raises(InputError, match="must return three numbers; it returned numbers of shape"):
        ph.kinematics(lambda t: (1.0, t), 1.0)
    with pytest.raises(InputError, match="omega must be a plain Python function of t; got list"):
        ph.kinematics([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(InputError, match="t_end must differ from t0 = 0; got 0"):
        ph.kinematics(coning, 0.0)
    with pytest.raises(InputError, match=r"dt = -0.5 goes backwards in time, and t_end = 2 lies after t0 = 0"):
        cone(dt=-0.5)
    with pytest.raises(InputError, match="tol must lie between 1e-15 and 1"):
        cone(tol=1e-20)
    with pytest.raises(InputError, match="not a whole number of steps"):
        cone(dt=0.3)
    with pytest.raises(InputError, match="order must be a whole number from 1 to 64"):
        cone(dt=0.5, order=100)
    with pytest.raises(InputError, match="t must be times between 0 and 2"):
        cone(dt=0.5).at(3.0)
    with pytest.raises(StepError, match=r"has no Taylor series at t = 0"):
        ph.kinematics(lambda t: (math.sqrt(t), 0.0, 0.0), 1.0)
    with pytest.raises(StepError, match="not smooth enough at t = "):
        ph.kinematics(lambda t: (1 / (0.7 - t), 0.0, 0.0), 1.0)
    for given in ({"tol": 1e-8}, {"dt": 0.125}):
        with pytest.raises(StepError, match=r"has no Taylor series at t = 0.6"):
            ph.kinematics(lambda t: (math.sqrt(0.6 - t), 0.0, 0.0), 1.0, digits=20, **given)
