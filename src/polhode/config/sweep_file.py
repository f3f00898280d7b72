"""Sweeps: a problem with some of its numbers varied on a grid, from a list or at random, from a TOML file.

    [body], [[field]], [orbit], [facets], [start]  as in a problem file;  or
    [problem]  a named problem, or moments, field, params, attitude and one of omega, momentum
    [run]      method, dt, steps, t_end or orbits, every, statistics, device
    [grid]     all combinations of the values;  or
    [list]     lists of equal length: first values together, second values together, ...;  or
    [random]   count, seed, and a distribution for each

These can vary: `moments`, `omega`, `momentum` (whole, or by component as `omega.x`), `attitude`, `params.NAME`, `dt`.
"""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from ..methods import EXAMPLE as METHOD
from ..methods import methods
from ..physics import fields, library
from ..physics.body import Body
from ..physics.fields import Field as BoundField
from ..physics.fields import FieldTemplate
from ..physics.observers.statistics import WORDS
from ..physics.problem import Problem
from ..run.ensemble.api import prepared
from ..run.ensemble.task import Task
from ..run.step_count import number_of_steps, signed_step
from . import toml
from .field_tables import SHARED, FacetsPart, FieldPart, OrbitPart, Shared
from .problem_file import ENDS, BodyPart, OutputPart, StartPart, one_or_several, problem_of
from .sampling import AXES, at_random, in_parallel, numbers_in, on_grid
from .toml import Fault, Positive, Quaternion, Strict, Vector, Whole, at, needed, one_of, python_field, within
from .toml import key as optional

EXAMPLE = """\
# Tops with different spins and weights: 5 x 41 of them, each through 20 time units.
[problem]
name = "fast_top"            # `polhode problems` lists them; instead of [problem], the tables [body], [[field]] and
                             # [start] of a problem file (`polhode init`) describe one of your own

[run]
method = "METHOD"            # `polhode methods` lists them
dt = 0.01
t_end = 20.0                 # or steps
every = 100                  # record every 100th state; default: the first and the last
# statistics = ["energy"]    # instead of a path: first, last, min, max, mean and drift over every step

[grid]                       # all combinations; [list] takes lists in parallel, [random] draws samples
params.mgl = [10, 15, 20, 25, 30]
omega.z = { from = 10, to = 50, count = 41 }

# [random]
# count = 1000
# seed = 1
# attitude = "random"                      # uniformly distributed rotations
# momentum = { isotropic = 5.0 }           # uniformly distributed directions, of this length
# params.mgl = { normal = [20.0, 1.0] }    # mean and standard deviation; or uniform, loguniform = [from, to]
""".replace('"METHOD"'.ljust(20), f'"{METHOD}"'.ljust(20))


# --- the tables of a file ---------------------------------------------------------------------------


class ProblemPart(Strict):
    """The problem all bodies have in common."""

    name: str | None = optional("a named problem; `polhode problems` lists them", "fast_top")
    moments: list[Any] | None = optional(
        "three principal moments of inertia, or a tensor of three rows", [1.0, 2.0, 2.5]
    )
    field: str | None = optional("a built-in field, or your own as file.py:name", "gravity")
    params: dict[str, Any] = Field(default_factory=dict, description="a table of the field's parameters")
    attitude: Quaternion | None = optional("four numbers, the SCALAR FIRST, body to space", [1.0, 0.0, 0.0, 0.0])
    omega: Vector | None = optional("three numbers: angular velocity in the body frame", [0.0, 0.1, 5.0])
    momentum: Vector | None = optional("three numbers: angular momentum in the body frame", [0.0, 0.1, 5.0])
    t0: float = Field(0.0, description="a number: the time of the start", examples=[0.0])

    @model_validator(mode="after")
    def _whole(self) -> ProblemPart:
        if self.name is None and self.moments is None:
            raise ValueError("give the name of a problem, or moments = [I1, I2, I3]")
        if self.name is not None and (self.moments is not None or self.field is not None):
            raise ValueError("a named problem has its moments and field already; remove name, or the others")
        if self.omega is not None and self.momentum is not None:
            raise ValueError("give omega or momentum, not both")
        return self


