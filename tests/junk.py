"""Things to put in place of the arguments of public functions; the calls are in `junk_calls`."""

from __future__ import annotations

import datetime
import decimal
import fractions
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph


class NoFloat:
    """An object that refuses to be a number."""

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        return "NoFloat()"


class NoArray:
    """An object that refuses to be an array."""

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("no array")


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque
def drag(omega, k):
    return (-k * omega[0], -k * omega[1], -k * omega[2])


CORE: list[Any] = [
    *(None, True, 0, -1, 7.5, float("nan"), float("inf"), 10**400, 1j, "", "x", "1.0", "a\0b.zarr", b"x", [], {}, (1,)),
    *([[1, 2], [3]], [1.0, 2, "x"], np.array([]), np.eye(4), np.ones((2, 4)), np.array(["a", "b", "c"])),
    *(np.array([1, 2, 3], dtype=object), np.array([1 + 1j, 2, 3]), np.array([np.nan, 1, 1]), np.float32(1.5)),
    *(object(), NoFloat(), [NoFloat()] * 3, NoArray(), lambda: 0, lambda *given: 0, int, ph, Ellipsis),
]  # fmt: skip
"""Things that are rarely right, of every kind."""

MORE: list[Any] = [
    *(False, 1, 2, 3, -0.0, 1e308, 1e-320, -float("inf"), 2**53, 2**63, 2**64, -(2**70), set(), {1, 2, 3}, {"a": 1}),
    [1],
    *([1, 2, 3], [[1, 2, 3]] * 3, np.zeros(3), np.ones(4), np.eye(3), np.zeros((0, 3)), np.ones((5, 3)), np.int8(3)),
    *(np.bool_(True), np.array(np.datetime64("2020")), [10**400] * 3, ["1"] * 3, lambda x: x, lambda R: R, range(3)),
    *(lambda omega: 1 / 0, lambda omega: omega, iter([1, 2, 3]), memoryview(b"abc"), NotImplemented),
    ph.InputError("x"),
    *(gravity, gravity(1.0), drag, drag(0.1), ph.methods["imidm"], Path("x.zarr"), Path("/nonexistent/x.zarr")),
    *("imidm", "y.nc", "/proc/x.zarr", "x" * 5000 + ".zarr", "\ud800.zarr", "strang(", "taylor(0)", "taylor(1e9)"),
    *("mkrk()", ")" * 50, "strang(" * 200 + "dmv10" + ")" * 200, "taylor(" + "9" * 5000 + ")", "[bold]"),
    *(decimal.Decimal("1.5"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1), ph.Body([1.0, 2.0, 2.5]), "1/0"),
    *(ph.problems.free_body(), ph.surd("1/2", "1/3", 3), ph.tableaus.tableaus["rk4"], "nan", "inf", "1e999999999"),
]  # fmt: skip
"""More of them; some are right in some places."""

ALLOWED = (ph.InputError, ph.StepError)
"""What a wrong argument may end in."""
