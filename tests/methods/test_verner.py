"""The pairs on components: tables in fractions, orders in 50 digits, the controlled step, and runs with them."""

import functools
import math
from fractions import Fraction

import mpmath
import numba
import numpy as np
import pytest

import polhode as ph
from polhode.analysis.bench import reference_error
from polhode.analysis.reference import flow
from polhode.compile import numba_target
from polhode.compile.program import compiled
from polhode.compile.simd import vector_types
from polhode.kernels.loops import adaptive_stepping
from polhode.kernels.so3 import conj, cross, mul, norm, sub, times, unit, unrotate
from polhode.methods.adaptive import enright_verner76 as low
from polhode.methods.adaptive import verner87 as high
from polhode.methods.adaptive.controller import controlled, controlled_step_from_estimate
from polhode.methods.adaptive.verner87 import SAFETY, verner87
from polhode.numbers import floats
from polhode.numbers.exact import converted
from polhode.numbers.multiprecision import number
from polhode.numbers.primitives import combined
from polhode.run import step_control
from polhode.run.adaptive import Run
from polhode.run.integrator import torque_kernel
from rooted_trees import density, trees

PAIRS = {"verner87": high.PAIR, "enright_verner76": low.PAIR}
EACH = pytest.mark.parametrize("name", PAIRS)
ORDER = verner87.order
NOTHING = (0.0, 0.0)


# --- the table --------------------------------------------------------------------------------------


@functools.cache
def stage_weights(name, tree):
    """Elementary weights of the stages' slopes (Butcher)."""
    found = [Fraction(1)] * PAIRS[name].stages
    for branch in tree:
        inner = stage_weights(name, branch)
        found = [
            x * sum(a * y for a, y in zip(row, inner, strict=True))
            for x, row in zip(found, PAIRS[name].tableau.a, strict=True)
        ]
    return found


def missed(name, weights, nodes):
    """How many of the order conditions with so many nodes fail, exactly."""
    sums = [sum(b * x for b, x in zip(weights, stage_weights(name, tree), strict=True)) for tree in trees(nodes)]
    return sum(density(tree) * total != 1 for tree, total in zip(trees(nodes), sums, strict=True))


NODES = {
    "verner87": "0 1/20 341/3200 1023/6400 39/100 93/200 31/200 943/1000 7067558016280/7837150160667 909/1000 47/50"
    " 1 1",
    "enright_verner76": "0 1/18 1/9 1/6 4/9 19/39 7/9 8/9 1 1",
}


@EACH
def test_nodes_are_the_row_sums(name):
    table, stages = PAIRS[name].tableau, range(PAIRS[name].stages)
    assert list(table.c) == [Fraction(x) for x in NODES[name].split()] == [sum(row) for row in table.a]
    assert all(table.a[i][j] == 0 for i in stages for j in stages[i:])
    assert table.b[-1] == 0  # the last stage serves only the estimates


@EACH
def test_every_order_condition_in_fractions(name):
    counts = [len(trees(n)) for n in range(1, 10)]
    assert counts == [1, 1, 2, 4, 9, 20, 48, 115, 286]
    order, table = ph.methods[name].order, PAIRS[name].tableau
    failed = [missed(name, table.b, n) for n in range(1, order + 2)]
    assert failed[:-1] == [0] * order
    assert failed[-1] > 0
    failed = [missed(name, PAIRS[name].embedded, n) for n in range(1, order + 1)]
    assert failed[:-1] == [0] * ph.methods[name].estimate_order
    assert failed[-1] > 0


# --- the step in 50 digits --------------------------------------------------------------------------


@ph.torque
def pushed(t, R, omega, k):
    return R[2][1] - k * omega[0], math.sin(t) * omega[1] * R[0][1], math.cos(3 * t) + R[1][0]


def problem(body=(1.0, 1.75, 2.25)):
    return ph.Problem(ph.Body(body), pushed(0.25), omega=[1.0, -0.5, 0.75], attitude=[0.5, -0.5, 0.5, 0.5])


TILTED = ((2.5, 0.5, 0.25), (0.5, 2.5, 0.0), (0.25, 0.0, 4.0))


def angle(p, q):
    d = mul(conj(p), q)
    return 2 * mpmath.atan2(norm(d[1:]), abs(d[0]))


def given(problem, number):
    """The start, the system and the torque in a number type."""
    return *problem.kernel_data(number), torque_kernel(problem, number)


