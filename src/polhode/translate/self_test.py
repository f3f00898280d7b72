"""The self-test of an emitted file: a start, some steps, and the state that they must give."""

from __future__ import annotations

import dataclasses
import math

from ..errors import InputError
from .interface import Interface, reference

STEPS = 100
TURN = 0.05
"""Angle in radians by which the body turns in one step of the self-test."""
RELATIVE = 1e-12
"""Difference of the state after the steps that other elementary functions may cause."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """Data of the self-test."""

    dt: float
    t0: float
    steps: int
    expected: tuple[float, ...]

    @property
    def tolerance(self) -> float:
        """Largest difference allowed."""
        return float(f"{RELATIVE * max(1.0, *map(abs, self.expected)):.0e}")


def trial(made: Interface, dt: float | None) -> Trial:
    """Make the steps of the self-test in Python."""
    if dt is None:
        rate = math.hypot(*(w * m for w, m in zip(made.inverse, made.momentum, strict=True)))
        dt = float(f"{TURN / (rate or 1.0):.0e}")
    try:
        return Trial(dt, made.problem.t0, STEPS, reference(made, dt, STEPS))
    except InputError:
        raise
    except (ValueError, OverflowError):  # of a function of Python's math
        raise InputError(f"dt = {dt:g} is too large for the steps of the self-test; give a smaller one", "dt") from None
