"""Every method in other units of time and mass: powers of two round nothing, so the states are the same bits.

This holds unless numbers leave the range of doubles, so the steps here are short enough for no method to blow up.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest

import polhode as ph
from plain import run

UNITS = [(328, 0), (-328, 0), (40, 90), (-152, -43)]
"""Exponents of moments of inertia and of times; the last ones are those of a molecule in SI units."""

CASES, STEPS = 2, 3


def preserving() -> list[str]:
    """`ep` of all registered methods that it changes."""
    made = [f"ep({name})" for name in ph.methods if "spatial_momentum" in ph.methods[name].conserves]
    return [expression for expression in made if ph.methods[expression].name == expression]


OTHERS = ["ep(reversible(imidm))", "ep(compensated(dmv2))", "compensated(dmv10)", "nystrom4(jacobi)", "strang(dmv10)",
          "yoshida4(imidm)", "reversible(imidm)", "processed4(symrot)"]  # fmt: skip


@ph.potential
def bowl(R, a):
    """A potential with a linear and a quadratic term in R."""
    return a * R[2][2] + a * R[0][1] * R[0][1] / 2


@ph.torque
def mixed(t, R, omega, a, k, rate):
    """A torque of time, attitude and angular velocity."""
    return a * R[2][1] - k * omega[0], -a * R[2][0] - k * omega[1], a * math.sin(rate * t) - k * omega[2]


class Case:
    """A random problem: general, next to an axis, about an axis or at rest, of bodies general, round or slender."""

    def __init__(self, draw: np.random.Generator) -> None:
        a, b = np.sort(draw.uniform(0.3, 1, 2))
        kinds = [(a, b, draw.uniform(b - a, a + b)), (a, a, 1.5 * a), (a, a * (1 + 1e-9), 1e-3 * a), (b, b, b)]
        self.moments = np.array(kinds[draw.integers(len(kinds))])[draw.permutation(3)]
        omega, axis = draw.normal(size=3), np.eye(3)[draw.integers(3)]
        self.omega = [omega, axis + 1e-7 * omega, axis * omega, 0 * omega][draw.integers(4)]
        turn = draw.normal(size=4)
        self.attitude = turn / np.linalg.norm(turn)
        self.dt = 10.0 ** draw.uniform(-3, -1) * math.sqrt(self.moments.min())
        self.push, self.drag = draw.uniform(0.1, 1, 2)

    def problem(self, field: str, mass: int, time: int) -> ph.Problem:
        """The problem with its moments of inertia multiplied by 2^mass and its times by 2^time."""
        push, drag = math.ldexp(self.push, mass - 2 * time), math.ldexp(self.drag, mass - time)
        fields = {"": None, "potential": bowl(push), "velocity": mixed(push, drag, math.ldexp(1.0, -time))}
        body = ph.Body(np.ldexp(self.moments, mass))
        return ph.Problem(body, fields[field], attitude=self.attitude, omega=np.ldexp(self.omega, -time))


@pytest.mark.parametrize("name", [*(m.name for m in ph.methods.taking("free")), *preserving(), *OTHERS])
def test_states_are_the_same_bits_in_all_units(name: str) -> None:
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    for field in ["", *(kind for kind in ("potential", "velocity") if ph.methods[name].takes(kind))]:
        for _ in range(CASES):
            case = Case(draw)
            plain = run(case.problem(field, 0, 0), name, case.dt, STEPS)
            for mass, time in UNITS:
                other = run(case.problem(field, mass, time), name, math.ldexp(case.dt, time), STEPS)
                label = f"{field}, mass 2^{mass}, time 2^{time}, {vars(case)}"
                np.testing.assert_array_equal(other.quaternion, plain.quaternion, label)
                np.testing.assert_array_equal(np.ldexp(other.momentum, time - mass), plain.momentum, label)
            assert plain.fine, vars(case)
