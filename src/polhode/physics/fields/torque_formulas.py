"""Torques as formulas: the symbols of the state, frames, and the torque of a potential."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...symbolic.expression import Expr, gradient, symbol


def in_body_frame(force: Any, frame: str) -> tuple[Expr, Expr, Expr]:
    """A torque in a frame, as formulas in the body frame: R^T T for "space"."""
    R = attitude_symbols()
    if frame == "space":
        force = tuple(R[0][j] * force[0] + R[1][j] * force[1] + R[2][j] * force[2] for j in range(3))
    return force[0], force[1], force[2]


def attitude_symbols(letter: str = "R") -> Any:
    """The entries R00, R01, ... of an attitude as symbols."""
    return tuple(tuple(symbol(f"{letter}{i}{j}") for j in range(3)) for i in range(3))


def potential_torque(U: Expr, R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T dU/dR)."""
    return turning_torque(gradient(U, [R[i][j] for i in range(3) for j in range(3)]), R)


def turning_torque(slopes: Sequence[Expr], R: Any) -> tuple[Expr, Expr, Expr]:
    """-rot(R^T G), G given by rows."""
    G = [slopes[0:3], slopes[3:6], slopes[6:9]]

    def M(i: int, j: int) -> Expr:
        return R[0][i] * G[0][j] + R[1][i] * G[1][j] + R[2][i] * G[2][j]

    return M(1, 2) - M(2, 1), M(2, 0) - M(0, 2), M(0, 1) - M(1, 0)
