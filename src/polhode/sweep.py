"""Sweeps: a problem with some of its numbers varied over a grid, a list or at random, from a TOML file.

    [problem]  a named problem, or moments, field, params, attitude and one of omega, momentum
    [run]      method, dt, steps or t_end, every, statistics, device
    [grid]     every combination of the values given;  or
    [list]     the first values of all, the second values of all, ...;  or
    [random]   count, seed, and a distribution for each

What can vary: `moments`, `omega`, `momentum` (whole, or by component as `omega.x`), `attitude`, `params.NAME`, `dt`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from . import fields, problems
from .body import Body
from .ensemble import Task, prepared
from .errors import InputError
from .fields import Field as BoundField
from .fields import FieldTemplate
from .problem import Problem
from .sampling import AXES, Strict, at_random, first_fault, in_parallel, numbers_in, on_grid
from .solve import number_of_steps
from .statistics import PARTS, WORDS
from .toml_files import Fault, python_field
from .units import cores

EXAMPLE = """\
# Tops with different spins and weights: 5 x 41 of them, each through 20 time units.
[problem]
name = "fast_top"            # `polhode problems` lists them; or moments, field, params, attitude, omega

[run]
method = "imidm"             # `polhode methods` lists them
dt = 0.01
t_end = 20.0                 # or steps
every = 100                  # states kept; without it the first and the last
# statistics = ["energy"]    # instead of a path: first, last, min, max, mean and drift over every step

[grid]                       # every combination; [list] takes them in parallel, [random] draws them
params.mgl = [10, 15, 20, 25, 30]
omega.z = { from = 10, to = 50, count = 41 }

