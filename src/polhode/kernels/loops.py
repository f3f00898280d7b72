"""The loops over fixed and adaptive steps, in plain Python; backends compile them.

A further loop is in `compile/batch/adaptive_step.py`: there lanes switch bodies between two steps of
`attempting_steps`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..numbers.dispatch import kernel
from ..numbers.primitives import all_lanes, atan2, epsilon, finite, where
from .so3 import conj, dot, mul, norm, norm2, scale, sub
from .so3 import times as rates
from .state import collapse, renormalise
from .unroll import unrolled_kernel

NEAR = 4
"""Distance of two times, in round-off errors of the time, that counts as none."""

STALLED = 60
"""A run ends after this many consecutive steps that are rejected, not finite or too short to advance the time."""

COLUMNS = 7
"""A record is the quaternion (4) and the momentum (3), in principal axes."""


NO_STATE = "the state became infinite, NaN or no rotation"
"""The failure of a step whose equations were solved but whose state `is_valid` rejects."""


@kernel
def is_valid(y: Any, residual: Any) -> Any:
    """Whether the step was solved, its momentum is finite, and its quaternion is a rotation.

    Steps multiply unit quaternions, so the length is 1 up to round-off; `renormalise` removes this to first order.
    A length that is off by more than half the digits comes from an equation that was not solved or from overflow.
    NaN fails both comparisons.
    """
    q, m = y[0], y[1]
    excess = norm2(q) - 1
    return (residual <= 0) & (excess * excess <= epsilon(excess)) & finite((m[0] + m[1]) + m[2])


@kernel
def write_row(rows: Any, i: int, y: Any) -> None:
    """Write one state into a row, without its low parts."""
    q, m = collapse(y)
    rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = q[0], q[1], q[2], q[3]
    rows[i, 4], rows[i, 5], rows[i, 6] = m[0], m[1], m[2]


@kernel
def is_last_by_count(n: int, last: int, y: Any) -> bool:
    """Whether step n is the last one."""
    return n == last


@kernel
def write_timed_row(rows: Any, i: int, y: Any) -> None:
    """Write one state and its time."""
    write_row(rows, i, y)
    rows[i, COLUMNS] = y[2][0]


@kernel
def is_last_by_time(n: int, last: Any, y: Any) -> bool:
    """Whether this is the last step: by its number, or the first one at or past the end; last = (number, end)."""
    return (n == last[0]) | (y[2][0] >= last[1])


@kernel
def observe_state(t: Any, y: Any, system: Any) -> Any:
    """Return the state: the record contains nothing else."""
    return y


@kernel
def read_row(r: Any) -> Any:
    """The state in a row."""
    return (r[0], r[1], r[2], r[3]), (r[4], r[5], r[6])


class StateSpace(NamedTuple):
    """Operations of a state space: is_valid(y, residual), renormalise(y), write(rows, i, y), is_last(n, last, y).

    observe(t, y, system) returns the quantities to record; they may be more than the state. read(row) is the state in a
    row that was written.
    """

    is_valid: Callable[..., Any]
    renormalise: Callable[..., Any]
    write: Callable[..., None]
    is_last: Callable[..., bool] = is_last_by_count
    observe: Callable[..., Any] = observe_state
    read: Callable[..., Any] = read_row


ROTATION = StateSpace(is_valid, renormalise, write_row)
"""Attitude and body momentum of a rigid body."""

CLOCKED = StateSpace(is_valid, renormalise, write_timed_row, is_last_by_time)
"""The same with a memory that begins with the time; the time is written after the state."""


@functools.cache
def with_states(count: int) -> StateSpace:
    """Attitude, momentum, and `count` numbers of further states: (q, m, z)."""
    numbers, places = "".join(f"r[{COLUMNS + i}], " for i in range(count)), range(count)
    finite_sum = f"finite({' + '.join(f'y[2][{i}]' for i in places)})"
    lines = [f"rows[i, {COLUMNS + i}] = y[2][{i}]" for i in places]
    return StateSpace(
        unrolled_kernel("y, residual", f"body(y, residual) & {finite_sum}", body=is_valid, finite=finite),
        renormalise,
        unrolled_kernel("rows, i, y", "None", "body(rows, i, y)", *lines, body=write_row),
        read=unrolled_kernel("r", f"(*body(r), ({numbers}))", body=read_row),
    )


@kernel
def unchanged(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
    """Return the state itself and a zero residual."""
    return y, 0 * h, True


def change_of_variables(change: Step | None, space: StateSpace = ROTATION) -> Step:
    """Kernel (h, t, y, system, torque) -> (changed y, residual, whether it is valid); without a change, y itself."""
    is_valid, renormalise = space.is_valid, space.renormalise
    if change is None:
        return unchanged

    @kernel
    def changed(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        new, residual = change(h, t, y, system, torque)
        return renormalise(new), residual, is_valid(new, residual)

    return changed


def stepping(
    step: Step,
    torque: Callable[..., Any],
    space: StateSpace = ROTATION,
    before: Step | None = None,
    after: Step | None = None,
) -> Callable[..., Any]:
    """Build the loop for one step kernel and one torque.

    ``advance(h, t0, first, count, every, last, y, system, rows)`` makes `count` steps from step number
    `first`, writes every `every`-th state and the last one (of step `last`) to `rows`, and returns the state,
    the number of the step reached, the rows filled, the residual, and whether all steps succeeded. If one failed,
    the state is that of the last good step. Time is t0 + n h, never summed; if steps vary, it is part of the state.

    A processed method changes variables with `before` ahead of step 0, and back with `after` for the rows only.
    The state that is returned, and passed in to continue, is the one between.
    """
    is_valid, renormalise, write, is_last, observe, _ = space
    enter, leave = change_of_variables(before, space), change_of_variables(after, space)

    def advance(h: Any, t0: Any, first: int, count: int, every: int, last: int, y: Any, system: Any, rows: Any) -> Any:
        filled = 0
        if first == 0:
            entered, residual, fine = enter(h, t0, y, system, torque)
            if not all_lanes(fine):
                return y, first, filled, residual, False
            y = entered
        for n in range(first, first + count):
            new, residual = step(h, t0 + n * h, y, system, torque)
            if not all_lanes(is_valid(new, residual)):
                return y, n, filled, residual, False
            new = renormalise(new)
            end = is_last(n + 1, last, new)
            if (n + 1) % every == 0 or end:
                t = t0 + (n + 1) * h
                shown, residual, fine = leave(h, t, new, system, torque)
                if not all_lanes(fine):
                    return y, n, filled, residual, False
                write(rows, filled, observe(t, shown, system))
                filled += 1
            y = new
            if end:
                return y, n + 1, filled, 0 * h, True
        return y, first + count, filled, 0 * h, True

    return advance


def kept_rows(count: int, every: int) -> int:
    """Number of states recorded in a run: every `every`-th, and the last."""
    return -(-count // every)


LATER = 0.1
"""Share of the remaining rotation angle through which a momentum error is assumed to add to the attitude error."""

FAINT = 1e-290
"""Squares of the allowed momentum errors below this are too close to underflow: such momenta are not controlled."""


@kernel
def weights_of_errors(tolerance: Any, left: Any, m: Any, square: Any, system: Any) -> Any:
    """Return weights of the squared errors of attitude and momentum in a step, and the largest |m|^2 so far, `square`.

    A squared error times its weight is 1 if the error is as large as allowed: for the attitude the tolerance tau, for
    the momentum tau max|m|/sqrt(1 + (LATER a)^2), with the angle a = |w| left through which the body turns until the
    end, `left` later. A momentum error accumulates in the attitude until then.
    """
    here, angle = dot(m, m), scale(LATER * left, rates(system[1], m))
    square = where(here > square, here, square)
    attitude = tolerance * tolerance
    momentum = attitude * square
    return (1 / attitude, (1 + dot(angle, angle)) / where(momentum > FAINT, momentum, math.inf)), square


def attempting_steps(controlled_step: Callable[..., Any], space: StateSpace = ROTATION) -> Callable[..., Any]:
    """Kernel: attempt one adaptive step.

    ``controlled_step(t, y, proposal, left, system, weights, order)`` tries a step of at most `left`, such that t +
    step is exact (`fitted`), and returns the new state, the step made, the step to propose next, and whether it
    is accepted; `weights` are those of its errors (`weights_of_errors`).
    ``attempt_step(t, end, longest, proposal, y, system, weights, order)`` steps towards `end`, by at most `longest`,
    and returns the state, the time, the next proposal, and whether the step counts: a step that fails or does not
    advance the time does not.
    """
    is_valid, renormalise = space.is_valid, space.renormalise

    @kernel
    def attempt_step(
        t: Any, end: Any, longest: Any, proposal: Any, y: Any, system: Any, weights: Any, order: int
    ) -> Any:
        left = end - t
        left = where(left < longest, left, longest)
        new, step, proposal, accepted = controlled_step(t, y, proposal, left, system, weights, order)
        now = t + step
        counts = is_valid(new, 0 * step) & accepted & (now != t)
        return renormalise(new), where(now < end, now, end), proposal, counts

    return attempt_step


@kernel
def first_step(angle: Any, span: Any, m: Any, system: Any) -> Any:
    """Return the guess for the first step, at most `span`: the time to turn by `angle`, or that share of the span."""
    rate = norm(rates(system[1], m))
    rate = where(rate * span > 1, rate, 1 / span)
    return where(rate * span > angle, angle / rate, span)


NO_WEIGHTS = 0.0, 0.0
"""Weights of errors for a step that is made whatever its errors are."""


def adaptive_stepping(controlled_step: Callable[..., Any], space: StateSpace = ROTATION) -> Callable[..., Any]:
    """Build the loop for a controlled step, which chooses its own step length.

    ``adaptive_loop(t, end, last, longest, proposal, y, system, tolerance, largest, order, times, rows)`` runs until
    `end` or until `rows` is full (every accepted step is recorded, none is longer than `longest`). `last` is the time
    at which the whole run ends, `largest` the largest |m| so far: both enter the weights of errors. A
    negative `proposal` is minus the angle through which the body turns in the first step (`first_step`). It returns the
    state, the time, the next proposal, `largest`, the angle turned, the rows filled, the rejected steps, and whether
    all went well.
    """
    attempt_step, write = attempting_steps(controlled_step, space), space.write

    def adaptive_loop(
        t: Any, end: Any, last: Any, longest: Any, proposal: Any, y: Any, system: Any, tolerance: Any, largest: Any,
        order: int, times: Any, rows: Any,
    ) -> Any:  # fmt: skip
        filled, rejected, stalled, turned = 0, 0, 0, 0 * t
        if proposal < 0:
            proposal = first_step(-proposal, last - t, y[1], system)
        while filled < len(times) and stalled < STALLED:
            size = norm(y[1])
            largest = where(size > largest, size, largest)
            weights, _ = weights_of_errors(tolerance, last - t, y[1], largest * largest, system)
            new, now, proposal, counts = attempt_step(t, end, longest, proposal, y, system, weights, order)
            if not counts:
                rejected, stalled = rejected + 1, stalled + 1
                continue
            turned += (now - t) * norm(rates(system[1], new[1]))
            stalled, y, t = 0, new, now
            times[filled] = t
            write(rows, filled, y)
            filled += 1
            if t >= end:
                break
        return y, t, proposal, largest, turned, filled, rejected, stalled < STALLED

    return adaptive_loop


@kernel
def distance(a: Any, b: Any, momentum: Any) -> Any:
    """Return the larger of the angle between two attitudes and the difference of the momenta relative to a size."""
    turn = mul(conj(a[0]), b[0])
    angle = 2 * atan2(norm((turn[1], turn[2], turn[3])), abs(turn[0]))
    apart = norm(sub(a[1], b[1])) / where(momentum > 0, momentum, 1.0)
    return where(angle > apart, angle, apart)


def repeating(controlled_step: Callable[..., Any], space: StateSpace = ROTATION) -> Callable[..., Any]:
    """Build the loop that repeats a run with shorter steps.

    ``repeat(start, times, count, total, first, last, y, compared, largest, system, order, moments, rows)`` replaces the
    `count` steps that end at `times`, the first of which begins at `start`, by `total` steps. The time after k of them
    is that of the given run after k count/total steps, so all steps become shorter by nearly the same factor and
    nothing has to be controlled. It makes the steps from number `first` to `last`, writes their ends to `moments` and
    `rows`, and returns the state, the `largest` |m| so far, the distance of the state from `compared`, and whether all
    states were valid.
    """
    is_valid, renormalise, write = space.is_valid, space.renormalise, space.write

    @kernel
    def moment(start: Any, times: Any, count: int, total: int, k: int) -> Any:
        whole = k * count // total
        before = start if whole == 0 else times[whole - 1]
        if whole == count:
            return before
        return before + (times[whole] - before) * (k * count - whole * total) / total

    def repeat(
        start: Any, times: Any, count: int, total: int, first: int, last: int, y: Any, compared: Any, largest: Any,
        system: Any, order: int, moments: Any, rows: Any,
    ) -> Any:  # fmt: skip
        t, fine = moment(start, times, count, total, first), True
        for k in range(first, last):
            now = moment(start, times, count, total, k + 1)
            left = now - t
            new, _, _, _ = controlled_step(t, y, left, left, system, NO_WEIGHTS, order)
            if not is_valid(new, 0 * left):
                fine = False
                break
            y, t = renormalise(new), now
            size = norm(y[1])
            largest = where(size > largest, size, largest)
            moments[k - first] = t
            write(rows, k - first, y)
        return y, largest, distance(y, compared, largest), fine

    return repeat


@kernel
def fitted(t: Any, h: Any) -> Any:
    """Round the step h so that t + h is a number of the type: then no time is lost by rounding."""
    return (t + h) - t


def interpolating(controlled_step: Callable[..., Any], space: StateSpace = ROTATION) -> Callable[..., Any]:
    """Build the loop of dense output: ``interpolate(times, first, starts, rows, system, order, output)``.

    From row ``first[k]``, the state at time ``starts[first[k]]``, one step without tolerance leads to ``times[k]``.
    """
    is_valid, renormalise, write, read = space.is_valid, space.renormalise, space.write, space.read

    def interpolate(times: Any, first: Any, starts: Any, rows: Any, system: Any, order: int, output: Any) -> bool:
        for k in range(len(times)):
            i = first[k]
            y = read(rows[i])
            left = times[k] - starts[i]
            fine = True
            if left != 0:
                y, _, _, fine = controlled_step(starts[i], y, left, left, system, NO_WEIGHTS, order)
            if not (fine and is_valid(y, 0 * left)):
                return False
            write(output, k, renormalise(y))
        return True

    return interpolate


def one_step(step: Step, torque: Callable[..., Any]) -> Callable[..., Any]:
    """Controlled step that makes the whole step `left` by a fixed-step method."""

    @kernel
    def controlled_step(t: Any, y: Any, proposal: Any, left: Any, system: Any, weights: Any, order: int) -> Any:
        new, residual = step(left, t, y, system, torque)
        return new, left, left, residual <= 0

    return controlled_step


Step = Callable[..., Any]
