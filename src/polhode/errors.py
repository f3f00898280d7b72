"""The two errors raised to users, and the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results.trajectory import Trajectory


LONGEST = 1500
"""Longest message in characters; the argument that it quotes may be a long text or a large array."""


class InputError(ValueError):
    """An argument is invalid; the message says what was expected and what to do.

    Attributes
    ----------
    key : name of the invalid argument or parameter; empty if the message is not about a single one
    remedy : what to do, if that is a separate sentence; it ends the message

    Examples
    --------
    >>> try:
    ...     ph.Body([1.0, -2.0, 3.0])
    ... except ph.InputError as error:
    ...     print(type(error).__name__)
    ...
    InputError
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
    reason : why the step failed: the message without its last part, which says where the earlier states are

    Examples
    --------
    >>> try:
    ...     ph.solve(ph.problems.fast_top(), "imidm", dt=10.0, steps=3)
    ... except ph.StepError as error:
    ...     print(len(error.partial.t))
    ...
    1
    """

    def __init__(self, reason: str, partial: Trajectory | None = None, states: str = "") -> None:
        super().__init__(f"{reason}; {states}" if states else reason)
        self.partial, self.reason = partial, reason


class ResultWarning(UserWarning):
    """A result may be incomplete or less accurate than requested; the message says what to do.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", ph.ResultWarning)  # doubtful results become errors
    """


class ToleranceWarning(ResultWarning):
    """The error at the end of a run may be larger than `tol`."""


class CacheWarning(UserWarning):
    """The cache of compiled code cannot be used; results are the same, but the start is slower."""


class SpeedWarning(UserWarning):
    """A computation is much slower than it could be; results are not affected."""
