"""Verification of all declarations of a method, those of noise among them, in 50 digits."""

from __future__ import annotations

from collections.abc import Callable

from polhode.analysis import checks
from polhode.analysis.checks import check_asks, check_complete, check_cost, check_parts, reported
from polhode.methods import Method
from polhode.methods.record import OVERDAMPED

from . import gibbs, noise
from .brownian import check_overdamped_measure, check_overdamped_order, check_overdamped_weak_order

check_drawn = reported(noise.check_drawn)
check_weak_order = reported(noise.check_weak_order)
check_measure = reported(gibbs.check_measure)

CHECKS = (*checks.CHECKS, check_drawn, check_weak_order, check_measure)

WITHOUT_INERTIA = (
    check_complete, check_cost, check_asks, check_parts, check_drawn, check_overdamped_order,
    check_overdamped_weak_order, check_overdamped_measure,
)  # fmt: skip
"""Checks of methods for the equation without inertia, which has no momentum."""


def checks_of(method: Method) -> tuple[Callable[..., list[str]], ...]:
    """The checks that apply to a method with a step."""
    overdamped = method.noise is not None and method.noise.equation == OVERDAMPED
    return WITHOUT_INERTIA if overdamped else CHECKS


def check(method: Method) -> list[str]:
    """List all false declarations of a method; empty if all are correct."""
    if not method.has_step:
        return checks.check(method)
    return [fault for one in checks_of(method) for fault in one(method)]
