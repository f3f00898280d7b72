"""The contenders: their packages, and their runs on a case."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from importlib import metadata

from . import compiled_rivals, diffrax_rival, ours
from .cases import Case
from .clock import Ladder


@dataclasses.dataclass(frozen=True)
class Contender:
    """A tool: its imports, its runs on a case, and the run for timing its start-up."""

    name: str
    packages: tuple[str, ...]
    ladders: Callable[[Case], list[Ladder]]
    usual: int = 0

    def missing(self) -> str:
        """Reason why it is not available; empty if it is."""
        for package in self.packages:
            try:
                importlib.import_module(package)
            except ImportError as why:
                return f"{why}"
        return ""

    @property
    def version(self) -> str:
        """Version of its package."""
        return metadata.version(self.packages[-1].split(".")[0])


OURS = Contender("polhode", ("polhode",), ours.ladders)
RIVALS = (
    Contender("heyoka", ("heyoka",), compiled_rivals.heyoka),
    Contender("CyRK", ("numba", "CyRK"), compiled_rivals.cyrk, usual=4),
    Contender("numbalsoda", ("numba", "numbalsoda"), compiled_rivals.numbalsoda),
    Contender("diffrax", ("jax", "diffrax"), diffrax_rival.diffrax),
    Contender("scipy", ("numba", "scipy.integrate"), compiled_rivals.scipy),
)
