"""``polhode live``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import app, examples, guarded
from .view import show_page

LIVE_HELP = examples("polhode live top --open", "polhode live free --out class.html --t-end 40")


@app.command("live", epilog=LIVE_HELP)
@guarded
def live_command(
    kind: Annotated[str, typer.Argument(help="top (a symmetric heavy top) or free (a body without torque).")] = "top",
    out: Annotated[Path | None, typer.Option(help="The page to write (default: live_KIND.html).")] = None,
    method: Annotated[str | None, typer.Option(help="The method that the page computes with.")] = None,
    t_end: Annotated[float, typer.Option(help="Duration of the motion.")] = 20.0,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
) -> None:
    """Write a page for teaching, with sliders for the body and its initial state; the browser computes the motion."""
    from ..viewer.live import view_live

    page = view_live(out or Path(f"live_{kind}.html"), kind, method=method, t_end=t_end, overwrite=overwrite)
    typer.echo(f"written       {page}   open it in any browser")
    if show:
        show_page(page)
