"""Plots. Each function returns (fig, ax), draws into `ax` if it is given, and never calls `show`."""

from .convergence import comparison_plot, convergence_plot, growth_plot, work_precision_plot
from .ensembles import EnsemblePlots
from .free_body import cycle_plot, flip_plot, herpolhode_plot, poinsot_plot, polhode_family
from .panels import bars, side_by_side, stacked
from .sections import poincare
from .style import checked, save
from .trajectories import TrajectoryPlots, drift_plot

__all__ = [
    "EnsemblePlots", "TrajectoryPlots", "bars", "checked", "comparison_plot", "convergence_plot", "cycle_plot",
    "drift_plot", "flip_plot", "growth_plot", "herpolhode_plot", "poincare", "poinsot_plot", "polhode_family", "save",
    "side_by_side", "stacked", "work_precision_plot",
]  # fmt: skip
