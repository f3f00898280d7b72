"""Every method of the library, one file per family."""

from ..declare import CONSERVABLE, NEEDS, Method, Methods, methods
from . import (  # noqa: F401 - enters them in the book
    adams,
    buss,
    dmv,
    energy_preserving,
    jacobi,
    krysl2005,
    krysl2006,
    lie_taylor,
    munthe_kaas,
    mv_explicit,
    rattle,
    rivals,
    schemes,
    splitting,
)
from .munthe_kaas import mkrk
from .step_density import reversible

__all__ = ["CONSERVABLE", "NEEDS", "Method", "Methods", "methods", "mkrk", "reversible"]
