"""Files and objects of other programs (from several modules); results have `export`."""

from .physics.aem import Attitudes, read_aem
from .physics.poses import from_rigid_transform, to_rigid_transform
from .results.formats.ck import read_ck

__all__ = ["Attitudes", "from_rigid_transform", "read_aem", "read_ck", "to_rigid_transform"]
