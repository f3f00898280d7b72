"""Actuators that a controller commands (from `polhode.physics.control.actuators`)."""

from .physics.control.actuators import *  # noqa: F403
from .physics.control.actuators import __all__ as __all__
