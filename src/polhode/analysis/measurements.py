"""Properties of a method as numbers, in 50 digits: order, defects of symmetry and structure, cost.

The problems are generic: three different moments, no zero or equal components, torques neither linear nor
constant. `LINEAR` and `FLAT` are the degenerate bodies that some methods cannot take.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath

from .. import scalar
from ..backends.multiprecision import number
from ..body import Body
from ..carry import remembering, rounded, widened
from ..compose import whole
from ..engine import torque_kernel
from ..fields import potential, torque
from ..loop import good
from ..methods import CONSERVABLE, Method
from ..problem import Problem
from ..so3 import add, conj, cross, dot, exp, mul, norm, rotate, scale, sub, times, unit

DIGITS = 50
EXACT = mpmath.mpf(10) ** -44
"""Below this a difference is round-off of 50 digits, amplified at most a million times."""
VISIBLE = mpmath.mpf(10) ** -22
"""Above this a difference is a property of the method."""
LOCAL_STEPS = (2**-7, 2**-8)
"""Step sizes whose local errors give the order: the next order changes the slope by a few times 2^-8."""
FINE_STEPS = (2**-12, 2**-13)
"""Where the leading term is small by accident, the next one is below it here."""
LARGE_STEP = 2**-3
"""Step size for the other checks: large, so that what is not exact shows."""
LARGER_STEP = 2**-1
"""Where a method of high order is exact to too many digits for that."""


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
    """A torque of time and attitude that comes from no potential."""
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
    {"inertia": (2.0, 3.0, 4.5), "attitude": (0.1, 0.7, 0.5, 0.5), "momentum": (2.1, -1.7, 3.2), "t0": 0.5},
)
Which = int | str
"""A generic start by its number, or a degenerate one by its name."""


def _placed(values: tuple[float, ...], axis: int) -> tuple[float, ...]:
    """The values with the last of them at this axis, the others in turn."""
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
"""Bodies in a plane: the moment about the normal is the sum of the others."""
DEGENERATE = LINEAR | FLAT


FIELDS: dict[str, Callable[[], Any]] = {
    "free": lambda: None,
    "potential": lambda: hills(0.7, -0.4),
    "linear": lambda: linear(0.8, 0.3, -0.5),
    "attitude": lambda: push(0.6),
    "velocity": lambda: stir(0.7),
}


@functools.cache
def generic(kind: str, which: Which = 0) -> Problem:
    """A generic problem with this kind of field."""
    start = DEGENERATE[which] if isinstance(which, str) else STARTS[which]
    q = start["attitude"]
    length = math.sqrt(sum(x * x for x in q))
    return Problem(
        Body(start["inertia"]), FIELDS[kind](), attitude=[x / length for x in q], momentum=start["momentum"],
        t0=start["t0"],
    )  # fmt: skip


@functools.cache
def _exact_flow(kind: str, which: Which, h: float) -> Any:
    from .taylor import flow

    return flow(generic(kind, which), h, digits=DIGITS)


def fifty(check: Callable[..., Any]) -> Callable[..., Any]:
    """Run a check with 50 digits."""

    @functools.wraps(check)
    def run(*args: Any, **named: Any) -> Any:
        with mpmath.workdps(DIGITS + 5):
            return check(*args, **named)

    return run


class Setting:
    """A method on a generic problem, in 50 digits: state, system, torque and step at hand."""

    def __init__(self, method: Method, kind: str, which: Which = 0, repeated: bool = False) -> None:
        """With `repeated`, the step of a processed method without its processors: what a run repeats."""
        self.problem = generic(kind, which)
        self.y, self.system = self.problem.kernel_data(number)
        self.torque = torque_kernel(self.problem, number, method)
        self.t = number(self.problem.t0)
        self.kernel = (method.build if repeated else whole(method))(number)
        self.method, self.repeated = method, repeated

    def begun(self, h: Any) -> Any:
        """The state from which steps of h start: low parts zero, or the memory filled."""
        if not (self.repeated and self.method.memory):
            return self.y
        y, before = remembering(self.method.memory)(self.y), self.method.before
        return before(number)(number(h), self.t, y, self.system, self.torque)[0] if before else y

    def step(self, h: Any, t: Any = None, y: Any = None, torque: Any = None) -> Any:
        """One step; it must succeed. A step that is repeated keeps its memory."""
        y, t = self.begun(h) if y is None else y, self.t if t is None else t
        y = widened(y) if self.method.compensated else y
        new, miss = self.kernel(number(h), t, y, self.system, torque or self.torque)
        if not good(new, miss):
            raise ArithmeticError(f"a step of {h} was not solved in {DIGITS} digits: miss {mpmath.nstr(miss, 3)}")
        return new if self.repeated and self.method.memory else rounded(new)

    def timed_step(self, h: Any) -> Any:
        """One step, and how far it leads in time."""
        if not self.method.clock:
            return self.step(h), h
        new = self.step(h)
        return rounded(new), new[2][0] + new[2][1] - self.t


def distance(a: Any, b: Any) -> Any:
    """Largest difference between two states' numbers."""
    return max(abs(x - y) for u, v in zip(a, b, strict=True) for x, y in zip(u, v, strict=True))


