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
    assert "integrates free bodies only" in refused("emit", "rot123", "--problem", "fast_top")
    assert "unknown method" in refused("emit", "rot124x")
    assert "the folder nowhere does not exist" in refused("emit", "rot123", "--out", "nowhere/step.c")


JUMPING = """
[body]
moments = [1.0, 1.4, 1.9]

[start]
omega = [0.3, 1.1, 0.7]

[field]
name = "thruster"
torque = [0.3, -0.2, 0.25]
on = [[0.51, 1.03]]

[run]
method = "mkrk(rk4)"
dt = 0.01
t_end = 1.0
"""


def test_jumps_are_told_or_refused():
    Path("burn.toml").write_text(JUMPING, "utf-8")
    assert "an emitted step does not end there" in refused("emit", "mkrk(rk4)", "--problem", "burn.toml", "--strict")
    with pytest.warns(ph.ResultWarning, match="an emitted step does not end there"):
        text = good("emit", "mkrk(rk4)", "--problem", "burn.toml")
    assert "Note: thruster has jumps or kinks" in text
    assert good("emit", "akw", "--problem", "fast_top", "--strict") == ph.emit("akw", "fast_top")
