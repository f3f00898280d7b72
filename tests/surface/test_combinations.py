"""Every combination of how a run steps, what it keeps, where it writes and in which direction it goes."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
combinations = importlib.import_module("combinations")
sys.path.pop(0)


def test_one_body():
    """Everything works."""
    found = dict(combinations.results(combinations.one_body, combinations.STEPS, combinations.KEPT))
    assert len(found) == 140
    assert [key for key, said in found.items() if said] == []


@pytest.mark.slow
def test_many_bodies():
    """With a method and dt everything works forwards, but events in a file; adaptive steps keep the ends, in memory."""
    found = dict(combinations.results(combinations.many_bodies, combinations.MANY_STEPS, combinations.MANY_KEPT))
    works = {key for key, said in found.items() if not said}
    assert {key for key in works if "dt" in key[3]} == {
        (what, place, "forwards", "method, `dt`")
        for what in combinations.MANY_KEPT
        for place in combinations.PLACES
        if (what, place) != ("events", "in a file")
    }
    assert {key[:3] for key in works if "dt" not in key[3]} == {("start and end", "in memory", "forwards")}
    assert all(said.count("\n") == 0 and len(said) < 200 for said in found.values())


@pytest.mark.slow
def test_the_page_has_every_combination():
    page = combinations.page()
    assert page.count("\n| ") == 2 + 20 + 16
    assert page.count(" yes |") > 140
