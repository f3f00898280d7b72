"""The documents are true: their code runs, their names exist, their tables follow the declarations.

Run as a script, this file writes the generated part of docs/notation.md anew.
"""

import functools
import math
import re
import runpy
import shlex
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import numpy as np
import PIL.Image
import pytest
import typer
from tools import readme_picture, viewer_pictures
from tools.documents import blocks, command_lines, made_by, reader_files
from typer.testing import CliRunner

import polhode as ph
from polhode import cli, vector
from polhode.methods import citations
from polhode.symbolic.latex import plain

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "polhode"
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.stem not in ("which_method", "combinations", "commands")),
    ROOT / "CONTRIBUTING.md",
]
NOTATION = ROOT / "docs" / "notation.md"
LABELS = re.compile(r"(<!-- labels: .*? -->\n)(.*?)(<!-- end of labels -->)", re.DOTALL)


def typed(line):
    """Run a command line of a document, as a user would."""
    name, *words = shlex.split(line, comments=True)
    done = CliRunner().invoke(cli.app, words, prog_name=name)
    assert done.exit_code == 0, f"{line}\n{done.output}"


COMPLETE = ("README", "cli")
"""Pages whose commands need no file that the commands before them did not make."""


def prepared(folder):
    """The files that a reader has: a solid, a sweep, and a run that was killed."""
    reader_files(folder)
    ph.solve(ph.problems.fast_top(), "fem", dt=0.01, steps=20).save(folder / "killed.nc.partial.zarr")


PLAIN = ("bodies", "buss", "environments", "fields", "modified_energy", "problem_files", "schemes", "states")
"""Pages with many programs of few steps: the fast suite runs these as plain Python, the slow one compiles them."""

BOTH, PYTHON = "python|console", "python"
RUNS = [
    pytest.param(page, PYTHON if page.stem == "README" else BOTH, page.stem in PLAIN, id=page.name) for page in PAGES
]
RUNS += [
    pytest.param(page, BOTH, False, id=f"{page.name}, all compiled", marks=pytest.mark.slow)
    for page in PAGES
    if page.stem in ("README", *PLAIN)
]


def test_the_map_of_the_source_names_what_is_there():
    """Every file and folder named in docs/where.md and in ARCHITECTURE.md exists, and every room is named."""
    for page in (ROOT / "docs" / "where.md", ROOT / "ARCHITECTURE.md"):
        text = page.read_text(encoding="utf-8")
        paths = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*)/?`", text))
        inside = {path for path in paths if "/" in path or (PACKAGE / path).is_dir()}
        missing = {
            p for p in inside if not any((base / (p + end)).exists() for base in (PACKAGE, ROOT) for end in ("", ".py"))
        }
        assert missing == set(), page.name
        rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
        assert rooms <= inside, page.name


@pytest.mark.parametrize(("page", "kinds", "plain"), RUNS)
def test_code_in_documents_runs(page, kinds, plain, tmp_path, monkeypatch, request):
    """Python and commands, in the order of the page, in one folder; README's commands take long, so they are slow."""
    if plain:
        request.getfixturevalue("interpreted")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    book = list(ph.methods)
    space = {"__name__": "__main__"}
    parts = list(blocks(page, kinds))
    if any(kind == "console" for kind, _ in parts) and page.stem not in COMPLETE:
        prepared(tmp_path)
    for kind, block in parts:
        if kind == "python":
            exec(compile(block, str(page), "exec"), space)
            continue
        for line in command_lines(block):
            typed(line)
    matplotlib.pyplot.close("all")
    assert list(ph.methods) == book, "a document must not leave methods in the book: use register=False"


def test_the_first_figure_is_drawn_by_the_block_beside_it():
    """`python -m tools.readme_picture` draws it anew; the block is short."""
    block = readme_picture.block()
    assert readme_picture.drawn_from() == block
    assert len(block.splitlines()) <= 6


def test_the_readme_begins_with_what_the_library_is_for():
    """One sentence before the moving picture, then a few lines of Python and the figure that they make."""
    text = (ROOT / "README.md").read_text("utf-8")
    pictures = list(re.finditer(r"!\[[^\]]*\]\(([^)]+)\)", text))
    assert len(text[: pictures[0].start()].split()) <= 60
    assert pictures[0][1].endswith(".gif")
    first = re.search(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert first[1] == "python"
    assert pictures[0].end() < first.start() < pictures[1].start()
    assert pictures[1][1] == readme_picture.PICTURE.relative_to(ROOT).as_posix()


def test_every_page_says_the_same_about_installing():
    """Until the package is on an index, pages install it from the source tree (docs/release.md)."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if page.stem in ("README", "install", "index", "tutorial"):
            assert re.search(r"not\s+on the package index yet", text), page.name
            assert 'pip install ".[app]"' in text, page.name
        for line in re.findall(r"pip install[^\n`]*", text):
            assert not re.search(r"pip install (--\S+ )*['\"]?polhode['\"]?(\s|$)", line), f"{page.name}: {line}"


