"""What a run was begun with and where it stands, as text for its file: exact to the last bit, and never executed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ... import _version
from ...errors import InputError
from ...methods import Method, methods
from ...numbers import floats
from ...physics.fields import Field
from ...physics.problem import Problem
from . import integrity

RUN_SPEC, RUN_END, CHECKPOINT, SOFTWARE = "begun", "until", "checkpoint", "software"
"""Attributes of a file: what determines the bits of a run; where it ends; where it stands; what computed it."""

CODE = {
    "formula": "formula of the field",
    "coefficients": "set of coefficients of the method",
    "statistics_formula": "formula of the statistics",
}
"""What is told apart by a digest, in words."""


# --- the state of a loop, exactly -------------------------------------------------------------------


def number_text(x: Any) -> str:
    """A double in hexadecimal, an mpmath number as mantissa*2^exponent."""
    if not hasattr(x, "_mpf_"):
        return float(x).hex()
    sign, mantissa, exponent, _ = x._mpf_
    if mantissa == 0:
        return str(x)  # zero, infinite or NaN
    return f"{'-' if sign else ''}{int(mantissa)}*2^{exponent}"


def number_of(text: str, digits: int | None) -> Any:
    """The same number, read back."""
    if digits is None:
        return float.fromhex(text)
    import mpmath

    from ...numbers.multiprecision import mp, working

    mantissa, _, exponent = text.partition("*2^")
    with working(digits):
        if not exponent:
            return mp.mpf(text)
        return mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent)))


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The state after a step, low parts and memory included, and how many rows of the file lead up to it."""

    step: int
    rows: int
    state: Any

    def is_end(self, end: Mapping[str, Any]) -> bool:
        """Is this the end of the run."""
        if "steps" in end:
            return self.step >= end["steps"]
        return self.step > 0 and bool(self.state[2][0] >= end["t_end"])

    def text(self) -> str:
        """As JSON."""
        parts = [[number_text(x) for x in part] for part in self.state]
        return json.dumps({"step": self.step, "rows": self.rows, "state": parts})

    @classmethod
    def read(cls, text: str, digits: int | None) -> Checkpoint:
        """From JSON."""
        fields = json.loads(text)
        state = tuple(tuple(number_of(x, digits) for x in part) for part in fields["state"])
        return cls(int(fields["step"]), int(fields["rows"]), state)


# --- what a run is begun with -----------------------------------------------------------------------


def digest(text: str) -> str:
    """A few letters that tell texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_spec(problem: Problem, method: Method | None, **numbers: Any) -> dict[str, Any]:
    """Everything the bits of a run follow from, its end apart: JSON keeps doubles exactly."""
    field = problem.field
    return {
        "method": None if method is None else method.name,
        "coefficients": None if method is None else coefficients(method),
        **numbers,
        "t0": problem.t0,
        "inertia": problem.body.inertia.tolist(),
        "quaternion": list(problem.quaternion),
        "momentum": list(problem.momentum),
        "field": None if field is None else repr(field),
        "formula": None if field is None else formula_text(field, field.text),
    }


CODE_NOT_STORED = "a Python function, which files do not hold"
"""What a file says of the formula of a torque that is none."""


def formula_text(field: Field, text: Any) -> str:
    """A digest of the text of a field's formula; what to say instead where it is none."""
    return CODE_NOT_STORED if field.opaque else digest(repr(text))


def check_resumable(field: Field | None, path: Any) -> None:
    """Refuse to go on with a file whose torque is no formula: nothing tells whether it is the same torque."""
    if field is not None and field.opaque and isinstance(path, str | Path) and Path(path).exists():
        raise InputError(
            f"{path} cannot be resumed: {field.untraced[0].no_formula}, and a file does not hold Python functions, so "
            "that nobody knows whether it is the same torque; run it from the start with overwrite=True"
        )


@functools.cache
def software() -> str:
    """What computes: versions, a digest of this library's own source, and the processor."""
    from ...compile import numba_target

    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        sources.update(path.read_bytes())
    parts = [f"{name} {version(name)}" for name in ("numba", "numpy", "mpmath")]
    source = sources.hexdigest()[:12]
    return ", ".join(
        [
            f"polhode {_version.__version__} ({source})",
            *parts,
            f"Python {platform.python_version()}",
            numba_target.processor(),
        ]
    )


def _leaves(name: str, value: Any) -> dict[str, Any]:
    """A value, or the entries of nested lists, by name."""
    if not isinstance(value, list):
        return {name: value}
    return {key: leaf for i, item in enumerate(value) for key, leaf in _leaves(f"{name}[{i}]", item).items()}


