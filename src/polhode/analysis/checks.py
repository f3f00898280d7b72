"""Does a method have the properties it declares? Measured in 50 digits, both ways.

What is declared must hold to round-off or at the measured order; what is not declared must visibly
fail. "Exact" and "not exact" lie thirty decades apart, so no threshold here needs tuning. The problems
are generic: three different moments, no zero or equal components, torques neither linear nor constant.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath

from .. import iterate
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
from .backward_error import Mechanics, corrections

DIGITS = 50
EXACT = mpmath.mpf(10) ** -44
"""Below this a difference is round-off of 50 digits, amplified at most a million times."""
VISIBLE = mpmath.mpf(10) ** -22
"""Above this a difference is a property of the method."""
LOCAL_STEPS = (2**-7, 2**-8)
"""Step sizes whose local errors give the order: the next order changes the slope by a few times 2^-8."""
SLOPE_TOLERANCE = 0.1
FINE_STEPS = (2**-12, 2**-13)
"""Where the leading term is small by accident, the next one is below it here."""
LARGE_STEP = 2**-3
"""Step size for the other checks: large, so that what is not exact shows."""


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
FIELDS: dict[str, Callable[[], Any]] = {
    "free": lambda: None,
    "potential": lambda: hills(0.7, -0.4),
    "linear": lambda: linear(0.8, 0.3, -0.5),
    "attitude": lambda: push(0.6),
    "velocity": lambda: stir(0.7),
}


@functools.cache
def generic(kind: str, which: int = 0) -> Problem:
    """A generic problem with this kind of field."""
    start = STARTS[which]
    q = start["attitude"]
    length = math.sqrt(sum(x * x for x in q))
    return Problem(
        Body(start["inertia"]), FIELDS[kind](), attitude=[x / length for x in q], momentum=start["momentum"],
        t0=start["t0"],
    )  # fmt: skip


@functools.cache
def _exact_flow(kind: str, which: int, h: float) -> Any:
    from .taylor import flow

    return flow(generic(kind, which), h, digits=DIGITS)


def _fifty(check: Callable[..., Any]) -> Callable[..., Any]:
    """Run a check with 50 digits."""

    @functools.wraps(check)
    def run(*args: Any, **named: Any) -> Any:
        with mpmath.workdps(DIGITS + 5):
            return check(*args, **named)

    return run


class Setting:
    """A method on a generic problem, in 50 digits: state, system, torque and step at hand."""

    def __init__(self, method: Method, kind: str, which: int = 0, repeated: bool = False) -> None:
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


@_fifty
def measured_order(method: Method, kind: str, which: int = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
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


@_fifty
def asymmetry(method: Method, kind: str, which: int = 0) -> Any:
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


@_fifty
def symplectic_defect(method: Method, kind: str, which: int = 0) -> Any:
    """Largest change of the canonical two-form over a step, by central differences (error NUDGE^2)."""
    setting = Setting(method, kind, which)
    size = NUDGE
    end = setting.step(LARGE_STEP)
    before, after = [], []
    for k in range(6):
        pair = [setting.step(LARGE_STEP, y=_nudged(setting.y, k, s * size)) for s in (1, -1)]
        ahead, behind = (_tangent(end, y) for y in pair)
        after.append(tuple(scale(1 / (2 * size), sub(u, v)) for u, v in zip(ahead, behind, strict=True)))
        ahead, behind = (_tangent(setting.y, _nudged(setting.y, k, s * size)) for s in (1, -1))
        before.append(tuple(scale(1 / (2 * size), sub(u, v)) for u, v in zip(ahead, behind, strict=True)))
    return max(
        abs(_form(end[1], after[i], after[j]) - _form(setting.y[1], before[i], before[j]))
        for i in range(6)
        for j in range(i)
    )


@_fifty
def poisson_defect(method: Method, which: int = 0) -> Any:
    """Largest entry of A hat(m0) A^T - hat(m1), A = dm1/dm0 of the free body."""
    setting = Setting(method, "free", which)
    size = NUDGE
    end = setting.step(LARGE_STEP)[1]
    columns = []
    for k in range(3, 6):
        up, down = (setting.step(LARGE_STEP, y=_nudged(setting.y, k, s * size))[1] for s in (1, -1))
        columns.append(scale(1 / (2 * size), sub(up, down)))
    rows = list(zip(*columns, strict=True))
    start = setting.y[1]
    axes = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    return max(abs(dot(rows[i], cross(start, rows[j])) + end[k]) for i, j, k in axes)


STEPS = 4


@_fifty
def changes(method: Method, which: int = 0) -> dict[str, Any]:
    """How much each conservable quantity changes over a few steps (only those the method could have)."""
    found = _node_changes(method, "free", which)
    if method.takes("potential"):
        found["energy_linear_potential"] = _node_changes(method, "linear", which)["energy"]
        found["energy_potential"] = _node_changes(method, "potential", which)["energy"]
    if method.halves:
        middle = _node_changes(method, "free", which, method.halves[0])
        found["energy_midpoint"], found["spatial_momentum_midpoint"] = middle["energy"], middle["spatial_momentum"]
    return {name: found[name] for name in CONSERVABLE if name in found}


def _node_changes(method: Method, kind: str, which: int, half: Method | None = None) -> dict[str, Any]:
    """Changes of energy and momenta between steps, or between the midpoints that `half` leads to."""
    setting = Setting(method, kind, which)
    push_half = half.build(number) if half else None
    y, h = setting.y, number(LARGE_STEP)
    seen = []
    for n in range(STEPS + 1):
        t = setting.t + n * h
        here = y if push_half is None else push_half(h / 2, t, y, setting.system, setting.torque)[0]
        seen.append(_invariants(setting.problem, here, setting.system))
        y = setting.step(h, t, y)
    first = seen[0]
    return {
        "energy": max(abs(e - first[0]) for e, _, _ in seen),
        "spatial_momentum": max(norm(sub(m, first[1])) for _, m, _ in seen),
        "momentum_norm": max(abs(n - first[2]) for _, _, n in seen),
    }


def _invariants(problem: Problem, y: Any, system: Any) -> tuple[Any, Any, Any]:
    q, m = y
    kinetic = dot(m, times(system[1], m)) / 2
    return kinetic + problem.potential(q, number), rotate(q, m), norm(m)


POINT_RADIUS = mpmath.mpf(10) ** -15
BUMP = mpmath.mpf(10) ** -25


@_fifty
def torque_points(method: Method, kind: str) -> tuple[int, set[str]]:
    """How many distinct points (t, R) there are at which the torque enters the step, and which ends are among them.

    The points are those where the torque was asked; one counts if a torque changed there alone (by
    BUMP, within POINT_RADIUS) changes the result. Iterates that a solver left behind do not.
    """
    setting = Setting(method, kind, repeated=True)
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
def _counted_solves() -> Iterator[list[int]]:
    """Count the solves of `iterate`: each ends with one `settled` that is true."""
    count, real = [0], iterate.settled

    def counting(condition: Any) -> bool:
        ended = real(condition)
        count[0] += ended
        return ended

    iterate.settled = counting
    try:
        yield count
    finally:
        iterate.settled = real


@_fifty
def solver_calls(method: Method) -> int:
    """Implicit equations solved in one free step."""
    with _counted_solves() as count:
        Setting(method, "free", repeated=True).step(LARGE_STEP)
    return count[0]


@_fifty
def frame_dependence(method: Method) -> Any:
    """Difference between turning the start and turning the result, for the free body: always zero."""
    setting = Setting(method, "free")
    turn = unit(tuple(number(x) for x in (3, -1, 2, 5)))
    q, m = setting.step(LARGE_STEP)
    moved = setting.step(LARGE_STEP, y=(mul(turn, setting.y[0]), setting.y[1]))
    return distance(moved, (mul(turn, q), m))


SMALL_STEP = mpmath.mpf(10) ** -20
"""Step size at which the round-off of a state and that of its increment lie twenty digits apart."""


@_fifty
def increment_error(method: Method) -> Any:
    """Error of one small step on a state with low parts, relative to the step size; 1 if such a state is not taken."""
    setting = Setting(method, method.needs, repeated=True)
    try:
        new, _ = setting.kernel(SMALL_STEP, setting.t, widened(setting.y), setting.system, setting.torque)
        with mpmath.workdps(2 * DIGITS):
            kernel = method.build(number)
            exact, _ = kernel(SMALL_STEP, setting.t, setting.y, setting.system, setting.torque)
            return distance(rounded(new), exact) / SMALL_STEP
    except (TypeError, ValueError):
        return mpmath.mpf(1)


# --- verdicts ---------------------------------------------------------------------------------------


def _exactness(what: str, declared: bool | None, defect: Any) -> list[str]:
    """Compare a declared yes or no with a measured defect; None promises nothing."""
    size = mpmath.nstr(defect, 3)
    if declared is True and defect > EXACT:
        return [f"declared {what}, but the defect is {size}"]
    if declared is False and defect < VISIBLE:
        return [f"declared not {what}, but the defect is only {size}"]
    return []


def _agrees(measured: float, declared: float) -> bool:
    return measured == declared or abs(measured - declared) <= SLOPE_TOLERANCE


def check_order(method: Method) -> list[str]:
    """Order with and without torque, on every generic start, from both sides."""
    faults = []
    kinds = {"free": method.order_free} | ({method.needs: method.order} if method.needs != "free" else {})
    for kind, declared in kinds.items():
        for which in range(len(STARTS)):
            if declared is None:
                continue
            measured = measured_order(method, kind, which)
            if not _agrees(measured, declared):
                measured = measured_order(method, kind, which, FINE_STEPS)
            if not _agrees(measured, declared):
                faults.append(f"declared order {declared} ({kind}), measured {measured:.2f} on start {which}")
    return faults


def check_symmetric(method: Method) -> list[str]:
    """Symmetry with the most general field the method takes."""
    return _exactness("symmetric", method.symmetric, max(asymmetry(method, method.needs, i) for i in range(2)))


def check_symplectic(method: Method) -> list[str]:
    """The two-form of T*SO(3), free and with a potential. Differences leave NUDGE^2 = 1e-28."""
    kinds = ["free", *(["potential"] if method.takes("potential") else [])]
    defect = max(symplectic_defect(method, kind) for kind in kinds)
    return _exactness("symplectic", method.symplectic, defect if defect > 1e-25 else 0 * defect)


def check_poisson(method: Method) -> list[str]:
    """The bracket of so(3)* for the free body."""
    defect = poisson_defect(method)
    return _exactness("poisson", method.poisson, defect if defect > 1e-25 else 0 * defect)


def check_conserves(method: Method) -> list[str]:
    """Everything declared is kept; everything else visibly changes."""
    measured = changes(method)
    faults = [f"{name} cannot be conserved by this kind of method" for name in method.conserves - set(measured)]
    for name, change in measured.items():
        faults += _exactness(f"to conserve {name}", name in method.conserves, change)
    return faults


def check_cost(method: Method) -> list[str]:
    """Implicit or not, number of solves, number of torque points."""
    calls = solver_calls(method)
    faults = []
    if method.implicit != (calls > 0) or (method.solves > 0) != method.implicit or calls > method.solves:
        faults.append(f"declared implicit={method.implicit}, solves={method.solves}; measured {calls} solver calls")
    if method.needs != "free":
        points, ends = torque_points(method, method.needs)
        if points != method.torque_evals:
            faults.append(f"declared {method.torque_evals} torque evaluations, measured {points}")
        if ends != method.torque_at and not method.clock:
            faults.append(f"declared to take the torque at {set(method.torque_at)} of the step, measured {ends}")
    return faults


def check_frame(method: Method) -> list[str]:
    """No method may depend on the choice of the space frame."""
    return _exactness("independent of the space frame", True, frame_dependence(method))


def check_increments(method: Method) -> list[str]:
    """Increments with an error of their own round-off, or states without low parts."""
    return _exactness("written by increments", method.increments, increment_error(method))


@_fifty
def modified_slope(method: Method, kind: str, which: int = 0, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order in h of the change of the modified energy over one step, infinite if none.

    With its first correction, or the first two of a method that is not symmetric: the powers p, p + 1 of h.
    """
    problem = generic(kind, which)
    more = corrections(method, problem, 1 if method.symmetric else 2)
    mechanics = Mechanics(problem, method, number)
    changed = []
    for h in map(number, steps):
        setting = Setting(method, kind, which)
        first, last = (
            _invariants(problem, y, setting.system)[0] + more(mechanics, y, h) for y in (setting.y, setting.step(h))
        )
        changed.append(abs(last - first))
    return math.inf if changed[0] < EXACT else float(mpmath.log(changed[0] / changed[1], 2))


