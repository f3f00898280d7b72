"""Sphinx: `make docs` builds the pages; those about methods are generated from the declarations first."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cited  # noqa: E402
import docstrings  # noqa: E402
import generate  # noqa: E402

import polhode  # noqa: E402

project = "polhode"
author = "The polhode developers"
project_copyright = "the polhode developers; MIT licence"
version = release = polhode.__version__
extensions = ["myst_parser", "mathml", "sphinx.ext.autodoc"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
smartquotes = False  # they would turn --tol into an en dash, and strings into quotations
default_role = "code"
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"polhode {version}"
html_static_path = ["style"]
(HERE / "moving").mkdir(exist_ok=True)  # Sphinx looks for the folder before the page in it is made
html_extra_path = ["moving"]
(HERE / "moving").mkdir(exist_ok=True)  # Sphinx looks for it before its page is made
html_css_files = ["formulas.css", "gallery.css"]
exclude_patterns = ["_build", "gallery/*.py"]
suppress_warnings = ["myst.xref_missing", "myst.header"]  # pages also stand in the repository, with links to its files


def read_paper(app, page, source):
    """Give Sphinx the paper as a page; the other pages stay as they are."""
    if page == "paper":
        source[0] = cited.for_the_site(source[0])


def setup(app):
    """Write the generated pages before Sphinx looks for sources; prepare docstrings and the paper."""
    app.connect("autodoc-process-docstring", docstrings.separate)
    app.connect("builder-inited", lambda app: generate.write(HERE))
    app.connect("source-read", read_paper)
