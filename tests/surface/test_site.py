"""The site: it builds without a warning, needs no network, leads nowhere that does not exist, and can be searched."""

import subprocess
import sys

import pytest
from tools import paper_pictures, race_pictures, site_checks, tutorial
from tools.documents import ROOT, made_by
from validation import papers

REMOTE = (
    '<script src="https://x.org/a.js"></script>',
    '<link rel="stylesheet" href="//x.org/a.css">',
    '<img src="http://x.org/a.png">',
    '<img srcset="a.png 1x, https://x.org/a.png 2x">',
    '<iframe src="https://x.org"></iframe>',
    "<style>@font-face { src: url('https://x.org/a.woff2') }</style>",
    '<p style="background: url(https://x.org/a.png)">',
)


@pytest.mark.slow
def test_the_documentation_builds(tmp_path):
    """Without a warning; its pages open without the network, have no dead links, and the search finds them."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "index.html").exists()
    assert list(site_checks.from_the_network(tmp_path)) == []
    assert list(site_checks.dead_ends(tmp_path)) == []
    assert site_checks.search(tmp_path, "gravity gradient") >= {"fields", "environments", "api/fields"}
    assert site_checks.search(tmp_path, "solve") >= {"api/running", "tutorial"}


@pytest.mark.parametrize("html", REMOTE)
def test_what_comes_from_the_network_is_seen(html, tmp_path):
    (tmp_path / "page.html").write_text(f'<a href="https://x.org">a link is fine</a>{html}', "utf-8")
    assert len(list(site_checks.from_the_network(tmp_path))) == 1


def test_a_style_sheet_from_the_network_is_seen(tmp_path):
    (tmp_path / "a.css").write_text('@import "https://x.org/b.css"; p { background: url(data:image/png;base64,AA) }')
    assert list(site_checks.from_the_network(tmp_path)) == ["a.css: https://x.org/b.css"]


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">x</a><a href="#here">y</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<p id="elsewhere"><a href="a.html#here">x</a><a href="https://x.org/no">y</a>')
    assert list(site_checks.dead_ends(tmp_path)) == ["a.html: b.html#there", "a.html: c.png"]


def test_the_search_index_is_read(tmp_path):
    index = '{"docnames": ["a", "b"], "terms": {"graviti": [0, 1], "gradient": 1}, "titleterms": {"solv": 0}}'
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({index})", "utf-8")
    assert site_checks.search(tmp_path, "gravity gradient") == {"b"}
    assert site_checks.search(tmp_path, "Solve") == {"a"}
    assert site_checks.search(tmp_path, "wheel") == set()


def test_the_tutorial_shows_what_it_prints_and_draws(tmp_path, monkeypatch):
    """`python -m tools.tutorial` writes it anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = tutorial.PAGE.read_text("utf-8")
    space = {"__name__": "__main__"}
    for block, output in tutorial.shown(text):
        printed = tutorial.printed(block, space)
        assert tutorial.same(printed, output), f"{block}prints\n{printed}and the page shows\n{output}"
    drawn = list(tutorial.pictures(text))
    assert len(drawn) == 2
    for file, picture in drawn:
        assert (tmp_path / file).exists()
        assert f"]({picture})" in text


def test_outputs_differ_only_by_rounding():
    assert tutorial.same("x = 1.000001 [1e-14]", "x  =  1.000002 [3e-14]")
    assert not tutorial.same("x = 1.01", "x = 1.02")
    assert not tutorial.same("x = 1.01", "y = 1.01")
    assert not tutorial.same("drift 1e-14", "drift 1e-12")
    assert not tutorial.same("1.0 2.0", "1.0")


@pytest.mark.parametrize("page", race_pictures.RACES)
def test_the_picture_of_a_race_shows_its_table(page):
    """`python -m tools.race_pictures` draws it anew."""
    assert race_pictures.drawn_from(page) == race_pictures.digest(page)
    assert f"]({page}.png)" in (ROOT / "docs" / f"{page}.md").read_text("utf-8")


def test_the_page_of_the_papers_shows_the_figures():
    """Every result that is a figure or a slide; `python -m tools.paper_pictures` makes the pictures."""
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    drawn = {result.id for result in papers.RESULTS.values() if result.where.startswith(("Figure", "slide"))}
    assert len(drawn) > 10
    assert drawn <= {picture.stem for picture in paper_pictures.PICTURES.glob("*.png")}
    for picture in paper_pictures.PICTURES.glob("*.png"):
        assert f"](papers/{picture.name})" in text


def test_arguments_without_braces_are_single_digits():
    """As in TeX."""
    mathml = made_by("mathml").mathml
    for short, long in ((r"\frac32 M", r"\frac{3}{2} M"), (r"\tfrac12 f", r"\tfrac{1}{2} f"), ("x^23", "x^{2}3")):
        assert mathml(short, False) == mathml(long, False)


def test_entries_of_docstrings_are_lists():
    lines = [
        "Do it for |x|.",
        "",
        "Parameters",
        "----------",
        "x, y : two numbers,",
        "    or |x|",
        "And more.",
        "",
        ">>> |x|",
    ]
    assert made_by("docstrings").rewritten(lines) == [
        r"Do it for \|x\|.", "", ".. rubric:: Parameters", "", "``x, y``", "    two numbers,", r"    or \|x\|", "",
        "And more.", "", ">>> |x|",
    ]  # fmt: skip
    assert made_by("docstrings").rewritten(["Trajectory"]) == [":py:class:`~polhode.Trajectory`"]
