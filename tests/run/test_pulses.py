"""Short pulses of a torque are never stepped over by runs to a tolerance, wherever and however short they are."""

import math

import numpy as np
import pytest

import polhode as ph

BODY = ph.Body([12.0, 10.0, 7.0])
DAY = 86400.0
SPIN = 1e-4


@ph.torque
def gaussian(t, size, centre, width):
    return 0.0, 0.0, size * math.exp(-(((t - centre) / width) ** 2))


@ph.torque
def window(t, size, centre, half):
    """A pulse that a user writes with a branch."""
    return 0.0, 0.0, ph.where(abs(t - centre) < half, size, 0.0)


@ph.torque
def comb(t, size, rate):
    """Pulses again and again: a condition of time whose edges have no formula."""
    return 0.0, 0.0, ph.where(math.cos(rate * t) > 0.999, size, 0.0)


def start(field, body=BODY):
    return ph.Problem(body, field, omega=[0.0, 0.0, SPIN])


def error(sol, impulse, turn):
    """Of a rotation about the third axis, whose momentum changes by `impulse` and whose angle by `turn`."""
    angle = SPIN * sol.t[-1] + turn
    wanted = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    momentum = abs(sol.momentum[-1, 2] - 7 * SPIN - impulse) / np.abs(sol.momentum[:, 2]).max()
    return max(np.linalg.norm(sol.matrix[-1][:2, :2] - wanted, 2), momentum)


def of_window(size, begin, stop, end):
    """The impulse of a constant torque between two times, and the angle it turns the body by until the end."""
    impulse = size * (stop - begin)
    return impulse, impulse / 7 * (end - (begin + stop) / 2)


def of_gaussian(size, centre, width, end):
    def once(x):  # integral of (1 + erf)/2
        return (x * (1 + math.erf(x)) + math.exp(-x * x) / math.sqrt(math.pi)) / 2

    low, high = -centre / width, (end - centre) / width
    impulse = size * width * math.sqrt(math.pi) / 2 * (math.erf(high) - math.erf(low))
    turn = size * width**2 * math.sqrt(math.pi) / 7 * (once(high) - once(low) - (high - low) * (1 + math.erf(low)) / 2)
    return impulse, turn


def test_a_burn_of_a_second_in_a_day():
    sol = ph.solve(start(ph.fields.thruster(torque=[0, 0, 0.2], on=[[40000.0, 40001.0]])), tol=1e-9, t_end=DAY)
    assert error(sol, *of_window(0.2, 40000.0, 40001.0, DAY)) < 1e-8
    assert {40000.0, 40001.0} <= set(sol.t.tolist())
    assert "switches" in sol.reason
    between = sol.at([40000.25, 40000.5, 40001.0])
    assert between.momentum[:, 2] - 7 * SPIN == pytest.approx([0.05, 0.1, 0.2], abs=1e-12)


def test_random_burns_of_any_length():
    """Down to a billionth of the run, in space or body axes, alone and in a sum; the edges are parameters."""
    rng = np.random.default_rng(3)
    for _ in range(25):
        length, tol = DAY * 10.0 ** rng.uniform(-9, -1), 10.0 ** rng.uniform(-11, -4)
        begin = rng.uniform(0, DAY - length)
        size = 10.0 ** rng.uniform(-3, -1) * min(10.0, 1 / length)
        stop = begin + length
        field = ph.fields.thruster(torque=[0, 0, size], on=[[begin, stop]])
        sol = ph.solve(start(field), tol=tol, t_end=DAY)
        true = error(sol, *of_window(size, begin, stop, DAY))
        assert true <= 10 * tol, (length, begin, tol)
        assert true <= 10 * sol.error_estimate, (length, begin, tol)


