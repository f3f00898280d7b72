"""Enclosures of formulas contain all values, and those of single functions contain nothing else."""

import math

import numpy as np
import pytest

import polhode as ph
from polhode.symbolic.enclosures import enclosures
from polhode.symbolic.expression import compiled, ordered, source, symbol

T = symbol("t")
m = ph.math
FORMULAS = [
    *(f(T) for f in (m.sin, m.cos, m.tanh, m.exp, m.sinh, m.cosh, m.atan, abs)),
    *(T * T, -T * T, (T - 1) ** 4, 1 / (1 + T * T), m.exp(-(((T - 1) / 0.1) ** 2))),
    *(
        m.sqrt(T * T + 0.5),
        m.log(2 + m.sin(T)),
        m.power(1.5 + m.cos(T), 2.5),
        m.atan2(T, T - 0.3),
        m.tan(T),
        m.acos(m.tanh(T)),
    ),
    *(
        ph.where(T < 0.4, T, m.sin(T)),
        ph.where((T > 1) & (T <= 2), 1.0, T),
        m.sin(T) * m.cos(3 * T) - T / (2 + m.cos(T)),
    ),
]
EXACT = 13
"""Formulas in which t is used once."""


@pytest.mark.parametrize("i", range(len(FORMULAS)))
def test_enclosures_contain_the_values(i):
    rng, formula = np.random.default_rng(i), FORMULAS[i]
    low = rng.uniform(-8, 8, 400)
    high = low + 10 ** rng.uniform(-3, 1, 400)
    least, most = enclosures(ordered([formula]), {T: (low, high)})[formula]
    value = compiled(*source("value", "t", {"t": "t"}, [formula]), float)
    times = low + (high - low) * np.linspace(0, 1, 2001)[:, None]
    seen = np.broadcast_to(value(times)[0], times.shape)
    near = 1e-12 * (1 + np.abs(seen).max(0))
    assert (least <= seen.min(0) + near).all()
    assert (most >= seen.max(0) - near).all()
    if i < EXACT:
        ends = np.array([least, most]) - [seen.min(0), seen.max(0)]
        assert (np.abs(ends) <= 0.02 * (seen.max(0) - seen.min(0)) + near).all()


def test_a_quotient_by_zero_may_have_any_value():
    least, most = enclosures(ordered([1 / T]), {T: (np.array([-1.0, 1.0]), np.array([1.0, 2.0]))})[1 / T]
    assert (least == [-math.inf, 0.5]).all()
    assert (most == [math.inf, 1.0]).all()
