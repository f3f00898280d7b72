"""Measured properties of a method, in 50 digits: order, defects of symmetry and structure, cost.

The problems are generic: three different moments, no zero or equal components, torques neither linear nor
constant. `LINEAR` and `FLAT` are the degenerate bodies that some methods cannot integrate.

Several measurements start with the same steps. `first_step` and `neighbours` compute each of them once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import mpmath

from ..kernels.loops import is_valid
from ..kernels.so3 import add, conj, cross, dot, exp, mul, norm, rotate, scale, sub, times, unit
from ..kernels.state import collapse, compensate, with_memory
from ..methods import CONSERVABLE, Method
from ..methods.combinators.compose import whole
from ..methods.queries import VECTOR, DiscreteGradient, TorqueGradient
from ..numbers.dispatch import solve_listener
from ..numbers.multiprecision import number
from ..physics.body import Body
from ..physics.fields import heat_bath, nose_hoover, potential, torque
from ..physics.problem import Problem
from ..run.integrator import torque_kernel

DIGITS = 50
EXACT = mpmath.mpf(10) ** -44
"""A difference below this is round-off of 50 digits, amplified at most a million times."""
VISIBLE = mpmath.mpf(10) ** -22
"""A difference above this is a property of the method."""
LOCAL_STEPS = (2**-7, 2**-8)
"""Step sizes for measuring the order from local errors: the next order changes the slope by a few times 2^-8."""
FINE_STEPS = (2**-12, 2**-13)
"""Finer step sizes, for a leading error term that is small by accident: here the next term is below it."""
LARGE_STEP = 2**-3
"""Step size for the other checks: large, so that defects are visible."""
LARGER_STEP = 2**-1
"""Larger step size, for methods of high order whose defects would be too small."""


# --- generic problems -------------------------------------------------------------------------------


@potential
def hills(R: Any, a: Any, b: Any) -> Any:
    """A potential that is neither linear nor symmetric."""
    return a * R[2][2] * R[0][1] + b * R[1][0] ** 2 + (a - b) * R[2][1] ** 3


@potential
def linear(R: Any, a: Any, b: Any, c: Any) -> Any:
    """A potential linear in R, with no symmetry."""
    return a * R[2][2] + b * R[0][1] + c * R[2][0]


@torque(frame="space")
def push(t: Any, R: Any, a: Any) -> Any:
    """A torque of time and attitude without a potential."""
    return (a * R[0][2] * t, R[1][1] * R[2][0] - a * t * t, R[2][2] * R[0][0] + a)


@torque
def stir(t: Any, R: Any, omega: Any, a: Any) -> Any:
    """A torque of time, attitude and angular velocity."""
    return (
        a * omega[1] * omega[2] - omega[0] / 3 + R[0][1] * t,
        R[2][2] * omega[0] - a * omega[1] / 4,
        a * R[1][2] - omega[2] * omega[0] / 5,
    )


STARTS: tuple[dict[str, Any], ...] = (
    {"inertia": (0.6, 0.8, 1.0), "attitude": (0.8, 0.4, 0.2, -0.4), "momentum": (1.8, 0.4, -0.9), "t0": 0.25},
    {"inertia": (1.9, 0.7, 1.4), "attitude": (0.5, -0.5, 0.1, 0.7), "momentum": (-0.7, 1.1, 0.6), "t0": -0.375},
    {"inertia": (3.0, 2.0, 4.5), "attitude": (0.1, 0.7, 0.5, 0.5), "momentum": (2.1, -1.7, 3.2), "t0": 0.5},
)
"""Generic starts. The axis of the intermediate moment is the second, the third, and the first. The first two bodies
rotate about the axis of their smallest moment; the last, near the separatrix, about that of its largest."""
ALL_STARTS = tuple(range(len(STARTS)))
Which = int | str
"""A generic start by its index, or a degenerate one by its name."""


def _placed(values: tuple[float, ...], axis: int) -> tuple[float, ...]:
    """The values permuted cyclically so that the last one is at this axis."""
    return tuple(values[(i - axis - 1) % 3] for i in range(3))


LINEAR: dict[str, dict[str, Any]] = {
    f"linear, axis {k + 1}, momentum {m}": STARTS[1]
    | {"inertia": _placed((1.3, 1.3, 0.0), k), "momentum": _placed(m, k)}
    for k in range(3)
    for m in ((0.9, -1.2, 0.0), (2.3, 0.7, 0.0))
}
"""Linear bodies (zero moment about one axis, and no momentum there)."""
FLAT: dict[str, dict[str, Any]] = {
    f"flat, normal {k + 1}": STARTS[0] | {"inertia": _placed((0.75, 1.25, 2.0), k)} for k in range(3)
}
"""Flat bodies: the moment about the normal is the sum of the others."""
DEGENERATE = LINEAR | FLAT


FIELDS: dict[str, Callable[[], Any]] = {
    "free": lambda: None,
    "potential": lambda: hills(0.7, -0.4),
    "linear": lambda: linear(0.8, 0.3, -0.5),
    "attitude": lambda: push(0.6),
    "velocity": lambda: stir(0.7),
}


KT = 0.75
FRICTION = ((0.9, 0.2, -0.1), (0.2, 1.3, 0.3), (-0.1, 0.3, 0.7))
"""Temperature and friction tensor of the heat bath of methods with noise."""


TAU = 0.625
"""Time constant of the thermostat of methods with a chain."""


def chain_start(links: int) -> Any:
    """Positions and velocities of a generic chain."""
    return [[(3 * k + 1) / 8 - 0.5 for k in range(links)], [0.75 - 0.5 * k + (k % 2) / 4 for k in range(links)]]


@functools.cache
def generic(kind: str, which: Which = 0, bath: bool = False, links: int = 0) -> Problem:
    """A generic problem with this kind of field, and with a heat bath or a thermostat of some links if asked for."""
    start, field = DEGENERATE[which] if isinstance(which, str) else STARTS[which], FIELDS[kind]()
    if bath or links:
        more = nose_hoover(KT, TAU, chain_start(links)) if links else heat_bath(kT=KT, friction=FRICTION)
        field = more if field is None else field + more
    q = start["attitude"]
    length = math.sqrt(sum(x * x for x in q))
    return Problem(
        Body(start["inertia"]), field, attitude=[x / length for x in q], momentum=start["momentum"],
        t0=start["t0"],
    )  # fmt: skip


@functools.cache
def exact_flow(kind: str, which: Which, h: float) -> Any:
    """The exact solution of a generic problem after the time h."""
    from .reference import flow

    return flow(generic(kind, which), h, digits=DIGITS)


def fifty(check: Callable[..., Any]) -> Callable[..., Any]:
    """Run a check with 50 digits."""

    @functools.wraps(check)
    def run(*args: Any, **named: Any) -> Any:
        with mpmath.workdps(DIGITS + 5):
            return check(*args, **named)

    return run


class Setting:
    """A method on a generic problem, in 50 digits: state, system, torque and step."""

    def __init__(self, method: Method, kind: str, which: Which = 0, repeated: bool = False, bath: bool = True) -> None:
        """With `repeated`, use the repeated step of a processed method, without its processors.

        A method with noise is in a heat bath; without `bath` it is not, so that it has neither friction nor noise. A
        method with a chain has a thermostat.
        """
        links = 0 if method.thermostat is None else method.thermostat.links
        self.problem = generic(kind, which, bath and method.noise is not None, links)
        self.y, self.system = self.problem.kernel_data(number)
        self.torque = torque_kernel(self.problem, number, method)
        self.t = number(self.problem.t0)
        self.kernel = (method.build if repeated else whole(method))(number)
        self.method, self.repeated, self.which = method, repeated, which

    def initial_state(self, h: Any, torque: Any = None) -> Any:
        """The initial state for steps of h: with zero low parts, or with the memory filled."""
        if not (self.repeated and self.method.memory):
            return self.y
        y, before = with_memory(self.method.memory)(self.y), self.method.before
        return before(number)(number(h), self.t, y, self.system, torque or self.torque)[0] if before else y

    def step(self, h: Any, t: Any = None, y: Any = None, torque: Any = None) -> Any:
        """Make one step, which must succeed. A repeated step retains its memory."""
        y, t = self.initial_state(h) if y is None else y, self.t if t is None else t
        y = compensate(y) if self.method.compensated else y
        new, residual = self.kernel(number(h), t, y, self.system, torque or self.torque)
        if not is_valid(new, residual):
            raise ArithmeticError(
                f"a step of {h} was not solved in {DIGITS} digits: residual {mpmath.nstr(residual, 3)}"
            )
        return new if self.repeated and self.method.memory else collapse(new)

    def timed_step(self, h: Any) -> Any:
        """Make one step; return the state and the time it covers."""
        if not self.method.has_own_time:
            return self.step(h), h
        new = self.step(h)
        return collapse(new), new[2][0] + new[2][1] - self.t


def largest(values: Iterable[Any]) -> Any:
    """The largest number; NaN if one of them is NaN (with `max` that depends on the order)."""
    found = list(values)
    undefined = [value for value in found if mpmath.isnan(value)]
    return undefined[0] if undefined else max(found)


def distance(a: Any, b: Any) -> Any:
    """Largest difference between the components of two states."""
    return largest(abs(x - y) for u, v in zip(a, b, strict=True) for x, y in zip(u, v, strict=True))


# --- steps shared by several measurements -----------------------------------------------------------


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


# --- measurements -----------------------------------------------------------------------------------


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
