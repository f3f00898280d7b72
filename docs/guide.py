"""Which method to use: what the declarations say, in the order of what the measurements say."""

from __future__ import annotations

import json
from typing import Any

from method_pages import BENCHMARKS, KINDS, combinators, slug, table, word

import polhode as ph


def _measured(file: str) -> dict[str, Any]:
    """What a benchmark wrote."""
    found: dict[str, Any] = json.loads((BENCHMARKS / file).read_text("utf-8"))
    return found


def _link(name: str) -> str:
    """A method with its page, or that of the combinator or of a relative which makes the formulas clear."""
    family = name.partition("(")[0]
    relatives = [m for m in ph.methods if m.startswith(f"{family}(")]
    if name in ph.methods:
        page = ph.methods[name].name
    elif relatives or family in ph.methods.combinators:
        page = relatives[0] if relatives else family
    else:
        return f"`{name}`"
    return f"[`{name}`](methods/{slug(page)}.md)"


def _names(methods: list[Any]) -> str:
    return ", ".join(_link(m.name) for m in methods) or "none"


def _times(problem: str) -> dict[str, float]:
    """Nanoseconds of a compiled step of each method on a problem."""
    return {r["method"]: r["ns_per_step"] for r in _measured("step_cost.json")["rows"] if r["problem"] == problem}


def _to_error(problem: str) -> dict[str, float]:
    """Microseconds of each method to the attitude error of benchmarks/time_to_error.json on a problem."""
    rows = _measured("time_to_error.json")["rows"]
    return {r["method"]: r["microseconds"] for r in rows if r["problem"] == problem and r["microseconds"]}


def _fastest_first(methods: list[Any], problem: str) -> list[Any]:
    """In the order of what one gets for the time: a cheap step with a large error comes late."""
    times = _to_error(problem)
    return sorted(methods, key=lambda m: times.get(m.name, float("inf")))


def _cheapest_first(methods: list[Any], problem: str) -> list[Any]:
    """In the order of the cost of a step."""
    times = _times(problem)
    return sorted(methods, key=lambda m: times.get(m.name, float("inf")))


def _duration(microseconds: float) -> str:
    """A time as a person would write it."""
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.3g} \N{MICRO SIGN}s"


def _rows(methods: list[Any], problem: str) -> list[tuple[str, ...]]:
    steps, times = _times(problem), _to_error(problem)
    return [
        (
            _link(m.name),
            word(m.order_free if problem == "free_body" else m.order),
            word(m.symmetric),
            word(m.symplectic),
            _duration(times[m.name]) if m.name in times else "not measured",
            f"{steps[m.name]:.0f}" if m.name in steps else "not measured",
        )
        for m in methods
    ]


def _head(problem: str) -> tuple[str, ...]:
    error = f"time to an error of {_measured('time_to_error.json')['target']:.0e}, {problem}"
    return ("method", "order", "symmetric", "symplectic", error, "ns per step")


def to_an_accuracy() -> str:
    """What `tol` takes, and how long that lasts."""
    cells: dict[str, dict[float, str]] = {}
    for row in _measured("tolerance_race.json")["table"]:
        ours = row.get("solve, tol")
        cells.setdefault(row["case"], {})[row["error"]] = f"{ours['median']:.0f}" if ours else "-"
    errors = sorted({error for found in cells.values() for error in found}, reverse=True)
    head = ("problem", *(f"error {error:.0e}" for error in errors))
    rows = [(case, *(found.get(error, "-") for error in errors)) for case, found in cells.items()]
    return f"""## Solving to a tolerance

`ph.solve(problem, t_end=20.0, tol=1e-10)` uses the exact solution if there is one, and otherwise the method that
needs the least work for the tolerance; the result says which and why ([Solving to a tolerance](tolerance.md)). Use
it for a spacecraft over some orbits, a top, a thrown body. The table gives microseconds per call for a new initial
state, including the error estimate ([tolerance benchmark](tolerance_race.md)):

{table(head, rows)}
"""


