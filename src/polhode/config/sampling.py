"""The varied quantities of a sweep: on a grid, from a list, or random."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from .. import _files
from .toml import Fault, Positive, Strict, Whole, needed, validated, within
from .toml import key as optional

AXES = ("x", "y", "z")
WIDTHS = {"moments": 3, "omega": 3, "momentum": 3, "attitude": 4, "dt": 1}
"""Quantities that can vary besides parameters of the field, with the number of components of each."""

SPREAD_WORDS = {"from", "to", "count", "spacing", "uniform", "normal", "loguniform", "isotropic"}
"""Keys that describe values rather than name a component."""


Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


class Spread(Strict):
    """Numbers from a first to a last value."""

    begin: float = Field(alias="from", description="a number: the first", examples=[1.0])
    end: float = Field(alias="to", description="a number: the last", examples=[2.0])
    count: Whole = needed("a whole number of at least 1: how many", 10)
    spacing: Literal["linear", "log"] = Field("linear", description='"linear" or "log"', examples=["log"])

    def values(self) -> np.ndarray:
        """The numbers."""
        if self.spacing == "linear":
            return np.linspace(self.begin, self.end, self.count)
        if self.begin <= 0 or self.end <= 0:
            raise ValueError(f"spacing = 'log' needs from and to above 0; got {self.begin:g} and {self.end:g}")
        return np.geomspace(self.begin, self.end, self.count)


class Drawn(Strict):
    """A distribution: exactly one of these."""

    uniform: Pair | None = optional("two numbers: from, to", [1.0, 2.0])
    normal: Pair | None = optional("two numbers: mean and standard deviation", [0.0, 1.0])
    loguniform: Pair | None = optional("two numbers above 0: from, to", [0.1, 10.0])
    isotropic: Positive | None = optional("a number above 0: the length", 1.0)

    @model_validator(mode="after")
    def _whole(self) -> Drawn:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of uniform, normal, loguniform, isotropic")
        if self.loguniform is not None and min(self.loguniform) <= 0:
            raise ValueError(f"loguniform needs numbers above 0; got {list(self.loguniform)}")
        if self.normal is not None and self.normal[1] < 0:
            raise ValueError(
                f"the standard deviation, the second number of normal, must not be negative; got {self.normal[1]:g}"
            )
        return self

    def values(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Draw numbers."""
        if self.uniform is not None:
            return rng.uniform(self.uniform[0], self.uniform[1], shape)
        if self.normal is not None:
            return rng.normal(self.normal[0], self.normal[1], shape)
        if self.loguniform is not None:
            low, high = np.log(self.loguniform)
            return np.exp(rng.uniform(low, high, shape))
        if shape[1:] != (3,):
            raise ValueError("isotropic is for a vector: omega or momentum")
        arrows = rng.normal(size=shape)
        return np.asarray((self.isotropic or 0.0) * _unit_rows(arrows))


# --- names and values ------------------------------------------------------------------------------


