"""The list of mutations still fits the source; that each is noticed is what `validation/mutations.py` checks."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loaded(name):
    """A script of the folder `validation` as a module."""
    folder = str(ROOT / "validation")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


MUTATIONS = loaded("mutation_list").MUTATIONS


def test_every_text_occurs_once():
    source = ROOT / "src" / "polhode"
    counts = {m.name: (source / m.file).read_text(encoding="utf-8").count(m.old) for m in MUTATIONS}
    assert {name: n for name, n in counts.items() if n != 1} == {}
    assert all(m.old != m.new and any((ROOT / "tests").rglob(m.tests)) for m in MUTATIONS)
    assert len({m.name for m in MUTATIONS}) == len(MUTATIONS) >= 60


def test_a_changed_text_is_an_error_and_no_kill(tmp_path):
    script, first = loaded("mutations"), MUTATIONS[0]
    source = script.copied(tmp_path)
    assert "occurs 0 times" in script.mutate(source, first._replace(old="no such text"))
    assert "there is no" in script.mutate(source, first._replace(file="nowhere.py"))
    assert script.mutate(source, first) == ""
    assert "occurs 0 times" in script.mutate(source, first)


@pytest.mark.parametrize(
    ("status", "word"), [(0, "survived"), (1, "killed"), (124, "killed"), (2, "ERROR"), (5, "ERROR")]
)
def test_only_failed_tests_are_a_kill(status, word, monkeypatch):
    script = loaded("mutations")
    monkeypatch.setattr(script, "tested", lambda *given: (status, ""))
    assert script.judged(MUTATIONS[0])[0] == word
