"""Variable steps that keep a symmetric method symmetric."""

import dataclasses

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.kernels.so3 import add, along, exp, mul, norm, scale, sub, times
from polhode.methods.combinators.compose import halves
from polhode.methods.combinators.reversible import LONGEST, PUSH, RUNAWAY, STEEP
from polhode.methods.mechanics import basis, gyration
from polhode.numbers import multiprecision
from polhode.physics.queries import answering
from polhode.run.integrator import torque_kernel
from polhode.run.system import engine
from representatives import slow_unless

WALL = "reversible(strang(rot123))"


# --- what it declares -------------------------------------------------------------------------------

PARTS = ("imidm", "trapm", "akw", "jacobi", "strang(symrot_auto)", "nystrom4(rot123)", "yoshida4(imidm)")


@pytest.mark.parametrize("part", slow_unless({*PARTS} - {"yoshida4(imidm)"}, PARTS))
def test_it_is_what_it_declares(part):
    assert checks.check(ph.reversible(part)) == []


LIES = {
    "not symmetric": (checks.check_symmetric, {"symmetric": False}),
    "order too high": (checks.check_order, {"order": 3}),
    "symplectic": (checks.check_symplectic, {"symplectic": True}),
    "energy kept": (checks.check_conserves, {"conserves": frozenset({"energy", "spatial_momentum", "momentum_norm"})}),
    "the torque of the step alone": (checks.check_cost, {"torque_evals": 1}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_false_declaration_is_found(lie):
    check, said = LIES[lie]
    assert check(dataclasses.replace(ph.reversible("imidm"), **said)) != []


def test_a_controller_that_looks_back_is_not_symmetric():
    """The same density without its second half kick: the checks see the difference."""
    honest = ph.reversible("imidm")

    def build(number):
        step = honest.build(number)

        def classical(h, t, y, system, torque):
            (q, m, memory), residual = step(h, t, y, system, torque)
            return (q, m, (*memory[:2], memory[2] + h / 1000, *memory[3:])), residual

        return classical

    assert checks.check_symmetric(dataclasses.replace(honest, build=build)) != []


# --- the rate of a torque ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["potential", "attitude", "velocity"])
@pytest.mark.parametrize("axes", [False, True])
def test_rates_are_derivatives_along_the_motion(kind, axes):
    """T', K and K' against central differences of T and K: error 1e-24 times third derivatives."""
    problem = checks.generic(kind)
    if axes:
        tensor = [[2.0, 0.1, -0.2], [0.1, 3.0, 0.3], [-0.2, 0.3, 4.0]]
        problem = ph.Problem(ph.Body(tensor), problem.field, momentum=[1.8, 0.4, -0.9], t0=0.25)
    with mpmath.workdps(50):
        (q, m), system = problem.kernel_data(multiprecision.number)
        torque = torque_kernel(problem, multiprecision.number, ph.reversible("imidm"))
        t, size = mpmath.mpf(problem.t0), mpmath.mpf(10) ** -12
        w, slope = times(system[1], m), add(gyration(m, system), torque(t, q, m, system))
        a = times(system[1], slope)
        rate, steepness, steeper = torque(t, q, m, system, a)

        def central(value):
            return scale(1 / (2 * size), sub(value(size), value(-size)))

        def moved(s):
            return t + s, mul(q, exp(scale(s, w))), along(m, s, slope), system

        assert norm(sub(central(lambda s: torque(*moved(s))), rate)) < 1e-22
        squares = 0
        for axis in basis(t):
            change = central(lambda s, axis=axis: torque(t, mul(q, exp(scale(s, axis))), m, system))
            squares += norm(times(system[1], change)) ** 2
        assert abs(squares - steepness) < 1e-22
        ahead, behind = (torque(*moved(s), a)[1] for s in (size, -size))
        assert abs((ahead - behind) / (2 * size) - steeper) < 1e-21


def test_a_free_body_has_no_rate():
    torque = answering(ph.reversible("imidm").asks, None, False, float)
    assert torque(0.0, None, None, None) == (0, 0, 0)
    assert torque(0.0, None, None, None, (1.0, 2.0, 3.0)) == ((0.0, 0.0, 0.0), 0.0, 0.0)


# --- steps ------------------------------------------------------------------------------------------


def density(problem, sol):
    """The monitor to the power 1/4 along a trajectory, relative to its first value."""
    torque, (_, system) = torque_kernel(problem, float, ph.methods[WALL]), problem.kernel_data(float)
    monitor = []
    for t, q, m, w in zip(sol.t, sol.quaternion, sol.momentum, sol.omega, strict=True):
        push = times(system[1], torque(t, q, m, system))
        steepness = torque(t, q, m, system, (0.0, 0.0, 0.0))[1]
        monitor.append(np.dot(w, w) ** 2 + PUSH * np.dot(push, push) + STEEP * steepness)
    monitor = np.array(monitor) + monitor[0] / LONGEST**4
    return (monitor / monitor[0]) ** 0.25


@pytest.mark.parametrize("dt", [0.02, 0.01])
@pytest.mark.usefixtures("plain_first")
def test_steps_follow_the_monitor(dt):
    """h rho = dt, and rho is the monitor up to O(dt^2), without drift."""
    problem = ph.problems.soft_wall()
    sol = ph.solve(problem, WALL, dt=dt, t_end=60.0)
    wanted = density(problem, sol)
    middle = (wanted[1:] + wanted[:-1]) / 2
    assert np.abs(np.diff(sol.t) * middle / dt - 1).max() < 2 * dt**2
    assert np.diff(sol.t).max() / np.diff(sol.t).min() > 1.5


def test_a_run_turned_round_returns():
    """500 steps, the momentum turned, 500 steps: the start, to the round-off of the steps (and of the sums of time)."""
    problem, method = ph.problems.soft_wall(), ph.methods[WALL]
    run = engine(problem, method)
    rows = run.buffer(2)
    (q, m, memory), *_ = run.advance(0.2, 0.0, 0, 500, 500, run.last(500), run.y, run.system, rows)
    time, low, rho, growth, floor = memory
    back = (q, tuple(-x for x in m), (0.0, low, rho, -growth, floor))
    (q, m, memory), *_ = run.advance(0.2, 0.0, 1, 500, 501, run.last(501), back, run.system, rows)
    assert np.abs(np.array(q) - problem.quaternion).max() < 1e-12
    assert np.abs(np.array(m) + problem.momentum).max() < 1e-12
    assert memory[0] == pytest.approx(time, rel=1e-13)
    assert memory[2] == pytest.approx(1, rel=1e-12)


def test_the_energy_stays_where_it_is():
    """Symmetry keeps the error of the energy bounded: as large in the last tenth of 20000 steps as in the first."""
    sol = ph.solve(ph.problems.soft_wall(), WALL, dt=0.2, steps=20000)
    error = np.abs(sol.energy / sol.energy[0] - 1)
    assert error[-2000:].max() < 1.5 * error[:2000].max() < 4e-3
    fixed = ph.solve(ph.problems.soft_wall(), "strang(rot123)", dt=sol.t[-1] / 20000, steps=20000)
    assert error.max() < np.abs(fixed.energy / fixed.energy[0] - 1).max() / 1.5


def test_steps_pay_at_a_steep_wall():
    """As many fixed steps over the same time have at least four times the error of the energy (eight is measured)."""
    problem = ph.problems.coulomb_wall()
    sol = ph.solve(problem, WALL, dt=0.02, steps=20000)
    fixed = ph.solve(problem, "strang(rot123)", dt=sol.t[-1] / 20000, steps=20000)
    worst, plain = (np.abs(run.energy / run.energy[0] - 1).max() for run in (sol, fixed))
    assert plain > 4 * worst
    sizes = np.diff(sol.t)
    assert sizes.max() > 10 * sizes.min()


def test_a_scheme_with_a_modified_potential_runs_compiled():
    problem = ph.problems.soft_wall()
    sol, digits = (ph.solve(problem, "reversible(nystrom4(rot123))", dt=0.1, steps=20, digits=d) for d in (None, 25))
    assert np.abs(sol.momentum - digits.momentum).max() < 1e-13
    assert np.abs(sol.t - digits.t).max() < 1e-13


@pytest.mark.usefixtures("plain_first")
def test_a_body_with_axes_of_its_own():
    """The same body in turned axes makes the same steps."""
    turn = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])  # about the axis of the potential
    wall = ph.problems.coulomb_wall()
    turned = ph.Problem(
        ph.Body(turn @ np.diag([2.0, 3.0, 4.5]) @ turn.T), wall.field, attitude=turn.T, spatial_momentum=[2.0, 2.0, 2.0]
    )
    one, other = (ph.solve(p, WALL, dt=0.02, steps=200) for p in (wall, turned))
    assert one.t[-1] < 0.9 * 200 * 0.02
    assert np.abs(one.t - other.t).max() < 1e-11
    assert np.abs(one.energy - other.energy).max() < 1e-11


