"""Periodic boxes with right angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .array_arguments import check_finite, target
from .validate import real_array

SHORTEST = 1e-100
"""Shortest edge: numbers of edges in a distance are doubles."""


class PeriodicBox:
    """A box with right angles that repeats in all three directions; one corner is the origin.

    Only centres of molecules are wrapped. The sites of a molecule follow its centre, so they may lie outside the box;
    distances are those of `minimum_image`.

    Attributes
    ----------
    lengths : the three edges

    Examples
    --------
    >>> box = ph.PeriodicBox([10.0, 10.0, 10.0])
    >>> box.wrap([[11.0, -1.0, 5.0]])
    array([[1., 9., 5.]])
    """

    def __init__(self, lengths: Any) -> None:
        given = real_array(lengths, "lengths must be one number or three", key="lengths")
        if given.shape not in ((), (3,)) or not (np.isfinite(given) & (given > 0)).all():
            raise InputError(f"lengths must be one positive number, or three; got {lengths!r}", "lengths")
        if given.min() < SHORTEST:
            raise InputError(f"lengths must be at least {SHORTEST:g}; got {lengths!r}: choose another unit", "lengths")
        self.lengths = np.array(np.broadcast_to(given, 3))
        self.lengths.flags.writeable = False

    @property
    def volume(self) -> float:
        """The volume of the box."""
        return float(self.lengths.prod())

    def wrap(self, x: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return positions (..., 3) moved by whole edges into 0 <= x < L; `out` may be the given array."""
        given = _vectors("x", x)
        inside = given - np.floor(given / self.lengths) * self.lengths
        inside[inside >= self.lengths] = 0.0  # a negative x that vanishes beside L
        return _written(inside, out)

    def minimum_image(self, d: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the shortest of all periodic images of differences (..., 3): -L/2 <= d <= L/2."""
        given = _vectors("d", d)
        return _written(given - np.rint(given / self.lengths) * self.lengths, out)

    def check_cutoff(self, cutoff: float) -> None:
        """Refuse a cut-off beyond half the shortest edge: there a molecule meets two images of a neighbour."""
        shortest = float(self.lengths.min())
        if not 0 < cutoff <= shortest / 2:
            raise InputError(
                f"the cut-off must be positive and at most half the shortest edge, {shortest / 2:g}; got {cutoff!r}"
            )

    def __repr__(self) -> str:
        return f"PeriodicBox({self.lengths.tolist()})"


def box_of(given: Any) -> PeriodicBox | None:
    """Return a box that is given as such or by its edges; None for None."""
    return given if given is None or isinstance(given, PeriodicBox) else PeriodicBox(given)


def _vectors(name: str, value: Any) -> np.ndarray:
    """Return finite vectors (..., 3) as an array of doubles."""
    expected = f"{name} must hold vectors of three numbers"
    given = real_array(value, expected, fresh=False, key=name)
    if not given.ndim or given.shape[-1] != 3:
        raise InputError(f"{expected}; got shape {given.shape}", name)
    check_finite(name, given)
    return given


def _written(values: np.ndarray, out: Any) -> np.ndarray:
    """Return the values, in the array `out` if one is given."""
    if out is None:
        return values
    result = target("out", out, values.shape)
    result[...] = values
    return result