class RunPart(Strict):
    """Settings of the run."""

    method: str = needed("a method; `polhode methods` lists them", METHOD)
    dt: float | None = optional("a number: the step size; a negative one runs backwards in time", 0.01)
    steps: Whole | None = optional("a whole number of at least 1: the number of steps", 1000)
    t_end: float | None = optional("a number: the end time; one before t0 runs backwards in time", 20.0)
    orbits: Positive | None = optional("a number above 0: the length of the run in revolutions of [orbit]", 2.0)
    every: Whole | None = optional("a whole number k of at least 1: record every k-th state", 100)
    # mypy knows no names that are computed; pydantic does
    statistics: list[Literal[tuple(WORDS)]] | None = Field(  # type: ignore[valid-type]
        None,
        min_length=1,
        description="a list of names: observables to follow instead of the path",
        examples=[["energy"]],
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description='"cpu" or "cuda"', examples=["cuda"])

    @model_validator(mode="after")
    def _whole(self) -> RunPart:
        one_of(self, "run", *ENDS, none=True)
        return self


class SweepFile(Strict):
    """A complete sweep file."""

    problem: ProblemPart | None = Field(None, description="a table, [problem]: the problem common to all bodies")
    body: BodyPart | None = Field(None, description="a table, [body]: the rigid body, as in a problem file")
    field: list[FieldPart] = Field([], description="a table, [field], or several, [[field]], as in a problem file")
    orbit: OrbitPart | None = Field(None, description="a table, [orbit], as in a problem file")
    facets: FacetsPart | None = Field(None, description="a table, [facets], as in a problem file")
    start: StartPart | None = Field(None, description="a table, [start]: attitude and motion, as in a problem file")
    output: OutputPart = Field(OutputPart(), description="a table, [output]: file, the store to write")
    run: RunPart = Field(description="a table, [run]: method, dt, and steps or t_end")
    grid: dict[str, Any] | None = Field(None, description="a table, [grid], of lists of values")
    list_: dict[str, Any] | None = Field(None, alias="list", description="a table, [list], of lists of values")
    random: dict[str, Any] | None = Field(None, description="a table, [random], with count, seed and distributions")

    @model_validator(mode="after")
    def _whole(self) -> SweepFile:
        if sum(part is not None for part in (self.grid, self.list_, self.random)) != 1:
            raise ValueError("give exactly one of [grid], [list], [random]: the quantities that vary")
        if (self.problem is None) == (self.body is None):
            got = "neither" if self.body is None else "both"
            raise ValueError(f"give [problem], or [body] and [start] as in a problem file; got {got}")
        if (self.body is None) != (self.start is None):
            raise ValueError("[body] and [start] must be given together, as in a problem file")
        if self.body is None and self.field:
            raise ValueError("[field] needs [body] and [start]; in [problem] write field = ...")
        for name in SHARED:
            if self.body is None and getattr(self, name) is not None:
                raise Fault(name, "this needs [body] and [start], as in a problem file")
        for name in ("plot", "view"):
            if getattr(self.output, name) is not None:
                raise Fault(f"output.{name}", "a sweep writes one file for all bodies and no pictures; remove it")
        return self

    @field_validator("field", mode="before")
    @classmethod
    def _one_or_several(cls, contents: Any) -> Any:
        return one_or_several(contents)


# --- the sweep --------------------------------------------------------------------------------------


