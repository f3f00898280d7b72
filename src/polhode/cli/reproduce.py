"""``polhode reproduce``: where the command went."""

from __future__ import annotations

import typer

from .console import BAD_INPUT, app, stop


@app.command("reproduce", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce_command(context: typer.Context) -> None:
    """Say how the results of the papers are recomputed."""
    command = " ".join(("python -m validation.papers", *context.args))
    raise stop(f"the results of the papers are recomputed in the source tree of polhode, by `{command}`", BAD_INPUT)
