"""The documents are true: their code runs, their names exist, their tables follow the declarations.

Run as a script, this file writes the generated part of docs/notation.md anew.
"""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import pytest

import polhode as ph
from polhode import vector

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "polhode"
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.stem != "which_method"),
    ROOT / "CONTRIBUTING.md",
]
NOTATION = ROOT / "docs" / "notation.md"
LABELS = re.compile(r"(<!-- labels: .*? -->\n)(.*?)(<!-- end of labels -->)", re.DOTALL)


def blocks(page):
    """Python blocks of a page, each behind as many empty lines as keep its line numbers true."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield "\n" * text[: found.start(1)].count("\n") + found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_in_documents_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    book = list(ph.methods)
    space = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), space)
    assert list(ph.methods) == book, "a document must not leave methods in the book: use register=False"


MADE = ("methods/index.md", "which_method.md", "gallery/index.md")
"""Pages that docs/generate.py makes."""

GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
COMPILING = ("libration", "soft_wall", "tumblers")
"""Scripts that compile several methods."""


@pytest.mark.parametrize(
    "script",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in COMPILING else []) for p in GALLERY],
)
def test_the_gallery_draws(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / f"{script.stem}.png").stat().st_size > 10_000
    matplotlib.pyplot.close("all")


def generated():
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["imidm", "dmv10", "jacobi"])
def test_a_page_is_made_for_a_method(name, tmp_path, monkeypatch):
    """Its code runs, and it says what is declared."""
    method, page = ph.methods[name], tmp_path / "page.md"
    page.write_text(generated()._method(method))
    assert f"| order | {'exact' if name == 'jacobi' else method.order} |" in page.read_text()
    for block in blocks(page):
        exec(block, {})


def test_which_method_names_what_is_declared():
    said = generated().which()
    assert all(f"`{m.name}`" in said for m in ph.methods.values() if m.symplectic)


def test_every_page_is_in_the_table_of_contents():
    listed = re.findall(r"^[\w/]+$", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)
    made = {name.removesuffix(".md") for name in MADE}
    written = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index", "which_method"}
    assert set(listed) - made == written


@pytest.mark.slow
def test_the_documentation_builds(tmp_path):
    """Without a warning."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "index.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_are_closed(page):
    fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert all(language == "" for language in fences[1::2])


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert "make run" in text
    assert "make test" in text


def bibliography():
    """Keys of references.bib with the fields of each entry."""
    entries = re.split(r"^@\w+\{", (PACKAGE / "references.bib").read_text(), flags=re.MULTILINE)[1:]
    return {entry.split(",", 1)[0]: dict(re.findall(r"(\w+) = \{(.*)\}", entry)) for entry in entries}


@pytest.mark.parametrize("method", [*ph.methods.values(), *vector.methods.values()], ids=lambda method: method.name)
def test_every_citation_exists(method):
    entry = bibliography()[method.cite]
    assert entry["title"]
    assert re.fullmatch(r"\d{4}", entry["year"])


def modules():
    """Every module of the package, relative to it."""
    return sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py") if p.name != "__init__.py")


def test_the_architecture_names_every_module_and_no_other():
    """By its path, or by its folder (`cli/`) where all files of the folder are of one kind."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    files, folders = (set(re.findall(rf"`([\w/]+{end})`", text)) for end in (r"\.py", "/"))
    assert files <= set(modules())
    assert all((PACKAGE / folder).is_dir() for folder in folders)
    whole = folders - {f"{path.split('/')[0]}/" for path in files if "/" in path}
    assert [path for path in modules() if path not in files and f"{path.rpartition('/')[0]}/" not in whole] == []


def test_files_named_in_documents_exist():
    for page in [*PAGES, ROOT / "ARCHITECTURE.md"]:
        for name in re.findall(r"`((?:docs|tests|src|benchmarks|methods|vector)/[\w/.]+\.\w+)`", page.read_text()):
            exists = (ROOT / name).exists() or (PACKAGE / name).exists()
            assert exists or "your_family" in name, f"{page.name} names {name}"
        for name in re.findall(r"\]\((?!https?:|#)([^)\s#]+)\)", re.sub(r"`[^`]*`", "", page.read_text())):
            assert (page.parent / name).exists() or name in MADE, f"{page.name} links to {name}"


def test_the_citation_file_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == ph.__version__


# --- the generated table ----------------------------------------------------------------------------


def label_table():
    """The methods by source: names, and the papers' own labels; methods of one formula share a line."""
    lines: dict[tuple[str, str, str, str], list[str]] = {}
    for space, book in (("rotations", ph.methods), ("vectors", vector.methods)):
        for method in book.values():
            key = (space, method.cite, method.where, ", ".join(method.aliases))
            lines.setdefault(key, []).append(f"`{method.name}`")
    rows = [
        f"| {space} | {', '.join(names)} | {labels} | `{cite}`, {where} |".replace("*", r"\*")
        for (space, cite, where, labels), names in sorted(lines.items())
    ]
    return "\n".join(["| space | name | labels | source |", "|---|---|---|---|", *rows]) + "\n"


def test_the_table_of_labels_is_up_to_date():
    written = LABELS.search(NOTATION.read_text())[2]
    assert written == label_table(), "run `python tests/test_docs.py` to write it anew"


if __name__ == "__main__":
    NOTATION.write_text(LABELS.sub(lambda found: found[1] + label_table() + found[3], NOTATION.read_text()))