class Sweep:
    """A validated sweep file: `task` to run, and in `labels` the varied quantities, one number per body."""

    def __init__(
        self, contents: SweepFile, columns: dict[str, np.ndarray], path: Path, text: str, allow_code: bool = False
    ) -> None:
        self.text, self.contents, self.allow_code, self.path = text, contents, allow_code, path
        self.columns = columns
        self.shared = Shared.of(contents.orbit, contents.facets, path.parent)
        self.number = len(next(iter(columns.values())))
        self.task = self._task(path.parent)

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """The varied quantities by component, one number per body."""
        found: dict[str, np.ndarray] = {}
        for key, values in self.columns.items():
            keys = ("w", *AXES) if key == "attitude" else AXES if numbers_in(key) == 3 else range(9999)
            found |= (
                {key: values} if values.ndim == 1 else {f"{key}.{w}": v for w, v in zip(keys, values.T, strict=False)}
            )
        return found

    def _task(self, folder: Path) -> Task:
        contents, run = self.contents.problem or self._start(), self.contents.run
        base = self._base(contents, folder)
        self._check_body_of_field(base)
        moments = self._vector("moments", base.body.moments)
        if base.body.has_principal_rotation and not self._varies("moments"):
            bodies: Any = base.body
        elif base.body.has_principal_rotation:
            raise Fault("problem.moments", "moments vary, so give principal moments in [problem], not a tensor")
        else:
            bodies = (
                [Body(row) for row in moments] if moments.shape == (3, 3) else moments
            )  # 3x3 would be read as a tensor
        attitude = self.columns.get("attitude", np.array(contents.attitude or base.quaternion))
        dt, steps = self._steps(base)
        at("run.method", lambda: methods[run.method])
        return prepared(
            bodies, attitude, self._momenta(contents, base, moments), run.method,
            field=self._field(contents, base), params=self._params(base),
            dt=dt, steps=steps, every=run.every, t0=contents.t0 or base.t0, device=run.device,
            statistics=run.statistics,
        )  # fmt: skip

    @property
    def file(self) -> Path | None:
        """The store that the file names, if any."""
        return None if self.contents.output.file is None else self.path.parent / self.contents.output.file

    def _base(self, contents: ProblemPart, folder: Path) -> Problem:
        """The problem that all bodies have in common."""
        whole = self.contents
        if whole.body is not None and whole.start is not None:
            return problem_of(whole.body, whole.field, whole.start, self.shared, self.path, self.allow_code)
        if contents.name:
            return at("problem.name", lambda: library.get(contents.name or ""))
        return self._problem(contents, folder)

    def _start(self) -> ProblemPart:
        """What [start] fixes while other quantities vary: omega in the body frame, if it is given."""
        start = self.contents.start
        assert start is not None
        for name, others in (("spatial_omega", ("attitude", "moments")), ("spatial_momentum", ("attitude",))):
            varied = [other for other in others if self._varies(other)]
            if getattr(start, name) is not None and varied:
                raise Fault(f"start.{name}", f"{varied[0]} varies, so give omega or momentum in the body frame")
        return ProblemPart.model_construct(omega=start.omega, t0=start.t0 or 0.0)

    def _check_body_of_field(self, base: Problem) -> None:
        """Refuse varied moments with a field that was made for one body: it would keep the moments of that body."""
        if base.field is None or not self._varies("moments"):
            return
        for name in base.field.name.split(" + "):
            if name in fields.names() and "body" in fields.keywords(name):
                raise Fault(f"{self._table}.moments", f"the field {name} is that of one body, so its moments are fixed")

    def _problem(self, contents: ProblemPart, folder: Path) -> Problem:
        """The problem described in the file itself; varied quantities have the values of the first body."""
        field = None if contents.field is None else _field(contents.field, folder, self.allow_code)
        if field is None and contents.params:
            raise Fault("problem.params", "params are given but no field; give field, or remove params")
        start: dict[str, Any] = (
            {"omega": contents.omega}
            if contents.omega is not None
            else {"momentum": contents.momentum or [0.0, 0.0, 0.0]}
        )
        first = {key.partition(".")[2]: v[0].tolist() for key, v in self.columns.items() if key.startswith("params.")}
        bound = None if field is None else _bound(field, first | contents.params)
        return Problem(Body(contents.moments), bound, attitude=contents.attitude, t0=contents.t0, **start)

    @property
    def _table(self) -> str:
        """Name of the table that holds the varied quantities."""
        return next(key for key in ("grid", "list_", "random") if getattr(self.contents, key) is not None).strip("_")

    def _varies(self, head: str) -> bool:
        return any(key.partition(".")[0] == head for key in self.columns)

    def _vector(self, head: str, base: Any) -> np.ndarray:
        """A quantity for every body, whole or with some components varied; one value for all if it does not vary."""
        if head in self.columns:
            return self.columns[head]
        if not self._varies(head):
            return np.array(base, dtype=float)
        rows = np.tile(np.array(base, dtype=float), (self.number, 1))
        for i, axis in enumerate(AXES):
            if f"{head}.{axis}" in self.columns:
                rows[:, i] = self.columns[f"{head}.{axis}"]
        return rows

    def _momenta(self, contents: ProblemPart, base: Problem, moments: np.ndarray) -> np.ndarray:
        """Momenta in the body frame; if omega is given or varies, the momenta are computed from it."""
        if self._varies("omega") and self._varies("momentum"):
            raise Fault(f"{self._table}.omega", "omega and momentum cannot both vary; remove one of them")
        by_omega = self._varies("omega") or (contents.omega is not None and not self._varies("momentum"))
        if not by_omega:
            return self._vector("momentum", contents.momentum or base.momentum)
        omega = self._vector("omega", contents.omega or base.omega)
        return omega @ base.body.inertia if base.body.has_principal_rotation else omega * moments

    def _field(self, contents: ProblemPart, base: Problem) -> BoundField | None:
        if base.field is None:
            return None
        if not contents.params:
            return base.field
        bound: BoundField = base.field.template(**{**base.field.values, **contents.params})
        return bound

    def _params(self, base: Problem) -> dict[str, np.ndarray]:
        """The parameters that vary."""
        varied = {key.partition(".")[2]: column for key, column in self.columns.items() if key.startswith("params.")}
        if varied and base.field is None:
            raise Fault(f"{self._table}.params", "this varies, but the problem has no field; give one, or remove it")
        return varied

    def _steps(self, base: Problem) -> tuple[Any, int]:
        """The step size and the number of steps."""
        run = self.contents.run
        if "dt" in self.columns:
            if run.dt is not None:
                raise Fault("run.dt", "dt varies, so remove it from [run]")
            if run.steps is None:
                raise Fault("run.steps", "dt varies, so give steps in [run]: all bodies make the same number of them")
            return self.columns["dt"], run.steps
        if run.dt is None:
            raise Fault("run.dt", "the step size is missing; give dt in [run]")
        end, given = base.t_end if run.t_end is None else run.t_end, run.dt
        if run.orbits is not None:
            end = self.shared.end(base.t0, run.orbits, given)
        if end is None and run.steps is None:
            raise Fault("run.t_end", "the end is missing; give steps, t_end or orbits in [run]")
        dt = at("run.dt", lambda: signed_step(base, given, end, run.steps))
        return dt, run.steps or at("run.t_end", lambda: number_of_steps(base, dt, end, None))


