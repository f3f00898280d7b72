"""Runs in files that are stopped or fail, and go on: to the bits of an uninterrupted run."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.results import recorder
from polhode.results.progress import Progress
from polhode.results.store import atomic, checkpoint, file_format, integrity, trajectory_store
from polhode.results.store.checkpoint import Checkpoint
from polhode.run.fixed_step import RunState, integrate_in_chunks
from polhode.run.system import engine
from stopped_runs import KINDS, TOP, assert_same, contents, run, stopped

pytestmark = [pytest.mark.xdist_group("resume"), pytest.mark.usefixtures("in_a_folder")]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk of steps is written at once."""
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)


# --- every method ------------------------------------------------------------------------------------


class Rows(recorder.Memory[Any]):
    """Keeps rows, and the last state they lead up to."""

    state: Any = None

    def reached(self, step: int, y: Any) -> None:
        self.state = y


def rows_of(problem: ph.Problem, name: str, cuts: list[int], every: int, digits: int | None = None) -> np.ndarray:
    """Rows of a run that ends at each of the cuts in turn, and is taken up from the text of its state."""
    method = ph.methods[name]
    rows, mark = np.empty((0, 8)), Checkpoint(0, 0, None)
    for cut in cuts:
        state = RunState(
            engine(problem, method, digits), problem, 0.01, cut, every, mark.step, mark.state, method=method
        )
        kept = Rows(lambda t, rows: None)
        if mark.step:
            kept.add(np.empty(0), np.empty((0, 7)))
        integrate_in_chunks(state, kept, Progress(False, "", 1))
        assert state.residual is None
        new = np.concatenate([np.column_stack([t, r.astype(float)]) for t, r in kept.kept])
        rows = np.concatenate([rows[: mark.rows], new])
        mark = Checkpoint.read(Checkpoint(state.done, 1 + state.done // every, kept.state).text(), digits)
    return rows


@pytest.mark.parametrize("name", list(dict.fromkeys([*(m.name for m in ph.methods.taking("free")), *KINDS.values()])))
@pytest.mark.usefixtures("plain_first")
def test_every_method_goes_on_from_the_text_of_its_state(name: str) -> None:
    """Also to a later end than the first one: the row of an end that is no multiple of `every` is not kept."""
    problem = TOP if ph.methods[name].takes("potential") else ph.problems.book()
    draw = random.Random(name)
    for every in (1, 7):
        cuts = sorted(draw.sample(range(1, 150), 3))
        np.testing.assert_array_equal(rows_of(problem, name, [*cuts, 150], every), rows_of(problem, name, [150], every))


@pytest.mark.parametrize("name", ["imidm", "abm4", "reversible(imidm)"])
def test_many_digits_go_on_exactly(name: str) -> None:
    np.testing.assert_array_equal(rows_of(TOP, name, [3, 5, 8], 2, 40), rows_of(TOP, name, [8], 2, 40))
    whole, parts = run(steps=6, digits=40, out="whole.zarr", method=name), "parts.zarr"
    stopped(parts, 0.5, steps=6, digits=40, method=name)
    run(parts, steps=6, digits=40, method=name, resume=True)
    assert whole.info.digits == 40
    assert_same(parts, "whole.zarr")


def test_rows_do_not_depend_on_how_many_are_made_at_once() -> None:
    """What is derived of states has the same bits in whatever blocks they are written."""
    body = ph.Body([[3.0, 0.2, 0.1], [0.2, 2.0, -0.3], [0.1, -0.3, 2.5]])
    problem = ph.Problem(body, TOP.field, omega=[0.3, 0.2, 5.0])
    sol = run(problem=problem, steps=1000)
    whole = {name: getattr(sol, name) for name in trajectory_store.PRIMARY}
    for size in (1, 2, 3, 7, 8, 64, 333):
        parts = [
            file_format.derived({name: a[i : i + size] for name, a in whole.items()}, sol.info)
            for i in range(0, 1001, size)
        ]
        for name, values in file_format.derived(whole, sol.info).items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values)


# --- files, stopped and continued -------------------------------------------------------------------


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_twice(kind: str, suffix: str) -> None:
    options = {"method": KINDS[kind], "steps": 1003, "every": 7}
    run(f"whole{suffix}", **options)
    first = stopped(f"parts{suffix}", 0.05, **options)
    second = stopped(f"parts{suffix}", 0.1, **options)
    assert 1 < len(first) < len(second) < 145
    sol = run(f"parts{suffix}", **options, resume=True)
    assert (sol.status, len(sol), sol.info.steps) == ("finished", 145, 1003)
    assert_same(f"parts{suffix}", f"whole{suffix}")
    assert sorted(p.name for p in Path().iterdir()) == sorted([f"parts{suffix}", f"whole{suffix}"])


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize(
    ("method", "first", "later"),
    [
        ("imidm", {"steps": 100}, {"steps": 250}),
        ("abm4", {"t_end": 1.0}, {"t_end": 2.5}),
        ("reversible(imidm)", {"t_end": 1.0}, {"t_end": 2.5}),
        ("reversible(imidm)", {"steps": 100}, {"steps": 250}),
    ],
)
def test_a_finished_run_goes_on_to_a_later_end(method: str, first: Any, later: Any, suffix: str) -> None:
    options = {"method": method, "every": 7, "steps": None}
    run(f"parts{suffix}", **options | first)
    run(f"parts{suffix}", **options | later, resume=True)
    run(f"whole{suffix}", **options | later)
    assert_same(f"parts{suffix}", f"whole{suffix}")


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_a_complete_run_is_returned_and_nothing_changes(suffix: str) -> None:
    path = Path(f"run{suffix}")
    whole = run(path)
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in [path, *path.rglob("*")] if p.is_file()}
    again = run(path, resume=True)
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in [path, *path.rglob("*")] if p.is_file()} == before
    assert again.info == whole.info
    np.testing.assert_array_equal(again.momentum, whole.momentum)
    np.testing.assert_array_equal(again.at([0.505]).momentum, whole.at([0.505]).momentum)


