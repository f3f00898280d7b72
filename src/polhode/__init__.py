"""polhode: the rotation of rigid bodies, accurately, for long times, fast, with its structure kept."""

from . import _interrupt as _  # isort: skip  # noqa: F401 - first, for Ctrl-C while the rest is imported

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from . import jax, lie, ndim, plots
    from .analysis.backward_error import modified_energy
    from .lie.kinematics import kinematics
    from .viewer import view

_LAZY = {
    "jax": "jax",
    "kinematics": "lie.kinematics:kinematics",
    "lie": "lie",
    "modified_energy": "analysis.backward_error:modified_energy",
    "ndim": "ndim",
    "plots": "plots",
    "view": "viewer:view",
}
"""Public names that are imported on first use, because importing them takes long or needs an extra: their modules."""


def __getattr__(name: str) -> Any:
    """Every combinator by its name: ``ph.strang(ph.dmv(10))``, ``ph.yoshida4("imidm")``.

    The names of `_LAZY` are imported when they are asked for.
    """
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        found = importlib.import_module(f"{__name__}.{module}")
        return getattr(found, attribute) if attribute else found
    if name in methods.combinators:
        return methods.combinators[name]
    raise AttributeError(f"module 'polhode' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names: those of `__all__`, and every combinator."""
    return sorted({*__all__, *methods.combinators})


__all__ = [
    "Body", "Ensemble", "Event", "Gradient", "InputError", "Method", "Problem", "Reference", "ResultWarning", "State",
    "StepError", "Surd", "Tableau", "Trajectory", "__version__", "ensemble", "event", "exact", "fields", "gradient",
    "jax", "kinematics", "lie", "load", "math", "methods", "mkrk", "modified_energy", "momentum_rate", "ndim",
    "period", "plots", "potential", "precession_angle", "problems", "solve", "stepper", "surd", "tableaus", "torque",
    "vector", "view", "where",
]  # fmt: skip
