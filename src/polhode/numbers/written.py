"""Functions made from text, which remember their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXT = "__written__"
"""Attribute of a function that holds its text."""


def run_text(text: str, space: dict[str, Any]) -> None:
    """Execute a text of function definitions in a namespace; the text must come from this package only."""
    exec(text, space)
    for value in list(space.values()):
        if getattr(value, "__globals__", None) is space:
            setattr(value, TEXT, text)


def text_of(function: Callable[..., Any]) -> str | None:
    """The text from which a function was made by `run_text`, else None."""
    return getattr(function, TEXT, None)
