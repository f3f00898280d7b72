"""Files about the project agree with each other: versions, lock, workflows, templates."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

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


def needed(requirements):
    """Names and ranges of requirements, without those that are the package itself."""
    for text in requirements:
        name, _, rest = re.match(r"([\w.-]+)(\[.*?\])?(.*)", text).groups()
        if name != "polhode":
            yield name.lower().replace("_", "-"), rest


def test_published_requirements_are_ranges_and_the_lock_lies_in_them():
    from packaging.specifiers import SpecifierSet

    extras = PROJECT["project"]["optional-dependencies"]
    every = [*PROJECT["project"]["dependencies"], *(text for extra in extras.values() for text in extra)]
    for name, given in needed(every):
        assert "==" not in given, name
        if name in LOCKED:
            assert LOCKED[name] in SpecifierSet(given), name
    assert {name for name, _ in needed(PROJECT["project"]["dependencies"] + extras["dev"])} <= set(LOCKED)


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
