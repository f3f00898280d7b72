"""Edges of fields in time, and where the steps of a run end because of them; nothing here is compiled."""

import itertools
import math

import numpy as np
import pytest

import polhode as ph
from polhode import fields
from polhode.analysis.sections import section
from polhode.errors import ResultWarning, ToleranceWarning
from polhode.physics.fields.kernels import formula_kernel
from polhode.physics.fields.pulses import NONE, pulses_of
from polhode.physics.fields.switches import between, edges
from polhode.run.schedule import HIGHEST, Bounds, _degree, _kept_cells, scheduled

BODY = ph.Body([12.0, 10.0, 7.0])
R = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@ph.torque
def user(t, omega, centre, half, slope):
    inside = abs(2 * (t - centre)) < 2 * half
    ramp = max(0.0, min(1.0, slope * t - 3))
    return ph.where(inside, 1.0, 0.0), ramp, ph.where(omega[0] < t, 1.0, 0.0) + math.sin(t)


@ph.torque
def curved(t, rate):
    return ph.where(math.sin(rate * t) > 0.5, 1.0, 0.0), ph.where(t * t < 10, 1.0, 0.0), 0.0


CASES = [
    (fields.thruster([1, 2, 3], on=[[1, 2], [3, 3.5]]), [1, 2, 3, 3.5]),
    (fields.thruster([1, 2, 3], on=[1, 2]) + fields.gravity(1.0) + fields.thruster([1, 0, 0], on=[1.5, 8]),
     [1, 1.5, 2, 8]),
    (fields.tabulated([-1, 2, 3, 20], np.ones((4, 3)), between="cubic"), [2, 3]),
    (fields.tabulated(np.arange(0, 100, 0.5), np.ones((200, 3)), outside="hold"), np.arange(0.5, 10, 0.5)),
    (fields.tabulated_gyrostat([0.5, 1, 2.5], np.eye(3), between="linear"), [0.5, 1, 2.5]),
    (user(4.0, 0.25, 2.0), [1.5, 2.0, 3.75, 4.0, 4.25]),
    (curved(1.0), [math.pi / 6, 5 * math.pi / 6, math.sqrt(10), 13 * math.pi / 6, 17 * math.pi / 6]),
    (fields.gravity(1.0), []), (fields.rotating_dipole([1, 0, 0], [0, 1, 0], 2.0), []), (None, []),
]  # fmt: skip


@pytest.mark.parametrize(("field", "expected"), CASES, ids=lambda x: getattr(x, "name", ""))
def test_edges_follow_from_the_formula(field, expected):
    found = edges(field, 0.0, 10.0)
    assert found == pytest.approx(np.array(expected), rel=1e-15)
    assert (between(field) is field) == (not len(expected))


@pytest.mark.parametrize(("field", "expected"), [c for c in CASES if len(c[1])], ids=lambda x: getattr(x, "name", ""))
def test_between_two_edges_the_field_is_itself(field, expected):
    """And up to the edges and beyond it is the same formula, whichever way conditions are written."""
    held = between(field)
    borders = [0.0, *expected, 10.0]
    for a, b in itertools.pairwise(borders):
        middle = (a + b) / 2
        parameters = (*field.parameters, middle)
        for t in (middle, a + (b - a) / 7, b - (b - a) / 9):
            value = formula_kernel(held.text[0], float)(t, R, (0.5, 0.0, 0.0), parameters)
            assert value == pytest.approx(field.torque_value(t, R, (0.5, 0.0, 0.0)), rel=1e-13)
    assert between(field) is held


def test_a_jump_at_an_edge_is_on_one_side_only():
    field = fields.thruster([0, 0, 1], on=[1, 2])
    held = formula_kernel(between(field).text[0], float)
    for t in (1.0, 1.5, 2.0, math.nextafter(2.0, 3.0)):
        assert held(t, R, (0, 0, 0), (*field.parameters, 1.5))[2] == 1
        assert held(t, R, (0, 0, 0), (*field.parameters, 2.5))[2] == 0


@ph.torque
def bump(t, centre, width):
    return math.exp(-(((t - centre) / width) ** 2)), 0.0, 0.0


@ph.torque
def drive(t, R, rate):
    return R[0][1] * math.sin(rate * t), 0.0, 0.0


def legs(field, end=1.0, tol=1e-8, **bounds):
    problem = ph.Problem(BODY, field, omega=[0.0, 0.0, 1.0])
    return scheduled(problem, end, tol, Bounds.of(0.0, end, **bounds)).legs


