"""``polhode cache``."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from .console import AsJson, app, examples, guarded, print_json

CACHE_HELP = examples("polhode cache", "polhode cache clear")


class Action(enum.StrEnum):
    """Action on the cache."""

    show = "show"
    clear = "clear"


@app.command("cache", epilog=CACHE_HELP)
@guarded
def cache_command(
    action: Annotated[Action, typer.Argument(help="Show folder and size, or empty the cache.")] = Action.show,
    as_json: AsJson = False,
) -> None:
    """Show the folder and size of the cache of compiled code, or empty it; $POLHODE_CACHE sets the folder."""
    from ..compile import disk_cache

    root = disk_cache.cache_folder()
    found = disk_cache.entries(root)
    size = disk_cache.shown(sum(entry.size for entry in found))
    if as_json:
        removed = disk_cache.clear(root) if action is Action.clear else 0
        bytes_ = sum(entry.size for entry in found)
        limit = disk_cache.size_limit()
        print_json({"folder": root, "functions": len(found), "bytes": bytes_, "limit": limit, "removed": removed})
        return
    typer.echo(f"folder        {root}")
    if action is Action.clear:
        typer.echo(f"removed       {disk_cache.clear(root)} compiled functions, {size}")
        return
    typer.echo(f"content       {len(found)} compiled functions, {size}")
    typer.echo(f"limit         {disk_cache.shown(disk_cache.size_limit())} ($POLHODE_CACHE_SIZE)")
