"""``polhode problems``."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from ..methods.record import formatted
from ..physics import library
from ..physics.problem import Problem
from .console import AsJson, app, console, examples, guarded, print_json, sheet, small, vector
from .problem import AllowCode, is_file, with_end

PROBLEMS_HELP = examples(
    "polhode problems",
    "polhode problems fast_top",
    "polhode init && polhode problems problem.toml",
    "polhode problems --json",
)


@app.command("problems", epilog=PROBLEMS_HELP)
@guarded
def problems_command(
    name: Annotated[
        str | None, typer.Argument(metavar="PROBLEM", help="Show this problem, or this problem file (.toml), in full.")
    ] = None,
    as_json: AsJson = False,
    allow_code: AllowCode = False,
) -> None:
    """List the named problems, or show one in full."""
    if name is not None:
        problem = with_end(name, allow_code)
        facts = _facts(problem, f"the problem file {name}" if is_file(name) else library.describe(name))
        print_json(facts) if as_json else _show(facts)
        return
    every = [_facts(library.get(name), library.describe(name)) for name in library.names()]
    if as_json:
        print_json(every)
        return
    rows = [
        [f["name"], f["description"], f["field"] or "free", formatted(f["t_end"]), _good_to(f["reference_error"])]
        for f in every
    ]
    console().print(sheet("", ("problem", "what it is", "field", "t end", "reference accurate to"), rows, numbers=2))
    typer.echo("`polhode problems NAME` shows one problem with its initial state; units are any consistent set.")


def _facts(problem: Problem, description: str) -> dict[str, Any]:
    reference = problem.reference
    return {
        "name": problem.name,
        "description": description,
        "moments": problem.body.moments,
        "tensor": problem.body.inertia,
        "field": repr(problem.field) if problem.field else None,
        "needs": problem.needs,
        "omega": problem.omega,
        "quaternion": list(problem.quaternion),
        "energy": problem.energy(),
        "t0": problem.t0,
        "t_end": problem.t_end,
        "reference_error": reference.error if reference else None,
        "reference_source": reference.source if reference else None,
    }


def _good_to(error: float | None) -> str:
    return "-" if error is None else small(error)


def _show(facts: dict[str, Any]) -> None:
    typer.secho(facts["name"], bold=True)
    typer.echo(facts["description"])
    if (facts["tensor"] == np.diag(facts["moments"])).all():
        typer.echo(f"moments       {vector(facts['moments'])}   of inertia, about the axes of the body")
    else:
        for i, row in enumerate(facts["tensor"]):
            typer.echo(f"{'' if i else 'inertia':<14}{vector(row)}{'' if i else '   tensor, in the axes of the body'}")
    typer.echo(f"field         {facts['field'] or 'free'}")
    typer.echo(f"quaternion    {vector(facts['quaternion'])}   at the start; body to space, scalar first (w, x, y, z)")
    typer.echo(f"omega         {vector(facts['omega'])}   at the start; body frame")
    typer.echo(f"energy         {facts['energy']:.12g}")
    if facts["t0"]:
        typer.echo(f"t start        {formatted(facts['t0'])}")
    typer.echo(f"t end          {'-' if facts['t_end'] is None else formatted(facts['t_end'])}")
    if facts["reference_error"] is not None:
        typer.echo(f"reference accurate to {_good_to(facts['reference_error'])}: {facts['reference_source']}")
