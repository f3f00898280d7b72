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
from ..physics import library
from ..physics.problem import Problem
from ..results.store import trajectory_store as store
from ..run.schedule import Bounds
from .console import EXAMPLE, FAILED, INTERRUPTED, app, compiling, draw_figure, examples, guarded, small, stop, vector

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

STATES_WITHOUT_FILE = 10_000
"""Approximate number of states recorded when no file is written."""

RUN_HELP = examples(
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01",
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01 --every 10 --out top.zarr --plot top.png",
    f"polhode run free_body --method {EXAMPLE} --dt 0.5 --steps 20 --digits 40",
    "polhode run soft_wall --tol 1e-10",
    "polhode run fast_top --step-tol 1e-9 --samples 201 --out top.zarr",
    f"polhode run fast_top --method {EXAMPLE} --dt 0.01 --t-end -1 --times 0,-0.25,-1",
    "polhode run fast_top --tol 1e-25 --digits 30 --t-end 0.1",
    "polhode init && polhode run problem.toml",
    f"polhode run fast_top --method {EXAMPLE} --dt 1e-5 --every 1000 --out long.zarr --resume   "
    "(the same command starts, resumes or extends a run)",
)


@app.command("run", epilog=RUN_HELP)
@guarded
def run_command(
    problem: Annotated[str, typer.Argument(help="A named problem (see `polhode problems`) or a problem file (.toml).")],
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Method name, alias or expression; see `polhode methods`.")
    ] = None,
    dt: Annotated[float | None, typer.Option(help="Step size, in the problem's unit of time.")] = None,
    tol: Annotated[
        float | None, typer.Option(help="Error allowed at the end; replaces --dt, and --method becomes optional.")
    ] = None,
    step_tol: Annotated[
        float | None, typer.Option(help="Error allowed in each step, instead of --tol: faster, without an estimate.")
    ] = None,
    stops: Annotated[
        str | None, typer.Option(help="With --tol: times at which steps must end, such as 3,4.5 (a jump, a pulse).")
    ] = None,
    max_step: Annotated[float | None, typer.Option(help="With --tol: the longest step allowed.")] = None,
    t_end: Annotated[
        float | None,
        typer.Option(help="End time (default: that of the problem); before the start, the run goes backwards."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps, instead of an end time.")] = None,
    every: Annotated[
        int | None,
        typer.Option(help="Record every K-th state (default: all with --out, otherwise a few thousand)."),
    ] = None,
    times: Annotated[str | None, typer.Option(help="Record the states at these times, such as 0,0.5,2.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="Record this many states, equally spaced from the start to the end.")
    ] = None,
    max_turn: Annotated[
        float | None, typer.Option(help="Record states between which the body turns by at most this angle (radians).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the trajectory to this .zarr or .nc file during the run.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume the run in --out (bit-identical to an uninterrupted run); start it if there is no file.",
        ),
    ] = False,
    digits: Annotated[int | None, typer.Option(help="Compute with this many digits (slow).")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot energy, momentum, attitude and polhode: .png, .svg, .pdf.")
    ] = None,
    view: Annotated[
        Path | None, typer.Option(help="Write an HTML page that shows the motion in a browser: .html.")
    ] = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Allow a problem file to run the Python files it names.")
    ] = False,
) -> None:
    """Integrate a problem with a given method or to a tolerance; print the final state and the conservation errors.

    Options override the settings of a problem file.
    """
    how: dict[str, Any] = {
        "method": method, "dt": dt, "tol": tol, "step_tol": step_tol, "t_end": t_end, "steps": steps, "every": every,
        "digits": digits, "stops": None if stops is None else stops.split(","), "max_step": max_step,
        "times": None if times is None else _listed("--times", times), "samples": samples, "max_turn": max_turn,
    }  # fmt: skip
    how = {name: value for name, value in how.items() if value is not None}
    from ..config import problem_file

    if problem.endswith(".toml") or Path(problem).is_file():
        loaded = problem_file.load(problem, allow_code=allow_code)
        what, how = loaded.problem, _overridden(loaded.settings, how)
        out, plot, view = out or loaded.file, plot or loaded.plot, view or loaded.view
    else:
        what = library.get(problem)
    how = problem_file.with_samples(what, how)
    if view is not None:
        viewer.checked(view, overwrite or resume)
    before = _progress_in(out) if resume else None
    if any(name in how for name in problem_file.TOLERANCES):
        sol = _to_tolerance(what, out=out, overwrite=overwrite, resume=resume, plot=plot, **how)
    elif "method" not in how or "dt" not in how:
        raise InputError(
            f"give --method and --dt, or --tol or --step-tol: polhode run {problem} --method {EXAMPLE} --dt 0.01, or "
            f"polhode run {problem} --tol 1e-10"
        )
    else:
        Bounds.refuse(how.pop("stops", None), how.pop("max_step", None))
        sol = _with_steps(
            what, registry[how.pop("method")], out=out, overwrite=overwrite, resume=resume, plot=plot, **how
        )
    if plot is not None:
        draw_figure(lambda plots: plots.TrajectoryPlots(sol).overview(), plot)
    if view is not None:
        viewer.view(sol, view, overwrite=overwrite or resume)
    for path in (out, plot, view):
        if path is not None and path == out and before == _progress_in(out):
            typer.echo(f"complete      {path} was already complete and is unchanged")
        elif path is not None:
            typer.echo(f"written       {path}")


def _listed(option: str, text: str) -> list[float]:
    """The numbers of an option, separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, such as 0,0.5,2; got {text!r}") from None


def _overridden(settings: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by those of the command line."""
    from ..config.problem_file import KEPT, TOLERANCES

    dropped = set()
    if any(name in options for name in TOLERANCES):
        dropped |= {"method", "dt", "steps", "every", "digits", *TOLERANCES}
    if "dt" in options:
        dropped |= {*TOLERANCES, "stops", "max_step"}
    if any(name in options for name in KEPT):
        dropped |= set(KEPT)
    if "steps" in options:
        dropped.add("t_end")
    if "t_end" in options:
        dropped.add("steps")
    return {name: value for name, value in settings.items() if name not in dropped} | options


def _progress_in(path: Path | None) -> tuple[str, int, float] | None:
    """Progress of the run in an existing file; it changes with every write."""
    if path is None or not path.exists():
        return None
    info = store.read(path)[0].info
    return info.status, info.steps, info.seconds


def _to_tolerance(
    what: Problem, *, out: Path | None, overwrite: bool, resume: bool, plot: Path | None, **others: Any
) -> Trajectory:
    """Run to a tolerance and print the result."""
    from ..run.solve import solve

    new_picture(plot, overwrite or resume)
    watch = Stopwatch()
    try:
        sol = solve(what, out=out, overwrite=overwrite, resume=resume, **others)
    except KeyboardInterrupt as end:
        there = None if out is None or store.existing(out) is None else out
        raise stop(_interrupted(getattr(end, "partial", None), there), INTERRUPTED) from None
    except StepError as end:
        raise stop(end.reason, FAILED) from None
    typer.secho(f"{what.name} by {sol.method}: {sol.accepted} steps to t = {sol.t[-1]:g}", bold=True)
    typer.echo(f"chosen        {sol.reason}")
    if sol.error_estimate is None:
        typer.echo(f"estimate      none: each step keeps {sol.info.step_tol:g}; {sol.rejected} steps rejected")
    else:
        typer.echo(f"estimate      error {small(float(sol.error_estimate))} at the end, requested {others['tol']:g}; "
                   f"{sol.rejected} steps rejected")  # fmt: skip
    print_state(sol)
    print_quality(what, sol)
    typer.echo(f"time          {1e6 * sol.seconds:.0f} microseconds for the run{_and_estimate(sol)}{compiling(watch)}")
    return sol


def _and_estimate(sol: Trajectory) -> str:
    return "" if sol.error_estimate is None else " and its estimate"


def _with_steps(
    what: Problem, how: Method, *, dt: float, t_end: float | None = None, steps: int | None = None,
    every: int | None = None, digits: int | None = None, out: Path | None, overwrite: bool, resume: bool,
    plot: Path | None, **between: Any,
) -> Trajectory:  # fmt: skip
    """Run with a fixed step."""
    from ..physics.validate import whole_number
    from ..run.integrator import check_fit
    from ..run.solve import solve
    from ..run.step_count import length, signed_step

    check_fit(how, what)
    if between.get("times") is None:
        count, _ = length(what, how, signed_step(what, dt, t_end, steps), t_end, steps)
    new_picture(plot, overwrite or resume)
    if out is not None and not resume:
        store.new_path(out, overwrite)
    if every is None:
        every = 1 if between or out is not None else max(1, count // STATES_WITHOUT_FILE)
    every, watch = whole_number("every", every), Stopwatch()
    if digits is None:
        compiled_now(what, how)
    try:
        sol = solve(
            what, how, dt=dt, t_end=t_end, steps=steps, every=every, out=out, overwrite=overwrite, resume=resume,
            digits=digits, **between,
        )  # fmt: skip
    except KeyboardInterrupt as end:
        raise stop(_interrupted(getattr(end, "partial", None), out), INTERRUPTED) from None
    except StepError as end:
        raise stop(end.reason + _kept_in_file(out, end), FAILED) from None
    _summary(what, how, sol, sol.info.steps, out is not None, compiling(watch))
    return sol


def new_picture(path: Path | None, overwrite: bool) -> Path | None:
    """The path of a picture, if it may be written."""
    if path is None:
        return None
    from .. import plots

    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another name or use --overwrite")
    return plots.checked(path)


def compiled_now(problem: Problem, method: Method) -> None:
    """Compile now and report it, so that it does not count as computing time."""
    from ..analysis import convergence

    if convergence.is_cold(problem, method):
        typer.echo(f"compiling {method.name} (once; cached for later runs)", err=True)
    convergence.warm_up(problem, method)


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


def _summary(problem: Problem, method: Method, sol: Trajectory, steps: int, written: bool, compiled: str) -> None:
    """Print the final state of a run and its quality."""
    from ..analysis import convergence

    says = ", the first of" if method.has_own_time else " of"
    end = sol.last().t[0]
    typer.secho(f"{problem.name} by {method.name}: {steps} steps{says} dt = {sol.dt:g} to t = {end:g}", bold=True)
    print_state(sol)
    print_quality(problem, sol)
    seconds = sol.seconds
    if written:
        typer.echo(f"time          {seconds:.3g} s, including writing{compiled}")
        return
    loop = seconds if sol.info.digits else convergence.loop_seconds(problem, method, sol.dt, steps, seconds)
    typer.echo(f"time          {seconds:.3g} s, {1e9 * loop / steps:.0f} ns/step{compiled}")


def print_quality(problem: Problem, sol: Trajectory) -> None:
    """Print the drifts of conserved quantities, and the error if the solution is known."""
    from ..analysis import convergence

    drifts = ", ".join(f"{DRIFTS.get(name, name)} {small(size)}" for name, size in sol.drift().items())
    typer.echo(f"drift         {drifts}   (largest relative change)" if drifts else _nothing_conserved(sol))
    reference = problem.reference
    if reference is not None and math.isclose(reference.t, float(sol.last().t[0]), rel_tol=1e-12):
        attitude, momentum = convergence.end_errors(sol.last(), reference)
        typer.echo(f"error         attitude {small(attitude)} (spectral norm of R - R_ref), "
                   f"momentum {small(momentum)} (relative); reference error {small(reference.error)}")  # fmt: skip


DRIFTS = {
    "spatial_momentum": "spatial momentum",
    "vertical_momentum": "vertical momentum",
    "conserved_momentum": "conserved part of the momentum",
    "momentum_norm": "|momentum|",
}
"""Names of conserved quantities, for readers."""


def _nothing_conserved(sol: Trajectory) -> str:
    changes = ", ".join(f"{DRIFTS.get(name, name)} {small(size)}" for name, size in sol.changes().items())
    return f"changes       {changes}   (largest relative ones; this motion conserves none of them)"


def print_state(sol: Trajectory) -> None:
    """Print the last state, every vector with its frame."""
    sol = sol.last()
    if sol.mp is not None:
        import mpmath

        digits = sol.info.digits or 15
        for name, values in (("quaternion", sol.mp.quaternion[-1]), ("momentum", sol.mp.momentum[-1])):
            for i, x in enumerate(values):
                typer.echo(f"{name if i == 0 else '':<14}{mpmath.nstr(x, digits)}")
        typer.echo(f"{'':<14}(attitude body to space, scalar first w, x, y, z; momentum in the body frame)")
        return
    typer.echo(f"quaternion    {vector(sol.quaternion[-1])}   body to space, scalar first (w, x, y, z)")
    typer.echo(f"momentum      {vector(sol.momentum[-1])}   body frame")
    typer.echo(f"omega         {vector(sol.omega[-1])}   body frame")
    typer.echo(f"momentum      {vector(sol.spatial_momentum[-1])}   space frame")
    typer.echo(f"energy         {sol.energy[-1]:.12g}")
