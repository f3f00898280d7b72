"""RATTLE in P and Q: the printed equations, the constraint manifold, and Moser-Veselov under another name."""

import mpmath
import numpy as np
import pytest

import polhode as ph
from plain import run
from polhode.analysis.checks import EXACT, Setting, distance
from polhode.kernels.so3 import matrix
from polhode.methods.families import rattle
from polhode.ndim.family import largest_step
from polhode.numbers.multiprecision import number
from polhode.physics.fields.kernels import no_torque


def hat(v):
    x, y, z = v
    return mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


@pytest.mark.parametrize("kind", ["free", "potential", "attitude"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_rattle_is_strang_with_moser_veselov(kind, which):
    """With U and with any torque T(t, R); without, the plain discrete Moser-Veselov map."""
    other = "dmv2" if kind == "free" else "strang(dmv2)"
    with mpmath.workdps(55):
        ours, theirs = (Setting(ph.methods[name], kind, which).step(0.125) for name in ("rattle", other))
        assert distance(ours, theirs) < EXACT


def test_the_printed_equations_hold():
    """(11) of Vilmart: both multipliers symmetric, Q_1 orthogonal, P_1 tangent, hat(y) = Q^T P - P^T Q."""
    with mpmath.workdps(55):
        s = Setting(ph.methods["rattle"], "potential")
        h = mpmath.mpf(1) / 8
        (q0, m0), (q1, m1) = s.y, s.step(h)
        D = mpmath.diag(rattle.half_traces(s.system[0]))
        Q0, Q1 = (mpmath.matrix(matrix(q)) for q in (q0, q1))
        P0, P1 = (Q * hat([i * m for i, m in zip(s.system[1], y, strict=True)]) * D for Q, y in ((Q0, m0), (Q1, m1)))
        push0, push1 = (Q * hat(s.torque(t, q, m0, s.system)) / 2 for Q, t, q in ((Q0, s.t, q0), (Q1, s.t + h, q1)))
        half = (Q1 - Q0) * D / h
        for multiplier in (Q0.T * (P0 + h / 2 * push0 - half), Q1.T * (half + h / 2 * push1 - P1)):
            assert mpmath.mnorm(multiplier - multiplier.T, mpmath.inf) < EXACT
            assert mpmath.mnorm(multiplier, mpmath.inf) > 1e-4
        assert mpmath.mnorm(Q1.T * Q1 - mpmath.eye(3), mpmath.inf) < EXACT
        assert mpmath.mnorm(Q1.T * P1 * D**-1 + (Q1.T * P1 * D**-1).T, mpmath.inf) < EXACT
        assert mpmath.mnorm(Q1.T * P1 - P1.T * Q1 - hat(m1), mpmath.inf) < EXACT


def skew(v):
    return np.array(hat(v).tolist(), dtype=float)


BODIES = {"general": [0.6, 0.8, 1.0], "nearly flat": [0.6, 0.8, 1.39], "nearly symmetric": [0.7, 0.7001, 0.4]}
MOTIONS = {"general": [0.3, -0.2, 0.5], "third axis": [0.0, 0.0, 1.0], "first axis": [1.0, 0.0, 0.0]}


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("body", BODIES)
def test_it_reaches_the_largest_step_that_has_a_solution(body, motion):
    """That of the Moser-Veselov equation, in doubles and in 50 digits; beyond it there is nothing to find."""
    moments, momentum = np.array(BODIES[body]), MOTIONS[motion]
    largest = largest_step(moments.sum() / 2 - moments, skew(momentum))
    problem = ph.Problem(ph.Body(BODIES[body]), momentum=momentum)
    for part in (0.3, 0.8, 0.99, 0.9999):
        ours, theirs = (run(problem, name, part * largest, 1) for name in ("rattle", "dmv2"))
        assert ours.fine
        assert theirs.fine
        # where two solutions meet, round-off is amplified by the inverse root of the distance from there
        assert np.abs(ours.rows - theirs.rows).max() < 1e-14 / np.sqrt(1 - part)
    for part in (1.001, 1.1, 2.0, 10.0):
        assert not run(problem, "rattle", part * largest, 1).fine


@pytest.mark.parametrize("part", [0.2, 0.7, 0.95])
def test_long_steps_in_fifty_digits(part):
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0.3, -0.2, 0.5])
    h = part * largest_step([0.6, 0.4, 0.2], skew([0.3, -0.2, 0.5]))
    ours, theirs = (ph.solve(problem, name, dt=h, steps=2, digits=50) for name in ("rattle", "dmv2"))
    assert np.abs(ours.quaternion - theirs.quaternion).max() < 1e-15
    assert np.abs(ours.momentum - theirs.momentum).max() < 1e-15
    with mpmath.workdps(55):
        y, system = problem.kernel_data(number)
        (_, one), (_, two) = (ph.methods[name].build(number)(number(h), number(0), y, system, no_torque)[0]
                              for name in ("rattle", "dmv2"))  # fmt: skip
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-50


