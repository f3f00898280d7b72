"""The last state of a trajectory, printed and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..results import angles
from .console import vector

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

DRIFTS = {
    "spatial_momentum": "spatial momentum",
    "vertical_momentum": "vertical momentum",
    "conserved_momentum": "conserved part of the momentum",
    "momentum_norm": "|momentum|",
}
"""Names of conserved quantities, for readers."""

Euler = Annotated[
    str | None,
    typer.Option(
        "--euler",
        metavar="SEQUENCE",
        help="Also Euler angles in degrees, such as ZYX (upper case: axes of the body; lower case: of space).",
    ),
]

VECTORS = ("quaternion", "momentum", "omega", "spatial_momentum")


def print_state(sol: Trajectory, euler: str | None = None) -> None:
    """Print the last state, every vector with its frame, and its Euler angles on request."""
    sol = sol.last()
    if euler is not None:
        axes = "axes of the body, intrinsic" if euler.isupper() else "axes of space, extrinsic"
        shown = vector(angles.degrees(sol.quaternion[-1], euler))
        typer.echo(f"euler {euler}     {shown}   degrees, body to space, about {axes}")
    if sol.mp is not None:
        for name in ("quaternion", "momentum"):
            for i, text in enumerate(_digits(sol, name)):
                typer.echo(f"{name if i == 0 else '':<14}{text}")
        typer.echo(f"{'':<14}(attitude body to space, scalar first w, x, y, z; momentum in the body frame)")
        return
    typer.echo(f"quaternion    {vector(sol.quaternion[-1])}   body to space, scalar first (w, x, y, z)")
    typer.echo(f"momentum      {vector(sol.momentum[-1])}   body frame")
    typer.echo(f"omega         {vector(sol.omega[-1])}   body frame")
    typer.echo(f"momentum      {vector(sol.spatial_momentum[-1])}   space frame")
    typer.echo(f"energy         {sol.energy[-1]:.12g}")


def state_facts(sol: Trajectory, i: int = -1, euler: str | None = None) -> dict[str, Any]:
    """The i-th state for JSON; numbers of a run with many digits are texts, since JSON's have 16."""
    turned = {} if euler is None else {f"{angles.EULER}{euler}": angles.degrees(sol.quaternion[i], euler)}
    if sol.mp is not None:
        return {"t": float(sol.t[i]), **{name: _digits(sol, name, i) for name in VECTORS}, **turned}
    return {"t": sol.t[i], **{name: getattr(sol, name)[i] for name in VECTORS}, **turned, "energy": sol.energy[i]}


def _digits(sol: Trajectory, name: str, i: int = -1) -> list[str]:
    """The components of a vector in the i-th state, with all digits of the run."""
    import mpmath

    return [mpmath.nstr(x, sol.info.digits or 15) for x in getattr(sol.mp, name)[i]]
