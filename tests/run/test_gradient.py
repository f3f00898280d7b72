"""Gradients: of every method against 50-digit differences, at degenerate motions, as symplectic maps, in every name."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.checks import FIELDS, generic
from polhode.kernels.loops import COLUMNS, change_of_variables, stepping
from polhode.kernels.so3 import exp, mul
from polhode.kernels.state import collapse
from polhode.numbers import floats
from polhode.numbers.dual import Dual, plain
from polhode.numbers.multiprecision import public
from polhode.run.directions import UNITS, Direction, seeds
from polhode.run.gradient import Run
from polhode.run.integrator import beginning, state_space, torque_kernel
from polhode.run.system import engine

STEP, STEPS = 1 / 8, 2
STEPPED = [m.name for m in ph.methods.taking("free")]
EXPRESSIONS = (
    *("ep(buss3)", "ep(abm4)", "compensated(dmv6)", "compensated(strang(rot123))", "lietaylor(6)", "strang(jacobi)"),
    *("reversible(imidm)", "reversible(strang(dmv6))", "nystrom4(jacobi)", "yoshida4(akw)", "processed4(symrot)"),
)
"""Every kind of state (plain, with a memory, with low parts, processed) and of thing asked of a field."""

ROUND_OFF = 1e-11
"""Of a few steps, relative to the largest slope: the worst is rattle, which divides by h^2 (4e-13)."""

MOMENTS, MOMENTUM, TURN, PARAMETER = (0.3, -0.2, 0.5), (0.7, 0.4, -0.6), (-0.5, 0.8, 0.3), 0.9
"""One direction that changes all numbers of a start at once."""


# --- three ways to a derivative ---------------------------------------------------------------------


def final(problem, method, shift, momentum=MOMENTUM):
    """The last state in 50 digits, the start moved along the direction by a small number."""
    run = engine(problem, method, 50)
    with run.precision():
        number = run.number

        def moved(numbers, rates):
            return tuple(x + shift * number(r) for x, r in zip(numbers, rates, strict=True))

        (q, m), (inertia, _, given) = problem.kernel_data(number)
        inertia = moved(inertia, MOMENTS)
        y = (mul(q, exp(moved((0, 0, 0), TURN))), moved(m, momentum))
        system = (inertia, tuple(1 / x for x in inertia), moved(given, [PARAMETER] * len(given)))
        rows, t0 = run.buffer(1), number(problem.t0)
        begun, last = beginning(method)(y), run.last(STEPS)
        assert run.advance(number(STEP), t0, 0, STEPS, STEPS, last, begun, system, rows)[4]
        return public(rows[0])


def differences(problem, method, momentum=MOMENTUM):
    """Forward and backward differences of the last state, 50 digits; their mean is off by the square of the shift."""
    with mpmath.workdps(55):
        d = mpmath.mpf(10) ** -15
        ahead, here, behind = (final(problem, method, s, momentum) for s in (d, 0 * d, -d))
        forward, backward = (ahead - here) / d, (here - behind) / d
        return forward, backward


def derivative(problem, method):
    forward, backward = differences(problem, method)
    return np.array((forward + backward) / 2, dtype=float)


def started(problem, directions=None):
    if directions is not None:
        return seeds(problem, directions, ())[:2]
    y, system, _ = seeds(problem, [Direction(moments=MOMENTS, momentum=MOMENTUM, attitude=TURN)], ())
    given = tuple(Dual(1, x.value, np.array([PARAMETER])) for x in system[2])
    return y, (*system[:2], given)


def in_python(problem, method, directions=None, step=STEP):
    """The last state with slopes by `backends.duals`."""
    y, system = started(problem, directions)
    before, after = method.processors(floats.number)
    torque = torque_kernel(problem, floats.number, method)
    advance = stepping(method.build(floats.number), torque, state_space(method), before, after)
    rows = np.empty((1, COLUMNS + method.has_own_time), dtype=object)
    last = (STEPS, math.inf) if method.has_own_time else STEPS
    begun = beginning(method)(y)
    assert advance(step, problem.t0, 0, STEPS, STEPS, last, begun, system, rows)[4]
    return rows[0]


def compiled(problem, method):
    """The same by `backends.dual_lanes`."""
    t, q, m = Run(problem, method, STEP, STEPS).ended(*started(problem), 1, 4)
    return [*q, *m, t] if method.has_own_time else [*q, *m]


def slopes(numbers):
    return np.array([x.tangent[0] for x in numbers])


def assert_close(found, due, tolerance=ROUND_OFF):
    assert np.abs(found - due).max() <= tolerance * np.abs(due).max()


# --- every method -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*STEPPED, *EXPRESSIONS])
def test_every_method_against_fifty_digits(name):
    method = ph.methods[name]
    problem = generic(method.needs)
    assert_close(slopes(in_python(problem, method)), derivative(problem, method))


@pytest.mark.parametrize("problem", ["heavy_top", "soft_wall"])
@pytest.mark.parametrize("name", ["rattle", "mkrk(gauss2)"])
def test_directions_in_which_the_unknowns_do_not_vary(name, problem):
    """Their slopes are round-off, and that is no reason to go on: without it `rattle` fails on both problems."""
    directions = [Direction(**{what: unit}) for what in ("attitude", "momentum", "moments") for unit in UNITS]
    end = in_python(ph.problems.get(problem), ph.methods[name], directions, 0.01)
    assert all(np.isfinite(x.tangent).all() for x in end)


@pytest.mark.parametrize("name", ["imidm", "rattle"])
def test_compiled_slopes(name):
    """Of a root by Newton's method, and of one by repeated corrections; `jacobi`, by a series, is below."""
    method = ph.methods[name]
    problem = generic(method.needs)
    found, due = compiled(problem, method), in_python(problem, method)
    assert_close(slopes(found), derivative(problem, method))
    np.testing.assert_allclose([plain(x) for x in found], [plain(x) for x in due], rtol=0, atol=4e-15)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*STEPPED, *EXPRESSIONS])
