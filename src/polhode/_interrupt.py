"""Ctrl-C and SIGTERM on the command line; used as a library, the package does not touch signal handlers.

If Ctrl-C is pressed while modules are still being imported, the command exits quietly with code 130.
Once the command runs, Ctrl-C raises KeyboardInterrupt again, and SIGTERM is handled as Ctrl-C.
"""

import os
import signal
import sys
import threading

INTERRUPTED = 130


def _is_command() -> bool:
    """Whether this process was started as ``polhode ...`` or ``python -m polhode ...``."""
    if sys.argv[:1] == ["-m"]:  # while the package is being imported
        arguments = sys.orig_argv
        return "-m" in arguments and arguments[arguments.index("-m") + 1 :][:1] == [__package__]
    return os.path.basename("".join(sys.argv[:1])).removesuffix(".exe") == __package__  # importing pathlib takes longer


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)  # there is nothing to clean up yet


def _as_interrupt(number: int, frame: object) -> None:
    signal.raise_signal(signal.SIGINT)  # code that defers Ctrl-C while it writes a file defers this too


def while_importing() -> None:
    """Exit quietly on Ctrl-C if this process is the command line."""
    if _is_command() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def while_running() -> None:
    """Make Ctrl-C and SIGTERM raise KeyboardInterrupt."""
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _as_interrupt)


while_importing()
