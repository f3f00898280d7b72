"""Output of the results as files (pictures, data) and as one self-contained page, to read beside the paper."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polhode import _version
from polhode.methods import citations as bibliography

from .results import FAILS, HOLDS, IN_PART, OPEN, Outcome, Result, Table

COLOURS = {HOLDS: "#1b7837", IN_PART: "#b35806", FAILS: "#b2182b", OPEN: "#666666"}

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { margin-top: 3rem; font-size: 1.25rem; border-bottom: 2px solid #ddd; } h3 { margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border: 1px solid #ccc; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
th { background: #f3f3f3; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; } .cite { color: #555; } code { background: #f3f3f3; padding: 0 0.2rem; }
nav ul { columns: 2 22rem; padding-left: 1.2rem; } /* one column on a narrow screen */
nav li { break-inside: avoid; } nav li, h2, h3, td { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
"""


def write(folder: Path, result: Result, outcome: Outcome) -> list[Path]:
    """Write pictures as PNG and SVG, tables as CSV and verdicts as JSON, in a folder named by the result's id."""
    from polhode import plots

    folder = folder / result.id
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in outcome.pictures:
        paths = [folder / f"{name}.png", folder / f"{name}.svg"]
        plots.save(figure, *paths)
        written += paths
    for table in outcome.tables:
        path = folder / f"{table.name}.csv"
        path.write_text(_csv(table), encoding="utf-8")
        written.append(path)
    path = folder / "verdicts.json"
    path.write_text(json.dumps(_sentence(result, outcome), indent=1) + "\n", encoding="utf-8")
    return [*written, path]


def _sentence(result: Result, outcome: Outcome) -> dict[str, Any]:
    verdicts = [vars(v) for v in outcome.verdicts]
    return {"id": result.id, "where": result.where, "polhode": _version.__version__, "verdicts": verdicts}


def _csv(table: Table) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([table.columns, *table.rows])
    return out.getvalue()


def page(results: Sequence[tuple[Result, Outcome]]) -> str:
    """The report of the results, in order, grouped by document."""
    parts = [
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>The papers, recomputed</title><style>{STYLE}</style></head><body>",
        "<h1>The papers, recomputed</h1>", _preface(results), _contents(results),
    ]  # fmt: skip
    document = ""
    for result, outcome in results:
        if result.cite != document:
            document = result.cite
            parts.append(f"<h2 id='{document}'>{_text(bibliography.citation(document))}</h2>")
        parts.append(_section(result, outcome))
    return "\n".join([*parts, "</body></html>"])


def _preface(results: Sequence[tuple[Result, Outcome]]) -> str:
    counts = {word: sum(v.verdict == word for _, o in results for v in o.verdicts) for word in COLOURS}
    text = ", ".join(f"{n} {_mark(word)}" for word, n in counts.items() if n)
    return (
        f"<p>Made by polhode {_text(_version.__version__)}. Statements of the documents, in our words, beside the "
        f"measurements: {text}.</p>"
    )


def _contents(results: Sequence[tuple[Result, Outcome]]) -> str:
    lines = [
        f"<li><a href='#{r.id}'>{_text(bibliography.short(r.cite))}, {_text(r.where)}</a>: {_text(r.title)}</li>"
        for r, _ in results
    ]
    return f"<nav><ul>{''.join(lines)}</ul></nav>"


def _section(result: Result, outcome: Outcome) -> str:
    parts = [f"<h3 id='{result.id}'>{_text(result.where)}: {_text(result.title)} <code>{result.id}</code></h3>"]
    parts += [f"<p>{_text(line)}</p>" for line in outcome.how.split("\n") if line]
    parts += [_picture(figure, f"{result.where}, {name}") for name, figure in outcome.pictures]
    parts += [_table(t.columns, t.rows) for t in outcome.tables if t.shown]
    if outcome.verdicts:
        rows = "".join(
            f"<tr><td>{_text(v.where)}</td><td>{_text(v.says)}</td><td>{_text(v.measured)}</td><td>{_mark(v.verdict)}</td></tr>"
            for v in outcome.verdicts
        )
        head = "".join(f"<th>{word}</th>" for word in ("where", "the document says", "measured", "verdict"))
        parts.append(f"<div class='scroll'><table><tr>{head}</tr>{rows}</table></div>")
    return "\n".join(parts)


def _picture(figure: Any, name: str) -> str:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return f"<img alt='{_text(name)}' src='data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}'>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{_text(c)}</th>" for c in columns)
    lines = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><tr>{head}</tr>{lines}</table></div>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"<td class='number'>{value:.4g}</td>"
    return f"<td class='number'>{value}</td>" if isinstance(value, int) else f"<td>{_text(value)}</td>"


def _mark(word: str) -> str:
    return f"<b style='color:{COLOURS[word]}'>{word}</b>"


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)
