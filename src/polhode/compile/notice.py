"""One line on stderr while code compiles for longer than a second, so that the user sees what the call waits for.

    compiling imidm for this field (once; kept in the cache) ... 3 s

In a terminal the line counts the seconds, and is cleared at the end; several programs compiled in a row share it. In a
notebook, or above a progress bar, where a line cannot be rewritten, it is completed at the end instead. Nothing is
shown if nobody reads stderr. A thread waits for the second to pass, and only while something compiles: calls of
compiled code, and code that is loaded from the cache, do not come here.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

PATIENCE = 1.0
"""Seconds of compiling before the line appears."""

PAUSE = 0.5
"""Programs are compiled in a row if no more seconds pass between them."""

TICK = 0.5
"""Seconds between two updates of the line."""

KEPT, FORGOTTEN = "once; kept in the cache", "once in this process"
"""What happens to code that is compiled: it is stored on disk, or not."""


def has_reader() -> bool:
    """Whether somebody reads stderr: in a terminal, or in a notebook."""
    return sys.stderr is not None and (_is_terminal() or "ipykernel" in sys.modules)


def _is_terminal() -> bool:
    """Whether stderr is a terminal; it may be closed, or an object of another program that can only be written to."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, OSError, ValueError):
        return False


class Subject(NamedTuple):
    """What is compiled in a context, and whether to say so: None asks `has_reader`."""

    what: str = "code for this call"
    shown: bool | None = None


_subject: contextvars.ContextVar[Subject] = contextvars.ContextVar("subject", default=Subject())  # noqa: B039 - immutable


class about:
    """Name what is compiled in this context; the outermost context with a wish decides whether it is shown."""

    __slots__ = ("shown", "token", "what")

    def __init__(self, what: str, shown: bool | None = None) -> None:
        self.what, self.shown = what, shown

    def __enter__(self) -> None:
        outer = _subject.get()
        asked = self.shown if outer.shown is None else outer.shown
        self.token = _subject.set(Subject(self.what or outer.what, asked))

    def __exit__(self, *fault: object) -> None:
        _subject.reset(self.token)


def shown(wish: bool) -> about:
    """Decide whether the line is shown in this context, unless an outer one has decided."""
    return about("", wish)


def named(method: str, problem: Any) -> str:
    """Name a program for a method and a problem."""
    field = getattr(problem, "field", problem)  # other spaces have none
    return f"{method} for {'a free body' if field is None else 'this problem' if field is problem else 'this field'}"


def announced(compiling: Callable[..., Any], fate: str) -> Callable[..., Any]:
    """Wrap a function that compiles: the line is shown if it takes long. `fate` is `KEPT` or `FORGOTTEN`."""

    @functools.wraps(compiling)
    def announce(*args: Any, **options: Any) -> Any:
        LINE.begin(_subject.get(), fate)
        try:
            return compiling(*args, **options)
        finally:
            LINE.end()

    return announce


class Line:
    """The line. `spent` are the seconds of programs compiled in a row that it has not reported."""

    def __init__(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.spent, self.began, self.ended = 0.0, 0.0, float("-inf")
        self.stop, self.text, self.length = threading.Event(), "", 0
        self.stop.set()

    def begin(self, subject: Subject, fate: str) -> None:
        """Start to wait, unless something compiles already, of which this is a part."""
        with self.lock:
            self.depth += 1
            if self.depth > 1 or subject.shown is False or _is_worker():
                return
            self.began = time.monotonic()
            if self.began - self.ended > PAUSE:
                self.spent = 0.0
            self.text, self.stop = f"compiling {subject.what} ({fate}) ...", threading.Event()
            waiting = threading.Thread(target=self._wait, args=(self.stop, subject.shown), daemon=True)
        try:
            waiting.start()
        except RuntimeError:  # the interpreter ends, and starts no more threads
            pass
        except BaseException:  # an interrupt, after which nobody ends the line
            self.end()
            raise

    def end(self) -> None:
        """Clear or complete the line."""
        with self.lock:
            self.depth -= 1
            if self.depth or self.stop.is_set():
                return
            self.stop.set()
            self.ended = time.monotonic()
            self.spent += self.ended - self.began
            if not self.length:
                return
            if _in_place():
                _write("\r" + " " * self.length + "\r")
            else:
                _write(f" {self.spent:.1f} s\n")
                self.spent = 0.0
            self.length = 0

    def _wait(self, stop: threading.Event, shown: bool | None) -> None:
        if stop.wait(max(0.0, PATIENCE - self.spent)) or not (has_reader() if shown is None else shown):
            return
        while True:
            with self.lock:
                if stop.is_set():
                    return
                self._show()
            if stop.wait(TICK):
                return

    def _show(self) -> None:
        if _in_place():
            seconds = self.spent + time.monotonic() - self.began
            text = f"{self.text} {seconds:.0f} s"[: shutil.get_terminal_size().columns - 1]
            _write("\r" + text.ljust(self.length))
            self.length = max(self.length, len(text))
        elif not self.length:
            _write(self.text)
            self.length = len(self.text)


def _is_worker() -> bool:
    """Whether this process was started by another one, whose terminal it shares with others that compile the same."""
    processes = sys.modules.get("multiprocessing.process")  # imported by then; its import would slow down ours
    return processes is not None and processes.parent_process() is not None


def _in_place() -> bool:
    """Whether the line can be rewritten: in a terminal without a live display, through which stderr would go."""
    return _is_terminal() and not hasattr(sys.stderr, "rich_proxied_file")


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a closed stderr does not stop a run
        sys.stderr.write(text)
        sys.stderr.flush()


LINE = Line()
