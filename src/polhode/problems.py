"""The named problems (from `polhode.physics.library`)."""

from .physics.library import *  # noqa: F403
from .physics.library import __all__ as __all__
