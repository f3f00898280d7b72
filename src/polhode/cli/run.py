"""``polhode run``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import viewer
from ..compile.clock import Stopwatch
from ..errors import InputError, StepError
from ..methods import Method
from ..methods import methods as registry
from ..physics.problem import Problem
from ..physics.validate import euler_sequence
from ..results.formats.formats import export
from ..results.formats.place import ready
from ..results.store import trajectory_store as store
from ..run.schedule import Bounds
from .console import (
    EXAMPLE,
    FAILED,
    INTERRUPTED,
    AsJson,
    app,
    compiling,
    draw_figure,
    duration,
    examples,
    guarded,
    numbers,
    print_json,
    small,
    stop,
)
from .problem import AllowCode, ProblemName, given, method_names
from .states import DRIFTS, Euler, print_state, state_facts

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

STATES_WITHOUT_FILE = 10_000
"""Approximate number of states recorded when no file is written."""

RUN_HELP = examples(
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01",
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01 --every 10 --out top.zarr --plot top.png",
    f"polhode run free_body --method {EXAMPLE} --dt 0.5 --steps 20 --digits 40",
    "polhode run soft_wall --tol 1e-10",
    "polhode run fast_top --step-tol 1e-9 --samples 201 --csv top.csv --euler ZYX",
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01 --t-end -1 --times 0,-0.25,-1",
    "polhode run fast_top --tol 1e-25 --digits 30 --t-end 0.1",
    "polhode init && polhode run problem.toml",
    f"polhode run fast_top --method {EXAMPLE} --dt 1e-5 --every 1000 --out long.zarr --resume   "
    "(the same command starts, resumes or extends a run)",
)

STEPS, RECORDED, OUTPUT = "Method and steps", "Recorded states", "Output"
"""Groups of options in the help text."""


@app.command("run", epilog=RUN_HELP)
@guarded
def run_command(
    problem: ProblemName,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="Method name, alias or expression; see `polhode methods`.",
            rich_help_panel=STEPS,
            autocompletion=method_names,
        ),
    ] = None,
    dt: Annotated[
        float | None, typer.Option(help="Step size, in the problem's unit of time.", rich_help_panel=STEPS)
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            help="Error allowed at the end; replaces --dt, and --method becomes optional.", rich_help_panel=STEPS
        ),
    ] = None,
    step_tol: Annotated[
        float | None,
        typer.Option(
            help="Error allowed in each step, instead of --tol: faster, without an estimate.", rich_help_panel=STEPS
        ),
    ] = None,
    t_end: Annotated[
        float | None,
        typer.Option(
            help="End time (default: that of the problem); before the start, the run goes backwards.",
            rich_help_panel=STEPS,
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of steps, instead of an end time.", rich_help_panel=STEPS)
    ] = None,
    stops: Annotated[
        str | None,
        typer.Option(
            help="With --tol: times at which steps must end, such as 3,4.5 (a jump, a pulse).", rich_help_panel=STEPS
        ),
    ] = None,
    max_step: Annotated[
        float | None, typer.Option(help="With --tol: the longest step allowed.", rich_help_panel=STEPS)
    ] = None,
    digits: Annotated[
        int | None, typer.Option(help="Compute with this many digits (slow).", rich_help_panel=STEPS)
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            help="Record every K-th state (default: all with --out, otherwise a few thousand).",
            rich_help_panel=RECORDED,
        ),
    ] = None,
    times: Annotated[
        str | None, typer.Option(help="Record the states at these times, such as 0,0.5,2.", rich_help_panel=RECORDED)
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Record this many states, equally spaced from start to end.", rich_help_panel=RECORDED),
    ] = None,
    max_turn: Annotated[
        float | None,
        typer.Option(
            help="Record states between which the body turns by at most this angle (radians).", rich_help_panel=RECORDED
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the states to this .zarr or .nc file during the run.", rich_help_panel=OUTPUT),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume the run in --out (bit-identical to an uninterrupted run); start it if there is no file.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Write the states as a table to this .csv file.", rich_help_panel=OUTPUT)
    ] = None,
    euler: Euler = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Plot energy, momentum, attitude and polhode: .png, .svg, .pdf.", rich_help_panel=OUTPUT),
    ] = None,
    view: Annotated[
        Path | None,
        typer.Option(help="Write an HTML page that shows the motion in a browser: .html.", rich_help_panel=OUTPUT),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing files.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: AsJson = False,
    allow_code: AllowCode = False,
) -> None:
    """Integrate a problem with a given method or to a tolerance; print the final state and the conservation errors.

    Options override the settings of a problem file.
    """
    how: dict[str, Any] = {
        "method": method, "dt": dt, "tol": tol, "step_tol": step_tol, "t_end": t_end, "steps": steps, "every": every,
        "digits": digits, "stops": None if stops is None else stops.split(","), "max_step": max_step,
        "times": None if times is None else numbers("--times", times), "samples": samples, "max_turn": max_turn,
    }  # fmt: skip
    from ..config import problem_file

    found = given(problem, allow_code)
    what, how = found.problem, _overridden(found.settings, {k: v for k, v in how.items() if v is not None})
    out, plot, view = out or found.file, plot or found.plot, view or found.view
    how = found.resolved(how)
    may_replace = overwrite or resume
    if view is not None:
        viewer.checked(view, may_replace)
    new_table(csv, may_replace)
    if euler is not None:
        euler_sequence("--euler", euler, "euler")
    new_picture(plot, may_replace)
    before, watch = _progress_in(out) if resume else None, Stopwatch()
    if any(name in how for name in problem_file.TOLERANCES):
        sol = _to_tolerance(what, out=out, overwrite=overwrite, resume=resume, **how)
    elif "method" not in how or "dt" not in how:
        raise InputError(
            f"give --method and --dt, or --tol or --step-tol: polhode run {problem} --method {EXAMPLE} --dt 0.01, or "
            f"polhode run {problem} --tol 1e-10"
        )
    else:
        Bounds.refuse(how.pop("stops", None), how.pop("max_step", None))
        sol = _with_steps(what, registry[how.pop("method")], out=out, overwrite=overwrite, resume=resume, **how)
    if csv is not None:
        export(sol, csv, overwrite=may_replace, euler=euler)
    if plot is not None:
        draw_figure(lambda plots: plots.TrajectoryPlots(sol).overview(), plot)
    if view is not None:
        viewer.view(sol, view, overwrite=may_replace)
    files = [path for path in (out, csv, plot, view) if path is not None]
    if as_json:
        print_json(_facts(what, sol, files, euler))
        return
    _print(what, sol, how.get("tol"), out is not None, compiling(watch), euler)
    for path in files:
        unchanged = path == out and before == _progress_in(out)
        typer.echo(
            f"complete      {path} was already complete and is unchanged" if unchanged else f"written       {path}"
        )


def _overridden(settings: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by those of the command line."""
    from ..config.problem_file import ENDS, KEPT, TOLERANCES

    dropped = set()
    if any(name in options for name in TOLERANCES):
        dropped |= {"method", "dt", "steps", "every", "digits", *TOLERANCES}
    if "dt" in options:
        dropped |= {*TOLERANCES, "stops", "max_step"}
    if any(name in options for name in KEPT):
        dropped |= set(KEPT)
    if any(name in options for name in ENDS):
        dropped |= set(ENDS)
    return {name: value for name, value in settings.items() if name not in dropped} | options


