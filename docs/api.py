"""The reference of the Python interface: every public name once, from its docstring, with its example."""

from __future__ import annotations

import inspect
from typing import Any

import polhode as ph

SHELVES = {
    "running": (
        "Running",
        "Compute the motion of one body or of many.",
        ["solve", "exact", "ensemble", "propagator", "stepper", "batch_stepper", "respa", "warm", "kinematics",
         "strapdown"],
    ),
    "problems": (
        "Bodies and problems",
        "Inertia, initial states, and named problems.",
        ["Body", "VaryingBody", "Problem", "Reference", "problems"],
    ),
    "fields": (
        "Torques and potentials",
        "What acts on the body: your own functions, and built-in fields.",
        ["torque", "potential", "states", "momentum_rate", "total", "where", "math", "fields"],
    ),
    "environment": (
        "Orbits, surfaces, control",
        "The orbit of the body, the facets of its surface, and controllers with actuators.",
        ["Orbit", "Ephemeris", "Facets", "controller", "actuators"],
    ),
    "results": (
        "Results",
        "What a run returns, and how to save, plot and show it.",
        ["Trajectory", "Ensemble", "FinalState", "State", "Event", "event", "load", "formats", "view",
         "view_many", "view_live", "animate", "plots", "InputError",
         "StepError", "ResultWarning"],
    ),
    "analysis": (
        "Derivatives, chaos, estimation",
        "State-transition matrices, Lyapunov exponents, and estimates of parameters from measurements.",
        ["gradient", "Gradient", "Tangent", "Covariance", "lyapunov", "Lyapunov", "chaos", "Chaos", "chaos_map",
         "ChaosMap", "fit", "Fit", "measurements", "jax", "modified_energy", "period", "precession_angle", "tumbling",
         "Tumbling"],
    ),
    "molecules": (
        "Molecules and temperature",
        "Sites, periodic boxes and thermostats.",
        ["sites", "Sites", "PeriodicBox", "thermostats"],
    ),
    "methods": (
        "Methods",
        "Integrators, and how to make new ones. Each has a page in [all methods](../methods/index.md).",
        ["methods", "Method", "emit", "mkrk", "Tableau", "tableaus", "surd", "Surd", "Propagator", "Respa"],
    ),
    "spaces": (
        "Other spaces",
        "Lie groups, rotation in N dimensions, and vector spaces.",
        ["lie", "ndim", "vector"],
    ),
}  # fmt: skip
"""File name, title, sentence and names of each page."""


def pages() -> dict[str, str]:
    """The pages by file name."""
    found = {name: _page(title, text, names) for name, (title, text, names) in SHELVES.items()}
    found["index"] = _index()
    return found


def _index() -> str:
    lines = ["# Python reference", ""]
    lines += ["`import polhode as ph`. Every name below has an example that the tests run.", ""]
    for name, (title, text, names) in SHELVES.items():
        lines += [f"## [{title}]({name}.md)", "", text, ""]
        lines += ["| name | |", "|---|---|"]
        lines += [f"| [`ph.{x}`]({name}.md#polhode.{x}) | {_first_line(getattr(ph, x))} |" for x in names] + [""]
    lines += ["```{toctree}", ":hidden:", *SHELVES, "```", ""]
    return "\n".join(lines)


def _first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n")[0].replace("|", "\\|")


def _page(title: str, text: str, names: list[str]) -> str:
    return "\n".join([f"# {title}", "", text, "", *(_entry(name, getattr(ph, name)) for name in names)])


def _entry(name: str, value: Any) -> str:
    if inspect.ismodule(value):
        return _module(name, value)
    if inspect.isclass(value):
        return _directive("autoclass", f"polhode.{name}", [":members:"])
    if callable(value) and inspect.isfunction(value):
        return _directive("autofunction", f"polhode.{name}")
    return _directive("autodata", f"polhode.{name}", [":no-value:"])


def _directive(kind: str, name: str, options: list[str] | None = None) -> str:
    lines = ["```{eval-rst}", f".. {kind}:: {name}", *(f"   {option}" for option in options or []), "```", ""]
    return "\n".join(lines)


def _module(name: str, module: Any) -> str:
    """The functions and classes of a module; ready-made fields and problems with their formulas."""
    lines = [f"## polhode.{name}", "", f"(polhode.{name})=", "", inspect.getdoc(module) or "", ""]
    if name in ("fields", "problems"):
        for entry in module.names():
            lines += [f"### {name}.{entry}", "", *_indented(module.describe(entry)), ""]
        return "\n".join(lines)
    return "\n".join([*lines, *(_member(name, entry, getattr(module, entry)) for entry in module.__all__)])


def _member(module: str, name: str, value: Any) -> str:
    """A function or class of a module; one that `polhode` also has is described there."""
    if not getattr(value, "__module__", "").startswith("polhode"):
        return ""
    if getattr(ph, name, None) is value:
        return f"`polhode.{module}.{name}` is `polhode.{name}`.\n"
    if inspect.isclass(value):
        return _directive("autoclass", f"polhode.{module}.{name}")
    return _directive("autofunction", f"polhode.{module}.{name}") if inspect.isfunction(value) else ""


def _indented(text: str) -> list[str]:
    return ["```text", *text.splitlines(), "```"]
