"""Page-locked memory for large arrays of the host that a GPU reads and writes by itself, without the processor.

To fault in the pages of an array and to lock them takes longer than to run its bodies to a moderate accuracy. Therefore
the memory of arrays that are no longer in use is kept for the next ones.
"""

from __future__ import annotations

import collections
import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .threads import share_evenly

MOST = 1 << 30
"""Most bytes that are locked, in use or kept: the operating system cannot swap them out."""

LEAST = 1 << 20
"""Fewest bytes of an array for which locked memory pays off."""

PAGE = 1 << 21
"""Bytes of a large page: blocks begin and end at these, so that no two of them share a page."""


class _Block:
    """Locked memory of whole pages."""

    def __init__(self, cuda: Any, size: int) -> None:
        lock = cuda.current_context().mempin  # numba's simulator has none
        raw = np.empty(size + PAGE, np.uint8)
        first = -raw.ctypes.data % PAGE
        self.memory = raw[first : first + size]
        share_evenly(lambda begin, end: self.memory[begin:end].fill(0), size, PAGE)  # faults in all pages
        self.forks = _FORKS
        self.lock = lock(self.memory, self.memory.ctypes.data, size)  # as long as it exists

    @property
    def size(self) -> int:
        """Number of bytes."""
        return int(self.memory.size)


class _Lease:
    """Owner of an array in a block. It lives as long as any view of the array; then the block is free again."""

    def __init__(self, block: _Block, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.block = block
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str, "data": (block.memory.ctypes.data, False),
        }  # fmt: skip
        weakref.finalize(self, _FREE.append, block).atexit = False


_FREE: collections.deque[_Block] = collections.deque()
"""Blocks that no array uses. A lease may end at any time in any thread, so that it only appends to it."""

_LOCKED: weakref.WeakSet[_Block] = weakref.WeakSet()
"""All blocks."""

_TAKING = threading.Lock()


def empty(card: Callable[[], Any], shape: tuple[int, ...], dtype: Any = float) -> np.ndarray:
    """Return an array to be filled, in locked memory if it is large and can be locked; `card` returns numba.cuda."""
    kind = np.dtype(dtype)
    size = kind.itemsize * math.prod(shape)
    if not LEAST <= size <= MOST:
        return np.empty(shape, kind)
    with _TAKING:
        block = _taken(card, -(-size // PAGE) * PAGE)
    return np.empty(shape, kind) if block is None else np.asarray(_Lease(block, shape, kind))


def _taken(card: Callable[[], Any], size: int) -> _Block | None:
    """Return a free block of at most twice the size, or a new one; None if too much is locked already."""
    free = [one for one in (_FREE.popleft() for _ in range(len(_FREE))) if one.forks == _FORKS]
    found = min((one for one in free if size <= one.size <= 2 * size), key=lambda one: one.size, default=None)
    if found is not None:
        free.remove(found)
    else:
        while free and sum(one.size for one in _LOCKED) + size > MOST:
            free.pop(0)  # the one that has been free for the longest time
        if sum(one.size for one in _LOCKED) + size <= MOST:
            found = _new(card, size)
    _FREE.extendleft(reversed(free))
    return found


def _new(card: Callable[[], Any], size: int) -> _Block | None:
    try:
        block = _Block(card(), size)
    except Exception:  # there may be no GPU, or the system refuses to lock pages for reasons of its own
        return None
    _LOCKED.add(block)
    return block


def is_locked(array: np.ndarray) -> bool:
    """Return whether an array lies in locked memory of this module."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, _Lease) and owner.block.forks == _FORKS


_FORKS = 0
"""How often this process has been copied."""


def _before_fork() -> None:
    """Let no GPU use the present blocks again.

    The child shares their pages. Before Linux 5.19 the first write of this process could then move it to other pages,
    of which the GPU would not know.
    """
    global _FORKS
    _FORKS += 1
    _FREE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
