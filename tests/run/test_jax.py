"""The flow traced by JAX: values of plain Python, derivatives of 50-digit differences, both ways, never NaN."""

import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import polhode as ph
from plain import run
from polhode.analysis import checks
from polhode.compile import jax_target
from polhode.kernels import so3
from polhode.kernels.so3 import unit
from polhode.methods.queries import MotionSeries, TorqueRates
from polhode.run.system import engine

EPS = np.finfo(float).eps
ROUNDINGS = 512
"""Operations one after the other in a step, whose round-off may add up; a wrong derivative is off by its own size."""

STEPS, H = 1, 0.125
SMALL = mpmath.mpf(10) ** -16
"""Central differences in 50 digits are then correct to 32."""


@pytest.fixture(autouse=True)
def _doubles():
    with jax.enable_x64(True):
        yield


def traceable(method):
    return not math.isinf(method.order_free)


def kind(method):
    """What decides how a step is traced; memories are among the long tests."""
    return (
        method.needs == "free",
        method.implicit,
        *(method.asks.find(kind) is None for kind in (TorqueRates, MotionSeries)),
    )


ALL = [method for method in ph.methods.values() if traceable(method)]
KINDS = {}
for _method in sorted(ALL, key=lambda method: (method.solves, method.order)):
    KINDS.setdefault(kind(_method), _method)
COMBINED = ["compensated(dmv2)", "processed4(symrot123)", "ep(buss1)", "nystrom4(rot123)", "strang(dmv4)"]


def named(methods):
    return [pytest.param(method, id=method.name) for method in methods]


def start(problem):
    """What the flow is a function of."""
    params = dict(problem.field.values) if problem.field else {}
    values = problem.body.moments, problem.quaternion, problem.momentum
    return (*(jnp.array(x) for x in values), {name: jnp.array(x) for name, x in params.items()})


def direction(given, seed=0):
    """Some direction in which all of it changes."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.array(rng.normal(size=x.shape)), given)


def exact_slope(problem, method, along, steps=STEPS, h=H):
    """The derivative of the final state along a direction, by a difference of two runs in 50 digits."""
    exact = engine(problem, method, digits=50)
    with exact.precision():
        ends = []
        for size in (SMALL, -SMALL):
            (q, m, *rest), (moments, _, params) = exact.y, exact.system
            q, m, moments = (
                tuple(x + size * float(d) for x, d in zip(old, new, strict=True))
                for old, new in ((q, along[1]), (m, along[2]), (moments, along[0]))
            )
            params = tuple(x + size * float(along[3][name]) for x, name in zip(params, along[3], strict=True))
            system = moments, tuple(1 / x for x in moments), params
            rows = exact.buffer(1)
            dt, t0 = exact.number(h), exact.number(problem.t0)
            fine = exact.advance(dt, t0, 0, steps, steps, steps, (unit(q), m, *rest), system, rows)[4]
            assert fine
            ends.append(rows[0])
        return np.array([float(x) for x in (ends[0] - ends[1]) / (2 * SMALL)])


def check(method, problem=None):
    problem = problem or checks.generic(method.needs)
    f = ph.jax.flow(problem, method, dt=H, steps=STEPS)
    given = start(problem)
    along = direction(given)

    def numbers(*given):
        return jnp.concatenate(f(*given))

    with jax.disable_jit():  # op by op: compiling takes longer than two steps
        value, forward = jax.jvp(numbers, given, along)
        weights = direction(value, 1)
        _, backwards = jax.vjp(numbers, *given)
        gradient = backwards(weights)
    due = run(problem, method.name, H, STEPS).rows[-1]
    np.testing.assert_allclose(value, due, rtol=0, atol=ROUNDINGS * EPS * np.abs(due).max())
    slope = exact_slope(problem, method, along)
    limit = ROUNDINGS * EPS * np.abs(slope).max()
    np.testing.assert_allclose(forward, slope, rtol=0, atol=limit)
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), tuple(gradient), along)
    assert abs(sum(jax.tree.leaves(products)) - weights @ slope) < 7 * limit * np.abs(weights).max()


@pytest.mark.parametrize("method", named(KINDS.values()))
def test_values_and_both_derivatives_of_every_kind_of_method(method):
    check(method)


@pytest.mark.slow
@pytest.mark.parametrize("method", named(m for m in ALL if m not in KINDS.values()))
def test_values_and_both_derivatives_of_all_methods(method):
    check(method)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMBINED)
def test_values_and_both_derivatives_of_combinations(name):
    check(ph.methods[name])


LONG, SHORT = 100, 1 / 64
"""Steps, and their size, of a compiled run: on the way the length of the quaternion is corrected several times."""


def check_compiled(method):
    """Both derivatives of a compiled run of many steps, against 50 digits; returns their largest relative error.

    Compiled, XLA may evaluate a comparison more than once and round differently each time; op by op it cannot.
    """
    problem = checks.generic(method.needs)
    f = ph.jax.flow(problem, method, dt=SHORT, steps=LONG)
    given = start(problem)
    along = direction(given)
    weights = direction(jnp.zeros(7), 1)

    @jax.jit
    def both(*given):
        forward = jax.jvp(lambda *given: jnp.concatenate(f(*given)), given, along)[1]
        return forward, jax.grad(lambda given: weights @ jnp.concatenate(f(*given)))(given)

    forward, gradient = both(*given)
    slope = exact_slope(problem, method, along, LONG, SHORT)
    products = jax.tree.map(lambda a, b: jnp.sum(a * b), tuple(gradient), along)
    size = np.abs(slope).max()
    off = np.abs(forward - slope).max() / size
    off_backwards = abs(sum(jax.tree.leaves(products)) - weights @ slope) / (size * np.abs(weights).sum())
    assert off < LONG * ROUNDINGS * EPS
    assert off_backwards < LONG * ROUNDINGS * EPS
    return max(off, off_backwards)


COMPILED = ("imidm", "dmv2")
"""Newton's method, and the scalar root. Compiling takes seconds, so the others are among the long tests."""


