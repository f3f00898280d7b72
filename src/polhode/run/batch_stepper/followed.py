"""Whether the steps of many bodies follow slender ones, as far as the free motion tells (`failures.lost_motion`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...physics.problem import Problem
from ..failures import MOST_COMPARED, hardest_to_follow, lost_motion

if TYPE_CHECKING:
    from .stepper import BatchStepper


def not_followed(stepper: BatchStepper, q: np.ndarray, v: np.ndarray, dt: float | np.ndarray) -> str:
    """Say that steps do not follow the body for which they are longest; else ""."""
    bodies, form = stepper.bodies, stepper.form
    q, v = (q, v) if form.layout == "rows" else (q.T, v.T)
    momenta = bodies.momentum_of(v.astype(float)) if form.omega else v.astype(float)
    i = hardest_to_follow(np.linalg.norm(momenta, axis=1), bodies.moments, dt)
    if i < 0:
        return ""
    attitude = np.roll(q[i], 1) if form.scalar_last else q[i]
    attitude = attitude.astype(float) / np.linalg.norm(attitude.astype(float))
    own = float(np.broadcast_to(dt, len(q))[i])
    problem = Problem(bodies.body(i), attitude=attitude, momentum=momenta[i])
    why = lost_motion(problem, stepper.method, own, MOST_COMPARED, own, instead="")
    return f"body {i}: {why}" if why and len(q) > 1 else why
