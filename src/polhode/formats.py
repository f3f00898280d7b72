"""Reading of files of other programs, and poses (facade of several modules); results have `export`."""

from .physics.aem import Attitudes, read_aem

__all__ = ["Attitudes", "read_aem"]
