"""The two errors a user meets, and the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results.trajectory import Trajectory


LONGEST = 1500
"""Characters of a message; what was given may be a long text or a large array."""


class InputError(ValueError):
    """Something given to the library cannot be right; the message says what was expected, and what to do."""

    def __init__(self, message: object) -> None:
        text = " ".join(str(message).split("\n")) if "\n" in str(message) else str(message)
        half = LONGEST // 2
        super().__init__(text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}")


class StepError(RuntimeError):
    """A step failed. ``partial`` is the Trajectory up to the last good step."""

    def __init__(self, message: str, partial: Trajectory | None = None) -> None:
        super().__init__(message)
        self.partial = partial


class ResultWarning(UserWarning):
    """A result may not be everything that was asked for; the message says what is missing, and what to do."""


class CacheWarning(UserWarning):
    """The cache of compiled code cannot be used; results are the same, only the start is slower."""
