"""The reference solutions of the named problems, recomputed and checked in a second way."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tools import write_references

import polhode as ph
from in_digits import energy, start
from polhode.analysis import reference
from polhode.kernels.so3 import norm2, rotate
from representatives import slow_unless

NAMES = ph.problems.names()
STORED = json.loads(resources.files("polhode.physics").joinpath("references.json").read_text())
LAST = mpf(10) ** -32  # 34 digits were stored; the invariants of the tops are products of numbers up to 50


def stored_state(name: str) -> Any:
    return tuple(mpf(x) for x in STORED[name]["quaternion"]), tuple(mpf(x) for x in STORED[name]["momentum"])


def distance(a: Any, b: Any) -> Any:
    return max(abs(x - y) for x, y in zip((*a[0], *a[1]), (*b[0], *b[1]), strict=True))


def test_every_reference_is_there_and_says_when_and_how_well() -> None:
    assert set(NAMES) == set(STORED)
    for name in NAMES:
        problem = ph.problems.get(name)
        said = problem.reference
        assert said is not None
        assert said.t == problem.t_end
        assert 0 < STORED[name]["error"] <= 1e-32
        assert abs(np.linalg.norm(said.quaternion) - 1) <= 4 * 2.0**-53  # four rounded components
        digits = [
            len(x.lstrip("-0.").replace(".", "")) for key in ("quaternion", "momentum") for x in STORED[name][key]
        ]
        assert set(digits) == {34}


@pytest.mark.parametrize("name", NAMES)
def test_stored_digits_keep_the_invariants(name: str) -> None:
    """Energy, vertical momentum and |q| from the stored digits; for the free body and the tops more is constant."""
    problem = ph.problems.get(name)
    with mpmath.workdps(50):
        begin, end = start(problem), stored_state(name)
        before, after = rotate(*begin), rotate(*end)
        assert abs(norm2(end[0]) - 1) <= LAST
        assert abs(energy(problem, end) - energy(problem, begin)) <= LAST * 50  # dE = omega dm, omega up to 50
        if name not in ("dipole_in_field", "quadratic_well"):  # these two do not keep the vertical momentum
            assert abs(after[2] - before[2]) <= LAST * 50  # |m| up to 50 times the digits of q
        if problem.field is None:
            assert max(abs(x - y) for x, y in zip(after, before, strict=True)) <= LAST
        if name in ("slow_top", "fast_top"):
            assert end[1][2] == begin[1][2]


@pytest.mark.parametrize("name", ["free_body", "soft_wall"])
def test_references_again_with_fewer_digits(name: str) -> None:
    """In 16 digits: another order and other steps than those which made the file."""
    problem = ph.problems.get(name)
    with mpmath.workdps(40):
        again = reference.flow(problem, mpf(problem.t_end), 16)
        assert distance(again, stored_state(name)) <= 1e-16  # truncation 1e-20 a step, 200 steps, growth below 50


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_references_again_in_all_digits(name: str) -> None:
    made = write_references.entry(name)
    for key in ("quaternion", "momentum"):
        for a, b in zip(made[key], STORED[name][key], strict=True):
            assert abs(mpf(a) - mpf(b)) <= made["error"] + STORED[name]["error"]


def test_an_entry_says_what_the_solution_is() -> None:
    """A short one, to few digits: its error covers its distance from a longer one, and its strings have its digits."""
    short, long = write_references.entry("soft_wall", 0.5, 12), write_references.entry("soft_wall", 0.5, 24)
    with mpmath.workdps(40):
        gaps = [
            abs(mpf(a) - mpf(b)) for k in ("quaternion", "momentum") for a, b in zip(short[k], long[k], strict=True)
        ]
        assert 0 < max(gaps) <= short["error"] <= 5e-12  # half a unit of the twelfth digit of numbers below 10
        assert long["error"] < short["error"]


# --- a second way: scipy's DOP853 on the equations written out ----------------------------------------


def only(i: int, j: int, value: float) -> np.ndarray:
    made = np.zeros((3, 3))
    made[i, j] = value
    return made


GRADIENTS: dict[str, Any] = {
    "free_body": lambda R: np.zeros((3, 3)),
    "book": lambda R: np.zeros((3, 3)),
    "zanna_body": lambda R: np.zeros((3, 3)),
    "prism": lambda R: np.zeros((3, 3)),
    "t_handle": lambda R: np.zeros((3, 3)),
    "slow_top": lambda R: only(2, 2, 20.0),
    "fast_top": lambda R: only(2, 2, 20.0),
    "heavy_top": lambda R: only(2, 2, 1.0),
    "soft_wall": lambda R: only(2, 2, -1 / (1.1 + R[2, 2]) ** 2 + 0.01 / (1.1 + R[2, 2]) ** 11),
    "coulomb_wall": lambda R: only(2, 2, 1 / (1.1 + R[2, 2]) ** 2 - 0.01 / (1.1 + R[2, 2]) ** 11),
    "dipole_in_field": lambda R: -np.outer((0.4, 0.1, 0.9), (0.3, -0.2, 0.5)),
    "libration": lambda R: np.array([[0, 0, 0], [0, 0, 0], 3 * np.array((0.6, 0.8, 1.0)) * R[2]]),
    "quadratic_well": lambda R: np.array([[0, R[0, 1], 0], [0, 0, 2 * R[1, 2]], [R[2, 1] / 2, R[2, 0] / 2, 0]]),
}
"""dU/dR of each problem, written out by hand."""


def rates(t: float, y: np.ndarray, inertia: tuple[float, ...], slopes: Any) -> np.ndarray:
    """R' = R hat(omega) and m' = m x omega - rot(R^T dU/dR), on the nine entries of R and on m."""
    R, m = y[:9].reshape(3, 3), y[9:]
    w = m / inertia
    turning = R @ np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    M = R.T @ slopes(R)
    torque = -np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    return np.concatenate([turning.ravel(), np.cross(m, w) + torque])


@pytest.mark.parametrize("name", slow_unless({*NAMES} - {"fast_top"}, NAMES))
def test_references_against_dop853(name: str) -> None:
    """The tolerance is steps x rtol x size, grown as a deflection of the start grows (measured with 1e-7)."""
    problem = ph.problems.get(name)
    inertia, end, rtol = tuple(problem.body.moments.tolist()), problem.t_end, 1e-13

    def arrived(start: np.ndarray) -> Any:
        return solve_ivp(rates, (0, end), start, "DOP853", rtol=rtol, atol=1e-14, args=(inertia, GRADIENTS[name]))

    R0 = Rotation.from_quat(problem.quaternion, scalar_first=True).as_matrix()
    start = np.array([*R0.ravel(), *problem.momentum])
    run = arrived(start)
    reference = problem.reference
    R_end = Rotation.from_quat(reference.quaternion, scalar_first=True).as_matrix()
    miss = np.abs(run.y[:, -1] - [*R_end.ravel(), *reference.momentum]).max()

    tilt = Rotation.from_rotvec([1e-7, 1e-7, 1e-7]).as_matrix()
    near = arrived(np.array([*(tilt @ R0).ravel(), *(start[9:] * (1 + 1e-7))]))
    growth = np.abs(near.y[:, -1] - run.y[:, -1]).max() / 1e-7
    assert miss <= len(run.t) * rtol * growth
    # whatever the growth: DOP853 is off by up to 3e-10 (t_handle), which differs with the processor's vector units
    assert miss <= 1e-9
