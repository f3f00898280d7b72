"""Torques and potentials: the user's own, ready-made, and sums of them (the facade of `polhode.physics.fields`)."""

from .physics.fields import *  # noqa: F403
from .physics.fields import __all__ as __all__
