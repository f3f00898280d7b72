"""Existence of solutions of failed implicit steps: the solution of short steps is continued as the step grows.

    PYTHONPATH=src python validation/implicit_limits.py [--only NUMBER ...]

The steps are from nine random runs in which the body rotates by less than 0.3 radians in the first step and an
implicit method failed; the torque rotates the body by far more (h^2 strength/I), or the body had become faster. From
h' = 0 the solution is continued in small increments of h' by Newton's method in 30 digits, with Jacobians by
differences. Either it reaches the size h of the step, or the branch ends in a fold, where it meets another solution
and the determinant of the Jacobian goes to zero as the square root of a linear function of h'. The last column says
whether the library solves the step in doubles. A fold of backward Euler about a principal axis is compared with the
solution of its two scalar equations.

Printed (2 cores, Python 3.11, 15 s; angles in radians):

    backward Euler about an axis folds at h = 1.09623174, by hand 1.09623174
    mkrk(backward_euler) turns  0.05, pushed     3.4: the branch reaches h, least determinant 1; failed
    mkrk(midpoint)       turns  0.28, pushed  1724.5: the branch reaches h, least determinant 1; failed
    liemid_e1            turns  9.16, pushed     9.2: the branch reaches h, least determinant 0.59; failed
    bbtrap               turns  2.66, pushed     6.0: the branch reaches h, least determinant 1; failed
    dg2                  turns  5.26, pushed    43.4: the branch reaches h, least determinant 1; failed
    galpha(1)            turns  3.37, pushed    13.9: the branch reaches h, least determinant 1; failed
    trapm                turns  0.01, pushed    26.4: fold at 0.850437 h (determinant 4.0e-04); failed
    rattle               turns  1.23, pushed     1.4: fold at 0.676516 h (determinant 3.3e-05); failed
    strang(dmv10)        turns  3.37, pushed     2.1: the branch ends at 0.827908 h (determinant -1.8e+09); failed

Two of the nine have no solution at the end of their branch. Six have one that the solvers do not find from the initial
guess: the body, or its torque, rotates it by several radians. The StepError says how far the
body rotates and which step is solved. Continuation inside the compiled solvers finds four of the six, but adds a second
to the compile time of every implicit method (three in lanes), so it is not used. It is not known why the branch of
`strang(dmv10)` ends; its Jacobian grows without bound there.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np

import polhode as ph
from polhode.methods.combinators.compose import in_turn
from polhode.numbers.multiprecision import Mp
from polhode.run.integrator import start, torque_kernel

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fuzz_methods import bowl

from plain import run

DIGITS = 30
LARGEST_PART, SMALLEST_PART = 1 / 128, 1e-9
"""Increments of h' as fractions of h: the largest, and the one below which the branch has ended."""

FOLD = 1e-2
"""Largest determinant at the end of a branch that counts as a fold."""

mp = mpmath.mp


class Lost(Exception):
    """Newton's method does not converge from the predicted point of the branch."""


def flat(x: Any) -> list[Any]:
    """The numbers of nested tuples."""
    return [y for part in x for y in flat(part)] if isinstance(x, tuple) else [x]


def shaped(like: Any, numbers: Iterator[Any]) -> Any:
    """Arrange numbers in nested tuples of the same shape."""
    return tuple(shaped(part, numbers) for part in like) if isinstance(like, tuple) else next(numbers)