def _progress_in(path: Path | None) -> tuple[str, int, float] | None:
    """Progress of the run in an existing file; it changes with every write."""
    if path is None or not path.exists():
        return None
    info = store.read(path)[0].info
    return info.status, info.steps, info.seconds


# --- the run ----------------------------------------------------------------------------------------


def _to_tolerance(what: Problem, *, out: Path | None, overwrite: bool, resume: bool, **others: Any) -> Trajectory:
    """Run to a tolerance."""
    from ..run.solve import solve

    try:
        return solve(what, out=out, overwrite=overwrite, resume=resume, **others)
    except KeyboardInterrupt as end:
        there = None if out is None or store.existing(out) is None else out
        raise stop(_interrupted(getattr(end, "partial", None), there), INTERRUPTED) from None
    except StepError as end:
        raise stop(end.reason, FAILED) from None


def _with_steps(
    what: Problem, how: Method, *, dt: float, t_end: float | None = None, steps: int | None = None,
    every: int | None = None, digits: int | None = None, out: Path | None, overwrite: bool, resume: bool,
    **between: Any,
) -> Trajectory:  # fmt: skip
    """Run with a fixed step."""
    from ..physics.validate import whole_number
    from ..run.integrator import check_fit
    from ..run.solve import solve
    from ..run.step_count import length, signed_step

    check_fit(how, what)
    if between.get("times") is None:
        count, _ = length(what, how, signed_step(what, dt, t_end, steps), t_end, steps)
    if out is not None and not resume:
        store.new_path(out, overwrite)
    if every is None:
        every = 1 if between or out is not None else max(1, count // STATES_WITHOUT_FILE)
    every = whole_number("every", every)
    try:
        return solve(
            what, how, dt=dt, t_end=t_end, steps=steps, every=every, out=out, overwrite=overwrite, resume=resume,
            digits=digits, **between,
        )  # fmt: skip
    except KeyboardInterrupt as end:
        raise stop(_interrupted(getattr(end, "partial", None), out), INTERRUPTED) from None
    except StepError as end:
        raise stop(end.reason + _kept_in_file(out, end), FAILED) from None


def new_picture(path: Path | None, overwrite: bool) -> Path | None:
    """The path of a picture, if it may be written."""
    if path is None:
        return None
    from ..plots.style import checked

    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another name or use --overwrite")
    return checked(path)


def new_table(path: Path | None, overwrite: bool) -> Path | None:
    """The path of a CSV file, if it may be written."""
    if path is not None and path.suffix != ".csv":
        raise InputError(f"a table must be a file that ends in .csv; got {path.name!r}")
    return None if path is None else ready(path, overwrite)


def _interrupted(partial: Trajectory | None, out: Path | None) -> str:
    if partial is None:
        return "interrupted"
    reached = f"interrupted at t = {partial.last().t[0]:g} after {len(partial)} states"
    if out is None:
        return f"{reached}; use --out to save them"
    return f"{reached}; {out} holds them; run the same command with --resume to continue"


def _kept_in_file(out: Path | None, failure: StepError) -> str:
    """Message about the states that a failed run left in its file."""
    from ..results.recorder import DiskError

    if out is None or failure.partial is None:
        return ""
    kept = f"; {store.existing(out)} holds the {len(failure.partial)} states before it"
    full = isinstance(failure.__cause__, DiskError)
    return f"{kept}; free some disk space and run the same command with --resume to continue" if full else kept


# --- what is printed --------------------------------------------------------------------------------


def _print(
    problem: Problem, sol: Trajectory, tol: float | None, written: bool, compiled: str, euler: str | None
) -> None:
    """Print how a run was made, its final state, its quality and its time."""
    adaptive = sol.info.tol is not None or sol.info.step_tol is not None
    typer.secho(f"{problem.name} by {sol.method}: {_steps(sol)} to t = {sol.last().t[0]:g}", bold=True)
    if adaptive:
        typer.echo(f"chosen        {sol.reason}")
        typer.echo(f"estimate      {_estimate(sol, tol)}; {sol.rejected} steps rejected")
    print_state(sol, euler)
    _print_quality(problem, sol)
    typer.echo(f"time          {_time(problem, sol, adaptive, written)}{compiled}")


def _steps(sol: Trajectory) -> str:
    """The number of steps, and their length if it is fixed."""
    if sol.accepted is not None:
        return f"{sol.accepted} steps"
    own = sol.method in registry and registry[sol.method].has_own_time
    return f"{sol.info.steps} steps{', the first of' if own else ' of'} dt = {sol.dt:g}"


def _estimate(sol: Trajectory, tol: float | None) -> str:
    if sol.error_estimate is None:
        return f"none: each step keeps {sol.info.step_tol:g}"
    return f"error {small(float(sol.error_estimate))} at the end, requested {tol:g}"


def _time(problem: Problem, sol: Trajectory, adaptive: bool, written: bool) -> str:
    """The time of a run, and of one of its steps if that can be told."""
    if adaptive:
        return f"{duration(sol.seconds)} for the run{'' if sol.error_estimate is None else ' and its estimate'}"
    if written:
        return f"{duration(sol.seconds)}, including writing"
    return f"{duration(sol.seconds)}, {duration(_seconds_of_a_step(problem, sol))} per step"


def _seconds_of_a_step(problem: Problem, sol: Trajectory) -> float:
    from ..analysis import convergence

    if sol.info.digits or sol.method not in registry:
        return sol.seconds / sol.info.steps
    method = registry[sol.method]
    return convergence.loop_seconds(problem, method, sol.dt, sol.info.steps, sol.seconds) / sol.info.steps


def _print_quality(problem: Problem, sol: Trajectory) -> None:
    """Print the drifts of conserved quantities, and the error if the solution is known."""
    drift = sol.drift()
    changes = ", ".join(f"{DRIFTS.get(name, name)} {small(size)}" for name, size in (drift or sol.changes()).items())
    note = "largest relative change" if drift else "largest relative ones; this motion conserves none of them"
    typer.echo(f"{'drift' if drift else 'changes':<14}{changes}   ({note})")
    errors = _errors(problem, sol)
    if errors:
        typer.echo(f"error         attitude {small(errors['attitude'])} (spectral norm of R - R_ref), momentum "
                   f"{small(errors['momentum'])} (relative); reference error {small(errors['reference'])}")  # fmt: skip


def _errors(problem: Problem, sol: Trajectory) -> dict[str, float]:
    """Errors at the end, if there is a reference solution at that time."""
    from ..analysis import convergence

    last, reference = sol.last(), problem.reference
    if reference is None or not math.isclose(reference.t, float(last.t[0]), rel_tol=1e-12):
        return {}
    attitude, momentum = convergence.end_errors(last, reference)
    return {"attitude": attitude, "momentum": momentum, "reference": reference.error}


def _facts(problem: Problem, sol: Trajectory, files: list[Path], euler: str | None) -> dict[str, Any]:
    """The results of a run, for JSON."""
    info = sol.info
    names = ("method", "dt", "tol", "step_tol", "steps", "accepted", "rejected", "reason", "error_estimate", "digits",
             "seconds", "compile_seconds", "status")  # fmt: skip
    return {
        "problem": problem.name,
        **{name: getattr(info, name) for name in names},
        "states": len(sol),
        "end": state_facts(sol.last(), euler=euler),
        "drift": dict(sol.drift()),
        "changes": sol.changes(),
        "errors": _errors(problem, sol),
        "files": files,
    }