def test_compiled_slopes_of_every_method(name):
    method = ph.methods[name]
    problem = generic(method.needs)
    assert_close(slopes(compiled(problem, method)), derivative(problem, method))


def slopes_of_a_step(method, problem, factor):
    """Of one turn of the loop with respect to (q, m), the first quaternion lengthened by a factor."""
    q, m = problem.kernel_data(floats.number)[0]
    numbers = (*(factor * x for x in q), *m)
    duals = [Dual(1, x, e) for x, e in zip(numbers, np.eye(7), strict=True)]
    system = problem.kernel_data(floats.number)[1]
    begun = beginning(method)((tuple(duals[:4]), tuple(duals[4:])))
    torque = torque_kernel(problem, floats.number, method)
    new, _, fine = change_of_variables(method.build(floats.number))(STEP, problem.t0, begun, system, torque)
    assert fine
    return np.array([x.tangent for part in collapse(new) for x in part])


@pytest.mark.parametrize("name", [m.name for m in ph.methods.taking("free") if not m.has_own_time])
def test_derivatives_do_not_jump_with_the_last_digits_of_a_state(name):
    """A branch that round-off decides must not be differentiated: compiled by XLA it may be decided twice."""
    method = ph.methods[name]
    problem = generic(method.needs)
    exact, longer = (slopes_of_a_step(method, problem, 1 + k * 2.0**-52) for k in (0, 8))
    assert np.abs(longer - exact).max() <= ROUND_OFF * np.abs(exact).max()


# --- degenerate motions -----------------------------------------------------------------------------

DEGENERATE = {
    "rest": ((0.6, 0.8, 1.0), (0, 0, 0)),
    "symmetric": ((0.8, 0.8, 1.0), (1.8, 0.4, -0.9)),
    "symmetric, long": ((1.0, 0.8, 0.8), (1.8, 0.4, -0.9)),
    "nearly symmetric": ((0.8, 0.8 + 1e-9, 1.0), (1.8, 0.4, -0.9)),
    "sphere": ((1.0, 1.0, 1.0), (1.8, 0.4, -0.9)),
    "first axis": ((0.6, 0.8, 1.0), (-2, 0, 0)),
    "second axis": ((0.6, 0.8, 1.0), (0, 2, 0)),
    "nearly second axis": ((0.6, 0.8, 1.0), (1e-9, 2, 1e-9)),
    "third axis": ((0.6, 0.8, 1.0), (0, 0, 2)),
    "symmetry axis": ((0.8, 0.8, 1.0), (0, 0, 2)),
    "flat": ((0.6, 0.8, 1.4), (1.8, 0.4, -0.9)),
}


OTHER = (-0.3, 0.8, 0.5)
BETWEEN = tuple((a + b) / 2 for a, b in zip(MOMENTUM, OTHER, strict=True))


