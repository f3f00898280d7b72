"""What a method says about itself, and the book in which all methods stand.

A method is a step kernel plus a declaration. A step is a pure function

    step(h, t, y, system, torque) -> (y_new, residual)

with y = (q, m): attitude quaternion (scalar first, body to space) and body momentum;
system = (inertia, inverse inertia, parameters of the field); torque(t, q, m, system) the body torque;
and residual zero unless an implicit equation was not solved.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ..kernels.loops import Step
from .queries import TORQUE, FieldQuery

Build = Callable[[Callable[[Any], Any]], Step]

NEEDS = ("free", "potential", "attitude", "velocity")
"""Kinds of field, each including those before it: none, U(R), T(t, R), T(t, R, omega)."""

TOP = "top"
"""What a method needs that takes nothing but the Lagrange top: a symmetric body in a uniform field.

Its motion is known at all times. So such a method has no step (`build` is refused), `ph.solve` evaluates the motion at
the times of the steps, and its properties are those with that field. It takes no kind of `NEEDS`, which hold for any
body, not even "free".
"""

CONSERVABLE = (
    *("energy", "spatial_momentum", "momentum_norm"),
    *("energy_midpoint", "spatial_momentum_midpoint", "energy_linear_potential", "energy_potential"),
)
"""What a method may conserve exactly. All for the free body, except the last two: kinetic plus potential
energy of the heavy top, whose potential is linear in R, and with any potential U(R). The midpoint ones hold
for the state after the first half of a method that is a composition of two half steps."""


ENDS = ("start", "end")
"""Where a step may take the torque so that another can use it too."""


class Term(NamedTuple):
    """An energy times h^weight and the product of `times`.

    The energy is a function (m, system) -> (E, dE/dm), or "U" or "V": the potential, or the modified potential.
    """

    energy: Callable[..., Any] | str
    times: tuple[Any, ...] = ()
    weight: int = 1


Flow = tuple[Term, ...]
"""The exact flow of a sum of energies over one unit of time."""


class Estimate(NamedTuple):
    """How a step estimates its own error, by comparison with an embedded method; step control follows from it.

    `build` is like that of a method, for a kernel (h, t, y, system, torque) -> (y_new, attitude error squared, momentum
    error squared). `order` is that of the embedded method: the estimates go as h^(order + 1). `safety` is the part
    taken of the step whose error would be the tolerance.
    """

    build: Build
    order: int
    safety: Fraction = Fraction(9, 10)


@dataclasses.dataclass(frozen=True, eq=False)
class Method:
    """One integrator: its step and everything the library knows about it.

    Attributes
    ----------
    name : the registered name or the expression that makes it, such as ``"mkrk(rk4)"``
    order, order_free : order with a torque and for the free body (`math.inf` if exact)
    symmetric : is the step with -h the inverse of the step with h, torque included
    symplectic : on T*SO(3), free and with a potential; None = unproven
    poisson : is the momentum map of the free body a Poisson map of so(3)*; None = unproven
    implicit : does a step solve an equation
    solves : implicit stages in a step: unknowns that are a number, a vector, or a rotation and a momentum
    torque_evals : distinct points (t, R) at which the torque enters a step (of a processed method, the repeated one)
    torque_at : which ends of the step are among them, "start" and "end"; with both, neighbouring steps share one
    conserves : what is kept exactly, names from `CONSERVABLE`
    needs : the most general field the method takes, one of `NEEDS`; or `TOP`
    cite, where, aliases : key in references.bib, equation, the papers' own labels
    doc : what it is, in one line; then the equations of one step as LaTeX, symbols as in docs/notation.md
    build : makes the step for one number type, given the conversion of exact coefficients to it
    before, after : alike, of a processed method: the change of variables before the first step and the one back where a
        state is looked at; `build` is then the step between them, and the properties are those of all three together
    unprocessed : of a processed method, one step with both, as a method without them
    halves : the two half steps of a composition, else empty
    asks : what the step asks of a field, a query of `queries.py`: which calls of `torque` it makes, and their answers
    linear_bodies : does it take bodies with one zero moment (False if it divides by that moment)
    flat_bodies : does it take bodies in a plane, I3 = I1 + I2 (False if it divides by (I1 + I2 - I3)/2)
    increments : is the step written by increments (`carry.py`), so that `compensated` can be applied to it
    compensated : does a run carry the low parts of the state
    memory : how many numbers a run keeps from step to step beside (q, m), zero before `before` fills them
    base : of a method that chooses its steps (`has_own_time`), the one whose steps it makes
    symplectic_defect : of a step that is not symplectic, where there is a formula: the function (h, psi, system) -> c,
        psi the rotation vector of the step; for the free body the canonical two-form grows by c.(dpsi x dpsi)
    estimated : how a step estimates its errors, where it does: with `tol` the step sizes follow from the estimates
    flows : the exact flows that make the step, in the order in which they act; empty where it is not made of such
    family : the kind of space the method is for where that is not the rotations of a body: "lie", "ndim"; else empty
    """

    name: str
    build: Build
    order: float
    order_free: float
    symmetric: bool | None
    symplectic: bool | None
    poisson: bool | None
    implicit: bool
    solves: int
    torque_evals: int
    conserves: frozenset[str]
    needs: str
    cite: str
    where: str
    doc: str = ""
    aliases: tuple[str, ...] = ()
    halves: tuple[Method, ...] = ()
    family: str = ""
    torque_at: frozenset[str] = frozenset()
    asks: FieldQuery = TORQUE
    linear_bodies: bool = True
    flat_bodies: bool = True
    increments: bool = False
    compensated: bool = False
    memory: int = 0
    base: Method | None = None
    before: Build | None = None
    after: Build | None = None
    unprocessed: Method | None = None
    flows: tuple[Flow, ...] = ()
    estimated: Estimate | None = None
    symplectic_defect: Callable[..., Any] | None = None

    def takes(self, kind: str) -> bool:
        """Can the method take a field of this kind (one of `NEEDS`)."""
        return self.has_step and NEEDS.index(kind) <= NEEDS.index(self.needs)

    @property
    def has_step(self) -> bool:
        """Is it made of steps: False for the exact motion of the Lagrange top, which is evaluated at given times."""
        return self.needs != TOP

    @property
    def has_own_time(self) -> bool:
        """Does a run keep its own time, memory[0], because its steps are not h."""
        return self.base is not None

    @property
    def torque_at_ends(self) -> bool:
        """Is the torque taken at both ends of the step, so that neighbouring steps share one."""
        return self.torque_at == frozenset(ENDS)

    @property
    def estimate_order(self) -> int:
        """Order of the embedded method from which a step estimates its errors; 0 if it does not."""
        return 0 if self.estimated is None else self.estimated.order

    def processors(self, number: Callable[[Any], Any]) -> tuple[Step | None, Step | None]:
        """The steps `before` and `after` in one number type; None where there are none."""
        return self.before and self.before(number), self.after and self.after(number)

    def declaration(self) -> dict[str, Any]:
        """Everything it declares, in the order of its attributes: not the step itself, nor its description."""
        said = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in UNDECLARED}
        return said | {"has_own_time": self.has_own_time, "estimate_order": self.estimate_order}

    def __reduce__(self) -> Any:
        """A method is sent by its name."""
        registry: Any = importlib.import_module("polhode.methods.registry")
        return registry.reduced(self)

    def __copy__(self) -> Method:
        """Itself: methods do not change."""
        return self

    def __deepcopy__(self, memo: Any) -> Method:
        """Itself."""
        return self

    @property
    def summary(self) -> str:
        """First line of the description."""
        return self.doc.splitlines()[0] if self.doc else ""

    @property
    def formula(self) -> str:
        """The rest of the description: the equations of one step, LaTeX between dollar signs, and words about them."""
        return self.doc.partition("\n")[2].strip()

    def __repr__(self) -> str:
        order = "exact" if self.order == math.inf else f"order {self.order}"
        return f"<Method {self.name}: {order}, {'implicit' if self.implicit else 'explicit'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what is declared, and the source."""
        notebook: Any = importlib.import_module("polhode.viewer.notebook")
        return notebook.method_html(self)


UNDECLARED = (
    "build",
    "before",
    "after",
    "estimated",
    "doc",
    "flows",
    "halves",
    "family",
    "base",
    "unprocessed",
    "symplectic_defect",
)
"""Attributes of a method that are no part of its printed declaration."""


def formatted(value: Any) -> str:
    """A declared value as a word."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, float):
        return "exact" if value == math.inf else f"{value:g}"
    if isinstance(value, frozenset | set | tuple | list):
        return ", ".join(sorted(str(v) for v in value)) or "-"
    return str(value)
