"""`ph.emit`: the step of a method as source code in another language."""

from __future__ import annotations

import keyword
import warnings
from typing import Any

from ..errors import InputError, ResultWarning
from ..methods import Method, methods
from ..physics import library
from ..physics.fields import Field
from ..physics.problem import Problem
from ..physics.validate import finite_number, flag
from .interface import interface, jumps_crossed
from .printers.base import Printer
from .printers.c import C, Cpp, Cuda
from .printers.javascript import JavaScript
from .printers.rust import Rust
from .printers.wgsl import Wgsl
from .self_test import trial
from .source import Untranslatable
from .writing import written

LANGUAGES: dict[str, type[Printer]] = {
    "c": C,
    "c++": Cpp,
    "cuda": Cuda,
    "rust": Rust,
    "javascript": JavaScript,
    "wgsl": Wgsl,
}
"""Printers by the names of their languages."""

ALIASES = {"cpp": "c++", "cxx": "c++", "js": "javascript", "rs": "rust", "cu": "cuda"}

EXAMPLE = "free_body"
"""The problem whose body and start an emitted method has if none is given."""


def language(to: str) -> type[Printer]:
    """The printer of a language."""
    name = ALIASES.get(str(to).lower(), str(to).lower())
    if name not in LANGUAGES:
        raise InputError(f"to must be one of {', '.join(LANGUAGES)}; got {to!r}")
    return LANGUAGES[name]


def emit(
    method: str | Method,
    problem: Problem | str | Field | None = None,
    to: str = "c",
    *,
    name: str = "polhode",
    dt: float | None = None,
    strict: bool = False,
) -> str:
    """Return one step of a method as source code in another language, without dependencies.

    Parameters
    ----------
    method : a name, alias or expression, or a Method
    problem : the body, field and initial state: a Problem or the name of one; or a field only. Default: a free body
    to : the language: "c", "c++", "cuda", "rust", "javascript", "wgsl" (single precision)
    name : prefix of the functions, such as polhode_step
    dt : step of the self-test in the text; by default the body turns by 0.05 radians in it
    strict : refuse a field with jumps or kinks (`ph.where`, tables, thrusters, relays). Emitted steps cross them, where
        those of `ph.solve` end at them, and lose their order there; otherwise the text and a warning say so

    The code is translated from the Python kernel of the method and computes the same results. Its comment states the
    declaration of the method, the arguments with their frames, and how to run the self-test.

    Raises
    ------
    InputError : an argument is invalid, or the step has no translation

    Warns
    -----
    ResultWarning : steps cross jumps or kinks of the field

    Examples
    --------
    >>> text = ph.emit("fem", to="c")
    >>> "polhode_step" in text
    True
    """
    how = methods[method]
    printer = language(to)()
    dt = None if dt is None else finite_number("dt", dt)
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise InputError(f"name must be an identifier, such as polhode; got {name!r}")
    of = _problem(problem)
    jumps = jumps_crossed(of)
    if flag("strict", strict) and jumps:
        raise InputError(jumps, "strict")
    try:
        made = interface(how, of, name, printer.epsilon, printer.has_fma)
    except Untranslatable as fault:
        raise InputError(f"{how.name} cannot be emitted: {fault}") from None
    if jumps:
        warnings.warn(jumps, ResultWarning, stacklevel=2)
    return written(made, printer, trial(made, dt))


def _problem(given: Any) -> Problem:
    if isinstance(given, Problem):
        return given
    if given is None:
        return library.get(EXAMPLE)
    if isinstance(given, str):
        return library.get(given)
    if isinstance(given, Field):
        free = library.get(EXAMPLE)
        return Problem(free.body, given, attitude=free.quaternion, momentum=free.momentum)
    raise InputError(f"problem must be a Problem, the name of one, or a field; got {given!r}")