def jacobian(f: Callable[[list[Any]], list[Any]], x: list[Any], size: Any) -> Any:
    """Jacobian by central differences, to about two thirds of the digits."""
    d = size * mp.mpf(10) ** (-DIGITS // 3)
    columns = []
    for i in range(len(x)):
        right, left = ([y + s * d if j == i else y for j, y in enumerate(x)] for s in (1, -1))
        columns.append([(a - b) / (2 * d) for a, b in zip(f(right), f(left), strict=True)])
    return mp.matrix(columns).T


class Branch:
    """The solution of the equations of a step as the step size grows from zero.

    A step may solve several equations one after the other; each has its own branch, identified by the order of calls.
    """

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self.step = step
        self.known: list[list[tuple[Any, list[Any]]]] = []
        self.first: list[Any] = []

    def at(self, h: Any) -> list[Any]:
        """Solve the step for h; return the determinants of the Jacobians relative to h -> 0, or raise `Lost`."""
        self.h, self.found, self.determinants = h, [], []
        with self._replacing():
            self.step(h)
        self.first = self.first or self.determinants
        self.known = self.known or [[] for _ in self.found]
        for path, x in zip(self.known, self.found, strict=True):
            path[:] = [*path[-1:], (h, x)]
        return [d / d0 for d, d0 in zip(self.determinants, self.first, strict=True)]

    @contextlib.contextmanager
    def _replacing(self) -> Iterator[None]:
        """Replace the library's solver for mpmath numbers by ours."""
        Mp.root = staticmethod(self._root)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            del Mp.root  # type: ignore[attr-defined]

    def _predicted(self, guess: list[Any]) -> list[Any]:
        path = self.known[len(self.found)] if self.known else []
        if not path:
            return guess
        (h1, x1), (h0, x0) = path[-1], path[0]
        part = (self.h - h1) / (h1 - h0) if h1 != h0 else 0
        return [b + part * (b - a) for a, b in zip(x0, x1, strict=True)]

    def _root(self, equation: Callable[..., Any], guess: Any, *given: Any, around: Any = 1) -> tuple[Any, Any]:
        def f(x: list[Any]) -> list[Any]:
            return flat(equation(shaped(guess, iter(x)), *given))

        x, before = self._predicted(flat(guess)), None
        for _ in range(12):
            size = mp.norm(x) + abs(around)
            matrix = jacobian(f, x, size)
            try:
                change = mp.lu_solve(matrix, mp.matrix(f(x)))
            except ZeroDivisionError:
                raise Lost from None
            x, last = [a - b for a, b in zip(x, change, strict=True)], mp.norm(change)
            if last <= size * mp.mpf(10) ** (8 - DIGITS):
                self.found.append(x)
                self.determinants.append(mp.det(matrix))
                return shaped(guess, iter(x)), mp.mpf(0)
            if last > size / 4 or (before is not None and last > before / 4):
                raise Lost
            before = last
        raise Lost


class Limit(NamedTuple):
    """End of a branch, or None if it reaches h; the smallest determinant on the way and its fraction of h."""

    part: float | None
    determinant: float
    where: float
    linear: float

    def __str__(self) -> str:
        if self.part is None:
            return f"the branch reaches h, least determinant {self.determinant:.2g}"
        if abs(self.determinant) < FOLD and self.linear < FOLD**0.5:
            return f"fold at {self.part:.6f} h (determinant {self.determinant:.1e})"
        return f"the branch ends at {self.where:.6f} h (determinant {self.determinant:.1e})"


def followed(step: Callable[[Any], Any], h: Any) -> Limit:
    """Continue the solution of a step from size 0 up to h.

    At a fold two solutions meet and the square of the determinant goes to zero linearly in h'. So its zero is found by
    extrapolation, and `linear`, the relative change of that slope over the last increments, tells whether it is
    a fold.
    """
    branch, here, part = Branch(step), mp.mpf(0), mp.mpf(LARGEST_PART)
    least, place, path = mp.mpf(1), mp.mpf(0), []
    branch.at(h * mp.mpf(2) ** -20)
    while here < 1:
        goal = min(here + part, mp.mpf(1))
        try:
            found = branch.at(h * goal)
        except Lost:
            part /= 2
            if part < SMALLEST_PART:
                break
            continue
        here, part = goal, min(part * 1.5, mp.mpf(LARGEST_PART))
        small = min(found, key=abs)
        path.append((here, small))
        least, place = min((least, place), (small, here), key=lambda x: abs(x[0]))
    if here == 1:
        return Limit(None, float(least), float(place), math.nan)
    (h0, d0), (h1, d1), (h2, d2) = path[-9], path[-5], path[-1]
    slope, earlier = (d2**2 - d1**2) / (h2 - h1), (d1**2 - d0**2) / (h1 - h0)
    return Limit(float(h2 - d2**2 / slope), float(d2), float(h2), float(abs(earlier / slope - 1)))


class Step(NamedTuple):
    """A step of a method from some state: principal moments, body momentum, attitude, field, start and size."""

    method: str
    moments: list[float]
    momentum: list[float]
    attitude: list[float]
    field: str
    strength: float
    drag: float
    t: float
    h: float

    @property
    def problem(self) -> ph.Problem:
        """The problem that starts with this step."""
        field = bowl(self.strength) if self.field == "bowl" else mixed(self.strength, self.drag)
        q = np.array(self.attitude) / np.linalg.norm(self.attitude)
        return ph.Problem(ph.Body(self.moments), field, attitude=q, momentum=self.momentum, t0=self.t)

    @property
    def angles(self) -> tuple[float, float]:
        """Radians of rotation in the step, by the velocity and by the torque."""
        moments, omega = np.array(self.moments), np.array(self.momentum) / self.moments
        return float(self.h * np.linalg.norm(omega)), float(self.h**2 * self.strength / moments.min())

    def in_digits(self) -> Callable[[Any], Any]:
        """The step as a function of its size, in mpmath numbers."""
        method, problem = ph.methods[self.method], self.problem
        torque, (before, _) = torque_kernel(problem, mp.mpf, method), method.processors(mp.mpf)
        kernel = in_turn([part for part in (before, method.build(mp.mpf)) if part])
        y, system = start(problem, method, mp.mpf)
        return lambda h: kernel(h, mp.mpf(self.t), y, system, torque)


STEPS = [
    Step("mkrk(backward_euler)", [0.4871, 0.8102, 0.4871], [0.02237, 0.0, 0.0], [-0.1667, 0.6013, 0.7057, -0.3357],
         "mixed", 1.575, 0.0103, 0, 1.0264),
    Step("mkrk(midpoint)", [0.716, 0.5568, 0.3896], [0.0, 0.002407, 0.0], [-0.3397, 0.398, 0.363, -0.771],
         "bowl", 0.1593, 0.046, 0, 64.944),
    Step("liemid_e1", [0.7489, 0.6215, 0.69], [0.1377, 0.6895, 0.1041], [-0.4722, -0.5977, -0.4893, 0.4246],
         "bowl", 0.0881, 0.0715, 8.07, 8.0699),
    Step("bbtrap", [1.051, 0.7922, 0.2613], [-0.196, 0.02217, -0.06834], [0.5042, -0.8262, 0.1587, -0.1947],
         "bowl", 0.02288, 0.0029, 99.03, 8.2524),
    Step("dg2", [0.2285, 0.2595, 0.07256], [-0.195, -0.001818, -0.1932], [0.2069, -0.9746, -0.01574, 0.08428],
         "bowl", 0.8911, 0.000455, 3.761, 1.8803),
    Step("galpha(1)", [0.6857, 0.2123, 0.5204], [0.1942, 0.2067, 0.3227], [0.1649, 0.9136, 0.2673, 0.2583],
         "mixed", 0.3675, 0.0212, 2.837, 2.8372),
    Step("trapm", [0.9121, 1.069, 0.7652], [-0.0, -0.008372, -0.0], [-0.7465, 0.3841, -0.08082, -0.5373],
         "mixed", 6.847, 0.000198, 0, 1.7173),
    Step("rattle", [0.2354, 0.2354, 0.2354], [-1.066, 0.1867, 0.02692], [-0.2806, 0.6052, 0.5902, -0.4545],
         "bowl", 4.743, 0.0134, 0.2678, 0.26782),
    Step("strang(dmv10)", [0.7512, 0.2163, 0.7505], [1.436, 1.652, 1.914], [0.3836, -0.03442, 0.8611, 0.3318],
         "bowl", 2.71, 0.00633, 2.847, 0.40671),
]  # fmt: skip


def along_an_axis(angle: float = 1.785, spin: float = -1.7, strength: float = 1.0) -> tuple[float, float]:
    """Fold of backward Euler about a principal axis with the torque a sin(theta): by continuation and by hand.

    With I = 1, x = m + h a sin(theta_1) and theta_1 = theta_0 + h x; two solutions meet if 1 = h^2 a cos(theta_1).
    """
    attitude = [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
    problem = ph.Problem(ph.Body([3.0, 2.5, 1.0]), tipping(strength), attitude=attitude, omega=[0, 0, spin])
    torque, kernel = torque_kernel(problem, mp.mpf, ph.methods["be"]), ph.methods["be"].build(mp.mpf)
    y, system = start(problem, ph.methods["be"], mp.mpf)
    found = followed(lambda h: kernel(h, mp.mpf(0), y, system, torque), mp.mpf(2))
    end = mp.findroot(
        lambda x: x - mp.tan(x) - angle - spin / mp.sqrt(strength * mp.cos(x)), (0.3, 0.7), solver="illinois"
    )
    h = 1 / mp.sqrt(strength * mp.cos(end))
    return 2 * (found.part or math.nan), float(h)


@ph.torque
def mixed(t, R, omega, a, k):
    """A torque of time, attitude and angular velocity."""
    return a * R[2][1] - k * omega[0], -a * R[2][0] - k * omega[1], a * math.sin(t) - k * omega[2]


@ph.torque
def tipping(t, R, a):
    """The torque a sin(theta) after a turn by theta about the third axis."""
    return 0.0, 0.0, a * (R[1][0] - R[0][1]) / 2


def main() -> None:
    """Continue all steps."""
    parser = argparse.ArgumentParser(description="Existence of solutions of failed implicit steps.")
    parser.add_argument("--only", type=int, nargs="*", default=range(len(STEPS)))
    warnings.simplefilter("ignore")
    mp.dps = DIGITS
    chosen = parser.parse_args().only
    print("backward Euler about an axis folds at h = {:.8f}, by hand {:.8f}".format(*along_an_axis()))
    for step in (STEPS[i] for i in chosen):
        limit, solved = followed(step.in_digits(), mp.mpf(step.h)), run(step.problem, step.method, step.h, 1).fine
        turn, push = step.angles
        print(f"{step.method:21}turns {turn:5.2f}, pushed {push:7.1f}: {limit}; {'solved' if solved else 'failed'}")


if __name__ == "__main__":
    main()