def free() -> str:
    """Methods for a body on which nothing acts."""
    both = {"energy", "spatial_momentum"}
    kept = _fastest_first([m for m in ph.methods.values() if both <= m.conserves], "free_body")
    return f"""### Free bodies

{_names([m for m in kept if m.order == float("inf")])} is the exact solution for any step size. The
following methods conserve energy and momentum exactly. They are sorted by the time to an attitude error at t = 100; a
high order costs little more:

{table(_head("free_body"), _rows([m for m in kept if m.order < float("inf")], "free_body"))}
"""


def over_the_exact_flow() -> dict[str, Any]:
    """The schemes for torques, each with what it makes of the exact free flow."""
    exact = next(m for m in ph.methods.values() if m.order == float("inf"))
    found = {}
    for name in combinators():
        try:
            made = ph.methods.combinators[name](exact)
        except ph.InputError:
            continue
        if made.needs != exact.needs:
            found[name] = made
    return found


def potential() -> str:
    """Methods for potentials, and for torques of time and attitude."""
    rows = []
    for row in _measured("work_precision.json")["table"]:
        method = ph.methods[row["method"]]
        rows.append((
            row["problem"], f"{row['error']:.0e}", _link(row["method"]), word(method.symplectic),
            word(method.symmetric), f"{row['microseconds']:.0f}",
        ))  # fmt: skip
    schemes = {name: m for name, m in over_the_exact_flow().items() if m.order > 2}
    for_torques = [name for name, m in schemes.items() if m.needs == "attitude"]
    low = next(m for m in ph.methods.values() if m.needs == "free" and m.symmetric and m.order == 2)
    over_any = [name for name, m in schemes.items() if ph.methods.combinators[name](low).order == m.order]
    own = [m for m in ph.methods.taking("potential") if m.symplectic]
    flows = [m for m in ph.methods.values() if m.needs == "free" and m.symplectic]
    return f"""### A potential, or a torque that depends on time and attitude

Combine a free flow with a scheme: [`strang(symrot)`](methods/strang.md), `blanes_moan6a(dmv10)`, ... ([free flows and
splitting schemes](schemes.md)). The table gives the fastest of the measured combinations for a given final error:

{table(("problem", "final error", "method", "symplectic", "symmetric", "microseconds"), rows)}

- Symplectic (the energy does not drift in very long runs): any scheme built from
  {_names(_cheapest_first(flows, "free_body"))}. Without a scheme: {_names(own)}.
- Schemes above order 2: {", ".join(_link(name) for name in schemes)}.
- These reach their order with any symmetric flow: {", ".join(_link(name) for name in over_any)}. The others
  need a flow of at least their order.
- These also take torques T(t, R) without a potential: {", ".join(_link(name) for name in for_torques)}.
- If the body spins fast and the torque is small: a flow that is exact for the body ({_link("symrot_auto")} for a
  symmetric body, {_link("jacobi")} for any body), since the error then comes from the small torque only.
"""


def velocity() -> str:
    """Methods for torques of the angular velocity."""
    able = [m for m in ph.methods.taking("velocity") if m.order >= 2]
    symmetric = _fastest_first([m for m in able if m.symmetric], "heavy_top")
    high = _fastest_first([m for m in able if not m.implicit], "heavy_top")
    return f"""### A torque that depends on the angular velocity

Examples are drag, damping, control and gyrostats. Symmetric methods preserve the long-time behaviour of reversible
motions. Each of these solves an implicit equation. They are sorted by the time to an attitude error of the heavy top at
t = 10:

{table(_head("heavy_top"), _rows(symmetric, "heavy_top"))}

Explicit methods, sorted in the same way:

{table(_head("heavy_top"), _rows(high, "heavy_top"))}

Taylor methods have any order: `lietaylor(k)` conserves the spatial momentum; `taylor(k)` is the cheapest and conserves
nothing exactly. [`ep(method)`](methods/ep.md) corrects the energy, for every method that conserves the momentum.
"""


