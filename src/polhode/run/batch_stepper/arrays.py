"""The arrays of a user's program: checked, and seen as NumPy arrays without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...physics.validate import real_array

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

PLAIN = "{name} must be a contiguous array of float64 or float32 numbers; got {dtype} with the strides {strides}"
"""The error of other arrays."""

SHAPES = {"rows": "(N, {})", "columns": "({}, N)"}
"""Layouts of the numbers of many bodies, with the shape of an array."""


def is_functional(array: Any) -> bool:
    """Return whether an array can never be changed: a JAX array."""
    return type(array).__module__.partition(".")[0] in ("jax", "jaxlib")


def is_on_gpu(array: Any) -> bool:
    """Return whether an array is in the memory of a GPU."""
    on_gpu = getattr(array, "is_cuda", None)  # a tensor of PyTorch that records gradients has no interface
    return bool(on_gpu) if isinstance(on_gpu, bool) else hasattr(array, "__cuda_array_interface__")


def is_function(torque: Any) -> bool:
    """Return whether a torque is a function instead of an array."""
    return callable(torque) and not hasattr(torque, "shape")


def viewed(name: str, array: Any) -> np.ndarray:
    """Return an array of this machine's memory as a NumPy array that shares its memory."""
    if type(array) is np.ndarray:
        return array
    if is_on_gpu(array):
        raise InputError(
            f"{name} is in the memory of a GPU, and the states are not; all arrays of a call must be on one device",
            name,
        )
    if isinstance(array, np.ndarray):  # a subclass, such as np.matrix, has other arithmetic
        raise InputError(f"{name} must be a plain NumPy array; got {type(array).__name__}", name)
    try:
        return np.from_dlpack(array)
    except Exception:  # the value may be any object
        raise InputError(
            f"{name} must be an array of NumPy, PyTorch or JAX (it is changed in place); got {type(array).__name__}",
            name,
        ) from None


def check_shape(name: str, shape: tuple[int, ...], width: int, layout: str, number: int | None) -> int:
    """Refuse a shape that cannot hold `width` numbers of each body; return the number of bodies."""
    expected, by_rows = SHAPES[layout].format(width), layout == "rows"
    if len(shape) != 2 or shape[1 if by_rows else 0] != width:
        other = "columns" if by_rows else "rows"
        hint = ""
        if len(shape) == 2 and shape[0 if by_rows else 1] == width:
            hint = f"; for {SHAPES[other].format(width)} give layout={other!r}"
        raise InputError(f"{name} must have the shape {expected}; got {tuple(shape)}{hint}", name)
    found = shape[0 if by_rows else 1]
    if number is not None and found != number:
        raise InputError(f"{name} must have the shape {expected} with N = {number} bodies; got {tuple(shape)}", name)
    if not found:
        raise InputError(f"{name} must hold at least one body; got shape {tuple(shape)}", name)
    return found


def check_state(name: str, array: np.ndarray, width: int, layout: str, number: int | None, written: bool) -> int:
    """Refuse an array that cannot hold the states of bodies; return their number."""
    if array.dtype not in (DOUBLE, SINGLE):
        raise InputError(f"{name} must hold float64 or float32 numbers; got {array.dtype}", name)
    found = check_shape(name, array.shape, width, layout, number)
    if not array.flags.c_contiguous:
        raise InputError(
            f"{name} must be contiguous; its strides are {array.strides}, so pass np.ascontiguousarray({name})", name
        )
    if not array.flags.aligned:
        raise InputError(f"{name} must be aligned in memory; pass {name}.copy()", name)
    if written and not array.flags.writeable:
        raise InputError(f"{name} is read-only, and the step is made in place; pass in_place=False", name)
    return found


def check_apart(**arrays: Any) -> None:
    """Refuse arrays that share memory."""
    named = [(name, array) for name, array in arrays.items() if isinstance(array, np.ndarray)]
    for i, (one, a) in enumerate(named):
        for two, b in named[i + 1 :]:
            if np.may_share_memory(a, b):
                raise InputError(f"{one} and {two} share memory, so one would overwrite the other; pass {two}.copy()")


def vectors(name: str, value: Any, layout: str, number: int, parts: int | None) -> np.ndarray:
    """Return a vector for each body (or for each of `parts` sub-steps and body), contiguous; other kinds are copied."""
    shape = (number, 3) if layout == "rows" else (3, number)
    expected = f"{name} must have the shape {SHAPES[layout].format(3)} with N = {number} bodies"
    if parts is not None:
        expected += f", or {(parts, *shape)} for each of the n = {parts} sub-steps"
    array = value if type(value) is np.ndarray else _converted(name, value, expected)
    if array.shape != shape and array.shape != (parts, *shape):
        raise InputError(f"{expected}; got {array.shape}", name)
    if array.dtype not in (DOUBLE, SINGLE) or not (array.flags.c_contiguous and array.flags.aligned):
        array = np.ascontiguousarray(real_array(array, expected))
    return array


def _converted(name: str, value: Any, expected: str) -> np.ndarray:
    if hasattr(value, "__dlpack__") or is_on_gpu(value):
        return viewed(name, value)
    return real_array(value, expected)


def returned(result: np.ndarray, like: Any) -> Any:
    """Return a result as an array of the kind that was given."""
    if type(like) is np.ndarray:
        return result
    return like.__array_namespace__().from_dlpack(result) if hasattr(like, "__array_namespace__") else _torch(result)


def _torch(result: np.ndarray) -> Any:
    import importlib

    return importlib.import_module("torch").from_dlpack(result)