@pytest.mark.parametrize("name", COMPILED)
def test_both_derivatives_of_a_compiled_run(name):
    check_compiled(ph.methods[name])


@pytest.mark.slow
@pytest.mark.parametrize("method", named(m for m in ALL if m.name not in COMPILED))
def test_both_derivatives_of_compiled_runs_of_all_methods(method):
    print(f"{method.name}: largest relative error {check_compiled(method):.1e}")
    jax.clear_caches()  # the compiled runs of all methods together take gigabytes


RESTING = [m for m in KINDS.values() if m.needs in ("free", "velocity") and m.order <= 2 and m.flat_bodies]


@pytest.mark.parametrize("method", named(RESTING[-1:]))
def test_at_rest_and_at_the_identity_a_symmetric_body_has_derivatives(method):
    check(method, ph.Problem(ph.Body([2.0, 2.0, 3.0]), momentum=[0.0, 0.0, 0.0]))


@pytest.mark.slow
@pytest.mark.parametrize("method", named(RESTING))
@pytest.mark.parametrize("momentum", [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("moments", [(2.0, 2.0, 2.0), (2.0, 2.0, 3.0), (1.0, 1.5, 2.0)])
def test_degenerate_motions_have_derivatives(method, momentum, moments):
    check(method, ph.Problem(ph.Body(moments), momentum=momentum))


def test_rotations_at_zero_angle():
    """exp, dexp and its inverse: first derivatives at zero, forwards and backwards, and the second of exp's scalar."""
    zero, a = jnp.zeros(3), (0.3, -0.2, 0.5)
    turn = lambda v: jnp.stack(so3.exp(tuple(v)))  # noqa: E731
    half = np.vstack([np.zeros(3), np.eye(3) / 2])
    hat = np.cross(np.eye(3), -np.array(a)).T
    with jax.disable_jit():
        for jacobian in (jax.jacfwd, jax.jacrev):
            np.testing.assert_array_equal(jacobian(turn)(zero), half)
            for kernel, factor in ((so3.dexp, -0.5), (so3.dexpinv, 0.5)):
                found = jacobian(lambda v, kernel=kernel: jnp.stack(kernel(tuple(v), a)))(zero)
                np.testing.assert_allclose(found, factor * hat, atol=EPS)
        bend = jax.jacfwd(jax.grad(lambda v: turn(v)[0]))(zero)
    np.testing.assert_allclose(bend, -np.eye(3) / 4, atol=EPS)


def test_functions_without_a_derivative_have_the_derivative_zero():
    space = jax_target.Traced
    ends = ((space.sqrt, 0.0), (space.asin, 1.0), (space.acos, -1.0), (lambda x: space.power(x, 1 / 3), 0.0))
    for function, x in ends:
        assert jax.grad(function)(x) == 0
        assert jax.jvp(function, (x,), (1.0,))[1] == 0
    assert jax.grad(space.atan2)(0.0, 0.0) == 0
    assert jax.grad(space.sqrt)(4.0) == 0.25


@ph.potential
def weight(R, mgl):
    return mgl * R[2][2]


TOP = ph.Problem(ph.Body([1.0, 1.2, 0.7]), weight(2.0), attitude=[0.8, 0.6, 0.0, 0.0], momentum=[0.3, 0.1, 2.0], t0=1.0)


def test_compiled_and_mapped_over_bodies_with_every():
    f = ph.jax.flow(TOP, "strang(symrot123)", dt=0.05, steps=7, every=3)
    mgl = np.array([0.5, 1.0, 2.0])
    q, m = jax.jit(jax.vmap(lambda x: f(params={"mgl": x})))(mgl)
    assert q.shape == (3, 4, 4)
    assert m.shape == (3, 4, 3)
    for i, x in enumerate(mgl):
        problem = ph.Problem(TOP.body, weight(x), attitude=TOP.quaternion, momentum=TOP.momentum, t0=1.0)
        sol = ph.solve(problem, "strang(symrot123)", dt=0.05, steps=7, every=3)
        np.testing.assert_allclose(q[i], sol.quaternion, atol=ROUNDINGS * EPS)
        np.testing.assert_allclose(m[i], sol.momentum, atol=ROUNDINGS * EPS)


def test_axes_of_the_body_are_kept():
    tensor = [[1.2, 0.2, 0.1], [0.2, 1.5, 0.0], [0.1, 0.0, 1.8]]
    problem = ph.Problem(ph.Body(tensor), weight(2.0), attitude=TOP.quaternion, momentum=TOP.momentum)
    with jax.disable_jit():
        q, m = ph.jax.flow(problem, "fe", dt=0.05, steps=3)()
    sol = ph.solve(problem, "fe", dt=0.05, steps=3)
    np.testing.assert_allclose(q, sol.quaternion[-1], atol=ROUNDINGS * EPS)
    np.testing.assert_allclose(m, sol.momentum[-1], atol=ROUNDINGS * EPS)


def test_from_a_failed_step_on_all_is_nan():
    f = ph.jax.flow(ph.problems.free_body(), "dmv2", dt=0.1, steps=2)
    with jax.disable_jit():
        q, m = f(momentum=jnp.array([300.0, -200.0, 100.0]))
    assert np.isnan(q).all()
    assert np.isnan(m).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inertia": np.ones(3, np.float32)}, "inertia must be doubles; got float32"),
        ({"momentum": np.ones((5, 3))}, r"momentum must have the shape \(3,\); got \(5, 3\). For many bodies"),
        ({"attitude": "up"}, r"attitude must be numbers of shape \(4,\); got 'up'"),
        ({"params": {"mass": 1.0}}, "no parameter 'mass'; it has mgl"),
    ],
)
def test_wrong_values_are_named(given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.jax.flow(TOP, "fe", dt=0.1, steps=1)(**given)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("strang(jacobi)", {}, r"uses elliptic functions, .*; methods that can: .*strang\(dmv10\)"),
        ("reversible(strang(dmv2))", {}, "chooses its own steps"),
        ("dmv2", {}, "dmv2"),
        ("fe", {"dt": 0}, "dt must be positive"),
        ("fe", {"steps": 0.5}, "steps must be a whole number"),
        ("fe", {"every": 0}, "every must be a whole number"),
    ],
)
def test_wrong_requests_are_named(method, options, said):
    with pytest.raises(ph.InputError, match=said):
        ph.jax.flow(TOP, method, **({"dt": 0.1, "steps": 1} | options))


