"""``polhode methods`` and ``polhode problems``."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..methods import NEEDS, Method
from ..methods import citations as bibliography
from ..methods import methods as registry
from ..methods.record import formatted
from ..methods.registry import Known
from ..physics import library
from ..physics.problem import Problem
from ..symbolic.latex import plain
from .console import EXAMPLE, app, console, examples, guarded, sheet, small, vector


def _jsonable(method: Method) -> dict[str, Any]:
    declared = {k: "exact" if v == math.inf else v for k, v in method.declaration().items()}
    declared |= {name: sorted(declared[name]) for name in ("conserves", "torque_at")}
    declared |= {"aliases": list(method.aliases), "asks": str(method.asks)}
    return declared | {"doc": method.doc, "citation": bibliography.citation(method.cite)}


METHODS_HELP = examples(
    "polhode methods", f"polhode methods {EXAMPLE}", "polhode methods --takes velocity", "polhode methods --json"
)


@app.command("methods", epilog=METHODS_HELP)
@guarded
def methods_command(
    name: Annotated[str | None, typer.Argument(help="Show this method in full: a name, alias or expression.")] = None,
    takes: Annotated[
        str | None, typer.Option(help=f"List only methods that take this kind of field: {', '.join(NEEDS)}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the methods with their declared properties, or show one in full."""
    if name is not None:
        _show_method(registry[name], as_json)
        return
    if takes is not None and takes not in NEEDS:
        raise InputError(f"--takes must be one of {', '.join(NEEDS)}; got {takes!r}")
    chosen = registry.values() if takes is None else registry.taking(takes)
    if as_json:
        typer.echo(json.dumps([_jsonable(m) for m in chosen], indent=1))
        return
    columns = ("name", "order", "properties", "solves,\ntorques", "conserves", "takes at\nmost")
    console().print(sheet("", columns, [_method_line(m) for m in chosen]))
    named = [_known_line(known) for known in registry.known if registry[known.expression].takes(takes or NEEDS[0])]
    console().print(sheet("Known elsewhere as", ("name", "here", "source"), named))
    typer.echo(f"{len(chosen)} methods. `polhode methods NAME` shows one method with its formulas and source.")


def _known_line(known: Known) -> list[str]:
    """A name in the literature, the corresponding method, and the source."""
    return [known.label, known.expression, f"{bibliography.short(known.cite)}: {known.where}"]


def _method_line(method: Method) -> list[str]:
    """A row of the table: the main properties of a method."""
    declared = method.declaration()
    order, free = formatted(declared["order"]), formatted(declared["order_free"])
    flags = [
        name + ("?" if value is None else "") for name, value in declared.items() if value is None or value is True
    ]
    flags += ["adaptive with tol"] if method.estimated else []
    return [
        method.name, order if order == free else f"{order} (free: {free})", ", ".join(flags),
        f"{method.solves}, {method.torque_evals}", formatted(method.conserves).replace("_", " "), method.needs,
    ]  # fmt: skip


def _show_method(method: Method, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_jsonable(method), indent=1))
        return
    typer.secho(method.name, bold=True)
    typer.echo(plain(method.doc) + "\n")
    for name, value in method.declaration().items():
        if name not in ("name", "cite"):
            typer.echo(f"  {name.replace('_', ' '):<16}{formatted(value)}")
    typer.echo(f"  {'source':<16}{bibliography.citation(method.cite)}")
    for known in registry.known:
        if registry[known.expression].name == method.name:
            typer.echo(f"  {'known as':<16}{known.label}: {bibliography.citation(known.cite)} ({known.where})")


def _problem_facts(problem: Problem) -> dict[str, Any]:
    reference = problem.reference
    return {
        "name": problem.name,
        "description": library.describe(problem.name),
        "inertia": problem.body.inertia.diagonal().tolist(),
        "field": repr(problem.field) if problem.field else None,
        "needs": problem.needs,
        "omega": problem.omega.tolist(),
        "quaternion": list(problem.quaternion),
        "energy": problem.energy(),
        "t_end": problem.t_end,
        "reference_error": reference.error if reference else None,
        "reference_source": reference.source if reference else None,
    }


@app.command("problems", epilog=examples("polhode problems", "polhode problems fast_top", "polhode problems --json"))
@guarded
def problems_command(
    name: Annotated[str | None, typer.Argument(help="Show this problem in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the named problems, or show one in full."""
    if name is not None:
        _show_problem(library.get(name), as_json)
        return
    facts = [_problem_facts(library.get(name)) for name in library.names()]
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    rows = [
        [f["name"], f["description"], f["field"] or "free", formatted(f["t_end"]), _good_to(f["reference_error"])]
        for f in facts
    ]
    console().print(sheet("", ("problem", "what it is", "field", "t end", "reference accurate to"), rows, numbers=2))
    typer.echo("`polhode problems NAME` shows one problem with its initial state; units are any consistent set.")


def _good_to(error: float | None) -> str:
    return "-" if error is None else small(error)


def _show_problem(problem: Problem, as_json: bool) -> None:
    facts = _problem_facts(problem)
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    typer.secho(problem.name, bold=True)
    typer.echo(facts["description"])
    typer.echo(f"moments       {vector(facts['inertia'])}   of inertia, about the axes of the body")
    typer.echo(f"field         {facts['field'] or 'free'}")
    typer.echo(f"quaternion    {vector(facts['quaternion'])}   at the start; body to space, scalar first (w, x, y, z)")
    typer.echo(f"omega         {vector(facts['omega'])}   at the start; body frame")
    typer.echo(f"energy         {facts['energy']:.12g}")
    typer.echo(f"t end          {formatted(facts['t_end'])}")
    if problem.reference is not None:
        typer.echo(f"reference accurate to {_good_to(facts['reference_error'])}: {facts['reference_source']}")
