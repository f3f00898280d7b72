"""Loops over the sites of rigid molecules, to be compiled: from attitudes to positions, from forces to torques."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...kernels.so3 import add, apply, apply_transposed, cross, matrix
from .layout import inner


@inner
def placed(centre: Any, R: Any, arms: Any, k: int, s: int) -> Any:
    """The position of site s of a molecule of kind k: x + R a."""
    return add(centre, apply(R, (arms[k, s, 0], arms[k, s, 1], arms[k, s, 2])))


@inner
def turned_by(f: Any, R: Any, arms: Any, k: int, s: int) -> Any:
    """The torque of a force on site s of a molecule of kind k, in the body frame: a x R^T f."""
    return cross((arms[k, s, 0], arms[k, s, 1], arms[k, s, 2]), apply_transposed(R, f))


def placing() -> Callable[..., Any]:
    """Return ``place(x, q, kinds, arms, out)``: out = x + R(q) a for every site of every molecule."""

    def place(x: Any, q: Any, kinds: Any, arms: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            k = kinds[i] if kinds.shape[0] else 0
            R = matrix((q[i, 0], q[i, 1], q[i, 2], q[i, 3]))
            centre = (x[i, 0], x[i, 1], x[i, 2])
            for s in range(arms.shape[1]):
                out[i, s, 0], out[i, s, 1], out[i, s, 2] = placed(centre, R, arms, k, s)

    return place


def gathering(in_body: bool) -> Callable[..., Any]:
    """Return ``gather(forces, q, kinds, arms, force, torque)``: F = sum f and T = sum (R a) x f, or R^T T."""

    def gather(forces: Any, q: Any, kinds: Any, arms: Any, force: Any, torque: Any) -> None:
        for i in range(forces.shape[0]):
            k = kinds[i] if kinds.shape[0] else 0
            R = matrix((q[i, 0], q[i, 1], q[i, 2], q[i, 3]))
            F, T = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            for s in range(arms.shape[1]):
                f = (forces[i, s, 0], forces[i, s, 1], forces[i, s, 2])
                F = add(F, f)
                T = add(T, turned_by(f, R, arms, k, s))
            if not in_body:
                T = apply(R, T)
            force[i, 0], force[i, 1], force[i, 2] = F
            torque[i, 0], torque[i, 1], torque[i, 2] = T

    return gather