def test_its_global_error_has_the_order():
    """Against the reference at the times the run reached, with steps halved."""
    from polhode.analysis.reference import solution

    problem, errors = ph.problems.soft_wall(), []
    for dt in (0.02, 0.01):
        sol = ph.solve(problem, WALL, dt=dt, t_end=1.0, every=10**6)
        _, m, _ = solution(problem, float(sol.t[-1]))
        errors.append(np.abs(sol.momentum[-1] - np.array(m, dtype=float)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


# --- times ------------------------------------------------------------------------------------------


def test_a_torque_sees_the_true_time():
    """A torque of t alone about a principal axis: the momentum is its integral up to the recorded times."""

    @ph.torque
    def push(t):
        return (0.0, 0.0, 3 * t * t)

    problem = ph.Problem(ph.Body([1.0, 1.0, 2.0]), push(), omega=[0.0, 0.0, 1.0], t0=1.0)
    sol = ph.solve(problem, WALL, dt=0.01, t_end=3.0, digits=20)
    assert np.diff(sol.t).min() < 0.6 * 0.01
    exact = 2 + sol.t**3 - 1
    assert np.abs(sol.momentum[:, 2] - exact).max() < 2 * 0.01**2  # the trapezoidal rule: f'' = 6, (t - t0) h^2/12 f''


def test_the_run_ends_with_the_first_step_past_the_end():
    problem = ph.problems.soft_wall()
    every = ph.solve(problem, WALL, dt=0.1, t_end=7.0)
    assert every.t[-2] < 7.0 <= every.t[-1]
    assert every.status == "finished"
    assert every.dt == 0.1
    assert every.info.steps == len(every) - 1
    thin = ph.solve(problem, WALL, dt=0.1, t_end=7.0, every=25)
    assert (thin.t == np.append(every.t[::25], every.t[-1])).all()
    assert (thin.momentum[-1] == every.momentum[-1]).all()
    counted = ph.solve(problem, WALL, dt=0.1, steps=every.info.steps, every=25)
    assert (counted.t == thin.t).all()


@pytest.mark.usefixtures("plain_first")
def test_states_between_the_steps_are_steps_of_the_part():
    sol = ph.solve(ph.problems.soft_wall(), WALL, dt=0.02, t_end=2.0)
    at = sol.at(sol.t[:-1])
    assert np.abs(at.momentum - sol.momentum[:-1]).max() < 1e-14
    middle = (sol.t[40] + sol.t[41]) / 2
    part = ph.Problem(
        ph.problems.soft_wall().body, ph.problems.soft_wall().field, attitude=sol.quaternion[40],
        momentum=sol.momentum[40], t0=sol.t[40],
    )  # fmt: skip
    step = ph.solve(part, "strang(rot123)", dt=middle - sol.t[40], steps=1)
    assert np.abs(sol.at(middle).momentum - step.momentum[-1]).max() < 1e-14


def test_files_and_digits_have_the_true_times(tmp_path):
    problem = ph.problems.soft_wall()
    sol = ph.solve(problem, WALL, dt=0.1, t_end=2.0, every=4)
    kept = ph.solve(problem, WALL, dt=0.1, t_end=2.0, every=4, out=tmp_path / "run.zarr")
    assert (kept.t == sol.t).all()
    assert (ph.load(tmp_path / "run.zarr").energy == sol.energy).all()
    digits = ph.solve(problem, WALL, dt=0.1, t_end=2.0, every=4, digits=30)
    assert np.abs(digits.t - sol.t).max() < 1e-13
    assert np.abs(digits.momentum - sol.momentum).max() < 1e-13


@pytest.mark.filterwarnings("ignore:.*do not follow a body")
def test_every_body_of_an_ensemble_has_its_own_times():
    """The steps of each are those of a run of its own; one that runs away leaves the others alone."""
    wall = ph.problems.coulomb_wall()
    momenta = np.array([wall.momentum, [1.0, 2.0, 0.5], [200.0, 200.0, 20.0], wall.momentum])
    with pytest.warns(ph.ResultWarning, match="1 of 4 bodies failed .* body 2 in step"):
        many = ph.ensemble(wall.body, None, momenta, WALL, field=wall.field, dt=0.02, steps=300, every=100)
    assert many.t.shape == (4, 4)
    assert (many.t[0] == 0).all()
    assert (many.failed[[0, 1, 3]] == -1).all()
    assert many.failed[2] > 0
    assert (many.t[:, 0] == many.t[:, 3]).all()
    for i in (0, 1):
        alone = ph.Problem(wall.body, wall.field, momentum=momenta[i])
        sol = ph.solve(alone, WALL, dt=0.02, steps=300, every=100)
        assert np.abs(sol.t - many.t[:, i]).max() < 1e-12
        assert np.abs(sol.momentum - many.momentum[:, i]).max() < 1e-11


def test_a_body_at_rest_without_torque_stays():
    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), momentum=[0.0, 0.0, 0.0])
    sol = ph.solve(problem, "reversible(imidm)", dt=0.5, steps=3, digits=20)
    assert (sol.momentum == 0).all()
    assert (sol.t == [0.0, 0.5, 1.0, 1.5]).all()


