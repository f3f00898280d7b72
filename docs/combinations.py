"""The page of what can be combined: every combination is run, and the page says which work and why others do not."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

METHOD, END, DT = "imidm", 0.2, 0.1

STEPS: dict[str, dict[str, Any]] = {
    "method, `dt`": {"method": METHOD, "dt": DT},
    "method, `tol`": {"method": METHOD, "tol": 1e-3},
    "`tol`": {"tol": 1e-3},
    "`step_tol`": {"step_tol": 1e-3},
    "method, `dt`, `digits`": {"method": METHOD, "dt": DT, "digits": 20},
    "`tol`, `digits`": {"tol": 1e-16, "digits": 18},
    "`step_tol`, `digits`": {"step_tol": 1e-16, "digits": 18},
}
"""How one body steps."""

MANY_STEPS = {"method, `dt`": {"method": "fe", "dt": DT}} | {name: STEPS[name] for name in ("`tol`", "`step_tol`")}

KEPT: dict[str, dict[str, Any]] = {
    "every step": {},
    "`every=2`": {"every": 2},
    "`times=[...]`": {"times": [0.05, 0.2]},
    "`max_turn=0.01`": {"max_turn": 0.01},
    "events": {"events": True},
    "derivatives": {"tangent": True},
}
"""What is kept of one body."""

MANY_KEPT: dict[str, dict[str, Any]] = {
    "start and end": {},
    "`every=1`": {"every": 1},
    "`times=[...]`": {"times": [0.1, 0.2]},
    "statistics": {"statistics": "energy"},
    "statistics at `times=[...]`": {"statistics": "energy", "times": [0.1, 0.2]},
    "events": {"events": True},
    "events and `times=[...]`": {"events": True, "times": [0.1, 0.2]},
    "derivatives": {"tangent": True},
    "derivatives at `times=[...]`": {"tangent": True, "times": [0.1, 0.2]},
}
"""What is kept of many bodies."""

DIRECTIONS = {"forwards": 1.0, "backwards": -1.0}
PLACES = {"in memory": False, "in a file": True}


def _event() -> Any:
    return ph.event(lambda t: (t - 0.1) * (t + 0.1))


def one_body(steps: dict[str, Any], kept: dict[str, Any], direction: float, out: Path | None) -> str:
    """Run one combination for one body; return "" if it works, or the sentence with which it is refused."""
    given = steps | kept | ({} if out is None else {"out": out})
    if "events" in given:
        given["events"] = [_event()]
    if "times" in given:
        given["times"] = direction * np.array(given["times"])
    try:
        sol = ph.solve(ph.problems.heavy_top(), t_end=direction * END, progress=False, **given)
    except ph.InputError as refused:
        return str(refused)
    assert abs(sol.t[-1] - direction * END) < 1e-12
    assert np.isfinite(sol.momentum).all()
    assert "events" not in given or len(sol.events[0]) == 1
    assert "tangent" not in given or np.isfinite(sol.tangent.matrix).all()
    if out is not None:
        back = ph.load(out)
        assert (back.t == sol.t).all()
        assert [len(one) for one in back.events] == [len(one) for one in sol.events]
    return ""


def many_bodies(steps: dict[str, Any], kept: dict[str, Any], direction: float, out: Path | None) -> str:
    """Run one combination for two bodies; return "" if it works, or the sentence with which it is refused."""
    given = steps | kept | ({} if out is None else {"out": out})
    if "events" in given:
        given["events"] = [_event()]
    if "times" in given:
        given["times"] = direction * np.array(given["times"])
    omega = [[0.1, 0.2, 1.0], [0.3, 0.1, 0.9]]
    try:
        many = ph.ensemble(ph.problems.heavy_top(), omega=omega, t_end=direction * END, progress=False, **given)
    except ph.InputError as refused:
        return str(refused)
    assert np.isfinite(np.asarray(many.momentum)).all()
    assert abs(many.t[-1] - direction * END) < 1e-12
    assert "events" not in given or [len(found) for found in many.events[0]] == [1, 1]
    assert "statistics" not in given or np.isfinite(many.statistics["energy"].mean).all()
    assert "tangent" not in given or np.isfinite(many.tangent.matrix).all()
    assert out is None or (ph.load(out).quaternion == many.quaternion).all()
    return ""


def results(run: Any, steps: dict[str, Any], kept: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every combination with what became of it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ph.ResultWarning)
        product = itertools.product(kept, PLACES, DIRECTIONS, steps)
        for number, (what, place, way, how) in enumerate(product):
            out = Path(folder) / f"{number}.zarr" if PLACES[place] else None
            yield (what, place, way, how), run(steps[how], kept[what], DIRECTIONS[way], out)


def table(run: Any, steps: dict[str, Any], kept: dict[str, Any], notes: list[str]) -> list[str]:
    """Return the lines of a table; the sentences of refusals are collected in `notes`, without numbers."""
    found = dict(results(run, steps, kept))
    lines = ["| kept | where | direction | " + " | ".join(steps) + " |", "|---" * (3 + len(steps)) + "|"]
    for what, place, way in itertools.product(kept, PLACES, DIRECTIONS):
        cells = [_cell(found[what, place, way, how], notes) for how in steps]
        lines.append(f"| {what} | {place} | {way} | " + " | ".join(cells) + " |")
    return lines


def _cell(sentence: str, notes: list[str]) -> str:
    if not sentence:
        return "yes"
    if sentence not in notes:
        notes.append(sentence)
    return f"({notes.index(sentence) + 1})"


def page() -> str:
    """Return the page."""
    notes: list[str] = []
    one, many = table(one_body, STEPS, KEPT, notes), table(many_bodies, MANY_STEPS, MANY_KEPT, notes)
    lines = [
        "# What can be combined", "",
        "This page says which options of a run work together: the kind of step, the states that are kept, the",
        "direction of time, and output in memory or in a file. The tables are generated by running every combination.",
        "A number refers to the error message of a combination that is not available, below.", "",
        "## One body: `ph.solve`", "", *one, "", "## Many bodies: `ph.ensemble`", "", *many, "",
        "## Why a combination is not available", "", *(f"{i + 1}. {note}" for i, note in enumerate(notes)), "",
    ]  # fmt: skip
    return "\n".join(lines)