def test_steps_are_as_short_as_a_bump_around_it_and_long_elsewhere():
    rng = np.random.default_rng(0)
    for _ in range(20):
        width, centre = 10.0 ** rng.uniform(-4.5, -1), rng.uniform(0.01, 0.99)
        made = legs(bump(centre, width))
        starts = [0.0, *(leg.end for leg in made)]
        near = [
            leg.longest for leg, a in zip(made, starts, strict=False) if a < centre + width and leg.end > centre - width
        ]
        assert max(near) <= 8 * width, (width, centre)
        assert sum((leg.end - a) / leg.longest for leg, a in zip(made, starts, strict=False)) < 1000, (width, centre)


def test_a_torque_that_vanishes_at_the_start_is_sampled_too():
    """R12 is 0 at the start, and grows."""
    assert legs(drive(2000.0))[0].longest < math.pi / 1000


def test_slow_torques_and_polynomials_cost_nothing():
    assert [leg.longest for leg in legs(drive(1.0))] == [1 / 64]
    assert _degree(fields.gyrostat([0, 0, 1], motor=[0, 0, 1])) == 1
    assert _degree(between(fields.tabulated([0, 1, 2, 3], np.ones((4, 3)), between="cubic"))) == 3 < HIGHEST
    assert math.isinf(_degree(drive(1.0)))
    assert legs(None) == legs(fields.gravity(1.0))
    assert len(legs(fields.gravity(1.0))) == 1


def test_bounds_are_part_of_the_legs():
    assert [leg.end for leg in legs(fields.gravity(1.0), stops=[0.75, 0.25, 0.25, 1.0])] == [0.25, 0.75, 1.0]
    assert {leg.longest for leg in legs(drive(1.0), stops=[0.3], max_step=1e-3)} == {1e-3}


def test_a_longest_step_that_never_ends_is_refused():
    with pytest.raises(ph.InputError, match=r"max_step = 1e-300 needs more than 2e\+07 steps"):
        ph.solve(ph.problems.heavy_top(), tol=1e-6, t_end=1.0, max_step=1e-300)


def lorentzian(t, centre, width):
    return 0.1 / width / (1 + ((t - centre) / width) ** 2), 0.0, 0.0


def gaussian(t, omega, centre, width):
    return 0.0, 0.1 / width * math.exp(-((t - centre) ** 2) / (2 * width * width)) + 0.1 * math.sin(t), -0.1 * omega[2]


def sech_squared(t, R, centre, width):
    return 0.1 / width * (1 - math.tanh((t - centre) / width) ** 2) * R[0][0], 0.02 * math.cos(t), 0.0


def repeated(t, centre, width):
    return 0.1 / width * math.exp((math.cos(2 * (t - centre)) - 1) / (2 * width * width)), 0.0, 0.0


def several(t, centre, width):
    second = math.exp(-(((t - centre - 1e-3) / width) ** 2))
    return (
        0.1 / width * (math.exp(-(((t - centre) / width) ** 2)) - 0.5 * second),
        0.3 * math.tanh((t - 2) / width),
        0.0,
    )


PULSES = [lorentzian, gaussian, sech_squared, repeated, several]
START = ph.Problem(ph.Body([1.0, 1.4, 1.9]), omega=[0.3, 0.5, 0.2])
PULSED = {
    "tol": lambda p, stops: ph.solve(p, tol=1e-8, t_end=10.0, stops=stops),
    "step_tol": lambda p, stops: ph.solve(p, step_tol=1e-10, t_end=10.0, stops=stops),
    "control": lambda p, stops: ph.solve(p, tol=1e-8, t_end=10.0, stops=stops, control=held, period=1.0),
}


@ph.controller
def held(omega):
    return -0.1 * omega[0], 0.0, 0.0


def around(*centres, width):
    """Times that show pulses at some centres."""
    parts = width * np.geomspace(0.25, 1e5, 60)
    times = np.unique([x for c in centres for x in (c, *(c - parts), *(c + parts))])
    return times[(times > 0) & (times < 10)]


LENGTHS = [(pulse, 1e-4) for pulse in PULSES] + [(pulse, 1e-6) for pulse in PULSES if pulse is not repeated]


