"""Figures in the comparison and in the paper are those of the benchmark pages and of the tests."""

import importlib
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.papers.test_reproduce import EXPECTED, F, H, P, U

import polhode as ph
from polhode.methods import citations
from polhode.methods.families import dmv

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = {name: " ".join((DOCS / f"{name}.md").read_text("utf-8").split()) for name in ("comparison", "paper")}


def table(page, mark):
    """Rows of a table between two marks of a page, as dictionaries."""
    text = (DOCS / page).read_text("utf-8")
    lines = re.search(rf"<!-- {mark} -->\n(.*?)<!-- end of {mark} -->", text, re.DOTALL)[1].strip().splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("name", TEXT)
def test_the_ratios_of_prepared_calls_are_those_of_the_tolerance_benchmark(name):
    ratios = [float(row["best other / propagator, step_tol"]) for row in table("tolerance_race.md", "race")]
    said = f"{min(ratios):g} to {max(ratios):g} times as long"
    assert said in TEXT[name], f"docs/{name}.md must say: {said}"
    faster = sum(ratio > 1 for ratio in ratios)
    assert re.search(rf"\b{faster} of (the )?{len(ratios)} cases", TEXT[name]), f"{faster} of {len(ratios)} cases"


def test_the_cases_in_which_whole_calls_are_faster_are_counted():
    rows = table("tolerance_race.md", "race")
    times = [[float(row[tool].split()[0]) for tool in ("heyoka", "solve, step_tol")] for row in rows]
    slower = sum(heyoka < ours for heyoka, ours in times)
    assert f"complete call of `ph.solve(..., step_tol=...)` in {slower} of {len(rows)} cases" in TEXT["comparison"]
    faster = sum(float(row["best other / solve, step_tol"]) > 1 for row in rows)
    assert f"was faster than these tools in {faster} of them" in TEXT["paper"]


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize(("bodies", "digits"), [("free bodies", 0), ("heavy tops", 1)])
def test_the_ratios_of_ensembles_are_those_of_their_benchmark(name, bodies, digits):
    text = (DOCS / "crowd_race.md").read_text("utf-8")
    ratios = [float(ratio) for ratio in re.findall(rf"^- {bodies}, .*takes ([\d.]+) times", text, re.MULTILINE)]
    said = f"{min(ratios):.{digits}f} to {max(ratios):.{digits}f} times as long for"
    assert re.search(rf"{re.escape(said)} (ensembles of )?{bodies}", TEXT[name]), f"{said} {bodies}"


def test_the_ratios_of_fixed_steps_are_those_of_the_data():
    rows = json.loads((DOCS.parent / "benchmarks/work_precision.json").read_text("utf-8"))["table"]
    scipy = [row["scipy DOP853 over ours"] for row in rows if row["scipy DOP853 over ours"]]
    assert f"{min(scipy):.0f} to {max(scipy):.0f} times as long as the fastest" in TEXT["comparison"]
    ahead = sum(row["heyoka over ours"] < 1 for row in rows)
    assert f"faster in {ahead} of {len(rows)} cases" in TEXT["comparison"]


def test_the_ratios_on_a_gpu_are_those_of_the_page():
    text = (DOCS / "crowd_race.md").read_text("utf-8").partition("## On a GPU")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| heavy tops")]
    held, whole = ([float(row[column]) for row in rows] for column in (5, 7))
    assert f"{min(held):.0f} to {max(held):.0f} times as many heavy tops" in TEXT["comparison"]
    assert f"{min(whole)} to {max(whole)} times as many" in TEXT["comparison"]


SOURCES = {
    "krysl2006": "Krysl 2006", "krysl2005": "Krysl 2004", "vilmart": "Vilmart 2013", "zanna": "Zanna 2002",
    "buss": "Buss 2011",
}  # fmt: skip


def test_the_paper_counts_the_verdicts():
    counts: dict[str, Counter[str]] = {}
    for id, verdicts in EXPECTED.items():
        counts.setdefault(SOURCES.get(id.split("-")[0], "others"), Counter()).update(["results", *(verdicts or [])])
    for source, count in counts.items():
        row = " | ".join(str(count[kind]) for kind in ("results", H, P, F, U))
        assert f"| {source} | {row} |" in TEXT["paper"], f"{source} | {row}"
    total = sum(counts.values(), Counter())
    assert f": {total['results']} results." in TEXT["paper"]
    assert f"{total[F]} of the {total[H] + total[P] + total[F] + total[U]} that we examined" in TEXT["paper"]


def test_the_orders_of_the_paper_are_those_of_the_registry():
    highest = max(method.order for method in ph.methods.values() if method.order < math.inf)
    assert f"methods on the group, exact solutions | up to {highest} | yes |" in TEXT["paper"]
    assert f"even orders up to {dmv.HIGHEST}," in TEXT["paper"]
    number = len([method for method in ph.methods.values() if method.has_step])
    assert f"more than {10 * ((number - 1) // 10)} published integrators" in TEXT["paper"]


@pytest.fixture
def cited(monkeypatch):
    """The module of docs/ that makes a page of the paper."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("cited")
    sys.modules.pop("cited", None)


def test_the_paper_cites_what_its_bibliography_has(cited):
    text = (DOCS / "paper.md").read_text("utf-8")
    book = citations.parsed((DOCS / "paper.bib").read_text("utf-8"))
    assert set(cited.keys(text)) == set(book)
    for key in set(book) & set(citations.entries()):
        assert book[key] == citations.entries()[key], f"{key}: paper.bib and references.bib differ"


def test_the_paper_becomes_a_page(cited):
    page = cited.for_the_site((DOCS / "paper.md").read_text("utf-8"))
    assert page.startswith("# polhode: ")
    assert len(re.findall(r"^# ", page, re.MULTILINE)) == 1
    assert "## Statement of need" in page
    assert "[@" not in page
    assert "(Krysl 2006; Krysl 2004; Vilmart 2013; Zanna 2002; Buss 2011)" in page
    assert page.rstrip().splitlines()[-1].startswith("- ")


def test_the_paper_stays_short():
    """About a thousand words, with tables and front matter."""
    assert 800 <= len(TEXT["paper"].split()) <= 1500