def check_flows(method: Method) -> list[str]:
    """The flows a step is said to be made of: their modified energy is kept to two orders more than the energy."""
    if not method.flows:
        return []
    faults = []
    for kind in ("free", *(["potential"] if method.takes("potential") else [])):
        order = method.order_free if kind == "free" else method.order
        for which in range(2):
            measured = modified_slope(method, kind, which)
            if measured < order + 3 - SLOPE_TOLERANCE:
                measured = modified_slope(method, kind, which, FINE_STEPS)
            if measured < order + 3 - SLOPE_TOLERANCE and order < math.inf:
                faults.append(f"flows declared, but their modified energy changes as h^{measured:.2f} ({kind}) a step")
    return faults


# --- a formula for the symplectic defect ------------------------------------------------------------


def _rotation_vector(start: Any, end: Any) -> Any:
    """The psi with R_1 = R_0 exp(psi)."""
    q = mul(conj(start[0]), end[0])
    v = (q[1], q[2], q[3])
    size = norm(v)
    return scale(2 * mpmath.atan2(size, q[0]) / size, v)


def _defect_parts(method: Method) -> list[tuple[Method, float]]:
    """The steps, over parts of h, of which the formula of each is declared; none if there is no formula."""
    if method.symplectic_defect:
        return [(method, 1.0)]
    if method.halves and all(half.symplectic_defect for half in method.halves):
        return [(half, 0.5) for half in method.halves]
    return []


