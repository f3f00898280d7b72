"""Files in `tests/data`, which this or an earlier version wrote: each is read exactly, and killed runs go on from it.

What is read is compared bit by bit with what was recorded when the file was written. What is computed again is compared
with a run made now within rounding, which differs from machine to machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools import write_data_files

import data_files as files
import polhode as ph
from commands import good
from polhode import _version
from polhode.results.ensemble import NOT_YET
from representatives import slow_unless

pytestmark = [
    pytest.mark.usefixtures("in_a_folder"),
    pytest.mark.filterwarnings("ignore:.* its last bits may differ from those of an uninterrupted run"),
]

RECORDS = json.loads(files.RECORDS.read_text("utf-8"))
NAMES = write_data_files.every()
NEAR = 1e-11
"""Rounding of some hundred steps."""


def loaded(name: str) -> Any:
    """The file as it was left, in this folder."""
    return ph.load(files.unpacked(name, Path()).with_name(files.file_of(name)))


@pytest.fixture
def as_of_its_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ensembles are resumed by their own version only: let this be it."""
    monkeypatch.setattr(_version, "__version__", RECORDS[request.node.callspec.params["name"]]["version"])


def test_every_file_is_recorded() -> None:
    assert sorted(RECORDS) == sorted(NAMES)
    assert sorted(f"{name}.tar.xz" for name in NAMES) == sorted(file.name for file in files.FOLDER.glob("*.tar.xz"))
    assert {one["status"] for one in RECORDS.values()} == {"finished", "failed", "running"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_what_was_written(name: str) -> None:
    recorded = {key: value for key, value in RECORDS[name].items() if key != "version"}
    found = files.record(loaded(name))
    assert {key: found.get(key) for key in recorded} == recorded


# --- finished runs ----------------------------------------------------------------------------------


def bytes_of(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted([path, *path.rglob("*")]) if file.is_file()}


REFUSED = {
    "by_hand.zarr": "cannot be resumed: the torque by_hand is not a formula",
    "control_by_hand.zarr": "its controller is called as plain Python",
}
FINISHED = [name for name in files.RUNS if name not in REFUSED and RECORDS[name]["status"] == "finished"]


@pytest.mark.parametrize("name", FINISHED)
def test_the_same_call_finds_a_run_complete(name: str) -> None:
    loaded(name)
    before = bytes_of(Path(name))
    sol = files.solved(files.RUNS[name], out=name, resume=True)
    assert files.record(sol)["momentum"] == RECORDS[name]["momentum"]
    assert bytes_of(Path(name)) == before


@pytest.mark.parametrize(
    "name", slow_unless(["memory.zarr"], ["memory.zarr", "plain.nc", "chain.nc", "noise.zarr", "control.zarr"])
)
def test_a_finished_run_goes_on_to_a_later_end(name: str) -> None:
    before, longer = files.content(loaded(name)), {**files.RUNS[name], "steps": 30}
    found, whole = (files.solved(longer, out=out, resume=True) for out in (name, f"whole {name}"))
    assert_begins_with(found, before)
    assert_near(found, whole, 0.0)


@pytest.mark.parametrize("name", ["failed.zarr", "tol_failed.zarr"])
def test_a_run_that_failed_fails_again(name: str) -> None:
    before = loaded(name)
    with pytest.raises(ph.StepError) as caught:
        files.solved(files.RUNS[name], out=name, resume=True)
    assert caught.value.partial is not None
    np.testing.assert_allclose(caught.value.partial.momentum, before.momentum, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_formula_is_not_resumed(name: str) -> None:
    loaded(name)
    with pytest.raises(ph.InputError, match=REFUSED[name]):
        files.solved(files.RUNS[name], out=name, resume=True)


@pytest.mark.parametrize("name", files.SAVED)
def test_what_was_saved_is_not_resumed(name: str) -> None:
    loaded(name)
    given = {**files.RUNS["plain.zarr"], "out": name, "resume": True}
    with pytest.raises(ph.InputError, match="it does not record how its run was started"):
        files.solved(given)


@pytest.mark.parametrize("name", ["plain.zarr", "plain.nc", "several.zarr", "tol.nc"])
def test_states_between_those_of_a_file(name: str) -> None:
    """They are computed with the problem in the file, which is data."""
    found, given = loaded(name), files.RUNS[name]
    t = float(0.3 * found.t[0] + 0.7 * found.t[-1])
    between = files.solved(given).at(t).momentum
    np.testing.assert_allclose(found.at(t).momentum, between, rtol=0, atol=given.get("tol", 1e-11))


# --- killed runs ------------------------------------------------------------------------------------


def tolerance(given: Mapping[str, Any]) -> float:
    """The tolerance of a run; 0 if it has equal steps."""
    return float(given.get("tol", given.get("step_tol", 0.0)))


def assert_near(found: Any, whole: Any, allowed: float) -> None:
    """Assert that two runs agree; if the steps follow from a tolerance, only within a part of it, at their ends."""
    one, other = files.content(found), files.content(whole)
    assert list(one) == list(other)
    for name, values in other.items():
        if name != "error_estimate":
            rows = slice(-1, None) if allowed and values.ndim else ...
            near = max(NEAR, 0.01 * allowed)
            np.testing.assert_allclose(one[name][rows], values[rows], rtol=NEAR, atol=near, err_msg=name)


def assert_begins_with(found: Any, before: Mapping[str, np.ndarray]) -> None:
    """Assert that the rows of a file are still there, bit by bit."""
    one = files.content(found)
    for name in found.stored:
        np.testing.assert_array_equal(one[name][: len(before["t"])], before[name], err_msg=name)


KINDS = (
    "memory.zarr",
    "low_parts.zarr",
    "clock.zarr",
    "noise.zarr",
    "chain.zarr",
    "control.zarr",
    "step_tol.zarr",
    "tol.nc",
)
"""Kinds of checkpoints."""


@pytest.mark.parametrize("name", slow_unless([f"killed_{kind}" for kind in KINDS], files.KILLED))
def test_a_killed_run_goes_on(name: str) -> None:
    seen, (_, given) = loaded(name), files.KILLED[name]
    assert seen.status == "running"
    before = files.content(seen)
    sol = files.solved(given, out=name, resume=True)
    assert sol.status == "finished"
    found = ph.load(name)
    files.solved(given, out=f"whole {name}")
    assert_near(found, ph.load(f"whole {name}"), tolerance(given))
    assert not list(Path().glob("*.partial*"))
    if not tolerance(given):  # other versions compute the steps of runs to a tolerance again
        assert_begins_with(found, before)


@pytest.mark.usefixtures("as_of_its_version")
@pytest.mark.parametrize("name", slow_unless(["killed_crowd.zarr"], files.KILLED_CROWDS | files.KILLED_UNITS))
def test_a_killed_ensemble_goes_on(name: str) -> None:
    seen, given = loaded(name), files.CROWDS[(files.KILLED_CROWDS | files.KILLED_UNITS)[name]]
    assert seen.status == "running"
    done, before = seen.failed != NOT_YET, files.content(seen)
    assert done.any() == (name in files.KILLED_CROWDS)
    many = files.crowd(given, out=name, resume=True)
    assert many.status == "finished"
    found = files.content(ph.load(name))
    for array in ("quaternion", "momentum"):
        np.testing.assert_array_equal(found[array][:, done], before[array][:, done])
    assert_near(many, files.crowd(given, out=f"whole {name}", unit=files.UNIT), tolerance(given))


@pytest.mark.usefixtures("as_of_its_version")
@pytest.mark.parametrize("name", slow_unless(["crowd.zarr"], files.CROWDS))
def test_the_same_call_finds_an_ensemble_complete(name: str) -> None:
    loaded(name)
    before = bytes_of(Path(name))
    files.crowd(files.CROWDS[name], out=name, resume=True)
    assert bytes_of(Path(name)) == before


def test_an_ensemble_of_another_version_is_not_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded("killed_crowd.zarr")
    monkeypatch.setattr(_version, "__version__", "99.0")
    with pytest.raises(ph.InputError, match=r"begun with polhode = .*, and this run has polhode = 99\.0"):
        files.crowd(files.CROWDS["crowd.zarr"], out="killed_crowd.zarr", resume=True)


@pytest.mark.usefixtures("as_of_its_version")
@pytest.mark.parametrize(
    "name",
    slow_unless(["killed_run_command.zarr", "killed_sweep_command.zarr"], files.COMMANDS | files.KILLED_COMMANDS),
)
def test_the_same_command_goes_on(name: str) -> None:
    for file, text in files.INPUTS.items():
        Path(file).write_text(text, "utf-8")
    status = loaded(name).status
    line = files.COMMANDS[name.removeprefix("killed_")]
    good(*line, "--out", name, "--resume")
    good(*line, "--out", "whole.zarr")
    after = ph.load(name)
    assert (status, after.status) == (RECORDS[name]["status"], "finished")
    assert_near(after, ph.load("whole.zarr"), 1e-9 if "tol" in name else 0.0)


# --- damage -----------------------------------------------------------------------------------------

BYTES = {
    "plain.zarr": "momentum/c/0/0", "control.zarr": "state_calls/c/0", "several.zarr": "zarr.json", "plain.nc": "",
    "killed_plain.zarr": "quaternion/c/0/0", "killed_tol.zarr": "momentum/c/0/0", "crowd.zarr": "momentum/c/0/0/0",
    "crowd_tol.zarr": "events/1.npz", "saved_crowd.nc": "",
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_a_file_with_another_byte_is_refused(name: str) -> None:
    loaded(name)
    file = Path(name, BYTES[name]) if BYTES[name] else Path(name)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    with pytest.raises(ph.InputError, match="damaged"):
        files.content(ph.load(name))
