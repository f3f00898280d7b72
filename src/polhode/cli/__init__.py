"""The command line, one file per command; a thin layer over the library."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import _interrupt
from .._version import __version__
from . import (
    bench,
    body,
    cache,
    compare,
    doctor,
    emit,
    exact,
    export,
    init,
    live,
    methods,
    problems,
    reproduce,
    run,
    sweep,
    view,
)
from .compare import FILES
from .console import INTERRUPTED, app

__all__ = ["FILES", "app", "main"]

ORDER = (
    "run", "compare", "exact", "sweep", "methods", "problems", "body", "init", "view", "export", "bench", "cache",
    "doctor",
)  # fmt: skip
"""Order of the commands in the help text; others follow."""

app.registered_commands.sort(key=lambda found: ORDER.index(found.name) if found.name in ORDER else len(ORDER))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polhode {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    try:
        _interrupt.while_running()
        app(prog_name="polhode")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
