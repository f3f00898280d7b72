"""``polhode compare``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compile.clock import Stopwatch
from ..errors import InputError
from ..methods.record import formatted
from ..physics import library
from ..physics.conserved import conserved
from ..physics.problem import Problem
from ..results.store.atomic import folder_for
from .console import (
    ACCURATE,
    EXAMPLE,
    INTERRUPTED,
    AsJson,
    app,
    compiling,
    console,
    count,
    draw_figure,
    examples,
    guarded,
    named_methods,
    print_json,
    sheet,
    small,
    stop,
    watched,
)
from .problem import AllowCode, ProblemName, stem, with_end

if TYPE_CHECKING:
    from ..analysis.convergence import Row
    from ..physics.problem import Reference
    from ..results.trajectory import Trajectory

COMPARE_HELP = examples(
    "polhode compare fast_top",
    f'polhode compare soft_wall --methods "{EXAMPLE}, {ACCURATE}" --dt "0.2, 0.1, 0.05" --out walls',
    "polhode compare slow_top --t-end 10 --overwrite",
    f"polhode init && polhode compare problem.toml --methods {EXAMPLE}",
)

PICTURES = ("overview", "error_vs_dt", "error_vs_time", "drift")
FILES = (
    *(f"{name}{kind}" for name in PICTURES for kind in (".png", ".svg")),
    "results.csv",
    "results.json",
)


@app.command("compare", epilog=COMPARE_HELP)
@guarded
def compare_command(
    problem: ProblemName,
    methods: Annotated[
        str | None,
        typer.Option(help="Comma-separated names or expressions (default: one of each kind and order that suits)."),
    ] = None,
    dt: Annotated[str | None, typer.Option(help="Comma-separated step sizes (default: seven).")] = None,
    t_end: Annotated[float | None, typer.Option(help="End time (default: that of the problem).")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results (default: results-PROBLEM).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False,
    as_json: AsJson = False,
    allow_code: AllowCode = False,
) -> None:
    """Integrate a problem with many methods; report errors, drifts and cost as a table, plots and files."""
    from ..analysis import comparison, convergence

    what = with_end(problem, allow_code)
    chosen = named_methods(methods) if methods is not None else comparison.default_methods(what)
    sizes = _sizes(dt) if dt is not None else comparison.default_steps(what, t_end)
    convergence.check(what, chosen, sizes, t_end)
    folder = _new_folder(out or Path(f"results-{stem(problem)}"), overwrite)
    clock = Stopwatch()
    cold = sum(convergence.is_cold(what, m) for m in chosen)
    if cold:
        typer.echo(f"first run: compiling {count(cold, 'method')}, about 2 s each (cached for later runs)", err=True)
    try:
        with watched(f"{what.name}, {count(len(chosen), 'method')}") as watch:
            rows = convergence.convergence(what, chosen, sizes, t_end=t_end, watch=watch)
    except KeyboardInterrupt:
        raise stop(f"interrupted; nothing was written to {folder}", INTERRUPTED) from None
    shown = comparison.middle(sizes)
    reference = convergence.reference_solution(what, t_end)
    if not as_json:
        _print_comparison(what, reference, rows, shown, compiling(clock))
    _write_comparison(folder, what, reference, rows, comparison.trajectories(what, chosen, shown, t_end))
    if as_json:
        print_json(comparison.facts(what, reference, rows) | {"folder": folder})
    else:
        _farewell(folder, problem, rows, shown)


def _sizes(text: str) -> list[float]:
    try:
        sizes = [float(x) for x in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(f"--dt must be comma-separated numbers; got {text!r}") from None
    if not sizes:
        raise InputError(f"--dt must be comma-separated numbers, such as 0.1,0.05; got {text!r}")
    return sizes


def _new_folder(folder: Path, overwrite: bool) -> Path:
    """The output folder, if results may be written to it; only files of this command are ever replaced."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out must be a folder")
    there = [name for name in FILES if (folder / name).exists()]
    if there and not overwrite:
        raise InputError(f"{folder} already holds results ({there[0]}, ...); choose another --out or use --overwrite")
    return folder_for(folder)


