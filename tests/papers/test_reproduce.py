"""The papers recomputed: files, report, verdicts, and bad input."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from tools.documents import ROOT
from typer.testing import CliRunner
from validation import papers
from validation.papers import krysl2006, report
from validation.papers.__main__ import app
from validation.papers.results import FAILS, HOLDS, IN_PART, OPEN, Verdict

import polhode as ph

H, P, F, U = HOLDS, IN_PART, FAILS, OPEN
EXPECTED = {
    "krysl2006-fig1": [H, H, F, H, H, P, H],
    "krysl2006-fig2": [H, P],
    "krysl2006-fig3": [H, H, P],
    "krysl2006-fig4": [H, H, H, F],
    "krysl2006-fig5": [H, H, H, H, H, H],
    "krysl2006-text": [*13 * [H], F, H, H, H, H],
    "krysl2006-section2": [H, F, H, H, H, F],
    "krysl2005-section2": [H, H, H, H, H, H],
    "krysl2005-fig1": [H, H, F],
    "krysl2005-text": [H, H, P, H, F, H],
    "vilmart-fig1": [H, H, H],
    "vilmart-table1": [H, H],
    "vilmart-table2": [H, H, H, H, H, H],
    "vilmart-text": [H, H, H, H, F, F, F, F, F],
    "vilmart-equations": [F, F, F, F, H, H, P, H, H, H],
    "vilmart-fig2": [H, H, H, H],
    "zanna-error": [H, H],
    "zanna-hamiltonian": [H, H, H, F, F],
    "zanna-cost": [U, H, H, U],
    "zanna-components": [H],
    "buss-steps": [P, H, H, P, H, H, H, H, H, H, H, P, F, F],
    "buss-cost": None,  # timings: not for a test
    "buss-text": [H, H, H, H, H, H, P, F, F, H, H, H],
    "buss-series": [H, F, H, H, H, F, F, F],
    "nasa-brick": [H, H, H],
    "hairer-vilmart-driver": [H, H],
    "simo-wong-top": [H, H],
    "fasso-order-four": [H, P, H],
}
"""Every statement's verdict, as the errata of the documents have it."""

EXACT_TEXTS = (
    *("krysl2006-text", "krysl2005-text", "vilmart-text", "krysl2006-section2", "krysl2005-section2"),
    *("vilmart-equations", "buss-series"),
)
"""Mostly one step in 50 digits."""

QUICK = ("vilmart-fig1", "vilmart-fig2", "hairer-vilmart-driver", "simo-wong-top", "nasa-brick")


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def words(folder: Path, id: str) -> list[str]:
    return [v["verdict"] for v in json.loads((folder / id / "verdicts.json").read_text("utf-8"))["verdicts"]]


def test_all_ids_are_there() -> None:
    assert list(papers.RESULTS) == list(EXPECTED)
    code, output = run()
    assert code == 0
    assert all(id in output for id in EXPECTED)
    assert [row["id"] for row in json.loads(run("--json")[1])] == list(EXPECTED)