def differentiable(problem, method):
    """Do both one-sided differences agree, and are they linear in the direction (a cone's are not, at its tip)."""
    forward, backward = differences(problem, method)
    if max(abs(forward - backward)) >= 1e-9:
        return False
    other, between = (differences(problem, method, direction)[0] for direction in (OTHER, BETWEEN))
    return max(abs(forward + other - 2 * between)) < 1e-9


def check_degenerate(method, case):
    """All slopes are finite, and right wherever the step is differentiable."""
    moments, momentum = DEGENERATE[case]
    body = ph.Body(moments)
    if body.is_flat and not method.flat_bodies:
        return
    problem = ph.Problem(body, FIELDS[method.needs](), momentum=momentum, t0=0.25)  # attitude: the identity
    found = slopes(in_python(problem, method))
    assert np.isfinite(found).all()
    if differentiable(problem, method):
        assert_close(found, derivative(problem, method))


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("name", ["jacobi", "dmv6", "compensated(dmv6)", "swc1", "lietaylor(4)", "mv_explicit"])
def test_degenerate_motions(name, case):
    check_degenerate(ph.methods[name], case)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*STEPPED, *EXPRESSIONS])
def test_degenerate_motions_of_every_method(name):
    for case in DEGENERATE:
        check_degenerate(ph.methods[name], case)


# --- what is known of flows -------------------------------------------------------------------------


