"""The rigid body in N dimensions, M' = [M, Omega], M = J Omega + Omega J, X' = X Omega.

``polhode.ndim.solve([2.0, 1.5, 1.0, 0.5], M0, method="moser_veselov", h=0.1, steps=1000)``; ``polhode.ndim.methods``
lists the methods. Attitudes X are orthogonal matrices, body to space; M and Omega are skew matrices in the body frame.
"""

from .body import Body
from .family import largest_step, methods, strang, yoshida4
from .motion import Motion, solve
from .reference import reference

__all__ = ["Body", "Motion", "largest_step", "methods", "reference", "solve", "strang", "yoshida4"]


def __dir__() -> list[str]:
    """Return the public names, without the submodules."""
    return __all__
