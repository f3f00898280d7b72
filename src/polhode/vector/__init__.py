"""Dynamics on vector spaces, p' = f(u, t), u' = M^-1 p: the models of the rotation methods.

``polhode.vector.solve(force, M, u0, p0, "verlet", dt=0.01, steps=1000)``; ``polhode.vector.methods`` lists
the methods.
"""

from .family import methods
from .motion import Motion, solve

__all__ = ["Motion", "methods", "solve"]


def __dir__() -> list[str]:
    """Return the public names, without the submodules."""
    return __all__
