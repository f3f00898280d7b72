"""Queries of a step to a field: one class for each kind of call of `torque`.

A step calls ``torque(t, q, m, system, ...)``. The number of arguments after the first four selects the query of
`Method.asks`; queries with different numbers of arguments can be combined with ``&``. The kernels that answer
are built in `physics/queries.py`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar

from ..errors import InputError

VECTOR, NUMBER = "vector", "number"
"""Kinds of parts of an answer."""

Found = TypeVar("Found", bound="FieldQuery")


@dataclasses.dataclass(frozen=True)
class FieldQuery:
    """A query to the field, and the shape of its answer: a bare vector, or a tuple of vectors and numbers.

    Without a field the answer consists of integer zeros (`primitives.absent` recognises them), unless a class states
    otherwise.
    """

    values_only = False
    """Do values of the torque answer it, without derivatives."""

    @property
    def powers(self) -> int:
        """The highest power of angular velocities that a step takes."""
        return 4

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments after (t, q, m, system)."""
        return ()

    @property
    def shape(self) -> tuple[str, ...]:
        """Parts of the answer, each `VECTOR` or `NUMBER`; a single vector is returned without a tuple."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[FieldQuery, ...]:
        """The single queries, by number of arguments."""
        return (self,)

    def find(self, kind: type[Found]) -> Found | None:
        """Return the part of this class, or None."""
        return next((query for query in self.parts if isinstance(query, kind)), None)

    def asked(self, extra: int) -> FieldQuery:
        """Return the query of a call with `extra` arguments after the first four."""
        for query in self.parts:
            if len(query.arguments) == extra:
                return query
        raise LookupError(f"no query with {extra} more arguments is declared; declared: {self}")

    def split(self, answer: Any) -> tuple[Any, ...]:
        """Split an answer into its parts."""
        return answer if len(self.shape) > 1 else (answer,)

    def joined(self, parts: tuple[Any, ...]) -> Any:
        """Build the answer from its parts."""
        return parts if len(self.shape) > 1 else parts[0]

    def __and__(self, other: FieldQuery) -> FieldQuery:
        """Combine both queries; raise an error if the same call would have two different answers."""
        queries = {len(query.arguments): query for query in self.parts}
        for query in other.parts:
            present = queries.setdefault(len(query.arguments), query)
            if present != query:
                call = ", ".join(("t", "q", "m", "system", *query.arguments))
                raise InputError(
                    f"a method cannot ask a field for {present} and for {query}: both would be the answer to "
                    f"torque({call}); combine methods that ask for the same"
                )
        parts = tuple(queries[extra] for extra in sorted(queries))
        return parts[0] if len(parts) == 1 else Together(parts)


@dataclasses.dataclass(frozen=True)
class Together(FieldQuery):
    """Several queries with different numbers of arguments, combined by ``&``."""

    queries: tuple[FieldQuery, ...]

    @property
    def parts(self) -> tuple[FieldQuery, ...]:
        """The single queries, by number of arguments."""
        return self.queries

    @property
    def values_only(self) -> bool:  # type: ignore[override]  # of single queries it is a constant
        """Is this true of all of them."""
        return all(query.values_only for query in self.queries)

    @property
    def powers(self) -> int:
        """The highest of all of them."""
        return max(query.powers for query in self.queries)

    def __str__(self) -> str:
        return "; ".join(map(str, self.queries))


@dataclasses.dataclass(frozen=True)
class Torque(FieldQuery):
    """The torque T."""

    values_only = True
    shape = (VECTOR,)

    def __str__(self) -> str:
        return "torque"


TORQUE = Torque()


@dataclasses.dataclass(frozen=True)
class TorqueAndCorrector(FieldQuery):
    """The torque g of a potential, and the torque of the modified potential V = g^T I^-1 g."""

    shape = (VECTOR, VECTOR)

    def __str__(self) -> str:
        return "torque and corrector"


@dataclasses.dataclass(frozen=True)
class TorqueRates(FieldQuery):
    """The torque and its first derivatives along the motion, N^(n) in the body frame (`physics/torque_rates`)."""

    count: int

    def __post_init__(self) -> None:
        _check_count(self, "count", self.count)

    @property
    def shape(self) -> tuple[str, ...]:
        """The torque and `count` derivatives."""
        return (VECTOR,) * (self.count + 1)

    def __str__(self) -> str:
        return f"torque and {self.count} derivative{'s' * (self.count > 1)} along the motion"


@dataclasses.dataclass(frozen=True)
class TorqueGradient(FieldQuery):
    """Change of the torque, given the angular acceleration: (T', K, K'), K the steepness (`physics/torque_gradient`).

    Without a field the answer consists of zeros of the number type.
    """

    arguments = ("a",)
    shape = (VECTOR, NUMBER, NUMBER)

    def __str__(self) -> str:
        return "rate and steepness of the torque"


ROTATION, ROTATION_AND_WORK, STATE = "rotation", "rotation and work", "state"
SERIES = (ROTATION, ROTATION_AND_WORK, STATE)
"""Contents of a series of the motion: rotation vector and momentum; also the work; or quaternion and momentum."""


@dataclasses.dataclass(frozen=True)
class MotionSeries(FieldQuery):
    """The motion over a time h by Taylor series up to an order; without a field, the motion of the free body.

    `of` is one of `SERIES`: rotation vector and momentum at the end; the same and the change of sum lead_i Pi_i^2 by
    the torque; or the increments of momentum and quaternion (`kernels.state.incremented`).
    """

    order: int
    of: str

    def __post_init__(self) -> None:
        _check_count(self, "order", self.order)
        _check_word(self, "of", self.of, SERIES)

    @property
    def powers(self) -> int:
        """The last coefficient of the velocity, and a product with it."""
        return max(4, self.order + 2)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The time, and for the work also the weights of the squares."""
        return ("h", "lead") if self.of == ROTATION_AND_WORK else ("h",)

    @property
    def shape(self) -> tuple[str, ...]:
        """(Y, Pi), (Y, Pi, work), or the increments."""
        return (VECTOR, VECTOR, *{ROTATION_AND_WORK: (NUMBER,), STATE: (VECTOR,)}.get(self.of, ()))

    def __str__(self) -> str:
        return f"Taylor series of the {self.of} of order {self.order}"


