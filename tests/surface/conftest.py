"""A browser in which pages are tested."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pages import until
from waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Page

SWITCHES = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking")
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the viewer is tested with playwright")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on the path, in which the viewer is tested; `make browser` installs it")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield made
        made.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """A function that opens a page, and fails afterwards if anything was said on its console or asked of a network."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 720, "height": 560}, offline=True)
    context.set_default_timeout(1000 * PATIENCE)

    def open_page(path: Path) -> Page:
        page: Page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else faults.append(asked.url))
        page.goto(path.resolve().as_uri())
        until(page, "Boolean(window.polhode)")
        return page

    yield open_page
    context.close()
    assert faults == []
