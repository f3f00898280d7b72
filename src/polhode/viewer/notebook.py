"""Notebook display of trajectories, ensembles and methods: a small table, and for a trajectory a picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..methods import citations
from ..methods.record import Method, formatted
from ..results.ensemble import Ensemble
from ..results.observables import thinned_indices
from ..results.trajectory import Trajectory, selected

DRAWN = 2000
"""Most states of a trajectory in its picture."""

INCHES, DPI = 3.4, 100
NAMED = 8
"""Most failed bodies that are named."""


def trajectory_html(sol: Trajectory) -> str:
    """Method, time span and drift of a trajectory, beside its path on the sphere."""
    info = sol.info
    facts = {
        "problem": info.problem or "-", "field": info.field or "none", "method": sol.method or "-",
        "step": info.step or "-", "states": str(len(sol)), "time": _span(sol.t), "status": sol.status,
    }  # fmt: skip
    if sol.error_estimate is not None:
        facts["error, estimated"] = f"{sol.error_estimate:.1e}"
    if len(sol):
        with np.errstate(all="ignore"):  # the status reports a run that blew up
            facts |= {f"drift of {name.replace('_', ' ')}": f"{size:.1e}" for name, size in sol.drift().items()}
    return (
        f'<div style="display: flex; align-items: center; gap: 1em">{_table("Trajectory", facts)}{_picture(sol)}</div>'
    )


def ensemble_html(crowd: Ensemble) -> str:
    """Size, method and failures of an ensemble."""
    lost = np.flatnonzero(crowd.failed >= 0)
    named = ", ".join(f"{i} in step {crowd.failed[i]}" for i in lost[:NAMED])
    more = ", ..." if len(lost) > NAMED else ""
    facts = {
        "bodies": str(len(crowd)), "states of each": str(len(crowd.t)), "time": _span(crowd.t), "method": crowd.method,
        "failed": f"{len(lost)} (body {named}{more})" if len(lost) else "none", "computing": f"{crowd.seconds:.3g} s",
    }  # fmt: skip
    return _table("Ensemble", facts)


def method_html(method: Method) -> str:
    """The declaration of a method, and its source."""
    facts = {name.replace("_", " "): formatted(value) for name, value in method.declaration().items()}
    del facts["name"]
    facts["cite"] = citations.citation(method.cite)
    return _table(f"Method {method.name}", {"what it is": method.summary or "-"} | facts)


def _span(t: np.ndarray) -> str:
    """Format the range from the earliest to the latest time."""
    return f"{np.min(t):g} to {np.max(t):g}" if t.size else "-"


def _table(title: str, facts: Mapping[str, str]) -> str:
    cell = '<td style="text-align: left">'
    rows = "".join(f"<tr>{cell}{html.escape(k)}</td>{cell}{html.escape(v)}</td></tr>" for k, v in facts.items())
    head = f'<tr><th colspan="2" style="text-align: left">{html.escape(title)}</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _picture(sol: Trajectory) -> str:
    """The polhode of a free body, else the path of the third body axis; empty without finite states or matplotlib."""
    kept = thinned_indices(sol.quaternion, sol.momentum, DRAWN)
    if not len(kept):
        return ""
    try:
        from matplotlib.figure import Figure  # without pyplot, so that no figure stays open
    except ImportError:
        return ""
    from ..plots import TrajectoryPlots
    from ..plots.style import titled

    some = Trajectory(selected(sol, kept), sol.info, dense=sol.dense)
    figure: Any = Figure(figsize=(INCHES, INCHES), layout="constrained")
    draw = TrajectoryPlots(some)
    (draw.attitude if sol.info.field else draw.polhode)(ax=figure.add_subplot(projection="3d"))
    titled(figure.axes[0], "", "")  # the table says it
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return f'<img alt="path on the sphere" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"/>'
