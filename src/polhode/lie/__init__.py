"""Matrix Lie groups, y' = W y or y' = y W: one exponential per step, to any order, and Runge-Kutta methods.

``polhode.lie.solve("SO(3)", W, method="taylor(8)", t_end=10.0, steps=100)``; ``polhode.lie.methods`` lists the methods.
"""

from .family import crouch_grossman, methods, munthe_kaas, taylor
from .group import Group
from .groups import HEISENBERG, SE3, SL2, SO, SO3, SU2
from .motion import Motion, magnus, solve
from .order_conditions import crouch_grossman_order
from .tableaus import CG3, CG4

__all__ = [
    "CG3", "CG4", "HEISENBERG", "SE3", "SL2", "SO", "SO3", "SU2", "Group", "Motion", "crouch_grossman",
    "crouch_grossman_order", "magnus", "methods", "munthe_kaas", "solve", "taylor",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names, without the submodules."""
    return __all__
