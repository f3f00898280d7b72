"""Construction of a step, measured in 50 digits: its field queries, its parts, its memory, its estimates."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath

from ..kernels.ornstein_uhlenbeck import relaxation, relaxed
from ..kernels.so3 import add, along, conj, cross, mul, norm, scale, sub
from ..kernels.state import collapse, compensate, kick, with_memory
from ..methods import Method
from ..methods.combinators.compose import after, whole
from ..methods.queries import VECTOR, DiscreteGradient, FieldQuery, HeatBath
from ..numbers.exact import converted
from ..numbers.multiprecision import number
from ..numbers.philox import normals
from .generic_problems import Which
from .measurements import first_step
from .setting import LARGE_STEP, Setting, distance, exact_flow, fifty

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

    @property
    def size(self) -> Any:
        """Size of a change: the counters of a heat bath are whole numbers."""
        return 1 if isinstance(self.query, HeatBath) and self.place in self.query.counters else CHANGE

    def affected(self, y: Any) -> Any:
        """What a change must affect: state and memory; only the state for a heat bath, whose data are in the memory."""
        return y[:2] if isinstance(self.query, HeatBath) else y


@fifty
def field_use(method: Method, kind: str, which: Which = 0) -> dict[Part, bool]:
    """All parts of the field's answers to the step, each with True if a change of it changes the step.

    What only `before` asks for, at the start of a run, acts on the step through the memory.
    """
    setting = Setting(method, kind, which, repeated=True)
    at_start: list[FieldQuery] = []
    in_step: list[FieldQuery] = []
    start = setting.initial_state(LARGE_STEP, _listening(setting, at_start))
    plain = setting.step(LARGE_STEP, y=start, torque=_listening(setting, in_step))
    used: dict[Part, bool] = {}
    for query in dict.fromkeys(in_step + at_start):
        for part in (Part(query, place) for place in range(len(query.shape))):
            torque = _with_change(setting, part)
            begin = start if query in in_step else setting.initial_state(LARGE_STEP, torque)
            changed = setting.step(LARGE_STEP, y=begin, torque=torque)
            used[part] = bool(distance(part.affected(changed), part.affected(plain)) > SEEN)
    return used


def _listening(setting: Setting, asked: list[FieldQuery]) -> Any:
    """The torque, which also appends its queries to a list."""

    def listening(*arguments: Any) -> Any:
        asked.append(setting.method.asks.asked(len(arguments) - 4))
        return setting.torque(*arguments)

    return listening


def _with_change(setting: Setting, part: Part) -> Any:
    def changed(*arguments: Any) -> Any:
        answer = setting.torque(*arguments)
        if setting.method.asks.asked(len(arguments) - 4) != part.query:
            return answer
        return part.changed(answer, scale(part.size, _direction(part, arguments)))

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


@fifty
def sequence_error(method: Method, which: Which = 0) -> Any:
    """Distance between a step and the declared kicks and drifts, made one after the other."""
    assert method.drift is not None
    setting, h = Setting(method, method.needs, which, repeated=True), number(LARGE_STEP)
    y, t, flow = setting.initial_state(h), setting.t, method.drift.build(number)
    y, drawn = compensate(y) if method.compensated else y[:2] if method.noise else y, 0
    for part in method.sequence:
        time = converted(part.time, number) * h
        if part.flow == "O":
            kT, diagonal, off, seed, body, first = setting.torque(t, *y, setting.system, h)
            xi, matrices = normals(seed, body, first, drawn), relaxation(time, kT, (diagonal, off), setting.system)
            y, drawn = (y[0], relaxed(y[1], *matrices, xi)), drawn + 1
        elif part.flow == "T":
            y, _ = flow(time, t, y, setting.system, setting.torque)
            t = t + time
        else:
            force, *corrector = method.asks.asked(0).split(setting.torque(t, y[0], y[1], setting.system))
            dm = scale(time, force)
            if part.modified != 0:
                dm = along(dm, converted(part.modified, number) * h**3, corrector[0])
            y = kick(y, dm)
    return distance(collapse(y), setting.step(h)[:2])


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