def test_resume_begins_what_is_not_there() -> None:
    assert run("run.zarr", resume=True).status == "finished"
    run("whole.zarr")
    assert_same("run.zarr", "whole.zarr")


def test_a_failing_step_fails_again() -> None:
    @ph.torque
    def fading(t):
        return (0, 0, (1 - t) ** 0.5)

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), fading(), omega=[1.0, 0.1, 0.2])
    options = {"problem": problem, "steps": 200, "every": 7}
    kept = []
    for resume in (False, True, True):
        with pytest.raises(ph.StepError, match="failed in step 101 ") as caught:
            run("run.zarr", **options, resume=resume)
        kept.append(contents("run.zarr"))
        assert caught.value.partial is not None
        assert caught.value.partial.status == "failed"
    assert kept[0] == kept[1] == kept[2]


def test_seconds_are_those_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    first = stopped("run.zarr", 0.01, steps=50_000)
    last = run("run.zarr", steps=50_000, resume=True)
    assert 0 < first.info.seconds < last.info.seconds


# --- refusals ----------------------------------------------------------------------------------------


@ph.potential
def weight(R, mgl):
    return mgl * R[2][2]


def other_weight(power: int) -> Any:
    @ph.potential
    def weight(R, mgl):
        return mgl * R[2][2] ** power

    return weight


BODY = [5.0, 5.0, 1.0]
START = {"omega": [0.1, 0.2, 50.0], "attitude": [0.8, 0.6, 0.0, 0.0], "t0": 0.5}


def heavy(field: Any = None, body: Any = BODY, **start: Any) -> ph.Problem:
    return ph.Problem(ph.Body(body), field or weight(20.0), **START | start)


