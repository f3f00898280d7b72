"""Events as they are declared: what a user's function becomes, and what is refused."""

import math

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.kernels.so3 import matrix
from polhode.numbers import floats, multiprecision
from polhode.physics.observers import event as events
from polhode.symbolic.expression import symbol, symbols_in
from polhode.taylor.graph import substituted

I3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def tilt(R, angle):
    return R[2][2] - math.cos(angle)


def spin(t, omega):
    return omega[0] * math.sin(t) - omega[2] ** 2 / 3


def test_parameters_are_bound_by_a_call_or_have_defaults():
    unbound = ph.event(tilt, direction=-1, terminal=True)
    bound = unbound(0.3)
    assert (bound.name, bound.direction, bound.terminal, bound.parameters) == ("tilt", -1, True, (0.3,))
    assert unbound(angle=0.3).parameters == (0.3,)
    assert bound.value(0.0, I3, (0.0, 0.0, 0.0)) == pytest.approx(1 - math.cos(0.3), abs=1e-16)

    def level(R, height=0.25):
        return R[2][2] - height

    assert ph.event(level).parameters == (0.25,)
    assert ph.event(level)(0.5).parameters == (0.5,)
    assert ph.event(spin).parameters == ()


def test_it_decorates():
    @ph.event(direction=1)
    def noon(t, period=2.0):
        return math.sin(math.tau * t / period)

    assert isinstance(noon, ph.Event)
    assert noon.direction == 1
    assert repr(noon) == "<Event noon(period=2.0), direction 1>"
    assert repr(ph.event(tilt, terminal=True)) == "<Event tilt without its parameters, direction 0, terminal>"


def test_the_formula_has_the_symbols_of_a_field():
    assert symbols_in([ph.event(tilt)(0.3).graph]) == {"R22", "p0"}
    assert symbols_in([ph.event(spin).graph]) == {"t", "w0", "w2"}
    (moved,) = substituted([ph.event(spin).graph], {"t": symbol("s"), "w0": symbol("a"), "w2": symbol("b")})
    assert symbols_in([moved]) == {"s", "a", "b"}


def axes_of_its_own():
    turn = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    return ph.Problem(
        ph.Body(turn @ np.diag([2.0, 3.0, 4.5]) @ turn.T), ph.problems.coulomb_wall().field,
        attitude=(0.8, 0.4, 0.2, -0.4), omega=[0.3, -0.2, 0.7], t0=0.5,
    )  # fmt: skip


@pytest.mark.parametrize("problem", [ph.problems.heavy_top(), ph.problems.free_body(), axes_of_its_own()])
@pytest.mark.parametrize("event", [ph.event(tilt)(0.3), ph.event(spin)])
def test_the_kernel_is_the_function_in_any_number_type(problem, event):
    """In principal axes what the user's function is in the user's, to a few roundings; and to 30 digits in mpmath."""
    expected = event.value(problem.t0, matrix(problem.quaternion), problem.omega)
    (q, m), system = problem.kernel_data(floats.number)
    double = event.kernel(floats.number, problem)(problem.t0, q, m, system)
    assert double == pytest.approx(expected, abs=4e-15)
    with mpmath.workdps(30):
        (q, m), system = problem.kernel_data(multiprecision.number)
        precise = event.kernel(multiprecision.number, problem)(mpmath.mpf(problem.t0), q, m, system)
        assert isinstance(precise, mpmath.mpf)
        assert abs(precise - double) < 4e-15


def test_the_kernel_compiles():
    from polhode.compile.program import compiled

    problem, event = ph.problems.heavy_top(), ph.event(tilt)(0.3)
    kernel = event.kernel(floats.number, problem)

    def one(t, q, m, system):
        return kernel(t, q, m, system)

    (q, m), system = problem.kernel_data(floats.number)
    assert compiled(one).run(0.0, q, m, system) == pytest.approx(kernel(0.0, q, m, system), abs=1e-15)


def test_its_key_tells_functions_and_values_apart():
    from polhode.compile.program import key_of

    problem = ph.problems.heavy_top()
    a, b, c, again = (
        key_of(event.kernel(floats.number, problem))
        for event in (ph.event(tilt)(0.3), ph.event(tilt)(0.4), ph.event(spin), ph.event(tilt)(0.3))
    )
    assert len({a, b, c}) == 3
    assert again == a


@pytest.mark.parametrize(
    ("direction", "happens"),
    [(0, {(-1, 1), (1, -1), (-1, 0), (1, 0)}), (1, {(-1, 1), (-1, 0)}), (-1, {(1, -1), (1, 0)})],
)
def test_direction(direction, happens):
    event = ph.event(spin, direction=direction)
    pairs = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    assert {pair for pair in pairs if event.happened(*pair)} == happens


# --- what is refused --------------------------------------------------------------------------------


def started(event):
    return events.checked([event], ph.problems.heavy_top())