def test_the_command() -> None:
    """As it is typed, in the source tree."""
    done = subprocess.run(
        [sys.executable, "-m", "validation.papers", "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert "Usage: python -m validation.papers [OPTIONS] [" in done.stdout


def test_some_results(tmp_path: Path) -> None:
    code, output = run(*QUICK, "--out", str(tmp_path / "papers"))
    assert code == 0, output
    folder = tmp_path / "papers"
    for id in QUICK:
        assert words(folder, id) == EXPECTED[id]
        assert list((folder / id).glob("*.csv"))
    assert (folder / "vilmart-fig1" / "axes.png").stat().st_size > 10_000
    report = (folder / "report.html").read_text("utf-8")
    assert all(f"id='{id}'" in report for id in QUICK)
    assert "src='data:image/png" in report
    assert "http" not in report.replace("https://doi.org", "")
    code, output = run(QUICK[2], "--out", str(folder))
    assert code == 2
    assert "already holds results" in output
    assert run(QUICK[2], "--out", str(folder), "--overwrite")[0] == 0


def test_a_wrong_statement_is_said() -> None:
    """The verdicts follow from what is measured: the same functions say no where the numbers say no."""
    outcome = papers.get("hairer-vilmart-driver").make(lambda what: None)
    assert [v.verdict for v in outcome.verdicts] == [HOLDS, HOLDS]
    module = papers.get("hairer-vilmart-driver").make.__globals__
    kept = module["TRUTH"]
    try:
        module["TRUTH"] = (kept[0] + 1e-9, *kept[1:])
        outcome = papers.get("hairer-vilmart-driver").make(lambda what: None)
    finally:
        module["TRUTH"] = kept
    assert [v.verdict for v in outcome.verdicts] == [FAILS, HOLDS]


@pytest.mark.parametrize("id", EXACT_TEXTS)
def test_what_the_texts_say(id: str) -> None:
    outcome = papers.get(id).make(lambda what: None)
    assert [v.verdict for v in outcome.verdicts] == EXPECTED[id]


def test_no_verdict_is_written_down() -> None:
    """Every verdict is the value of an expression: none is the bare word, but that something cannot be checked."""
    for file in Path(papers.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Verdict":
                last = node.args[-1]
                if file.name == "results.py" and isinstance(last, ast.Name) and last.id == "OPEN":
                    continue
                assert not isinstance(last, ast.Name | ast.Constant), f"{file.name}, line {last.lineno}"


def test_the_data_behind_a_picture_is_written(tmp_path: Path) -> None:
    """Curves over time too, not only their largest values."""
    assert run("zanna-hamiltonian", "krysl2006-fig4", "--out", str(tmp_path))[0] == 0
    for id, columns, rows in (("zanna-hamiltonian", 4, 201), ("krysl2006-fig4", 4, 4001)):
        head, *lines = (tmp_path / id / "curves.csv").read_text("utf-8").splitlines()
        assert len(head.split(",")) == columns
        assert len(lines) == rows


def test_bad_input(tmp_path: Path) -> None:
    code, output = run("krysl2006-fig9", "--out", str(tmp_path))
    assert code == 2
    assert "krysl2006-fig" in output
    file = tmp_path / "file"
    file.write_text("")
    code, output = run("vilmart-fig1", "--out", str(file))
    assert code == 2
    assert "must be a folder" in output
    code, output = run("vilmart-fig1", "--out", str(file / "folder"))
    assert code == 2
    assert "file/folder cannot be written: Not a directory" in output
    with pytest.raises(ValueError, match="a verdict is one of"):
        Verdict("", "", "", "perhaps")
    with pytest.raises(ph.InputError, match="there is no result"):
        papers.get("figure")


@pytest.mark.slow
def test_every_result(tmp_path: Path) -> None:
    code, output = run("all", "--out", str(tmp_path / "papers"))
    assert code == 0, output
    for id, expected in EXPECTED.items():
        found = words(tmp_path / "papers", id)
        assert expected is None or found == expected, id


def test_words_of_the_report():
    """A question is no statement; a reference step that the document does not give is not printed as one."""
    with pytest.raises(ValueError, match="a question neither holds nor fails"):
        Verdict("here", "is it possible?", "yes", HOLDS)
    errors = types.SimpleNamespace(
        problem=ph.problems.fast_top(), dts=[0.1, 0.01], picture=lambda title: None, table=lambda name: None
    )
    assert "a run with a step of 0.001 instead" in krysl2006._outcome(errors, "", "0.001", []).how
    assert "not given" not in (how := krysl2006._outcome(errors, "", None, []).how)
    assert "a run with a small step, which it does not give, instead" in how


def test_the_contents_have_one_column_on_a_phone():
    """Columns of at least 22 rem: two of them need 44 rem, about 700 pixels."""
    assert "columns: 2 22rem" in report.STYLE
