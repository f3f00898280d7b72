"""Methods that keep numbers from step to step, on one of them: Adams and Bashforth's two-step rule for the momentum."""

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.analysis.reference import flow
from polhode.kernels.so3 import add, along, exp, mul, scale
from polhode.methods.combinators.compose import halves
from polhode.methods.mechanics import gyration, rotation_increment, velocity
from polhode.methods.registry import method
from polhode.numbers.dispatch import kernel
from polhode.run.integrator import torque_kernel
from polhode.run.system import engine


@kernel
def _rate(t, q, m, system, torque):
    return add(gyration(m, system), torque(t, q, m, system))


@kernel
def _filled(h, t, y, system, torque):
    """The memory: rate and velocity a step before the start, by one step of Heun's rule backwards."""
    q, m, _ = y
    first = _rate(t, q, m, system, torque)
    end = along(m, -h, first)
    turned = mul(q, exp(rotation_increment(-h, along(m, -h / 2, first), system)))
    end = along(along(m, -h / 2, first), -h / 2, _rate(t - h, turned, end, system, torque))
    r, w = _rate(t - h, turned, end, system, torque), velocity(end, system)
    return (q, m, (r[0], r[1], r[2], w[0], w[1], w[2])), 0 * h


@method(
    order=2, order_free=2, symmetric=False, symplectic=False, poisson=False, solves=0, torque_evals=3,
    conserves=(), needs="velocity", cite="krysl2006", where="none", register=False, memory=6,
    before=lambda number: _filled,
)  # fmt: skip
@kernel
def ab2(h, t, y, system, torque):
    """Momentum and mean angular velocity by 3/2 of the present rate and -1/2 of the last one."""
    q, m, old = y
    r, w = _rate(t, q, m, system, torque), velocity(m, system)
    turn = scale(h, along(scale(3, w), -1, (old[3], old[4], old[5])))
    new = along(along(m, 3 * h / 2, r), -h / 2, (old[0], old[1], old[2]))
    return (mul(q, exp(scale(0.5, turn))), new, (r[0], r[1], r[2], w[0], w[1], w[2])), 0 * h


def by_hand(problem, h, steps):
    """The same recursion on arrays, without the library's loop."""
    (q, m), system = problem.kernel_data(float)
    torque = torque_kernel(problem, float)
    y, _ = _filled(h, problem.t0, (q, m, (0.0,) * 6), system, torque)
    for n in range(steps):
        y, _ = ab2.build(float)(h, problem.t0 + n * h, y, system, torque)
    return y


def test_the_memory_reaches_the_next_step():
    problem = ph.problems.heavy_top()
    sol = ph.solve(problem, ab2, dt=0.01, steps=50)
    q, m, _ = by_hand(problem, 0.01, 50)
    assert np.abs(sol.quaternion[-1] - q).max() < 1e-14
    assert np.abs(sol.momentum[-1] - m).max() < 1e-14
    digits = ph.solve(problem, ab2, dt=0.01, steps=50, digits=30)
    assert np.abs(sol.momentum - digits.momentum).max() < 1e-13


def test_it_has_its_order_over_many_steps():
    problem = ph.problems.heavy_top()
    errors = []
    for steps in (1000, 2000):
        sol = ph.solve(problem, ab2, dt=2 / steps, steps=steps, every=steps)
        fine = ph.solve(problem, "mkrk(rk4)", dt=0.0005, steps=4000, every=4000)
        errors.append(np.abs(sol.momentum[-1] - fine.momentum[-1]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_many_bodies_remember_each_for_itself():
    problem = ph.problems.heavy_top()
    many = ph.ensemble(
        [problem.body] * 3, [problem.quaternion] * 3, [problem.momentum, (1.0, 0.2, 0.3), problem.momentum],
        ab2, field=problem.field, dt=0.01, steps=20,
    )  # fmt: skip
    one = ph.solve(problem, ab2, dt=0.01, steps=20)
    assert np.abs(many.momentum[-1][0] - one.momentum[-1]).max() < 1e-14
    assert (many.momentum[-1][0] == many.momentum[-1][2]).all()


def test_the_checks_and_compositions_begin_it_anew():
    assert round(checks.measured_order(ab2, "velocity")) == 2
    sol = ph.solve(ph.problems.heavy_top(), halves(ab2, ab2, register=False), dt=0.01, steps=3)
    assert np.isfinite(sol.momentum).all()


def test_a_stepper_refuses_it():
    with pytest.raises(ph.InputError, match="has memory from step to step"):
        ph.stepper(ph.Body([1.0, 2.0, 2.5]), ab2, 0.1)


@pytest.mark.parametrize(("name", "order"), [("abm4", 4), ("abm4_naive", 2)])
def test_adams_remembers_the_last_three_steps(name, order):
    """The global order over many steps, in 40 digits: a wrong rate from the memory shows from the second step on."""
    problem, span = checks.generic("velocity"), 0.5
    end = flow(problem, span, digits=40)
    errors = []
    for steps in (32, 64):
        run = engine(problem, ph.methods[name], digits=40)
        with run.precision():
            rows = run.buffer(1)
            h, t0 = run.number(span) / steps, run.number(problem.t0)
            assert run.advance(h, t0, 0, steps, steps, steps, run.y, run.system, rows)[4]
            errors.append(max(abs(a - b) for a, b in zip(rows[0], (*end[0], *end[1]), strict=True)))
    assert abs(float(mpmath.log(errors[0] / errors[1], 2)) - order) < 0.2
