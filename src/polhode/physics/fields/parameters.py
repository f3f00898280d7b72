"""Values of the parameters of a field: checked, nested in tuples, flattened, and put back in their shapes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...symbolic.rows import Rows
from ..validate import is_finite_real

if TYPE_CHECKING:
    from .field import Field
    from .template import FieldTemplate

MOST_PARAMETERS = 900
"""Most numbers in the parameters of a field: compiled code takes tuples of fewer than 1000 entries. A column of data
counts as one."""


def changed(template: FieldTemplate, values: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Values of all parameters, with some replaced by new, checked values."""
    new = dict(values)
    for name, value in changes.items():
        if name not in new:
            raise InputError(
                f"{template.user.owner} has no parameter {name!r}; it has {', '.join(template.parameters) or 'none'}"
            )
        for known, check in template.checks:
            value = check(name, value) if known == name else value
        new[name] = checked_value(template, name, Rows.of(value, name) if isinstance(new[name], Rows) else value)
    return new


def checked_value(template: FieldTemplate, name: str, value: Any) -> Any:
    """Convert a parameter to a float or nested tuples of floats, or raise an error."""
    if type(value) is float and value - value == 0.0:  # finite
        return value
    if isinstance(value, Rows):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return tuple(checked_value(template, name, v) for v in value)
    if not is_finite_real(value):
        where = f"parameter {name} of {template.user.owner}"
        raise InputError(f"{where} must be a finite number or a sequence of them; got {value!r}", name)
    return float(value)


def leaves_of(value: Any) -> list[Any]:
    """Numbers of nested tuples, in order; for rows of data, the columns."""
    if isinstance(value, Rows):
        return list(value.columns)
    if not isinstance(value, tuple):
        return [value]
    found: list[Any] = []
    for part in value:
        if type(part) is float:
            found.append(part)
        else:
            found += leaves_of(part)
    return found


def name_of_parameter(field: Field, place: int) -> str:
    """The name of the parameter to which the number at a place belongs; in a sum, its name there."""
    leaves = (name for name, value in field.values.items() for _ in leaves_of(value))
    return next(itertools.islice(leaves, place, None))


def check_size(template: FieldTemplate, count: int) -> None:
    """Refuse more parameters than compiled code can hold."""
    if count > MOST_PARAMETERS:
        raise InputError(
            f"the parameters of a field must be at most {MOST_PARAMETERS} numbers; {template.function.__name__} "
            f"has {count}; remove some of them"
        )


def like(value: Any, leaves: Sequence[Any], start: int = 0) -> tuple[Any, int]:
    """Arrange the leaves, in order, in the shape of `value`; return the result and the next index."""
    if isinstance(value, Rows):
        end = start + len(value.columns)
        return value.like(leaves[start:end]), end
    if not isinstance(value, tuple):
        return leaves[start], start + 1
    items = []
    for v in value:
        item, start = like(v, leaves, start)
        items.append(item)
    return tuple(items), start
