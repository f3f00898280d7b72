"""Memory of large arrays that are no longer in use, kept for the next ones.

Page faults can take 10 % of the time of an ensemble run, and pinning pages for a GPU longer than the run; so large
blocks are reused.
"""

from __future__ import annotations

import collections
import math
import operator
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

CACHE_LINE = 64
"""Bytes, as many as in the largest vector register."""


class Block:
    """Memory of `size` bytes that begins with a multiple of `grain`."""

    def __init__(self, size: int, grain: int) -> None:
        raw = np.empty(size + grain, np.uint8)
        first = -raw.ctypes.data % grain
        self.memory, self.size = raw[first : first + size], size

    @property
    def is_usable(self) -> bool:
        """Whether another array may use it."""
        return True


class _Lease:
    """Owner of an array in a block. It lives as long as any view of the array; then the block is free again."""

    def __init__(
        self, block: Block, free: collections.deque[Block], shape: tuple[int, ...], kind: np.dtype[Any]
    ) -> None:
        self.block, self.is_handed_out = block, False
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": kind.str, "data": (block.memory.ctypes.data, False),
        }  # fmt: skip
        weakref.finalize(self, free.append, block).atexit = False


class Pool:
    """Blocks in use, and free ones for arrays to come.

    Arrays of fewer than `least` bytes are ordinary ones, and so are those for which more than `most` bytes would be in
    use or kept.
    """

    def __init__(self, least: int, most: int, grain: int) -> None:
        self.least, self.most, self.grain = least, most, grain
        self.free: collections.deque[Block] = collections.deque()
        """Blocks that no array uses. A lease may end at any time in any thread, so that it only appends to it."""
        self.blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        self._taking = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._released)

    def _released(self) -> None:
        """Release the lock in a copy of the process: the thread that holds it may not be there."""
        self._taking = threading.Lock()

    def empty(
        self, shape: tuple[int, ...], dtype: Any = float, make: Callable[[int, int], Block | None] = Block
    ) -> np.ndarray:
        """Return an array to be filled; `make` (size, grain) returns a new block, or None if there can be none."""
        kind = np.dtype(dtype)
        size = kind.itemsize * math.prod(shape)
        if not self.least <= size <= self.most:
            return np.empty(shape, kind)
        with self._taking:
            block = self._taken(-(-size // self.grain) * self.grain, make)
        return np.empty(shape, kind) if block is None else np.asarray(_Lease(block, self.free, shape, kind))

    def _taken(self, size: int, make: Callable[[int, int], Block | None]) -> Block | None:
        """Return a free block of at most twice the size, or a new one; None if there is too much already."""
        free = [self.free.popleft() for _ in range(len(self.free))]
        found = min(
            (one for one in free if size <= one.size <= 2 * size and one.is_usable),
            key=operator.attrgetter("size"), default=None,
        )  # fmt: skip
        if found is not None:
            free.remove(found)
        else:
            free = [one for one in free if one.is_usable]
            while free and self.total + size > self.most:
                free.pop(0)  # the one that has been free for the longest time
            if self.total + size <= self.most and (found := make(size, self.grain)) is not None:
                self.blocks.add(found)
        self.free.extendleft(reversed(free))
        return found

    @property
    def total(self) -> int:
        """Bytes in use or kept."""
        return sum(one.size for one in self.blocks)


def block_of(array: np.ndarray) -> Block | None:
    """Return the block in which an array lies; None for an ordinary array."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner.block if isinstance(owner, _Lease) else None


def whole_of(start: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return the array of which `start` is the first part, if it has a shape and was not returned before."""
    whole: Any = start.base
    if not isinstance(whole, np.ndarray) or whole.shape != shape or whole.ctypes.data != start.ctypes.data:
        return None
    lease: Any = whole.base
    if not isinstance(lease, _Lease) or lease.is_handed_out:
        return None
    lease.is_handed_out = True
    return whole


HOST = Pool(1 << 16, 1 << 28, CACHE_LINE)
"""Memory for the processor: arrays begin with a cache line, so that no vector lies in two of them."""
