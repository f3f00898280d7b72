"""Pages in a browser, for tests."""

from __future__ import annotations

import math
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Page


def until(page: Page, condition: str) -> None:
    """Wait for a condition; the page's policy forbids the driver to compile one within it."""
    end = monotonic() + PATIENCE
    while monotonic() < end:
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never {condition}")


def turned(one: Any, other: Any) -> float:
    """The angle of the rotation from one attitude to another, unit quaternions of either sign."""
    apart = min(np.linalg.norm(np.subtract(one, other)), np.linalg.norm(np.add(one, other)))
    return float(4 * math.asin(apart / 2))


def paused(page: Page) -> Page:
    page.evaluate("polhode.pause()")
    return page