@pytest.mark.parametrize(("pulse", "width"), LENGTHS)
def test_a_pulse_of_any_length_is_seen(pulse, width):
    """The run agrees with one that is told where the pulses are, within its estimate; its impulse is seen at all."""
    centre = 3.3 + width / 3
    problem = START.in_field(ph.torque(pulse)(centre, width))
    told = around(centre, centre + 1e-3, 2.0, *(centre + np.pi * np.arange(-1, 3)), width=width)
    for way, run in PULSED.items():
        sol, exact = run(problem, None), run(problem, told)
        assert np.abs(sol.momentum[-1] - exact.momentum[-1]).max() < (2e-7 if way == "step_tol" else 5e-8)
        assert np.abs(sol.momentum[-1] - sol.momentum[0]).max() > 1e-2


@pytest.mark.parametrize("how", [{"tol": 1e-8}, {"step_tol": 1e-10}])
def test_pulses_in_ensembles(how):
    fields = ph.torque(lorentzian)(3.3, 1e-6)
    params = {"centre": np.array([3.3, 4.7])}
    many = ph.ensemble(START.in_field(fields), params=params, t_end=10.0, **how)
    for i, centre in enumerate(params["centre"]):
        alone = ph.solve(START.in_field(ph.torque(lorentzian)(centre, 1e-6)), t_end=10.0, **how)
        assert np.abs(many.momentum[-1, i] - alone.momentum[-1]).max() < 1e-7


@pytest.mark.parametrize("width", [1e-3, 1e-6])
def test_pulses_in_fields_with_states(width):
    @ph.states(wheel=0.1)
    def driven(t, wheel, width):
        motor = 0.1 / width * math.exp(-(((t - 3.3) / width) ** 2))
        return (-motor, 0.0, 0.1 * wheel), {"wheel": motor - 0.1 * wheel}

    problem = START.in_field(driven(width=width))
    exact = ph.solve(problem, tol=1e-8, t_end=10.0, stops=around(3.3, width=width))
    for how in ({"tol": 1e-8}, {"step_tol": 1e-10}):
        alone, many = ph.solve(problem, t_end=10.0, **how), ph.ensemble(problem, t_end=10.0, **how)
        assert np.abs(alone.momentum[-1] - exact.momentum[-1]).max() < 5e-8
        assert np.abs(many.momentum[-1] - exact.momentum[-1]).max() < 5e-8


def horner(t, width):
    u = ((t - 4.0) * t - 3.0) * t + 2.3
    return 0.0, 0.1 / width * math.exp(-((u / width) ** 2)), 0.0


def of_a_sine(t, width):
    return 0.1 / width * math.exp(-(((math.sin(2 * t) - 0.3) / width) ** 2)), 0.0, 0.0


def kinks(t, width):
    return 0.0, 0.1 / width * (math.tanh((t - 3.3) / width) - math.tanh((t - 3.3) / width - 2)), 0.1 * math.cos(t)


TURNS = np.arange(4) * np.pi
FURTHER = [
    (horner, np.roots([1.0, -4.0, -3.0, 2.3]).real),
    (of_a_sine, np.append(TURNS + math.asin(0.3) / 2, TURNS + (np.pi - math.asin(0.3)) / 2)),
    (kinks, np.array([3.3])),
]


@pytest.mark.parametrize("width", [1e-4, 1e-6])
@pytest.mark.parametrize(("pulse", "centres"), FURTHER)
def test_a_pulse_of_any_argument_is_seen(pulse, centres, width):
    problem = START.in_field(ph.torque(pulse)(width))
    told = around(*(x for x in centres if 0 < x < 10), width=width)
    sol, exact = (ph.solve(problem, tol=1e-8, t_end=10.0, stops=stops) for stops in (None, told))
    assert np.abs(sol.momentum[-1] - exact.momentum[-1]).max() < 5e-8
    assert np.abs(sol.momentum[-1] - sol.momentum[0]).max() > 1e-2


ABOUT_ONE = ph.Problem(ph.Body([1.0, 1.4, 1.9]), omega=[0.0, 0.0, 0.2])


@ph.torque
def at_times(t, times, width):
    return 0.0, 0.0, ph.total(lambda centre: 0.01 / width * math.exp(-(((t - centre) / width) ** 2)), times)


