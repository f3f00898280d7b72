"""Pages without a path: shown in a notebook, opened in the browser elsewhere."""

from __future__ import annotations

import sys
import tempfile
import types
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polhode as ph
from commands import polhode
from pages import until
from polhode.viewer import delivery
from waiting import PATIENCE

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(autouse=True)
def _temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """An IPython that shows what cells return, as in Jupyter."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


@pytest.fixture(scope="module")
def sol() -> ph.Trajectory:
    return ph.exact(ph.problems.t_handle(), np.linspace(0.0, 10.0, 201))


def pages(sol: ph.Trajectory) -> list[Callable[[], Any]]:
    many = ph.ensemble([1.5, 2.0, 2.5], None, [[1.0, 0.01, 0.0], [0.0, 1.0, 0.01]], "dmv6", dt=0.1, steps=9, every=1)
    body = ph.Body([1.5, 2.0, 2.5])
    return [
        sol.view,
        lambda: ph.view([sol, sol]),
        many.view,
        lambda: many.view(together=True),
        lambda: ph.view_many(many.t, many.quaternion, body=body),
        lambda: ph.view_live(kind="free"),
    ]


@pytest.mark.usefixtures("notebook")
def test_a_notebook_shows_every_page(sol: ph.Trajectory, capsys: Any) -> None:
    for make in pages(sol):
        shown = make()._repr_html_()
        assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert shown.count('"') == 4, "the text of the page is quoted"
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("notebook")
def test_the_page_plays_in_the_frame_of_a_notebook(sol: ph.Trajectory, browser: Any, tmp_path: Path) -> None:
    """Also after the file is gone, and without a network."""
    page = sol.view()
    shown: Any = page._repr_html_()  # type: ignore[attr-defined]
    page.unlink()
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><body><p>In [1]</p>{shown}", "utf-8")
    context = browser.new_context(viewport={"width": 900, "height": 900}, offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    window = context.new_page()
    window.goto((tmp_path / "notebook.html").as_uri())
    (frame,) = window.frames[1:]
    until(frame, "Boolean(window.polhode) && polhode.state().time > 0.05")
    assert frame.inner_text("h1") == "T-handle"
    assert "ω angular velocity" in frame.inner_text(".key")
    chart = frame.locator("#chart").bounding_box()
    whole = window.locator("iframe").bounding_box()
    assert chart["y"] + chart["height"] <= whole["y"] + whole["height"], "the chart is seen too"
    assert window.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    context.close()


def test_without_a_notebook_the_browser_opens(sol: ph.Trajectory, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    for make in pages(sol):
        page = make()
        assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
        assert opened.pop() == page.as_uri()
        assert f"opened in the browser: {page} (if it shows no page" in capsys.readouterr().err
    assert sol.view().name == "T-handle.html"


def test_without_a_screen_it_says_what_to_do(sol: ph.Trajectory, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser in a terminal, which could not show the page, is not started."""
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened"))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    page = sol.view()
    said = capsys.readouterr().err
    assert f"written to {page}" in said
    assert 'view("page.html")' in said
    assert page.is_file()


def test_a_folder_that_cannot_be_written_is_named(
    sol: ph.Trajectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ph.InputError, match=r"no temporary page can be written \(No such file.*\); give a path"):
        sol.view()


@pytest.mark.usefixtures("in_a_folder")
def test_commands_start_no_browser_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: pytest.fail("opened"))
    monkeypatch.setattr(delivery, "has_screen", lambda: False)
    assert "no browser could be opened here" in polhode("live", "free", "--open").stderr


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, types.SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert not delivery.in_notebook()


@pytest.mark.usefixtures("notebook")
def test_a_path_is_written_as_ever(sol: ph.Trajectory, tmp_path: Path) -> None:
    page = sol.view(tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert not hasattr(page, "_repr_html_")
