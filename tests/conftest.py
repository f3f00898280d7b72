"""Shared set-up. Compiled code is kept in the ordinary cache folder, so that a second run compiles next to nothing."""

import gc
import webbrowser
from pathlib import Path
from typing import Any

import hypothesis
import matplotlib
import pytest
from xdist.scheduler import LoadScopeScheduling

import interpreted as interpretation

matplotlib.use("Agg")
webbrowser.open = lambda *_, **__: False  # no test opens windows
pytest.register_assert_rewrite("python_loop", "stopped_runs")

# The same examples every time, and no clock: a test depends neither on the load of the machine nor on earlier runs.
# `--hypothesis-profile random` (the nightly run) looks for new ones.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")

# Compiling makes and drops millions of small objects among a million that stay: those of modules and collected tests.
# With the usual thresholds the search for cycles took a quarter of the collection and 8 % of the tests that compile.
gc.set_threshold(10_000, 20, 50)


SLOW = frozenset(Path(__file__).with_name("slow.txt").read_text().splitlines())
"""Tests that take long, by measured times (`tools/slow_tests.py`): `make test` leaves them to `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the list of slow tests names, before tests are selected by their marks."""
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: no search for cycles among them."""
    gc.collect()
    gc.freeze()


SPREAD = ("test_docs.py",)
"""Files whose tests compile programs of their own, and many of them: their tests go to any worker."""


class ByFile(LoadScopeScheduling):
    """Gives the tests of a file to one worker: two of them would compile the programs that these share twice.

    Marks `xdist_group` cannot say so: pytest-xdist 3.8 loses them with pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return nodeid if file.endswith(SPREAD) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """For `--dist loadgroup` and all other ways."""
    return ByFile(config, log)


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs for one body run as plain Python."""
    interpretation.install(monkeypatch)


@pytest.fixture(autouse=True)
def _as_plain_python(request: pytest.FixtureRequest) -> None:
    """Tests of drivers, files and messages compile nothing in the fast suite (`interpreted.FILES`)."""
    if interpretation.is_plain(request.node):
        request.getfixturevalue("interpreted")


@pytest.fixture(params=["plain", pytest.param("compiled", marks=pytest.mark.slow)])
def plain_first(request: pytest.FixtureRequest) -> None:
    """Programs for one body run as plain Python in the fast suite; the slow one runs the test compiled as well.

    For tests of what does not depend on the compiler, with programs that no other test uses and few steps.
    """
    if request.param == "plain":
        request.getfixturevalue("interpreted")
