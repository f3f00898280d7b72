"""Things that are expensive to make, kept for as long as they are among the last ones used."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

KEPT = 256
"""Compiled functions, or formulas, of one kind that a process keeps."""


@dataclasses.dataclass(eq=False)
class _Entry:
    """A value, once it is made, and the lock of the thread that makes it."""

    lock: Any = dataclasses.field(default_factory=threading.RLock)
    made: bool = False
    value: Any = None


class Memo:
    """A bounded store for any number of threads: the least recently used entry makes room for a new one.

    Each entry has a lock of its own. So threads that ask for the same thing make it once, and while one is being made
    others can be made and found.
    """

    def __init__(self, size: int = KEPT) -> None:
        self.size, self.entries, self._lock = size, OrderedDict[Any, _Entry](), threading.Lock()

    def __call__(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for a key; made now, once, if it is not there."""
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
        """What has been made, the last one used at the end."""
        with self._lock:
            return [entry.value for entry in self.entries.values() if entry.made]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self.entries.clear()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.entries)


MADE = Memo(4 * KEPT)
"""The one memo of compiled code and of the formulas it is made of; keys begin with the kind of thing."""
