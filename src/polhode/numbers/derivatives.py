"""Derivatives of the elementary functions of one argument, for symbols and for dual numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import primitives


def _derivative(op: str, x: Any, node: Any) -> Any:
    """Derivative of an elementary function of one argument."""
    derivatives: dict[str, Callable[[], Any]] = {
        "abs": lambda: primitives.where(x < 0, -1, 1),
        "sqrt": lambda: 1 / (2 * node),
        "exp": lambda: node,
        "log": lambda: 1 / x,
        "sin": lambda: primitives.cos(x),
        "cos": lambda: -primitives.sin(x),
        "tan": lambda: 1 + node * node,
        "asin": lambda: 1 / primitives.sqrt(1 - x * x),
        "acos": lambda: -(1 / primitives.sqrt(1 - x * x)),
        "atan": lambda: 1 / (1 + x * x),
        "sinh": lambda: primitives.cosh(x),
        "cosh": lambda: primitives.sinh(x),
        "tanh": lambda: 1 - node * node,
    }
    return derivatives[op]()
