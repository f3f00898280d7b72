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
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InputError
from ...numbers import floats
from ...symbolic.expression import Expr, lift
from .field import HEAT_BATH, Field
from .parameters import changed
from .template import STATE_ARGUMENTS, FieldTemplate
from .trace import Trace, of_formula


@dataclasses.dataclass(frozen=True)
class SumTemplate(FieldTemplate):
    """Several fields at once; call it with parameters by name to replace their values."""

    parts: tuple[Field, ...] = ()

    @functools.cached_property
    def names(self) -> list[tuple[int, str, str]]:
        """(number of the part, its parameter, the name of that in the sum): the same name, behind that of its field if
        it is not the only one; fields of one name are numbered.
        """
        parameters = Counter(name for part in self.parts for name in part.values)
        fields = Counter(part.name for part in self.parts)
        seen: Counter[str] = Counter()
        found = []
        for i, part in enumerate(self.parts):
            seen[part.name] += 1
            owner = part.name if fields[part.name] == 1 else f"{part.name}{seen[part.name]}"
            found += [(i, name, name if parameters[name] == 1 else f"{owner}_{name}") for name in part.values]
        return found

    @functools.cached_property
    def arguments(self) -> list[str]:
        """Names of the state and of all parameters."""
        return [*STATE_ARGUMENTS, *self.parameters]

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of the parameters of all parts."""
        return [name for _, _, name in self.names]

    @property
    def signature(self) -> inspect.Signature:
        """The parameters, with their values in the parts as defaults."""
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(full, keyword, default=self.parts[i].values[name]) for i, name, full in self.names]
        )

    def __call__(self, *args: Any, **named: Any) -> Field:
        """The sum with other values of some parameters, given by name."""
        if args or not set(named) <= set(self.parameters):
            self._by_name(args, named)  # says so
        values = {full: self.parts[i].values[name] for i, name, full in self.names}
        return self.bound(changed(self, values, named))

    def bound(self, values: Mapping[str, Any]) -> Field:
        """The sum with these values of all parameters."""
        own: list[dict[str, Any]] = [{} for _ in self.parts]
        new = set[int]()
        for i, name, full in self.names:
            own[i][name] = values[full]
            if values[full] is not self.parts[i].values[name]:
                new.add(i)
        made = object.__new__(type(self))
        vars(made).update(vars(self))  # with the names, which are the same
        vars(made)["parts"] = tuple(
            part.template.bound(own[i]) if i in new else part for i, part in enumerate(self.parts)
        )
        return (self.makes or SumField)(made, values)

    def trace_of(self, field: Field, first: int) -> Trace:
        """That of the same sum of formulas."""
        traces = [part.template.trace_of(part, number) for part, number in self.numbered_parts(first)]
        made: Trace = traces[0](("sum", *traces[1:]), Trace)
        return made

    def __reduce__(self) -> Any:
        """The template of a sum that there is."""
        return sum_template, (self.parts,)

    def numbered_parts(self, first: int) -> Iterator[tuple[Field, int]]:
        """The parts, each with the number of its first parameter."""
        for part in self.parts:
            yield part, first
            first += len(part.parameters)


class SumField(Field):
    """A sum of bound fields."""

    template: SumTemplate

    def __repr__(self) -> str:
        return " + ".join(repr(part) for part in self.template.parts)

    def __reduce__(self) -> Any:
        """A sum is sent as its parts."""
        return total, (self.template.parts,)

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Check every part."""
        for part in self.template.parts:
            part.check(t, R, omega, context)

    @property
    def bath(self) -> int | None:  # type: ignore[override]  # of single fields a constant
        """Place of the first parameter of the only heat bath or thermostat; None without one."""
        found = [first + part.bath for part, first in self.template.numbered_parts(0) if part.bath is not None]
        return found[0] if found else None

    @property
    def bath_kind(self) -> tuple[str, int]:  # type: ignore[override]  # of single fields a constant
        """What stands there."""
        return next((part.bath_kind for part in self.template.parts if part.bath is not None), Field.bath_kind)

    @property
    def states(self) -> dict[str, Any]:
        """Initial values of the states of all parts, under their names in the sum."""
        found = self.template.names
        return {full: self.values[full] for i, name, full in found if name in self.template.parts[i].states}

    @of_formula
    def coupled(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The sum of the torques, and the rates of all states, in the order of the parts."""
        parts = [part.numbered(first).coupled for part, first in self.template.numbered_parts(self.first)]
        return _added([force for force, _ in parts]), tuple(rate for _, rates in parts for rate in rates)

    @of_formula
    def energy(self) -> Expr | None:
        """The sum of the potentials where there are any."""
        parts = (part.numbered(first).energy for part, first in self.template.numbered_parts(self.first))
        energies = [U for U in parts if U is not None]
        return functools.reduce(operator.add, energies) if energies else None

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The sum of the torques, and of the potentials where there are any."""
        graphs = [part.numbered(first).graph for part, first in self.template.numbered_parts(self.first)]
        return _added([force for force, _ in graphs]), self.energy

    @property
    def written(self) -> Any:
        """The torque, in the body frame."""
        return self.graph[0]


def _added(forces: list[Any]) -> tuple[Expr, Expr, Expr]:
    """The sum of torques."""
    a, b, c = (functools.reduce(operator.add, (force[i] for force in forces), lift(0)) for i in range(3))
    return a, b, c


def sum_template(parts: tuple[Field, ...]) -> FieldTemplate:
    """The template of a sum of bound fields."""
    return total(parts).template


def total(fields: tuple[Any, ...]) -> Field:
    """The sum of bound fields; nested sums are flattened."""
    parts: list[Field] = []
    for field in fields:
        if not isinstance(field, Field):
            raise InputError(f"a field can be added to a field with its parameters bound; got {field!r}")
        if field.stands_alone:
            raise InputError(field.stands_alone)
        # copies: a part that occurs twice counts as two parts
        addends = field.template.parts if isinstance(field, SumField) else (field,)
        parts += [part.numbered(0) for part in addends]
    baths = [part for part in parts if part.bath is not None]
    if len(baths) > 1:
        hint = ". Add their frictions instead" if {part.bath_kind[0] for part in baths} == {HEAT_BATH} else ""
        raise InputError(f"a body has one heat bath or thermostat; got {baths[0]!r} and {baths[1]!r}{hint}")
    kind = "potential" if all(part.kind == "potential" for part in parts) else "torque"

    def value(t: Any, R: Any, omega: Any, **values: Any) -> Any:
        """The sum in plain Python: a torque in the body frame, or a potential."""
        bound = made.bound(values)
        if kind == "potential":
            return bound.potential_kernel(floats.number)(R, bound.parameters)
        return bound.torque_value(t, R, omega)

    value.__name__ = " + ".join(part.name for part in parts)
    made = SumTemplate(value, kind, "body", parts=tuple(parts))
    checks = [(full, dict(parts[i].template.checks).get(name)) for i, name, full in made.names]
    made = dataclasses.replace(made, checks=tuple((full, check) for full, check in checks if check is not None))
    return made.bound({full: parts[i].values[name] for i, name, full in made.names})