def test_one_case_of_the_page_about_200(interpreted):
    """A hundredth of an orbit; the slow suite runs the whole page, whose ensemble takes most of its time to compile."""
    _, block = next(blocks(ROOT / "docs" / "monte_carlo.md"))
    assert "2 * orbit.period" in block
    space = {}
    exec(block.replace("2 * orbit.period", "0.01 * orbit.period"), space)
    spin = (space["sol"].omega ** 2).sum(axis=1)
    assert spin[-1] < 0.9 * spin[0]


def test_the_film_of_the_t_handle_repeats_without_a_jump():
    """After a period the handle is where it began; the file is small enough for the head of a page."""
    ends = ph.exact(viewer_pictures.looping(), [0.0, viewer_pictures.PERIOD])
    assert np.abs(ends.matrix[1] - ends.matrix[0]).max() < 1e-8
    film = viewer_pictures.DOCS / "t_handle.gif"
    assert film.stat().st_size < 1.5e6
    with PIL.Image.open(film) as shown:
        assert (shown.size, shown.info["loop"], shown.info["duration"]) == ((600, 400), 0, viewer_pictures.DELAY)
        assert shown.n_frames == round(1000 * viewer_pictures.PERIOD / viewer_pictures.DELAY)


def test_the_page_of_commands_has_every_option():
    page = made_by("command_pages").page()
    group = typer.main.get_command(cli.app)
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    for name, command in shown.items():
        part = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)[1]
        options = [p for p in command.params if not getattr(p, "hidden", False)]
        assert all(f"`{option}`" in part for p in options for option in p.opts if option.startswith("-"))
        assert f"polhode {name}" in part.partition("```text")[2], "every command has examples"
        for p in command.params:
            assert p.help, f"{name}: {p.name} has no help text"


def test_examples_of_many_digits_print_them():
    """print alone shows 15 digits of an mpmath number."""
    for page in PAGES:
        for _, block in blocks(page):
            for line in re.findall(r"^ *print\(.*(?:\.mp\.|digits=).*$", block, re.MULTILINE):
                assert "nstr(" in line or "abs(" in line, f"{page.name}: {line}"


