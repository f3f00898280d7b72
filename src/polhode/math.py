"""Functions that a torque, a potential or an observable may call (from `polhode.numbers.user_math`)."""

from .numbers.user_math import *  # noqa: F403
from .numbers.user_math import __all__ as __all__
