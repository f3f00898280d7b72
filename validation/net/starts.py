"""Bodies, starts, parameters and steps of an ensemble, in each form: every body moves as it does alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from .cases import ATTITUDE, OMEGA, TENSOR
from .check import Cell
from .runs import ROUND_OFF

NUMBER = 3
MOMENTS = np.array([1.0, 1.5, 2.0])
SCALES = 1 + 0.1 * np.arange(NUMBER)
ANGLES = np.outer(SCALES, ATTITUDE[1])
VECTORS = np.outer(SCALES, OMEGA)
BODIES = {"moments": ph.Body(MOMENTS), "tensor": ph.Body(TENSOR)}
HOWS: dict[str, dict[str, Any]] = {
    "dt": {"method": "imidm", "dt": 0.05, "t_end": 1.0}, "tol": {"tol": 1e-9, "t_end": 1.0},
    "step_tol": {"step_tol": 1e-9, "t_end": 1.0},
}  # fmt: skip


@ph.potential
def pull(R: Any, mgl: Any, side: Any) -> Any:
    """A potential with two parameters."""
    return mgl * R[2][2] + side * R[0][1]


FIELD = pull(1.3, 0.2)


def _problem(body: str = "moments", **more: Any) -> ph.Problem:
    return ph.Problem(BODIES[body], **({"field": FIELD, "euler": ATTITUDE, "omega": OMEGA} | more))


def _compare(cell: Cell, what: str, how: str, many: Any, problems: list[ph.Problem], each: Any = ()) -> None:
    """Claim that every body of an ensemble ends where its problem does alone."""
    cell.claim((many.failed < 0).all(), f"{what}: failed in steps {many.failed}")
    run = {"progress": False} | HOWS[how]
    for k, problem in enumerate(problems):
        sol = ph.solve(problem, **run | (each[k] if each else {}))
        ends = (many.quaternion[-1, k], many.momentum[-1, k]), (sol.quaternion[-1], sol.momentum[-1])
        cell.close_states(f"{what}, body {k}", *ends, ROUND_OFF if how == "dt" else 1e-7)


def _vectors(body: str, how: str, cell: Cell) -> None:
    """Angular velocities and momenta in both frames."""
    for name in ("omega", "momentum", "spatial_omega", "spatial_momentum"):
        many = ph.ensemble(_problem(body), **HOWS[how], **{name: VECTORS})
        alone = [_problem(body, **{"omega": None, name: vector}) for vector in VECTORS]
        start = np.array([problem.momentum for problem in alone])
        whole = ph.ensemble(_problem(body), "imidm", dt=0.05, steps=1, every=1, **{name: VECTORS})
        cell.close(f"{name}: start", whole.momentum[0], start, ROUND_OFF)
        _compare(cell, name, how, many, alone)


def _attitudes(body: str, how: str, cell: Cell) -> None:
    """Quaternions, matrices, SciPy rotations, and Euler angles in radians and degrees."""
    from scipy.spatial.transform import Rotation

    rotation = Rotation.from_euler(ATTITUDE[0], ANGLES)
    forms: dict[str, Any] = {
        "quaternions": {"attitude": rotation.as_quat(scalar_first=True)},
        "matrices": {"attitude": rotation.as_matrix()},
        "rotations": {"attitude": rotation},
        "angles": {"euler": (ATTITUDE[0], ANGLES)},
        "degrees": {"euler_deg": (ATTITUDE[0], np.degrees(ANGLES))},
    }
    alone = [_problem(body, euler=(ATTITUDE[0], angles)) for angles in ANGLES]
    for name, given in forms.items():
        _compare(cell, name, how, ph.ensemble(_problem(body), **HOWS[how], **given), alone)


def _parameters(body: str, how: str, cell: Cell) -> None:
    """Parameters for each body, as arrays and in a list of problems."""
    mgl = 1.3 * SCALES
    alone = [_problem(body, field=pull(x, 0.2)) for x in mgl]
    many = ph.ensemble(_problem(body), **HOWS[how], params={"mgl": mgl})
    _compare(cell, "arrays", how, many, alone)
    listed = ph.ensemble(alone, **HOWS[how])
    cell.same("list of problems: momentum", listed.momentum, many.momentum)
    cell.same("list of problems: quaternion", listed.quaternion, many.quaternion)


def _bodies(body: str, how: str, cell: Cell) -> None:
    """Bodies of their own, as arrays and as a list."""
    inertia = np.asarray(BODIES[body].inertia)
    tensors = inertia * SCALES[:, None, None]
    given = np.stack([np.diag(tensor) for tensor in tensors]) if body == "moments" else tensors
    alone = [ph.Problem(ph.Body(one), FIELD, euler=ATTITUDE, momentum=OMEGA) for one in given]
    many = ph.ensemble(_problem(body), **HOWS[how], body=given, momentum=OMEGA)
    _compare(cell, "arrays", how, many, alone)
    listed = ph.ensemble(_problem(body), **HOWS[how], body=[one.body for one in alone], momentum=OMEGA)
    cell.close("list of bodies: momentum", listed.momentum, many.momentum, ROUND_OFF)


def _backwards(body: str, how: str, cell: Cell) -> None:
    """From a later start back to an earlier end."""
    late = _problem(body, t0=1.0)
    back = {"t_end": 0.0} | ({"dt": -0.05} if how == "dt" else {})
    many = ph.ensemble(late, **HOWS[how] | back, omega=VECTORS)
    alone = [_problem(body, t0=1.0, omega=vector) for vector in VECTORS]
    _compare(cell, "backwards", how, many, alone, [back] * NUMBER)


def own_steps(cell: Cell) -> None:
    """A step for each body."""
    dt = np.array([0.05, 0.04, 0.025])
    many = ph.ensemble(_problem(), "imidm", omega=VECTORS, dt=dt, steps=20)
    alone = [_problem(omega=vector) for vector in VECTORS]
    each = [{"dt": step, "steps": 20, "t_end": None} for step in dt.tolist()]
    _compare(cell, "own steps", "dt", many, alone, each)


CHECKS: dict[str, Callable[[str, str, Cell], None]] = {
    "vectors": _vectors, "attitudes": _attitudes, "parameters": _parameters, "bodies": _bodies,
    "backwards": _backwards,
}  # fmt: skip

CELLS: dict[str, Callable[[Cell], None]] = {
    **{
        f"{name}, {body}, {how}": functools.partial(check, body, how)
        for name, check in CHECKS.items() for body in BODIES for how in HOWS
    },
    "own steps": own_steps,
}  # fmt: skip
"""By name."""
