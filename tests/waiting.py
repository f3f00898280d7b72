"""How long tests wait for other processes, and processes that do not outlive their test."""

import contextlib
import subprocess

PATIENCE = 300
"""Seconds after which a process that does not answer counts as hung: far more than a busy machine needs."""


@contextlib.contextmanager
def started(command, **pipes):
    """A process that is killed when the test leaves it, also by a failed assertion."""
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()
