"""Progress bar for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ..physics.validate import check_call, flag

PATIENCE = 2.0
"""Seconds before a progress bar appears."""


def _has_reader() -> bool:
    """Whether somebody reads stderr: on a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """A progress bar on stderr with the estimated time left, shown only for long work.

    `wish` is None (a bar if stderr is a terminal or a notebook), True, False, or a function of the fraction done.
    """

    def __init__(self, wish: bool | Callable[[float], Any] | None, label: str, total: int) -> None:
        if wish is not None and not callable(wish):
            wish = flag("progress (if it is no function)", wish)
        if callable(wish):
            check_call("progress", wish, "fraction")
        self.call = wish if callable(wish) else None
        self.visible = (_has_reader() if wish is None else bool(wish)) and not self.call
        self.label, self.total, self.start = label, max(total, 1), time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def note(self, text: str) -> None:
        """Print a message, for example that code is being compiled."""
        if self.visible:
            print(text, file=sys.stderr, flush=True)

    def update(self, done: int) -> None:
        """Report how much is done."""
        if self.call:
            self.call(done / self.total)
        if not self.visible:
            return
        if self.bar is None and time.monotonic() - self.start > PATIENCE:
            self._open()
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        self.bar = Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True))
        self.bar.start()
        self.task = self.bar.add_task(self.label, total=self.total)

    def close(self) -> None:
        """Stop the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
