"""Measured properties of a method, in 50 digits: order, defects of symmetry and structure, cost.

Several measurements start with the same steps. `first_step` and `neighbours` compute each of them once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath

from ..kernels.so3 import add, conj, cross, dot, exp, mul, norm, rotate, scale, sub, times, unit
from ..kernels.state import collapse, compensate
from ..methods import CONSERVABLE, Method
from ..methods.queries import VECTOR, DiscreteGradient, TorqueGradient
from ..numbers.dispatch import solve_listener
from ..numbers.multiprecision import number
from ..physics.problem import Problem
from .generic_problems import Which
from .setting import (
    DIGITS,
    EXACT,
    LARGE_STEP,
    LOCAL_STEPS,
    Setting,
    distance,
    exact_flow,
    fifty,
    largest,
)

NUDGE = mpmath.mpf(10) ** -14
"""Step of the central differences; their error is its square."""


@functools.lru_cache(maxsize=64)
def _setting(method: Method, kind: str, which: Which) -> Setting:
    return Setting(method, kind, which)


@functools.lru_cache(maxsize=64)
def first_step(method: Method, kind: str, which: Which, h: float) -> Any:
    """The state after one step from the start; call it with `DIGITS` digits, as all measurements do."""
    return _setting(method, kind, which).step(h)


@functools.lru_cache(maxsize=256)
def neighbours(method: Method, kind: str, which: Which, h: float, direction: int) -> tuple[Any, Any]:
    """The states after one step from the two starts displaced by +-NUDGE in one of six directions."""
    setting = _setting(method, kind, which)
    up, down = (setting.step(h, y=nudged(setting.y, direction, s * NUDGE)) for s in (1, -1))
    return up, down


@fifty
def measured_order(method: Method, kind: str, which: Which = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order from the local errors of one step at two step sizes: log2 of their ratio, minus one.

    Infinite if even a large step has no error.
    """
    long, short = (local_error(method, kind, which, h) for h in steps)
    if long < EXACT and local_error(method, kind, which, LARGE_STEP) < EXACT:
        return math.inf
    return float(mpmath.log(long / short, 2)) - 1


def local_error(method: Method, kind: str, which: Which, h: float) -> Any:
    """Distance from the exact flow after one step, without friction and noise; that of a chain is part of it."""
    if method.thermostat is not None:
        from .extended import extended_error

        return extended_error(method, kind, which, h)
    end, time = Setting(method, kind, which, repeated=method.has_own_time, bath=False).timed_step(h)
    return distance(end, exact_flow(kind, which, time))


@fifty
def asymmetry(method: Method, kind: str, which: Which = 0) -> Any:
    """Distance from the start after a step forward and the same step back, memory included."""
    setting = Setting(method, kind, which, repeated=method.memory > 0)
    h = number(LARGE_STEP)
    start = setting.initial_state(h)
    ahead = setting.step(h, y=start) if method.memory else first_step(method, kind, which, LARGE_STEP)
    return distance(setting.step(-h, setting.t + h, ahead), start)


def nudged(y: Any, direction: int, size: Any) -> Any:
    """The state moved along one of six directions: rotation in the body frame, then momentum."""
    q, m = y
    shift = tuple(size if i == direction % 3 else 0 * size for i in range(3))
    return (mul(q, exp(shift)), m) if direction < 3 else (q, add(m, shift))


def tangent(y: Any, near: Any) -> tuple[Any, Any]:
    """The small rotation (body frame) and momentum change from one state to a close one."""
    d = mul(conj(y[0]), near[0])
    return scale(2, (d[1], d[2], d[3])), sub(near[1], y[1])


def two_form(m: Any, a: Any, b: Any) -> Any:
    """The canonical two-form of T*SO(3), trivialised by body rotations: dm.l' - dm'.l - m.(l x l')."""
    return dot(a[1], b[0]) - dot(b[1], a[0]) - dot(m, cross(a[0], b[0]))


@fifty
def symplectic_defect(method: Method, kind: str, which: Which = 0, h: float = LARGE_STEP) -> Any:
    """Largest change of the canonical two-form over a step, by central differences (error NUDGE^2)."""
    start, end = _setting(method, kind, which).y, first_step(method, kind, which, h)
    before = [slopes(start, nudged(start, k, NUDGE), nudged(start, k, -NUDGE)) for k in range(6)]
    after = [slopes(end, *neighbours(method, kind, which, h, k)) for k in range(6)]
    return largest(
        abs(two_form(end[1], after[i], after[j]) - two_form(start[1], before[i], before[j]))
        for i in range(6)
        for j in range(i)
    )


