"""``polhode emit``."""

from pathlib import Path

import pytest

import polhode as ph
from commands import good, refused


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_prints_the_text_of_the_library():
    assert good("emit", "rot123", "--to", "rust", "--name", "spin") == ph.emit("rot123", to="rust", name="spin")


def test_it_writes_a_file_and_replaces_none_silently():
    assert "written" in good("emit", "symrot", "--out", "step.c")
    assert Path("step.c").read_text("utf-8") == ph.emit("symrot")
    assert "step.c exists; choose another name or use --overwrite" in refused("emit", "rot123", "--out", "step.c")
    good("emit", "rot123", "--out", "step.c", "--overwrite")
    assert Path("step.c").read_text("utf-8") == ph.emit("rot123")


def test_it_takes_a_problem_file():
    good("init")
    assert "Field: " in good("emit", "mkrk(euler)", "--problem", "problem.toml")


def test_bad_input_is_one_sentence():
    assert "to must be one of c, c++" in refused("emit", "rot123", "--to", "cobol")
    assert "takes at most a field of kind 'free'" in refused("emit", "rot123", "--problem", "fast_top")
    assert "unknown method" in refused("emit", "rot124x")
    assert "the folder nowhere does not exist" in refused("emit", "rot123", "--out", "nowhere/step.c")
