"""Files about the project agree with each other: versions, lock, recipe, citation, site, workflows, templates."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tools import package_readme, site
from tools.documents import command_lines

import polhode as ph

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
LOCKED = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE))
FORMS = sorted((ROOT / ".github").rglob("*.yml"))


def test_the_changelog_begins_with_this_version():
    headings = re.findall(
        r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == ph.__version__
    assert all(date for _, date in headings[1:])
    assert [date for _, date in headings[1:]] == sorted((date for _, date in headings[1:]), reverse=True)


def test_everything_locked_has_hashes_and_nothing_names_a_host():
    entries = re.split(r"^(?=\S)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.search(r"https?:|index|file:|@", LOCK)


def test_links_of_the_package_index_are_addresses_of_files_that_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    shown = package_readme.absolute(text, "9.8.7")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", shown)
    assert all(link.startswith("https://") for _, link in links)
    repository = PROJECT["project"]["urls"]["Source"]
    own = {f"{repository}/blob/v9.8.7/": "", "https://raw.githubusercontent.com/polhode/polhode/v9.8.7/": "!"}
    for base, mark in own.items():
        paths = [link.removeprefix(base) for kind, link in links if kind == mark and link.startswith(base)]
        assert paths
        assert [path for path in paths if not (ROOT / path.partition("#")[0]).is_file()] == []
    assert len(re.findall(r"/v9\.8\.7/", shown)) == len(re.findall(r"\]\((?!http)", text))
    assert package_readme.absolute("[a](https://b.c) [d](#e)", "1") == "[a](https://b.c) [d](#e)"


def needed(requirements):
    """Names and ranges of requirements, without those that are the package itself."""
    for text in requirements:
        name, _, rest = re.match(r"([\w.-]+)(\[.*?\])?(.*)", text).groups()
        if name != "polhode":
            yield name.lower().replace("_", "-"), rest


def with_extras(names):
    """Requirements of extras and of the extras that they name."""
    for name in names:
        for text in PROJECT["project"]["optional-dependencies"][name]:
            others = re.match(r"polhode\[(.*)\]$", text)
            yield from with_extras(others[1].split(",")) if others else [text]


def test_published_requirements_are_ranges_and_the_lock_lies_in_them():
    from packaging.specifiers import SpecifierSet

    extras = PROJECT["project"]["optional-dependencies"]
    every = [*PROJECT["project"]["dependencies"], *(text for extra in extras.values() for text in extra)]
    for name, given in needed(every):
        assert "==" not in given, name
        if name in LOCKED:
            assert LOCKED[name] in SpecifierSet(given), name
    locked = [*PROJECT["project"]["dependencies"], *with_extras(["dev"])]
    assert {name for name, _ in needed(locked)} <= set(LOCKED)


CONDA_NAMES = {"matplotlib": "matplotlib-base", "heyoka": "heyoka.py"}
"""Packages that conda-forge names otherwise."""

RECIPE = yaml.safe_load((ROOT / "conda/recipe/recipe.yaml").read_text("utf-8"))


def as_conda(requirements):
    """Requirements of pyproject.toml as a recipe writes them."""
    return {f"{CONDA_NAMES.get(name, name)} {given}" for name, given in needed(requirements)}


def test_the_conda_recipe_is_what_pyproject_declares():
    project = PROJECT["project"]
    python = f"python {project['requires-python']}"
    beside = as_conda(with_extras(set(project["optional-dependencies"]) - set(MAKERS)))
    part = as_conda([*project["dependencies"], *with_extras(["app"])])
    assert RECIPE["context"]["version"] == ph.__version__
    assert set(RECIPE["requirements"]["run"]) == part | {python}
    assert set(RECIPE["requirements"]["run_constraints"]) == beside - part
    assert set(RECIPE["requirements"]["host"]) == as_conda(PROJECT["build-system"]["requires"]) | {python, "pip"}
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts
    assert RECIPE["about"]["summary"] == project["description"]
    for name, ours in {"homepage": "Homepage", "documentation": "Documentation", "repository": "Source"}.items():
        assert RECIPE["about"][name] == project["urls"][ours]


MAKERS = ("dev", "docs")
"""Extras for those who work on the library itself."""


def test_the_page_on_installing_names_every_extra():
    extras = PROJECT["project"]["optional-dependencies"]
    page = (ROOT / "docs/install.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert set(rows) == set(extras)
    for name, packages in rows.items():
        named = set(re.findall(r"`([\w-]+)(?:\[[^`]*\])?`", packages.lower()))
        assert named == {package for package, _ in needed(extras[name])}, name


def test_the_citation_names_the_release_and_the_five_documents():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    urls = PROJECT["project"]["urls"]
    assert (citation["repository-code"], citation["url"]) == (urls["Source"], urls["Documentation"])
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["keywords"] == PROJECT["project"]["keywords"]
    assert f"## [{ph.__version__}] - {citation['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    cited = {(entry["authors"][0]["family-names"], entry["year"]) for entry in citation["references"]}
    assert cited == {("Krysl", 2006), ("Krysl", 2004), ("Vilmart", 2013), ("Zanna", 2002), ("Buss", 2011)}


def test_a_site_keeps_its_versions(tmp_path):
    built = tmp_path / "html"
    built.mkdir()
    for version in ("0.9.0", "0.10.0", "0.2.1"):
        (built / "index.html").write_text(version)
        site.publish(built, tmp_path / "site", version)
    listed = json.loads((tmp_path / "site/versions.json").read_text("utf-8"))
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.0", "0.2.1"]
    assert [entry["latest"] for entry in listed] == [True, False, False]
    for entry in listed:
        assert (tmp_path / "site" / entry["path"] / "index.html").read_text() == entry["version"]
        assert f'href="{entry["path"]}index.html"' in (tmp_path / "site/index.html").read_text("utf-8")
    assert (tmp_path / "site/latest/index.html").read_text() == "0.10.0"


def test_a_site_needs_pages(tmp_path):
    with pytest.raises(SystemExit, match="run `make docs` first"):
        site.publish(tmp_path, tmp_path / "site", "1.0")


def test_console_blocks_hold_commands_of_polhode_only():
    with pytest.raises(ValueError, match="got 'rm -r x'"):
        list(command_lines("polhode methods\n\nrm -r x\n"))


def test_pre_commit_has_the_ruff_of_the_lock():
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert {repo["repo"].rpartition("/")[2]: repo["rev"] for repo in repos}["ruff-pre-commit"] == f"v{LOCKED['ruff']}"


def test_the_list_of_slow_tests_names_tests():
    listed = (ROOT / "tests/slow.txt").read_text("utf-8").splitlines()
    assert listed == sorted(set(listed))
    for file, name in {tuple(test.split("[")[0].split("::")) for test in listed}:
        assert f"\ndef {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_workflows_and_templates(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(form)
        assert [part["id"] for part in form["body"] if part["type"] != "markdown"]
    if path.parent.name != "workflows":
        return
    for job in form["jobs"].values():
        assert "timeout-minutes" in job
        assert not str(job["runs-on"]).endswith("latest")
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+(\.\d+)*|[0-9a-f]{40})", step.get("uses", "a/b@v1")), step
            for file in re.findall(r"(?:tests|validation)/\w+\.py", step.get("run", "")):
                assert (ROOT / file).exists(), file


def test_the_matrix_is_what_the_package_declares():
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]
    declared = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert declared[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    for name in ("linux", "portable"):
        assert jobs[name]["strategy"]["matrix"]["python"] == declared


def test_make_test_installs_no_system_packages():
    """Only the target `browser` does, and nothing depends on it."""
    text = (ROOT / "Makefile").read_text("utf-8")
    rules = dict(re.findall(r"^([\w-]+):[^=\n]*?(.*(?:\n\t.*)*)", text, re.MULTILINE))
    assert [name for name, body in rules.items() if "apt-get" in body] == ["browser"]
    assert [name for name, body in rules.items() if "browser" in body.partition("\n")[0]] == []
