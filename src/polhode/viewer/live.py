"""A page for teaching, with sliders for the body and its initial state; the browser computes the motion.

The page contains the kernel of the method as JavaScript (`ph.emit`), translated from the same source as all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..methods.record import Method
from ..methods.registry import methods
from ..physics import equimomental, library
from ..physics.problem import Problem
from ..physics.triangles import box, cylinder
from ..physics.validate import finite_number, positive
from ..translate.api import emit
from . import COLOURS, checked_title, filled
from .data import SPEEDS, part_data, pleasant
from .delivery import checked, delivered

STEPS = 2500
"""Steps of the motion in the page."""

SLIDERS: Mapping[str, Mapping[str, tuple[str, str, float, float]]] = {
    "top": {
        "I1": ("Moment I₁ = I₂", "", 0.2, 3.0), "I3": ("Moment I₃", "", 0.2, 3.0),
        "mgl": ("Weight m g l", "", 0.0, 2.0), "spin": ("Spin ω₃", "", 0.0, 2.0), "tilt": ("Tilt", "°", 0.0, 170.0),
        "precession": ("First precession", "", -3.0, 3.0),
    },
    "free": {
        "I1": ("Moment I₁", "", 0.2, 3.0), "I2": ("Moment I₂", "", 0.2, 3.0), "I3": ("Moment I₃", "", 0.2, 3.0),
        "spin": ("Spin |ω|", "", 0.0, 2.0), "tilt": ("ω from axis 2", "°", 0.0, 90.0),
    },
}  # fmt: skip
"""For each kind of page its sliders: label, unit, and range, in units of the value for moments, weight and spin."""

ABSOLUTE = ("tilt", "precession")

STARTS: Mapping[str, Mapping[str, float]] = {
    "top": {"I1": 5.0, "I3": 1.0, "mgl": 20.0, "spin": 30.0, "tilt": 25.0, "precession": 0.0},
    "free": {"I1": 1.0, "I2": 2.0, "I3": 2.8, "spin": 3.0, "tilt": 1.0},
}
LARGEST = 1e100
"""Largest value of a slider; its range is wider."""

NAMES = {"top": "Heavy top", "free": "Free body"}
METHODS = {"top": "blanes_moan4(dmv10)", "free": "dmv10"}
"""The method of each kind by default: of order 4 with gravity, of order 10 without a torque."""


def view_live(
    path: str | Path | None = None,
    kind: str = "top",
    *,
    method: str | Method | None = None,
    t_end: float = 20.0,
    title: str = "",
    overwrite: bool = False,
    **start: float,
) -> Path:
    """Write a page with sliders for a body and its initial state; the browser computes the motion. Return its path.

    Without a path a notebook shows the page below the cell; elsewhere it is opened in the browser.

    Parameters
    ----------
    kind : "top", a symmetric heavy top, or "free", a body without torque
    method : the method that the page computes with (default: of order 4 for the top, of order 10 for the free body)
    t_end : duration of the motion
    start : initial values of the sliders. For a top: I1, I3, mgl, spin, tilt (degrees), precession (its
        initial rate). For a free body: I1, I2, I3, spin (the size of omega), tilt (the angle of omega from the second
        axis, degrees)

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> page = ph.view_live(Path(tempfile.mkdtemp()) / "top.html", "top", spin=30.0, tilt=20.0)
    >>> page.name
    'top.html'
    """
    if not isinstance(kind, str) or kind not in SLIDERS:
        raise InputError(f"kind must be {' or '.join(SLIDERS)}; got {kind!r}", "kind")
    strange = [name for name in start if name not in STARTS[kind]]
    if strange:
        raise InputError(f"a {kind} page has no slider {strange[0]!r}; it has {', '.join(STARTS[kind])}", strange[0])
    place, title = checked(path, overwrite), checked_title(title) or NAMES[kind]
    values = {name: _value(name, value) for name, value in (dict(STARTS[kind]) | start).items()}
    how = methods[METHODS[kind] if method is None else method]
    code = emit(how, _example(kind), to="javascript", name="polhode")
    data = {
        "runs": [], "colours": COLOURS, "speeds": SPEEDS, "speed": pleasant(values["spin"], kind == "top"),
        "up": [0.0, 0.0, 1.0] if kind == "top" else [0.0, 1.0, 0.0], "note": "",
        "live": {
            "kind": kind, "steps": STEPS, "end": positive("t_end", t_end), "label": how.name, "name": NAMES[kind],
            "thin": equimomental.THIN, "parts": [part_data(box(1, 1, 1)), part_data(cylinder(1, 1))],
            "sliders": [_slider(kind, name, value) for name, value in values.items()],
        },
    }  # fmt: skip
    kernel = f"const polhodeStep = (() => {{\n{code}\nreturn polhode_step;\n}})();\n"
    return delivered(place, title, filled(title, data, kernel))


def _example(kind: str) -> Problem:
    """A problem with the field of the page."""
    return library.get("fast_top" if kind == "top" else "free_body")


def _value(name: str, value: Any) -> float:
    found = positive(name, value) if name.startswith("I") else finite_number(name, value)
    if abs(found) > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST:g}, which a slider can show; got {found:g}", name)
    return found


def _slider(kind: str, name: str, value: float) -> dict[str, Any]:
    """One slider; its range contains its value."""
    label, unit, low, high = SLIDERS[kind][name]
    if name not in ABSOLUTE:
        low, high = sorted((low * abs(value or 1.0), math.copysign(high, value) * abs(value or 1.0)))
    low, high = min(low, value), max(high, value)
    span = {"min": low, "max": high, "step": "any", "value": value}
    return {"name": name, "label": label, "unit": unit, **span}
