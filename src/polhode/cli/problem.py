"""The problem of a command: a named one, or that of a problem file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from ..methods import methods as registry
from ..physics import library
from ..physics.problem import Problem


def problem_names(incomplete: str) -> list[str]:
    """Names that complete a word: named problems, and problem files of the current folder."""
    files = [path.name for path in sorted(Path().glob("*.toml"))]
    return [name for name in (*library.names(), *files) if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    """Names of methods that complete a word."""
    return [name for name in registry if name.startswith(incomplete)]


ProblemName = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A named problem (see `polhode problems`) or a problem file (.toml).",
        autocompletion=problem_names,
    ),
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Allow a problem file to run the Python files that it names.")
]


@dataclasses.dataclass(frozen=True)
class Given:
    """A problem with the settings of its run, and the files to write, if a problem file says so."""

    problem: Problem
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    file: Path | None = None
    plot: Path | None = None
    view: Path | None = None
    shared: Any = None
    """The orbit and the facets of a problem file."""

    def resolved(self, how: dict[str, Any]) -> dict[str, Any]:
        """Settings as keywords of `ph.solve`."""
        from ..config import problem_file

        return problem_file.resolved(self.problem, how, self.shared)


def is_file(text: str) -> bool:
    """True if this is the name of a problem file, not of a problem."""
    return text.endswith(".toml") or Path(text).is_file()


def given(text: str, allow_code: bool) -> Given:
    """The problem of an argument of the command line."""
    if not is_file(text):
        return Given(library.get(text))
    from ..config import problem_file

    loaded = problem_file.load(text, allow_code=allow_code)
    return Given(loaded.problem, loaded.settings, loaded.file, loaded.plot, loaded.view, loaded.shared)


def with_end(text: str, allow_code: bool) -> Problem:
    """The problem of an argument; that of a file ends where its run ends."""
    found = given(text, allow_code)
    how, problem = found.resolved(found.settings), found.problem
    if "t_end" in how:
        problem.t_end = how["t_end"]
    elif "steps" in how:
        problem.t_end = problem.t0 + how["steps"] * how["dt"]
    elif "times" in how:
        problem.t_end = how["times"][-1]
    return problem


def stem(text: str) -> str:
    """The name of a problem in names of files."""
    return Path(text).stem if is_file(text) else text
