"""Construction of a step, measured in 50 digits: its field queries, its parts, its memory, its estimates."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath

from ..kernels.so3 import add, conj, cross, mul, norm, scale, sub
from ..kernels.state import with_memory
from ..methods import Method
from ..methods.combinators.compose import after, whole
from ..methods.queries import VECTOR, DiscreteGradient, FieldQuery
from ..numbers.multiprecision import number
from .measurements import LARGE_STEP, Setting, Which, distance, exact_flow, fifty, first_step

CHANGE = mpmath.mpf(10) ** -15
"""Size of a change in the field's answer, small enough for every solver to follow."""
SEEN = mpmath.mpf(10) ** -35
"""A larger change of the step is caused by that change; round-off is a billion times smaller."""


# --- queries to the field ---------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of the torque's return value: the query, and the index in its answer."""

    query: FieldQuery
    place: int

    def changed(self, answer: Any, change: Any) -> Any:
        """The answer with this part changed: a vector by `change`, a number by its first component."""
        parts = list(self.query.split(answer))
        vector = self.query.shape[self.place] == VECTOR
        parts[self.place] = add(parts[self.place], change) if vector else parts[self.place] + change[0]
        return self.query.joined(tuple(parts))


@fifty
def field_use(method: Method, kind: str, which: Which = 0) -> dict[Part, bool]:
    """All parts of the field's answers to the step, each with True if a change of it changes the step."""
    setting = Setting(method, kind, which, repeated=True)
    used: dict[Part, bool] = {}

    def listening(*arguments: Any) -> Any:
        query = method.asks.asked(len(arguments) - 4)
        used.update({Part(query, place): False for place in range(len(query.shape))})
        return setting.torque(*arguments)

    start = setting.initial_state(LARGE_STEP)
    plain = setting.step(LARGE_STEP, y=start, torque=listening)
    for part in used:
        changed = setting.step(LARGE_STEP, y=start, torque=_with_change(setting, part))
        used[part] = bool(distance(changed, plain) > SEEN)
    return used


def _with_change(setting: Setting, part: Part) -> Any:
    def changed(*arguments: Any) -> Any:
        answer = setting.torque(*arguments)
        if setting.method.asks.asked(len(arguments) - 4) != part.query:
            return answer
        return part.changed(answer, scale(CHANGE, _direction(part, arguments)))

    return changed


def _direction(part: Part, arguments: Any) -> Any:
    """The direction of the change. For a mean torque it is perpendicular to the rotation between the two attitudes.

    Such a change does not affect the potential difference derived from the torque, U_1 - U_0 = -T.v with v along the
    rotation axis: it changes only a step that applies the torque itself.
    """
    direction = (1, 2, 3)
    if not isinstance(part.query, DiscreteGradient) or part.place:
        return direction
    turn = mul(conj(arguments[1]), arguments[5])
    return cross((turn[1], turn[2], turn[3]), direction)


def difference_use(used: dict[Part, bool]) -> str:
    """The part of the discrete gradient that the step uses, as named in `DiscreteGradient`; empty if none."""
    mean = [use for part, use in used.items() if isinstance(part.query, DiscreteGradient) and part.place == 0]
    return "" if not mean else "torque" if mean[0] else "potential"


# --- parts and memory -------------------------------------------------------------------------------


@fifty
def memory_length(method: Method, which: Which = 0) -> int:
    """Count of the numbers that a step returns besides (q, m), from a state with the declared memory."""
    setting = Setting(method, method.needs, which, repeated=True)
    y = with_memory(method.memory)(setting.y) if method.memory else setting.y
    for build in (method.before, method.build):
        if build is not None and not method.compensated:
            y, _ = build(number)(number(LARGE_STEP), setting.t, y, setting.system, setting.torque)
    return len(y[2]) if len(y) == 3 else 0


class _Placed(Setting):
    """A method in the setting of another one: same state, system and torque."""

    def __init__(self, method: Method, setting: Setting) -> None:
        self.problem, self.y, self.system = setting.problem, setting.y, setting.system
        self.torque, self.t = setting.torque, setting.t
        self.kernel, self.method, self.repeated = whole(method)(number), method, False


@fifty
def halves_error(method: Method, which: Which = 0) -> Any:
    """Distance between a step and its two half steps one after the other."""
    setting = Setting(method, method.needs, which)
    first, second = (whole(half)(number) for half in method.halves)
    composed = _Placed(method, setting)
    composed.kernel = after(first, second)
    return distance(composed.step(LARGE_STEP), first_step(method, method.needs, which, LARGE_STEP))


@fifty
def alone_error(method: Method, which: Which = 0) -> Any:
    """Distance between a step of a processed method with both processors and the step of `unprocessed`."""
    end = first_step(method, method.needs, which, LARGE_STEP)
    return (
        distance(first_step(method.unprocessed, method.needs, which, LARGE_STEP), end)
        if method.unprocessed
        else 0 * end[0][0]
    )


@fifty
def part_error(method: Method, which: Which = 0) -> Any:
    """Distance between a step of a method with its own clock and the step of `base` over the same time."""
    setting = Setting(method, method.needs, which, repeated=True)
    end, time = setting.timed_step(LARGE_STEP)
    return distance(_Placed(method.base, setting).step(time), end) if method.base else 0 * time


# --- estimates --------------------------------------------------------------------------------------


@fifty
def estimates(method: Method, h: float, which: Which = 0) -> tuple[Any, Any, Any]:
    """For a step with error estimates: distance from the step without them, and the two estimates."""
    assert method.estimated is not None
    setting = Setting(method, method.needs, which)
    attempt = method.estimated.build(number)
    new, *squares = attempt(number(h), setting.t, setting.y, setting.system, setting.torque)
    attitude, momentum = map(mpmath.sqrt, squares)
    return distance(new, first_step(method, method.needs, which, h)), attitude, momentum


@fifty
def true_errors(method: Method, h: float, which: Which = 0) -> tuple[Any, Any]:
    """The errors of attitude (an angle) and momentum of one step."""
    (q, m), (q1, m1) = first_step(method, method.needs, which, h), exact_flow(method.needs, which, h)
    d = mul(conj(q), q1)
    return 2 * norm(d[1:]), norm(sub(m, m1))
