"""Kernels for n-tuples of vectors, with n known when a method is built.

Compiled code cannot grow a tuple in a loop, so these factories unroll the loop: each returns one
straight-line kernel for n vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..numbers.dispatch import kernel
from ..numbers.types import Number
from ..numbers.written import run_text
from .so3 import along, dot, scale

Vectors = Any


def unrolled_kernel(parameters: str, result: str, *lines: str, **space: Any) -> Callable[..., Any]:
    """Kernel ``def unrolled(parameters): lines; return result``; `space` holds the names used in them."""
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result}"))
    run_text(f"def unrolled({parameters}):\n{body}", space)
    function: Callable[..., Any] = space["unrolled"]
    function.__module__ = __name__
    return kernel(function)


def _chain(terms: Sequence[tuple[str, str]]) -> str:
    """Source of the sum of products (weight, vector), by calls of `scale` and `along`: quick to compile."""
    weight, vector = terms[0]
    text = f"scale({weight}, {vector})"
    for weight, vector in terms[1:]:
        text = f"along({text}, {weight}, {vector})"
    return text


def combination(weights: Sequence[Any]) -> Callable[[Vectors], Any]:
    """Kernel for sum_j weights[j] v[j]; zero weights cost nothing."""
    used = {f"w{j}": w for j, w in enumerate(weights) if w != 0}
    if not used:
        return unrolled_kernel("v", "(0 * v[0][0], 0 * v[0][1], 0 * v[0][2])")
    return unrolled_kernel("v", _chain([(name, f"v[{name[1:]}]") for name in used]), scale=scale, along=along, **used)


def weighted(n: int) -> Callable[[Any, Vectors], Any]:
    """Kernel for sum_j w[j] v[j] with the weights as an argument, so that it is compiled only once."""
    return unrolled_kernel("w, v", _chain([(f"w[{j}]", f"v[{j}]") for j in range(n)]), scale=scale, along=along)


def inner(n: int) -> Callable[[Vectors, Vectors], Number]:
    """Kernel for the scalar product of two n-tuples of vectors."""
    return unrolled_kernel("a, b", " + ".join(f"dot(a[{j}], b[{j}])" for j in range(n)), dot=dot)


def shifted_vectors(n: int) -> Callable[[Vectors, Number, Vectors], Vectors]:
    """Kernel for a + s b with n-tuples of vectors."""
    return unrolled_kernel("a, s, b", "".join(f"along(a[{j}], s, b[{j}]), " for j in range(n)), along=along)
