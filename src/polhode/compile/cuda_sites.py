"""Sites of rigid molecules for arrays in the memory of an NVIDIA GPU: one thread per molecule.

A molecule whose quaternion is not of unit length gets NaN: to refuse it, a call would have to wait for the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.so3 import add, apply, matrix, norm2
from ..numbers.primitives import where
from ..physics.validate import ROTATION_TOLERANCE
from . import cuda as card
from .batch.layout import inner
from .batch.sites import placed, turned_by
from .cuda_bodies import kernel, reading, writing
from .simd.interleaved import ROWS

cuda: Any = None
"""numba.cuda; a module global, because numba's simulator replaces it by name."""


def _import() -> None:
    global cuda
    cuda = card.card()


read3, read4, write3 = reading(3, ROWS), reading(4, ROWS), writing(3, ROWS)
read_site = reading(3, ROWS, parts=True)


def _attitude() -> Callable[..., Any]:
    """Compiled function (q, i) -> the rotation matrix of molecule i, or NaN."""

    def attitude(q: Any, i: int) -> Any:
        one = read4(q, 0, i)
        nothing = where(abs(norm2(one) - 1) <= 2 * ROTATION_TOLERANCE, 0.0, np.nan)
        return matrix((one[0] + nothing, one[1] + nothing, one[2] + nothing, one[3] + nothing))

    return inner(attitude)


def placing() -> Any:
    """A kernel with the positions of all sites: ``run(x, q, kinds, arms, out, number)``."""
    _import()
    attitude = _attitude()

    def run(x: Any, q: Any, kinds: Any, arms: Any, out: Any, number: int) -> None:
        i = cuda.grid(1)
        if i < number:
            k = kinds[min(i, len(kinds) - 1)]
            R, centre = attitude(q, i), read3(x, 0, i)
            for s in range(arms.shape[1]):
                r = placed(centre, R, arms, k, s)
                out[i, s, 0], out[i, s, 1], out[i, s, 2] = r[0], r[1], r[2]

    return kernel(run)


def gathering(in_body: bool) -> Any:
    """A kernel with the forces and torques of all molecules: ``run(forces, q, kinds, arms, force, torque, number)``."""
    _import()
    attitude = _attitude()

    def run(forces: Any, q: Any, kinds: Any, arms: Any, force: Any, torque: Any, number: int) -> None:
        i = cuda.grid(1)
        if i < number:
            k = kinds[min(i, len(kinds) - 1)]
            R, F, T = attitude(q, i), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            for s in range(arms.shape[1]):
                f = read_site(forces, i, s)
                F = add(F, f)
                T = add(T, turned_by(f, R, arms, k, s))
            write3(force, i, F)
            write3(torque, i, T if in_body else apply(R, T))

    return kernel(run)