def test_pulses_at_irregular_times():
    times, width = np.random.default_rng(0).uniform(0, 10, 40), 1e-6
    sol = ph.solve(ABOUT_ONE.in_field(at_times(times, width)), tol=1e-8, t_end=10.0)
    assert sol.momentum[-1, 2] - sol.momentum[0, 2] == pytest.approx(40 * 0.01 * math.sqrt(math.pi), abs=1e-7)
    assert sol.error_estimate < 1e-8


def test_many_pulses_are_found():
    times, width = np.random.default_rng(0).uniform(0, 10, 1000), 1e-6
    found = pulses_of(at_times(times, width), np.array([0.0, 10.0]), (R, (0.0, 0.0, 0.2)))
    assert np.abs(found.moments[:, None] - times).min(0).max() < 20 * width
    assert found.impulse == 0


@ph.torque
def often(t, width, rate):
    return 0.0, 0.0, 1e-4 / width / (1 + (math.sin(rate * t) / width) ** 2)


@pytest.mark.parametrize(
    "field", [often(1e-4, 6e4), often(1e-6, 2e4), ph.torque(lorentzian)(3.4, 1e-17)], ids=["many", "more", "short"]
)
def test_the_estimate_counts_pulses_that_are_not_resolved(field):
    """The schedule knows of them: a run would only show it."""
    hidden = scheduled(ABOUT_ONE.in_field(field), 10.0, 1e-8).hidden
    assert hidden > 1e-3


def test_an_error_is_not_below_what_may_be_hidden():
    with pytest.warns(ToleranceWarning, match="pulses in time that no step resolves"):
        sol = ph.solve(START.in_field(ph.torque(lorentzian)(3.4, 1e-17)), tol=1e-8, t_end=10.0)
    assert sol.error_estimate > 0.1


@ph.states(heat=0.0)
def in_a_state(t, heat, centre, width):
    return (0.0, 0.0, 0.1 / width * math.exp(-(((t - centre) / width) ** 2))), {"heat": -heat}


@ph.event
def level(omega):
    return omega[0] - 0.1


UNRESOLVED = START.in_field(ph.torque(gaussian)(3.4, 1e-17))
TO_STEPS = {"step_tol": 1e-8, "t_end": 10.0}
WITHOUT_ESTIMATE = {
    "solve": lambda: ph.solve(UNRESOLVED, **TO_STEPS),
    "method": lambda: ph.solve(UNRESOLVED, "verner87", **TO_STEPS),
    "digits": lambda: ph.solve(UNRESOLVED, **TO_STEPS, digits=20),
    "control": lambda: ph.solve(UNRESOLVED, **TO_STEPS, control=held, period=1.0),
    "states": lambda: ph.solve(START.in_field(in_a_state(3.4, 1e-17)), **TO_STEPS),
    "propagator": lambda: ph.propagator(UNRESOLVED, step_tol=1e-8)(t_end=10.0),
    "ensemble": lambda: ph.ensemble([UNRESOLVED] * 2, **TO_STEPS),
    "states in an ensemble": lambda: ph.ensemble([START.in_field(in_a_state(3.4, 1e-17))] * 2, **TO_STEPS),
    "section": lambda: section(UNRESOLVED, level, t_end=10.0, step_tol=1e-8),
}


@pytest.mark.parametrize("way", WITHOUT_ESTIMATE)
def test_without_an_estimate_a_warning_says_what_may_be_hidden(way):
    with pytest.warns(ResultWarning, match="pulses in time that no step resolves"):
        WITHOUT_ESTIMATE[way]()


@pytest.mark.parametrize("field", [ph.torque(gaussian)(3.4, 1e-17), in_a_state(3.4, 1e-17)], ids=["lanes", "states"])
def test_errors_of_ensembles_are_not_below_what_may_be_hidden(field):
    with pytest.warns(ResultWarning, match="short pulses in time"):
        many = ph.ensemble([START.in_field(field)] * 2, tol=1e-8, t_end=10.0)
    assert (many.error_estimate > 0.1).all()


def test_pulses_on_a_gpu_are_refused():
    with pytest.raises(ph.InputError, match="too short for steps on a GPU"):
        ph.ensemble([START.in_field(ph.torque(lorentzian)(3.3, 1e-6))] * 2, tol=1e-8, t_end=10.0, device="cuda")


