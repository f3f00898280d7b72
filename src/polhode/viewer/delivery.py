"""Where a page goes: to the path that was given, into the notebook, or to the browser."""

from __future__ import annotations

import atexit
import html
import os
import re
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..physics.validate import file_path, flag
from ..results.store.atomic import place_for, write_whole

HEIGHT = "50rem"
"""Height of a page in a notebook, in which picture and chart are seen at once."""

_Path: Any = type(Path())  # the class of paths of this system, which can be inherited from


class NotebookPage(_Path):
    """The path of a page that a notebook shows in place of the path."""

    def _repr_html_(self) -> str | None:
        """The page in a frame; it is a part of the notebook, and needs neither the file nor a network."""
        if not self.is_file():  # a folder above it is shown as any path
            return None
        page = self.read_text("utf-8").replace("<html", '<html class="frame"', 1)
        text = html.escape(page).encode("ascii", "xmlcharrefreplace").decode()  # whatever encoding the notebook has
        return f'<iframe srcdoc="{text}" style="width: 100%; height: {HEIGHT}; border: 0" allowfullscreen></iframe>'


def checked(path: str | Path | None, overwrite: bool) -> Path | None:
    """A path that a page may be written to; None stays None."""
    if path is None:
        return None
    path = file_path(path, "path must be the name of a page such as 'spin.html'")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the name of the page must end in .html; got {path}")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist; create it first")
    if path.exists() and not flag("overwrite", overwrite):
        raise InputError(f"{path} exists; give another name, or overwrite=True (--overwrite)")
    return place_for(path)


def delivered(path: Path | None, title: str, text: str) -> Path:
    """Write a page; without a path to a temporary file, which a notebook shows, and otherwise a browser."""
    if path is None:
        return _in_notebook(title, text) if in_notebook() else _in_browser(title, text)
    write_whole(path, text, durable=False)
    return path


def in_notebook() -> bool:
    """Whether a notebook shows the results of its cells; IPython in a terminal shows texts alone."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _in_notebook(title: str, text: str) -> Path:
    page = NotebookPage(_written(title, text))
    atexit.register(shutil.rmtree, page.parent, ignore_errors=True)
    return page


def _in_browser(title: str, text: str) -> Path:
    """The file stays: the browser may read it after the program has ended."""
    page = _written(title, text)
    if opened(page):
        print(f'opened in the browser: {page} (if it shows no page, give a path: view("page.html"))', file=sys.stderr)
    else:
        print(
            f"written to {page}; no browser could be opened here. Open this file in a browser, or choose the place "
            'with a path: view("page.html")', file=sys.stderr,
        )  # fmt: skip
    return page


def _written(title: str, text: str) -> Path:
    name = re.sub(r"[^\w-]+", "_", title).strip("_")[:50] or "page"
    try:
        page = Path(tempfile.mkdtemp(prefix="polhode-")) / f"{name}.html"
        write_whole(page, text, durable=False)
    except OSError as fault:
        raise InputError(
            f"no temporary page can be written ({fault.strerror or fault}); give a path, such as 'page.html'", "path"
        ) from None
    return page


def opened(page: Path) -> bool:
    """Open a page in a graphical browser, if there is one."""
    return has_screen() and webbrowser.open(page.as_uri())


def has_screen() -> bool:
    """Whether a graphical browser can be opened; browsers in a terminal cannot show the page."""
    named = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return named or sys.platform in ("darwin", "win32")