def two_form(m):
    """Matrix of the symplectic form at (turn in body axes, body momentum): b2.a1 - b1.a2 + m.(a1 x a2)."""
    hat = np.array([[0, m[2], -m[1]], [-m[2], 0, m[0]], [m[1], -m[0], 0]])
    return np.block([[hat, np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])


def jacobian(problem, method):
    """The derivative of the map in these coordinates, and the last momentum."""
    directions = [*(Direction(attitude=u) for u in UNITS), *(Direction(momentum=u) for u in UNITS)]
    end = in_python(problem, method, directions)
    q, dq = tuple(x.value for x in end[:4]), np.array([x.tangent for x in end[:4]])
    turns = [mul((q[0], -q[1], -q[2], -q[3]), tuple(column))[1:] for column in dq.T]
    return np.vstack([2 * np.array(turns).T, [x.tangent for x in end[4:7]]]), [x.value for x in end[4:7]]


@pytest.mark.parametrize(
    "name", [m.name for m in ph.methods.taking("free") if m.symplectic is not None and not m.memory]
)
def test_symplectic_maps(name):
    """J^T W(m_1) J = W(m_0) for those methods that declare it, and for no others (those of order 10 hide it)."""
    method = ph.methods[name]
    problem = generic("potential" if method.takes("potential") else "free")
    J, m = jacobian(problem, method)
    defect = np.abs(J.T @ two_form(m) @ J - two_form(problem.momentum)).max()
    assert defect < 1e-13 if method.symplectic else defect > 1e-11 or method.order_free >= 10


def test_a_spin_about_a_principal_axis():
    """R = exp(t m/I e3): its angle grows by t dm/I - t m dI/I^2, and any turn before the spin comes before it after."""
    moments, m, t = (0.6, 0.8, 1.25), 2.0, 3.0
    problem = ph.Problem(ph.Body(moments), momentum=[0, 0, m])

    def matrix(R):
        return R

    names = ("inertia", "momentum", "attitude")
    inertia, momentum, attitude = (ph.gradient(matrix, problem, "jacobi", dt=0.25, steps=12, wrt=n) for n in names)
    angle = t * m / moments[2]
    turn = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    hat = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(momentum.value, turn, atol=1e-14)
    np.testing.assert_allclose(momentum.momentum[..., 2], turn @ hat * t / moments[2], atol=1e-13)
    np.testing.assert_allclose(inertia.inertia[..., 2], -turn @ hat * t * m / moments[2] ** 2, atol=1e-13)
    np.testing.assert_allclose(inertia.inertia[..., :2], 0, atol=1e-14)
    np.testing.assert_allclose(attitude.attitude[..., 2], hat @ turn, atol=1e-13)


# --- the function -----------------------------------------------------------------------------------


@ph.torque
def fan(t, R, omega, k, axis):
    return (k * axis[0] - omega[0] / 4, k * axis[1] * R[2][1], axis[2] * math.sin(t) - k * omega[2])


START = {"attitude": [0.8, 0.4, 0.2, -0.4], "momentum": [1.8, 0.4, -0.9], "t0": 0.25}
AXIS = (0.3, -0.2, 0.5)
TENSOR = np.array([[0.9, 0.05, -0.1], [0.05, 1.1, 0.02], [-0.1, 0.02, 0.7]])


def seen(t, R, omega, momentum, weight=0.5):
    return (R[0][1] + weight * omega[2], momentum[1] * omega[0] + t * t)


def in_digits(problem, method="fem"):
    """What is seen at the end of a run in 30 digits."""
    end = ph.solve(problem, method, dt=STEP, steps=3, digits=30)
    return np.array(seen(end.t[-1], end.matrix[-1], end.omega[-1], end.momentum[-1]))


def made(inertia=(0.6, 0.8, 1.0), k=0.7, axis=AXIS, **start):
    return ph.Problem(ph.Body(inertia), fan(k, axis), **(START | start))


SHIFT = 2.0**-17
ROUGH = 2e-9
"""Differences with this shift of starts that are doubles: SHIFT^2 and epsilon/SHIFT, times derivatives of a few."""


def by_shifts(problem_at):
    """Central differences, from problem_at(shift)."""
    return (in_digits(problem_at(SHIFT)) - in_digits(problem_at(-SHIFT))) / (2 * SHIFT)


def test_all_names_of_a_body_given_by_moments():
    found = ph.gradient(seen, made(), "fem", dt=STEP, steps=3)
    np.testing.assert_allclose(found.value, in_digits(made()), rtol=1e-14)
    moments, momentum, q = np.array([0.6, 0.8, 1.0]), np.array(START["momentum"]), tuple(START["attitude"])
    for i, unit in enumerate(np.eye(3)):
        due = by_shifts(lambda d, unit=unit: made(moments + d * unit))
        np.testing.assert_allclose(found.inertia[:, i], due, atol=ROUGH)
        due = by_shifts(lambda d, unit=unit: made(momentum=momentum + d * unit))
        np.testing.assert_allclose(found.momentum[:, i], due, atol=ROUGH)
        due = by_shifts(lambda d, unit=unit: made(attitude=mul(q, exp(tuple(d * unit)))))
        np.testing.assert_allclose(found.attitude[:, i], due, atol=ROUGH)
        due = by_shifts(lambda d, unit=unit: made(axis=tuple(np.array(AXIS) + d * unit)))
        np.testing.assert_allclose(found.params["axis"][:, i], due, atol=ROUGH)
    np.testing.assert_allclose(found.params["k"], by_shifts(lambda d: made(k=0.7 + d)), atol=ROUGH)
    assert found.params["k"].shape == (2,)
    assert found.params["axis"].shape == (2, 3)


@pytest.mark.parametrize("tensor", ["general", "symmetric"])
def test_all_names_of_a_body_given_by_a_tensor(tensor):
    """In the user's axes; also where principal moments are equal and any axes of a plane are principal."""
    if tensor == "symmetric":
        axis = np.array([0.6, 0.0, 0.8])
        given = 0.9 * np.eye(3) + 0.3 * np.outer(axis, axis)
    else:
        given = TENSOR
    found = ph.gradient(seen, made(given), "fem", dt=STEP, steps=3)
    np.testing.assert_allclose(found.value, in_digits(made(given)), rtol=1e-13)
    np.testing.assert_allclose(found.inertia, found.inertia.transpose(0, 2, 1), atol=1e-14)
    for i in range(3):
        for j in range(i, 3):
            change = np.zeros((3, 3))
            change[i, j] = change[j, i] = 1
            due = by_shifts(lambda d, change=change: made(given + d * change))
            np.testing.assert_allclose((found.inertia * change).sum((1, 2)), due, atol=ROUGH)
    momentum, q = np.array(START["momentum"]), tuple(START["attitude"])
    for i, unit in enumerate(np.eye(3)):
        due = by_shifts(lambda d, unit=unit: made(given, momentum=momentum + d * unit))
        np.testing.assert_allclose(found.momentum[:, i], due, atol=ROUGH)
        due = by_shifts(lambda d, unit=unit: made(given, attitude=mul(q, exp(tuple(d * unit)))))
        np.testing.assert_allclose(found.attitude[:, i], due, atol=ROUGH)


def test_one_number_some_names_and_an_end_time():
    def height(R):
        return R[2][2]

    whole = ph.gradient(height, made(), "fem", dt=STEP, steps=3)
    part = ph.gradient(height, made(), "fem", dt=STEP, t_end=0.25 + 3 * STEP, wrt=("attitude", "momentum", "params"))
    assert isinstance(part.value, float)
    assert part.momentum.shape == (3,)
    np.testing.assert_allclose(part.momentum, whole.momentum, rtol=1e-13)
    assert part.inertia is None


def test_more_directions_than_fit_into_one_pass():
    weights = np.linspace(0.1, 1.0, 12)

    @ph.potential
    def many(R, weights):
        return sum(weights[k] * R[k % 3][k // 4] for k in range(12))

    def all_of(R, momentum):
        return (*R[0], *momentum)

    problem = ph.Problem(ph.Body([0.6, 0.8, 1.0]), many(weights), **START)
    found = ph.gradient(all_of, problem, "fem", dt=STEP, steps=3)
    alone = ph.gradient(all_of, problem, "fem", dt=STEP, steps=3, wrt=("params",))
    assert found.params["weights"].shape == (6, 12)
    np.testing.assert_allclose(alone.params["weights"], found.params["weights"], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        found.params["weights"][:, 0], found.params["weights"][:, 3], rtol=1e-13
    )  # R[0][0] twice


def test_a_linear_body_has_no_moments_to_vary():
    problem = ph.Problem(ph.Body([0, 1, 1]), momentum=[0, 0.3, 0.4])

    def height(R):
        return R[2][2]

    found = ph.gradient(height, problem, "fem", dt=STEP, steps=3)
    assert found.inertia is None
    assert found.momentum[0] == 0
    with pytest.raises(ph.InputError, match="linear body"):
        ph.gradient(height, problem, "fem", dt=STEP, steps=3, wrt="inertia")


# --- mistakes ---------------------------------------------------------------------------------------


def _free():
    return ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[1, 2, 3])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda R: None, "must return a number, or a tuple of numbers; it returned NoneType"),
        (lambda R: "up", "it returned str"),
        (lambda R: (), "it returned none"),
        (lambda R: R[0][0] > 0, "it returned a truth value"),
        (lambda R: (R[0], 1.0), "or rows of equal length"),
        (lambda R: np.array(R), "np.array, which cannot be compiled"),
        (lambda R, k: k * R[0][0], "takes k, which have no values"),
        (lambda R: 1 / (R[0][0] - 1), "raised ZeroDivisionError at the start"),
        (lambda R: R[3][0], "cannot be compiled"),
        (lambda *R: 0, "must name its arguments"),
        (3.0, "plain Python function; got float"),
    ],
)
def test_functions_that_are_none(function, said):
    with pytest.raises(ph.InputError, match=said):
        ph.gradient(function, _free(), "fem", dt=0.1, steps=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wrt": ("spin",)}, "wrt must be some of inertia, momentum, attitude, params; got 'spin'"),
        ({"wrt": ()}, "got none"),
        ({"wrt": 3}, "got 3"),
        ({"wrt": ("params",)}, "the problem has no field"),
        ({"dt": -1}, "dt must be positive"),
        ({"dt": "a"}, "dt must be a number"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"steps": None}, "give t_end or steps"),
        ({"t_end": 1.0}, "not both"),
        ({"method": "nothing"}, "unknown method"),
        ({"method": "reversible(imidm)", "steps": None, "t_end": 1.0}, "give steps"),
        ({"problem": None}, "must be a ph.Problem"),
    ],
)
def test_arguments_that_are_wrong(change, said):
    given = {"fn": lambda R: R[0][0], "problem": _free(), "method": "fem", "dt": 0.1, "steps": 3} | change
    with pytest.raises(ph.InputError, match=said):
        ph.gradient(**given)


def test_no_derivative_at_the_end():
    """The angle of no turn: its derivative is infinite; at rest it stays there."""

    def angle(R):
        return math.acos((R[0][0] + R[1][1] + R[2][2] - 1) / 2)

    spinning = ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0, 0, 0.5])
    assert ph.gradient(angle, spinning, "fem", dt=0.1, steps=5).momentum[2] == pytest.approx(0.5, rel=1e-12)

    def root(R):
        return math.sqrt(1 - R[0][1] - R[0][0])

    with pytest.raises(ph.InputError, match="no value or no derivative at the end"):
        ph.gradient(root, ph.Problem(ph.Body([0.6, 0.8, 1.0]), momentum=[0, 0, 0]), "fem", dt=0.1, steps=1)


def test_a_step_that_fails():
    with pytest.raises(ph.StepError, match="fem failed in step"):
        ph.gradient(seen, made(k=-1e3), "fem", dt=STEP, steps=300)
