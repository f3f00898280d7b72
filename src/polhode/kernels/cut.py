"""Steps in parts that end where the torque jumps in time.

A step of any one-step method that meets such times, the edges, is made as several steps from one to the next. In each
of them the conditions on time are those of one moment between the edges, so the method sees a smooth torque and keeps
its order. A step without edges is made as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numbers.dispatch import kernel
from ..numbers.primitives import epsilon, take
from .loops import NEAR, Step
from .sampled import placing
from .state import renormalise


@kernel
def edges_before(t: Any, edges: Any) -> int:
    """Return the number of edges up to t: the edges are sorted."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if take(middle, edges) <= t:
            low = middle + 1
        else:
            high = middle
    return low


def cut_step(step: Step, count: int, moment: int) -> Step:
    """Step kernel in parts, for a system with `count` parameters.

    Parameter `moment` is a time between the edges around a part. Two columns of data follow it: the edges, and a time
    before the first of them, between any two, and after the last. A negative h is a step back in time.
    """
    place: Callable[..., Any] = placing(count, (), moment)
    edges_at, moments_at = moment + 1, moment + 2

    @kernel
    def cut(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        edges, moments = system[2][edges_at], system[2][moments_at]
        ahead, end = h > 0, t + h
        near = NEAR * epsilon(end) * max(abs(t), abs(end))
        if not ahead:
            near = -near
        k, now, residual, first, last = edges_before(t + near, edges), t, 0 * y[0][0], True, False
        while not last:
            j = k if ahead else k - 1
            last, stop = j < 0 or j >= len(edges), end
            if not last:
                edge = take(j, edges)
                last = edge >= end - near if ahead else edge <= end - near
                stop = end if last else edge
            if not first:
                y = renormalise(y)
            here = place(system, (), take(k, moments))
            y, more = step(h if first and last else stop - now, now, y, here, torque)
            residual, now, first, k = residual + more, stop, False, k + 1 if ahead else k - 1
        return y, residual

    return cut
