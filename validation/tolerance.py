"""Test of `ph.solve(problem, tol=...)`: error against tolerance, and error against estimate.

    python validation/tolerance.py [seed] [problems of each kind] [processes] [1: own reference]

Random bodies over six decades of size, initial states, fields from a thousandth to a thousand times as strong as the
rotation, and tolerances (1e-3 to 1e-12), of eight kinds; in six the torque depends on time:
smooth, with an undeclared pulse of 1/30 to 1/10000 of the run, a burn down to 1e-9 of the run, a table,
and repeated pulses. The reference is independent of the library: the modified midpoint rule
extrapolated eight times (Gragg, Bulirsch and Stoer) in 80-bit numbers, with hand-written torques and
steps that end on all jumps and are short compared with pulses. It is used if its own error, from steps of another
length, is below a tenth of the tolerance and of the measured error. It takes seconds for each problem. The library's
own reference, Taylor steps with tolerances of 1e-15 and 3e-15, takes milliseconds, and shows the same as long as
Taylor steps are right, for which the independent reference is there.

The columns are, for each kind: problems judged; problems whose result reported that it misses the tolerance (told);
problems with too poor a reference (poor); median and largest error/tolerance and error/estimate; share of estimates
within a factor of 5 of the error, where the error is above the round-off of the run.

Measured with `... 3 140 15 1`, with `... 6 140 1 1` (one core, 7 minutes), and the first 200 problems of `... 4 40 15`:

    seed     judged told poor   error/tol median, largest   error/estimate median, largest   within 5
    3, own     1051    0   69        0.008      1.4                   1      4.9          100.0 % of 849
    6, own     1051    0   69        0.006      1.9                   1      5.9           99.9 % of 851
    4           191    0    9        0.005      0.9                   1      2.2          100.0 % of 151
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

L = np.longdouble
COLUMNS = 8
Torque = Callable[[Any, Any, Any], Any]


# --- the reference ----------------------------------------------------------------------------------


def rotation(q: Any) -> Any:
    """The matrix of a quaternion of any length."""
    a, b, c, d = q / np.sqrt((q * q).sum())
    return np.array([
        [1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)],
    ])  # fmt: skip


def cross(a: Any, b: Any) -> Any:
    """The vector product without rounding to doubles, which NumPy's function would do."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def slope(t: Any, y: Any, moments: Any, torque: Torque) -> Any:
    """Euler's equations: q' = q (0, w)/2, m' = m x w + T."""
    q, m = y[:4], y[4:]
    w = m / moments
    turn = np.array([-(q[1:] * w).sum(), *(q[0] * w + cross(q[1:], w))]) / 2
    return np.concatenate([turn, cross(m, w) + torque(t, rotation(q), w)])


def extrapolated(t: Any, y: Any, h: Any, moments: Any, torque: Torque) -> Any:
    """One step of the modified midpoint rule with 2, 4, ..., 16 substeps, extrapolated in their squared length."""
    first, table = slope(t, y, moments, torque), []
    for k in range(COLUMNS):
        n = 2 * (k + 1)
        part = h / n
        a, b = y, y + part * first
        for i in range(1, n):
            a, b = b, a + 2 * part * slope(t + i * part, b, moments, torque)
        row = [(a + b + part * slope(t + h, b, moments, torque)) / 2]
        for j in range(k):
            ratio = L(n) ** 2 / L(n - 2 * (j + 1)) ** 2 - 1
            row.append(row[-1] + (row[-1] - table[-1][j]) / ratio)
        table.append(row)
    return table[-1][-1]


def reference(start: Any, moments: Any, pieces: list[tuple[float, float, float, Torque]]) -> Any:
    """The state after consecutive time intervals (begin, end, longest step, torque)."""
    y, moments = np.array(start, dtype=L), np.array(moments, dtype=L)
    for begin, end, longest, torque in pieces:
        n = max(1, math.ceil((end - begin) / longest))
        h = (L(end) - L(begin)) / n
        for i in range(n):
            y = extrapolated(L(begin) + i * h, y, h, moments, torque)
            y[:4] /= np.sqrt((y[:4] ** 2).sum())
    return y