DIFFERENT: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "trapm"}, "method = imidm, and this run has method = trapm"),
    "dt": ({"dt": 0.02}, "dt = 0.01, and this run has dt = 0.02"),
    "dt by one bit": (
        {"dt": 0.01 + 2e-18}, "dt = 0.01, and this run has dt = 0.010000000000000002"
    ),
    "every": ({"every": 2}, "every = 1, and this run has every = 2"),
    "digits": ({"digits": 30}, "no digits, and this run has digits = 30"),
    "dt and every": ({"dt": 0.02, "every": 5}, "dt = 0.01 and every = 1, and this run has dt = 0.02 and every = 5"),
    "t0": ({"problem": heavy(t0=1.0)}, "t0 = 0.5, and this run has t0 = 1.0"),
    "body": ({"problem": heavy(body=[5.0, 5.0, 1.5], omega=None, momentum=[0.5, 1.0, 50.0])},
             "inertia[2][2] = 1.0, and this run has inertia[2][2] = 1.5"),
    "momentum": ({"problem": heavy(omega=[0.1, 0.2, 40.0])}, "momentum[2] = 50.0, and this run has momentum[2] = 40.0"),
    "attitude": ({"problem": heavy(attitude=[0.6, 0.8, 0.0, 0.0])},
                 "quaternion[0] = 0.8 and quaternion[1] = 0.6, and this run has quaternion[0] = 0.6 and "
                 "quaternion[1] = 0.8"),
    "parameter": ({"problem": heavy(weight(21.0))},
                  "field = weight(mgl=20.0), and this run has field = weight(mgl=21.0)"),
    "formula": ({"problem": heavy(other_weight(3)(20.0))},
                "one formula of the field, and this run has another formula of the field"),
    "fewer steps": ({"steps": 50}, "steps = 100 (t = 1.5), and this run has steps = 50 (t = 1)"),
    "tolerance": ({"tol": 1e-6, "method": None, "dt": None, "steps": None, "t_end": 1.5},
                  "method = imidm and dt = 0.01 and every = 1 and no tol and no t_end and no events, and this run has "
                  "no method and no dt and no every and tol = 1e-06 and t_end = 1.5 and events = 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "suffix"), [*((what, ".zarr") for what in DIFFERENT), ("dt", ".nc"), ("formula", ".nc")]
)
def test_a_different_run_is_refused_and_the_difference_named(what: str, suffix: str) -> None:
    path, (said, message) = Path(f"run{suffix}"), DIFFERENT[what]
    run(path, problem=heavy())
    before = {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()}
    with pytest.raises(ph.InputError) as caught:
        run(path, **{"problem": heavy()} | said, resume=True)
    assert str(caught.value).startswith(f"{path} was begun with {message}; ")
    assert "\n" not in str(caught.value)
    assert {p: p.read_bytes() for p in [path, *path.rglob("*")] if p.is_file()} == before
    assert run(path, problem=heavy(), resume=True).status == "finished"


def test_other_refusals() -> None:
    run(steps=3).save("saved.zarr")
    run("run.zarr")
    trajectory_store.export("run.zarr", "copy.zarr")
    for name in ("saved.zarr", "copy.zarr"):
        with pytest.raises(
            ph.InputError, match=rf"^{name} cannot be resumed: it does not record how its run was started"
        ):
            run(name, resume=True)
    with pytest.raises(ph.InputError, match="name the file with out"):
        run(resume=True)
    with pytest.raises(ph.InputError, match="resume or overwrite, not both"):
        run("run.zarr", resume=True, overwrite=True)
    with pytest.raises(ph.InputError, match="the folder none does not exist"):
        run("none/run.zarr", resume=True)
    stopped("open.zarr")
    with pytest.raises(ph.InputError, match=r"exists; .* or continue it with resume=True \(--resume\)$"):
        run("open.zarr")
    Path("notes.zarr").mkdir()
    with pytest.raises(ph.InputError, match=r"notes\.zarr cannot be read as a trajectory"):
        run("notes.zarr", resume=True)


