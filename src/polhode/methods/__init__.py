"""All methods of the library, one file per family."""

# Methods are registered, and listed, in the order of these imports.
from .families import (
    adams,
    buss,
    commutator_free,
    dmv,
    energy_conserving,
)
from .combinators import energy_projection
from .families import (
    generalized_alpha,
    jacobi,
    kahan,
    krysl2005,
    krysl2006,
    taylor,
    munthe_kaas,
    zanna,
)
from . import names
from .families import (
    rattle,
    comparators,
)
from .combinators import kick_drift, langevin, nose_hoover, rescaling
from .families import brownian, splitting
from .adaptive import dormand_prince, verner87, enright_verner76
from .exact import lagrange_top
from .combinators.reversible import reversible
from .families.munthe_kaas import mkrk
from .record import CONSERVABLE, NEEDS, Method
from .registry import Methods, methods

EXAMPLE = next(
    m.name for m in methods.values()
    if m.symmetric and m.takes("attitude") and m.order == 2 and m.torque_evals == 1
    and "spatial_momentum" in m.conserves and m.halves and m.name.isidentifier()
)  # fmt: skip
"""Example method in files and help texts: two adjoint half steps, spatial momentum conserved, one torque per step."""

__all__ = ["CONSERVABLE", "NEEDS", "Method", "Methods", "methods", "mkrk", "reversible"]