# --- random problems --------------------------------------------------------------------------------


@ph.potential
def top(R: Any, a: Any, b: Any) -> Any:
    """A heavy top with a second harmonic."""
    return a * R[2][2] + b * R[0][1] * R[0][1]


@ph.torque
def driven(t: Any, R: Any, omega: Any, a: Any, rate: Any, drag: Any, g: Any) -> Any:
    """A drive, drag and weight."""
    push = a * math.sin(rate * t)
    return push - drag * omega[0] + g * R[2][1], push / 2 - drag * omega[1] - g * R[2][0], -drag * omega[2]


@ph.torque(frame="space")
def turning(t: Any, R: Any, a: Any, rate: Any) -> Any:
    """A rotating torque in space."""
    return a * math.cos(rate * t) * R[1][2], -a * math.sin(rate * t) * R[0][2], a / 3


@ph.torque
def pulse(t: Any, R: Any, a: Any, centre: Any, width: Any, g: Any) -> Any:
    """A pulse and weight."""
    p = a * math.exp(-(((t - centre) / width) ** 2))
    return p + g * R[2][1], p / 2 - g * R[2][0], p / 5


@ph.torque
def comb(t: Any, R: Any, a: Any, rate: Any, g: Any) -> Any:
    """Repeated pulses, and weight."""
    p = ph.where(math.cos(rate * t) > 0.9, a, 0.0)
    return p + g * R[2][1], -g * R[2][0], p / 3


@ph.torque
def steady(R: Any, omega: Any, a: Any, b: Any, c: Any, drag: Any, g: Any) -> Any:
    """A torque fixed in the body, a harmonic, drag and weight: nothing depends on time."""
    x, y, z = omega
    return a - drag * x + g * R[2][1], b - drag * y - g * R[2][0] + c * R[0][1] * R[2][2], -drag * z


def weight(g: float) -> Torque:
    """Torque of a top with U = g R33."""
    return lambda t, R, w: np.array([g * R[2, 1], -g * R[2, 0], 0 * w[0]])


