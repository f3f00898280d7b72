"""What every kernel for an NVIDIA GPU with one thread per body needs: how a thread reads and writes the numbers of its
body in a user's arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import cuda as card
from . import numba_target
from .batch.layout import inner
from .clock import jitted
from .cuda import from_text
from .simd.interleaved import ROWS


def _place(layout: str, part: str, j: int) -> str:
    return f"a[{part}k, {j}]" if layout == ROWS else f"a[{part}{j}, k]"


def reading(width: int, layout: str, parts: bool = False) -> Callable[..., Any]:
    """Compiled function (a, s, k) -> `width` doubles of body k, with `parts` of sub-step s."""
    items = "".join(f"np.float64({_place(layout, 's, ' * parts, j)}), " for j in range(width))
    return from_text("a, s, k", f"return ({items})")


def writing(width: int, layout: str) -> Callable[..., Any]:
    """Compiled function (a, k, x) that writes `width` numbers of body k."""
    return from_text("a, k, x", "; ".join(f"{_place(layout, '', j)} = x[{j}]" for j in range(width)))


def of_body(width: int) -> Callable[..., Any]:
    """Compiled function (a, k) -> `width` numbers of body k, or of the one for all."""
    items = "".join(f"a[{j}, c], " for j in range(width))
    return from_text("a, k", f"c = min(k, a.shape[1] - 1); return ({items})")


def step_of(own_dt: bool) -> Callable[..., Any]:
    """Compiled function (h, k) -> the step of body k; `own_dt`: every body has its own."""

    def own(h: Any, k: int) -> Any:
        return h[k]

    def shared(h: Any, k: int) -> Any:
        return h

    return inner(own if own_dt else shared)


def kernel(function: Callable[..., Any]) -> Any:
    """The function as a kernel of numba-cuda."""
    numba_target.teach()  # kernels that were made for it
    return jitted(card.card(), function)