@pytest.mark.parametrize("widest", [-1.0, -3.0])
def test_random_bumps_of_a_torque_of_time(widest):
    """A smooth pulse that nobody has declared, down to a ten-thousandth of the run."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        width, tol = DAY * 10.0 ** rng.uniform(-4, widest), 10.0 ** rng.uniform(-10, -4)
        centre, size = rng.uniform(0, DAY), 10.0 ** rng.uniform(-3, -1) / width
        sol = ph.solve(start(gaussian(size, centre, width)), tol=tol, t_end=DAY)
        true = error(sol, *of_gaussian(size, centre, width, DAY))
        assert true <= 10 * tol, (width, centre, tol)
        assert true <= 10 * sol.error_estimate, (width, centre, tol)


def test_a_shorter_bump_is_found_between_stops():
    """One of a millisecond is too short for any sampling; the user says where it is, or how long steps may be."""
    field = gaussian(200.0, 40000.0, 1e-3)
    for said in ({"stops": [39999.99, 40000.01]}, {"stops": [39999.99, 40000.0, 40000.01]}):
        sol = ph.solve(start(field), tol=1e-8, t_end=DAY, **said)
        assert error(sol, *of_gaussian(200.0, 40000.0, 1e-3, DAY)) < 1e-7
        assert set(said["stops"]) <= set(sol.t.tolist())
    short = gaussian(20.0, 4.00004, 2e-5)
    sol = ph.solve(start(short), tol=1e-8, t_end=10.0, max_step=1e-4)
    assert np.diff(sol.t).max() <= 1e-4 + 1e-14
    assert error(sol, *of_gaussian(20.0, 4.00004, 2e-5, 10.0)) < 1e-7


@pytest.mark.parametrize("method", ["imidm", "mkrk(rk4)", "taylor(6)", "abm4"])
@pytest.mark.usefixtures("plain_first")
def test_a_given_method_steps_onto_the_edges(method):
    """Equal steps between two edges; methods with several stages, with series and with a memory."""
    sol = ph.solve(start(window(0.2, 400.0, 0.5)), method, tol=1e-5, t_end=1000.0)
    assert error(sol, *of_window(0.2, 399.5, 400.5, 1000.0)) < 1e-4
    assert {399.5, 400.5} <= set(sol.t.tolist())


@pytest.mark.usefixtures("plain_first")
def test_pulses_again_and_again():
    rate, size, end = 2 * math.pi / 100, 1e-4, 10000.0
    half = math.acos(0.999) / rate
    sol = ph.solve(start(comb(size, rate)), tol=1e-9, t_end=end)
    centres = 100.0 * np.arange(101)
    impulse = turn = 0.0
    for c in centres:
        one = of_window(size, max(0.0, c - half), min(end, c + half), end)
        impulse, turn = impulse + one[0], turn + one[1]
    assert error(sol, impulse, turn) < 1e-8


@pytest.mark.parametrize("rows", [2000, pytest.param(20000, marks=pytest.mark.slow)])
def test_a_long_table_is_stepped_through_row_by_row(rows):
    """Many rows with noise: linear between them, so the impulse is the sum of trapezoids."""
    times = np.arange(rows * 1.0)
    values = 1e-3 * np.random.default_rng(5).normal(size=rows)
    table = ph.fields.tabulated(times, np.stack([0 * values, 0 * values, values], 1))
    sol = ph.solve(start(table), tol=1e-9, t_end=rows - 1.0)
    assert np.isin(times, sol.t).all()
    impulse = ((values[1:] + values[:-1]) / 2).sum()
    speeds = 7 * SPIN + np.append(0, np.cumsum((values[1:] + values[:-1]) / 2))
    turn = ((speeds[:-1] - 7 * SPIN) + values[:-1] / 3 + values[1:] / 6).sum() / 7
    assert error(sol, impulse, turn) < 1e-8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stops": [1.0], "method": "imidm", "dt": 0.1}, "stops is for adaptive steps"),
        ({"max_step": 1.0, "method": "imidm", "dt": 0.1}, "max_step is for adaptive steps"),
        ({"stops": [11.0], "tol": 1e-6}, "stops must lie between t0 = 0 and t_end = 10; got 11"),
        ({"stops": "soon", "tol": 1e-6}, "stops must be times"), ({"stops": [[1.0]], "tol": 1e-6}, "stops must be tim"),
        ({"stops": [math.nan], "tol": 1e-6}, "all of them finite"), ({"max_step": 0, "tol": 1e-6}, "must be positive"),
        ({"max_step": "x", "tol": 1e-6}, "max_step must be a number"),
    ],
)  # fmt: skip
def test_bounds_that_cannot_be_right(given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.solve(ph.problems.heavy_top(), t_end=10.0, **given)


def test_bounds_without_a_torque_of_time():
    """They hold for every field, and for other runs of the same problem they do not."""
    top = ph.problems.heavy_top()
    plain = ph.solve(top, tol=1e-6, t_end=10.0)
    bounded = ph.solve(top, tol=1e-6, t_end=10.0, stops=[3.0, 0.0, 10.0, 3.0], max_step=0.125)
    assert 3.0 in bounded.t
    assert 3.0 not in plain.t
    assert np.diff(bounded.t).max() <= 0.125 + 1e-15
    assert np.abs(plain.matrix[-1] - bounded.matrix[-1]).max() < 1e-5
