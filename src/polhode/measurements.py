"""Measurements of a motion for `ph.fit` (facade of `polhode.run.fit.measurements`)."""

from .run.fit.measurements import *  # noqa: F403
from .run.fit.measurements import __all__ as __all__
