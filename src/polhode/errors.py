"""The two errors a user meets, and the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results.trajectory import Trajectory


LONGEST = 1500
"""Characters of a message; what was given may be a long text or a large array."""


class InputError(ValueError):
    """Something given to the library cannot be right; the message says what was expected, and what to do.

    Attributes
    ----------
    key : name of the argument or parameter that is wrong; empty where the message is not about a single one
    remedy : what to do, where that is a sentence of its own; it is the end of the message
    """

    def __init__(self, message: object, key: str = "", remedy: str = "") -> None:
        self.key, self.remedy = key, remedy
        text = f"{message}; {remedy}" if remedy else str(message)
        text = " ".join(text.split("\n"))
        half = LONGEST // 2
        super().__init__(text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}")


class StepError(RuntimeError):
    """A step failed.

    Attributes
    ----------
    partial : the Trajectory up to the last good step
    reason : why the step failed: the message without its end, which tells Python users where the states before are
    """

    def __init__(self, reason: str, partial: Trajectory | None = None, states: str = "") -> None:
        super().__init__(f"{reason}; {states}" if states else reason)
        self.partial, self.reason = partial, reason


class ResultWarning(UserWarning):
    """A result may not be everything that was asked for; the message says what is missing, and what to do."""


class CacheWarning(UserWarning):
    """The cache of compiled code cannot be used; results are the same, only the start is slower."""


class SpeedWarning(UserWarning):
    """A computation is much slower than it could be; results are not affected."""
