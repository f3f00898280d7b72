"""Things that are dear to make, kept for as long as they are among the last ones used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

KEPT = 256
"""Compiled functions, or formulas, of one kind that a process keeps."""


class Memo:
    """A bounded store, for any number of threads: the least recently used entry makes room for a new one."""

    def __init__(self, size: int = KEPT) -> None:
        self.size, self.entries, self._lock = size, OrderedDict[Any, Any](), threading.RLock()

    def __call__(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for a key; made now, once, if it is not there."""
        with self._lock:
            if key in self.entries:
                self.entries.move_to_end(key)
            else:
                self.entries[key] = make()
                while len(self.entries) > self.size:
                    self.entries.popitem(last=False)
            return self.entries[key]

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.entries)
