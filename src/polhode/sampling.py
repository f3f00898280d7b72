"""What varies in a sweep: over a grid, from a list, or at random."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from .toml_files import Fault

AXES = ("x", "y", "z")
WIDTHS = {"moments": 3, "omega": 3, "momentum": 3, "attitude": 4, "dt": 1}
"""Quantities that can vary besides parameters of the field, and how many numbers each has."""

SPREAD_WORDS = {"from", "to", "count", "spacing", "uniform", "normal", "loguniform", "isotropic"}
"""Words that describe values, rather than name a component."""


class Strict(BaseModel):
    """Refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", strict=False, allow_inf_nan=False)


def first_fault(problem: ValidationError) -> tuple[str, str]:
    """The key and the text of the first mistake."""
    fault = problem.errors()[0]
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return key, "there is no such key here"
    if fault["type"] == "missing":
        return key, "is missing"
    text = fault["msg"].removeprefix("Value error, ")
    got = "" if isinstance(fault["input"], dict) else f"; got {fault['input']!r}"
    return key, text[0].lower() + text[1:] + got


class Spread(Strict):
    """Numbers from one to another."""

    begin: float = Field(alias="from")
    end: float = Field(alias="to")
    count: PositiveInt
    spacing: Literal["linear", "log"] = "linear"

    def values(self) -> np.ndarray:
        """The numbers."""
        if self.spacing == "linear":
            return np.linspace(self.begin, self.end, self.count)
        if self.begin <= 0 or self.end <= 0:
            raise ValueError("spacing = 'log' needs from and to above 0")
        return np.geomspace(self.begin, self.end, self.count)