def test_progress_counts_time():
    seen = []
    ph.solve(ph.problems.soft_wall(), WALL, dt=0.1, t_end=7.0, progress=seen.append)
    assert seen[-1] == 1
    assert all(0 < x <= 1 for x in seen)


# --- what is refused --------------------------------------------------------------------------------


def test_a_step_that_runs_away_says_so():
    with pytest.raises(
        ph.StepError, match="the monitor function of the step size changed by more than its own value"
    ) as stop:
        ph.solve(ph.problems.coulomb_wall(), WALL, dt=2.0, t_end=20.0)
    assert "try dt = 1;" in str(stop.value)
    assert 0 < stop.value.partial.t[-1] < 20
    assert RUNAWAY > 0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ph.reversible("fem"), "needs a symmetric method, such as .*, and fem is not symmetric"),
        (lambda: ph.reversible("compensated(dmv2)"), "apply reversible.. to the inner method"),
        (lambda: ph.reversible("reversible(imidm)"), "apply reversible.. to the inner method"),
        (lambda: ph.yoshida4("reversible(imidm)"), "make it the outermost"),
        (lambda: ph.strang("reversible(jacobi)"), "make it the outermost"),
        (lambda: halves(ph.reversible("imidm"), ph.reversible("imidm")), "make it the outermost"),
        (lambda: ph.compensated("reversible(rot123)"), "increments"),
        (lambda: ph.stepper(ph.Body([1.0, 2.0, 2.5]), "reversible(imidm)", 0.1), "from step to step"),
        (lambda: ph.solve(ph.problems.soft_wall(), WALL, dt=0.1, t_end=0.0), "t_end must differ from"),
        (lambda: ph.solve(ph.problems.soft_wall(), WALL, dt=0.1, t_end=1.0, steps=3), "t_end or steps, not both"),
    ],
)
def test_refused(make, match):
    with pytest.raises(ph.InputError, match=match):
        make()


def test_a_comparison_at_one_time_refuses_it():
    from polhode.analysis.convergence import convergence

    with pytest.raises(ph.InputError, match="ends after the given time"):
        convergence(ph.problems.soft_wall(), [WALL], [0.1])