@pytest.mark.parametrize("thin", [1e-3, 1e-6, 1e-9])
def test_needles_keep_their_integrals_or_are_refused(thin):
    """A needle that also spins: the equation is nearly singular, but no wrong solution is taken."""
    moments = np.array([0.7, 0.7, 0.7 * thin])
    for seed in range(20):
        omega = np.random.default_rng(seed).normal(size=3)
        done = run(ph.Problem(ph.Body(moments.tolist()), omega=omega.tolist()), "rattle", 0.1, 10)
        energies = (done.momentum**2 / moments).sum(1) / (omega**2 * moments).sum() - 1
        assert done.fine or thin < 1e-8
        assert np.abs(energies).max(initial=0) < 1e-13


@pytest.mark.parametrize("problem", ["heavy_top", "zanna_body"])
def test_compiled_rattle_is_compiled_strang_at_round_off(problem):
    """A hundred steps; P carries round-off 1/h times larger than y does (here 20), and it adds up."""
    what = ph.problems.get(problem)
    ours, theirs = (ph.solve(what, name, dt=0.05, steps=100) for name in ("rattle", "strang(dmv2)"))
    assert np.abs(ours.quaternion - theirs.quaternion).max() < 100 * 20 * 2.0**-50
    assert np.abs(ours.momentum - theirs.momentum).max() < 100 * 20 * 2.0**-50


def test_flat_bodies_are_taken_and_linear_ones_refused():
    """The equation of the Cayley vector holds no D^-1; where there is one, the message names methods without it."""
    flat = ph.Problem(ph.Body([0.5, 0.75, 1.25]), momentum=[0.3, 0.2, 0.5])
    ours, theirs = (ph.solve(flat, name, dt=0.1, steps=4, digits=30) for name in ("rattle", "dmv2"))
    np.testing.assert_allclose(ours.momentum, theirs.momentum, rtol=0, atol=1e-15)
    with pytest.raises(ph.InputError, match=r"divides by half the difference .* zero for a flat body.*do not: jacobi"):
        ph.solve(flat, "mv_explicit", dt=0.1, steps=1)
    assert not ph.methods["strang(mv_explicit)"].flat_bodies
    linear = ph.Problem(ph.Body([1.0, 1.0, 0.0]), momentum=[0.3, 0.2, 0.0])
    with pytest.raises(ph.InputError, match="linear body"):
        ph.solve(linear, "rattle", dt=0.1, steps=1)


def test_it_says_when_the_constraint_cannot_be_met():
    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0.0, 0.0, 1.0])
    assert len(ph.solve(problem, "rattle", dt=0.8, steps=3)) == 4
    with pytest.raises(ph.StepError, match="was not solved"):
        ph.solve(problem, "rattle", dt=1.05, steps=3)