@pytest.mark.parametrize("number", [2, 40])
def test_pulses_are_seen_beside_a_longest_step(number):
    centres = np.linspace(1.0, 9.0, number) + 0.0123
    start = ph.Problem(START.body, omega=[0.0, 0.0, 0.3])
    for field in (ph.torque(pushing)(3.3, 1e-6), in_a_state(3.3, 1e-6)):
        many = ph.ensemble(
            start.in_field(field), params={"centre": centres}, omega=[start.omega] * number, step_tol=1e-9, t_end=10.0,
            max_step=0.5,
        )  # fmt: skip
        gained = many.momentum[-1, :, 2] - start.momentum[2]
        assert np.abs(gained - 0.1 * math.sqrt(math.pi)).max() < 1e-7


def pushing(t, centre, width):
    return 0.0, 0.0, 0.1 / width * math.exp(-(((t - centre) / width) ** 2))


def test_pulses_among_thousands_of_edges_are_found():
    times = np.linspace(0.0, 10.0, 5001)
    table = fields.tabulated(times, np.stack([0 * times, 0 * times, 0.01 * np.sin(times)], 1))
    alone, both = (
        ph.solve(ABOUT_ONE.in_field(field), tol=1e-8, t_end=10.0)
        for field in (table, table + ph.torque(pushing)(3.7123456, 1e-6))
    )
    gained = both.momentum[-1, 2] - alone.momentum[-1, 2]
    assert gained == pytest.approx(0.1 * math.sqrt(math.pi), abs=1e-8)


def test_pulses_are_looked_for_once(monkeypatch):
    """For all tolerances and all bodies with angular velocities of the same size."""
    looked = []
    monkeypatch.setattr("polhode.run.schedule.pulses_of", lambda *given: looked.append(given) or pulses_of(*given))
    field = ph.torque(gaussian)(3.4, 0.123)
    for tol in (1e-6, 1e-8, 1e-10):
        for body in (START.body, ph.Body([4.0, 5.0, 6.0])):
            scheduled(ph.Problem(body, field, omega=START.omega), 10.0, tol)
    assert len(looked) == 1


@pytest.mark.parametrize("how", [{"tol": 1e-8}, {"step_tol": 1e-10}])
def test_pulses_that_differ_in_many_bodies(how):
    centres = np.linspace(1.0, 9.0, 40) + 0.0123
    many = ph.ensemble(START.in_field(ph.torque(lorentzian)(3.3, 1e-6)), params={"centre": centres}, t_end=10.0, **how)
    for i in (0, 17, 39):
        alone = ph.solve(START.in_field(ph.torque(lorentzian)(centres[i], 1e-6)), t_end=10.0, **how)
        assert np.abs(many.momentum[-1, i] - alone.momentum[-1]).max() < 1e-7


def slow(t):
    return math.exp(-(((t - 3.0) / 0.1) ** 2)), 1 / (1.1 + math.cos(3 * t)), math.tanh((t - 5.0) / 1e-3)


def dependent(t):
    """Intervals of these are much too wide."""
    return (
        (t - 3) ** 3 - (t**3 - 9 * t * t + 27 * t - 27) + math.sin(t),
        t * t - 2 * t * math.sin(t),
        t**3 * math.exp(-t),
    )


def of_an_orbit(t, R):
    mean = anomaly = 0.7 * t
    for _ in range(4):
        anomaly = anomaly - (anomaly - 0.3 * math.sin(anomaly) - mean) / (1 - 0.3 * math.cos(anomaly))
    x, y = math.cos(anomaly) - 0.3, math.sin(anomaly)
    r = ph.math.sqrt(x * x + y * y)
    return x / r**3 * R[0][1], y / r**3 * R[1][1], 1 / r**5


def guarded(t):
    return (
        ph.where(t == 0, 1.0, math.sin(t + 1e-9) / (t + 1e-9)),
        math.atan2(math.sin(t), math.cos(t) + 1.5),
        math.tan(t),
    )


def fast(t, omega):
    return math.sin(5000 * t) * omega[0], math.cos(3e5 * t), math.sin(t) ** 20


@pytest.mark.parametrize("function", [slow, dependent, of_an_orbit, guarded, fast])
def test_a_slow_field_has_the_cells_of_its_samples(function, monkeypatch):
    """Where nothing is hidden, the search for pulses changes nothing."""
    problem = START.in_field(ph.torque(function)())
    found = scheduled(problem, 10.0, 1e-10)
    monkeypatch.setattr("polhode.run.schedule.pulses_of", lambda *_: NONE)
    _kept_cells.cache_clear()
    assert scheduled(problem, 10.0, 1e-10).legs == found.legs
    assert found.hidden == 0
