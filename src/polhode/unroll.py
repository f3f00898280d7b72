"""Kernels for tuples of vectors whose number is known when a method is built.

Compiled code cannot grow a tuple in a loop, so these factories write the loop out: each returns one
straight-line kernel for n vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .scalar import Number, kernel

Vectors = Any


def written(parameters: str, result: str, *lines: str, **space: Any) -> Callable[..., Any]:
    """The kernel ``def unrolled(parameters): lines; return result``; `space` holds the names these use."""
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result}"))
    exec(f"def unrolled({parameters}):\n{body}", space)  # made of our own words only
    made: Callable[..., Any] = space["unrolled"]
    made.__module__ = __name__
    return kernel(made)


def combination(weights: Sequence[Any]) -> Callable[[Vectors], Any]:
    """Kernel for sum_j weights[j] v[j]; zero weights cost nothing."""
    used = {f"w{j}": w for j, w in enumerate(weights) if w != 0}
    if not used:
        return written("v", "(0 * v[0][0], 0 * v[0][1], 0 * v[0][2])")
    components = (" + ".join(f"{name} * v[{name[1:]}][{i}]" for name in used) for i in range(3))
    return written("v", f"({', '.join(components)})", **used)


def weighted(n: int) -> Callable[[Any, Vectors], Any]:
    """Kernel for sum_j w[j] v[j] with weights given when called, so that it is compiled once for all of them."""
    components = (" + ".join(f"w[{j}] * v[{j}][{i}]" for j in range(n)) for i in range(3))
    return written("w, v", f"({', '.join(components)})")


def inner(n: int) -> Callable[[Vectors, Vectors], Number]:
    """Kernel for the scalar product of two n-tuples of vectors."""
    return written("a, b", " + ".join(f"a[{j}][{i}] * b[{j}][{i}]" for j in range(n) for i in range(3)))


def moved(n: int) -> Callable[[Vectors, Number, Vectors], Vectors]:
    """Kernel for a + s b with n-tuples of vectors."""
    vectors = (", ".join(f"a[{j}][{i}] + s * b[{j}][{i}]" for i in range(3)) for j in range(n))
    return written("a, s, b", f"({', '.join(f'({v})' for v in vectors)},)")
