"""polhode: the rotation of rigid bodies, accurately, for long times, fast, with its structure kept."""

from . import _interrupt as _  # isort: skip  # noqa: F401 - first, for Ctrl-C while the rest is imported

import importlib
from typing import Any

from . import fields, math, problems, tableaus, vector
from ._version import __version__
from .body import Body
from .ensemble import Ensemble, ensemble
from .errors import InputError, ResultWarning, StepError
from .events import Event, event
from .exact import exact
from .exact_numbers import Surd, surd
from .fields import potential, torque
from .gradient import Gradient, gradient
from .methods import Method, methods, mkrk
from .momentum_rate import momentum_rate
from .poinsot import period, precession_angle
from .problem import Problem, Reference
from .scalar import where
from .solve import solve
from .stepper import State, stepper
from .store import load
from .tableaus import Tableau
from .trajectory import Trajectory


def _plots(trajectory: Trajectory) -> Any:
    """Pictures of a trajectory: ``sol.plot.energy()``, ``.momentum()``, ``.drift()``, ``.attitude()``, ``.polhode()``.

    And ``.herpolhode()``, ``.overview()``.
    """
    from . import plots

    return plots.TrajectoryPlots(trajectory)


def _view(trajectory: Trajectory, path: Any, *others: Trajectory, **named: Any) -> Any:
    """Write a page that shows the body turning in a browser, others beside it; see `ph.view`."""
    return importlib.import_module(f"{__name__}.viewer").view([trajectory, *others], path, **named)


def _shown(name: str) -> Any:
    """What a notebook shows of an object, by the function of that name in `notebook.py`."""

    def shown(thing: Any) -> str:
        return str(getattr(importlib.import_module(f"{__name__}.notebook"), name)(thing))

    return shown


def __getattr__(name: str) -> Any:
    """Every combinator by its name: ``ph.strang(ph.dmv(10))``, ``ph.yoshida4("imidm")``.

    `jax`, `lie`, `ndim`, `plots`, `view`, `kinematics` and `modified_energy` are imported when asked for.
    """
    if name in ("jax", "lie", "ndim"):
        return importlib.import_module(f"{__name__}.{name}")  # ndim needs scipy.linalg, half a second
    if name == "kinematics":
        return importlib.import_module(f"{__name__}.lie.kinematics").kinematics
    if name == "view":
        return importlib.import_module(f"{__name__}.viewer").view
    if name == "plots":
        return importlib.import_module(f"{__name__}.plots")
    if name == "modified_energy":
        return importlib.import_module(f"{__name__}.analysis.backward_error").modified_energy  # needs mpmath
    if name in methods.combinators:
        return methods.combinators[name]
    raise AttributeError(f"module 'polhode' has no attribute {name!r}")


Trajectory.plot = property(_plots)  # type: ignore[attr-defined]
Trajectory.view = _view  # type: ignore[attr-defined]
for _kind, _name in ((Trajectory, "trajectory_html"), (Ensemble, "ensemble_html"), (Method, "method_html")):
    setattr(_kind, "_repr_html_", _shown(_name))  # noqa: B010 - the classes do not know of notebooks

__all__ = [
    "Body", "Ensemble", "Event", "Gradient", "InputError", "Method", "Problem", "Reference", "ResultWarning", "State",
    "StepError", "Surd", "Tableau", "Trajectory", "__version__", "ensemble", "event", "exact", "fields", "gradient",
    "jax", "kinematics", "lie", "load", "math", "methods", "mkrk", "modified_energy", "momentum_rate", "ndim",
    "period", "plots", "potential", "precession_angle", "problems", "solve", "stepper", "surd", "tableaus", "torque",
    "vector", "view", "where",
]  # fmt: skip
