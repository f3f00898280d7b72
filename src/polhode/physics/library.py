"""The named problems, each with its end time and, if known, its reference solution."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from ..errors import InputError
from . import equimomental
from .body import Body
from .fields import dipole, distant_centre, gravity, potential
from .fields import soft_wall as wall
from .problem import Problem, Reference
from .shapes import Shape

_MAKERS: dict[str, Callable[[], Problem]] = {}


WORDS = {"t_handle": "T-handle", "zanna_body": "Zanna's body"}
"""Names of problems in words, where they are not the name with spaces."""


@potential
def quadratic(R: Any, k: Any) -> Any:
    """A potential quadratic in R without symmetry: U = k (R12^2 + 2 R23^2 + R31 R32)/2."""
    return k * (R[0][1] ** 2 + 2 * R[1][2] ** 2 + R[2][0] * R[2][1]) / 2


def _references() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("references.json").read_text("utf-8")
    return dict(json.loads(text))


def _reference(name: str) -> Reference | None:
    stored = _references().get(name)
    if stored is None:
        return None
    q, m = ([float(x) for x in stored[key]] for key in ("quaternion", "momentum"))
    rounding = 2.0**-53 * max(abs(x) for x in (*q, *m))  # the file has 34 digits, a Reference stores doubles
    return Reference(
        t=stored["t"],
        quaternion=(q[0], q[1], q[2], q[3]),
        momentum=(m[0], m[1], m[2]),
        error=stored["error"] + rounding,
        source=stored["source"],
    )


def named(maker: Callable[[], Problem]) -> Callable[[], Problem]:
    """Register a problem under its function's name, with its reference solution."""

    def made() -> Problem:
        problem = maker()
        problem.name, problem.reference = maker.__name__, _reference(maker.__name__)
        return problem

    made.__name__, made.__doc__ = maker.__name__, maker.__doc__
    _MAKERS[maker.__name__] = made
    return made


def names() -> list[str]:
    """Names of all named problems."""
    return list(_MAKERS)


def get(name: str) -> Problem:
    """A named problem."""
    return _maker(name)()


def describe(name: str) -> str:
    """First line of a problem's description."""
    return (_maker(name).__doc__ or "").strip().splitlines()[0]


def _maker(name: Any) -> Callable[[], Problem]:
    if not isinstance(name, str) or name not in _MAKERS:
        near = difflib.get_close_matches(str(name), _MAKERS, n=3, cutoff=0.4)
        hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(_MAKERS)}"
        raise InputError(f"unknown problem {name!r}; {hint}. `polhode problems` lists all of them")
    return _MAKERS[name]


def _drawn(look: Callable[[Sequence[float]], tuple[Shape, ...]], moments: Sequence[float]) -> Body:
    """A body with these moments, drawn as a solid that has them."""
    return Body(moments, shapes=look(moments))


@named
def free_body() -> Problem:
    """Torque-free asymmetric body (Krysl 2006, section 5.1, after McLachlan and Zanna)."""
    return Problem(Body([0.9144, 1.098, 1.66]), omega=[0.45549, 0.82623, 0.03476], t_end=100.0, dt=1.0)


def _top(tilt: float, spin: float, dt: float) -> Problem:
    attitude = (math.cos(tilt / 2), math.sin(tilt / 2), 0.0, 0.0)
    body = _drawn(equimomental.cone, [5.0, 5.0, 1.0])
    return Problem(body, gravity(20.0), attitude=attitude, omega=[0.0, 0.0, spin], t_end=20.0, dt=dt)


@named
def slow_top() -> Problem:
    """Slow Lagrangian top, tilt 0.05, spin 5 (Krysl 2006, section 5.2)."""
    return _top(0.05, 5.0, 0.1)


@named
def fast_top() -> Problem:
    """Fast Lagrangian top, tilt 0.3, spin 50 (Krysl 2006, section 5.3, after Simo and Wong)."""
    return _top(0.3, 50.0, 0.04)


def _wall(sign: float) -> Problem:
    return Problem(
        Body([2.0, 3.0, 4.5]), wall(sign, sign * 0.001), spatial_momentum=[2.0, 2.0, 2.0], t_end=20.0, dt=0.5
    )  # fmt: skip