@dataclasses.dataclass(frozen=True)
class HeatBath(FieldQuery):
    """The heat bath of the body (`physics/fields/heat_bath`): (kT, G, G', seed, body, first).

    The friction tensor in principal axes is G = (G11, G22, G33) and G' = (G23, G31, G12); seed, body and first (the
    number of the first step) count the random numbers. The argument h, the step, only tells the call from others.
    """

    values_only = True
    arguments = ("h",)
    shape: ClassVar[tuple[str, ...]] = (NUMBER, VECTOR, VECTOR, NUMBER, NUMBER, NUMBER)
    counters: ClassVar[tuple[int, ...]] = (3, 4, 5)
    """Places of the parts that are whole numbers."""

    def __str__(self) -> str:
        return "heat bath"


@dataclasses.dataclass(frozen=True)
class MeanFriction(HeatBath):
    """The heat bath without the friction between two axes: (kT, G, seed, body, first)."""

    shape = (NUMBER, VECTOR, NUMBER, NUMBER, NUMBER)
    counters = (2, 3, 4)

    def __str__(self) -> str:
        return "heat bath without products of friction"


@dataclasses.dataclass(frozen=True)
class ChainStart(FieldQuery):
    """The thermostat of the body (`physics/fields/thermostat`): (kT, tau, eta_1, ..., v_1, ...) at the start of a run.

    The argument h, the step, only tells the call from others.
    """

    links: int
    values_only = True
    arguments = ("h",)

    def __post_init__(self) -> None:
        _check_count(self, "links", self.links)

    @property
    def shape(self) -> tuple[str, ...]:
        """Temperature, time constant, and position and velocity of every link."""
        return (NUMBER,) * (2 + 2 * self.links)

    def __str__(self) -> str:
        return f"thermostat with a chain of {self.links} link{'s' * (self.links > 1)}"


USES = ("torque", "potential")
"""Use of the potential between two states: the mean torque, or only the change."""


@dataclasses.dataclass(frozen=True)
class DiscreteGradient(FieldQuery):
    """The mean torque and the change of a potential between two states; `use` is one of `USES`.

    A field without a potential answers as if there were no field.
    """

    use: str
    values_only = True  # of a torque: only a potential has a discrete gradient
    arguments = ("t1", "q1", "m1")
    shape = (VECTOR, NUMBER)

    def __post_init__(self) -> None:
        _check_word(self, "use", self.use, USES)

    def __str__(self) -> str:
        return f"discrete gradient ({self.use})"


def _check_count(query: FieldQuery, name: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise InputError(f"{name} of {type(query).__name__} must be a positive whole number; got {value!r}")


def _check_word(query: FieldQuery, name: str, value: Any, words: tuple[str, ...]) -> None:
    if value not in words:
        raise InputError(f"{name} of {type(query).__name__} must be one of {', '.join(words)}; got {value!r}")