def what_is_kept() -> str:
    """A table of kinds of field and properties."""
    wanted = (
        ("symplectic", lambda m: m.symplectic), ("symmetric", lambda m: m.symmetric),
        ("energy exact without torque", lambda m: "energy" in m.conserves),
        ("explicit", lambda m: not m.implicit),
    )  # fmt: skip
    parts = [
        "## Methods by property",
        "These lists follow from the declarations. A method that takes a kind of field also takes the kinds listed "
        "above it, except the exact motion of the Lagrange top.",
    ]
    for needs, said in KINDS.items():
        taken = [m for m in ph.methods.values() if m.needs == needs]
        if taken:
            rows = [(words, _names([m for m in taken if has(m)])) for words, has in wanted]
            parts += [f"### Takes {said}", table(("property", "methods"), rows)]
    return "\n\n".join(parts) + "\n"


def long_runs() -> str:
    """What compensated sums gain."""
    rows = []
    for row in _measured("long_run.json")["rows"]:
        if "energy" in row["round_off"]:
            energy, momentum = (row["rms"][name][-1] for name in ("energy", "spatial_momentum"))
            said = (row["problem"], _link(row["method"]), f"{row['steps'][-1]:.0e}", f"{energy:.0e}", f"{momentum:.0e}")
            rows.append(said)
    return f"""### Very long runs

[`compensated(...)`](methods/compensated.md) adds the round-off of each step back in a later one ([Very long
runs](long_runs.md)). The table gives the rms errors, after the last step, of quantities that the method conserves; they
are pure round-off:

{table(("problem", "method", "steps", "energy", "spatial momentum"), rows)}

If the motion has fast and slow phases, [`reversible(...)`](methods/reversible.md) adapts the step size and remains
symmetric ([reversible variable steps](variable_steps.md)).
"""


def many() -> str:
    """What a body-step costs in an ensemble."""
    rows = sorted(_measured("lanes.json")["rows"], key=lambda row: row["lanes_ns"])
    found = [(_link(r["method"]), f"{r['lanes_ns']:.1f}", f"{r['scalar_ns']:.0f}") for r in rows]
    return f"""### Many bodies

`ph.ensemble` runs several bodies at once in SIMD lanes ([ensembles](ensembles.md)). Methods without branches and
elementary functions gain most. The table lists the cheapest first, on one core ({_measured("lanes.json")["vectors"]}):

{table(("method", "ns per body-step in SIMD lanes", "scalar"), found)}
"""


def page() -> str:
    """The whole page."""
    head = """# Which method should I use?

If you need a given accuracy, none: give a tolerance, and the library chooses. For a fixed step, the choice depends on
the field and on what must be conserved. The names link to the equations. The properties come from the declarations,
which are verified in 50 digits, and the timings from the files in benchmarks/, which record the machines.

| situation | use |
|---|---|
| a given accuracy | `ph.solve(problem, t_end=..., tol=1e-10)` |
| a free body, any length of time | `ph.exact(problem, times)` |
| a potential and a long run | a symplectic scheme, `strang(symrot)` or `kahan_li8(symrot)`, and a fixed step |
| a torque T(t, R) | the same schemes: they remain symmetric |
| drag, control, a torque that depends on the angular velocity | `lietaylor(8)`, or a symmetric method such as `imidm` |
| your own loop (molecular dynamics, granular media, games) | `ph.stepper(body, "strang(symrot)", dt)` |
| millions of bodies | `ph.ensemble(...)` with `dmv10`, or a scheme built from it |
| more than ten million steps | `compensated(...)` with one of these |

"""
    return head + "\n".join((
        to_an_accuracy(), "## With a fixed step\n", free(), potential(), velocity(), long_runs(), many(),
        what_is_kept(),
    ))  # fmt: skip
