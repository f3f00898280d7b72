"""How many digits a run works with beyond those asked for."""

from __future__ import annotations

import contextlib

GUARD_DIGITS = 5
"""Digits carried beyond those asked for."""


def guarded(digits: int | None) -> contextlib.AbstractContextManager[None]:
    """Work with the digits asked for and GUARD_DIGITS more; with None, in doubles, nothing is changed."""
    if digits is None:
        return contextlib.nullcontext()
    from .multiprecision import working  # mpmath takes long to import

    return working(digits + GUARD_DIGITS)
