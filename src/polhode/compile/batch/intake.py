"""Check and copy the arrays of many bodies in one pass, by all cores: to wake the threads takes longer than a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...numbers.primitives import all_lanes, finite
from ..kept_memory import CACHE_LINE
from ..simd.vector_types import LANES, load, spread, store, stream
from ..threads import share_evenly
from .layout import LEAST, checking, compiled_if_worthwhile, inner, padded

Check = tuple[Callable[..., Any], int, Callable[..., Any]]
"""Condition on the rows of an array, their width, and the kernel that changes them (`layout.changed`)."""


@inner
def _finite_copied(given: Any, out: Any, begin: int, end: int, streams: bool) -> bool:
    """Copy doubles; False if some are not finite."""
    whole = begin + (end - begin) // LANES * LANES
    differences = spread(0.0)
    for i in range(begin, whole, LANES):
        v = load(given, i)
        differences = differences + (v - v)  # NaN from the first infinity or NaN on
        if streams:
            stream(out, i, v)
        else:
            store(out, i, v)
    fine = all_lanes(differences == 0)
    for i in range(whole, end):
        out[i] = given[i]
        fine &= finite(given[i])
    return fine


def _taking_in(first: Check, second: Check) -> Callable[..., Any]:
    check_first, check_second = inner(checking(*first)), inner(checking(*second))

    def take_in(
        a: Any, a_out: Any, b: Any, b_out: Any, c: Any, c_out: Any, d: Any, d_out: Any, number: int, streams: bool,
        begin: int, end: int,
    ) -> Any:  # fmt: skip
        low, high = begin * LANES, end * LANES
        return (
            len(a) > 0 and check_first(a, a_out, begin, end, streams),
            len(b) > 0 and check_second(b, b_out, begin, end, streams),
            _finite_copied(c, c_out, low * len(c) // number, min(high, number) * len(c) // number, streams),
            _finite_copied(d, d_out, low * len(d) // number, min(high, number) * len(d) // number, streams),
        )

    return take_in


def _is_plain(array: Any, width: int) -> bool:
    """Return whether an array has the type for which the pass is compiled."""
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != float or width not in (0, array.shape[1]):
        return False
    return array.flags.c_contiguous and array.flags.writeable and array.flags.aligned


def copied(
    checks: tuple[Check, Check], arrays: tuple[Any, Any, Any, Any], empty: list[Callable[..., np.ndarray]]
) -> list[np.ndarray | None]:
    """Return changed copies of the first two arrays, and copies of two others; each is made by a function of a shape.

    A copy is None if the check of its array does not hold, if the others have numbers that are not finite, or if an
    array is not one of doubles with a row for each of many bodies.
    """
    widths = checks[0][1], checks[1][1], 0, 0
    number = max((len(x) for x, width in zip(arrays, widths, strict=True) if _is_plain(x, width)), default=0)
    given = [
        x if _is_plain(x, width) and len(x) == number else np.empty((0, max(1, width)))
        for x, width in zip(arrays, widths, strict=True)
    ]  # fmt: skip
    run = compiled_if_worthwhile(lambda: _taking_in(*checks), number, "take in", *checks)
    if run is None:
        return [None] * len(given)
    made = [make(x.shape) for make, x in zip(empty, given, strict=True)]
    fine = list[tuple[bool, ...]]()
    rows = [x for pair in zip(given[:2], made[:2], strict=True) for x in pair]
    numbers = [x.reshape(-1) for pair in zip(given[2:], made[2:], strict=True) for x in pair]
    streams = all(x.ctypes.data % CACHE_LINE == 0 for x in made if x.size)
    groups = padded(number) // LANES
    share_evenly(lambda begin, end: fine.append(run(*rows, *numbers, number, streams, begin, end)), groups, LEAST)
    return [x if len(x) and all(part[k] for part in fine) else None for k, x in enumerate(made)]
