"""Functions of numbers that vectors cannot pass (branches, loops, look-ups), called for one lane at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...numbers.dispatch import register_lanes
from .vector_types import LANES, Lanes, extract, insert


def by_lanes(function: Callable[..., Any], count: int, kinds: tuple[Any, ...]) -> Callable[..., Any]:
    """A call of the function for numbers; for vectors of doubles among the arguments, a loop over the lanes.

    Neither contains the function, which may be long: compiled code calls it.
    """
    vectors = [isinstance(kind, Lanes) for kind in kinds]
    names = [f"x{i}" for i in range(len(kinds))]
    if not any(vectors):
        return _executed(
            "single", [f"def single({', '.join(names)}):", f"    return function({', '.join(names)})"], function
        )
    single = ", ".join(f"extract({n}, i)" if vector else n for n, vector in zip(names, vectors, strict=True))
    first = names[vectors.index(True)]
    results = [f"y{k}" for k in range(count)]
    lines = [
        f"def lane_by_lane({', '.join(names)}):",
        *(f"    {y} = {first}" for y in results),
        "    for i in range(lanes):",
        f"        value = function({single})",
        *(f"        {y} = insert({y}, i, value[{k}])" for k, y in enumerate(results)),
        f"    return ({', '.join(results)},)",
    ]
    return _executed("lane_by_lane", lines, function)


def _executed(name: str, lines: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    space: dict[str, Any] = {"function": function, "lanes": LANES, "extract": extract, "insert": insert}
    exec("\n".join(lines), space)  # the text is made of our own words
    made: Callable[..., Any] = space[name]
    return made


register_lanes(by_lanes)
