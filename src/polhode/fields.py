"""Torques and potentials: user-defined, built-in, and their sums (from `polhode.physics.fields`)."""

from .physics.fields import *  # noqa: F403
from .physics.fields import __all__ as __all__
