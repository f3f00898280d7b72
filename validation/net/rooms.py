"""What stands beside runs of one motion: each cell compares functions with one another; see `ROOMS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import carried, in_arrays, molecules, moved, said, spaces, starts, studies
from .check import Cell, filled

ROOMS: dict[str, dict[str, Callable[[Cell], None]]] = {
    "derivatives": moved.CELLS, "studies": studies.CELLS, "in arrays": in_arrays.CELLS,
    "molecules": molecules.CELLS, "spaces": spaces.CELLS, "carried": carried.CELLS, "said": said.CELLS,
    "starts": starts.CELLS,
}  # fmt: skip
"""The cells of each room, by name."""

NAMED = {f"{room} | {name}": way for room, ways in ROOMS.items() for name, way in ways.items()}
"""All of them."""

COMPILING = (
    "derivatives | burn", "derivatives | relay", "derivatives | edges", "studies | indicators", "Lyapunov", "map of",
    "in arrays | field", "functions and fields", "free, own", "held torques, own", "moving, heat bath", "columns",
    "velocities", "singles", "frames", "forms of bodies", "verlet, fails", "midpoint, fails", "carried", "starts",
    "ensemble", ", in arrays", "bodies that fail",
)  # fmt: skip
"""Words of the names of cells with programs of their own, which take seconds to compile."""

QUICK = frozenset(name for name in NAMED if not any(word in name for word in COMPILING))
"""Cells for the fast suite."""


def cells(names: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, Cell]]:
    """Yield each wanted cell: "room | what", and what was found."""
    for name, way in NAMED.items():
        if names(name):
            yield name, filled(lambda way, cell: way(cell), way)