# --- measurements -----------------------------------------------------------------------------------


@fifty
def measured_order(method: Method, kind: str, which: Which = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order from the local errors of one step at two step sizes: log2 of their ratio, minus one.

    Infinite if a large step has no error.
    """
    errors = []
    for h in (LARGE_STEP, *steps):
        end, time = Setting(method, kind, which, repeated=method.clock).timed_step(h)
        errors.append(distance(end, _exact_flow(kind, which, time)))
        if errors[0] < EXACT:
            return math.inf
    return float(mpmath.log(errors[1] / errors[2], 2)) - 1


@fifty
def asymmetry(method: Method, kind: str, which: Which = 0) -> Any:
    """Distance from the start after a step forward and the same step back, memory included."""
    setting = Setting(method, kind, which, repeated=method.memory > 0)
    h = number(LARGE_STEP)
    start = setting.begun(h)
    back = setting.step(-h, setting.t + h, setting.step(h, y=start))
    return distance(back, start)


def _nudged(y: Any, direction: int, size: Any) -> Any:
    """The state moved along one of six directions: rotation in the body frame, then momentum."""
    q, m = y
    shift = tuple(size if i == direction % 3 else 0 * size for i in range(3))
    return (mul(q, exp(shift)), m) if direction < 3 else (q, add(m, shift))


def _tangent(y: Any, near: Any) -> tuple[Any, Any]:
    """The small rotation (body frame) and momentum change from one state to a close one."""
    d = mul(conj(y[0]), near[0])
    return scale(2, (d[1], d[2], d[3])), sub(near[1], y[1])


def _form(m: Any, a: Any, b: Any) -> Any:
    """The canonical two-form of T*SO(3), trivialised by body rotations: dm.l' - dm'.l - m.(l x l')."""
    return dot(a[1], b[0]) - dot(b[1], a[0]) - dot(m, cross(a[0], b[0]))


NUDGE = mpmath.mpf(10) ** -14
"""Step of the central differences: their error is its square."""


@fifty
def symplectic_defect(method: Method, kind: str, which: Which = 0, h: float = LARGE_STEP) -> Any:
    """Largest change of the canonical two-form over a step, by central differences (error NUDGE^2)."""
    setting = Setting(method, kind, which)
    size = NUDGE
    end = setting.step(h)
    before, after = [], []
    for k in range(6):
        pair = [setting.step(h, y=_nudged(setting.y, k, s * size)) for s in (1, -1)]
        ahead, behind = (_tangent(end, y) for y in pair)
        after.append(tuple(scale(1 / (2 * size), sub(u, v)) for u, v in zip(ahead, behind, strict=True)))
        ahead, behind = (_tangent(setting.y, _nudged(setting.y, k, s * size)) for s in (1, -1))
        before.append(tuple(scale(1 / (2 * size), sub(u, v)) for u, v in zip(ahead, behind, strict=True)))
    return max(
        abs(_form(end[1], after[i], after[j]) - _form(setting.y[1], before[i], before[j]))
        for i in range(6)
        for j in range(i)
    )


@fifty
def poisson_defect(method: Method, which: Which = 0, h: float = LARGE_STEP) -> Any:
    """Largest entry of A hat(m0) A^T - hat(m1), A = dm1/dm0 of the free body."""
    setting = Setting(method, "free", which)
    size = NUDGE
    end = setting.step(h)[1]
    columns = []
    for k in range(3, 6):
        up, down = (setting.step(h, y=_nudged(setting.y, k, s * size))[1] for s in (1, -1))
        columns.append(scale(1 / (2 * size), sub(up, down)))
    rows = list(zip(*columns, strict=True))
    start = setting.y[1]
    axes = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    return max(abs(dot(rows[i], cross(start, rows[j])) + end[k]) for i, j, k in axes)


STEPS = 4


@fifty
def changes(method: Method, which: Which = 0) -> dict[str, Any]:
    """How much each conservable quantity changes over a few steps (only those the method could have)."""
    found = _node_changes(method, "free", which)
    if method.takes("potential"):
        found["energy_linear_potential"] = _node_changes(method, "linear", which)["energy"]
        found["energy_potential"] = _node_changes(method, "potential", which)["energy"]
    if method.halves:
        middle = _node_changes(method, "free", which, method.halves[0])
        found["energy_midpoint"], found["spatial_momentum_midpoint"] = middle["energy"], middle["spatial_momentum"]
    return {name: found[name] for name in CONSERVABLE if name in found}


def _node_changes(method: Method, kind: str, which: Which, half: Method | None = None) -> dict[str, Any]:
    """Changes of energy and momenta between steps, or between the midpoints that `half` leads to."""
    setting = Setting(method, kind, which)
    push_half = half.build(number) if half else None
    y, h = setting.y, number(LARGE_STEP)
    seen = []
    for n in range(STEPS + 1):
        t = setting.t + n * h
        here = y if push_half is None else push_half(h / 2, t, y, setting.system, setting.torque)[0]
        seen.append(invariants(setting.problem, here, setting.system))
        y = setting.step(h, t, y)
    first = seen[0]
    return {
        "energy": max(abs(e - first[0]) for e, _, _ in seen),
        "spatial_momentum": max(norm(sub(m, first[1])) for _, m, _ in seen),
        "momentum_norm": max(abs(n - first[2]) for _, _, n in seen),
    }


def invariants(problem: Problem, y: Any, system: Any) -> tuple[Any, Any, Any]:
    """Energy, spatial momentum, and length of the momentum."""
    q, m = y
    kinetic = dot(m, times(system[1], m)) / 2
    return kinetic + problem.potential(q, number), rotate(q, m), norm(m)


POINT_RADIUS = mpmath.mpf(10) ** -15
BUMP = mpmath.mpf(10) ** -25


@fifty
def torque_points(method: Method, kind: str, which: Which = 0) -> tuple[int, set[str]]:
    """How many distinct points (t, R) there are at which the torque enters the step, and which ends are among them.

    The points are those where the torque was asked; one counts if a torque changed there alone (by
    BUMP, within POINT_RADIUS) changes the result. Iterates that a solver left behind do not.
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
    used = [
        p for p in points if distance(setting.step(LARGE_STEP, torque=_bumped(setting, kind, p)), plain) > BUMP / 10**9
    ]
    ends = {"start": _point(kind, setting.t, setting.y[0]), "end": _point(kind, setting.t + LARGE_STEP, plain[0])}
    return len(used), {name for name, end in ends.items() if any(_same_point(end, p) for p in used)}


def _point(kind: str, t: Any, q: Any) -> Any:
    """A point (t, R); potentials know no time."""
    return (0 * t if kind == "potential" else t), q


def _points(setting: Setting, kind: str, t: Any, q: Any, *more: Any) -> list[Any]:
    """The points of one call of the torque: two of one between two states, none if only the potential is used of it."""
    if setting.method.differences and len(more) == 3:
        return [_point(kind, t, q), _point(kind, *more[:2])] if setting.method.differences == "torque" else []
    return [_point(kind, t, q)]


def _same_point(a: Any, b: Any) -> bool:
    return bool(distance(((a[0],), a[1]), ((b[0],), b[1])) < POINT_RADIUS)


def _bumped(setting: Setting, kind: str, point: Any) -> Callable[..., Any]:
    def bumped(t: Any, q: Any, m: Any, system: Any, *more: Any) -> Any:
        force = setting.torque(t, q, m, system, *more)
        rates = setting.method.clock and len(more) == 1  # these follow from the torque
        if rates or not any(_same_point(p, point) for p in _points(setting, kind, t, q, *more)):
            return force
        bump = (BUMP, 2 * BUMP, 3 * BUMP)
        if not isinstance(force[0], tuple):
            return add(force, bump)
        return tuple(add(f, bump) if isinstance(f, tuple) else f for f in force)  # the work is a number

    return bumped


@contextlib.contextmanager
def _listening() -> Iterator[list[Any]]:
    """Collect the first guesses of all equations that are solved."""
    guesses: list[Any] = []
    scalar.SOLVE_LISTENERS.append(guesses.append)
    try:
        yield guesses
    finally:
        scalar.SOLVE_LISTENERS.remove(guesses.append)


def _stages_of(guess: Any) -> int:
    """Implicit stages behind an unknown: a number, a vector, or up to two vectors a stage."""
    return (len(guess) + 1) // 2 if isinstance(guess, tuple) and isinstance(guess[0], tuple) else 1


@fifty
def implicit_stages(method: Method, which: Which = 0) -> int:
    """Implicit stages solved in one step with the most general field (some of `ep` serve the work done)."""
    with _listening() as guesses:
        Setting(method, method.needs, which, repeated=True).step(LARGE_STEP)
    return sum(map(_stages_of, guesses))


@fifty
def axial_momentum(method: Method, which: str) -> Any:
    """Momentum along the axis of a linear body after a step; no linear body has any."""
    setting = Setting(method, "free", which)
    m = setting.step(LARGE_STEP)[1]
    return max(abs(x) for x, moment in zip(m, setting.system[0], strict=True) if moment == 0)


@fifty
def frame_dependence(method: Method, which: Which = 0) -> Any:
    """Difference between turning the start and turning the result, for the free body: always zero."""
    setting = Setting(method, "free", which)
    turn = unit(tuple(number(x) for x in (3, -1, 2, 5)))
    q, m = setting.step(LARGE_STEP)
    moved = setting.step(LARGE_STEP, y=(mul(turn, setting.y[0]), setting.y[1]))
    return distance(moved, (mul(turn, q), m))


SMALL_STEP = mpmath.mpf(10) ** -20
"""Step size at which the round-off of a state and that of its increment lie twenty digits apart."""


@fifty
def increment_error(method: Method, which: Which = 0) -> Any:
    """Error of one small step on a state with low parts, relative to the step size; 1 if such a state is not taken."""
    setting = Setting(method, method.needs, which, repeated=True)
    try:
        new, _ = setting.kernel(SMALL_STEP, setting.t, widened(setting.y), setting.system, setting.torque)
        with mpmath.workdps(2 * DIGITS):
            kernel = method.build(number)
            exact, _ = kernel(SMALL_STEP, setting.t, setting.y, setting.system, setting.torque)
            return distance(rounded(new), exact) / SMALL_STEP
    except (TypeError, ValueError):
        return mpmath.mpf(1)
