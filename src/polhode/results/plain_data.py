"""Results as plain data, for JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """Convert a value for JSON: arrays become lists, sets sorted lists, paths texts, and non-finite numbers None."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
