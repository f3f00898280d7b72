"""The page of many bodies in one scene, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import polhode as ph
from pages import paused, turned
from polhode.cli import app

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def many() -> ph.Ensemble:
    omega = np.array([[0.01 * k, 2.0, 0.1] for k in range(12)])
    return ph.ensemble(ph.problems.get("t_handle"), "dmv6", dt=0.05, t_end=4.0, omega=omega, every=1)


def test_an_ensemble_in_one_scene(opened: Any, many: ph.Ensemble, tmp_path: Path) -> None:
    page = paused(opened(many.view(tmp_path / "all.html", together=True, colour="drift")))
    assert page.inner_text(".panel b") == "12 bodies"
    assert "largest relative change of the energy" in page.inner_text(".scale")
    page.evaluate("polhode.seek(2.0)")
    shown = page.evaluate("polhode.state().attitudes")
    assert len(shown) == 12
    for k, attitude in enumerate(shown):
        assert (
            turned(attitude, many[k].at([2.0]).quaternion[0]) < 0.01
        )  # great circles between states 0.4 radians apart
    still = page.locator("#scene").screenshot()
    page.evaluate("polhode.seek(2.5)")
    assert page.locator("#scene").screenshot() != still
    again = paused(opened(many.view(tmp_path / "energy.html", [0, 3, 5], together=True, colour="energy")))
    assert again.inner_text(".panel b") == "3 bodies"


def test_tops_of_an_ensemble_stand_on_their_pivots(tmp_path: Path) -> None:
    """Side by side each has its gravity; in one scene they are drawn with the shape of the problem."""
    tops = ph.ensemble(
        ph.problems.get("slow_top"), "strang(dmv6)", dt=0.02, t_end=0.2, omega=[[0, 0, 5.0], [0, 0, 6.0]], every=1
    )
    text = tops.view(tmp_path / "tops.html").read_text("utf-8")
    assert text.count('"weight": true') == 2
    together = tops.view(tmp_path / "both.html", together=True).read_text("utf-8")
    assert together.count('"vertices"') == 1  # they look alike


def test_molecules_in_a_periodic_box(opened: Any, tmp_path: Path) -> None:
    """Places between states are on the shorter way, through the face of the box."""
    water = ph.sites([16.0, 1.0, 1.0], [[0, 0, 0], [0.8, 0.6, 0], [-0.8, 0.6, 0]])
    t, q = np.array([0.0, 1.0]), np.zeros((2, 2, 4))
    q[..., 0] = 1.0
    x = np.array([[[1.0, 1.0, 1.0], [5.9, 3.0, 3.0]], [[2.0, 1.0, 1.0], [0.1, 3.0, 3.0]]])
    path = ph.view_many(
        t, q, tmp_path / "water.html", body=water, positions=x, colour=[1.0, 2.0], statistic="speed",
        box=ph.PeriodicBox(6.0),
    )  # fmt: skip
    page = paused(opened(path))
    page.evaluate("polhode.seek(0.5)")
    first, second = page.evaluate("polhode.places(0)")
    assert first == pytest.approx([1.5, 1.0, 1.0])
    assert second == pytest.approx([6.0, 3.0, 3.0], abs=1e-6)


def test_bad_input(many: ph.Ensemble, tmp_path: Path) -> None:
    path, q = tmp_path / "bad.html", np.zeros((2, 3, 4))
    body = ph.Body([1.0, 2.0, 3.0])
    for change, said in (
        ({"colour": [1.0, 2.0]}, r"colour must have the shape \(3,\) or \(2, 3\); got \(2,\)"),
        ({"positions": np.zeros((3, 2))}, "positions must have the shape"),
        ({"body": "part.stl"}, r"body must be a ph\.Body"),
        ({"box": [1.0, -1.0, 1.0]}, "three positive edges"),
    ):
        with pytest.raises(ph.InputError, match=said):
            ph.view_many([0.0, 1.0], q, path, **({"body": body} | change))
    with pytest.raises(ph.InputError, match="increasing times"):
        ph.view_many([1.0, 0.0], q, path, body=body)
    with pytest.raises(ph.InputError, match="quaternion must have the shape"):
        ph.view_many([0.0, 1.0, 2.0], q, path, body=body)
    with pytest.raises(ph.InputError, match="colour must be numbers or one of energy, drift"):
        many.view(path, together=True, colour="hue")
    with pytest.raises(ph.InputError, match="are for together=True"):
        many.view(path, colour="drift")
    ends = ph.ensemble(ph.problems.get("t_handle"), "dmv6", dt=0.05, t_end=4.0, omega=[[0, 2.0, 0.1]], every=80)
    with pytest.raises(ph.InputError, match="more than half a turn apart"):
        ends.view(path, together=True)


def test_command(many: ph.Ensemble, tmp_path: Path) -> None:
    many.save(tmp_path / "many.nc")
    done = CliRunner().invoke(app, ["view", str(tmp_path / "many.nc"), "--colour", "drift"])
    assert done.exit_code == 0, done.output
    assert "many.html" in done.output
    failed = CliRunner().invoke(app, ["view", str(tmp_path / "many.nc"), "--colour", "hue", "--overwrite"])
    assert failed.exit_code == 2
