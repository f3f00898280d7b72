"""Bodies made of atoms, frame by frame, for programs of molecular dynamics: extended XYZ and GSD.

A frame has N bodies of S atoms each. Extended XYZ has the atoms only. In GSD the bodies come first, as particles with
an orientation (scalar first), then the atoms with the number of their body: the order that HOOMD-blue expects.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..._extras import needed
from ...errors import InputError
from ...kernels.so3 import mul
from ...numbers.arrays import components
from ...physics.bodies import rows
from ...physics.periodic_box import PeriodicBox
from ...physics.validate import several


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """What all frames share: names (N, S) of the atoms; masses (N, S) and principal moments (N, 3), if known."""

    symbols: np.ndarray
    masses: np.ndarray | None = None
    moments: np.ndarray | None = None
    box: PeriodicBox | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Frame:
    """Centres (N, 3), attitudes (N, 4) and atoms (N, S, 3) at one time.

    Velocities of centres (N, 3) and of atoms (N, S, 3), and angular velocities (N, 3) in the body frame, if known.
    """

    x: np.ndarray
    q: np.ndarray
    atoms: np.ndarray
    t: float | None = None
    velocity: np.ndarray | None = None
    atom_velocities: np.ndarray | None = None
    omega: np.ndarray | None = None


class Writer(Protocol):
    """Writes frames, one after the other."""

    def add(self, frame: Frame) -> None:
        """Write a frame."""

    def close(self) -> None:
        """Complete the file."""


def writer(kind: str, file: Path, layout: Layout) -> Writer:
    """A writer of a format, by its suffix."""
    return Xyz(file, layout) if kind == ".xyz" else Gsd(file, layout)


def checked_symbols(symbols: Any, number: int) -> list[str]:
    """Return one name for each atom of a body."""
    expected = "symbols must be names such as 'O', one for each atom"
    names = [symbols] * number if isinstance(symbols, str) else several(symbols, expected, "symbols")
    for name in names:
        if not isinstance(name, str) or not name.isascii() or not name or any(c.isspace() or c in '"=' for c in name):
            raise InputError(f"symbols must be names such as 'O', without spaces; got {name!r}", "symbols")
    if len(names) != number:
        raise InputError(f"symbols must have a name for each of the {number} atoms; got {len(names)}", "symbols")
    return names


class Xyz:
    """Extended XYZ: Lattice, Properties and pbc as ASE, OVITO and libAtoms read them; numbers have all digits."""

    def __init__(self, file: Path, layout: Layout) -> None:
        self.file, self.layout = file.open("w", encoding="ascii", newline="\n"), layout
        self.names = layout.symbols.ravel().tolist()

    def add(self, frame: Frame) -> None:
        """Write a frame."""
        numbers, properties = frame.atoms.reshape(-1, 3), "species:S:1:pos:R:3"
        if frame.atom_velocities is not None:
            numbers = np.hstack([numbers, frame.atom_velocities.reshape(-1, 3)])
            properties += ":velo:R:3"
        self.file.write(f"{len(self.names)}\n{self._about(frame, properties)}\n")
        for name, row in zip(self.names, numbers.tolist(), strict=True):
            self.file.write(f"{name} {' '.join(map(repr, row))}\n")

    def _about(self, frame: Frame, properties: str) -> str:
        box = self.layout.box
        lattice = "" if box is None else " ".join(repr(x) for x in np.diag(box.lengths).ravel().tolist())
        said = [f'Lattice="{lattice}"'] if lattice else []
        said += [f"Properties={properties}", f'pbc="{"F F F" if box is None else "T T T"}"']
        return " ".join(said if frame.t is None else [*said, f"Time={float(frame.t)!r}"])

    def close(self) -> None:
        """Complete the file."""
        self.file.close()


class Gsd:
    """GSD with the schema of HOOMD-blue, through gsd (extra ``polhode[gsd]``): single precision, and a box.

    The box of HOOMD-blue has its centre in the origin, so positions are moved by half of its edges.
    """

    def __init__(self, file: Path, layout: Layout) -> None:
        if layout.box is None:
            raise InputError("a GSD file needs a periodic box: give box=ph.PeriodicBox(lengths)", "box")
        self.box, self.layout = layout.box, layout
        self.hoomd = needed("gsd.hoomd")
        self.file = self.hoomd.open(name=str(file), mode="w")
        self.types, self.kinds = np.unique(layout.symbols.ravel(), return_inverse=True)
        self.step = 0

    def add(self, frame: Frame) -> None:
        """Write a frame."""
        number, each = frame.atoms.shape[:2]
        made = self.hoomd.Frame()
        made.configuration.step = self.step
        made.configuration.box = [*self.box.lengths, 0, 0, 0]
        particles = made.particles
        particles.N = number * (1 + each)
        particles.types = ["body", *self.types.tolist()]
        particles.typeid = np.concatenate([np.zeros(number, int), 1 + self.kinds])
        particles.body = np.concatenate([np.arange(number), np.repeat(np.arange(number), each)])
        particles.position, particles.image = self._inside(np.concatenate([frame.x, frame.atoms.reshape(-1, 3)]))
        particles.orientation = self._all(frame.q, number * each, (1, 0, 0, 0))
        self._more(particles, frame, number * each)
        if frame.t is not None:
            made.log["polhode/time"] = np.array([frame.t])
        self.file.append(made)
        self.step += 1

    def _more(self, particles: Any, frame: Frame, atoms: int) -> None:
        """Masses, moments and velocities, as far as they are known."""
        layout = self.layout
        if layout.masses is not None:
            particles.mass = np.concatenate([layout.masses.sum(axis=1), layout.masses.ravel()])
        if layout.moments is not None:
            particles.moment_inertia = self._all(layout.moments, atoms, (0, 0, 0))
        if frame.velocity is not None and frame.atom_velocities is not None:
            particles.velocity = np.concatenate([frame.velocity, frame.atom_velocities.reshape(-1, 3)])
        if frame.omega is not None and layout.moments is not None:
            momentum = components(layout.moments * frame.omega)
            product = rows(mul(components(frame.q), (0 * momentum[0], *momentum)))
            particles.angmom = self._all(2 * product, atoms, (0, 0, 0, 0))  # the conjugate of q in HOOMD-blue: 2 q L

    def _inside(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions in the box around the origin, and the numbers of edges by which they were moved."""
        lengths = self.box.lengths
        image = np.floor(r / lengths)
        inside = (r - image * lengths - lengths / 2).astype(np.float32)
        beyond = inside >= (lengths / 2).astype(np.float32)
        return np.where(beyond, (-lengths / 2).astype(np.float32), inside), (image + beyond).astype(np.int32)

    @staticmethod
    def _all(of_bodies: np.ndarray, atoms: int, of_atom: tuple[int, ...]) -> np.ndarray:
        return np.concatenate([of_bodies, np.broadcast_to(of_atom, (atoms, len(of_atom)))])

    def close(self) -> None:
        """Complete the file."""
        self.file.close()
