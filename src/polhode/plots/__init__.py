"""Plots. Each function returns (fig, ax), draws into `ax` if it is given, and never calls `show`."""

from .convergence import comparison_plot, convergence_plot, growth_plot, work_precision_plot
from .ensembles import EnsemblePlots
from .free_body import cycle_plot, flip_plot, herpolhode_plot, poinsot_plot, polhode_family
from .sections import poincare
from .style import save
from .trajectories import TrajectoryPlots, drift_plot

__all__ = [
    "EnsemblePlots", "TrajectoryPlots", "comparison_plot", "convergence_plot", "cycle_plot", "drift_plot", "flip_plot",
    "growth_plot", "herpolhode_plot", "poincare", "poinsot_plot", "polhode_family", "save", "work_precision_plot",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names, without the submodules."""
    return __all__
