"""Imports for authors of methods: the decorator that declares a method, and the building blocks of kernels.

A complete example is in CONTRIBUTING.md; it needs nothing from the rest of the library.
"""

from .kernels import so3
from .kernels.solvers import broyden, newton
from .methods import queries
from .methods.combinators.compose import halves
from .methods.mechanics import rotation_increment
from .methods.registry import method, methods
from .numbers.dispatch import kernel
from .numbers.primitives import where

__all__ = [
    "broyden", "halves", "kernel", "method", "methods", "newton", "queries", "rotation_increment", "so3", "where",
]  # fmt: skip
