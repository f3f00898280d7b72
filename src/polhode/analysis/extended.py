"""Checks of methods with a Nosé-Hoover chain, in 50 digits: the motion of body and chain together.

With y = (R, Pi, eta, v), f degrees of freedom and the potential U,

- the step is compared with the solution of the equations (`kernels/nose_hoover`, with Pi' = Pi x omega + T - v_1 Pi),
  which the extrapolated midpoint rule computes (W. B. Gragg, SIAM J. Numer. Anal. 2 (1965) 384-403);
- the extended energy, that of body and chain, must change over a step as declared;
- the measure exp(f eta_1 + eta_2 + ...) dR dPi deta dv is kept if the determinant of the derivative of a step, with
  rotations in the body frame, times the ratio of these weights is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import mpmath

from ..kernels.so3 import add, cross, mul, sub, times, unit
from ..methods import Method
from ..methods.combinators.nose_hoover import chain_states
from ..methods.queries import ChainStart
from ..numbers.multiprecision import number
from ..run.integrator import torque_kernel
from .generic_problems import ALL_STARTS, KT, LINEAR, TAU, Which, chain_start, generic
from .measurements import NUDGE, invariants, nudged, tangent
from .setting import EXACT, FINE_STEPS, LARGE_STEP, LOCAL_STEPS, VISIBLE, Setting, agrees, distance, fifty

COLUMNS = 14
"""Columns of the extrapolation: its order is twice their number."""


# --- the equations ----------------------------------------------------------------------------------


def _shifted(y: Any, size: Any, rate: Any) -> Any:
    """Return y + size rate for nested tuples."""
    if isinstance(y, tuple):
        return tuple(_shifted(a, size, b) for a, b in zip(y, rate, strict=True))
    return y + size * rate


class Equations:
    """The equations of a generic body with a chain."""

    def __init__(self, kind: str, which: Which, links: int) -> None:
        plain = generic(kind, which)
        (q, m), self.system = plain.kernel_data(number)
        self.torque, self.t = torque_kernel(plain, number), number(plain.t0)
        self.degrees = number(2 if which in LINEAR else 3)
        mass = number(KT) * number(TAU) ** 2
        self.masses = (self.degrees * mass, *(mass for _ in range(links - 1)))
        positions, velocities = (tuple(map(number, part)) for part in chain_start(links))
        self.start = q, m, positions, velocities

    def rates(self, t: Any, y: Any) -> Any:
        """Rates of attitude, momentum, positions and velocities."""
        (q, m, _, v), masses, kT = y, self.masses, number(KT)
        omega = times(self.system[1], m)
        turn = mul(q, (0 * t, *omega))
        force = add(cross(m, omega), self.torque(t, unit(q), m, self.system))
        momentum = sub(force, tuple(v[0] * x for x in m))
        kinetic = sum(x * w for x, w in zip(m, omega, strict=True))
        pushes = [kinetic - self.degrees * kT, *(masses[k] * v[k] ** 2 - kT for k in range(len(v) - 1))]
        frictions = [*(v[k] * v[k + 1] for k in range(len(v) - 1)), 0 * t]
        changes = tuple(p / mass - f for p, mass, f in zip(pushes, masses, frictions, strict=True))
        return tuple(x / 2 for x in turn), momentum, v, changes


@functools.cache
def extended_flow(kind: str, which: Which, links: int, h: Any) -> Any:
    """Attitude, momentum, positions and velocities after the time h, by the extrapolated midpoint rule."""
    of = Equations(kind, which, links)
    table: list[Any] = []
    for k in range(1, COLUMNS + 1):
        steps = 2 * k
        part = h / steps
        before, now = of.start, _shifted(of.start, part, of.rates(of.t, of.start))
        for n in range(1, steps):
            before, now = now, _shifted(before, 2 * part, of.rates(of.t + n * part, now))
        row = [now]
        for j, last in enumerate(table, 1):
            weight = 1 / (number(k) ** 2 / number(k - j) ** 2 - 1)
            row.append(_shifted(row[-1], weight, _shifted(row[-1], -1, last)))
        table = row
    q, *rest = table[-1]
    return unit(q), *rest


def _parts(method: Method, y: Any) -> Any:
    """Attitude, momentum, positions and velocities in the state of a method."""
    links = method.thermostat.links if method.thermostat is not None else 0
    return y[0], y[1], y[2][1 : 1 + links], y[2][1 + links : 1 + 2 * links]


def extended_error(method: Method, kind: str, which: Which, h: float) -> Any:
    """Distance from the solution of the equations after one step."""
    assert method.thermostat is not None
    end = _parts(method, Setting(method, kind, which, repeated=True).step(h))
    return distance(end, extended_flow(kind, which, method.thermostat.links, number(h)))


# --- extended energy --------------------------------------------------------------------------------


def _energy(method: Method, setting: Setting, y: Any) -> Any:
    """The energy of body and chain; that of the chain from its positions and velocities, not from the memory."""
    _, _, x, v = _parts(method, y)
    of = Equations("free", setting.which, len(x))
    kinetic = sum(mass * w * w for mass, w in zip(of.masses, v, strict=True)) / 2
    chain = kinetic + number(KT) * (of.degrees * x[0] + sum(x[1:]))
    return invariants(setting.problem, y[:2], setting.system)[0] + chain


@fifty
def kept_energy_error(method: Method, which: int = 0) -> Any:
    """Distance between the energy of the chain that a step keeps and that of its links."""
    setting = Setting(method, "free", which, repeated=True)
    end = setting.step(LARGE_STEP)
    return abs(invariants(setting.problem, end[:2], setting.system)[0] + end[2][0] - _energy(method, setting, end))


@fifty
def extended_energy_slope(method: Method, kind: str, which: int, steps: tuple[float, float] = LOCAL_STEPS) -> float:
    """Order of the change of the extended energy over a step, minus one; infinite if it does not change."""
    setting = Setting(method, kind, which, repeated=True)
    changes = []
    for h in map(number, steps):
        start = setting.initial_state(h)
        changes.append(abs(_energy(method, setting, setting.step(h, y=start)) - _energy(method, setting, start)))
    return math.inf if changes[0] < EXACT else float(mpmath.log(changes[0] / changes[1], 2)) - 1


# --- the measure ------------------------------------------------------------------------------------


def _moved(y: Any, direction: int, size: Any) -> Any:
    """The state moved along one of its directions: rotation, momentum, then positions and velocities of the links."""
    if direction < 6:
        return (*nudged(y[:2], direction, size), y[2])
    place = direction - 5
    return y[0], y[1], (*y[2][:place], y[2][place] + size, *y[2][place + 1 :])


@fifty
def measure_defect(method: Method, kind: str, which: int = 0, h: float = LARGE_STEP) -> Any:
    """How much a step changes the measure: the logarithm of the determinant, plus that of the ratio of weights."""
    setting = Setting(method, kind, which, repeated=True)
    start = setting.initial_state(h)
    end = setting.step(h, y=start)
    count = len(_parts(method, end)[2])
    columns = []
    for direction in range(6 + 2 * count):
        up, down = (setting.step(h, y=_moved(start, direction, s * NUDGE)) for s in (1, -1))
        of_chain = [(a - b) / (2 * NUDGE) for a, b in zip(up[2][1 : 1 + 2 * count], down[2][1:], strict=False)]
        pairs = zip(tangent(end[:2], up[:2]), tangent(end[:2], down[:2]), strict=True)
        columns.append([(a - b) / (2 * NUDGE) for u, v in pairs for a, b in zip(u, v, strict=True)] + of_chain)
    grown = mpmath.log(abs(mpmath.det(mpmath.matrix(columns))))
    shifts = [b - a for a, b in zip(_parts(method, start)[2], _parts(method, end)[2], strict=True)]
    return abs(grown + 3 * shifts[0] + sum(shifts[1:]))


# --- the check --------------------------------------------------------------------------------------


def _is_bound(method: Method) -> bool:
    """Whether the declared orders of the extended energy are lower bounds.

    The energy error of a scheme without structure may be of higher order than the scheme, by its coefficients: that of
    the explicit midpoint rule is of order 3.
    """
    assert method.thermostat is not None
    return not (method.symmetric or method.thermostat.extended_measure)


def check_extended(method: Method, starts: Sequence[int] = ALL_STARTS) -> list[str]:
    """A thermostat is declared if one is asked for, and only then; its energy and measure are as declared."""
    declared, asked = method.thermostat, method.asks.find(ChainStart)
    if declared is None:
        faults = ["asks for a thermostat, but declares none"] if asked else []
        return faults or (["declares states of a chain, but no thermostat"] if method.states else [])
    if asked is None or asked.links != declared.links:
        return [f"declares a chain of {declared.links} links, but asks for {asked or 'no thermostat'}"]
    if method.states != chain_states(declared.links):
        return [f"declares the states {method.states}, which are not those of its chain"]
    faults = []
    if not max(kept_energy_error(method, which) for which in starts) <= EXACT:
        faults.append("the energy of the chain in its memory is not that of its links")
    kinds = {"free": ("extended_energy_free", declared.extended_energy_free)}
    if method.takes("potential"):
        kinds["potential"] = "extended_energy", declared.extended_energy
    for kind, (name, order) in kinds.items():
        for which in starts:
            measured = extended_energy_slope(method, kind, which)
            if not agrees(measured, order):
                measured = extended_energy_slope(method, kind, which, FINE_STEPS)
            if not (agrees(measured, order) or (_is_bound(method) and measured > order)):
                faults.append(f"{name} declared {order}, measured {measured:.2f} on start {which}")
    return faults + _check_measure(method, list(kinds), starts)


def _check_measure(method: Method, kinds: Sequence[str], starts: Sequence[int]) -> list[str]:
    """The measure is kept if declared so, and else visibly changes; central differences have an error of NUDGE^2."""
    assert method.thermostat is not None
    declared = method.thermostat.extended_measure
    defect = max(measure_defect(method, kind, which) for kind in kinds for which in starts)
    if declared and not defect <= 1e-25:
        return [f"declared to keep the extended measure, but a step changes it by {mpmath.nstr(defect, 3)}"]
    if declared is False and not defect >= VISIBLE:
        return [f"declared not to keep the extended measure, but a step changes it by {mpmath.nstr(defect, 3)} only"]
    return [] if declared is not None else ["declares nothing about the extended measure, and it can be measured"]
