"""The count of steps of a stepper with noise: with the seed and the body, it numbers the random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...physics.bodies import Bodies
from ...physics.fields.heat_bath import FIRST, of_each
from .inertia import columns


class Count:
    """Number of steps that were made, for bodies in a heat bath.

    The compiled step reads it among the parameters of the bath, as the number of the first step of a call.

    Attributes
    ----------
    made : the count
    values : the parameters of the field of all bodies, as columns for the loop
    """

    def __init__(self, made: int = 0) -> None:
        self.made = made
        self.values = np.empty((0, 0))
        self._first: Any = 0
        self._row = 0

    def prepare(self, bodies: Bodies, number: int) -> None:
        """Write out the parameters of this number of bodies."""
        assert bodies.field is not None
        assert bodies.field.bath is not None
        self.values, self._row = columns(of_each(bodies.field, bodies.values, number)), bodies.field.bath + FIRST
        self._first = self.values[self._row].copy()
        self.begin(0)

    def begin(self, further: int) -> None:
        """Number the first step of a call: the steps that were made, and `further` ones."""
        self.values[self._row] = self._first + (self.made + further)

    def at_start(self) -> np.ndarray:
        """Return the parameters of all bodies with the first steps as they were given, without the count."""
        values = self.values.copy()
        values[self._row] = self._first
        return values