def test_good_events_pass():
    assert started(ph.event(spin))[0].name == "spin"
    assert len(events.checked(ph.event(spin), ph.problems.free_body())) == 1
    assert events.checked((), ph.problems.free_body()) == []


def two(R):
    return R[0][0], R[1][1]


def compared(R):
    return R[2][2] > 0.5


def constant(height=1.0):
    return height


def misspelt(R, omegas):
    return omegas[0]


def broken(R):
    return R[3][3]


def infinite(R):
    return R[2][2] * math.inf


def branching(R):
    return R[2][2] if R[2][2] > 0 else -1.0


def listed(R):
    return sorted(R[0])[0]


@pytest.mark.parametrize(
    ("event", "match"),
    [
        (ph.event(two), r"the event two must return one number; it returned \("),
        (ph.event(compared), "must return a number that passes through zero; it returned (True|False) at the start"),
        (ph.event(constant), "depends on none of t, R, omega, so it never happens"),
        (
            ph.event(misspelt),
            r"no values for omegas; its function takes t, R, omega, and parameters.*ph.event\(misspelt",
        ),
        (ph.event(broken), "the event broken raised IndexError at the start"),
        (ph.event(infinite), "must return finite numbers"),
        (ph.event(branching), "the event branching cannot be compiled"),
        (ph.event(listed), "the event listed calls sorted, which cannot be compiled"),
        (spin, r"events must be made by ph.event; got function; write ph.event\(spin\)"),
        (3.0, "events must be made by ph.event; got float"),
    ],
)
def test_refused_at_the_start(event, match):
    with pytest.raises(ph.InputError, match=match):
        started(event)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ph.event(spin, direction=2), r"direction must be -1 \(falling\), 0 .* or 1 \(rising\); got 2"),
        (lambda: ph.event(spin, direction="up"), "direction must be -1 .*; got 'up'"),
        (lambda: ph.event(spin, direction=True), "direction must be -1"),
        (lambda: ph.event(spin, terminal=1), "terminal must be True or False; got 1"),
        (lambda: ph.event(3), "decorates a plain Python function; got int"),
        (lambda: ph.event(math.sin), "decorates a plain Python function"),
        (lambda: ph.event(lambda *R: R[0]), "must name its arguments"),
        (lambda: ph.event(tilt)(1.0, 2.0), r"the event tilt takes the parameters \(angle\)"),
        (lambda: ph.event(tilt)("x"), "parameter angle of the event tilt must be a finite number"),
        (lambda: ph.event(tilt).graph, "no values for angle"),
        (lambda: events.checked(3, ph.problems.free_body()), "events must be a sequence"),
        (lambda: ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.event(spin), omega=[1.0, 0.0, 0.0]), "made by"),
    ],
)
def test_refused(make, match):
    with pytest.raises(ph.InputError, match=match):
        make()


# --- events on runs ---------------------------------------------------------------------------------


@ph.event
def upright(R):
    return R[2][2]


@pytest.mark.parametrize("how", [{"tol": 1e-11}, {"method": "lietaylor(8)", "dt": 0.05}])
def test_events_are_where_they_should_be(how):
    """Crossings of R33 on the heavy top: at each the number is zero to round-off, and all crossings are found."""
    top = ph.problems.heavy_top()
    sol = ph.solve(top, **how, t_end=10.0, events=[upright, ph.event(upright.template.function, direction=1)])
    both, rising = sol.events
    assert np.abs(both.matrix[:, 2, 2]).max() < 1e-12
    fine = ph.solve(top, tol=1e-11).at(np.linspace(0, 10, 20001))
    signs = np.sign(fine.matrix[:, 2, 2])
    assert len(both) == (signs[1:] != signs[:-1]).sum() > 3
    assert len(rising) == ((signs[:-1] < 0) & (signs[1:] > 0)).sum()
    assert set(rising.t) <= set(both.t)


def test_times_of_events_of_an_exact_motion():
    """A symmetric body spinning about its axis, tilted: sin of a known angle, zeros at multiples of pi/rate."""
    body = ph.Problem(ph.Body([1.0, 1.0, 2.0]), omega=[0.0, 0.0, 3.0])
    sol = ph.solve(body, tol=1e-10, t_end=10.0, events=[ph.event(lambda R: R[0][1])])
    expected = np.pi / 3 * np.arange(1, 10)
    assert np.abs(sol.events[0].t - expected).max() < 4 * np.spacing(10.0)


CLOSE = [(how, angle) for how in ({"tol": 1e-10}, {"method": "dmv10", "dt": 0.05}) for angle in (1e-2, 1e-4, 1e-6)]


