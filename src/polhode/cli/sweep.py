"""``polhode sweep``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..compile.clock import Stopwatch
from ..errors import InputError
from .console import (
    INTERRUPTED,
    NOTICED,
    AsJson,
    app,
    console,
    duration,
    examples,
    guarded,
    print_json,
    sheet,
    small,
    stop,
)

if TYPE_CHECKING:
    from ..config.sweep_file import Sweep
    from ..results.ensemble import Ensemble

SWEEP_HELP = examples(
    "polhode sweep sweep.toml --init",
    "polhode sweep sweep.toml --dry-run",
    "polhode sweep sweep.toml --out tops.zarr",
    "polhode sweep sweep.toml --out tops.zarr --resume",
    "polhode sweep sweep.toml --out /shared/tops.zarr --scheduler tcp://host:8786",
)

COLUMNS = "quantity", "value", "remark"


@app.command("sweep", epilog=SWEEP_HELP)
@guarded
def sweep_command(
    file: Annotated[Path, typer.Argument(help="A TOML file: a problem file with a table of the quantities that vary.")],
    out: Annotated[Path | None, typer.Option(help="The .zarr store to write (default: FILE with .zarr).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted sweep.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing store.")] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler, tcp://host:port (default: the cores of this machine)."),
    ] = None,
    shard: Annotated[
        int | None,
        typer.Option(min=1, help="Bodies in a shard, run and written together (default: about a second of work)."),
    ] = None,
    unit: Annotated[int | None, typer.Option(min=1, hidden=True, help="The earlier name of --shard.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the number of bodies, the output size and an estimate of the run time; do not run."
        ),
    ] = False,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="Allow the sweep file to run the Python file of its field."),
    ] = False,
    init: Annotated[bool, typer.Option("--init", help="Write an example sweep file to FILE.")] = False,
    as_json: AsJson = False,
) -> None:
    """Integrate a problem many times while varying some of its parameters: on a grid, from a list, or at random."""
    from ..config import sweep_file as library

    if init:
        return _init(file, library.EXAMPLE)
    if shard is not None and unit is not None:
        raise InputError("--unit is the earlier name of --shard; give --shard alone")
    sweep, unit = library.read(file, allow_code), unit if shard is None else shard
    if dry_run:
        return _say(sweep, unit, as_json)
    path = out or sweep.file or file.with_suffix(".zarr")
    return _run(sweep, path, resume, overwrite, scheduler, unit, as_json)


def _init(file: Path, text: str) -> None:
    if file.exists():
        raise InputError(f"{file} exists; choose another name")
    file.write_text(text, encoding="utf-8")
    typer.echo(f"written {file}; edit it, then run: polhode sweep {file} --dry-run")


def _say(sweep: Sweep, unit: int | None, as_json: bool) -> None:
    """Print the size of a sweep and an estimate of its run time."""
    from ..physics.validate import whole_number
    from ..run.ensemble.estimate import bytes_of, seconds_of
    from ..run.ensemble.shards import default_shard_size

    task = sweep.task
    size = default_shard_size(task) if unit is None else min(whole_number("unit", unit), sweep.number)
    seconds = seconds_of(task, size)
    if as_json:
        counted = {"bodies": sweep.number, "varied": list(sweep.columns), "steps": task.count, "shard": size}
        print_json(counted | {"method": task.method.name, "bytes": bytes_of(task), "seconds": seconds})
        return
    rows = [
        ["bodies", f"{sweep.number}", f"varied: {', '.join(sweep.columns)}"],
        ["steps", f"{task.count}", f"{task.method.name}; {len(task.kept)} states recorded for each body"],
        ["body-steps", f"{sweep.number * task.count:.3g}", ""],
        ["output", _bytes(bytes_of(task)), f"{-(-sweep.number // size)} shards of {size} bodies"],
        [
            "time",
            duration(seconds),
            "estimate for this machine, from a small sample, without compiling",
        ],
    ]
    console().print(sheet("nothing was run", COLUMNS, rows))


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def _run(
    sweep: Sweep, path: Path, resume: bool, overwrite: bool, scheduler: str | None, unit: int | None, as_json: bool
) -> None:
    from ..run.ensemble import shards as units
    from ..run.ensemble.estimate import seconds_of

    units.output_path(path, overwrite, resume)
    watch = Stopwatch()
    if scheduler is None:
        expected = duration(seconds_of(sweep.task, unit) * _share_left(path, resume))
        size = f"{sweep.number * sweep.task.count:.3g} body-steps"
        typer.echo(f"{sweep.number} bodies, {size}: about {expected} on {units.cores()} cores", err=True)
    work, ran = Stopwatch(), list[units.Done]()
    try:
        many = units.run(
            sweep.task, path, resume=resume, overwrite=overwrite, scheduler=scheduler, shard_size=unit,
            labels=sweep.labels, attrs={"sweep": sweep.text}, tell=ran.append,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise stop(_left(path), INTERRUPTED) from None
    slowest = max((done.compile_seconds for done in ran), default=0.0)
    if as_json:
        print_json(_facts(sweep, many, path, work.seconds - slowest))
    else:
        _summary(sweep, many, path, work.seconds - slowest, len(ran), watch.compile_seconds + slowest)


def _share_left(path: Path, resume: bool) -> float:
    """The part of a sweep that is not done."""
    from ..results.store import ensemble_store

    with contextlib.suppress(InputError):
        if resume and path.exists():
            return len(ensemble_store.missing(path)) / ensemble_store.number_of_units(ensemble_store.opened(path))
    return 1.0


def _left(path: Path) -> str:
    from ..results.store import ensemble_store as crowd_store

    with contextlib.suppress(InputError):
        return f"interrupted; {path} lacks {len(crowd_store.missing(path))} shards: use --resume to continue"
    return "interrupted before anything was written"


def _facts(sweep: Sweep, many: Ensemble, path: Path, seconds: float) -> dict[str, Any]:
    """The results of a sweep, for JSON."""
    from ..config import sweep_file as library

    failed = (many.failed >= 0).nonzero()[0]
    return {
        "bodies": sweep.number,
        "varied": list(sweep.columns),
        "method": sweep.task.method.name,
        "steps": sweep.task.count,
        "failed": failed,
        "energy_change": library.quantiles(many.to_xarray()["energy_change"].values),
        "drift": {name: library.quantiles(one.drift) for name, one in many.statistics.items()},
        "seconds": seconds,
        "file": path,
    }


def _summary(sweep: Sweep, many: Ensemble, path: Path, seconds: float, ran: int, compiled: float) -> None:
    """Print a summary of the results and how to open them."""
    from ..config import sweep_file as library
    from ..run.ensemble import report as ensemble_report

    task, data = sweep.task, many.to_xarray()
    failed = (many.failed >= 0).nonzero()[0]
    change = library.quantiles(data["energy_change"].values)
    bodies = min(ran * int(data.attrs["unit"]), sweep.number)
    first = ""
    if failed.size:
        i = int(failed[0])
        first = f"first: body {i}, in step {many.failed[i]}: {ensemble_report.reason(task, many, i)}"
    speed = f"{bodies * task.count / seconds:.3g} body-steps per second" if ran else "all shards were already complete"
    speed += f"; compiling {duration(compiled)}" if compiled > NOTICED else ""
    rows = [
        ["bodies", f"{sweep.number}", f"varied: {', '.join(sweep.columns)}"],
        ["failed", f"{failed.size}", first],
        [
            "energy",
            "",
            _quantity(change, "largest relative change" + (" over the recorded states" if many.statistics else "")),
        ],
        *([name, "", _quantity(library.quantiles(one.drift), "drift")] for name, one in many.statistics.items()),
        ["time", duration(seconds), speed],
    ]
    console().print(sheet(f"{task.method.name}, {task.count} steps", COLUMNS, rows))
    typer.echo(f"written       {path} (polhode.load or xarray.open_zarr opens it)")  # a table could wrap it


def _quantity(numbers: dict[str, float], what: str) -> str:
    return ", ".join(f"{name} {small(x)}" for name, x in numbers.items()) + f"   ({what})"
