"""Every method of the library, one file per family."""

from ..declare import CONSERVABLE, NEEDS, Method, Methods, methods
from . import (  # noqa: F401 - enters them in the book
    adams,
    buss,
    commutator_free,
    dmv,
    energy_conserving,
    energy_preserving,
    generalized_alpha,
    jacobi,
    kahan,
    krysl2005,
    krysl2006,
    lie_taylor,
    munthe_kaas,
    mv_explicit,
    names,
    rattle,
    rivals,
    schemes,
    splitting,
)
from .munthe_kaas import mkrk
from .step_density import reversible

EXAMPLE = next(
    m.name for m in methods.values()
    if m.symmetric and m.takes("attitude") and m.order == 2 and m.torque_evals == 1
    and "spatial_momentum" in m.conserves and m.halves and m.name.isidentifier()
)  # fmt: skip
"""The method in examples of files and help texts: two adjoint half steps, the momentum kept, one torque a step."""

__all__ = ["CONSERVABLE", "NEEDS", "Method", "Methods", "methods", "mkrk", "reversible"]