def test_no_command_stands_outside_of_a_block_that_runs():
    """Other than in a sentence: what is not run is marked sh and needs something from outside."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"^ {4}polhode ", text, re.MULTILINE), page
        for _, block in blocks(page, "sh"):
            assert not re.search(r"^polhode (?!.*tcp://)", block, re.MULTILINE), page


MADE = ("api/index.md", "methods/index.md", "which_method.md", "combinations.md", "commands.md", "gallery/index.md")
"""Pages that docs/generate.py makes."""

GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
COMPILING = (
    *("bdot", "coin", "diffusion", "dumbbells", "equinoxes", "flat_spin", "game_loop", "heat", "langevin_function"),
    *("levitron", "libration", "orders", "rotor", "six_dimensions", "slew", "soft_wall", "tumblers"),
)
"""Scripts that compile or run for several seconds."""


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


def test_every_script_has_its_place_in_the_gallery():
    """In one group, with a title, a text, links to pages that exist, and a check of its own."""
    gallery = made_by("gallery_pages")
    members = [member for group in gallery.GROUPS.values() for member in group]
    scripts = [member for member in members if isinstance(member, str)]
    assert sorted(scripts) == [script.stem for script in GALLERY]
    assert len(members) >= 20
    assert len(scripts) >= 14
    for script in GALLERY:
        entry = gallery.read(script)
        page = gallery.page(script.stem, entry)
        assert f"({script.stem}.png)" in page
        assert re.search(r"^ *assert ", entry.code, re.MULTILINE), f"{script.name} does not check what its text says"
        links = re.findall(r"\]\(\.\./([^)#]+)", entry.links)
        assert links
        for link in links:
            assert (ROOT / "docs" / link).exists() or link in MADE or link.startswith("methods/"), (
                f"{script.name}: {link}"
            )


def test_every_tile_of_the_gallery_leads_to_a_page():
    gallery = made_by("gallery_pages")
    entries = {script.stem: gallery.read(script) for script in GALLERY}
    index = gallery.index(entries)
    tiles = re.findall(r"\[!\[(.+)\]\((.+)\)\]\((.+?)(?:#.*)?\)$", index, re.MULTILINE)
    assert len(tiles) == sum(map(len, gallery.GROUPS.values()))
    for _, picture, target in tiles:
        made = (ROOT / "docs" / "gallery" / target).with_suffix(".py").exists()
        assert made or (ROOT / "docs" / "gallery" / picture).resolve().exists()
        assert made or (ROOT / "docs" / "gallery" / target).resolve().exists()


def test_a_script_without_links_is_refused(tmp_path):
    script = tmp_path / "lonely.py"
    script.write_text('"""A title.\n\nA text.\n"""\n', "utf-8")
    with pytest.raises(ValueError, match=r"lonely\.py: expected a docstring with .* add what is missing"):
        made_by("gallery_pages").read(script)


FORMULA = re.compile(r"\$\$(.*?)\$\$|\$(.*?)\$", re.DOTALL)


@pytest.mark.parametrize("method", ph.methods.values(), ids=lambda method: method.name)
def test_every_method_has_a_page_with_its_formulas(method):
    """The equations of one step, which are read as mathematics; what is declared; the source; a run.

    Methods that differ by a number only have their equations on the page of the first of them, and a link to it.
    """
    pages = made_by("method_pages")
    page, first = pages.page(method), next(m for m in ph.methods.values() if m.formula == method.formula)
    shown = [displayed for displayed, _ in FORMULA.findall(method.formula) if displayed]
    assert any("_1" in formula or "Phi" in formula for formula in shown), "no displayed equation gives the new state"
    assert method.formula in page if method is first else f"]({pages.slug(first.name)}.md#one-step)" in page
    for displayed, inline in FORMULA.findall(page):
        assert "<math" in made_by("mathml").mathml(displayed or inline, bool(displayed))
    assert f"| order | {'exact' if method.order == math.inf else method.order} |" in page
    assert citations.entries()[method.cite]["title"].rstrip(".") in page
    assert f'"{method.name}"' in page


def test_every_combinator_has_a_page_with_formulas():
    """Where the book does not hold what it makes."""
    pages = made_by("method_pages")
    made = pages.combinators()
    families = {name for name in ph.methods.combinators if any(m.startswith(name) for m in ph.methods)}
    assert set(made) | families == set(ph.methods.combinators)
    for name, method in made.items():
        assert "$$" in method.formula
        assert method.formula in pages.combinator_page(name, method)


def test_the_page_of_a_combinator_is_about_all_that_it_makes():
    """Not only about its example: strang(symrot123) is symplectic, strang(dmv10) is not."""
    pages = made_by("method_pages")
    page = pages.combinator_page("strang", pages.combinators()["strang"])
    rows = re.findall(r"^\| (`strang.*?) \| (\w+) \| (\w+) \| ([\w ]+) \|", page, re.MULTILINE)
    said = {name: row[1:] for row in rows for name in re.findall(r"`(.*?)`", row[0])}
    assert len(said) > 5
    for name, (order, symmetric, symplectic) in said.items():
        method = ph.methods[name]
        assert (order, symmetric, symplectic) == tuple(
            map(pages.word, (method.order, method.symmetric, method.symplectic))
        )
    assert len(set(said.values())) > 1


def test_no_two_pages_share_a_file():
    names = [made_by("method_pages").slug(m.name).lower() for m in ph.methods.values()]
    names += [name.lower() for name in made_by("method_pages").combinators()]
    assert len(set(names)) == len(names), "some systems do not tell capitals from small letters"
    written = [p.name.lower() for p in (ROOT / "docs").glob("*.md")]
    assert len(set(written)) == len(written)


@pytest.mark.parametrize("method", vector.methods.values(), ids=lambda method: method.name)
def test_methods_for_vector_spaces_have_formulas(method):
    assert "$$" in method.formula
    assert method.formula in made_by("method_pages").vector_page()


@functools.cache
def method_pages():
    """The pages of all methods, by name."""
    return made_by("method_pages").pages()


@pytest.mark.parametrize("name", ["imidm", "dmv10", "jacobi", "ep", "baoab", "brownian", "vector_spaces"])
@pytest.mark.usefixtures("plain_first")
def test_the_code_of_a_page_runs(name, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(method_pages()[name], "utf-8")
    for _, block in blocks(page):
        exec(block, {})


def test_a_composition_shows_its_coefficients():
    """To twenty digits, with the equations of what is composed."""
    said = ph.methods["yoshida4(imidm)"].formula
    assert r"w_{1} &= 1.35120719195965763404\ldots" in said
    assert ph.methods["imidm"].formula in said
    assert r"\tfrac{1}{2} - \tfrac{\sqrt{3}}{6}" in ph.methods["mkrk(gauss2)"].formula


def test_formulas_are_readable_in_a_terminal():
    """Nothing of LaTeX is left."""
    for method in ph.methods.values():
        said = plain(method.doc)
        assert not re.search(r"[\\{}$&]", said), f"{method.name}: {said}"
    assert "Π_1 = Π_0 + h (Π_0 \u00d7 ω_0 + T_0)" in plain(ph.methods["fe"].doc)


def test_which_method_sorts_by_what_one_gets_for_the_time():
    """A cheap step with a large error comes late, and what was not measured last."""
    guide = made_by("guide")
    shown = re.findall(r"^\| \[`(.*?)`\]", guide.velocity(), re.MULTILINE)
    assert shown.index("imidm") < shown.index("akw")
    times = [guide._to_error("heavy_top").get(name, math.inf) for name in shown]
    first = next(i for i in range(1, len(times)) if times[i] < times[i - 1])  # the second table begins
    assert times == sorted(times[:first]) + sorted(times[first:])
    assert sum(map(math.isfinite, times)) > 0.8 * len(times)


def test_which_method_names_what_is_declared():
    """Every method by what it takes and keeps, and nothing that is not so."""
    said = made_by("guide").what_is_kept()
    assert all(f"`{m.name}`" in said for m in ph.methods.values() if m.symplectic)
    exact = next(line for line in said.splitlines() if line.startswith("| energy exact"))
    named = re.findall(r"`([^`]+)`", exact)
    assert named
    assert all("energy" in ph.methods[name].conserves for name in named)


def test_every_page_is_in_the_table_of_contents():
    listed = re.findall(r"^[\w/]+$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE)
    made = {name.removesuffix(".md") for name in MADE}
    written = {page.stem for page in (ROOT / "docs").glob("*.md")} - {
        "index",
        "which_method",
        "combinations",
        "commands",
    }
    assert set(listed) - made == written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_are_closed(page):
    fences = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert all(language == "" for language in fences[1::2])


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make run" in text
    assert "make test" in text


def entries():
    """Keys of references.bib with the fields of each entry."""
    entries = re.split(r"^@\w+\{", (PACKAGE / "methods" / "references.bib").read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {entry.split(",", 1)[0]: dict(re.findall(r"(\w+) = \{(.*)\}", entry)) for entry in entries}


@pytest.mark.parametrize("method", [*ph.methods.values(), *vector.methods.values()], ids=lambda method: method.name)
def test_every_citation_exists(method):
    entry = entries()[method.cite]
    assert entry["title"]
    assert re.fullmatch(r"\d{4}", entry["year"])


def test_files_named_in_documents_exist():
    for page in [*PAGES, ROOT / "ARCHITECTURE.md"]:
        text = page.read_text("utf-8")
        for name in re.findall(r"`((?:docs|tests|src|benchmarks|methods|vector)/[\w/.]+\.\w+)`", text):
            exists = (ROOT / name).exists() or (PACKAGE / name).exists()
            assert exists or "your_family" in name, f"{page.name} names {name}"
        for name in re.findall(r"\]\((?!https?:|#)([^)\s#]+)\)", re.sub(r"`[^`]*`", "", text)):
            assert (page.parent / name).exists() or name in MADE, f"{page.name} links to {name}"


def test_the_citation_file_has_the_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
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
    known = [f"| {k.label} | `{k.expression}` | `{k.cite}`, {k.where} |" for k in ph.methods.known]
    return "\n".join([
        "| space | name | labels | source |", "|---|---|---|---|", *rows, "",
        "Names under which methods are known elsewhere:", "",
        "| name | here | source |", "|---|---|---|", *known,
    ]) + "\n"  # fmt: skip


def test_the_table_of_labels_is_up_to_date():
    written = LABELS.search(NOTATION.read_text("utf-8"))[2]
    assert written == label_table(), "run `python tests/surface/test_docs.py` to write it anew"


if __name__ == "__main__":
    text = NOTATION.read_text("utf-8")
    NOTATION.write_text(LABELS.sub(lambda found: found[1] + label_table() + found[3], text), "utf-8")
