"""The record of a method: its step and its declaration.

A step is a pure function

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

Build = Callable[[Any], Step]
"""Makes the step for a number type; in `lie` and `ndim`, for what stands there in its place."""

NEEDS = ("free", "potential", "attitude", "velocity")
"""Kinds of field, each including those before it: none, U(R), T(t, R), T(t, R, omega)."""

TOP = "top"
"""The need of a method for the Lagrange top only: a symmetric body in a uniform field.

Its motion is known at all times. So such a method has no step (`build` raises an error), `ph.solve` evaluates the
motion at the times of the steps, and its properties hold with that field. It takes none of the kinds in `NEEDS`, not
even "free", because these are for any body.
"""

CONSERVABLE = (
    *("energy", "spatial_momentum", "momentum_norm"),
    *("energy_midpoint", "spatial_momentum_midpoint", "energy_linear_potential", "energy_potential"),
)
"""Quantities that a method may conserve exactly. All refer to the free body, except the last two: kinetic plus
potential energy of the heavy top, whose potential is linear in R, and with any potential U(R). The midpoint ones
hold for the state after the first half of a method that is a composition of two half steps."""


ENDS = ("start", "end")
"""Points at which a step may evaluate the torque so that the neighbouring step can reuse it."""


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
    """Error estimate of a step by comparison with an embedded method, for step control.

    `build` makes, as for a method, a kernel (h, t, y, system, torque) -> (y_new, attitude error squared, momentum
    error squared). `order` is the order of the embedded method: the estimates scale as h^(order + 1). The next step is
    `safety` times the step whose error would equal the tolerance.
    """

    build: Build
    order: int
    safety: Fraction = Fraction(9, 10)


LANGEVIN, OVERDAMPED, RESCALING = "langevin", "overdamped", "rescaling"
"""Equations of a body in a heat bath of temperature kT and friction tensor Gamma:

- langevin: dR = R hat(omega) dt, dPi = (Pi x omega + T(R) - Gamma omega) dt + sqrt(2 kT Gamma) dW, omega = I^-1 Pi
- overdamped: dR = R hat(Gamma^-1 T dt + sqrt(2 kT Gamma^-1) o dW), without inertia
- rescaling: dPi = (Pi x omega + T(R)) dt + ((f - 1) kT/(2 K) - 1) g Pi dt + sqrt(g kT/K) Pi dW, K the kinetic energy of
  f degrees of freedom and g = tr(Gamma I^-1)/f, so that noise and friction act along the momentum only
