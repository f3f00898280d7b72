"""Arrays that functions on many molecules take and fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .validate import real_array


def finite_rows(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return finite numbers as a contiguous array of doubles of this shape; None stands for any length."""
    words = ", ".join("N" if length is None else str(length) for length in shape)
    given = real_array(value, f"{name} must be an array of the shape ({words})", fresh=False, key=name)
    fits = given.ndim == len(shape) and all(b is None or a == b for a, b in zip(given.shape, shape, strict=True))
    if not fits:
        raise InputError(f"{name} must have the shape ({words}); got {given.shape}", name)
    check_finite(name, given)
    return np.ascontiguousarray(given)


def check_finite(name: str, array: np.ndarray) -> None:
    """Refuse infinities and NaN."""
    good = np.isfinite(array)
    if not good.all():
        at = tuple(np.argwhere(~good)[0].tolist())
        raise InputError(f"{name} must be finite; entry {at} is {array[at]}", name)


def target(name: str, out: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array to fill: a new one, or the given one if it can hold the result."""
    if out is None:
        return np.empty(shape)
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype.kind != "f":
        found = f"{out.shape} of {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"{name} must be an array of floats with the shape {shape}; got {found}", name)
    if not out.flags.writeable:
        raise InputError(f"{name} is read-only; pass an array that can be written", name)
    return out
