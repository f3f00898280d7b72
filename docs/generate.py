"""Pages that are made, not written: one for every method, which method to use, and the gallery."""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import runpy
from pathlib import Path
from typing import Any

import polhode as ph
from polhode import bibliography
from polhode.analysis.cost import cost

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("symmetric", "symplectic", "poisson", "implicit")
KINDS = {
    "free": "no torque", "potential": "potentials", "attitude": "torques of time and attitude",
    "velocity": "any torque, also of the angular velocity",
}  # fmt: skip


def write(folder: Path) -> None:
    """All generated pages, below docs/."""
    names = {method.name: f"{number:03d}" for number, method in enumerate(ph.methods.values())}
    _put(folder / "methods" / "index.md", _index(names))
    for name, file in names.items():
        _put(folder / "methods" / f"{file}.md", _method(ph.methods[name]))
    _put(folder / "which_method.md", which())
    _put(folder / "gallery" / "index.md", gallery(folder / "gallery"))


def _put(path: Path, text: str) -> None:
    """Write a page if it changed, so that Sphinx rebuilds what it must."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


# --- methods ----------------------------------------------------------------------------------------


def _word(value: Any) -> str:
    if value is None:
        return "not proven"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "exact" if value == math.inf else str(value)


def _index(names: dict[str, str]) -> str:
    lines = ["# Methods", "", "From the declarations; each property is measured in 50 digits.", ""]
    lines += ["| method | order | symmetric | symplectic | solves | torques | takes |", "|---|---|---|---|---|---|---|"]
    for name, file in names.items():
        m = ph.methods[name]
        order = _word(m.order) if m.order == m.order_free else f"{_word(m.order)} (free: {_word(m.order_free)})"
        flags = f"{_word(m.symmetric)} | {_word(m.symplectic)}"
        lines.append(f"| [{name}]({file}.md) | {order} | {flags} | {m.solves} | {m.torque_evals} | {KINDS[m.needs]} |")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", *names.values(), "```", ""])


def _operations(method: Any) -> str:
    """Operations of one step on the heavy top, or on the free body."""
    problem = ph.problems.get("heavy_top" if method.takes("potential") else "free_body")
    if method.compensated or problem.dt is None:
        return "not counted"
    one = cost(method, problem, problem.dt / 8)
    return f"{one.flops} sums, products, quotients and roots, {one.function} elementary functions ({problem.name})"


def _method(method: Any) -> str:
    measured = {row["method"]: row for row in json.loads((ROOT / "benchmarks" / "step_cost.json").read_text())["rows"]}
    rows = [("order", _word(method.order)), ("order without torque", _word(method.order_free))]
    rows += [(flag, _word(getattr(method, flag))) for flag in FLAGS]
    rows += [("conserves exactly (free body)", ", ".join(sorted(method.conserves)).replace("_", " ") or "nothing")]
    rows += [("takes", KINDS[method.needs]), ("equations solved in a step", _word(method.solves))]
    rows += [("torques in a step", _word(method.torque_evals)), ("operations in a step", _operations(method))]
    if method.name in measured:
        rows.append(
            ("compiled step, fast top", f"{measured[method.name]['ns_per_step']:.0f} ns (benchmarks/step_cost.json)")
        )
    lines = [f"# {method.name}", "", inspect.cleandoc(method.doc), ""]
    if method.aliases:
        lines += ["Also called " + ", ".join(f"`{alias}`" for alias in method.aliases) + ".", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""]
    lines += [f"Source: {bibliography.citation(method.cite)}; {method.where}.", ""]
    field = "" if method.takes("potential") else "free_"
    problem = "free_body" if field else "heavy_top"
    lines += ["```python", "import polhode as ph", ""]
    lines += [
        f'sol = ph.solve(ph.problems.get("{problem}"), "{method.name}", dt=0.01, t_end=1.0)',
        "print(sol.drift())",
        "```",
        "",
    ]
    return "\n".join(lines)


# --- which method -----------------------------------------------------------------------------------


def _able(needs: str, **wanted: Any) -> str:
    """Names of the methods that take a kind of field and have what is wanted, the cheapest orders first."""
    found = [m for m in ph.methods.taking(needs) if all(getattr(m, k) == v for k, v in wanted.items())]
    return ", ".join(f"`{m.name}`" for m in sorted(found, key=lambda m: m.order)) or "none"


def which() -> str:
    """What to take, from declarations and from the races measured."""
    race = json.loads((ROOT / "benchmarks" / "work_precision.json").read_text())["table"]
    lines = [
        "# Which method should I use", "",
        "If you want the motion to an accuracy, none: `ph.solve(problem, tol=1e-10)` chooses, and says why. For a "
        "fixed step (long runs, ensembles, comparisons), go by what acts on the body and what must be kept.", "",
        "| what acts | symplectic | symmetric, any order |", "|---|---|---|",
    ]  # fmt: skip
    for needs, said in KINDS.items():
        symmetric = _able(needs, symmetric=True, symplectic=False)
        lines.append(f"| {said} | {_able(needs, symplectic=True)} | {symmetric} |")
    lines += [
        "",
        "Free flows become methods for potentials: `strang(dmv10)`, `blanes_moan6a(symrot)`, ... (docs/schemes.md).",
        "",
    ]
    lines += ["The fastest to an error at the end, measured (benchmarks/work_precision.json):", ""]
    lines += ["| problem | error | method | microseconds |", "|---|---|---|---|"]
    lines += [f"| {r['problem']} | {r['error']:.0e} | `{r['method']}` | {r['microseconds']:.0f} |" for r in race]
    lines += ["", "Energy exact without a torque, explicit: " + _able("free", implicit=False) + ".", ""]
    return "\n".join(lines)


# --- gallery ----------------------------------------------------------------------------------------


def gallery(folder: Path) -> str:
    """Run every script of the gallery in its folder, and show its text, its picture and its code."""
    lines = ["# Gallery", "", "Each picture is made by the script below it.", ""]
    here = Path.cwd()
    for script in sorted(folder.glob("*.py")):
        picture = folder / f"{script.stem}.png"
        source = script.read_text()
        if not picture.exists() or picture.stat().st_mtime < script.stat().st_mtime:
            os.chdir(folder)
            try:
                runpy.run_path(str(script), run_name="__main__")
            finally:
                os.chdir(here)
        text = ast.get_docstring(ast.parse(source)) or script.stem
        title, _, rest = text.partition("\n")
        code = source.split('"""', 2)[2].strip()
        lines += [
            f"## {title.rstrip('.')}",
            "",
            rest.strip(),
            "",
            f"![{title}]({picture.name})",
            "",
            "```python",
            code,
            "```",
            "",
        ]
    return "\n".join(lines)
