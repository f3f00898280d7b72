"""``polhode bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import EXAMPLE, AsJson, app, console, examples, guarded, named_methods, print_json, sheet, watched
from .problem import AllowCode, with_end

BENCH_HELP = examples(
    "polhode bench",
    f"polhode bench --methods {EXAMPLE}",
    f"polhode bench problem.toml --methods {EXAMPLE}",
    "polhode bench --out step_cost.json",
)


@app.command("bench", epilog=BENCH_HELP)
@guarded
def bench_command(
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="PROBLEM",
            help="A named problem, or a problem file (.toml), to time the methods on (default: five).",
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Comma-separated method names (default: all).")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the results to this JSON file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
    allow_code: AllowCode = False,
) -> None:
    """Time a step of every method and compare it with plain Python and with scipy's DOP853."""
    from ..analysis import bench

    if out is not None:
        bench.checked(out, overwrite)
    names = [m.name for m in named_methods(methods)] if methods else None
    what = None if problem is None else with_end(problem, allow_code)
    with watched("bench") as tell:
        result = bench.measure(names, tell, what)
    print_json(result) if as_json else _print(result)
    if out is not None:
        bench.write(result, out)
        typer.echo(f"written       {out}", err=as_json)


def _print(result: dict[str, Any]) -> None:
    rows: Sequence[dict[str, Any]] = result["rows"]
    columns = ("method", "problem", "dt", "ns/step", "Python/compiled", "flops", "Gflop/s", "error", "DOP853/polhode")
    console().print(sheet("one step, one core", columns, [_line(row) for row in rows], numbers=7))
    machine = result["machine"]
    console().print(f"{machine['processor']}, Python {machine['python']}, commit {machine['commit'] or '-'}")


def _line(row: dict[str, Any]) -> list[str]:
    ratio, error = row.get("dop853_over_ours"), row.get("attitude_error")
    return [
        row["method"],
        row["problem"],
        f"{row['dt']:g}",
        f"{row['ns_per_step']:.0f}",
        f"{row['plain_over_compiled']:.0f}",
        str(row["flops"]),
        f"{row['gflops']:.2f}",
        f"{error:.1e}" if error is not None else "",
        f"{ratio:.1f}" if ratio else "",
    ]
