"""Arrays among the parameters of a field, read row by row.

A parameter that a function sums over (`total`), or a long table, is kept as columns: one array for each number of a
row. Compiled code gets the arrays as arguments. Neither their entries nor the number of rows is part of a formula, so
new data and more rows trace and compile nothing.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..numbers.nested import Nested, nested
from .expression import Exprs, lift


class Rows:
    """Rows of numbers, or of formulas: a column for each number of a row.

    Attributes
    ----------
    columns : one-dimensional arrays of doubles, all of the same length; in a formula, a symbol for each of them
    inner : shape of one row, () for a number
    """

    def __init__(self, columns: Sequence[Any], inner: tuple[int, ...]) -> None:
        self.columns, self.inner = tuple(columns), inner

    @classmethod
    def of(cls, value: Any, name: str) -> Rows:
        """The rows of an array of finite numbers."""
        if isinstance(value, cls):
            return value
        expected = f"{name} must be rows of finite numbers, all of the same shape"
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{expected}; got {type(value).__name__}", name) from None
        if array.ndim == 0 or not array.size or not np.isfinite(array).all():
            raise InputError(f"{expected}; got an array of shape {array.shape}", name)
        columns = np.ascontiguousarray(array.reshape(len(array), -1).T)
        columns.flags.writeable = False
        return cls(tuple(columns), array.shape[1:])

    def like(self, leaves: Sequence[Any]) -> Rows:
        """Rows of the same shape with other columns."""
        return Rows(leaves, self.inner)

    def head(self, count: int) -> Rows:
        """The first rows."""
        return Rows([column[:count] for column in self._arrays], self.inner)

    def row(self, entries: Sequence[Any]) -> Any:
        """The numbers of one row in its shape."""
        return _shaped(iter(entries), self.inner)

    @property
    def is_formula(self) -> bool:
        """True if its columns are symbols."""
        return not isinstance(self.columns[0], np.ndarray)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, then the shape of one."""
        return (len(self), *self.inner)

    def __len__(self) -> int:
        if self.is_formula:
            raise TypeError("the number of rows of an array is not part of a formula; sum over its rows with ph.total")
        return len(self.columns[0])

    def __iter__(self) -> Any:
        """The rows, one after the other."""
        return (self.row(entries) for entries in zip(*(column.tolist() for column in self._arrays), strict=True))

    def __getitem__(self, index: int) -> Any:
        """One row; in a formula the first (0) or the last (-1), which are there for any number of rows."""
        if self.is_formula and index in (0, -1):
            return self.row([Exprs.take(lift(index), column) for column in self.columns])
        return self.row([float(column[index]) for column in self._arrays])

    @property
    def _arrays(self) -> tuple[Any, ...]:
        len(self)  # an error in a formula
        return self.columns

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the numbers."""
        return hashlib.blake2b(b"".join(column.tobytes() for column in self._arrays), digest_size=8).hexdigest()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Rows) and self.shape == other.shape and self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.shape, self.digest))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The array of the user."""
        return np.stack(self._arrays, axis=1).reshape(self.shape).astype(dtype or float, copy=False)

    def tolist(self) -> Any:
        """The rows as nested lists."""
        return np.array(self).tolist()

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {math.prod(self.inner)} numbers, {self.digest}>"

    def __reduce__(self) -> Any:
        """Sent as its array."""
        return Rows.of, (np.array(self), "data")


class Trial(Nested):
    """An array in a trial that finds out which parameters a function sums over; all entries are one formula."""

    is_summed = False

    @classmethod
    def of(cls, entry: Any, shape: tuple[int, ...]) -> Trial:
        """The array of this shape."""
        return cls(_shaped(itertools.repeat(entry), shape))


def _shaped(rest: Any, shape: tuple[int, ...]) -> Any:
    return nested([_shaped(rest, shape[1:]) for _ in range(shape[0])]) if shape else next(rest)
