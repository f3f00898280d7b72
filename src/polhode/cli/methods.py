"""``polhode methods``."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..methods import NEEDS, Method
from ..methods import citations as bibliography
from ..methods import methods as registry
from ..methods.ranking import best_first
from ..methods.record import formatted
from ..symbolic.latex import plain
from .console import EXAMPLE, AsJson, app, count, examples, guarded, print_json, print_lines
from .problem import method_names

KINDS: dict[str, Callable[[Method], bool]] = {
    "stochastic": lambda m: m.noise is not None,
    "exact": lambda m: m.order == math.inf,
    "adaptive": lambda m: m.estimated is not None or m.has_own_time,
    "symplectic": lambda m: m.symplectic is True,
    "implicit": lambda m: m.implicit,
    "explicit": lambda m: not m.implicit,
}
"""What people look for. A method is listed under the first that it is; `--kind` lists all that are so."""

TITLES = {
    "explicit": "Explicit",
    "implicit": "Implicit",
    "symplectic": "Symplectic",
    "exact": "Exact solutions",
    "adaptive": "Adaptive: steps to a tolerance (--tol, --step-tol), or with a fixed step",
    "stochastic": "Stochastic: in a heat bath",
}

METHODS_HELP = examples(
    "polhode methods",
    f"polhode methods {EXAMPLE}",
    'polhode methods "strang(dmv10)"',
    "polhode methods --kind symplectic",
    "polhode methods --takes velocity",
    "polhode methods --json",
)


@app.command("methods", epilog=METHODS_HELP)
@guarded
def methods_command(
    name: Annotated[
        str | None,
        typer.Argument(help="Show this method in full: a name, alias or expression.", autocompletion=method_names),
    ] = None,
    kind: Annotated[str | None, typer.Option(help=f"List only methods of one kind: {', '.join(TITLES)}.")] = None,
    takes: Annotated[
        str | None, typer.Option(help=f"List only methods that take this kind of field: {', '.join(NEEDS)}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods and combinators, one line each, or show one in full: formulas, properties, source."""
    if name is not None:
        _show(name, as_json)
        return
    for option, value, known in (("--kind", kind, list(TITLES)), ("--takes", takes, list(NEEDS))):
        if value is not None and value not in known:
            raise InputError(f"{option} must be one of {', '.join(known)}; got {value!r}")
    chosen = [m for m in registry.values() if (takes is None or m.takes(takes)) and _is(m, kind)]
    chosen = best_first(chosen, takes or NEEDS[0])
    if as_json:
        print_json([_facts(m) for m in chosen])
        return
    for title, rows in _groups(chosen, kind, takes).items():
        if rows:
            print_lines(title, rows)
            typer.echo("")
    typer.echo(
        f"{len(chosen)} methods; the number is the order, in parentheses that without torque. `polhode methods "
        "NAME` shows one with its formulas, properties and source; names such "
        'as "strang(dmv10)" need quotes in a shell.'
    )


def _is(method: Method, kind: str | None) -> bool:
    return kind is None or KINDS[kind](method)


def _groups(chosen: Sequence[Method], kind: str | None, takes: str | None) -> dict[str, list[list[str]]]:
    """The rows of each table, by its title."""
    found: dict[str, list[list[str]]] = {
        title: [_line(m) for m in chosen if next(k for k, is_so in KINDS.items() if is_so(m)) == name or kind == name]
        for name, title in TITLES.items()
        if kind in (None, name)
    }
    made = {name: _example(make) for name, make in registry.combinators.items()}
    lines = {name: [f"{name}(...)", "", _told(make)] for name, make in registry.combinators.items()}
    stochastic = {name for name, m in made.items() if m is not None and m.noise is not None}
    if kind in (None, "stochastic") and takes is None:
        found[TITLES["stochastic"]] += [lines[name] for name in lines if name in stochastic]
    if kind is None and takes is None:
        found["Combinators: methods made of methods, of an order or of a tableau"] = [
            lines[name] for name in lines if name not in stochastic
        ]
    if kind is None:
        known = [k for k in registry.known if registry[k.expression].takes(takes or NEEDS[0])]
        found["Known elsewhere as"] = [
            [k.label, "", f"{k.expression}; {bibliography.short(k.cite)}: {k.where}"] for k in known
        ]
    return found


