"""Every combination of how a run steps, what it keeps, where it writes and in which direction it goes."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
combinations = importlib.import_module("combinations")
sys.path.pop(0)


def test_one_body():
    """Everything works, but derivatives are doubles in memory."""
    found = dict(combinations.results(combinations.one_body, combinations.STEPS, combinations.KEPT))
    assert len(found) == 168
    for (what, place, way, how), said in found.items():
        if what == "derivatives" and (place == "in a file" or "digits" in how):
            assert said.startswith("derivatives are computed in memory, in doubles; leave out `")
        else:
            assert not said, (what, place, way, how)


def test_many_bodies():
    """Everything works, but adaptive steps of many bodies are no common times: states and statistics need `times`.

    Derivatives are not written to files.
    """
    found = dict(combinations.results(combinations.many_bodies, combinations.MANY_STEPS, combinations.MANY_KEPT))
    assert len(found) == 108
    for (what, place, way, how), said in found.items():
        if "tol" in how and what == "`every=1`":
            assert said.endswith("give times=[...], the times to keep for all bodies")
        elif "tol" in how and what == "statistics":
            assert "give times=[...], at which statistics are evaluated" in said
        elif what.startswith("derivatives") and place == "in a file":
            assert said == "derivatives are computed in memory, without out; leave out `out` or `tangent`"
        else:
            assert not said, (what, place, way, how)
    assert all(said.count("\n") == 0 and len(said) < 220 for said in found.values())


@pytest.mark.slow
def test_the_page_has_every_combination():
    page = combinations.page()
    assert page.count("\n| ") == 2 + 24 + 36
    assert page.count(" yes |") > 200
