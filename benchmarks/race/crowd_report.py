"""Tables and summary of the ensemble benchmark."""

from __future__ import annotations

from typing import Any

from .report import NEVER, number, ratio

GOALS = {"free bodies": 10.0, "heavy tops": 3.0}
"""Target speed ratio to the best other tool."""


def best_of(found: dict[str, Any], name: str, target: float, bodies: int) -> dict[str, Any] | None:
    """The fastest run of a tool that reaches a target; if it was too slow for this many bodies, with fewer."""
    rows = [r for r in found[name]["best"] if r["target"] == target and r["bodies"] <= bodies]
    runs = [r["run"] or r["tried"] for r in rows]
    return runs[-1] if runs else None


def lines_of(found: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """For every ensemble, number of bodies and error: our run, the others, and the ratio to the best of them."""
    lines = []
    for crowd, tools in found.items():
        for row in sorted(tools["polhode"]["best"], key=lambda r: (r["bodies"], -r["target"])):
            theirs = {name: best_of(tools, name, row["target"], row["bodies"]) for name in names}
            times = {name: run["nanoseconds"] for name, run in theirs.items() if run}
            line = {"crowd": crowd, "bodies": row["bodies"], "target": row["target"], "ours": row["run"]}
            best = min(times, key=lambda name: times[name], default=None)
            if best and row["run"]:
                line |= {"best": best, "ratio": times[best] / row["run"]["nanoseconds"]}
            lines.append(line | {"theirs": theirs})
    return lines


def table(lines: list[dict[str, Any]], names: list[str]) -> str:
    """Nanoseconds per body, and in brackets the ratio to ours."""
    text = [
        "| ensemble | bodies | error | polhode (ns) | method | " + " | ".join(names) + " |",
        "|---" * (5 + len(names)) + "|",
    ]
    for line in lines:
        ours = line["ours"]
        cells = [line["crowd"], f"{line['bodies']:.0e}", f"{line['target']:.0e}"]
        cells += [number(ours["nanoseconds"]), f"`{ours['method']}`"] if ours else [NEVER, NEVER]
        for name in names:
            run = line["theirs"][name]
            by = f" ({ratio(run['nanoseconds'] / ours['nanoseconds'])})" if run and ours else ""
            cells.append(f"{number(run['nanoseconds'])}{by}" if run else NEVER)
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def settings(lines: list[dict[str, Any]], peak: float, quantile: float) -> str:
    """Our runs: method, tolerance, errors, operations, fraction of the peak."""
    head = (
        "| ensemble | bodies | error | method | tolerance | 95 % | median | largest | flop per body | of float64 peak |"
    )
    text = [head, "|---" * 10 + "|"]
    for line in lines:
        run = line["ours"]
        if run is None:
            continue
        fine = f"{run['setting']:.1e}" if run["method"] != "jacobi" else NEVER
        share = run["flops"] / run["nanoseconds"] * 1e9 / peak
        cells = [line["crowd"], f"{line['bodies']:.0e}", f"{line['target']:.0e}", f"`{run['method']}`", fine]
        cells += [f"{run[key]:.1e}" for key in ("error", "median", "largest")]
        text.append("| " + " | ".join([*cells, f"{run['flops']:.0f}", f"{100 * share:.0f} %"]) + " |")
    return "\n".join(text)


def sentences(lines: list[dict[str, Any]], found: dict[str, Any], peak: float, cores: int) -> str:
    """The smallest ratios, and the tools that did not run."""
    said = [f"{cores} cores, measured peak {peak / 1e9:.0f} Gflop/s in double precision."]
    for crowd, goal in GOALS.items():
        for target in dict.fromkeys(line["target"] for line in lines):
            those = [n for n in lines if n["crowd"] == crowd and n["target"] == target and "ratio" in n]
            if those:
                worst = min(those, key=lambda n: n["ratio"])
                mark = "" if worst["ratio"] >= goal else f" (wanted: {goal:.0f})"
                said.append(
                    f"{crowd}, error {target:.0e}: the fastest other tool ({worst['best']}) takes "
                    f"{ratio(worst['ratio'])} times as long{mark}."
                )
    for crowd, tools in found.items():
        said += [f"{crowd}: {name} did not run: {t['failed']}" for name, t in tools.items() if "failed" in t]
    return "\n".join(f"- {line}" for line in said)


def compiling(found: dict[str, Any]) -> str:
    """Seconds of the first calls."""
    text = ["| ensemble | tool | first call of each method (s) |", "|---|---|---|"]
    for crowd, tools in found.items():
        for name, tool in tools.items():
            each = ", ".join(f"{label} {s:.1f}" for label, s in tool.get("compile_seconds", {}).items())
            text.append(f"| {crowd} | {name} | {each or NEVER} |")
    return "\n".join(text)


def parts(found: dict[str, Any], names: list[str], peak: float, cores: int, quantile: float) -> dict[str, str]:
    """All parts of the page."""
    lines = lines_of(found, names)
    return {
        "race": table(lines, names),
        "ratios": sentences(lines, found, peak, cores),
        "settings": settings(lines, peak, quantile),
        "compiling": compiling(found),
    }