def slopes(y: Any, up: Any, down: Any) -> Any:
    """The tangent at y of a path through two close states, by a central difference."""
    pair = (tangent(y, up), tangent(y, down))
    return tuple(scale(1 / (2 * NUDGE), sub(u, v)) for u, v in zip(*pair, strict=True))


@fifty
def poisson_defect(method: Method, which: Which = 0, h: float = LARGE_STEP) -> Any:
    """Largest entry of A hat(m0) A^T - hat(m1), A = dm1/dm0 of the free body."""
    start, end = _setting(method, "free", which).y[1], first_step(method, "free", which, h)[1]
    columns = []
    for k in range(3, 6):
        up, down = neighbours(method, "free", which, h, k)
        columns.append(scale(1 / (2 * NUDGE), sub(up[1], down[1])))
    rows = list(zip(*columns, strict=True))
    axes = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    return largest(abs(dot(rows[i], cross(start, rows[j])) + end[k]) for i, j, k in axes)


STEPS = 4


class Kept(NamedTuple):
    """Steps that show changes: kind of field, half step to the midpoints, quantities by conservable name."""

    kind: str
    half: Method | None
    names: dict[str, str]


def measurable(method: Method) -> list[Kept]:
    """The measurements for the conservable quantities that apply to the method."""
    found = [Kept("free", None, {name: name for name in ("energy", "spatial_momentum", "momentum_norm")})]
    if method.takes("potential"):
        found.append(Kept("linear", None, {"energy_linear_potential": "energy"}))
        found.append(Kept("potential", None, {"energy_potential": "energy"}))
    if method.halves:
        names = {f"{name}_midpoint": name for name in ("energy", "spatial_momentum")}
        found.append(Kept("free", method.halves[0], names))
    return found


@fifty
def changes(method: Method, which: Which = 0) -> dict[str, Any]:
    """Change of each conservable quantity over a few steps (only those that apply to the method)."""
    found: dict[str, Any] = {}
    for part in measurable(method):
        found |= node_changes(method, which, part)
    return {name: found[name] for name in CONSERVABLE if name in found}


@fifty
def node_changes(method: Method, which: Which, part: Kept) -> dict[str, Any]:
    """Changes of energy and momenta between steps, or between the midpoints reached by the half step."""
    setting = Setting(method, part.kind, which)
    push_half = part.half.build(number) if part.half else None
    y, h = setting.y, number(LARGE_STEP)
    seen = []
    for n in range(STEPS + 1):
        t = setting.t + n * h
        if n:
            y = setting.step(h, t - h, y) if n > 1 else first_step(method, part.kind, which, LARGE_STEP)
        here = y if push_half is None else push_half(h / 2, t, y, setting.system, setting.torque)[0]
        seen.append(invariants(setting.problem, here, setting.system))
    first = seen[0]
    changed = {
        "energy": largest(abs(e - first[0]) for e, _, _ in seen),
        "spatial_momentum": largest(norm(sub(m, first[1])) for _, m, _ in seen),
        "momentum_norm": largest(abs(n - first[2]) for _, _, n in seen),
    }
    return {name: changed[quantity] for name, quantity in part.names.items()}


def invariants(problem: Problem, y: Any, system: Any) -> tuple[Any, Any, Any]:
    """Energy, spatial momentum, and length of the momentum."""
    q, m = y
    kinetic = dot(m, times(system[1], m)) / 2
    return kinetic + problem.potential(q, number), rotate(q, m), norm(m)


POINT_RADIUS = mpmath.mpf(10) ** -15
BUMP = mpmath.mpf(10) ** -25
ENTERS = BUMP / 10**15
"""A torque enters a step if changing it by BUMP changes the result by more than this. Order conditions reduce the
effect of the first stages of a high-order method to 1e-12; the effect of a discarded solver iterate is round-off."""


