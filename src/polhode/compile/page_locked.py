"""Page-locked memory for large arrays of the host that a GPU reads and writes by itself, without the processor.

To fault in the pages of an array and to lock them takes longer than to run its bodies to a moderate accuracy. Therefore
this memory too is kept (`kept_memory`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .kept_memory import Block, Pool, block_of
from .threads import share_evenly

PAGE = 1 << 21
"""Bytes of a large page: blocks begin and end at these, so that no two of them share a page."""

LOCKED = Pool(1 << 20, 1 << 30, PAGE)
"""At most this much is locked, in use or kept, because the operating system cannot swap it out."""


class _Locked(Block):
    """Locked memory of whole pages."""

    def __init__(self, cuda: Any, size: int, grain: int) -> None:
        lock = cuda.current_context().mempin  # numba's simulator has none
        super().__init__(size, grain)
        share_evenly(lambda begin, end: self.memory[begin:end].fill(0), size, grain)  # faults in all pages
        self.forks = _FORKS
        self.lock = lock(self.memory, self.memory.ctypes.data, size)  # as long as it exists

    @property
    def is_usable(self) -> bool:
        """Whether no fork has copied it."""
        return self.forks == _FORKS


def empty(card: Callable[[], Any], shape: tuple[int, ...], dtype: Any = float) -> np.ndarray:
    """Return an array to be filled, in locked memory if it is large and can be locked; `card` returns numba.cuda."""

    def make(size: int, grain: int) -> Block | None:
        try:
            return _Locked(card(), size, grain)
        except Exception:  # there may be no GPU, or the system refuses to lock pages for reasons of its own
            return None

    return LOCKED.empty(shape, dtype, make)


def is_locked(array: np.ndarray) -> bool:
    """Return whether an array lies in locked memory of this module."""
    block = block_of(array)
    return isinstance(block, _Locked) and block.is_usable


_FORKS = 0
"""How often this process has been copied."""


def _before_fork() -> None:
    """Let no GPU use the present blocks again.

    The child shares their pages. Before Linux 5.19 the first write of this process could then move it to other pages,
    of which the GPU would not know.
    """
    global _FORKS
    _FORKS += 1
    LOCKED.free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
