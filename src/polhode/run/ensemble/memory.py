"""Memory for the large arrays of an ensemble, by the device that runs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compile import kept_memory
from ...errors import InputError
from ...results.store import integrity


def check_memory(states: float, columns: int) -> None:
    """Refuse more states of so many numbers than fit in memory."""
    if said := integrity.shortage(states, 8 * columns):
        raise InputError(f"{said}; keep fewer with every or times, run fewer bodies, or write to a file with out")


class Memory:
    """Memory of the host, kept between calls."""

    def empty(self, shape: tuple[int, ...], dtype: Any = float) -> np.ndarray:
        """Return an array to be filled."""
        return kept_memory.HOST.empty(shape, dtype)

    def empty_after(self, start: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array for states, the first of which are those in `start`; they may be there already."""
        return self.empty(shape)

    def copy_in_advance(self, checks: Any, arrays: dict[str, Any]) -> None:
        """Check and copy arrays at once, where that is faster; `checks` are those of the first two."""

    def known(self, name: str, array: np.ndarray) -> np.ndarray | None:
        """Return the copy that was made of an array in advance; None if there is none, or if a check did not hold."""
        return None


HOST = Memory()


class CardMemory(Memory):
    """Page-locked memory, which a GPU reads and writes by itself."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], np.ndarray] = {}

    def empty(self, shape: tuple[int, ...], dtype: Any = float) -> np.ndarray:
        """Return an array to be filled, in page-locked memory if it is large."""
        from ...compile import cuda, page_locked

        return page_locked.empty(cuda.card, shape, dtype)

    def empty_after(self, start: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array for states; if there is room after those at the start, it begins with them."""
        found = kept_memory.whole_of(start, shape)
        return self.empty(shape) if found is None else found

    def _empty_with_room(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array to be filled, with room for as much after it: the result of a run that keeps no states."""
        found: np.ndarray = self.empty((2, *shape))[0]
        return found

    def copy_in_advance(self, checks: Any, arrays: dict[str, Any]) -> None:
        """Check and copy the arrays of many bodies in one pass."""
        from ...compile.batch import intake

        states = {"attitudes", "momenta"}
        made = intake.copied(
            checks, tuple(arrays.values()), [self._empty_with_room if x in states else self.empty for x in arrays]
        )
        self._made = {_key(name, arrays[name]): x for name, x in zip(arrays, made, strict=True) if x is not None}

    def known(self, name: str, array: np.ndarray) -> np.ndarray | None:
        """Return the copy that was made of an array in advance; None if there is none, or if a check did not hold."""
        return self._made.get(_key(name, array))


def _key(name: str, array: np.ndarray) -> tuple[Any, ...]:
    return name, array.__array_interface__["data"][0], array.shape


MEMORY: dict[str, type[Memory]] = {"cpu": Memory, "cuda": CardMemory}
"""By the user's name of the device."""
