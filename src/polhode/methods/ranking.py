"""Lists of methods, best first: for messages and for the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .queries import STATE, MotionSeries
from .record import NEEDS, Method
from .registry import methods

SPLIT, SPLITTINGS = ("potential", "attitude"), ("strang(jacobi)", "strang(dmv10)")
"""Kinds of fields for which free flows are split, and the expressions that lists name besides registered methods."""

MOST = 8
"""Length of a list in a message."""


def best_first(found: Iterable[Method], kind: str) -> list[Method]:
    """Sort methods for fields of a kind: what is recommended, then by order, then by name.

    Recommended are exact solutions; splittings of free flows for a potential or a torque T(t, R), other symplectic
    methods, and what else keeps the energy of the free body; then methods with an error estimate and Taylor series,
    which a tolerance chooses. Multistep methods, and steps that follow their own rule, are last.
    """

    def place(method: Method) -> tuple[Any, ...]:
        return *_class(method, kind), -method.order, -method.order_free, method.implicit, method.name

    return sorted(found, key=place)


def _class(method: Method, kind: str) -> tuple[bool, ...]:
    """Sort recommended methods to the front."""
    splits = kind in SPLIT
    structured = kind != "velocity" and {"energy", "spatial_momentum"} <= method.conserves
    series = method.asks.find(MotionSeries)
    chosen = method.estimated is not None or (series is not None and series.of == STATE)
    return (
        method.memory > 0 or method.has_own_time,
        method.order < math.inf,
        not structured,
        not (splits and method.symplectic),
        not (splits and method.drift is not None),
        not chosen,
    )


def fitting(kind: str, fits: Callable[[Method], Any] = lambda method: True) -> list[Method]:
    """Return the methods that take a field of this kind and fit, best first; with the usual splittings."""
    if kind not in NEEDS:  # that of the Lagrange top
        kind = NEEDS[0]
    known = [*methods.values(), *(methods[name] for name in SPLITTINGS if kind in SPLIT)]
    return best_first((m for m in known if m.takes(kind) and fits(m)), kind)


def listed(found: Iterable[Method]) -> str:
    """Format a list of methods for a message; a long one is cut off."""
    names = [m.name for m in found]
    return ", ".join(names[:MOST]) + ", ..." * (len(names) > MOST)
