"""Programs that run as plain Python, without a compiler: the same functions on the same numbers.

A kernel is generic in the number type, so what a test says of a formula, a driver, a file or a page of the documents
does not depend on who runs the kernel, and compiling it takes seconds. Lanes, and numbers with tangents in arrays,
exist only in compiled code (`polhode.compile`); those programs are compiled as ever.
"""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from polhode._memo import Memo
from polhode.compile import program
from polhode.run import exact, step_control

_made = Memo()
"""Programs of tests in plain Python; in the memo of the library, other tests would find them."""

_plain_exact = functools.cache(exact._compiled.__wrapped__)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs for one body run as plain Python until the end of the test."""
    compiled = program.compiled

    def plain(function: Callable[..., Any]) -> program.Program:
        if function.__module__.startswith("polhode.compile."):
            return compiled(function)
        return program.Program("", function, True)

    entry_point = program.entry_point

    def called_directly(run: Any, *arguments: Any) -> Callable[..., Any]:
        return entry_point(run, *arguments) if hasattr(run, "overloads") else run

    monkeypatch.setattr(program, "compiled", plain)
    monkeypatch.setattr(program, "entry_point", called_directly)
    monkeypatch.setattr(program, "MADE", _made)
    monkeypatch.setattr(step_control, "MADE", _made)  # formulas keep their loops
    monkeypatch.setattr(exact, "_compiled", _plain_exact)  # so does the exact solution
