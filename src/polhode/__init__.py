"""polhode: the rotation of rigid bodies, accurately, for long times, fast, with its structure kept."""

from typing import Any

from . import math, problems, tableaus, vector
from ._version import __version__
from .body import Body
from .errors import InputError, StepError
from .exact_numbers import Surd, surd
from .fields import potential, torque
from .methods import Method, methods, mkrk
from .problem import Problem, Reference
from .scalar import where
from .solve import solve
from .stepper import State, stepper
from .store import load
from .tableaus import Tableau
from .trajectory import Trajectory


def _plots(trajectory: Trajectory) -> Any:
    """Pictures of a trajectory: ``sol.plot.energy()``, ``.momentum()``, ``.attitude()``, ``.polhode()``."""
    from . import plots

    return plots.TrajectoryPlots(trajectory)


Trajectory.plot = property(_plots)  # type: ignore[attr-defined]

__all__ = [
    "Body", "InputError", "Method", "Problem", "Reference", "State", "StepError", "Surd", "Tableau", "Trajectory",
    "__version__", "load", "math", "methods", "mkrk", "potential", "problems", "solve", "stepper", "surd",
    "tableaus", "torque", "vector", "where",
]  # fmt: skip
