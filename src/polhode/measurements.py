"""Measurements of a motion for `ph.fit` (from `polhode.run.fit.measurements`)."""

from .run.fit.measurements import *  # noqa: F403
from .run.fit.measurements import __all__ as __all__
