"""``python -m validation.papers``: figures and tables of the papers recomputed, from the source tree.

    python -m validation.papers                                       lists them
    python -m validation.papers krysl2006-fig3                        recomputes one
    python -m validation.papers all --out papers --overwrite          all, with one report

The helpers and the style of messages are those of the commands of `polhode`.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from polhode import _interrupt
from polhode.cli import console as commands
from polhode.cli.console import INTERRUPTED, AsJson, console, examples, guarded, print_json, sheet, stop, watched
from polhode.errors import InputError
from polhode.methods import citations
from polhode.results.store.atomic import folder_for

from . import RESULTS, get, report

COMMAND = "python -m validation.papers"
HELP = examples(COMMAND, f"{COMMAND} krysl2006-fig3", f"{COMMAND} all --out papers --overwrite")
REPORT = "report.html"

app = typer.Typer(
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=commands.app.rich_markup_mode,
    context_settings=commands.app.info.context_settings,
)


@app.command(epilog=HELP)
@guarded
def recompute(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Figures and tables to recompute, or `all`; list them if omitted."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("papers"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute the papers' figures and tables and report which of their claims hold."""
    if not ids:
        names = ("id", "cite", "where", "title")
        if as_json:
            print_json([{name: getattr(one, name) for name in names} for one in RESULTS.values()])
        else:
            _list(RESULTS)
        return
    chosen = list(RESULTS.values()) if ids == ["all"] else [get(id) for id in ids]
    _check_folder(out, [r.id for r in chosen], overwrite)
    began = time.perf_counter()
    finished = []
    try:
        with watched("papers") as watch:
            for i, one in enumerate(chosen):
                watch(one.id, i, len(chosen))
                tell = functools.partial(_tell, watch, one.id, i, len(chosen))
                outcome = one.make(tell)
                report.write(out, one, outcome)
                finished.append((one, outcome))
            watch("done", len(chosen), len(chosen))
    except KeyboardInterrupt:
        raise stop(f"interrupted; {len(finished)} of {len(chosen)} results are in {out}", INTERRUPTED) from None
    finally:
        if finished:
            (out / REPORT).write_text(report.page(finished), encoding="utf-8")
    if as_json:
        print_json([{"id": one.id, "verdicts": [vars(v) for v in outcome.verdicts]} for one, outcome in finished])
    else:
        _farewell(finished, out, time.perf_counter() - began)


def _tell(watch: Callable[[str, int, int], None], id: str, done: int, total: int, what: str) -> None:
    watch(f"{id}: {what}", done, total)


def _list(results: dict[str, Any]) -> None:
    rows = [[r.id, citations.short(r.cite), r.where, r.title] for r in results.values()]
    console().print(sheet("Results of the papers", ("id", "document", "where", "what"), rows))
    typer.echo(f"`{COMMAND} ID` recomputes one result, `{COMMAND} all` all of them with one report")


def _check_folder(out: Path, ids: list[str], overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must be a folder")
    there = [name for name in (*ids, REPORT) if (out / name).exists()]
    if there and not overwrite:
        raise InputError(f"{out} already holds results ({there[0]}, ...); choose another --out or use --overwrite")
    folder_for(out)


def _farewell(finished: list[Any], out: Path, seconds: float) -> None:
    rows = []
    for result, outcome in finished:
        words = [v.verdict for v in outcome.verdicts]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        rows.append([result.id, result.where, counts])
    console().print(sheet(f"{len(finished)} results in {seconds:.0f} s", ("id", "where", "statements"), rows))
    typer.echo(f"written       {out / REPORT}   open it in a browser; figures and data are in the folders next to it")


def main() -> None:
    """Run the command line."""
    try:
        _interrupt.while_running()
        app(prog_name=COMMAND)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
