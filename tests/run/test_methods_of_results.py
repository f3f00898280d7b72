"""What a result names as its method is a method: the registry takes the name, and gives a method of that name."""

import dataclasses

import numpy as np
import pytest

import polhode as ph
from polhode import lie, ndim, vector
from polhode.analysis import checks

TURNING = ph.Body([1.0, 1.7, 2.3])
SYMMETRIC = ph.Body([1.5, 1.5, 0.8])
OMEGA = [0.4, -1.1, 0.7]


@ph.torque
def ramp(t, R, omega, k=0.3):
    return ph.where(R[2][2] < 0.5, k * (0.5 - R[2][2]), 0.0), 0.1 * abs(R[0][1]), 0.0


def free():
    return ph.Problem(TURNING, omega=OMEGA)


def heavy():
    return ph.Problem(TURNING, ph.fields.gravity(1.3), omega=OMEGA)


def top():
    return ph.Problem(SYMMETRIC, ph.fields.gravity(1.3), omega=OMEGA)


def branching():
    return ph.Problem(TURNING, ramp(), omega=OMEGA)


@ph.torque
def singled_out(omega):
    """A condition without sides, whose changes are not located."""
    return ph.where(omega[0] == 0, 0.0, 0.1 * omega[1]), 0.0, 0.0


def unlocated():
    return ph.Problem(TURNING, singled_out(), omega=OMEGA)


def several(method=None, field=None, **named):
    momenta = [[1.0, 0.2, 0.3], [0.4, -1.0, 0.2]]
    return ph.ensemble([[1.0, 1.7, 2.3]] * 2, None, momenta, method, field=field, **named)


CHOSEN = {
    "free body": (lambda: ph.solve(free(), tol=1e-9, t_end=2.0), {"jacobi"}),
    "slow top, Taylor steps": (lambda: ph.solve(ph.problems.slow_top(), tol=1e-12, t_end=0.5), {"taylor("}),
    "soft wall, a pair": (lambda: ph.solve(ph.problems.soft_wall(), tol=1e-6), {"verner87"}),
    "fast top, a pair": (lambda: ph.solve(ph.problems.fast_top(), tol=1e-5), {"verner87"}),
    "fast top, series": (lambda: ph.solve(ph.problems.fast_top(), tol=1e-8), {"taylor("}),
    "a field with branches": (lambda: ph.solve(branching(), tol=1e-6, t_end=2.0), {"verner87"}),
    "a field with other branches": (
        lambda: ph.solve(unlocated(), tol=1e-6, t_end=2.0),
        {"mkrk(dormand_prince)"},
    ),
    "exact free body": (lambda: ph.exact(free(), [1.0]), {"jacobi"}),
    "exact top": (lambda: ph.exact(top(), [1.0]), {"lagrange"}),
    "exact top with digits": (lambda: ph.exact(top(), [1.0], digits=30), {"lagrange"}),
    "free ensemble": (lambda: several(tol=1e-9, t_end=2.0), {"jacobi"}),
    "ensemble to a tolerance": (lambda: several(field=ph.fields.gravity(1.3), tol=1e-9, t_end=2.0), {"taylor("}),
    "ensemble, error of a step": (
        lambda: several(field=ph.fields.gravity(1.3), step_tol=1e-9, t_end=2.0),
        {"taylor("},
    ),
}
"""Runs for which the library chooses the method, and how the name begins or what is in it."""


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.usefixtures("plain_first")
def test_a_chosen_method_is_in_the_registry(name):
    run, expected = CHOSEN[name]
    method = run().method
    assert ph.methods[method].name == method
    assert any(part in method for part in expected)


@pytest.mark.parametrize("name", ["verner87", "mkrk(dormand_prince)"])
@pytest.mark.usefixtures("plain_first")
def test_pairs_take_fixed_steps_and_tolerances(name):
    problem, end, dt = ph.problems.fast_top(), 0.2, 0.0025
    true = ph.exact(problem, [end]).quaternion[0]
    adaptive = ph.solve(problem, name, tol=1e-8, t_end=end)
    fixed = ph.solve(problem, name, dt=dt, t_end=end)
    assert adaptive.method == fixed.method == name
    assert "estimates" in adaptive.reason
    assert len(set(np.round(np.diff(adaptive.t), 9))) > 3  # the steps follow from the estimates
    assert np.abs(adaptive.quaternion[-1] - true).max() < 1e-8
    angle = dt * np.linalg.norm(problem.omega)
    assert np.abs(fixed.quaternion[-1] - true).max() < end / dt * angle ** (ph.methods[name].order + 1)


