"""What a stepper with noise keeps between calls: the count of steps, which numbers the random numbers, and memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...physics.bodies import Bodies
from ...physics.fields.heat_bath import FIRST, of_each
from .inertia import columns


class Count:
    """Number of steps that were made, for bodies in a heat bath.

    The compiled step reads it as the first number of a body's memory, as the number of the first step of a call.

    Attributes
    ----------
    made : the count
    values : the parameters of the field of all bodies, then their memories, as columns for the loop
    """

    def __init__(self, memory: int, made: int = 0) -> None:
        self.made, self._memory = made, memory
        self.values = np.empty((0, 0))
        self._first: Any = 0
        self._filled_for: Any = None

    def prepare(self, bodies: Bodies, number: int) -> None:
        """Write out the parameters of this number of bodies."""
        assert bodies.field is not None
        assert bodies.field.bath is not None
        parameters = columns(of_each(bodies.field, bodies.values, number))
        self.values = np.concatenate([parameters, np.zeros((self._memory, parameters.shape[1]))])
        self._first, self._filled_for = parameters[bodies.field.bath + FIRST], None

    def fill(self, h: Any, filled_by: Callable[[], Any], inertia: np.ndarray, *rest: Any) -> None:
        """Fill the memories for the steps h, unless they are those of the last call."""
        if self._filled_for is None or not np.array_equal(self._filled_for, h):
            filled_by()(inertia, self.values, *rest, h)
            self._filled_for = np.copy(h)

    def memory(self, number: int) -> tuple[np.ndarray, ...]:
        """The memories of this number of bodies, one array for each number in them."""
        return tuple(row[:number] for row in self.values[-self._memory :])

    def begin(self, further: int) -> None:
        """Number the first step of a call: the steps that were made, and `further` ones."""
        self.values[-self._memory] = self._first + (self.made + further)

    def parameters(self) -> np.ndarray:
        """Return the parameters of all bodies, without the memories."""
        return np.ascontiguousarray(self.values[: -self._memory])