def _path(method: Method, setting: Setting, y: Any) -> list[Any]:
    """The states at the ends of these steps."""
    states = [y]
    for part, fraction in _defect_parts(method):
        h = number(LARGE_STEP * fraction)
        new, miss = whole(part)(number)(h, setting.t, states[-1], setting.system, setting.torque)
        if not good(new, miss):
            raise ArithmeticError(f"a step of {part.name} was not solved: miss {mpmath.nstr(miss, 3)}")
        states.append(new)
    return states


@_fifty
def defect_formula_error(method: Method, which: int = 0) -> tuple[Any, Any]:
    """How far the growth of the two-form in a free step is from the declared formula, and how large it is itself.

    By central differences, in all pairs of directions; over several steps the formulas of each add up.
    """
    setting, parts = Setting(method, "free", which), _defect_parts(method)
    path = _path(method, setting, setting.y)
    near = [[_path(method, setting, _nudged(setting.y, k, s * NUDGE)) for s in (1, -1)] for k in range(6)]
    slopes = [[_difference(path[n], up[n], down[n]) for up, down in near] for n in range(len(path))]
    turns = []
    for n in range(len(parts)):
        pairs = [tuple(_rotation_vector(*states[n : n + 2]) for states in both) for both in near]
        turns.append([scale(1 / (2 * NUDGE), sub(up, down)) for up, down in pairs])
    formulas = [
        part.symplectic_defect(number(LARGE_STEP * fraction), _rotation_vector(*path[n : n + 2]), setting.system)
        for n, (part, fraction) in enumerate(parts)
        if part.symplectic_defect
    ]
    worst = largest = mpmath.mpf(0)
    for i in range(6):
        for j in range(i):
            first, last = (_form(path[n][1], slopes[n][i], slopes[n][j]) for n in (0, -1))
            said = sum(dot(c, cross(turn[i], turn[j])) for c, turn in zip(formulas, turns, strict=True))
            worst, largest = max(worst, abs(last - first - said)), max(largest, abs(last - first))
    return worst, largest


