"""Loops and steps of a body under sampled-data control.

The state is (q, m, z). The numbers z, commands and memory of a controller, are constant between samples, or change in a
way that is known exactly. They are parameters of the torque, so a step of any one-step method can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..numbers.dispatch import kernel, noinline
from ..numbers.primitives import all_lanes, epsilon, where
from .loops import NEAR, StateSpace, Step, fitted
from .unroll import unrolled_kernel


def placing(count: int, places: Sequence[int], clock: int) -> Callable[..., Any]:
    """Kernel (system, z, t) -> the system with z at these places among its `count` parameters, and t at `clock`."""
    known = {place: f"z[{i}]" for i, place in enumerate(places)} | {clock: "t"}
    numbers = "".join(f"{known.get(i, f'system[2][{i}]')}, " for i in range(count))
    return unrolled_kernel("system, z, t", f"(system[0], system[1], ({numbers}))")


def held_step(step: Step, place: Callable[..., Any], later: Callable[..., Any] | None) -> Step:
    """Step kernel on (q, m, z) with the z of its start; `later(s, parameters)` are the z after the time s.

    Without `later` they are constant.
    """

    @kernel
    def constant(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = step(h, t, (y[0], y[1]), place(system, y[2], t), torque)
        return (new[0], new[1], y[2]), residual

    if later is None:
        return constant

    @kernel
    def changing(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        here = place(system, y[2], t)
        new, residual = step(h, t, (y[0], y[1]), here, torque)
        return (new[0], new[1], later(h, here[2])), residual

    return changing


def _until_break(count: int) -> Callable[..., Any]:
    """Kernel (left, breaks) -> the first of the `count` breaks after 0 and before `left`, else `left`."""
    lines = [f"left = where((breaks[{i}] > 0) & (breaks[{i}] < left), breaks[{i}], left)" for i in range(count)]
    return unrolled_kernel("left, breaks", "left", *lines, where=where)


@kernel
def _either(chosen: Any, new: Any, old: Any) -> Any:
    """Return one of two states (q, m), lane by lane."""
    (a, b, c, d), (x, y, z) = new
    (e, f, g, h), (u, v, w) = old
    q = where(chosen, a, e), where(chosen, b, f), where(chosen, c, g), where(chosen, d, h)
    return q, (where(chosen, x, u), where(chosen, y, v), where(chosen, z, w))


def broken_step(
    step: Step, place: Callable[..., Any], later: Callable[..., Any], breaks: Callable[..., Any], count: int
) -> Step:
    """As `held_step`, in parts that end where the torque jumps: after the times `breaks(parameters)`, `count` of them.

    A break that is not ahead is 0 or negative.
    """
    until, pieces = _until_break(count), count + 1

    @kernel
    def broken(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m, z = y
        residual = 0 * q[0]
        left, now = h + residual, t + residual
        for _ in range(pieces):
            if all_lanes(left <= 0):
                break
            here = place(system, z, now)
            s = until(left, breaks(here[2]))
            new, more = step(s, now, (q, m), here, torque)
            moves = s > 0  # in a lane that has arrived, a step of length 0 may divide by it
            q, m = _either(moves, new, (q, m))
            residual = residual + where(moves, more, 0 * residual)
            z = later(s, here[2])
            left, now = left - s, now + s
        return (q, m, z), residual

    return broken


def sampling(
    advance: Callable[..., Any],
    sample: Callable[..., Any],
    space: StateSpace,
    per_sample: Callable[..., Any],
    at_start: bool = False,
) -> Callable[..., Any]:
    """Build the loop of a controlled body from the loop `advance` between samples (`loops.stepping`).

    ``per_sample(h, system)`` is the number of steps in a period. After each of them ``sample(t, y, system)`` gives
    the state with new z, and the row of this step has the new z too: a row holds what acts from its time on. The first
    sample, at the start, is taken here only if `at_start`. Arguments and results are those of `advance`.
    """
    is_valid, write = space.is_valid, space.write

    def sampled(h: Any, t0: Any, first: int, count: int, every: int, last: int, y: Any, system: Any, rows: Any) -> Any:
        per, n, filled, end = per_sample(h, system), first, 0, first + count
        if at_start and n == 0:
            new = sample(t0, y, system)
            if not all_lanes(is_valid(new, 0 * h)):
                return y, n, filled, 0 * h, False
            y = new
        while n < end:
            stop = min(end, n - n % per + per)
            y, n, some, residual, fine = advance(h, t0, n, stop - n, every, last, y, system, rows[filled:])
            filled += some
            if not fine:
                return y, n, filled, residual, False
            if n % per == 0:
                new = sample(t0 + n * h, y, system)
                if not all_lanes(is_valid(new, 0 * h)):
                    return y, n, filled, 0 * h, False
                y = new
                if n % every == 0 or n == last:
                    write(rows, filled - 1, y)
        return y, n, filled, 0 * h, True

    return sampled


# --- adaptive steps ---------------------------------------------------------------------------------

WHOLE = 1 - 1e-12
"""Share of the way to a break from which on a step counts as all of it: step lengths are rounded to fit the time."""


def held_adaptively(
    controlled_step: Callable[..., Any],
    place: Callable[..., Any],
    later: Callable[..., Any] | None,
) -> Callable[..., Any]:
    """Controlled step on (q, m, z), from one on (q, m): the z of its start, or as `later` says (see `held_step`)."""

    @kernel
    def constant(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        here = place(system, y[2], t)
        new, step, proposal, fine = controlled_step(t, (y[0], y[1]), proposal, left, here, tolerance, order)
        return (new[0], new[1], y[2]), step, proposal, fine

    if later is None:
        return constant

    @kernel
    def changing(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        here = place(system, y[2], t)
        new, step, proposal, fine = controlled_step(t, (y[0], y[1]), proposal, left, here, tolerance, order)
        return (new[0], new[1], later(step, here[2])), step, proposal, fine

    return changing


def broken_adaptively(
    controlled_step: Callable[..., Any],
    exact_step: Callable[..., Any],
    place: Callable[..., Any],
    later: Callable[..., Any],
    breaks: Callable[..., Any],
    count: int,
) -> Callable[..., Any]:
    """Controlled step on (q, m, z) that ends at breaks (see `broken_step`), from one on (q, m).

    Steps end at times that are numbers of the type. Where these lie too far apart for a break, a step leads past it to
    one of them, in parts of any length (`exact_step`): no pulse is longer or shorter than it should be.
    """
    until = _until_break(count)

    @noinline
    @kernel
    def across(t: Any, y: Any, proposal: Any, ahead: Any, step: Any, system: Any, tolerance: Any, order: int) -> Any:
        q, m, z = y
        here = place(system, z, t)
        wanted = where(proposal > ahead, proposal, ahead)
        (q, m), s, following, fine = exact_step(t, (q, m), wanted, ahead, here, tolerance, order)
        z, left = later(s, here[2]), step - s
        for _ in range(count):
            if all_lanes(left <= 0):
                break
            here = place(system, z, t)
            s = until(left, breaks(here[2]))
            (q, m), s, _, _ = exact_step(t, (q, m), s, s, here, tolerance, order)
            z, left = later(s, here[2]), left - s
        return (q, m, z), step, following, fine

    @kernel
    def broken(t: Any, y: Any, proposal: Any, left: Any, system: Any, tolerance: Any, order: int) -> Any:
        here = place(system, y[2], t)
        ahead = until(left, breaks(here[2]))
        near, grain = fitted(t, ahead), epsilon(t) * abs(t)
        is_near = (ahead < left) & (proposal + NEAR * grain >= ahead)
        if all_lanes(is_near & (abs(near - ahead) > (1 - WHOLE) * ahead)):
            behind = fitted(t, ahead + 2 * grain)
            return across(t, y, proposal, ahead, where(behind < left, behind, left), system, tolerance, order)
        new, step, proposal, fine = controlled_step(t, (y[0], y[1]), proposal, ahead, here, tolerance, order)
        made = where(step >= WHOLE * ahead, ahead, step)
        return (new[0], new[1], later(made, here[2])), step, proposal, fine

    return broken


def sampling_adaptively(
    adaptive_loop: Callable[..., Any], sample: Callable[..., Any], space: StateSpace, period: int, start: int
) -> Callable[..., Any]:
    """Build the loop of a controlled body from the loop over adaptive steps between samples.

    The period and the time of the first sample are at these places among the parameters. Steps end at the samples, and
    the row of such a step has the z of the sample. An `end` that is a sample up to round-off is one. Arguments and
    results are those of `loops.adaptive_stepping`.
    """
    is_valid, write = space.is_valid, space.write

    def sampled(
        t: Any, end: Any, last: Any, longest: Any, proposal: Any, y: Any, system: Any, tolerance: Any, largest: Any,
        order: int, times: Any, rows: Any,
    ) -> Any:  # fmt: skip
        filled, rejected, turned, fine = 0, 0, 0 * t, True
        t0, between = system[2][start], system[2][period]
        while fine and t < end and filled < len(times):
            near = NEAR * epsilon(end) * max(abs(t0), abs(end))
            k = int((t + near - t0) / between)
            stop = t0 + k * between
            while stop <= t + near:
                k += 1
                stop = t0 + k * between
            target = min(stop, end)
            y, t, proposal, largest, angle, count, lost, fine = adaptive_loop(
                t, target, last, longest, proposal, y, system, tolerance, largest, order, times[filled:], rows[filled:]
            )
            filled, rejected, turned = filled + count, rejected + lost, turned + angle
            if fine and t >= stop - near:
                new = sample(t, y, system)
                fine = is_valid(new, 0 * t)
                if fine:
                    y = new
                    write(rows, filled - 1, y)
        return y, t, proposal, largest, turned, filled, rejected, fine

    return sampled