def _bound(field: FieldTemplate, params: dict[str, Any]) -> BoundField:
    """The field with its parameters."""
    absent = [name for name in field.parameters if name not in params]
    if absent:
        raise Fault("problem.params", f"the field needs params.{absent[0]} in [problem]")
    bound: BoundField = field(**params)
    return bound


def _field(name: str, folder: Path, allow_code: bool) -> FieldTemplate:
    """A built-in field, or ``file.py:name``."""
    known = {k: made for k in fields.names() if isinstance(made := fields.get(k), FieldTemplate)}
    if name in known:
        return known[name]
    if ":" not in name:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or list(known)
        raise Fault(
            "problem.field", f"unknown field {name!r}; nearest: {', '.join(near)}, or your own as 'file.py:name'"
        )
    if not allow_code:
        raise Fault("problem.field", f"this runs the Python code in {name}; if you trust it, use --allow-code")
    return at("problem.field", lambda: python_field(name, folder))


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path, allow_code: bool = False) -> Sweep:
    """Read and check a file; errors name line and key. Code that the file names runs only if `allow_code` is True."""
    return toml.read(
        path, SweepFile, lambda contents, text: Sweep(contents, _columns(contents, path.parent), path, text, allow_code)
    )


def _columns(contents: SweepFile, folder: Path) -> dict[str, np.ndarray]:
    for table, values, make in (
        ("grid", contents.grid, on_grid),
        ("list", contents.list_, lambda given: in_parallel(given, folder)),
        ("random", contents.random, at_random),
    ):
        if values is not None:
            return within(table, make, values)
    raise AssertionError("SweepFile ensures that one of them is present")


# --- summaries --------------------------------------------------------------------------------------

SUMMARY_QUANTILES: tuple[tuple[str, float], ...] = (("median", 0.5), ("90 %", 0.9), ("largest", 1.0))


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Quantiles of the finite numbers."""
    fine = values[np.isfinite(values)]
    return {name: float(np.quantile(fine, q)) if fine.size else math.nan for name, q in SUMMARY_QUANTILES}