def test_a_pair_in_lanes():
    problem = ph.problems.fast_top()
    one = ph.solve(problem, "verner87", dt=0.0025, steps=8)
    starts = ([problem.quaternion] * 2, [problem.momentum] * 2)
    many = ph.ensemble(problem.body.moments, *starts, "verner87", field=problem.field, dt=0.0025, steps=8)
    assert many.method == one.method
    # products and sums are fused differently: some round-offs in weights of 120
    assert np.abs(many.quaternion[-1] - one.quaternion[-1]).max() < 1e-13


@pytest.mark.parametrize(
    ("make", "name"), [(ph.problems.soft_wall, "verner87"), (lambda: unlocated(), "mkrk(dormand_prince)")]
)
def test_a_given_pair_makes_the_steps_that_it_makes_when_it_is_chosen(make, name):
    chosen = ph.solve(make(), tol=1e-6, t_end=2.0)
    given = ph.solve(make(), name, tol=1e-6, t_end=2.0)
    assert chosen.method == name
    assert np.array_equal(chosen.t, given.t)
    assert np.array_equal(chosen.quaternion, given.quaternion)


SPIN = np.triu(np.ones((4, 4)), 1) - np.tri(4, k=-1)

OTHER_SPACES = {
    "vector": (
        lambda: vector.solve(lambda u: (-u[0],), [[1.0]], [1.0], [0.0], "verlet", dt=0.1, steps=3),
        vector.methods,
    ),
    "lie": (lambda: lie.solve("SO(3)", lambda t: (0.1, t, 0.2), dt=0.1, steps=3), lie.methods),
    "ndim": (lambda: ndim.solve([1.0, 2.0, 3.0, 4.0], SPIN, h=0.01, steps=3), ndim.methods),
}  # fmt: skip


@pytest.mark.parametrize("space", OTHER_SPACES)
def test_other_spaces_have_registries_of_their_own(space):
    run, registry = OTHER_SPACES[space]
    method = run().method
    assert registry[method].name == method


# --- the exact top ----------------------------------------------------------------------------------


def test_the_exact_top_in_solve():
    sol = ph.solve(top(), "lagrange", dt=0.1, steps=25, every=10)
    exact = ph.exact(top(), [0.0, 1.0, 2.0, 2.5])
    assert (sol.method, sol.dt, sol.info.steps) == ("lagrange", 0.1, 25)
    assert np.array_equal(sol.quaternion, exact.quaternion)
    assert np.array_equal(sol.momentum, exact.momentum)
    assert ph.solve(top(), "lagrange", dt=0.1, steps=1, digits=30).mp is not None


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda: ph.solve(heavy(), "lagrange", dt=0.1, steps=3), "the body is not symmetric about the line"),
        (lambda: ph.solve(branching(), "lagrange", dt=0.1, steps=3), "has branches"),
        (lambda: ph.solve(free(), "lagrange", dt=0.1, steps=3), "this body is free; use 'jacobi'"),
        (lambda: ph.solve(top(), "lagrange", tol=1e-9, t_end=1.0), "lagrange is exact"),
        (lambda: ph.solve(top(), "lagrange", dt=0.1, steps=3, out="x.zarr"), "leave out `events` and `out`"),
        (lambda: ph.stepper(SYMMETRIC, "lagrange", dt=0.1), "without steps"),
        (lambda: several("lagrange", dt=0.1, steps=3), "without steps"),
        (lambda: ph.methods["yoshida4(lagrange)"], "cannot be part of another method"),
        (lambda: ph.methods["reversible(lagrange)"], "varies the steps"),
    ],
)
def test_the_exact_top_is_refused_elsewhere(run, why):
    with pytest.raises(ph.InputError, match=why):
        run()


def test_a_false_declaration_of_the_exact_top_is_caught():
    honest = ph.methods["lagrange"]
    for name, value in {"order": 8, "symmetric": False, "symplectic": None, "solves": 1, "poisson": True}.items():
        assert checks.check_exact_top(dataclasses.replace(honest, **{name: value})) != [], name