# [random]
# count = 1000
# seed = 1
# attitude = "random"                      # all rotations alike
# momentum = { isotropic = 5.0 }           # all directions alike, of this length
# params.mgl = { normal = [20.0, 1.0] }    # mean and standard deviation; or uniform, loguniform = [from, to]
"""


# --- what a file says -------------------------------------------------------------------------------


class ProblemPart(Strict):
    """The problem all bodies have in common."""

    name: str | None = None
    moments: list[Any] | None = None
    field: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    attitude: list[float] | None = None
    omega: list[float] | None = None
    momentum: list[float] | None = None
    t0: float = 0.0

    @model_validator(mode="after")
    def _whole(self) -> ProblemPart:
        if self.name is None and self.moments is None:
            raise ValueError("give the name of a problem, or moments = [I1, I2, I3]")
        if self.name is not None and (self.moments is not None or self.field is not None):
            raise ValueError("a named problem has its moments and field already; leave out name, or the others")
        if self.omega is not None and self.momentum is not None:
            raise ValueError("give omega or momentum, not both")
        return self


class RunPart(Strict):
    """How it is run."""

    method: str
    dt: PositiveFloat | None = None
    steps: PositiveInt | None = None
    t_end: float | None = None
    every: PositiveInt | None = None
    statistics: list[Literal[tuple(WORDS)]] | None = Field(None, min_length=1)  # type: ignore[valid-type]
    device: Literal["cpu", "cuda"] = "cpu"

    @model_validator(mode="after")
    def _whole(self) -> RunPart:
        if self.steps is not None and self.t_end is not None:
            raise ValueError("give steps or t_end, not both")
        return self


class SweepFile(Strict):
    """A whole file."""

    problem: ProblemPart
    run: RunPart
    grid: dict[str, Any] | None = None
    list_: dict[str, Any] | None = Field(None, alias="list")
    random: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _whole(self) -> SweepFile:
        if sum(part is not None for part in (self.grid, self.list_, self.random)) != 1:
            raise ValueError("give exactly one of [grid], [list], [random]")
        return self


# --- the sweep --------------------------------------------------------------------------------------


class Sweep:
    """A file that was read and checked: `task` to run, and what varies, a number for each body, in `labels`."""

    def __init__(
        self, said: SweepFile, columns: dict[str, np.ndarray], folder: Path, text: str, allow_code: bool = False
    ) -> None:
        self.text, self.said, self.allow_code = text, said, allow_code
        self.columns = columns
        self.number = len(next(iter(columns.values())))
        self.task = self._task(folder)

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """What varies, by component: a number for each body."""
        found: dict[str, np.ndarray] = {}
        for key, values in self.columns.items():
            words = ("w", *AXES) if key == "attitude" else AXES if numbers_in(key) == 3 else range(9999)
            found |= (
                {key: values} if values.ndim == 1 else {f"{key}.{w}": v for w, v in zip(words, values.T, strict=False)}
            )
        return found

    def _task(self, folder: Path) -> Task:
        said, run = self.said.problem, self.said.run
        base = problems.get(said.name) if said.name else self._problem(said, folder)
        moments = self._vector("moments", base.body.moments)
        if base.body.has_own_axes and not self._varies("moments"):
            bodies: Any = base.body
        elif base.body.has_own_axes:
            raise Fault("moments", "moments vary, so give principal moments in [problem], not a tensor")
        else:
            bodies = [Body(row) for row in moments] if moments.shape == (3, 3) else moments  # that could be a tensor
        attitude = self.columns.get("attitude", np.array(said.attitude or base.quaternion))
        dt, steps = self._steps(base)
        return prepared(
            bodies, attitude, self._momenta(said, base, moments), run.method,
            field=self._field(said, base), params=self._params(base),
            dt=dt, steps=steps, every=run.every, t0=said.t0 or base.t0, device=run.device,
            statistics=run.statistics,
        )  # fmt: skip

    def _problem(self, said: ProblemPart, folder: Path) -> Problem:
        """The problem that a file describes itself; its first body's where something varies."""
        field = None if said.field is None else _field(said.field, folder, self.allow_code)
        if field is None and said.params:
            raise Fault("params", "params are given but no field")
        start: dict[str, Any] = (
            {"omega": said.omega} if said.omega is not None else {"momentum": said.momentum or [0.0, 0.0, 0.0]}
        )
        first = {key.partition(".")[2]: v[0].tolist() for key, v in self.columns.items() if key.startswith("params.")}
        bound = None if field is None else _bound(field, first | said.params)
        return Problem(Body(said.moments), bound, attitude=said.attitude, t0=said.t0, **start)

    def _varies(self, head: str) -> bool:
        return any(key.partition(".")[0] == head for key in self.columns)

    def _vector(self, head: str, base: Any) -> np.ndarray:
        """A quantity for every body: whole, or with some components varied; one for all where none is."""
        if head in self.columns:
            return self.columns[head]
        if not self._varies(head):
            return np.array(base, dtype=float)
        rows = np.tile(np.array(base, dtype=float), (self.number, 1))
        for i, axis in enumerate(AXES):
            if f"{head}.{axis}" in self.columns:
                rows[:, i] = self.columns[f"{head}.{axis}"]
        return rows

    def _momenta(self, said: ProblemPart, base: Problem, moments: np.ndarray) -> np.ndarray:
        """Momenta in the body frame; where omega is given or varies it is held, and the momentum follows."""
        if self._varies("omega") and self._varies("momentum"):
            raise Fault("omega", "omega and momentum cannot both vary; leave one of them out")
        by_omega = self._varies("omega") or (said.omega is not None and not self._varies("momentum"))
        if not by_omega:
            return self._vector("momentum", said.momentum or base.momentum)
        omega = self._vector("omega", said.omega or base.omega)
        return omega @ base.body.inertia if base.body.has_own_axes else omega * moments

    def _field(self, said: ProblemPart, base: Problem) -> BoundField | None:
        if base.field is None:
            return None
        bound: BoundField = base.field.template(**(base.field.values | said.params))
        return bound

    def _params(self, base: Problem) -> dict[str, np.ndarray]:
        """The parameters that vary."""
        varied = {key.partition(".")[2]: column for key, column in self.columns.items() if key.startswith("params.")}
        if varied and base.field is None:
            raise Fault("params", f"params.{next(iter(varied))} varies, but the problem has no field")
        return varied

    def _steps(self, base: Problem) -> tuple[Any, int]:
        """The step, and how many."""
        run = self.said.run
        if "dt" in self.columns:
            if run.dt is not None:
                raise Fault("dt", "dt varies, so leave it out of [run]")
            if run.steps is None:
                raise Fault("steps", "dt varies, so give steps in [run]: all bodies make the same number of them")
            return self.columns["dt"], run.steps
        if run.dt is None:
            raise Fault("dt", "give dt in [run]")
        if run.steps is not None:
            return run.dt, run.steps
        end = base.t_end if run.t_end is None else run.t_end
        if end is None:
            raise Fault("t_end", "give steps or t_end in [run]")
        return run.dt, number_of_steps(base, run.dt, end, None)


def _bound(field: FieldTemplate, params: dict[str, Any]) -> BoundField:
    """The field with its parameters."""
    absent = [name for name in field.parameters if name not in params]
    if absent:
        raise Fault("params", f"the field needs params.{absent[0]} in [problem]")
    bound: BoundField = field(**params)
    return bound


