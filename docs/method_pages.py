"""One page for every method of the book, one for everything that makes methods of methods, and the list of them all."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polhode as ph
from polhode import vector
from polhode.methods import citations as bibliography
from polhode.methods.record import TOP
from polhode.run.cost import cost

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
FLAGS = ("symmetric", "symplectic", "poisson", "implicit")
KINDS = {
    "free": "no torque", "potential": "potentials", "attitude": "torques that depend on time and attitude",
    "velocity": "any torque, including dependence on the angular velocity",
    TOP: "only the Lagrange top: a symmetric body in a uniform field",
}  # fmt: skip
SYMBOLS = (
    "The subscripts 0 and 1 mean the start and the end of a step of length $h$ that begins at the time $t$; $R$ is the "
    "attitude (body to space), $\\Pi$ the momentum, $\\omega = I^{-1} \\Pi$ the angular velocity and $T$ the torque, "
    "all in the body frame. See [Notation](../notation.md#in-formulas) for the other symbols."
)


def slug(name: str) -> str:
    """The name of a page."""
    return re.sub(r"\W+", "_", name).strip("_")


def word(value: Any) -> str:
    """A declared value."""
    if value is None:
        return "not proven"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "exact" if value == math.inf else f"{value:g}" if isinstance(value, float) else str(value)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def link(method: Any) -> str:
    """The name of a registered method, with its page."""
    return f"[`{method.name}`]({slug(method.name)}.md)"


# --- one method -------------------------------------------------------------------------------------


def properties(method: Any) -> str:
    """What is declared."""
    rows = [("order", word(method.order)), ("order without torque", word(method.order_free))]
    rows += [(flag, word(getattr(method, flag))) for flag in FLAGS if method.has_step or flag != "poisson"]
    rows += [
        ("conserves exactly, without torque", ", ".join(sorted(method.conserves)).replace("_", " ") or "nothing"),
        ("takes", KINDS[method.needs]),
    ]
    if method.noise is not None:
        measures = (("with a potential", "invariant_measure"), ("without torque", "invariant_measure_free"))
        rows.append(("weak order", word(method.noise.weak_order)))
        rows += [
            (f"order of the invariant measure, {when}", word(getattr(method.noise, name))) for when, name in measures
        ]
    if method.thermostat is not None:
        orders = (("with a potential", "extended_energy"), ("without torque", "extended_energy_free"))
        rows += [
            (f"order of the extended energy, {when}", word(getattr(method.thermostat, name))) for when, name in orders
        ]
        rows.append(("keeps the extended measure", word(method.thermostat.extended_measure)))
    if method.estimate_order:
        rows.append(("order of the error estimate, for steps to a tolerance", word(method.estimate_order)))
    rows += [(f"takes {kind} bodies", "no") for kind in ("linear", "flat") if not getattr(method, f"{kind}_bodies")]
    return table(("property", "declared"), rows)


def expenses(method: Any) -> str:
    """What a step costs: from the declaration, counted, and measured."""
    rows = [
        ("vector unknowns solved for", word(method.solves)),
        ("torque evaluations", word(method.torque_evals)),
        ("operations, counted", operations(method)),
    ]
    rows += [
        (f"compiled step, {row['problem']}, dt = {row['dt']:g}", f"{row['ns_per_step']:.0f} ns")
        for row in json.loads((BENCHMARKS / "step_cost.json").read_text("utf-8"))["rows"]
        if row["method"] == method.name
    ]
    return table(("cost of one step", ""), rows)


def operations(method: Any) -> str:
    """Operations of one step on the heavy top, or on the free body."""
    if not method.has_step:
        return "no steps: theta functions, evaluated at each time that is asked for"
    if method.noise is not None and method.noise.equation == "overdamped":
        return "for each torque a product of two matrices with a vector, and for each normal number a rotation"
    if method.noise is not None and method.noise.equation == "rescaling":
        return "those of the scheme; for each half step of the thermostat three normal numbers and two square roots"
    if method.thermostat is not None:
        return "those of the scheme; for each half step of the chain about 25 exponentials with three links"
    if method.noise is not None:
        return "those of its drifts and kicks; for each O step three normal numbers and two matrices times vectors"
    problem = ph.problems.get("heavy_top" if method.takes("potential") else "free_body")
    if method.compensated or problem.dt is None:
        return "those of the underlying method, and six sums for each number of the state"
    one = cost(method, problem, problem.dt / 8)
    return (
        f"{one.flops} sums, products, quotients and square roots, {one.function} elementary functions ({problem.name})"
    )


def source(method: Any) -> str:
    """Where it comes from: the declared words, with those keys of the bibliography that stand in them."""
    where = re.sub(r"\b[a-z]+\d{4}[a-z]*\b", lambda key: bibliography.short(key[0]), method.where)
    return f"{bibliography.citation(method.cite)}. There: {where}."


NOISY_RUN = """```python
import polhode as ph

top = ph.problems.heavy_top()
field = top.field + ph.fields.heat_bath(kT=0.1, friction=0.5, seed=1)
problem = ph.Problem(top.body, field, attitude=top.quaternion, omega=top.omega)
sol = ph.solve(problem, "%s", dt=0.01, t_end=1.0)
print(sol.energy.mean())
```"""
"""A run of a method with noise."""


CHAINED_RUN = """```python
import polhode as ph

top = ph.problems.heavy_top()
field = top.field + ph.fields.nose_hoover(kT=0.1, tau=0.2)
problem = ph.Problem(top.body, field, attitude=top.quaternion, omega=top.omega)
sol = ph.solve(problem, "%s", dt=0.01, t_end=1.0)
print(sol.drift()["extended_energy"], sol.states["chain_velocity"][-1])
```"""
"""A run of a method with a chain."""


def example(method: Any) -> str:
    """A run."""
    if method.thermostat is not None:
        return CHAINED_RUN % method.name
    if method.noise is not None:
        return NOISY_RUN % method.name
    problem = "fast_top" if method.needs == TOP else "heavy_top" if method.takes("potential") else "free_body"
    return "\n".join((
        "```python", "import polhode as ph", "",
        f'sol = ph.solve(ph.problems.{problem}(), "{method.name}", dt=0.01, t_end=1.0)',
        "print(sol.drift())", "```",
    ))  # fmt: skip


def formulas(method: Any) -> str:
    """The equations of a step; for a family of methods that differ by a number, on the page of the first of them."""
    first = next((m for m in ph.methods.values() if m.formula == method.formula), method)
    if first.name == method.name:
        return method.formula
    return (
        f"The equations are those of the whole family, on the page of [`{first.name}`]({slug(first.name)}.md#one-step)."
    )


def page(method: Any, title: str | None = None, intro: str | None = None) -> str:
    """What a method is, the equations of one step, its properties, its cost, its source, and how to call it."""
    elsewhere = (known.label for known in ph.methods.known if known.expression == method.name)
    also = ", ".join(f"`{alias}`" for alias in (*method.aliases, *elsewhere))
    parts = [
        f"# {title or method.name}",
        intro or method.summary,
        *([f"Also called {also}."] if also else []),
        "## One step", formulas(method), SYMBOLS,
        "## Properties", properties(method), "Each property is verified in 50 digits: [what the properties mean]"
        "(../notation.md#what-a-declaration-means).",
        "## Cost", expenses(method),
        *(["Times were measured on one core; benchmarks/step_cost.json records the machine."]
          if "compiled step" in expenses(method) else []),
        "## Source", source(method),
        "## Use", example(method),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


# --- methods of methods -----------------------------------------------------------------------------


def made_by(name: str, make: Callable[..., Any]) -> Any | None:
    """An example of what a combinator makes, of the first method of the book with which it reaches its order.

    Where it leaves the order as it is, of the first from the same source. None where the book holds what it makes
    (`dmv`, `mkrk`, ...).
    """
    if any(re.fullmatch(rf"{name}(\d+|\(.*\))", registered) for registered in ph.methods):
        return None
    made = of_methods(make)
    if not made:
        return max(_of_numbers(make), key=lambda found: found.order)
    if all(found.order == base.order for base, found in made):
        return next((found for base, found in made if base.cite == found.cite), made[0][1])
    best = max(_reached(found) for _, found in made)
    return next(found for _, found in made if _reached(found) == best)


def of_methods(make: Callable[..., Any]) -> list[tuple[Any, Any]]:
    """The methods of the book that a combinator takes, each with what it makes of it."""
    made = []
    for base in ph.methods.values():
        with contextlib.suppress(ph.InputError):
            found = make(base)
            if found is not base:
                made.append((base, found))
    return made


def _reached(method: Any) -> float:
    """The order, or the weak order of a method with noise."""
    return method.order if method.noise is None else method.noise.weak_order


def _of_numbers(make: Callable[..., Any]) -> Iterator[Any]:
    """What a combinator makes of a number instead of a method."""
    for number in range(1, 10):
        with contextlib.suppress(ph.InputError):
            yield make(number)


def combinators() -> dict[str, Any]:
    """The combinators with a page of their own, each with an example."""
    found = {name: made_by(name, make) for name, make in ph.methods.combinators.items()}
    return {name: example for name, example in sorted(found.items()) if example is not None}


def told(name: str) -> str:
    """What a combinator says of itself, without the key of its source."""
    return re.sub(r" \([a-z]+\d{4}[a-z]*\)", "", inspect.cleandoc(ph.methods.combinators[name].__doc__ or ""))


def combinator_page(name: str, example: Any) -> str:
    """The page of a combinator: what it makes of each method, then the formulas of an example."""
    made = [found for _, found in of_methods(ph.methods.combinators[name])]
    parts = [told(name)]
    if made:
        parts += [
            f"## What {name}( ) makes",
            'The properties depend on the method inside. `polhode methods "' + example.name + '"` prints the formulas '
            "and properties of one of these, or of any other expression.",
            table(("methods", "order", *FLAGS[:2], "conserves without torque"), results(made)),
        ]
    parts.append(f"The rest of this page is about one of them, `{example.name}`: {example.summary}")
    return page(example, title=f"{name}( )", intro="\n\n".join(parts))


NAMED = 4
"""Methods named in a row of a table; the others are counted."""


def results(made: list[Any]) -> list[tuple[str, ...]]:
    """Rows of a table, one for each combination of properties, with the methods that have it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for method in made:
        order = word(method.order) if method.noise is None else f"weak {word(method.noise.weak_order)}"
        groups.setdefault((order, *(word(getattr(method, flag)) for flag in FLAGS[:2]), kept(method)), []).append(
            f"`{method.name}`"
        )
    return [
        (", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else ""), *properties)
        for properties, names in groups.items()
    ]


# --- the list ---------------------------------------------------------------------------------------


def families() -> dict[str, list[Any]]:
    """The methods of the book by source, in the order of the years."""
    found: dict[str, list[Any]] = {}
    for method in ph.methods.values():
        found.setdefault(method.cite, []).append(method)
    return dict(sorted(found.items(), key=lambda item: bibliography.entries()[item[0]]["year"]))


def index(made: dict[str, Any]) -> str:
    """All methods with what they declare, and what makes methods of them."""
    lines = [
        "# All methods",
        f"The registry contains {len(list(ph.methods))} named methods, listed here by source; every name links to the "
        "equations of one step. The properties are declared with the code and verified in 50 digits ([what the "
        "properties mean](../notation.md#what-a-declaration-means)). [Which method should I use?](../which_method.md) "
        "helps to choose. The [combinators](#combinators), which build methods from other methods, follow at the end.",
    ]
    head = ("method", "order", "symmetric", "symplectic", "conserves without torque", "solves", "torques", "takes")
    for cite, group in families().items():
        lines += [f"## {bibliography.short(cite)}", bibliography.entries()[cite]["title"] + "."]
        lines.append(table(head, [line(method) for method in group]))
    lines += [
        "## Combinators",
        "Combinators are written as expressions, `strang(dmv10)`, in strings or in Python. The resulting methods are "
        "declared, checked and compiled like any other method. These take the order or the tableau as an argument: "
        + ", ".join(f"`{name}(...)`" for name in ph.methods.combinators if name not in made) + ".",
        table(("expression", "result", "source"), [
            (f"[`{name}(...)`]({slug(name)}.md)", told(name).splitlines()[0], bibliography.short(m.cite))
            for name, m in made.items()
        ]),
    ]  # fmt: skip
    lines.append(
        "The vector-space methods on which some of these are modelled have [a separate page](vector_spaces.md)."
    )
    pages = [slug(method.name) for method in ph.methods.values()] + [slug(name) for name in made] + ["vector_spaces"]
    return "\n\n".join([*lines, "\n".join(["```{toctree}", ":hidden:", *pages, "```"])]) + "\n"


def vector_page() -> str:
    """The methods for vector spaces, all on one page."""
    parts = [
        "# Methods for vector spaces",
        "`polhode.vector` integrates $\\dot p = f(u, t)$, $\\dot u = M^{-1} p$ in $n$ dimensions with a mass matrix "
        "$M$ and a force $f$. The rotation methods are modelled on these. $f_0 = f(u_0, t)$ and $f_1 = f(u_1, t + h)$. "
        "The declared properties refer to $du \\wedge dp$ and to motion without a force, for which all of these are "
        "exact.",
        "\n".join((
            "```python", "import math", "", "from polhode import vector", "",
            'swing = vector.solve(lambda u: (-math.sin(u[0]),), [[1.0]], [1.0], [0.0], "verlet", dt=0.01, steps=1000)',
            "print(swing.u[-1], swing.p[-1])", "```",
        )),
    ]  # fmt: skip
    for method in vector.methods.values():
        also = ", ".join(f"`{alias}`" for alias in method.aliases)
        rows = [("order", word(method.order)), *((flag, word(getattr(method, flag))) for flag in FLAGS)]
        parts += [
            f"## {method.name}", f"{method.summary} Also called {also}.", method.formula,
            table(("property", "declared"), rows), source(method),
        ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


KEPT = {"energy": "energy", "spatial_momentum": "momentum", "momentum_norm": "norm"}


def kept(method: Any) -> str:
    """What a method conserves without torque, in short."""
    return ", ".join(said for name, said in KEPT.items() if name in method.conserves) or "-"


def line(method: Any) -> tuple[str, ...]:
    """A method in the list."""
    order = word(method.order)
    if method.order != method.order_free:
        order += f" (free: {word(method.order_free)})"
    return (
        link(method), order, word(method.symmetric), word(method.symplectic), kept(method), str(method.solves),
        str(method.torque_evals), method.needs,
    )  # fmt: skip


def pages() -> dict[str, str]:
    """All of them, by file name."""
    made = combinators()
    found = {"index": index(made), "vector_spaces": vector_page()}
    for name, text in (
        *((method.name, page(method)) for method in ph.methods.values()),
        *((name, combinator_page(name, method)) for name, method in made.items()),
    ):
        if slug(name) in found:
            raise ValueError(f"two pages would have the name {slug(name)}: {name} and another one")
        found[slug(name)] = text
    return found
