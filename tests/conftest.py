"""Shared set-up. Compiled code is kept in the ordinary cache folder, so that a second run compiles next to nothing."""

import hypothesis
import matplotlib
import pytest

matplotlib.use("Agg")

# The same examples every time, and no clock: a test depends neither on the load of the machine nor on earlier runs.
# `--hypothesis-profile random` (the nightly run) looks for new ones.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")

SPREAD = ("test_docs.py",)
"""Files whose tests compile programs of their own, and many of them: their tests go to any worker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of a file to one worker: two of them would compile the programs that these share twice."""
    for item in items:
        if item.path.name not in SPREAD and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