def _difference(y: Any, up: Any, down: Any) -> Any:
    """The tangent at y of a path through two close states, by a central difference."""
    pair = (_tangent(y, up), _tangent(y, down))
    return tuple(scale(1 / (2 * NUDGE), sub(u, v)) for u, v in zip(*pair, strict=True))


def check_symplectic_defect(method: Method) -> list[str]:
    """The formula for the growth of the two-form, where one is declared; differences leave NUDGE^2 = 1e-28."""
    if not _defect_parts(method):
        return []
    faults = []
    for which in range(2):
        error, size = defect_formula_error(method, which)
        if error > 1e-25:
            faults.append(f"the formula for the symplectic defect is off by {mpmath.nstr(error, 3)} on start {which}")
        if size < VISIBLE:
            faults.append(f"a formula for the symplectic defect, but the defect is only {mpmath.nstr(size, 3)}")
    return faults


CHECKS: tuple[Callable[[Method], list[str]], ...] = (
    check_order, check_symmetric, check_symplectic, check_poisson, check_conserves, check_cost, check_frame,
    check_increments, check_flows, check_symplectic_defect,
)  # fmt: skip


def check(method: Method) -> list[str]:
    """Everything a method declares that is not so; empty for an honest method."""
    return [fault for one in CHECKS for fault in one(method)]
