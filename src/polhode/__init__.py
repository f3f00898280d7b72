"""polhode: accurate and fast structure-preserving integration of rigid-body rotation over long times."""

from . import _interrupt as _  # isort: skip  # noqa: F401 - first, for Ctrl-C while the rest is imported

from typing import TYPE_CHECKING, Any

from . import actuators, fields, formats, math, measurements, problems, tableaus, thermostats, vector
from ._extras import needed as _needed
from ._version import __version__
from .errors import InputError, ResultWarning, StepError
from .methods import Method, methods, mkrk
from .methods.tables.butcher import Tableau
from .numbers.exact import Surd, surd
from .numbers.primitives import where
from .physics.body import Body
from .physics.control.controller import controller
from .physics.ephemeris import Ephemeris
from .physics.facets import Facets
from .physics.fields import potential, states, torque
from .physics.fields.momentum_rate import momentum_rate
from .physics.observers.event import Event, event
from .physics.orbits import Orbit
from .physics.periodic_box import PeriodicBox
from .physics.problem import Problem, Reference
from .physics.varying_body import VaryingBody
from .results.covariance import Covariance
from .results.ensemble import Ensemble
from .results.trajectory import Trajectory
from .run.batch_stepper.api import batch_stepper
from .run.batch_stepper.respa import Respa, respa
from .run.chaos import Chaos, ChaosMap, chaos, chaos_map
from .run.ensemble.api import ensemble
from .run.exact import exact
from .run.fit.api import fit
from .run.fit.result import Fit
from .run.gradient import Gradient, gradient
from .run.loaded import load
from .run.lyapunov import Lyapunov, lyapunov
from .run.poinsot import period, precession_angle
from .run.propagator import FinalState, Propagator, propagator
from .run.sites import Sites, sites
from .run.solve import solve
from .run.stepper import State, stepper
from .run.tangent import Tangent
from .run.tumbling import Tumbling, tumbling
from .run.warm import warm
from .symbolic.total import total

if TYPE_CHECKING:
    from . import jax, lie, ndim, plots
    from .analysis.backward_error import modified_energy
    from .lie.kinematics import kinematics
    from .lie.strapdown import strapdown
    from .translate.api import emit
    from .viewer import view
    from .viewer.animation import animate
    from .viewer.live import view_live
    from .viewer.many import view_many

taylor = methods.combinators["taylor"]
"""The combinator, as all others; the imports above have bound the name to the folder of the same name."""

_LAZY = {
    "emit": "translate.api:emit",
    "jax": "jax",
    "kinematics": "lie.kinematics:kinematics",
    "lie": "lie",
    "modified_energy": "analysis.backward_error:modified_energy",
    "ndim": "ndim",
    "plots": "plots",
    "strapdown": "lie.strapdown:strapdown",
    "animate": "viewer.animation:animate",
    "view": "viewer:view",
    "view_live": "viewer.live:view_live",
    "view_many": "viewer.many:view_many",
}
"""Modules of the public names imported on first use, because the import is slow or needs an optional dependency."""


def __getattr__(name: str) -> Any:
    """Return a combinator by its name: ``ph.strang(ph.dmv(10))``, ``ph.yoshida4("imidm")``.

    The names in `_LAZY` are imported on first use.
    """
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        imported = _needed(f"{__name__}.{module}")
        return getattr(imported, attribute) if attribute else imported
    if name in methods.combinators:
        return methods.combinators[name]
    raise AttributeError(f"module 'polhode' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names: `__all__` and every combinator."""
    return sorted({*__all__, *methods.combinators})


__all__ = [
    "Body", "Chaos", "ChaosMap", "Covariance", "Ensemble", "Ephemeris", "Event", "Facets", "FinalState", "Fit",
    "Gradient", "InputError", "Lyapunov", "Method", "Orbit", "PeriodicBox", "Problem", "Propagator", "Reference",
    "Respa", "ResultWarning", "Sites", "State", "StepError", "Surd", "Tableau", "Tangent", "Trajectory", "Tumbling",
    "VaryingBody", "__version__", "actuators", "animate", "batch_stepper", "chaos", "chaos_map", "controller", "emit",
    "ensemble", "event", "exact", "fields", "fit", "formats", "gradient", "jax", "kinematics", "lie", "load",
    "lyapunov", "math", "measurements", "methods", "mkrk", "modified_energy", "momentum_rate", "ndim", "period",
    "plots", "potential", "precession_angle", "problems", "propagator", "respa", "sites", "solve", "states",
    "stepper", "strapdown", "surd", "tableaus", "thermostats", "torque", "total", "tumbling", "vector", "view",
    "view_live", "view_many", "warm", "where",
]  # fmt: skip
