"""Registry of the built-in fields."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import InputError
from .field import Field
from .template import FieldTemplate

Maker = TypeVar("Maker", bound=Callable[..., Field])
Check = Callable[[str, Any], Any]

_READY: dict[str, Callable[..., Field]] = {}


def ready(maker: Maker) -> Maker:
    """Register a field under the name of its function."""
    function = maker.function if isinstance(maker, FieldTemplate) else maker
    _READY[function.__name__] = maker
    return maker


def reading(**checks: Check) -> Callable[[FieldTemplate], FieldTemplate]:
    """Validate parameters of a template with functions (name, value) -> value when they are bound."""
    return lambda template: dataclasses.replace(template, checks=tuple(checks.items()))


def names() -> list[str]:
    """Names of all built-in fields."""
    return list(_READY)


def get(name: str) -> Callable[..., Field]:
    """The function that makes a built-in field from its keywords."""
    if not isinstance(name, str) or name not in _READY:
        near = difflib.get_close_matches(str(name), _READY, n=3, cutoff=0.4)
        hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(_READY)}"
        raise InputError(f"unknown field {name!r}; {hint}")
    return _READY[name]


def keywords(name: str) -> dict[str, Any]:
    """The keywords of a built-in field, with their defaults (``inspect.Parameter.empty``: required)."""
    maker = get(name)
    signature = maker.signature if isinstance(maker, FieldTemplate) else inspect.signature(maker)
    return {word: parameter.default for word, parameter in signature.parameters.items()}


def describe(name: str) -> str:
    """Description of a built-in field, with its formula."""
    maker = get(name)
    return inspect.cleandoc((maker.function if isinstance(maker, FieldTemplate) else maker).__doc__ or "")


def make(name: str, body: Any = None, **parameters: Any) -> Field:
    """Make a built-in field by name: ``make("linear_drag", coefficients=0.1)``.

    `body` is passed to the fields that take one and ignored by the others.
    """
    maker, known = get(name), keywords(name)
    unknown = [word for word in parameters if word not in known]
    missing = [
        word for word, default in known.items()
        if default is inspect.Parameter.empty and word not in parameters and word != "body"
    ]  # fmt: skip
    if unknown or missing:
        fault = f"it has no keyword {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise InputError(f"the field {name} takes {', '.join(known)}; {fault}")
    if "body" not in known:
        return maker(**parameters)
    if body is None:
        raise InputError(f"the field {name} needs a body; give it as body=...")
    return maker(body=body, **parameters)
