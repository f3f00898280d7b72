"""Thermostats of many bodies together (from `polhode.run.batch_stepper.thermostats`)."""

from .run.batch_stepper.thermostats import *  # noqa: F403
from .run.batch_stepper.thermostats import __all__ as __all__
