"""Import the compiler on first use; the import time counts as compile time."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from .clock import counted

if TYPE_CHECKING:
    from .program import Program


@functools.cache
def _compiler() -> Any:
    return counted(importlib.import_module)("polhode.compile.program")


def program(make: Callable[[], Callable[..., Any]], *shortcut: Hashable) -> Program:
    """Return the program of a function (`program.program`)."""
    found: Program = _compiler().program(make, *shortcut)
    return found


def entry_point(run: Any, *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of a compiled function for the types of some arguments (`program.entry_point`)."""
    found: Callable[..., Any] = _compiler().entry_point(run, *arguments)
    return found