def plain_step(pair, h, y, system, torque):
    """The two solutions and no more, by the definition of a Runge-Kutta method and Pi' = Pi x w + T."""

    def rates(t, row):
        q, m = tuple(row[:4]), tuple(row[4:])
        w, force = times(system[1], m), torque(t, q, m, system)
        turning = mul(q, (0, *w))
        return [x / 2 for x in turning] + [a + b for a, b in zip(cross(m, w), force, strict=True)]

    def moved(weights):
        return [
            x + h * sum(converted(a, number) * k[i] for a, k in zip(weights, slopes, strict=False))
            for i, x in enumerate(start)
        ]

    start, slopes = [*y[0], *y[1]], []
    for i in range(pair.stages):
        slopes.append(rates(converted(pair.tableau.c[i], number) * h, moved(pair.tableau.a[i][:i])))
    return moved(pair.tableau.b), moved(pair.embedded)


@EACH
@pytest.mark.parametrize("body", [(1.0, 1.75, 2.25), TILTED])
def test_orders_of_the_step_and_of_its_estimates(name, body):
    """Local errors h^(order + 1) in attitude and momentum; the estimates are of one order less."""
    body, method = problem(body), ph.methods[name]
    with mpmath.workdps(50):
        y, system, torque = given(body, number)
        found = []
        for h in (mpmath.mpf(2) ** -7, mpmath.mpf(2) ** -8):
            (q, m), attitude, momentum = PAIRS[name].estimated_step(number)(h, mpmath.mpf(0), y, system, torque)
            exact = flow(body, h)
            if body.body.has_principal_rotation:
                axes = system[2][-4:]
                exact = mul(exact[0], axes), unrotate(axes, exact[1])
            found.append((angle(q, exact[0]), norm(sub(m, exact[1])), mpmath.sqrt(attitude), mpmath.sqrt(momentum)))
        slopes = [float(mpmath.log(a / b, 2)) for a, b in zip(*found, strict=True)]
    assert slopes == pytest.approx([method.order + 1] * 2 + [method.estimate_order + 1] * 2, abs=0.1)


@EACH
def test_the_step_is_that_of_the_table(name):
    """Against the definition, step and estimates, to the 50 digits less what weights of 120 cost."""
    with mpmath.workdps(50):
        y, system, torque = given(problem(), number)
        h = mpmath.mpf(1) / 8
        (q, m), attitude, momentum = PAIRS[name].estimated_step(number)(h, mpmath.mpf(0), y, system, torque)
        high, low = plain_step(PAIRS[name], h, y, system, torque)
        error = [a - b for a, b in zip(low, high, strict=True)]
        wanted = *unit(high[:4]), *high[4:]
        assert max(abs(a - b) for a, b in zip((*q, *m), wanted, strict=True)) < 1e-47
        assert abs(mpmath.sqrt(attitude) - 2 * mpmath.sqrt(sum(x * x for x in error[:4]))) < 1e-47
        assert abs(mpmath.sqrt(momentum) - norm(error[4:])) < 1e-47
    assert sum(PAIRS[name].difference) == 0


# --- the stage --------------------------------------------------------------------------------------


def staged(problem):
    y, system, torque = given(problem, floats.number)
    return controlled_step_from_estimate(verner87, floats.number, torque), y, system


def test_without_tolerance_the_step_allowed_is_made():
    controlled_step, y, system = staged(problem())
    new, h, following, fine = controlled_step(0.0, y, 0.25, 0.25, system, NOTHING, ORDER)
    assert (h, fine) == (0.25, True)
    assert following == 5 * 0.25
    exact = flow(problem(), 0.25, 20)
    assert np.allclose((*new[0], *new[1]), [float(x) for part in exact for x in part], rtol=0, atol=1e-9)


def test_a_body_at_rest_has_no_error_and_no_nan():
    controlled_step, y, system = staged(ph.Problem(ph.Body([1, 2, 2.5]), omega=[0, 0, 0]))
    assert controlled_step(0.0, y, 0.5, 9.0, system, (1e18, 1e18), ORDER) == (y, 0.5, 2.5, True)


def test_a_step_that_has_no_value_is_made_shorter():
    def torque(t, q, m, system):
        return math.sqrt(0.125 - t) if t <= 0.125 else math.nan, 0.0, 0.0

    y, system = problem().kernel_data(floats.number)
    controlled_step = controlled_step_from_estimate(verner87, floats.number, torque)
    _, h, following, fine = controlled_step(0.0, y, 1.0, 2.0, system, (1e18, 1e18), ORDER)
    assert not fine
    assert following == 0.2 * h


def test_the_controller():
    judged, tol = controlled(floats.number, ORDER, SAFETY), (1e-6, 1e-3)

    def factor(err, proposal=1.0):
        squares = (0.5 * err * tol[0]) ** 2, (err * tol[1]) ** 2
        return judged(1.0, proposal, squares, (tol[0] ** -2, tol[1] ** -2))

    for err in 10.0 ** np.linspace(-9, 9, 400):
        following, fine = factor(err)
        exact = min(5.0, max(0.2, float(SAFETY) * err ** (-1 / ORDER)))
        assert following == pytest.approx(exact, rel=0.025)
        assert fine == (err <= 1)
    assert factor(float(SAFETY) ** ORDER)[0] == pytest.approx(1, rel=1e-14)
    assert factor(0.0) == (5.0, True)
    assert factor(math.nan) == (0.2, False)
    assert factor(0.5, proposal=7.0) == (7.0, True)  # the step was cut: its proposal stands
    assert factor(2.0, proposal=7.0)[0] < 1


