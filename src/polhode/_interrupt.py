"""Ctrl-C and SIGTERM for the command line; the library leaves the handlers of signals alone.

A process started as a command ends quietly with exit code 130 when Ctrl-C is pressed while modules are still imported.
Once the command runs, Ctrl-C is a KeyboardInterrupt again, and SIGTERM is taken as Ctrl-C.
"""

import os
import signal
import sys
import threading

INTERRUPTED = 130


def _is_command() -> bool:
    """Was this process started as ``polhode ...`` or ``python -m polhode ...``."""
    if sys.argv[:1] == ["-m"]:  # as long as the package is imported
        given = sys.orig_argv
        return "-m" in given and given[given.index("-m") + 1 :][:1] == [__package__]
    return os.path.basename("".join(sys.argv[:1])).removesuffix(".exe") == __package__  # pathlib takes longer


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)  # nothing has been done yet that an orderly end would save


def _as_interrupt(number: int, frame: object) -> None:
    signal.raise_signal(signal.SIGINT)  # whoever holds Ctrl-C back while a file is written holds this back too


def while_importing() -> None:
    """Leave quietly on Ctrl-C, if this process is the command line."""
    if _is_command() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def while_running() -> None:
    """Ctrl-C and SIGTERM are KeyboardInterrupts."""
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _as_interrupt)


while_importing()