def _print_comparison(problem: Problem, reference: Reference, rows: Sequence[Row], dt: float, compiled: str) -> None:
    from ..analysis import comparison, invariants

    label = invariants.momentum_label(invariants.conserved_directions(problem))
    known = conserved(problem)
    energy = "energy\ndrift" if known is None or known.energy else "energy\nchange"
    columns = ["method", "order", "measured\norder", "attitude\nerror", energy]
    columns += [f"{label}\ndrift".replace(" ", "\n", 1)] if label else []
    lines = []
    for row, slope in sorted(comparison.table(rows, dt), key=lambda line: _error(line[0])):
        drifts = [row.energy_drift, row.momentum_drift] if label else [row.energy_drift]
        numbers = [small(x) for x in (row.attitude_error, *drifts)]
        speed = "failed" if row.failure else f"{row.ns_per_step:.0f}"
        lines.append(
            [row.method, formatted(float(row.order)), "-" if math.isnan(slope) else f"{slope:.2f}", *numbers, speed]
        )
    title = f"{problem.name} to t = {reference.t:g} with dt = {dt:g}"
    console().print(sheet(title, (*columns, "ns/step"), lines, numbers=len(columns)))
    typer.echo(
        f"Errors relative to the converged solution, accurate to {small(reference.error)}: spectral norm of R - R_ref. "
        f"Drifts and changes are the largest relative ones. ns/step is the time of the loop alone{compiled}."
    )
    for row, _ in comparison.table(rows, dt):
        if row.failure:
            typer.echo(row.failure)


def _error(row: Row) -> float:
    """Place of a method in the table: the smallest error first, failed runs last."""
    return math.inf if row.failure or math.isnan(row.attitude_error) else row.attitude_error


def _write_comparison(
    folder: Path, problem: Problem, reference: Reference, rows: Sequence[Row], paths: Sequence[Trajectory]
) -> None:
    from ..analysis import comparison

    folder.mkdir(parents=True, exist_ok=True)
    title = f"{library.title(problem.name)}, t = {reference.t:g}"
    drawings: dict[str, Callable[[Any], Any]] = {
        "overview": lambda plots: plots.comparison_plot(rows, paths, title=title),
        "error_vs_dt": lambda plots: plots.convergence_plot(rows, title=title),
        "error_vs_time": lambda plots: plots.work_precision_plot(rows, title=title),
        "drift": lambda plots: plots.drift_plot(paths),
    }
    for name in PICTURES:
        draw_figure(drawings[name], folder / f"{name}.png", folder / f"{name}.svg")
    for old in comparison.old_trajectories(folder):
        old.unlink(missing_ok=True)
    comparison.write_trajectories(folder / comparison.TRAJECTORIES, paths)
    comparison.write_csv(folder / "results.csv", rows)
    comparison.write_json(folder / "results.json", problem, reference, rows)


def _farewell(folder: Path, problem: str, rows: Sequence[Row], dt: float) -> None:
    """Print where the results are and what to try next."""
    typer.echo(
        f"\nEverything is in {folder}: {', '.join(PICTURES)} as .png and .svg, results.csv, results.json, and a "
        f"file for each method in trajectories/. Next:"
    )
    for command in _next(folder, problem, rows, dt):
        typer.echo(f"  polhode {command}")


def _next(folder: Path, problem: str, rows: Sequence[Row], dt: float) -> list[str]:
    """Commands that continue from here: with the method of the smallest error, if one did not fail."""
    from ..analysis import comparison

    best, _ = comparison.table(rows, dt)[0]
    if best.failure:
        finer = ", ".join(f"{size / 10:g}" for size in sorted({row.dt for row in rows}, reverse=True))
        return [f'compare {problem} --methods "{best.method}" --dt "{finer}"', f"run {problem} --tol 1e-6"]
    path = folder / comparison.TRAJECTORIES / comparison.file_names([best.method])[best.method]
    return [
        f'run {problem} --method "{best.method}" --dt {dt:g} --plot {stem(problem)}.png',
        f'methods "{best.method}"',
        f"view {path} --out {stem(problem)}.html",
    ]
