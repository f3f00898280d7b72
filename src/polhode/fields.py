"""Torques and potentials: user-defined, ready-made, and their sums (facade of `polhode.physics.fields`)."""

from .physics.fields import *  # noqa: F403
from .physics.fields import __all__ as __all__
