"""Molecules made of sites in files of molecular dynamics: extended XYZ and GSD."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..physics.array_arguments import finite_rows
from ..physics.periodic_box import PeriodicBox, box_of
from ..physics.validate import file_path
from ..results.formats import atoms
from ..results.formats.place import placed

if TYPE_CHECKING:
    from .sites import Sites

SUFFIXES = (".xyz", ".gsd")


class Frames:
    """Writes frames of molecules, one after the other; made by `Sites.frames`."""

    def __init__(self, sites: Sites, symbols: Any, box: PeriodicBox | None) -> None:
        self.sites, self.names, self.box = sites, _names(sites, symbols), box
        self._open: Any = None
        self.number = 0
        self.writer: Any = None

    def write(self, x: Any, q: Any, *, t: float | None = None, velocity: Any = None, omega: Any = None) -> None:
        """Write the molecules at one time.

        Parameters
        ----------
        x, q : (N, 3) centres of mass and (N, 4) attitudes
        t : the time
        velocity, omega : (N, 3) velocities of the centres, and angular velocities in the body frame
        """
        if (velocity is None) != (omega is None):
            raise InputError("give velocity and omega, or neither of them")
        places = self.sites.positions(x, q)
        centres, attitudes = finite_rows("x", x, (len(places), 3)), finite_rows("q", q, (len(places), 4))
        moving = None if velocity is None else self.sites.velocities(velocity, q, omega)
        rates = [None if one is None else np.asarray(one, dtype=float) for one in (velocity, omega)]
        if self.writer is None:
            self.number, self.writer = len(places), self._open(len(places))
        if len(places) != self.number:
            raise InputError(f"all frames must have the same {self.number} molecules; got {len(places)}")
        self.writer.add(atoms.Frame(centres, attitudes, places, t, rates[0], moving, rates[1]))

    def layout(self, number: int) -> atoms.Layout:
        """What is the same in all frames of a number of molecules."""
        kinds = self.sites.kinds if self.sites.kinds.size else np.zeros(number, dtype=int)
        masses = np.atleast_2d(self.sites.masses)[kinds]
        moments = np.broadcast_to(self.sites.moments, (number, 3))
        return atoms.Layout(self.names[kinds], masses, moments, self.box)


def _names(sites: Sites, symbols: Any) -> np.ndarray:
    """Names (K, S) of the sites of all kinds."""
    number = sites.number
    several = bool(sites.kinds.size) and not isinstance(symbols, str)
    lists = list(symbols) if several else [symbols]
    if several and len(lists) != len(sites.masses):
        raise InputError(
            f"symbols must be a list for each of the {len(sites.masses)} kinds; got {len(lists)}", "symbols"
        )
    found = np.array([atoms.checked_symbols(one, number) for one in lists])
    return np.repeat(found, len(np.atleast_2d(sites.masses)) // len(found), axis=0)


@contextlib.contextmanager
def frames(sites: Sites, path: str | Path, symbols: Any, box: PeriodicBox | None, overwrite: bool) -> Iterator[Frames]:
    """Yield what writes frames; the file appears complete at the end of the block, or not at all."""
    kind = file_path(path, "the new file must be a path").suffix
    if kind not in SUFFIXES:
        raise InputError(f"a file of molecules must end in {' or '.join(SUFFIXES)}; got {Path(path).name!r}")
    found = Frames(sites, symbols, box_of(box))
    with placed(path, overwrite) as place:
        found._open = lambda number: atoms.writer(kind, place.file, found.layout(number))
        try:
            yield found
            if found.writer is None:
                raise InputError(f"no frame was written, so there is nothing for {path}; call its write")
        finally:
            if found.writer is not None:
                found.writer.close()
