"""A state that is kept is a rotation with a finite momentum, or the step has failed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polhode as ph
from plain import run
from polhode.kernels.loops import is_valid
from polhode.kernels.quartic import quartic
from polhode.kernels.so3 import restored
from polhode.numbers import floats
from polhode.run.integrator import torque_kernel

FREE_FLOWS = ["dmv2", "dmv6", "strang(dmv2)", "yoshida4(dmv2)", "compensated(dmv2)"]
NAMES = [
    *(m.name for m in ph.methods.taking("free")),
    "ep(buss3)",
    "ep(rk4_quat)",
    "taylor(12)",
    "lietaylor(12)",
    *FREE_FLOWS,
]
BODIES = {
    "general": [0.6, 0.9, 1.05],
    "flat": [0.4, 0.6, 1.0],
    "linear": [1.0, 1.0, 0.0],
    "spherical": [0.7, 0.7, 0.7],
    "needle": [0.7, 0.7, 1e-6],
}


@ph.potential
def bowl(R, a):
    return a * R[2][2] + a * R[0][1] * R[0][1] / 2


def is_rotation(rows: np.ndarray) -> bool:
    """To 1e-12, and finite."""
    return bool(np.isfinite(rows).all() and (np.abs((rows[:, :4] ** 2).sum(1) - 1) < 1e-12).all())


@pytest.mark.parametrize("name", NAMES)
def test_far_too_long_steps(name: str) -> None:
    """Random states of all kinds of bodies, free and in a potential, turned by up to thousands of radians in a step."""
    draw = np.random.default_rng(len(name))
    method, ended = ph.methods[name], 0
    for moments in BODIES.values():
        for field in (None, bowl(3.0)):
            if field is not None and (not method.takes("potential") or 0 in moments):
                continue
            for angle in (1.0, 3.0, 30.0, 1e4):
                omega = np.where(np.array(moments) > 0, draw.normal(size=3), 0)
                omega /= np.linalg.norm(omega)
                problem = ph.Problem(ph.Body(moments), field, omega=omega.tolist())
                try:
                    done = run(problem, name, angle, 12)
                except ph.InputError:
                    continue
                assert is_rotation(done.rows)
                ended += 1
    assert ended >= 12


@pytest.mark.parametrize("name", FREE_FLOWS)
def test_linear_bodies_beyond_the_largest_step(name: str) -> None:
    """h |y| < I: beyond, the equation of Moser and Veselov keeps a root that is no rotation, and it is not taken.

    The preprocessed method uses other moments, which have another limit.
    """
    problem = ph.Problem(ph.Body([1.0, 1.0, 0.0]), omega=[0.6, 0.8, 0.0])
    assert run(problem, name, 0.5, 4).fine
    for dt in (0.9, 1.001, 1.1, 1.5, 2.0, 2.2, 3.0, 10.0):
        done = run(problem, name, dt, 1)
        assert is_rotation(done.rows)
        if done.fine:
            assert dt < 1 or name == "dmv6"
            assert abs(2 * math.acos(done.quaternion[0, 0]) - dt) < 0.25 or dt > math.pi / 2
        else:
            assert not done.residual <= 0


def test_the_turn_of_a_linear_body_is_exact() -> None:
    """Up to the limit a step turns by the angle 2 arcsin(sqrt(kappa/2 I)), kappa (2 I - kappa) = |h y|^2."""
    problem = ph.Problem(ph.Body([1.0, 1.0, 0.0]), omega=[0.6, 0.8, 0.0])
    for dt in (0.1, 0.5, 0.9, 0.999):
        kappa = 1 - math.sqrt(1 - dt * dt)
        q = run(problem, "dmv2", dt, 1).quaternion[0]
        assert abs(math.hypot(*q[1:]) - math.sqrt(kappa / 2)) < 1e-14


def test_the_small_root_of_linear_bodies() -> None:
    """The other real root, kappa = 2 I, solves the quartic for every step."""
    g = 0.5 / 0.5  # I = 1/2 in units of the trace
    for c in (0.1, 1.0, 7.0):
        assert quartic(1 / g, g * c, c, (2 * g, g * g, 0.0)) == 0


@pytest.mark.parametrize("name", ["taylor(6)", "rk4_quat", "abm4", "ep(rk4_quat)"])
def test_blow_ups_end_the_run(name: str) -> None:
    """Polynomials in the four components of q grow without bound; a quaternion of any length is not made a unit."""
    body, attitude = ph.Body([0.6, 0.9, 1.05]), [-0.8, 0.0, 0.0, 0.6]
    for dt in (3.0, 10.0, 1e4):
        done = run(ph.Problem(body, bowl(1.2), attitude=attitude, omega=[-0.2, -2.2, -0.1]), name, dt, 300)
        assert not done.fine
        assert is_rotation(done.rows)


@pytest.mark.parametrize("length", [0.0, 0.49, 2.01, 1e200, math.inf, math.nan])
def test_only_what_is_nearly_a_rotation_is_made_one(length: float) -> None:
    q = restored((0.6 * length, 0.8 * length, 0.0 * length, 0.0 * length))
    assert not is_valid((q, (0.1, 0.2, 0.3)), 0.0)
    near = restored((0.6 * 1.9, -0.8 * 1.9, 0.0, 0.0))
    assert is_valid((near, (0.1, 0.2, 0.3)), 0.0)


@pytest.mark.parametrize("m", [(math.inf, 0.0, 0.0), (math.inf, -math.inf, 0.0), (0.0, math.nan, 0.0)])
def test_the_momentum_must_be_finite(m: tuple[float, float, float]) -> None:
    assert not is_valid(((1.0, 0.0, 0.0, 0.0), m), 0.0)
    assert not is_valid(((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), 1e-3)


def test_compiled_one_body_and_many() -> None:
    """A length of zero was once a state of a finished run."""
    problem = ph.Problem(ph.Body([1.0, 1.0, 0.0]), omega=[0.6, 0.8, 0.0])
    for dt in (1.1, 1.5):
        with pytest.raises(ph.StepError, match="dmv2 failed in step 1"):
            ph.solve(problem, "dmv2", dt=dt, steps=4)
    momenta = [[0.06, 0.08, 0.0], [0.6, 0.8, 0.0], [0.3, 0.4, 0.0]]
    with pytest.warns(ph.ResultWarning, match="body 1 in step 1"):
        many = ph.ensemble([1.0, 1.0, 0.0], None, momenta, "dmv2", dt=1.5, steps=4, progress=False)
    assert many.failed.tolist() == [-1, 1, -1]
    kept = many.quaternion[np.isfinite(many.quaternion).all(-1)]
    assert np.abs((kept**2).sum(-1) - 1).max() < 1e-12


def test_the_torque_of_a_free_body_is_absent() -> None:
    """The runs of this file are those of ph.solve: the same kernels without a compiler."""
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[0.3, -0.2, 0.5])
    torque = torque_kernel(problem, floats.number, ph.methods["dmv2"])
    assert torque(0.0, problem.quaternion, problem.momentum, ()) == (0, 0, 0)
    plain, compiled = run(problem, "dmv2", 0.1, 5), ph.solve(problem, "dmv2", dt=0.1, steps=5)
    np.testing.assert_allclose(plain.quaternion, compiled.quaternion[1:], atol=1e-15)
