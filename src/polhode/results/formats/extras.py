"""Packages that only some formats need."""

from __future__ import annotations

import importlib
from typing import Any

from ...errors import InputError


def needed(module: str, extra: str) -> Any:
    """Import a module of an optional package, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(f"this format needs {package}; install it with: pip install 'polhode[{extra}]'") from None