def made(kind: str, rng: Any, moments: Any, energy: float, span: float) -> tuple[Any, list[Any], float]:
    """A field, the (begin, end, longest, torque) of its reference from 0 to span, and its largest torque."""
    inf, g = math.inf, energy * rng.normal()
    if kind == "top":
        a, b = energy * rng.normal(size=2)

        def force(t: Any, R: Any, w: Any) -> Any:
            G = np.zeros((3, 3), dtype=L)
            G[2, 2], G[0, 1] = a, 2 * b * R[0, 1]
            M = R.T @ G
            return -np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])

        return top(a, b), [(0.0, span, inf, force)], abs(a) + 2 * abs(b)
    if kind == "steady":
        a, b, c = energy * rng.normal(size=3)
        drag = 0.05 * moments.mean() / span

        def force(t: Any, R: Any, w: Any) -> Any:
            harmonic = c * R[0, 1] * R[2, 2]
            return np.array([a + g * R[2, 1], b - g * R[2, 0] + harmonic, 0 * w[0]]) - drag * w

        return steady(a, b, c, drag, g), [(0.0, span, inf, force)], abs(a) + abs(b) + abs(c) + abs(g)
    if kind == "driven":
        a, rate, drag = energy * rng.normal(), 10.0 ** rng.uniform(-0.5, 2.0) / span * 5, 0.05 * moments.mean() / span

        def force(t: Any, R: Any, w: Any) -> Any:
            p = a * np.sin(rate * t)
            return np.array([p - drag * w[0] + g * R[2, 1], p / 2 - drag * w[1] - g * R[2, 0], -drag * w[2]])

        return driven(a, rate, drag, g), [(0.0, span, 1 / rate, force)], abs(a) + abs(g)
    if kind == "turning":
        a, rate = energy * rng.normal(), 10.0 ** rng.uniform(-0.5, 1.5) / span * 5

        def force(t: Any, R: Any, w: Any) -> Any:
            return R.T @ np.array([a * np.cos(rate * t) * R[1, 2], -a * np.sin(rate * t) * R[0, 2], a / L(3)])

        return turning(a, rate), [(0.0, span, 1 / rate, force)], abs(a)
    if kind == "pulse":
        width, centre = span * 10.0 ** rng.uniform(-4, -1.5), span * rng.uniform(0.05, 0.95)
        a = rng.choice([-1, 1]) * min(energy * 30, energy * span / width)

        def force(t: Any, R: Any, w: Any) -> Any:
            p = a * np.exp(-(((t - L(centre)) / L(width)) ** 2))
            return np.array([p + g * R[2, 1], p / 2 - g * R[2, 0], p / 5])

        low, high = max(0.0, centre - 9 * width), min(span, centre + 9 * width)
        pieces = [(0.0, low, inf, weight(g)), (low, high, width / 4, force), (high, span, inf, weight(g))]
        return pulse(a, centre, width, g), [x for x in pieces if x[1] > x[0]], abs(g)
    if kind == "burn":
        length = span * 10.0 ** rng.uniform(-9, -1)
        begin = rng.uniform(0, span - length)
        stop, a = begin + length, rng.normal(size=3) * energy * min(30.0, span / length)
        field = ph.fields.thruster(torque=a, on=[[begin, stop]]) + ph.fields.gravity(g)
        fire: Torque = lambda t, R, w: weight(g)(t, R, w) + a  # noqa: E731
        pieces = [(0.0, begin, inf, weight(g)), (begin, stop, inf, fire), (stop, span, inf, weight(g))]
        return field, pieces, abs(g) + float(np.abs(a).max()) * min(1.0, 10 * length / span)
    if kind == "table":
        times = np.sort(rng.uniform(0, span, 7))
        rows = energy * rng.normal(size=(7, 3))
        field = ph.fields.tabulated(times, rows) + ph.fields.gravity(g)
        pieces = [(0.0, times[0], inf, weight(g)), (times[-1], span, inf, weight(g))]
        for i in range(6):
            rate = (L(1) * rows[i + 1] - rows[i]) / (L(times[i + 1]) - L(times[i]))
            line: Torque = lambda t, R, w, i=i, rate=rate: weight(g)(t, R, w) + rows[i] + rate * (t - L(times[i]))  # type: ignore[misc] # noqa: E731
            pieces.append((times[i], times[i + 1], inf, line))
        return field, sorted(pieces, key=lambda piece: piece[0]), abs(g) + float(np.abs(rows).max())
    a, count = energy * rng.normal() * 3, rng.uniform(2, 12)
    rate = 2 * math.pi * count / span
    half = float(np.arccos(L(0.9)) / L(rate))
    on: Torque = lambda t, R, w: weight(g)(t, R, w) + np.array([a, 0 * w[0], a / L(3)])  # noqa: E731
    borders = sorted({0.0, span, *(x for k in range(int(count) + 2) for s in (-half, half)
                                   if 0 < (x := 2 * math.pi * k / rate + s) < span)})  # fmt: skip
    pieces = [
        (x, y, inf, on if math.cos(rate * (x + y) / 2) > 0.9 else weight(g))
        for x, y in zip(borders, borders[1:])  # noqa: B905, RUF007
    ]
    return comb(a, rate, g), pieces, abs(g) + abs(a)


def random_body(rng: Any) -> Any:
    """Moments of a body of any size: general, symmetric or flat."""
    a, b = np.sort(rng.uniform(0.3, 1, 2))
    c = rng.choice([rng.uniform(b - a + 0.05, a + b), a + b])
    moments = np.array([a, a, 0.8 * a] if rng.random() < 0.2 else [a, b, c])
    return moments[rng.permutation(3)] * 10.0 ** rng.uniform(-3, 3)


def angle(a: Any, b: Any) -> float:
    """Angle between two attitudes."""
    w, v = (a * b).sum(), a[0] * b[1:] - b[0] * a[1:] - cross(a[1:], b[1:])
    return float(2 * np.arctan2(np.sqrt((v * v).sum()), abs(w)))


def distance(a: Any, b: Any, momentum: float) -> float:
    """The larger of the angle and the relative difference of momenta."""
    return max(angle(a[:4], b[:4]), float(np.sqrt(((a[4:] - b[4:]) ** 2).sum())) / momentum)


