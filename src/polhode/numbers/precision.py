"""Working precision of a run: the requested digits and guard digits."""

from __future__ import annotations

import contextlib

GUARD_DIGITS = 5
"""Digits carried beyond the requested ones."""


def guarded(digits: int | None) -> contextlib.AbstractContextManager[None]:
    """Set the working precision to `digits` + GUARD_DIGITS; None means doubles and changes nothing."""
    if digits is None:
        return contextlib.nullcontext()
    from .multiprecision import working  # mpmath takes long to import

    return working(digits + GUARD_DIGITS)