def _line(method: Method) -> list[str]:
    """A method in the list: name, order, description."""
    order, free = formatted(method.order), formatted(method.order_free)
    return [method.name, order if order == free else f"{order} ({free})", plain(method.summary).replace("``", "")]


def _told(make: Callable[..., Any]) -> str:
    """The first line of what a combinator says of itself, without the key of its source."""
    return re.sub(r" \([a-z]+\d{4}[a-z]*\)|``", "", inspect.cleandoc(make.__doc__ or "").partition("\n")[0])


def _example(make: Callable[..., Any]) -> Method | None:
    """What a combinator makes of a free flow, of a method with torques, or of a number."""
    for argument in (*(m for m in registry.values() if m.order == math.inf and m.has_step), EXAMPLE, 2):
        with contextlib.suppress(InputError):
            made: Method = make(argument)
            return made
    return None


# --- one method -------------------------------------------------------------------------------------

TAKEN = {
    "free": "no torque", "potential": "potentials U(R)", "attitude": "torques T(t, R)",
    "velocity": "any torque T(t, R, omega)", "top": "only the Lagrange top",
}  # fmt: skip


YES = {True: "yes", False: "no", None: "not proven"}


def _properties(method: Method) -> dict[str, str]:
    """What a user wants to know of a method, in words."""
    found = {"order": formatted(method.order)}
    if method.order != method.order_free:
        found["order without torque"] = formatted(method.order_free)
    found |= {name: YES[getattr(method, name)] for name in ("symmetric", "symplectic")}
    found["Poisson map"] = YES[method.poisson]
    found["implicit"] = f"yes, {count(method.solves, 'vector equation')} in a step" if method.implicit else "no"
    found["torque evaluations"] = f"{method.torque_evals} in a step"
    found["conserves"] = f"{formatted(method.conserves).replace('_', ' ')}; without torque"
    found["takes"] = TAKEN[method.needs]
    if method.noise is not None:
        found["weak order"] = formatted(method.noise.weak_order)
    if method.estimated is not None:
        found["adaptive"] = f"yes, with an error estimate of order {method.estimate_order}"
    elif method.has_own_time:
        found["adaptive"] = "yes, steps follow the motion"
    found |= {f"{kind} bodies": "no" for kind in ("linear", "flat") if not getattr(method, f"{kind}_bodies")}
    if method.aliases:
        found["aliases"] = ", ".join(method.aliases)
    return found | {"source": f"{bibliography.citation(method.cite)}: {method.where}"}


def _show(name: str, as_json: bool) -> None:
    if name.removesuffix("(...)").removesuffix("()") in registry.combinators:
        _show_combinator(name.removesuffix("(...)").removesuffix("()"), as_json)
        return
    method = registry[name]
    if as_json:
        print_json(_facts(method))
        return
    typer.secho(method.name, bold=True)
    typer.echo(plain(method.doc) + "\n")
    for label, text in _properties(method).items():
        typer.echo(f"  {label:<22}{text}")
    for known in registry.known:
        if registry[known.expression].name == method.name:
            typer.echo(f"  {'known as':<22}{known.label}: {bibliography.citation(known.cite)} ({known.where})")


def _show_combinator(name: str, as_json: bool) -> None:
    """What a combinator makes, and how to write it."""
    make = registry.combinators[name]
    example = _example(make)
    facts = {"name": name, "doc": inspect.cleandoc(make.__doc__ or ""), "example": example and example.name}
    if as_json:
        print_json(facts)
        return
    typer.secho(f"{name}(...)", bold=True)
    typer.echo(facts["doc"])
    if example is not None:
        typer.echo(f'\nFor example: polhode methods "{example.name}"')


def _facts(method: Method) -> dict[str, Any]:
    """The declaration for JSON."""
    declared = {k: "exact" if v == math.inf else v for k, v in method.declaration().items()}
    declared |= {"aliases": list(method.aliases), "asks": str(method.asks)}
    kinds = [kind for kind in TITLES if KINDS[kind](method)]
    return declared | {"kinds": kinds, "doc": method.doc, "citation": bibliography.citation(method.cite)}