@pytest.mark.parametrize(("how", "angle"), [*CLOSE, ({"method": "dmv10", "dt": 0.1, "digits": 20}, 1e-3)])
def test_two_zeros_close_together(how, angle):
    """The number is beyond zero for a moment around its largest value, where 3 t = pi/2."""
    body = ph.Problem(ph.Body([1.0, 1.0, 2.0]), omega=[0.0, 0.0, 3.0])
    level, depth = np.cos(angle), 8 * np.spacing(1.0) / angle + 1e-12
    expected = (np.pi / 2 + np.array([-angle, angle])) / 3
    for sign in (1, -1):
        two = ph.event(lambda R, sign=sign: sign * (R[0][1] + level))
        last = ph.event(two.template.function, direction=sign, terminal=True)
        missed = ph.event(lambda R, sign=sign: sign * (R[0][1] + 2.0 - level))
        sol = ph.solve(body, t_end=1.0, events=[two, missed], **how)
        assert [len(found) for found in sol.events] == [2, 0]
        assert np.abs(sol.events[0].t - expected).max() < depth
        ended = ph.solve(body, t_end=1.0, events=[last], **how)
        assert abs(ended.t[-1] - expected[1]) < depth


def test_zeros_beside_a_zero_at_the_start():
    """R01 = -sin 3t is zero at the start, and again within the first look."""
    body = ph.Problem(ph.Body([1.0, 1.0, 2.0]), omega=[0.0, 0.0, 3.0])
    soon = ph.event(lambda R: R[0][1] * (1.0 - R[0][1] - 1.01))
    sol = ph.solve(body, "dmv10", dt=0.5, t_end=1.0, events=[soon])
    assert np.abs(sol.events[0].t - np.arcsin(0.01) / 3).min() < 1e-14


def test_a_terminal_event_ends_the_run():
    top = ph.problems.heavy_top()
    end = ph.event(upright.template.function, direction=-1, terminal=True)
    sol = ph.solve(top, tol=1e-10, events=[upright, end])
    assert sol.t[-1] == sol.events[1].t[0] < 10
    assert abs(sol.matrix[-1, 2, 2]) < 1e-12
    assert sol.events[0].t[-1] <= sol.t[-1]
    fixed = ph.solve(top, "lietaylor(8)", dt=0.05, t_end=10.0, events=[end])
    assert fixed.t[-1] == pytest.approx(sol.t[-1], abs=1e-9)
    assert fixed.at(fixed.t[-1]).t[0] == fixed.t[-1]


@pytest.mark.usefixtures("plain_first")
def test_nothing_is_computed_beyond_a_terminal_event():
    """The motion has no solution at t = 1, and the event comes before."""

    @ph.torque
    def runaway(omega):
        return omega[0] * omega[0], 0.0, 0.0

    start = ph.Problem(ph.Body([1.0, 1.5, 2.0]), runaway(), omega=[1.0, 0.0, 0.0])
    fast = ph.event(lambda omega: omega[0] - 4, terminal=True)
    sol = ph.solve(start, tol=1e-9, t_end=10.0, events=[fast])
    assert sol.t[-1] == pytest.approx(0.75, abs=1e-8)  # omega = 1/(1 - t)


def test_an_event_that_never_happens_is_empty():
    sol = ph.solve(ph.problems.free_body(), tol=1e-6, t_end=5.0, events=ph.event(lambda t: t + 1))
    assert len(sol.events) == 1
    assert len(sol.events[0]) == 0


def test_events_need_all_steps():
    with pytest.raises(ph.InputError, match="events are found by dense output"):
        ph.solve(ph.problems.heavy_top(), "imidm", dt=0.1, steps=4, events=[upright], every=2)


def test_variable_steps_have_no_tolerance():
    with pytest.raises(ph.InputError):
        ph.solve(ph.problems.heavy_top(), "reversible(imidm)", tol=1e-4)


def test_no_terminal_event_is_lost_at_loose_tolerances():
    """The end of a rough run is not that of the final one: an event close to it must still be found."""
    top = ph.problems.heavy_top()

    def height(R, h):
        return R[2][2] - h

    for h in np.linspace(-0.76, -0.70, 25):
        sol = ph.solve(top, tol=0.01, events=[ph.event(height, terminal=True)(float(h))])
        assert (len(sol.events[0]) == 1) == (sol.t[-1] < top.t_end)


def test_an_event_that_is_no_number_says_so():
    with pytest.raises(ph.InputError, match="must be finite during the whole run"):
        ph.solve(ph.problems.heavy_top(), tol=1e-6, events=[ph.event(lambda R: ph.math.sqrt(R[2][2] + 0.2))])


def test_a_terminal_event_keeps_the_limit_on_steps(monkeypatch):
    monkeypatch.setattr("polhode.run.step_control.PAIR_STEPS", 2_000)

    @ph.torque
    def friction(omega, mu):
        return ph.where(omega[0] < 0, mu, -mu), 0.0, 0.0

    start = ph.Problem(ph.Body([1.0, 2.0, 2.0]), friction(0.5), omega=[0.3, 0.0, 0.0])
    with pytest.raises(ph.StepError, match="gave up"):
        ph.solve(start, tol=1e-6, t_end=5.0, events=[ph.event(lambda omega: omega[1] - 7.0, terminal=True)])