@fifty
def torque_points(method: Method, kind: str, which: Which = 0) -> tuple[int, set[str]]:
    """Number of distinct points (t, R) at which the torque enters the step, and which ends are among them.

    Candidates are the points at which the torque was evaluated. One counts if a torque changed only there (by
    BUMP, within POINT_RADIUS) changes the result; discarded solver iterates do not count.
    """
    setting = Setting(method, kind, which, repeated=True)
    asked: list[Any] = []

    def listening(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        asked.extend(_points(setting, kind, t, q, *more))
        return setting.torque(t, q, m, system, *more)

    plain = setting.step(LARGE_STEP, torque=listening)
    points: list[Any] = []
    for point in reversed(asked):
        if not any(_same_point(point, p) for p in points):
            points.append(point)

    def entering(candidates: list[Any]) -> list[Any]:
        """The points at which a changed torque changes the result, by bisection."""
        changed = setting.step(LARGE_STEP, torque=_bumped(setting, kind, candidates)) if candidates else plain
        if not distance(changed, plain) > ENTERS:
            return []
        half = len(candidates) // 2
        return entering(candidates[:half]) + entering(candidates[half:]) if half else candidates

    count = method.torque_evals  # one by one, because the last evaluated points are most likely to enter
    used = [found for point in points[:count] for found in entering([point])] + entering(points[count:])
    last = plain[2][0] + plain[2][1] if method.has_own_time else setting.t + LARGE_STEP
    ends = {"start": _point(kind, setting.t, setting.y[0]), "end": _point(kind, last, plain[0])}
    return len(used), {name for name, end in ends.items() if any(_same_point(end, p) for p in used)}


def _point(kind: str, t: Any, q: Any) -> Any:
    """A point (t, R), without t for a potential."""
    return (0 * t if kind == "potential" else t), q


def _points(setting: Setting, kind: str, t: Any, q: Any, *more: Any) -> list[Any]:
    """The points at which one call evaluates the torque.

    A discrete gradient has two, or none if only its potential difference is used. A rate is derived from the torque.
    """
    query = setting.method.asks.asked(len(more))
    if isinstance(query, DiscreteGradient):
        return [_point(kind, t, q), _point(kind, *more[:2])] if query.use == "torque" else []
    return [] if isinstance(query, TorqueGradient) else [_point(kind, t, q)]


def _same_point(a: Any, b: Any) -> bool:
    return bool(distance(((a[0],), a[1]), ((b[0],), b[1])) < POINT_RADIUS)


def _bumped(setting: Setting, kind: str, points: list[Any]) -> Callable[..., Any]:
    """The torque with a different change at each of these points, so that no two cancel."""

    def bumped(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        force = setting.torque(t, q, m, system, *more)
        asked = _points(setting, kind, t, q, *more)
        here = [i for i, point in enumerate(points) if any(_same_point(p, point) for p in asked)]
        if not here:
            return force
        bump = scale((1 + here[0] / 7) * BUMP, (1, 2, 3))
        query = setting.method.asks.asked(len(more))
        parts = zip(query.shape, query.split(force), strict=True)
        return query.joined(tuple(add(part, bump) if form == VECTOR else part for form, part in parts))

    return bumped


def _stages_of(guess: Any) -> int:
    """Implicit stages of an unknown: a number, a vector, or up to two vectors per stage."""
    return (len(guess) + 1) // 2 if isinstance(guess, tuple) and isinstance(guess[0], tuple) else 1


@fifty
def implicit_stages(method: Method, which: Which = 0) -> int:
    """Implicit stages solved in one step with the most general field (some stages of `ep` compute the work)."""
    guesses: list[Any] = []
    with solve_listener(guesses.append):
        Setting(method, method.needs, which, repeated=True).step(LARGE_STEP)
    return sum(map(_stages_of, guesses))


@fifty
def axial_momentum(method: Method, which: str) -> Any:
    """Momentum along the axis of a linear body after a step, and where the step evaluates the torque; it must be zero.

    The last part of a step may remove momentum that another part gave to the body.
    """
    setting, seen = Setting(method, "free", which), []

    def listening(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        seen.append(m)
        return setting.torque(t, q, m, system, *more)

    seen.append(setting.step(LARGE_STEP, torque=listening)[1])
    return largest(abs(x) for m in seen for x, moment in zip(m, setting.system[0], strict=True) if moment == 0)


@fifty
def frame_dependence(method: Method, which: Which = 0) -> Any:
    """Difference between rotating the start and rotating the result, for the free body: always zero."""
    setting = _setting(method, "free", which)
    turn = unit(tuple(number(x) for x in (3, -1, 2, 5)))
    q, m = first_step(method, "free", which, LARGE_STEP)
    moved = setting.step(LARGE_STEP, y=(mul(turn, setting.y[0]), setting.y[1]))
    return distance(moved, (mul(turn, q), m))


SMALL_STEP = mpmath.mpf(10) ** -20
"""Step size at which the round-off of a state and of its increment are twenty digits apart."""


@fifty
def increment_error(method: Method, which: Which = 0) -> Any:
    """Error of one small step on a state with low parts, relative to the step size; 1 if the method rejects it."""
    setting = Setting(method, method.needs, which, repeated=True)
    try:
        new, _ = setting.kernel(SMALL_STEP, setting.t, compensate(setting.y), setting.system, setting.torque)
        with mpmath.workdps(2 * DIGITS):
            kernel = method.build(number)
            exact, _ = kernel(SMALL_STEP, setting.t, setting.y, setting.system, setting.torque)
            return distance(collapse(new), exact) / SMALL_STEP
    except (TypeError, ValueError):
        return mpmath.mpf(1)
