"""Edges of fields in time, and where the steps of a run end because of them; nothing here is compiled."""

import itertools
import math

import numpy as np
import pytest

import polhode as ph
from polhode import fields
from polhode.physics.fields.kernels import formula_kernel
from polhode.physics.fields.switches import between, edges
from polhode.run.schedule import HIGHEST, Bounds, _degree, scheduled

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
