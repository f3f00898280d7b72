"""Every method of the library, one file per family."""

from ._declare import CONSERVABLE, NEEDS, Method, Methods, methods
from . import krysl2006, krysl2005, rivals, munthe_kaas  # noqa: E402, F401, I001 - the order of the book
from .munthe_kaas import mkrk

__all__ = ["CONSERVABLE", "NEEDS", "Method", "Methods", "methods", "mkrk"]