KINDS = ("top", "driven", "turning", "pulse", "burn", "table", "comb", "steady")


def judged(case: tuple[str, int, int, bool]) -> Seen:
    """One random problem: kind, outcome, error/tol, error/estimate, and whether the error is above round-off."""
    kind, seed, number, own_reference = case
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    moments, w = random_body(rng), rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2)
    energy = float((moments * w * w).sum()) / 2 * 10.0 ** rng.uniform(-3, 3)
    span = 10.0 ** rng.uniform(0, 1.5) / float(np.linalg.norm(w))
    tol = 10.0 ** rng.uniform(-12, -3)
    field, pieces, push = made(kind, rng, moments, energy, span)
    q = rng.normal(size=4)
    start = ph.Problem(ph.Body(moments), field, attitude=q / np.linalg.norm(q), omega=w)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sol = ph.solve(start, tol=tol, t_end=span)
    largest = float(np.linalg.norm(sol.momentum, axis=1).max())
    turned = 1 + float((np.linalg.norm(sol.omega, axis=1)[1:] * np.diff(sol.t)).sum())
    speed = max(float(np.linalg.norm(sol.omega, axis=1).max()), math.sqrt(push / moments.min()))
    y = np.array([*start.quaternion, *start.momentum], dtype=L)
    if own_reference:
        ends = [ph.solve(start, step_tol=x, t_end=span).last() for x in (1e-15, 3e-15)]
        exact, other = (np.array([*end.quaternion[0], *end.momentum[0]], dtype=L) for end in ends)
    else:
        exact, other = (
            reference(y, moments, [(a, b, min(x, part / speed), f) for a, b, x, f in pieces]) for part in (0.5, 0.35)
        )
    found = np.array([*sol.quaternion[-1], *sol.momentum[-1]], dtype=L)
    error, own = distance(found, exact, largest), distance(exact, other, largest)
    if own > tol / 10 or own > error / 10 + 1e-17:
        return kind, "poor", 0.0, 0.0, False
    if sol.error_estimate > tol or any(issubclass(x.category, ph.ResultWarning) for x in told):
        return kind, "told", 0.0, error / sol.error_estimate, error > ROUND_OFF * turned
    return kind, "judged", error / tol, error / sol.error_estimate, error > ROUND_OFF * turned


Seen = tuple[str, str, float, float, bool]
ROUND_OFF = 1e-14
"""Errors below this for each radian turned are round-off, which an estimate bounds but does not follow."""


SHOWN = 200
"""Problems after which an intermediate result is printed."""


def main(seed: int = 1, count: int = 50, processes: int = 1, own_reference: int = 0) -> None:
    """Print the table."""
    print("kind     judged told poor   error/tol median, largest   error/estimate median, largest   within 5")
    cases = [(kind, seed, i, bool(own_reference)) for i in range(count) for kind in KINDS]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        seen: list[Seen] = []
        for one in pool.imap_unordered(judged, cases):
            seen.append(one)
            if len(seen) % SHOWN == 0:
                _line("so far", seen)
    for kind in KINDS:
        _line(kind, [one for one in seen if one[0] == kind])
    _line("all", seen)


def _line(kind: str, seen: list[Seen]) -> None:
    counts = [sum(how == word for _, how, *_ in seen) for word in ("judged", "told", "poor")]
    by_tol = [x for _, how, x, _, _ in seen if how == "judged"] or [0.0]
    by_estimate = [x for _, how, _, x, _ in seen if how != "poor"] or [0.0]
    known = [x for _, how, _, x, above in seen if how != "poor" and above] or [1.0]
    share = sum(0.2 <= x <= 5 for x in known) / len(known)
    figures = [f"{np.median(x):10.2g} {max(x):8.2g}" for x in (by_tol, by_estimate)]
    counted = f"{counts[0]:6} {counts[1]:4} {counts[2]:4}"
    print(f"{kind:8} {counted}   {figures[0]:26}   {figures[1]:26}   {100 * share:.1f} % of {len(known)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