def _flat(how: Mapping[str, Any]) -> dict[str, Any]:
    return {key: leaf for name, value in how.items() for key, leaf in _leaves(name, value).items()}


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What two runs differ in, as "name = value" of the one and of the other; doubles are compared bit by bit."""
    a, b = _flat(then), _flat(now)
    names = [n for n in dict.fromkeys([*a, *b]) if json.dumps(a.get(n)) != json.dumps(b.get(n))]
    plain = [n for n in names if n not in CODE]
    if plain:  # a digest says less than what it follows from
        return [_assignment(n, a.get(n)) for n in plain], [_assignment(n, b.get(n)) for n in plain]
    return [f"one {CODE[n]}" for n in names], [f"another {CODE[n]}" for n in names]


def _assignment(name: str, value: Any) -> str:
    if value is None:
        return f"no {name}"
    return f"{name} = {value}"


def check_same(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was begun otherwise, and name what differs."""
    old, new = differences(then, now)
    if old:
        raise different(path, " and ".join(old), " and ".join(new))


def different(path: Path, then: str, now: str) -> InputError:
    """The error for a file of another run than the one that is asked for."""
    return InputError(
        f"{path} was begun with {then}, and this run has {now}; resume it with the original settings, or choose "
        "another name"
    )


def run_end(count: int, end: float) -> dict[str, Any]:
    """Where a run ends: by the number of steps, or by the time where steps vary."""
    return {"steps": count} if end == math.inf else {"t_end": end}


def check_end(path: Path, how: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A run may be continued to a later end, not to an earlier one, nor to one that is said otherwise."""
    (name, before), (other, after) = *then.items(), *now.items()
    if name != other or after < before:
        old, new = (
            f"{key} = {value}" + (f" (t = {how['t0'] + value * how['dt']:g})" if name == other == "steps" else "")
            for key, value in ((name, before), (other, after))
        )
        raise InputError(
            f"{path} was begun with {old}, and this run has {new}; a run can be extended to a later end, but not "
            "shortened: load it and select the rows you need"
        )


def initial_attributes(how: Mapping[str, Any], end: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The attributes a file begins with; without an end, one that is written as a whole."""
    attrs = {RUN_SPEC: json.dumps(how), SOFTWARE: software()}
    return attrs if end is None else attrs | {RUN_END: json.dumps(end)}


# --- taking up a file -------------------------------------------------------------------------------


def run_attribute(path: Path, attrs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One of the attributes of a file that say how its run was begun and where it ends."""
    if name not in attrs:
        raise not_begun(path)
    try:
        return dict(json.loads(attrs[name]))
    except (TypeError, ValueError) as problem:
        raise damaged(path, problem) from problem


def not_begun(path: Path) -> InputError:
    """The error for a file that does not say how its run was begun."""
    return InputError(
        f"{path} cannot be resumed: it does not record how its run was started (it was written by save or export, or "
        "by an early version); load it, choose another name or give overwrite=True (--overwrite)"
    )


def resume_from(
    path: Path, attrs: Mapping[str, Any], how: Mapping[str, Any], end: Mapping[str, Any], rows: int
) -> Checkpoint | None:
    """Where the run in a file of so many rows stands, if it is the run asked for; None if it was stopped at once."""
    check_same(path, run_attribute(path, attrs, RUN_SPEC), how)
    check_end(path, how, run_attribute(path, attrs, RUN_END), end)
    if CHECKPOINT not in attrs:
        return None
    try:
        mark = Checkpoint.read(attrs[CHECKPOINT], how["digits"])
        if mark.rows > rows:
            raise ValueError(f"{mark.rows} rows should be there, and there are {rows}")
        if [len(part) for part in mark.state[:2]] != [4, 3]:
            raise ValueError("its state is not a quaternion and a momentum")
        if mark.rows != 1 + mark.step // how["every"]:
            raise ValueError(f"step {mark.step} and {mark.rows} rows do not belong together")
    except (KeyError, TypeError, ValueError) as problem:
        raise damaged(path, problem) from problem
    return mark


def damaged(path: Path, problem: Exception) -> InputError:
    """The error for a file that somebody changed."""
    return integrity.damaged(path, f"how it was begun and where it stands cannot be read ({integrity.line(problem)})")


def coefficients(method: Method) -> str | None:
    """Digest of the numbers that a method is made of, for files; None where its name says which method it is."""
    from ...compile.fingerprint import fingerprint

    def steps(some: Method) -> tuple[Any, ...]:
        return some.build(floats.number), *some.processors(floats.number)

    try:
        known = methods[method.name]
    except InputError:
        known = None
    if known is method or (known is not None and fingerprint(steps(known)) == fingerprint(steps(method))):
        return None
    return fingerprint(steps(method), portable=True)[:16]
