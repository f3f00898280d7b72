"""Runs as functions for JAX (from `polhode.run.jax_flow`)."""

from .run.jax_flow import *  # noqa: F403
from .run.jax_flow import __all__ as __all__
