"""Records of reproduced figures and tables, and their registry."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polhode.errors import InputError

Watch = Callable[[str], None]
"""Progress callback with the name of the next piece of work."""

HOLDS, IN_PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be checked"
WORDS = (HOLDS, IN_PART, FAILS, OPEN)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A statement of the document (in our words), the measurement, and the verdict."""

    where: str
    says: str
    measured: str
    verdict: str

    def __post_init__(self) -> None:
        if self.verdict not in WORDS:
            raise ValueError(f"a verdict is one of {WORDS}; got {self.verdict!r}")
        if self.says.endswith("?"):
            raise ValueError(f"a question neither holds nor fails; write it as a statement: {self.says!r}")


@dataclasses.dataclass(frozen=True)
class Table:
    """Data of a picture, or a table of the document: rows of numbers and text."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    shown: bool = False
    """True if it is shown in the report; otherwise it is only written to a file."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a reproduction: pictures (name, figure), data, verdicts, and a note on the procedure."""

    how: str
    pictures: Sequence[tuple[str, Any]]
    tables: Sequence[Table]
    verdicts: Sequence[Verdict]


@dataclasses.dataclass(frozen=True)
class Result:
    """One figure or table of a document, by its id."""

    id: str
    cite: str
    where: str
    title: str
    make: Callable[[Watch], Outcome]


RESULTS: dict[str, Result] = {}


def result(id: str, *, cite: str, where: str, title: str) -> Callable[[Callable[[Watch], Outcome]], Any]:
    """Register a function as a result."""

    def entered(make: Callable[[Watch], Outcome]) -> Callable[[Watch], Outcome]:
        if id in RESULTS:
            raise ValueError(f"{id} is already registered")
        RESULTS[id] = Result(id, cite, where, title, make)
        return make

    return entered


def get(id: str) -> Result:
    """The result with an id; the error for an unknown id lists the nearest ones."""
    if id in RESULTS:
        return RESULTS[id]
    near = difflib.get_close_matches(id, RESULTS, n=3, cutoff=0.4) or list(RESULTS)
    nearest = ", ".join(near)
    raise InputError(f"there is no result {id!r}; the nearest are {nearest} (`python -m validation.papers` lists all)")


OURS = "our own check"
"""Place of a check that is in no document."""

EXACT = 1e-22
"""A defect of a step in 50 digits below this counts as zero; central differences have errors of 1e-28."""


def zero(where: str, says: str, defects: Mapping[str, Any]) -> Verdict:
    """A statement that holds if these defects, measured in 50 digits, are zero."""
    return Verdict(where, says, _listed(defects), passed(all(x < EXACT for x in defects.values())))


def not_zero(where: str, says: str, defects: Mapping[str, Any]) -> Verdict:
    """A statement that holds if none of these defects, measured in 50 digits, is zero."""
    return Verdict(where, says, _listed(defects), passed(all(x > EXACT for x in defects.values())))


def misprint(where: str, says: str, printed: Mapping[str, Any], right: str, corrected: Mapping[str, Any]) -> Verdict:
    """Compare the defects of a formula as printed and as corrected, in 50 digits; the verdict is on the printed one."""
    measured = f"as printed: {_listed(printed)}; {right}: {_listed(corrected)}"
    return Verdict(where, says, measured, passed(all(x < EXACT for x in printed.values())))


def unchecked(where: str, says: str, why: str) -> Verdict:
    """A statement that cannot be checked from the document alone, with what is known about it."""
    return Verdict(where, says, why, OPEN)


def _listed(defects: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {float(x):.1e}" for name, x in defects.items())


def passed(condition: bool, otherwise: str = FAILS) -> str:
    """The verdict for a measured condition."""
    return HOLDS if condition else otherwise
