"""Sums of fields.

A sum of potentials is a potential. A sum that contains a torque is a torque. Its energy is the kinetic energy plus the
potentials of the parts that have one, so the energy changes by the work of the other parts.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
from collections import Counter
from typing import Any

from ...errors import InputError
from ...numbers import floats
from ...symbolic.expression import Expr, lift
from .field import STATE_ARGUMENTS, Field, FieldTemplate


@dataclasses.dataclass(frozen=True)
class SumTemplate(FieldTemplate):
    """Several fields at once; call it with parameters by name to replace their values."""

    parts: tuple[Field, ...] = ()

    @property
    def names(self) -> list[tuple[Field, str, str]]:
        """(part, its parameter, name of that parameter in the sum). The name is prefixed with the field's name if it
        is not unique; fields with equal names are numbered.
        """
        parameters = Counter(name for part in self.parts for name in part.values)
        fields = Counter(part.name for part in self.parts)
        seen: Counter[str] = Counter()
        names = []
        for part in self.parts:
            seen[part.name] += 1
            owner = part.name if fields[part.name] == 1 else f"{part.name}{seen[part.name]}"
            names += [(part, name, name if parameters[name] == 1 else f"{owner}_{name}") for name in part.values]
        return names

    @property
    def arguments(self) -> list[str]:
        """Names of the state and of all parameters."""
        return [*STATE_ARGUMENTS, *self.parameters]

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters of all parts."""
        return [name for _, _, name in self.names]

    @property
    def signature(self) -> inspect.Signature:
        """The parameters, with their values in the parts as defaults."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(full, keyword, default=part.values[name]) for part, name, full in self.names]
        )

    def bound(self, values: dict[str, Any]) -> Field:
        """The sum with these values of all parameters."""
        values_of: dict[int, dict[str, Any]] = {id(part): {} for part in self.parts}
        for part, name, full in self.names:
            values_of[id(part)][name] = values[full]
        parts = tuple(part.template.bound(values_of[id(part)]) for part in self.parts)
        return SumField(dataclasses.replace(self, parts=parts), values)


class SumField(Field):
    """A sum of bound fields."""

    template: SumTemplate

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.template.parts)

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check every part."""
        for part in self.template.parts:
            part.check(t, R, omega, context)

    @functools.cached_property
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The sum of the torques, and of the potentials if there are any."""
        graphs, first = [], self.first
        for part in self.template.parts:
            graphs.append(part.numbered(first).graph)
            first += len(part.parameters)
        torque = tuple(functools.reduce(operator.add, (force[i] for force, _ in graphs), lift(0)) for i in range(3))
        energies = [U for _, U in graphs if U is not None]
        return (torque[0], torque[1], torque[2]), functools.reduce(operator.add, energies) if energies else None

    @property
    def written(self) -> Any:
        """The torque, in the body frame."""
        return self.graph[0]


def total(fields: tuple[Any, ...]) -> Field:
    """The sum of bound fields; nested sums are flattened."""
    parts: list[Field] = []
    for field in fields:
        if not isinstance(field, Field):
            raise InputError(f"a field can be added to a field with its parameters bound; got {field!r}")
        # copies: a part that occurs twice counts as two parts
        addends = field.template.parts if isinstance(field, SumField) else (field,)
        parts += [part.numbered(0) for part in addends]
    kind = "potential" if all(part.kind == "potential" for part in parts) else "torque"

    def value(t: Any, R: Any, omega: Any, **values: Any) -> Any:
        """The sum in plain Python: a torque in the body frame, or a potential."""
        bound = made.bound(values)
        if kind == "potential":
            return bound.potential_kernel(floats.number)(R, bound.parameters)
        return bound.torque_value(t, R, omega)

    value.__name__ = " + ".join(part.name for part in parts)
    made = SumTemplate(value, kind, "body", parts=tuple(parts))
    checks = [(full, dict(part.template.checks).get(name)) for part, name, full in made.names]
    made = dataclasses.replace(made, checks=tuple((full, check) for full, check in checks if check is not None))
    return made.bound({full: part.values[name] for part, name, full in made.names})
