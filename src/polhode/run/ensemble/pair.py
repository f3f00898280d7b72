"""Adaptive steps in SIMD lanes for fields without a Taylor series: Verner's pair 8(7)."""

from __future__ import annotations

from typing import Any

from ...methods.adaptive.controller import chosen, controlled_in_lanes, first_proposal
from ...methods.adaptive.verner87 import SAFETY, runge_kutta_pair, verner87
from ...numbers import floats
from ...physics.problem import Problem
from .. import with_states
from ..integrator import structure, torque_kernel
from ..step_control import AdaptiveStep

ORDER = int(verner87.order)


def pair_in_lanes(problem: Problem) -> AdaptiveStep:
    """Return steps of the pair: two kernels, of the first step, which only proposes a length, and of the later ones."""
    states = with_states.has_states(problem)

    def make() -> Any:
        if states:
            attempt, torque = with_states.attempt(problem), with_states.torque(problem)
        else:
            attempt, torque = runge_kutta_pair(floats.number), torque_kernel(problem, floats.number, verner87)
        return first_proposal(ORDER), chosen(attempt, controlled_in_lanes(floats.number, ORDER, SAFETY), torque)

    key = with_states.structure(problem) if states else structure(problem, verner87)
    return AdaptiveStep(f"{verner87.name}, lanes", key, make, lambda tolerance: ORDER)
