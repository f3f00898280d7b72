"""Butcher tableaus with exact coefficients (from `polhode.methods.tables.butcher`)."""

from .methods.tables.butcher import *  # noqa: F403
from .methods.tables.butcher import __all__ as __all__
