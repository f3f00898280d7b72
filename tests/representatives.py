"""Methods that represent the others in the fast tests that compile.

Compiling a method takes seconds, and its properties are proven in 50 digits without a compiler. Methods of one paper
are written in one way, so a fast test compiles one explicit and one implicit method of each paper, and one that carries
a memory; the slow tests compile all methods.
"""

from collections.abc import Iterable
from typing import Any

import pytest

import polhode as ph


def representatives(methods: Iterable[ph.Method]) -> set[str]:
    """The names of the shortest steps of every paper."""
    shortest: dict[Any, str] = {}
    for method in sorted(methods, key=lambda method: (method.solves, method.torque_evals, method.order)):
        shortest.setdefault((method.cite, method.implicit, method.memory > 0), method.name)
    return set(shortest.values())


def slow_unless(fast: Iterable[str], names: Iterable[str]) -> list[Any]:
    """The names as parameters of a test that is fast for some of them only."""
    chosen = set(fast)
    return [pytest.param(name, marks=() if name in chosen else pytest.mark.slow) for name in names]