class Drawn(Strict):
    """A distribution: exactly one of these."""

    uniform: tuple[float, float] | None = None
    normal: tuple[float, float] | None = None
    loguniform: tuple[float, float] | None = None
    isotropic: PositiveFloat | None = None

    @model_validator(mode="after")
    def _whole(self) -> Drawn:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of uniform, normal, loguniform, isotropic")
        if self.loguniform is not None and min(self.loguniform) <= 0:
            raise ValueError("loguniform needs numbers above 0")
        if self.normal is not None and self.normal[1] < 0:
            raise ValueError("the standard deviation, the second number of normal, must not be negative")
        return self

    def values(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers drawn."""
        if self.uniform is not None:
            return rng.uniform(*self.uniform, shape)
        if self.normal is not None:
            return rng.normal(*self.normal, shape)
        if self.loguniform is not None:
            low, high = np.log(self.loguniform)
            return np.exp(rng.uniform(low, high, shape))
        if shape[1:] != (3,):
            raise ValueError("isotropic is for a vector: omega or momentum")
        arrows = rng.normal(size=shape)
        return np.asarray((self.isotropic or 0.0) * _unit_rows(arrows))


# --- names and values ------------------------------------------------------------------------------


def _quantities(table: Mapping[str, Any]) -> dict[str, Any]:
    """What varies, by its full name: ``omega.x`` may be written with a dot or as a table."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        head, _, rest = key.partition(".")
        if head not in (*WIDTHS, "params"):
            near = difflib.get_close_matches(head, [*WIDTHS, "params"], n=1)
            hint = f"did you mean {near[0]}" if near else f"there are {', '.join(WIDTHS)} and params.NAME"
            raise Fault(key, f"{key} cannot vary; {hint}")
        if isinstance(value, dict) and not rest and (head == "params" or not set(value) & SPREAD_WORDS):
            found |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            found[key] = value
    for key in found:
        head, _, rest = key.partition(".")
        if (head == "params") != bool(rest) and not (rest in AXES and WIDTHS.get(head) == 3):
            raise Fault(key, f"{key} must be written {'params.NAME' if head == 'params' else f'{head}.x, .y or .z'}")
    return found


def numbers_in(key: str) -> int | None:
    """How many numbers a quantity has; None for a parameter, which may have any number."""
    head, _, rest = key.partition(".")
    return None if head == "params" else 1 if rest else WIDTHS[head]


def _array(key: str, given: Any) -> np.ndarray:
    """Values of a quantity, (n,) or (n, width)."""
    try:
        values = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise Fault(key, f"{key} must be a list of numbers; got {given!r}") from None
    width = numbers_in(key)
    right = (1, 2) if width is None else (1,) if width == 1 else (2,)
    if values.ndim not in right or not len(values) or (width not in (None, 1) and values.shape[1] != width):
        what = "numbers" if width in (None, 1) else f"rows of {width} numbers"
        raise Fault(key, f"{key} must be a list of {what}; got {given!r}")
    if not np.isfinite(values).all():
        raise Fault(key, f"{key} must be finite; got {given!r}")
    return values


def _checked(key: str, model: type[Spread] | type[Drawn], value: Any) -> Any:
    if not isinstance(value, dict):
        raise Fault(key, f"{key} must be a distribution such as {{ uniform = [1.0, 2.0] }}; got {value!r}")
    try:
        return model.model_validate(value)
    except ValidationError as problem:
        inner, text = first_fault(problem)
        raise Fault(key, f"{key}: {inner} {text}" if inner else f"{key}: {text}") from None


def on_grid(table: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every combination; the last quantity varies fastest."""
    axes = {}
    for key, value in _quantities(table).items():
        try:
            spread = _checked(key, Spread, value).values() if isinstance(value, dict) else value
        except ValueError as fault:
            raise Fault(key, f"{key}: {fault}" if not isinstance(fault, Fault) else str(fault)) from None
        axes[key] = _array(key, spread)
    if not axes:
        raise Fault("grid", "[grid] names nothing that varies")
    places = np.meshgrid(*(np.arange(len(values)) for values in axes.values()), indexing="ij")
    return {key: values[place.ravel()] for (key, values), place in zip(axes.items(), places, strict=True)}


def in_parallel(table: Mapping[str, Any], folder: Path) -> dict[str, np.ndarray]:
    """The rows of a list, from the file itself or from columns of a CSV file whose first line names them."""
    given = dict(table)
    columns = _csv(folder / str(given.pop("csv"))) if "csv" in given else {}
    found = {key: _array(key, value) for key, value in _quantities(columns | given).items()}
    sizes = {key: len(values) for key, values in found.items()}
    if not sizes:
        raise Fault("list", "[list] names nothing that varies")
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{key} {n}" for key, n in sizes.items())
        raise Fault(next(iter(sizes)), f"the lists must have the same length; got {told}")
    return found


def _csv(path: Path) -> dict[str, list[float]]:
    try:
        with path.open(newline="") as file:
            names, *rows = [row for row in csv.reader(file) if row]
    except (OSError, ValueError) as problem:
        raise Fault("csv", f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    found: dict[str, list[float]] = {name.strip(): [] for name in names}
    for i, row in enumerate(rows, 2):
        try:
            for name, cell in zip(found, row, strict=True):
                found[name].append(float(cell))
        except ValueError:
            raise Fault("csv", f"{path}, line {i}: expected {len(found)} numbers, got {','.join(row)!r}") from None
    return found


class _Draws(Strict):
    """How many, and from which stream."""

    count: PositiveInt
    seed: int = Field(ge=0)


def at_random(table: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Numbers drawn: each quantity from its own stream, so that adding one leaves the others as they were."""
    given = dict(table)
    head = {key: given.pop(key) for key in ("count", "seed") if key in given}
    try:
        draws = _Draws.model_validate(head)
    except ValidationError as problem:
        key, text = first_fault(problem)
        raise Fault(key or "random", f"[random] {key}: {text}") from None
    found = {}
    for key, value in _quantities(given).items():
        rng = np.random.default_rng([draws.seed, *key.encode()])
        if key == "attitude":
            if value != "random":
                raise Fault(key, f'{key} is drawn by attitude = "random"; got {value!r}')
            found[key] = _unit_rows(rng.normal(size=(draws.count, 4)))
            continue
        width = numbers_in(key) or 1
        shape = (draws.count,) if width == 1 else (draws.count, width)
        try:
            found[key] = _checked(key, Drawn, value).values(rng, shape)
        except ValueError as fault:
            raise Fault(key, f"{key}: {fault}" if not isinstance(fault, Fault) else str(fault)) from None
    if not found:
        raise Fault("random", "[random] names nothing that varies")
    return found


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    """Directions of normal numbers are uniform: on the sphere of quaternions, all rotations alike."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