def _quantities(table: Mapping[str, Any]) -> dict[str, Any]:
    """The varied quantities by full name: ``omega.x`` may be written with a dot or as a table."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        head, _, rest = key.partition(".")
        if head not in (*WIDTHS, "params"):
            near = difflib.get_close_matches(head, [*WIDTHS, "params"], n=1)
            hint = f"did you mean {near[0]}" if near else f"there are {', '.join(WIDTHS)} and params.NAME"
            raise Fault(key, f"{head} cannot vary; {hint}")
        if isinstance(value, dict) and not rest and (head == "params" or not set(value) & SPREAD_WORDS):
            found |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            found[key] = value
    for key in found:
        head, _, rest = key.partition(".")
        if (head == "params") != bool(rest) and not (rest in AXES and WIDTHS.get(head) == 3):
            raise Fault(key, f"must be written {'params.NAME' if head == 'params' else f'{head}.x, .y or .z'}")
    return found


def numbers_in(key: str) -> int | None:
    """Number of components of a quantity; None for a parameter, which may have any number."""
    head, _, rest = key.partition(".")
    return None if head == "params" else 1 if rest else WIDTHS[head]


def _array(key: str, given: Any) -> np.ndarray:
    """Values of a quantity, (n,) or (n, width)."""
    try:
        values = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Fault(key, f"must be a list of numbers; got {given!r}") from None
    width = numbers_in(key)
    right = (1, 2) if width is None else (1,) if width == 1 else (2,)
    if values.ndim not in right or not len(values) or (width not in (None, 1) and values.shape[1] != width):
        what = "numbers" if width in (None, 1) else f"rows of {width} numbers"
        raise Fault(key, f"must be a list of {what}; got {given!r}")
    if not np.isfinite(values).all():
        raise Fault(key, f"must be finite; got {given!r}")
    return values


def _checked(key: str, model: type[Spread] | type[Drawn], value: Any) -> Any:
    if not isinstance(value, dict):
        raise Fault(key, f"must be a distribution such as {{ uniform = [1.0, 2.0] }}; got {value!r}")
    return within(key, lambda given: validated(model, given), value)


def on_grid(table: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Every combination; the last quantity varies fastest."""
    axes = {}
    for key, value in _quantities(table).items():
        try:
            spread = _checked(key, Spread, value).values() if isinstance(value, dict) else value
        except ValueError as fault:
            raise fault if isinstance(fault, Fault) else Fault(key, str(fault)) from None
        axes[key] = _array(key, spread)
    if not axes:
        raise Fault("", "[grid] names no varied quantity; write for example omega.z = [1.0, 2.0]")
    places = np.meshgrid(*(np.arange(len(values)) for values in axes.values()), indexing="ij")
    return {key: values[location.ravel()] for (key, values), location in zip(axes.items(), places, strict=True)}


def in_parallel(table: Mapping[str, Any], folder: Path) -> dict[str, np.ndarray]:
    """The rows of a list, from the sweep file or from the columns of a CSV file whose first line names them."""
    given = dict(table)
    columns = _csv(folder / str(given.pop("csv"))) if "csv" in given else {}
    found = {key: _array(key, value) for key, value in _quantities(columns | given).items()}
    sizes = {key: len(values) for key, values in found.items()}
    if not sizes:
        raise Fault("", "[list] names no varied quantity; write for example omega.z = [1.0, 2.0]")
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{key} {n}" for key, n in sizes.items())
        raise Fault(next(iter(sizes)), f"the lists must have the same length; got {lengths}")
    return found


def _csv(path: Path) -> dict[str, list[float]]:
    try:
        names, *rows = [row for row in csv.reader(_files.text_of(path, "utf-8").split("\n")) if row]
    except (OSError, ValueError, csv.Error) as problem:
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
    """Number of samples, and seed."""

    count: Whole = needed("a whole number of at least 1: the number of bodies", 1000)
    seed: int = needed("a whole number of at least 0: the seed of the random numbers", 1, ge=0)


def at_random(table: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Draw each quantity from its own random stream, so that adding one does not change the others."""
    given = dict(table)
    head = {key: given.pop(key) for key in ("count", "seed") if key in given}
    draws = validated(_Draws, head)
    found = {}
    for key, value in _quantities(given).items():
        rng = np.random.default_rng([draws.seed, *key.encode()])
        if key == "attitude":
            if value != "random":
                raise Fault(key, f'it is drawn by attitude = "random"; got {value!r}')
            found[key] = _unit_rows(rng.normal(size=(draws.count, 4)))
            continue
        width = numbers_in(key) or 1
        shape = (draws.count,) if width == 1 else (draws.count, width)
        try:
            found[key] = _checked(key, Drawn, value).values(rng, shape)
        except ValueError as fault:
            raise fault if isinstance(fault, Fault) else Fault(key, str(fault)) from None
    if not found:
        raise Fault("", "[random] names no varied quantity; write for example omega = { isotropic = 1.0 }")
    return found


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    """Normalise rows. Normalised normal numbers are uniform on the sphere; for quaternions, uniform rotations."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
