"""Every method of the library, one file per family."""

from . import names
from .combinators import energy_projection, kick_drift
from .combinators.reversible import reversible
from .families import (
    adams,
    buss,
    commutator_free,
    comparators,
    dmv,
    energy_conserving,
    generalized_alpha,
    jacobi,
    kahan,
    krysl2005,
    krysl2006,
    munthe_kaas,
    rattle,
    splitting,
    taylor,
    zanna,
)
from .families.munthe_kaas import mkrk
from .record import CONSERVABLE, NEEDS, Method
from .registry import Methods, methods

# isort: split
from .adaptive import dormand_prince, verner87  # registered after the families, whose methods are listed first
from .exact import lagrange_top

EXAMPLE = next(
    m.name for m in methods.values()
    if m.symmetric and m.takes("attitude") and m.order == 2 and m.torque_evals == 1
    and "spatial_momentum" in m.conserves and m.halves and m.name.isidentifier()
)  # fmt: skip
"""The method in examples of files and help texts: two adjoint half steps, the momentum kept, one torque a step."""

__all__ = ["CONSERVABLE", "NEEDS", "Method", "Methods", "methods", "mkrk", "reversible"]