@named
def soft_wall() -> Problem:
    """Body in the potential of Krysl 2006, section 5.4, with the sign as printed (it reproduces his figures).

    U = 1/d - 0.001/d^10, d = 1.1 + R33: Coulomb repulsion, and a singular well behind a barrier.
    """
    return _wall(-1.0)


@named
def coulomb_wall() -> Problem:
    """The same body with the sign described in the text of section 5.4: attraction and a repulsive wall.

    U = -1/d + 0.001/d^10. Chaotic: no reference exists beyond t of a few hundred.
    """
    return _wall(1.0)


@named
def book() -> Problem:
    """A book, nearly flat (Vilmart 2013, Figure 1)."""
    return Problem(_drawn(equimomental.box, [0.376, 0.627, 1.0]), momentum=[0.0, 0.6, -0.8], t_end=40.0, dt=0.5)


@named
def zanna_body() -> Problem:
    """The free body of Zanna's experiments: J = (0.9218, 0.7382, 0.1763), moments J2 + J3, J3 + J1, J1 + J2."""
    a, b, c = 0.9218, 0.7382, 0.1763
    return Problem(Body([b + c, c + a, a + b]), momentum=[0.4165, 0.9072, 0.0588], t_end=10.0, dt=0.5)


def title(name: str) -> str:
    """The name of a problem in words, for titles: "Fast top" for fast_top; other names are the user's own words."""
    return WORDS.get(name) or (name.replace("_", " ").capitalize() if name in _MAKERS else name)


@named
def prism() -> Problem:
    """The free prism with sides 1, 4, 18 of Buss's talk, for 45.2 turns.

    The talk does not state the initial state and the error measure; these reproduce its table of steps best
    (docs/buss.md).
    """
    tilt, turn = math.radians(70.0), math.radians(0.5)
    momentum = [math.sin(tilt) * math.cos(turn), math.sin(tilt) * math.sin(turn), math.cos(tilt)]
    end = 43.21718909128118  # 16276 degrees of rotation
    return Problem(_drawn(equimomental.box, [340 / 325, 1.0, 17 / 325]), momentum=momentum, t_end=end, dt=end / 2048)


@named
def t_handle() -> Problem:
    """A thin T-handle spun near its intermediate axis, which flips periodically: I = (1, 2, 3)."""
    return Problem(_drawn(equimomental.tee, [1.0, 2.0, 3.0]), omega=[0.01, 5.0, 0.0], t_end=20.0, dt=0.1)


ASYMMETRIC = (0.6, 0.8, 1.0)
"""Moments of the body of Hairer and Vilmart."""


def _asymmetric(field: Any) -> Problem:
    """The asymmetric body of Hairer and Vilmart in a field."""
    return Problem(Body(ASYMMETRIC), field, momentum=[1.8, 0.4, -0.9], t_end=10.0, dt=0.2)


@named
def heavy_top() -> Problem:
    """Asymmetric heavy top of Hairer and Vilmart: I = (0.6, 0.8, 1), U = R33. No closed solution exists."""
    return _asymmetric(gravity(1.0))


@named
def dipole_in_field() -> Problem:
    """Asymmetric body with a magnetic dipole in a uniform field."""
    return _asymmetric(dipole((0.3, -0.2, 0.5), (0.4, 0.1, 0.9)))


@named
def libration() -> Problem:
    """Asymmetric body in the gravity gradient of a distant centre on the space z axis."""
    return _asymmetric(distant_centre(Body(ASYMMETRIC), 1.0))


@named
def quadratic_well() -> Problem:
    """Asymmetric body in a potential quadratic in R."""
    return _asymmetric(quadratic(1.0))


__all__ = [
    "book",
    "coulomb_wall",
    "describe",
    "dipole_in_field",
    "fast_top",
    "free_body",
    "get",
    "heavy_top",
    "libration",
    "names",
    "prism",
    "quadratic_well",
    "slow_top",
    "soft_wall",
    "t_handle",
    "zanna_body",
]