@pytest.mark.parametrize("text", ["{}", "[1]", '{"step": 3, "rows": 4, "state": [["x"]]}', "__import__('os').abort()"])
def test_a_damaged_checkpoint(text: str) -> None:
    stopped("run.zarr")
    attributes = trajectory_store.read("run.zarr")[1]
    integrity.replace_attributes(Path("run.zarr"), attributes | {"checkpoint": text})
    with pytest.raises(ph.InputError, match=r"^run\.zarr is damaged: how it was begun and where it stands"):
        run("run.zarr", resume=True)


def test_files_of_early_versions_are_read() -> None:
    """They have neither units of the variables nor a checkpoint."""
    whole = run("run.zarr")
    gone = (checkpoint.RUN_SPEC, checkpoint.RUN_END, checkpoint.CHECKPOINT, checkpoint.SOFTWARE)
    attributes = trajectory_store.read("run.zarr")[1]
    integrity.replace_attributes(Path("run.zarr"), {name: attributes[name] for name in attributes if name not in gone})
    np.testing.assert_array_equal(ph.load("run.zarr").momentum, whole.momentum)
    with pytest.raises(ph.InputError, match="or by an early version"):
        run("run.zarr", resume=True)


def test_other_software_is_told_and_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped("run.zarr", 0.01, steps=50_000)
    monkeypatch.setattr(recorder, "software", lambda: "polhode 9")
    with pytest.warns(
        UserWarning, match=r"was computed by polhode .* and is resumed with polhode 9: its last bits may"
    ):
        run("run.zarr", steps=50_000, resume=True)
    said = trajectory_store.read("run.zarr")[1]["software"]
    assert said.startswith("polhode ")
    assert said.endswith(" on: polhode 9")
    assert run("run.zarr", steps=60_000, resume=True).status == "finished"  # no second warning


def test_one_run_at_a_time() -> None:
    stopped("run.zarr")
    held = atomic.locked(Path("run.zarr"))
    try:
        for options in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(ph.InputError, match=r"^run\.zarr is being written by another run; wait"):
                run("run.zarr", **options)
    finally:
        atomic.released(held)
    assert run("run.zarr", resume=True).status == "finished"


# --- to a tolerance ----------------------------------------------------------------------------------


def test_to_a_tolerance() -> None:
    """The file appears complete or not at all: to resume is to begin, or to find it complete."""
    options = {"method": None, "dt": None, "steps": None, "tol": 1e-8, "t_end": 2.0}
    first = run("run.zarr", **options, resume=True)
    before = contents("run.zarr")
    again = run("run.zarr", **options, resume=True)
    assert (again.status, len(again)) == ("finished", len(first))
    assert contents("run.zarr") == before
    for other, text in (({"tol": 1e-6}, "tol = 1e-08, and this run has tol = 1e-06"),
                        ({"t_end": 3.0}, "t_end = 2.0, and this run has t_end = 3.0")):  # fmt: skip
        with pytest.raises(ph.InputError, match=rf"^run\.zarr was begun with {text}; "):
            run("run.zarr", **options | other, resume=True)


def test_text_of_numbers() -> None:
    import mpmath

    for x in (0.1, -0.0, 5e-324, 1e308, float("inf")):
        assert checkpoint.number_of(checkpoint.number_text(x), None).hex() == x.hex()
    with mpmath.workdps(60):
        numbers = [mpmath.pi, -mpmath.mpf(1) / 3, mpmath.mpf(0), mpmath.mpf(2) ** 5000, mpmath.inf]
        texts = [checkpoint.number_text(+x) for x in numbers]
        exact = [+x for x in numbers]
    assert [checkpoint.number_of(text, 60) for text in texts] == exact  # at any working precision
    json.loads(Checkpoint(1, 2, ((1.0,),)).text())
    assert dataclasses.astuple(Checkpoint.read(Checkpoint(1, 2, ((0.1,),)).text(), None)) == (1, 2, ((0.1,),))
