"""Put the built documentation under its version: site/<version>/, site/latest/, site/versions.json and site/index.html.

``python -m tools.site`` (`make site`) copies docs/_build/html. Other versions that lie in site/ stay as they are and
are listed too, so a site grows by one folder with every release; `latest` is a copy of the highest version.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from packaging.version import InvalidVersion, Version
from tools.documents import ROOT

from polhode import __version__

BUILT = ROOT / "docs" / "_build" / "html"
SITE = ROOT / "site"
LATEST = "latest"

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>polhode: documentation by version</title>
<meta http-equiv="refresh" content="5; url={latest}/index.html">
<h1>polhode: documentation by version</h1>
<ul>
{links}
</ul>
"""


def version_of(folder: Path) -> Version | None:
    """Version that a folder is named after, or None."""
    try:
        return Version(folder.name)
    except InvalidVersion:
        return None


def versions(site: Path) -> list[str]:
    """Names of the versions in a site, the highest first."""
    folders = [folder for folder in site.iterdir() if folder.is_dir() and version_of(folder)]
    return [folder.name for folder in sorted(folders, key=lambda folder: Version(folder.name), reverse=True)]


def replace(folder: Path, source: Path) -> None:
    """Copy a folder of pages to a place, instead of what is there; without the files that only Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))


def write_lists(site: Path) -> None:
    """Write versions.json and the page with a link to every version."""
    names = versions(site)
    listed = [{"version": name, "path": f"{name}/", "latest": name == names[0]} for name in names]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    links = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in [LATEST, *names])
    (site / "index.html").write_text(PAGE.format(latest=LATEST, links=links), "utf-8")


def publish(built: Path, site: Path, version: str) -> None:
    """Add one version to a site."""
    if not (built / "index.html").exists():
        raise SystemExit(f"expected the built pages in {built}, found no index.html there; run `make docs` first")
    site.mkdir(exist_ok=True)
    replace(site / version, built)
    replace(site / LATEST, site / versions(site)[0])
    write_lists(site)


if __name__ == "__main__":
    publish(BUILT, SITE, __version__)
    print(f"written       {SITE.relative_to(ROOT)}/index.html, with {', '.join(versions(SITE))}")
