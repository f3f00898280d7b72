"""The text of an emitted file: comment, types, functions, self-test."""

from __future__ import annotations

import math
import textwrap

from .._version import __version__
from ..methods.citations import citation
from ..methods.record import formatted
from ..symbolic.latex import plain
from .interface import Interface, jumps_crossed
from .printers.base import Printer
from .self_test import Trial

TEXT_WIDTH = 100


def written(made: Interface, printer: Printer, trial: Trial) -> str:
    """The whole text."""
    bodies = []
    for function in made.functions:
        is_entry = function in made.entries.values()
        doc = ENTRY_DOCS[function.name.removeprefix(made.name + "_")] if is_entry else _doc(function.doc)
        lines = printer.function(function, is_entry)
        bodies.append("\n".join([*(printer.comment(doc) if doc else []), *lines]))
    head = printer.comment(_header(made, printer, trial))
    definitions = [line for text in printer.definitions() for line in text.splitlines()]
    tables = printer.table_lines()
    parts = ["\n".join(head), *printer.opening(made), "\n".join(definitions), *(["\n".join(tables)] if tables else [])]
    return "\n\n".join(p for p in [*parts, *bodies, *printer.closing(made, trial)] if p) + "\n"


ENTRY_DOCS = {
    "step": "One step of dt from the time t. Returns 0; or 1, and leaves the state, if the step failed.",
    "begin": "Call it once with q and momentum at the start: it prepares the state. Returns 0, or 1 if it failed.",
    "result": "Attitude and momentum at the time t, from the state between steps. Returns 0, or 1 if it failed.",
}


def _doc(text: str) -> str:
    """The first sentences of a docstring."""
    first = text.split("\n\n")[0].replace("\n", " ").strip()
    return "\n".join(textwrap.wrap(first, TEXT_WIDTH))


def _header(made: Interface, printer: Printer, trial: Trial) -> str:
    method, problem = made.method, made.problem
    field = "none: a free body" if problem.field is None else repr(problem.field)
    lines = [
        f"{made.name}_step: rotation of a rigid body, one step by the method {method.name}, in {printer.language}.",
        f"Written by polhode {__version__} from the Python kernel of the method. No dependencies.",
        "",
        *_paragraph(plain(method.summary)),
        *_declared(made),
        *_paragraph(f"Source: {citation(method.cite)}. {method.where}."),
        "",
        f"Field: {field}",
        *_paragraph(f"Note: {jumps}." if (jumps := jumps_crossed(problem)) else ""),
        "",
        *_signatures(made, printer),
        "",
        *_arguments(made),
        "",
        *_paragraph(printer.rounding(made)),
        *_paragraph("Terms such as 0.0 * x are zeros; they pass on a NaN, which the end of the step detects."),
        "",
        *_paragraph(printer.how_to_test(made)),
        *(
            [f"It makes {trial.steps} steps of {trial.dt:g} and compares with the Python kernel."]
            * printer.has_self_test
        ),
    ]
    return "\n".join(lines)


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, TEXT_WIDTH)


def _declared(made: Interface) -> list[str]:
    method = made.method
    order = "exact" if method.order == math.inf else f"order {method.order}"
    if method.order_free != method.order:
        order += f" (free body: {formatted(method.order_free)})"
    words = [w for w in ("symmetric", "symplectic") if getattr(method, w)]
    words.append("implicit" if method.implicit else "explicit")
    cost = [_counted(method.torque_evals, "torque")] if made.problem.field is not None else []
    cost += [_counted(method.solves, "solved equation")] if method.solves else []
    lines = [f"Declared: {', '.join([order, *words])}."]
    for when, names in _conserved(method.conserves).items():
        lines += [f"Conserves exactly, {when}: {formatted(names).replace('_', ' ')}."] if names else []
    return lines + ([f"Cost of a step: {', '.join(cost)}."] if cost else [])


def _conserved(names: frozenset[str]) -> dict[str, set[str]]:
    """Names of conserved quantities by what they hold for (`record.CONSERVABLE`)."""
    forced = {"energy_linear_potential": "with a potential linear in R", "energy_potential": "with any potential"}
    found = {"for the free body": {name for name in names if name not in forced}}
    return found | {forced[name]: {"energy"} for name in sorted(names) if name in forced}


def _signatures(made: Interface, printer: Printer) -> list[str]:
    return [
        line
        for function in made.entries.values()
        for line in "\n".join(printer.head(function, is_entry=True)).removesuffix(" {").splitlines()
    ]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _arguments(made: Interface) -> list[str]:
    lines = [
        "Arguments (any consistent units; angles in radians):",
        "  dt, t       step, and time at its start; compute the time of step n as t0 + n*dt, not as a sum of steps",
        "  inertia     three principal moments of inertia",
        "  inverse     their inverses 1/inertia[i] (0 for a zero moment)",
    ]
    if made.parameters:
        values = ", ".join(map(repr, made.parameters))
        count = _counted(len(made.parameters), "number")
        text = f"  params      {count} of the field, in the order above: {values}"
        lines += textwrap.wrap(text, TEXT_WIDTH, subsequent_indent=" " * 14)
    axes = "principal axes of the body" if made.problem.body.has_principal_rotation else "body axes"
    if made.problem.body.has_principal_rotation:
        lines += ["              the last four: the quaternion from principal to the user's body axes"]
    lines += [
        f"  q           unit quaternion, scalar first (w, x, y, z), from {axes} to space",
        f"  momentum    angular momentum I*omega, in {axes}",
    ]
    if made.memory:
        lines += [f"  memory      {made.memory} numbers that the method carries; {made.name}_begin fills them"]
    if made.method.has_own_time:
        lines += ["  memory[0]   the time reached: the steps of this method vary, dt is only their scale"]
    if "result" in made.entries:
        lines += [f"  q_out, momentum_out   the state for output, by {made.name}_result; q and momentum are inner ones"]
    return lines