def travelled(problem, end, tolerance, longest=math.inf, first=None):
    """The loop in plain Python: the rows made and the number of rejected steps."""
    controlled_step, y, system = staged(problem)
    times, rows = np.empty(500), np.empty((500, 7))
    first = end / 1000 if first is None else first
    _, t, _, largest, turned, filled, rejected, fine = adaptive_stepping(controlled_step)(
        0.0, end, end, longest, first, y, system, tolerance, 0.0, ORDER, times, rows
    )
    assert largest >= np.linalg.norm(y[1]) * (1 - 1e-15)
    assert turned > 0
    assert (fine, t) == (True, end)
    return times[:filled], rows[:filled], rejected


@pytest.mark.parametrize(
    "case",
    [
        ph.Problem(ph.Body([1, 2, 2.5]), momentum=[1, 2, -1]),
        ph.Problem(ph.Body([3, 3, 0]), momentum=[1, 2, 0]),
        ph.Problem(ph.Body(TILTED), momentum=[1, 2, -1]),
    ],
    ids=["free", "linear", "own axes"],
)
def test_free_bodies(case):
    """An error of tol in the momentum at each step turns the body by at most tol t/min(I) until the end."""
    end, tol = 5.0, 1e-9
    _, rows, _ = travelled(case, end, tol)
    _, system = case.kernel_data(floats.number)
    q, (exact, _) = tuple(rows[-1][:4]), flow(case, end, 15)
    q = mul(q, conj(system[2][-4:])) if case.body.has_principal_rotation else q
    assert angle(q, exact) < len(rows) * tol * (1 + end / min(x for x in system[0] if x > 0))
    assert sum(x * x for x in q) == pytest.approx(1, abs=1e-15)


# --- compiled ---------------------------------------------------------------------------------------


def test_compiled_as_uncompiled_in_axes_of_its_own():
    case = problem(TILTED)
    run = Run(case, step_control.runge_kutta(case), 2.0, 1e-8)
    path = run()
    times, rows, rejected = travelled(case, 2.0, run.tolerance, run.schedule.legs[0].longest, run.proposal())
    assert (len(path.times) - 1, path.rejected) == (len(times), rejected)
    # products and sums are fused in compiled code: some 1e-16 in weights of 120, over the steps
    assert np.abs(path.rows[-1] - rows[-1]).max() < len(rows) * 120 * 2.0**-52


def test_rows_are_combined_compiled_and_in_lanes():
    weights = 0.5, -3.0, 0.25
    rows = tuple(tuple(float((3 * i + 5 * j) % 7) for i in range(7)) for j in range(3))
    fast = compiled(lambda rows: combined(weights, rows)).run
    assert fast(rows) == combined(weights, rows)  # eighths of small whole numbers: exact

    n = vector_types.LANES

    @numba.njit(**numba_target.OPTIONS)
    def in_lanes(x, out):
        a, b, c = vector_types.load(x, 0), vector_types.load(x, n), vector_types.load(x, 2 * n)
        first, second = combined(weights, ((a, b), (b, c), (c, a)))
        vector_types.store(out, 0, first)
        vector_types.store(out, n, second)

    a, b, c = x = np.arange(3.0 * n).reshape(3, n)
    out = np.empty(2 * n)
    in_lanes(x.ravel(), out)
    assert np.array_equal(out, np.concatenate(combined(weights, ((a, b), (b, c), (c, a)))))


def test_errors_follow_the_tolerance():
    """A named problem with its reference: the error at the end falls with the tolerance of the steps, or faster."""
    top = ph.problems.get("heavy_top")
    errors = []
    for tol in (1e-5, 1e-8, 1e-11):
        run = Run(top, step_control.runge_kutta(top), top.t_end, tol)
        path = run()
        assert path.finished
        errors.append(reference_error(top, path.rows[-1][:4]))
    assert errors[0] / errors[1] > 100  # a tenth of the ratio of the tolerances; measured: 6400 and 5400
    assert errors[1] / errors[2] > 100


def test_between_steps():
    """One step of the pair from the last state kept: as good as the run."""
    top = ph.problems.get("heavy_top")
    rough, fine = (Run(top, step_control.runge_kutta(top), 1.0, tol) for tol in (1e-8, 1e-12))
    times = np.linspace(0, 1, 33)
    a, b = (run.state_at(times, path.times, path.rows) for run in (rough, fine) for path in [run()])
    steps = len(rough().times)
    assert np.abs(a[:, :4] - b[:, :4]).max() < steps * 1e-8