"""


class Noise(NamedTuple):
    """The declaration of a method with noise.

    Attributes
    ----------
    weak_order : order of the error of expectations E f(R, Pi) at the end of a run
    invariant_measure : order of the error of the stationary distribution, exp(-H/kT) with a potential; `math.inf` if
        it is exact, None if there is none near
    invariant_measure_free : the same for the free body
    vectors : number of vectors of three normal numbers in a step
    driven : builds the step from the conversion of exact coefficients and a kernel normals(seed, body, step, k), the
        k-th vector of normal numbers of a step; `build` takes those of `numbers.philox`
    equation : the equation to which these orders refer, `LANGEVIN`, `OVERDAMPED` (the momentum then has no meaning, and
        the orders of the method refer to it too) or `RESCALING`
    """

    weak_order: int
    invariant_measure: float | None
    invariant_measure_free: float | None
    vectors: int
    driven: Callable[..., Step]
    equation: str = LANGEVIN


CHAIN_ENERGY = "chain_energy"
"""Name of the state of a run that is the energy of a Nosé-Hoover chain."""


class Thermostat(NamedTuple):
    """The declaration of a method with a Nosé-Hoover chain (`kernels/nose_hoover`).

    The orders of such a method refer to the equations of attitude, momentum and chain together.

    Attributes
    ----------
    links : number of links of the chain
    extended_energy : order of the change of the energy of body and chain over a time, with a potential; a lower bound
        if the method is not symmetric and does not keep the measure
    extended_energy_free : the same for the free body
    extended_measure : whether a step keeps the measure exp(f eta_1 + eta_2 + ...) dR dPi deta dv, free and with a
        potential; None = unproven
    """

    links: int
    extended_energy: float
    extended_energy_free: float
    extended_measure: bool | None


@dataclasses.dataclass(frozen=True, eq=False)
class Method:
    """One integrator: its step and its properties.

    Attributes
    ----------
    name : the registered name or the expression that builds it, such as ``"mkrk(rk4)"``
    order, order_free : order with a torque and for the free body (`math.inf` if exact)
    symmetric : whether the step with -h is the inverse of the step with h, torque included
    symplectic : on T*SO(3), free and with a potential; None = unproven
    poisson : whether the momentum map of the free body is a Poisson map of so(3)*; None = unproven
    implicit : whether a step solves an equation
    solves : implicit stages in a step: unknowns that are a number, a vector, or a rotation and a momentum
    torque_evals : distinct points (t, R) at which the torque enters a step (for a processed method, the repeated step)
    torque_at : the ends of the step among them, "start" and "end"; with both, neighbouring steps share one
    conserves : quantities conserved exactly, names from `CONSERVABLE`
    needs : the most general field the method takes, one of `NEEDS`; or `TOP`
    cite, where, aliases : key in references.bib, equation, names in the papers
    doc : one line of description; then the equations of one step as LaTeX, symbols as in docs/notation.md
    build : builds the step for one number type, given the conversion of exact coefficients to it
    before, after : for a processed method, builders of the change of variables before the first step and of its inverse
        for output; `build` is then the step between them, and the properties are those of all three together
    unprocessed : for a processed method, one step with both changes of variables, as an ordinary method
    halves : the two half steps of a composition, else empty
    asks : the query of the step to the field (`queries.py`): its calls of `torque` and their answers
    linear_bodies : whether it takes bodies with one zero moment (False if it divides by that moment)
    flat_bodies : whether it takes planar bodies, I3 = I1 + I2 (False if it divides by (I1 + I2 - I3)/2)
    increments : whether the step is written by increments (`kernels/state.py`), so that `compensated` applies to it
    compensated : whether a run carries the low parts of the state
    memory : count of numbers a run carries from step to step besides (q, m), zero before `before` fills them
    states : names and shapes of the numbers that stand first in this memory and are kept with every state of a run
    base : for a method that chooses its steps (`has_own_time`), the method whose steps it makes
    symplectic_defect : for a step that is not symplectic, if there is a formula: the function (h, psi, system) -> c,
        psi the rotation vector of the step; for the free body the canonical two-form grows by c.(dpsi x dpsi)
    sequence, drift : for a kick-drift scheme, its kicks and drifts (and steps of friction and noise) in the order in
        which they act, and the free flow of the drifts; so kicks can be made outside of the step
    estimated : the error estimate of a step, if it has one: with `tol` the step sizes follow from it
    flows : the exact flows that compose the step, in the order in which they act; empty if there are none
    noise : for a method with noise, which needs a heat bath, its declaration; `order` is that without friction
    thermostat : for a method with a Nosé-Hoover chain, which needs a thermostat, its declaration
    family : the kind of space the method is for, if not the rotations of a body: "lie", "ndim"; else empty

    Examples
    --------
    >>> method = ph.methods["imidm"]
    >>> method.order, method.implicit, method.symplectic
    (2, True, False)
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
    sequence: tuple[Any, ...] = ()
    drift: Method | None = None
    estimated: Estimate | None = None
    symplectic_defect: Callable[..., Any] | None = None
    noise: Noise | None = None
    thermostat: Thermostat | None = None
    states: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def takes(self, kind: str) -> bool:
        """Whether the method takes a field of this kind (one of `NEEDS`)."""
        return self.has_step and NEEDS.index(kind) <= NEEDS.index(self.needs)

    @property
    def has_step(self) -> bool:
        """Whether it has a step: False for the exact motion of the Lagrange top, which is evaluated at given times."""
        return self.needs != TOP

    @property
    def has_own_time(self) -> bool:
        """Whether a run carries its own time, memory[0], because its steps are not h."""
        return self.base is not None

    @property
    def kept_memory(self) -> int:
        """Count of numbers of the memory that are written after a state: its own time, or the `states`."""
        return 1 if self.has_own_time else sum(math.prod(shape) for _, shape in self.states)

    @property
    def torque_at_ends(self) -> bool:
        """Whether the torque is evaluated at both ends of the step, so that neighbouring steps share one."""
        return self.torque_at == frozenset(ENDS)

    @property
    def estimate_order(self) -> int:
        """Order of the embedded method from which a step estimates its errors; 0 if it does not."""
        return 0 if self.estimated is None else self.estimated.order

    def processors(self, number: Callable[[Any], Any]) -> tuple[Step | None, Step | None]:
        """Return the steps `before` and `after` in one number type; None if there are none."""
        return self.before and self.before(number), self.after and self.after(number)

    def declaration(self) -> dict[str, Any]:
        """Return all declared properties, in the order of its attributes, without the step and the description."""
        declared = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in UNDECLARED}
        declared |= {"has_own_time": self.has_own_time, "estimate_order": self.estimate_order}
        return declared | self._noise | ({} if self.thermostat is None else self.thermostat._asdict())

    @property
    def _noise(self) -> dict[str, Any]:
        """Declared properties of the noise; nothing without noise."""
        return {} if self.noise is None else {name: getattr(self.noise, name) for name in NOISE}

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
        """Rest of the description: the equations of one step, LaTeX between dollar signs, and their explanation."""
        return self.doc.partition("\n")[2].strip()

    def __repr__(self) -> str:
        order = "exact" if self.order == math.inf else f"order {self.order}"
        return f"<Method {self.name}: {order}, {'implicit' if self.implicit else 'explicit'}>"

    def _repr_html_(self) -> str:
        """HTML for a notebook: the declaration and the source."""
        notebook: Any = importlib.import_module("polhode.viewer.notebook")
        return notebook.method_html(self)


UNDECLARED = (
    "build",
    "before",
    "after",
    "estimated",
    "doc",
    "flows",
    "sequence",
    "drift",
    "halves",
    "family",
    "base",
    "unprocessed",
    "symplectic_defect",
    "noise",
    "thermostat",
    "states",
)
"""Attributes of a method that are not part of its printed declaration."""

NOISE = ("weak_order", "invariant_measure", "invariant_measure_free", "vectors", "equation")
"""Attributes of `Noise` that are printed."""


def formatted(value: Any) -> str:
    """Format a declared value as text."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "-"
    if isinstance(value, float):
        return "exact" if value == math.inf else f"{value:g}"
    if isinstance(value, frozenset | set | tuple | list):
        return ", ".join(sorted(str(v) for v in value)) or "-"
    return str(value)