def test_a_problem_is_asked_for():
    with pytest.raises(ph.InputError, match=r"must be a ph.Problem; got Body"):
        ph.jax.flow(TOP.body, "fe", dt=0.1, steps=1)


def test_single_precision_is_said():
    with jax.enable_x64(False), pytest.raises(ph.InputError, match="jax_enable_x64"):
        ph.jax.flow(TOP, "fe", dt=0.1, steps=1)()


def test_importing_polhode_imports_no_jax_and_without_it_the_extra_is_named():
    program = """
import sys, polhode as ph
assert "jax" not in sys.modules
sys.modules["jax"] = None
try:
    ph.jax.flow(ph.problems.free_body(), "fe", dt=0.1, steps=1)
except ph.InputError as fault:
    print(fault)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'polhode[jax]'" in said


def test_steps_that_cross_jumps_in_time_are_told():
    burn = ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[1.0, 2.0]])
    problem = ph.Problem(ph.Body([1.0, 1.4, 1.9]), burn, omega=[0.3, 1.1, 0.7])
    with pytest.warns(ph.ResultWarning, match="has a jump or a kink in time at t = 1, .* use ph.gradient"):
        ph.jax.flow(problem, "mkrk(rk4)", dt=0.1, steps=15)


@ph.torque(frame="body")
def relay(omega, k):
    return ph.where(omega[0] > 0.5, -k, k), 0.0, 0.0


def test_steps_that_cross_jumps_in_the_state_are_told():
    problem = ph.Problem(ph.Body([1.0, 1.4, 1.9]), relay(0.3), omega=[0.3, 1.1, 0.7])
    with pytest.warns(ph.ResultWarning, match="has conditions on the state .* use ph.gradient"):
        ph.jax.flow(problem, "mkrk(rk4)", dt=0.1, steps=15)


# --- one step in a program in single precision (docs/jax_step.md) ---------------------------------------


@ph.torque
def held(u):
    return (u[0], u[1], u[2])


def step_of(method, dt):
    """A step with a held torque: attitude, momentum, torque and inertia."""
    problem = ph.Problem(ph.Body([1.0, 1.0, 1.0]), held(u=[0.0, 0.0, 0.0]), momentum=[0.0, 0.0, 0.0])
    f = ph.jax.flow(problem, method, dt=dt, steps=1)
    return lambda q, momentum, torque, inertia: f(inertia, q, momentum, {"u": torque})


def single(q, omega, torque, inertia):
    """A step in single precision, with angular velocities and the scalar last."""
    with jax.enable_x64(True):
        given = jnp.roll(q, 1), inertia * omega, torque, inertia
        q, momentum, torque, inertia = (a.astype(jnp.float64) for a in given)
        q, momentum = step_of("buss2", 0.02)(q, momentum, torque, inertia)
        return jnp.roll(q, -1).astype(jnp.float32), (momentum / inertia).astype(jnp.float32)


def double(q, omega, torque, inertia):
    q, momentum = step_of("buss2", 0.02)(jnp.roll(q, 1), inertia * omega, torque, inertia)
    return jnp.roll(q, -1), momentum / inertia


def damped(step, gain, q, omega, inertia):
    """A number that depends on the states of all bodies after 20 steps with damping."""

    def advance(state, _):
        return jax.vmap(step)(*state, -gain * state[1], inertia), None

    (q, omega), _ = jax.lax.scan(advance, (q, omega), None, length=20)
    return (q[:, :3] ** 2).sum() + (omega**2).sum()


@pytest.mark.filterwarnings("error")
def test_a_step_in_a_program_in_single_precision():
    """In jit, scan, vmap and grad, without a warning, and the same to round-off as in doubles."""
    rng = np.random.default_rng(3)
    q = np.tile([0.0, 0.0, 0.0, 1.0], (5, 1))
    given = 0.8, q, rng.normal(size=(5, 3)), rng.uniform(1.0, 1.9, (5, 3))
    slopes = [
        jax.jit(jax.value_and_grad(lambda *x, step=step: damped(step, *x), (0, 2, 3))) for step in (single, double)
    ]
    with jax.enable_x64(False):
        found, (gain, omega, inertia) = slopes[0](*(jnp.asarray(x, np.float32) for x in given))
    assert found.dtype == gain.dtype == omega.dtype == inertia.dtype == np.float32
    with jax.enable_x64(True):
        exact, expected = slopes[1](*map(jnp.asarray, given))
        assert exact.dtype == np.float64
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    for got, right in zip((gain, omega, inertia), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_a_step_size_by_scaled_time():
    """The step h with momentum and torque is the step 1 with h momentum and h^2 torque."""
    q, momentum, torque, inertia = [0.5, 0.5, -0.5, 0.5], [0.3, -1.0, 0.7], [0.2, 0.1, -0.4], [1.0, 1.3, 1.6]
    h = 0.03
    with jax.enable_x64(True):
        given = [jnp.array(x) for x in (q, momentum, torque, inertia)]
        expected = step_of("buss2", h)(*given)
        turned, scaled = step_of("buss2", 1.0)(given[0], h * given[1], h**2 * given[2], given[3])
    np.testing.assert_allclose(turned, expected[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(scaled / h, expected[1], rtol=0, atol=1e-15)
