"""Decorators that turn a plain Python function into a torque or a potential."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from ...errors import InputError
from ...symbolic.user_function import plain_function
from ..validate import flag
from .template import FRAMES, FieldTemplate


def template_of(
    function: Any, kind: str, frame: str = "body", forbidden: Sequence[str] = (), rule: str = "", remedy: str = ""
) -> FieldTemplate:
    """Check the arguments of a user's function and make its template.

    `rule` says why some arguments are forbidden, `remedy` how to avoid them.
    """
    plain_function(function, f"@ph.{kind} decorates a plain Python function")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"the {kind} {function.__name__} must name its arguments, which are matched by name; "
                f"got {str(parameter).partition('=')[0]}{' before /' if parameter.kind == 0 else ''}"
            )
        if parameter.name in forbidden:
            raise InputError(f"{rule}; {function.__name__} takes {parameter.name}{remedy}")
    return FieldTemplate(function, kind, frame)


def check_frame(frame: Any) -> str:
    """Return the frame if it is valid, else raise an error."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise InputError(f"frame must be 'body' or 'space'; got {frame!r}", "frame")
    return frame


@overload
def torque(function: Callable[..., Any], *, frame: str = "body", plain: bool = False) -> FieldTemplate: ...
@overload
def torque(
    function: None = None, *, frame: str = "body", plain: bool = False
) -> Callable[[Callable[..., Any]], FieldTemplate]: ...
def torque(function: Any = None, *, frame: str = "body", plain: bool = False) -> Any:
    """Make a torque of a function of t, R, omega (any of them) and parameters.

    ``R[i, j]`` maps body to space, ``omega`` is the body angular velocity; the three numbers returned
    are the torque in the named frame, "body" or "space".

    A function that is a formula (arithmetic, ``math``, ``ph.math``) works with every method. Any other one (branches,
    loops, tables, NumPy) is compiled as it stands if numba can, with the values that it reads from outside as they are
    when the field is first used. Otherwise it is called as plain Python, which is slow and has fixed steps only. Both
    work with every method that needs values of the torque only. With ``plain=True`` it is called as plain Python in any
    case, so that it sees objects that change during the run.

    Examples
    --------
    >>> @ph.torque
    ... def drag(omega, k):
    ...     return [-k * w for w in omega]
    ...
    >>> body = ph.Problem(ph.Body([1.0, 2.0, 3.0]), drag(0.5), omega=[0, 0, 1.0])
    >>> sol = ph.solve(body, "rk4_quat", dt=0.01, t_end=1.0)
    >>> float(sol.omega[-1, 2].round(6))
    0.846482
    """
    check_frame(frame)
    flag("plain", plain)
    if function is None:
        return lambda f: torque(f, frame=frame, plain=plain)
    return dataclasses.replace(template_of(function, "torque", frame), plain=plain)


@overload
def potential(function: Callable[..., Any], *, torque: Any = None) -> FieldTemplate: ...
@overload
def potential(function: None = None, *, torque: Any = None) -> Callable[[Callable[..., Any]], FieldTemplate]: ...
def potential(function: Any = None, *, torque: Any = None) -> Any:
    """Make a potential energy from a function of R and parameters; its torque is derived exactly.

    The optional `torque` is a function of R and the same parameters that returns three numbers in the body frame (or a
    ``@ph.torque(frame="space")``). It is compared with the exact torque at the initial attitude of a problem and at
    six others; a difference beyond round-off is an error.

    Examples
    --------
    >>> @ph.potential
    ... def weight(R, mgl):
    ...     return mgl * R[2][2]
    ...
    >>> top = ph.Problem(ph.Body([5, 5, 1]), weight(20.0), euler_deg=("ZXZ", [0, 17, 0]), omega=[0, 0, 50])
    >>> sol = ph.solve(top, "imidm", dt=0.01, steps=10)
    >>> sol.drift()["energy"] < 1e-6
    True
    """
    if function is None:
        return lambda f: potential(f, torque=torque)
    rule, remedy = "a potential is a function of R (and parameters) alone", ", so make it a @ph.torque"
    made = template_of(function, "potential", forbidden=("t", "omega"), rule=rule, remedy=remedy)
    return made if torque is None else dataclasses.replace(made, by_hand=_by_hand(made, torque))


def _by_hand(potential: FieldTemplate, torque: Any) -> FieldTemplate:
    """The template of the user's torque for a potential: a function of R and the potential's parameters."""
    template = torque if isinstance(torque, FieldTemplate) else template_of(torque, "torque")
    allowed = ["R", *potential.parameters]
    extra = [name for name in template.arguments if name not in allowed]
    if template.kind != "torque" or extra:
        got = f"it takes {', '.join(extra)}" if extra else f"got a {template.kind}"
        raise InputError(
            f"the torque of the potential {potential.function.__name__} must be a function of {', '.join(allowed)} "
            f"that returns three numbers; {got}"
        )
    return template
