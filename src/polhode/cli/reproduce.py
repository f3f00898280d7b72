"""``polhode reproduce``."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..methods import citations
from ..results.store.atomic import folder_for
from .console import INTERRUPTED, AsJson, app, console, examples, guarded, print_json, sheet, stop, watched

REPRODUCE_HELP = examples(
    "polhode reproduce", "polhode reproduce krysl2006-fig3", "polhode reproduce all --out papers --overwrite"
)
REPORT = "report.html"


@app.command("reproduce", epilog=REPRODUCE_HELP)
@guarded
def reproduce_command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Figures and tables to reproduce, or `all`; list them if omitted."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("papers"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the papers' figures and tables and report which of their claims hold."""
    from .. import papers

    if not ids:
        names = ("id", "cite", "where", "title")
        if as_json:
            print_json([{name: getattr(one, name) for name in names} for one in papers.RESULTS.values()])
        else:
            _list(papers.RESULTS)
        return
    chosen = list(papers.RESULTS.values()) if ids == ["all"] else [papers.get(id) for id in ids]
    _check_folder(out, [r.id for r in chosen], overwrite)
    began = time.perf_counter()
    finished = []
    try:
        with watched("papers") as watch:
            for i, one in enumerate(chosen):
                watch(one.id, i, len(chosen))
                tell = functools.partial(_tell, watch, one.id, i, len(chosen))
                outcome = one.make(tell)
                papers.report.write(out, one, outcome)
                finished.append((one, outcome))
            watch("done", len(chosen), len(chosen))
    except KeyboardInterrupt:
        raise stop(f"interrupted; {len(finished)} of {len(chosen)} results are in {out}", INTERRUPTED) from None
    finally:
        if finished:
            (out / REPORT).write_text(papers.report.page(finished), encoding="utf-8")
    if as_json:
        print_json([{"id": one.id, "verdicts": [vars(v) for v in outcome.verdicts]} for one, outcome in finished])
    else:
        _farewell(finished, out, time.perf_counter() - began)


def _tell(watch: Callable[[str, int, int], None], id: str, done: int, total: int, what: str) -> None:
    watch(f"{id}: {what}", done, total)


def _list(results: dict[str, Any]) -> None:
    rows = [[r.id, citations.short(r.cite), r.where, r.title] for r in results.values()]
    console().print(sheet("Results of the papers", ("id", "document", "where", "what"), rows))
    typer.echo("`polhode reproduce ID` reproduces one result, `polhode reproduce all` all of them with one report")


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
