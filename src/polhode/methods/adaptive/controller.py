"""Step-size control of an embedded pair.

With err the larger of the errors of attitude and momentum over their tolerances, the next step is safety err^(-1/p)
times as long, within factors of 5, with p the order of the better solution. In terms of z = (err/safety^p)^2, which is
1 if the step need not change, the factor is z^a with a = -1/(2 p). Near 1 the Pade approximation

    z^a = (1 + (2 + a)/2 x + (2 + a)(1 + a)/12 x^2)/(1 + (2 - a)/2 x + (2 - a)(1 - a)/12 x^2),      x = z - 1,

is enough: between 1/16 and 16 it is off by at most 4 % (p = 5; 2.5 % for p = 8). All stages of the next step wait
for this number, and a power takes as long as two of them. Elsewhere a rough power is enough, because the factor is only
a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ...kernels.loops import Step, fitted
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...numbers.primitives import all_lanes, has_fast_powers, rough_power, where
from ..record import Method


def controlled(number: Callable[[Any], Any], order: int, safety: Fraction) -> Callable[..., Any]:
    """Kernel (h, proposal, squares, weights) -> (the next step to propose, whether this one is accepted).

    `squares` are the squared errors of attitude and momentum; times their weights both must be at most 1. If an
    accepted step was shorter than its proposal, the next proposal is not smaller than that one. A step whose error is
    NaN is repeated with the smallest factor.
    """
    a = Fraction(-1, 2 * order)
    p1, p2, q1, q2 = (converted(x, number) for s in (a, -a) for x in ((2 + s) / 2, (2 + s) * (1 + s) / 12))
    exponent, edge, far, near = (
        converted(x, number) for x in (a, safety ** (-2 * order), Fraction(16), Fraction(1, 16))
    )
    longest, shortest = converted(Fraction(5), number), converted(Fraction(1, 5), number)

    @kernel
    def rough_factor(z: Any) -> Any:
        rough = rough_power(z, exponent)
        return where(z >= 0, where(rough > shortest, where(rough < longest, rough, longest), shortest), shortest)

    @kernel
    def factor(z: Any) -> Any:
        if has_fast_powers(z):
            return rough_factor(z)
        inside = (z > near) & (z < far)
        x = where(inside, z, 1.0) - 1
        found = (1 + x * (p1 + x * p2)) / (1 + x * (q1 + x * q2))
        if not all_lanes(inside):
            found = where(inside, found, rough_factor(z))
        return found

    @kernel
    def judged(h: Any, proposal: Any, squares: Any, weights: Any) -> Any:
        a, b = squares[0] * (edge * weights[0]), squares[1] * (edge * weights[1])
        z = where(a > b, a, b)
        fine = z <= edge
        following = factor(z) * h
        cut = fine & (h < proposal) & (following < proposal)
        return where(cut, proposal, following), fine

    return judged


@kernel
def exact(t: Any, h: Any) -> Any:
    """Return the step as it is."""
    return h


def chosen(
    attempt: Step, judged: Step, torque: Callable[..., Any], length: Callable[..., Any] = fitted
) -> Callable[..., Any]:
    """Build a controlled step from a pair: one step, accepted if both errors are within their tolerances.

    `attempt` (h, t, y, system, torque) returns the new state and the squares of its errors; `length` (t, h) is the step
    for one of length h.
    """

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, weights: Any, order: int) -> Any:
        h = length(t, where(proposal < left, proposal, left))
        new, attitude, momentum = attempt(h, t, y, system, torque)
        following, fine = judged(h, proposal, (attitude, momentum), weights)
        return new, h, following, fine

    return controlled_step


def squares(attempt: Step) -> Step:
    """Kernel of an `Estimate` from one that returns the errors themselves."""

    @kernel
    def squared(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, attitude, momentum = attempt(h, t, y, system, torque)
        return new, attitude * attitude, momentum * momentum

    return squared


def controlled_step_from_estimate(
    method: Method,
    number: Callable[[Any], Any],
    torque: Callable[..., Any],
    changed: Callable[[Step], Step] | None = None,
    length: Callable[..., Any] = fitted,
) -> Step:
    """Build a controlled step from a method that estimates its errors; `changed` may change the kernel of its step.

    `length` as in `chosen`.
    """
    assert method.estimated is not None
    build, _, safety = method.estimated
    attempt = build(number) if changed is None else changed(build(number))
    return chosen(attempt, controlled(number, int(method.order), safety), torque, length)


FIRST_STEP = 2.0
"""First step of a pair, in radians divided by tolerance^(1/order)."""


def first_angle(order: int, tolerance: float) -> float:
    """Return the angle through which a body turns in its first step, as a guess."""
    return float(FIRST_STEP * tolerance ** (1 / order))
