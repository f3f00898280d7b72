"""Reading of files of other programs (facade of several modules); results have `export`."""

from .physics.aem import Attitudes, read_aem
from .results.formats.ck import read_ck

__all__ = ["Attitudes", "read_aem", "read_ck"]
