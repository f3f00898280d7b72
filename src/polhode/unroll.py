"""Kernels for tuples of vectors whose number is known when a method is built.

Compiled code cannot grow a tuple in a loop, so these factories unroll by recursion: each returns a
kernel for n vectors that calls the kernel for n - 1.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .scalar import Number, kernel
from .so3 import along, dot, scale

Vectors = Any


def combination(weights: Sequence[Any]) -> Callable[[Vectors], Any]:
    """Kernel for sum_j weights[j] v[j]; zero weights cost nothing."""
    used = [j for j, w in enumerate(weights) if w != 0]
    if not used:

        @kernel
        def nothing(v: Vectors) -> Any:
            return scale(0, v[0])

        return nothing
    last = used[-1]
    weight = weights[last]
    if len(used) == 1:

        @kernel
        def single(v: Vectors) -> Any:
            return scale(weight, v[last])

        return single
    rest = combination(weights[:last])

    @kernel
    def several(v: Vectors) -> Any:
        return along(rest(v), weight, v[last])

    return several


def inner(n: int) -> Callable[[Vectors, Vectors], Number]:
    """Kernel for the scalar product of two n-tuples of vectors."""
    if n == 1:

        @kernel
        def one(a: Vectors, b: Vectors) -> Number:
            return dot(a[0], b[0])

        return one
    rest = inner(n - 1)

    @kernel
    def more(a: Vectors, b: Vectors) -> Number:
        return rest(a, b) + dot(a[n - 1], b[n - 1])

    return more


def moved(n: int) -> Callable[[Vectors, Number, Vectors], Vectors]:
    """Kernel for a + s b with n-tuples of vectors."""
    if n == 1:

        @kernel
        def one(a: Vectors, s: Number, b: Vectors) -> Vectors:
            return (along(a[0], s, b[0]),)

        return one
    rest = moved(n - 1)

    @kernel
    def more(a: Vectors, s: Number, b: Vectors) -> Vectors:
        return (*rest(a, s, b), along(a[n - 1], s, b[n - 1]))

    return more


def gathered(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Kernel for the tuple of what several kernels return for the same arguments."""
    last = functions[-1]
    if len(functions) == 1:

        @kernel
        def single(*args: Any) -> Any:
            return (last(*args),)

        return single
    rest = gathered(functions[:-1])

    @kernel
    def several(*args: Any) -> Any:
        return (*rest(*args), last(*args))

    return several
