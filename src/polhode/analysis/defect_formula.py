"""Comparison of the declared formula for the symplectic defect with central differences in 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath

from ..kernels.loops import is_valid
from ..kernels.so3 import conj, cross, dot, mul, norm, scale, sub
from ..methods import Method
from ..methods.combinators.compose import whole
from ..numbers.multiprecision import number
from .generic_problems import Which
from .measurements import NUDGE, nudged, slopes, two_form
from .setting import LARGE_STEP, Setting, fifty, largest


def _rotation_vector(start: Any, end: Any) -> Any:
    """The psi with R_1 = R_0 exp(psi)."""
    q = mul(conj(start[0]), end[0])
    v = (q[1], q[2], q[3])
    size = norm(v)
    return scale(2 * mpmath.atan2(size, q[0]) / size, v)


def defect_parts(method: Method) -> list[tuple[Method, float]]:
    """The substeps, with their fractions of h, that have a declared formula; empty if there is none."""
    if method.symplectic_defect:
        return [(method, 1.0)]
    if method.halves and all(half.symplectic_defect for half in method.halves):
        return [(half, 0.5) for half in method.halves]
    return []


def _path(method: Method, setting: Setting, y: Any) -> list[Any]:
    """The states at the ends of these substeps."""
    states = [y]
    for part, fraction in defect_parts(method):
        h = number(LARGE_STEP * fraction)
        new, residual = whole(part)(number)(h, setting.t, states[-1], setting.system, setting.torque)
        if not is_valid(new, residual):
            raise ArithmeticError(f"a step of {part.name} was not solved: residual {mpmath.nstr(residual, 3)}")
        states.append(new)
    return states


@fifty
def defect_formula_error(method: Method, which: Which = 0) -> tuple[Any, Any]:
    """Error of the declared formula for the growth of the two-form in a free step, and the size of that growth.

    By central differences, for all pairs of directions; the formulas of several substeps add up.
    """
    setting, parts = Setting(method, "free", which), defect_parts(method)
    path = _path(method, setting, setting.y)
    near = [[_path(method, setting, nudged(setting.y, k, s * NUDGE)) for s in (1, -1)] for k in range(6)]
    rates = [[slopes(path[n], up[n], down[n]) for up, down in near] for n in range(len(path))]
    turns = []
    for n in range(len(parts)):
        pairs = [tuple(_rotation_vector(*states[n : n + 2]) for states in both) for both in near]
        turns.append([scale(1 / (2 * NUDGE), sub(up, down)) for up, down in pairs])
    formulas = [
        part.symplectic_defect(number(LARGE_STEP * fraction), _rotation_vector(*path[n : n + 2]), setting.system)
        for n, (part, fraction) in enumerate(parts)
        if part.symplectic_defect
    ]
    errors, growths = [], []
    for i in range(6):
        for j in range(i):
            first, last = (two_form(path[n][1], rates[n][i], rates[n][j]) for n in (0, -1))
            predicted = sum(dot(c, cross(turn[i], turn[j])) for c, turn in zip(formulas, turns, strict=True))
            errors.append(abs(last - first - predicted))
            growths.append(abs(last - first))
    return largest(errors), largest(growths)
