"""Progress bar for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ..compile.clock import Stopwatch
from ..compile.notice import has_reader
from ..physics.validate import check_call, flag

PATIENCE = 2.0
"""Seconds before a progress bar appears, without those of compiling."""


class Progress:
    """A progress bar on stderr with the estimated time left, shown only for long work.

    `wish` is None (a bar if stderr is a terminal or a notebook), True, False, or a function of the fraction done.
    """

    def __init__(self, wish: bool | Callable[[float], Any] | None, label: str, total: int) -> None:
        self.check(wish)
        self.call = wish if callable(wish) else None
        self.visible = (has_reader() if wish is None else bool(wish)) and not self.call
        self.label, self.total, self.watch = label, max(total, 1), Stopwatch()
        self.bar: Any = None
        self.task: Any = None

    @staticmethod
    def check(wish: Any) -> None:
        """Refuse what is no argument `progress`."""
        if callable(wish):
            check_call("progress", wish, "fraction")
        elif wish is not None:
            flag("progress (if it is no function)", wish)

    def note(self, text: str) -> None:
        """Print a message."""
        if self.visible:
            print(text, file=sys.stderr, flush=True)

    def update(self, done: int) -> None:
        """Report how much is done."""
        if self.call:
            self.call(done / self.total)
        if not self.visible:
            return
        if self.bar is None and self.watch.seconds > PATIENCE:
            self._open()
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def _open(self) -> None:
        self.bar = _bar()
        self.bar.start()
        self.task = self.bar.add_task(self.label, total=self.total)

    def close(self) -> None:
        """Stop the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def _bar() -> Any:
    """A bar of rich, or a line of text if it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        return Line()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True))


class Line:
    """What `Progress` asks of a bar, as one line that is written again each time the percentage changes."""

    def __init__(self) -> None:
        self.label, self.total, self.began, self.shown = "", 1, 0.0, -1

    def start(self) -> None:
        """Start the clock."""
        self.began = time.monotonic()

    def add_task(self, label: str, total: int) -> None:
        """Set what runs, and how much there is to do."""
        self.label, self.total = label, total

    def update(self, task: None, completed: int) -> None:
        """Show the part that is done, in percent, and the time since the line appeared."""
        part = 100 * completed // self.total
        if part != self.shown:
            self.shown = part
            seconds = time.monotonic() - self.began
            print(f"\r{self.label}  {part:3d}%  {seconds:.0f} s ", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """End the line."""
        print(file=sys.stderr, flush=True)


class Runs:
    """Progress of one run, or by default of an unknown number of runs: it never decreases, and ends complete.

    As a context it opens and closes the bar; the end is complete if nothing was raised.
    """

    def __init__(self, wish: bool | Callable[[float], Any] | None, label: str, one: bool = False) -> None:
        self.progress, self.runs, self.last, self.one = Progress(wish, label, 1000), 0, 0.0, one

    @property
    def has_reader(self) -> bool:
        """Whether somebody can see it."""
        return self.progress.visible or self.progress.call is not None

    def tell(self, part: float) -> None:
        """Report the completed fraction of the current run."""
        if self.one:
            self.last = max(part, self.last)
            self.progress.update(round(999 * self.last))
            return
        self.runs += part < self.last
        self.last = part
        self.progress.update(round(1000 * (1 - 1 / (1 + (self.runs + part) / 8))))

    def __enter__(self) -> Runs:
        """Return itself."""
        return self

    def __exit__(self, kind: Any, fault: Any, trace: Any) -> None:
        """Report that all runs are complete, if they are, and stop the bar."""
        try:
            if kind is None:
                self.progress.update(1000)
        finally:
            self.progress.close()
