"""NumPy arrays as a number type: one kernel call acts on a whole recorded trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dispatch import register


class Arrays:
    """NumPy's functions under the names kernels use."""

    sqrt, exp, log = np.sqrt, np.exp, np.log
    sin, cos, tan = np.sin, np.cos, np.tan
    asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
    sinh, cosh, tanh = np.sinh, np.cosh, np.tanh
    power, where = np.power, np.where

    @staticmethod
    def whole(x: np.ndarray) -> np.ndarray:
        """Whole numbers as integers."""
        return x.astype(np.int64)

    @staticmethod
    def epsilon() -> float:
        """Distance from 1 to the next double."""
        return 2.0**-52

    @staticmethod
    def bracket(x: np.ndarray, knots: Any) -> np.ndarray:
        """Indices of the table intervals that contain x."""
        return np.clip(np.searchsorted(np.asarray(knots), x, side="right") - 1, 0, len(knots) - 2)

    @staticmethod
    def take(index: np.ndarray, column: Any) -> np.ndarray:
        """Entries of a table."""
        return np.asarray(column)[index]


register(np.ndarray, Arrays)


def relative(change: Any, scale: Any) -> np.ndarray:
    """Return the changes divided by a scale, or unchanged if the scale is zero."""
    return np.asarray(change / np.where(scale > 0, scale, 1.0))


def components(array: np.ndarray) -> Any:
    """The columns, along the last dimension, as a tuple: a vector or quaternion for kernels."""
    return tuple(array[..., i] for i in range(array.shape[-1]))
