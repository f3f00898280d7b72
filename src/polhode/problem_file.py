"""Problems and their runs as TOML files (from `polhode.config.problem_file`)."""

from .config.problem_file import *  # noqa: F403
from .config.problem_file import __all__ as __all__
