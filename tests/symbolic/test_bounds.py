"""Bounds of formulas contain their values, and are finite where they should be."""

from __future__ import annotations

import math

import numpy as np
import pytest

import polhode as ph
from examples import KEYWORDS, TILTED
from polhode.kernels.so3 import matrix
from polhode.symbolic import bounds
from polhode.symbolic.expression import symbol

SPEED = 4.0
SPACE = {"R": (-1.0, 1.0), "w": (-SPEED, SPEED), "t": (0.0, 2.0)}


def interval_of(field):
    def interval(name):
        if name[0] == "p":
            return field.parameters[int(name[1:])], field.parameters[int(name[1:])]
        return SPACE[name[0]]

    return interval


@pytest.mark.parametrize("name", KEYWORDS)
def test_no_torque_exceeds_its_bound(name):
    field, rng = ph.fields.make(name, TILTED, **KEYWORDS[name]), np.random.default_rng(3)
    limit = bounds.largest(field.graph[0], interval_of(field))
    for _ in range(200):
        q = rng.normal(size=4)
        omega = tuple(rng.uniform(-SPEED, SPEED, 3).tolist())
        R = matrix(tuple((q / np.linalg.norm(q)).tolist()))
        torque = field.torque_value(rng.uniform(0, 2), R, omega)
        assert max(map(abs, torque)) <= limit * (1 + 1e-12)


def test_some_torques_have_bounds_and_some_have_none():
    heavy, wall = ph.fields.gravity(mgl=2.0), ph.problems.soft_wall().field
    touched = wall.bind(gap=1.0)
    assert bounds.largest(heavy.graph[0], interval_of(heavy)) == 2.0
    assert bounds.largest(wall.graph[0], interval_of(wall)) == pytest.approx(1e9, rel=1e-6)
    assert bounds.largest(touched.graph[0], interval_of(touched)) == math.inf
    assert bounds.is_below(1e12, wall.graph[0], interval_of(wall))
    assert not bounds.is_below(1e8, wall.graph[0], interval_of(wall))  # it is 1e9 at the wall


def test_operations_outside_their_domain_have_no_bounds():
    x = symbol("R00")
    for formula in (1 / x, x**-0.5, ph.math.sqrt(x), ph.math.log(x)):
        assert bounds.largest([formula], lambda name: (-1.0, 1.0)) == math.inf
    assert bounds.largest([ph.math.exp(x) * ph.math.sin(x)], lambda name: (-1.0, 1.0)) == math.exp(1.0)
