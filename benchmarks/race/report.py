"""Table, summary and plot of the comparison."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from .cases import TARGETS
from .clock import fastest

NEVER = "-"
"""Table entry if no run reaches the error."""

Curves = dict[str, dict[str, list[dict[str, Any]]]]
"""Results of one case: contender, label, rows."""


def table(results: dict[str, Curves], names: list[str]) -> list[dict[str, Any]]:
    """For every case and error: our time and method, and for every other tool its time, ratio to ours, and method."""
    rows = []
    for case, curves in results.items():
        for target in TARGETS:
            mine = fastest(list(curves["polhode"].values()), target)
            row: dict[str, Any] = {"case": case, "error": target, "polhode": _entry(mine), "rivals": {}}
            for name in names:
                theirs = fastest(list(curves[name].values()), target)
                entry = _entry(theirs)
                if entry is not None and mine is not None:
                    entry["ratio"] = entry["microseconds"] / mine["microseconds"]
                row["rivals"][name] = entry
            rows.append(row)
    return rows


def _entry(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {key: row[key] for key in ("microseconds", "method", "steps", "error", "tolerance")}


def number(x: float) -> str:
    """Format with three figures and no exponent."""
    return f"{x:.0f}" if x >= 99.5 else f"{x:.1f}"


def ratio(x: float) -> str:
    """Format a ratio with enough decimals to distinguish it from 1."""
    return f"{x:.0f}" if x >= 9.95 else f"{x:.2f}"


def markdown(rows: list[dict[str, Any]], names: list[str]) -> str:
    """The table."""
    lines = ["| case | error | polhode (us) | method | " + " | ".join(names) + " |", "|---" * (4 + len(names)) + "|"]
    for row in rows:
        mine = row["polhode"]
        cells = [
            row["case"],
            f"{row['error']:.0e}",
            *((number(mine["microseconds"]), f"`{mine['method']}`") if mine else (NEVER, NEVER)),
        ]
        for name in names:
            theirs = row["rivals"][name]
            if theirs is None:
                cells.append(NEVER)
            else:
                by = f" ({ratio(theirs['ratio'])})" if "ratio" in theirs else ""
                cells.append(f"{number(theirs['microseconds'])}{by}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentences(rows: list[dict[str, Any]]) -> list[str]:
    """The cases in which another tool is faster or reaches an error that polhode does not; ratios on the free body."""
    said = []
    for row in rows:
        for name, theirs in row["rivals"].items():
            place = f"{row['case']}, error {row['error']:.0e}"
            if theirs is not None and row["polhode"] is None:
                said.append(f"{place}: {name} ({theirs['method']}) reaches it, polhode does not.")
            elif theirs is not None and theirs["ratio"] < 1:
                said.append(f"{place}: {name} ({theirs['method']}) is faster, {ratio(theirs['ratio'])} of our time.")
    said = said or ["No other tool is faster at any error it reaches."]
    for case in dict.fromkeys(row["case"] for row in rows if row["case"].startswith("free_body")):
        factors = [
            t["ratio"] for row in rows if row["case"] == case for t in row["rivals"].values() if t and "ratio" in t
        ]
        if factors:
            said.append(f"{case}: the fastest other tool needs at least {ratio(min(factors))} times as long.")
    return said


def overheads(found: dict[str, dict[str, float]]) -> str:
    """The table of the overhead of ph.solve."""
    lines = ["| case | tol | `ph.solve` (us) | its prepared run (us) | overhead (us) | median of it (us) |"]
    lines.append("|---" * 6 + "|")
    for case, row in found.items():
        cells = [number(row[f"{key}_microseconds"]) for key in ("solve", "run", "overhead", "median_overhead")]
        lines.append(f"| {case} | {row['tolerance']:.0e} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def startups(found: dict[str, dict[str, float]]) -> str:
    """The table of start-up times."""
    lines = ["| tool | import (s) | first result after it (s) |", "|---|---|---|"]
    for name, row in found.items():
        lines.append(f"| {name} | {row['import_seconds']:.2f} | {row['first_result_seconds']:.2f} |")
    return "\n".join(lines)


def into_page(path: Path, parts: dict[str, str]) -> None:
    """Put tables between their marks in a page of the documentation."""
    text = path.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        head, rest = text.split(begin)
        text = head + begin + part + end + rest.split(end)[1]
    path.write_text(text)


def write(found: dict[str, Any], path: Path) -> None:
    """Write everything as JSON, one line per run, times and errors to five figures."""
    text = json.dumps(_rounded(found), indent=1)
    path.write_text(re.sub(r"\{[^{}]*\}", lambda row: " ".join(row[0].split()), text) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


COLOURS = {"polhode": "black", "heyoka": "C0", "CyRK": "C1", "numbalsoda": "C4", "diffrax": "C2", "scipy": "C3"}


def plot(results: dict[str, Curves], path: Path) -> None:
    """Plot error against time, one panel per case, with the Pareto-optimal runs of every contender."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(2, math.ceil(len(results) / 2), figsize=(15, 8), layout="constrained")
    for ax, (case, curves) in zip(axes.flat, results.items(), strict=False):
        for name, of_name in curves.items():
            front = frontier([row for rows in of_name.values() for row in rows if row["error"] < 1])
            times, errors = [r["microseconds"] for r in front], [max(r["error"], 1e-16) for r in front]
            ax.loglog(times, errors, "o-", ms=3, lw=2 if name == "polhode" else 1, color=COLOURS[name], label=name)
        for target in TARGETS:
            ax.axhline(target, color="0.8", lw=0.6, zorder=0)
        ax.set(title=case, xlabel="time (microseconds)", ylabel="final attitude error, |R - R_ref|")
    axes.flat[0].legend(frameon=False)
    fig.savefig(path, dpi=120)
    plt.close(fig)


def frontier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are faster than all at least equally accurate rows."""
    kept: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row["microseconds"], row["error"])):
        if not kept or row["error"] < kept[-1]["error"]:
            kept.append(row)
    return kept
