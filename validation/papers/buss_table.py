"""The two tables of Buss's talk of 2011: steps to a given accuracy on the prism, and the cost of a step.

The talk does not state the initial state, the error measure, and which side each axis label means. Here the prism
starts as in `problems.prism`, and the error is the root mean square displacement of the body's points at the end in
units of sqrt(J_max/M), which is sqrt(v.J v/J_max) for a rotation vector v between computed and exact attitude. In the
symplectic rows the labels 1, 2, 3 of the talk are interpreted as the sides 1, 18, 4, so that 2-3-1 is `rot321` here.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from polhode.methods import methods
from polhode.physics.library import prism
from polhode.run.integrator import Engine
from polhode.run.system import engine

THRESHOLD = 1.288e-3
"""The displacement that fits the printed rows best; the 1e-6 of the talk is unexplained."""
DEGREES = 16276
"""Total rotation that fits the printed N and mean angles, 45.2 turns."""
MOST = 61440
STRIDE = 0.97


class Row(NamedTuple):
    """A printed line of the tables: steps without and with EP (None: not stated, or more than 20480), their mean angles
    in degrees, costs.
    """

    label: str
    method: str
    steps: tuple[int | None, int | None]
    angles: tuple[float | None, float | None]
    cost: tuple[float, float] | None = None


ROWS = (
    Row("1st order", "buss1", (None, 16216), (None, 1.0), (0.30, 0.77)),
    Row("2nd order", "buss2", (14546, 11505), (1.12, 1.41), (0.37, 0.83)),
    Row("false 3rd", "buss3_false", (15056, None), (1.08, None)),
    Row("augmented 2nd (2+)", "buss2plus", (5573, 6616), (2.92, 2.46), (0.41, 0.87)),
    Row("3rd order", "buss3", (3661, 652), (4.45, 25.0), (0.54, 1.00)),
    Row("4th order", "buss4", (1304, 688), (12.49, 23.69), (0.73, 1.19)),
    Row("MRY 2nd order 1-2-3", "mry2_132", (16131, 5210), (1.01, 3.12)),
    Row("MRY 2nd order 2-3-1", "mry2_321", (1191, 945), (13.68, 17.23), (0.84, 1.20)),
    Row("MRY 4th order 2-3-1", "mry4_321", (431, 196), (37.85, 83.45), (2.19, 2.65)),
)


@functools.cache
def _run(name: str) -> Engine:
    return engine(prism(), methods[name])


def displacement(name: str, steps: int) -> float:
    """Root mean square displacement of the prism's points at the end, after this many steps."""
    problem, run = prism(), _run(name)
    assert problem.t_end is not None
    assert problem.reference is not None
    rows = run.buffer(1)
    *_, fine = run.advance(problem.t_end / steps, 0.0, 0, steps, steps, steps, run.y, run.system, rows)
    if not fine:
        return math.inf
    exact, found = (Rotation.from_quat(q, scalar_first=True) for q in (problem.reference.quaternion, rows[0, :4]))
    v, J = (exact.inv() * found).as_rotvec(), problem.body.moments
    return float(np.sqrt(v @ (J * v) / J.max()))


def least_steps(name: str, threshold: float = THRESHOLD, most: int = MOST) -> int | None:
    """Smallest number of steps above which the displacement stays below the threshold; None if it exceeds `most`.

    The search goes downwards: in strides of three per cent while it stays below, then one by one.
    """
    if displacement(name, most) > threshold:
        return None
    below = most
    while below > 1 and displacement(name, int(below * STRIDE)) <= threshold:
        below = int(below * STRIDE)
    return next(n + 1 for n in range(below, 0, -1) if displacement(name, n) > threshold)


def table() -> list[dict[str, Any]]:
    """Measured and printed steps, without and with energy preservation."""
    found = []
    for row in ROWS:
        plain, kept = least_steps(row.method), least_steps(f"ep({row.method})")
        found.append({"row": row.label, "method": row.method, "steps": [plain, kept], "printed": list(row.steps)})
    return found
