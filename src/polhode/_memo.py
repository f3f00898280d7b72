"""A thread-safe cache of expensive objects that drops the least recently used."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

KEPT = 256
"""Number of compiled functions or formulas that a process keeps, per kind."""


@dataclasses.dataclass(eq=False)
class _Entry:
    """A value, once it exists, and the lock held by the thread that makes it."""

    lock: Any = dataclasses.field(default_factory=threading.RLock)
    made: bool = False
    value: Any = None


class Memo:
    """A bounded cache for any number of threads; a new entry replaces the least recently used one.

    Each entry has its own lock. Threads that ask for the same value make it once, and other values can be made and
    read at the same time.
    """

    def __init__(self, size: int = KEPT) -> None:
        self.size, self.entries, self._lock = size, OrderedDict[Any, _Entry](), threading.Lock()

    def __call__(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value of a key; make it, once, if it does not exist."""
        with self._lock:
            entry = self.entries.setdefault(key, _Entry())
            self.entries.move_to_end(key)
            while len(self.entries) > self.size:
                self.entries.popitem(last=False)
        if not entry.made:
            with entry.lock:
                if not entry.made:
                    try:
                        entry.value = make()
                    except BaseException:
                        self._forget(key, entry)
                        raise
                    entry.made = True
        return entry.value

    def _forget(self, key: Any, entry: _Entry) -> None:
        with self._lock:
            if self.entries.get(key) is entry:
                del self.entries[key]

    def values(self) -> list[Any]:
        """Return the finished values, the most recently used last."""
        with self._lock:
            return [entry.value for entry in self.entries.values() if entry.made]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self.entries.clear()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.entries)


MADE = Memo(4 * KEPT)
"""The cache of compiled code and of the formulas behind it; keys begin with the kind of the entry."""