def _field(name: str, folder: Path, allow_code: bool) -> FieldTemplate:
    """A ready-made field, or ``file.py:name``."""
    known = {k: made for k in fields.names() if isinstance(made := fields.get(k), FieldTemplate)}
    if name in known:
        return known[name]
    if ":" not in name:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or list(known)
        raise Fault("field", f"unknown field {name!r}; nearest: {', '.join(near)}, or your own as 'file.py:name'")
    if not allow_code:
        raise Fault("field", f"this runs the Python code in {name}; if you trust it, say --allow-code")
    try:
        return python_field(name, folder)
    except InputError as problem:
        raise Fault("field", str(problem)) from problem


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path, allow_code: bool = False) -> Sweep:
    """Read and check a file; a mistake is told with its line and key. Code it names runs only if that is allowed."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}") from None
    try:
        said = SweepFile.model_validate(table)
        return Sweep(said, _columns(said, path.parent), path.parent, text, allow_code)
    except ValidationError as problem:
        key, what = first_fault(problem)
        if problem.errors()[0]["type"] == "extra_forbidden":
            what += _nearest(problem.errors()[0]["loc"])
        raise InputError(f"{path}{_line(text, key)}: {f'{key}: ' if key else ''}{what}") from None
    except Fault as fault:
        raise InputError(f"{path}{_line(text, fault.key)}: {fault}") from None
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None


def _nearest(place: tuple[Any, ...]) -> str:
    parts: dict[Any, type[BaseModel]] = {"problem": ProblemPart, "run": RunPart}
    model = parts.get(place[0], SweepFile) if len(place) > 1 else SweepFile
    names = [f.alias or name for name, f in model.model_fields.items()]
    near = difflib.get_close_matches(str(place[-1]), names, n=1)
    return f"; did you mean {near[0]}" if near else f"; there are {', '.join(names)}"


def _line(text: str, key: str) -> str:
    """Where a key stands in a file, as ", line N"; nothing where it does not."""
    words = [word for word in key.split(".") if not word.isdigit()]  # not the place in a list
    key = ".".join(words)
    for wanted in (key, ".".join(words[1:]), words[-1], words[0]):
        pattern = re.compile(rf'^\s*(\[{re.escape(wanted)}\]|"?{re.escape(wanted)}"?\s*=)') if wanted else None
        for i, line in enumerate(text.splitlines(), 1):
            if pattern and pattern.match(line):
                return f", line {i}"
    return ""


def _columns(said: SweepFile, folder: Path) -> dict[str, np.ndarray]:
    if said.grid is not None:
        return on_grid(said.grid)
    if said.list_ is not None:
        return in_parallel(said.list_, folder)
    return at_random(said.random or {})


# --- before and after -------------------------------------------------------------------------------

SAMPLE_BODIES, SAMPLE_STEPS = 64, 2000
"""What is run to say how long a sweep will take."""


def estimate(sweep: Sweep) -> float:
    """Seconds the sweep will take on the cores of this machine, from a small part of it, once compiled."""
    task = sweep.task
    crowd = task.crowd
    some = {
        name: value[:SAMPLE_BODIES] if len(value) > 1 else value
        for name in ("moments", "own", "quaternion", "momentum", "dt", "values")
        if (value := getattr(crowd, name)) is not None
    }
    number, steps = min(crowd.number, SAMPLE_BODIES), min(task.count, SAMPLE_STEPS)
    part = dataclasses.replace(crowd, number=number, **some)
    every = steps if task.wanted is None else min(task.every, steps)
    sample = dataclasses.replace(task, crowd=part, count=steps, every=every)
    sample.run(threads=1)
    seconds = min(sample.run(threads=1).seconds for _ in range(3))
    share = cores() if task.device == "cpu" else 1
    return seconds * math.ceil(crowd.number / number) * (task.count / steps) / share


def bytes_of(task: Task) -> int:
    """Bytes of the states and statistics a sweep writes."""
    numbers = 7 + (1 if task.own_times else 0)
    parts = [] if task.wanted is None else [(len(PARTS) - 1) * size + 1 for size in task.wanted.sizes.values()]
    return 8 * task.crowd.number * (len(task.kept) * numbers + 5 + sum(parts))


SUMMARY_QUANTILES: tuple[tuple[str, float], ...] = (("median", 0.5), ("90 %", 0.9), ("largest", 1.0))


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Some quantiles of the numbers that are finite."""
    fine = values[np.isfinite(values)]
    return {name: float(np.quantile(fine, q)) if fine.size else math.nan for name, q in SUMMARY_QUANTILES}
