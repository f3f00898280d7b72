"""What to write instead of a call of `ph.Body` whose arguments do not fit, as one sentence."""

from __future__ import annotations

import difflib
import functools
import inspect
import reprlib
from collections.abc import Callable
from typing import Any, ParamSpec

from ..errors import InputError

Arguments = ParamSpec("Arguments")

MOMENTS = "ph.Body([1.0, 2.0, 3.0], mass=1.0)"
LENGTHS = (
    "size", "sizes", "dimensions", "edges", "lengths", "box", "shape", "a", "b", "c", "width", "depth", "density",
)  # fmt: skip
"""Words for lengths, which solids have and `ph.Body` has not."""


def says_what_to_write(init: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Turn a TypeError about the arguments of `ph.Body` into an InputError that shows the call that was meant."""
    known = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def checked(*args: Arguments.args, **named: Arguments.kwargs) -> None:
        unknown = [name for name in named if name not in known]
        if unknown:
            raise InputError(
                f"ph.Body has no argument {unknown[0]!r}, but {', '.join(known)}; {_instead(unknown[0], named, known)}",
                unknown[0],
            )
        if len(args) + (known[0] in named) != 2:  # self and the inertia
            fault = "all arguments but the first are named" if len(args) > 1 else "the inertia is missing"
            raise InputError(f"ph.Body takes three principal moments or a tensor; {fault}: write {MOMENTS}", known[0])
        init(*args, **named)

    return checked


def _instead(word: str, named: dict[str, Any], known: list[str]) -> str:
    """The call that was probably meant."""
    amount = next((f", {name}={reprlib.repr(named[name])}" for name in ("mass", "density") if name in named), "")
    if word in ("radius", "height"):
        return f"a cylinder is ph.Body.cylinder(radius=1.0, height=2.0{amount})"
    if word in LENGTHS:
        edges = named[word] if isinstance(named[word], list | tuple) and len(named[word]) == 3 else (1.0, 2.0, 3.0)
        return (
            f"a box with the edges a, b, c is ph.Body.box({', '.join(map(repr, edges))}{amount}); there are ellipsoid, "
            f"cylinder, cone and torus too"
        )
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the inertia comes first: {MOMENTS}"
