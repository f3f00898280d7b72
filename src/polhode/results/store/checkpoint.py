"""Specification and checkpoint of a run as text in its file: exact to the last bit, and never executed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ... import _version
from ...errors import InputError
from ...methods import Method, methods
from ...numbers import floats
from ...physics.fields import Field
from ...physics.observers.event import Event
from ...physics.problem import Problem
from ...symbolic.rows import Rows
from . import integrity, trajectory_store

RUN_SPEC, RUN_END, CHECKPOINT, SOFTWARE = "begun", "until", "checkpoint", "software"
"""Attributes of a file: the inputs that determine the bits of a run; its end; its checkpoint; its software."""

CODE = {
    "formula": "formula of the field",
    "control_formula": "formula of the controller",
    "coefficients": "set of coefficients of the method",
    "statistics_formula": "formula of the statistics",
}
"""Inputs that are compared by digest, as named in messages."""


# --- exact state of a loop --------------------------------------------------------------------------


def number_text(x: Any) -> str:
    """A double in hexadecimal, an mpmath number as mantissa*2^exponent."""
    if not hasattr(x, "_mpf_"):
        return float(x).hex()
    sign, mantissa, exponent, _ = x._mpf_
    if mantissa == 0:
        return str(x)  # zero, infinite or NaN
    return f"{'-' if sign else ''}{int(mantissa)}*2^{exponent}"


def number_of(text: str, digits: int | None) -> Any:
    """Inverse of `number_text`."""
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
    """State after a step, with low parts and memory, and the number of rows of the file that lead up to it."""

    step: int
    rows: int
    state: Any

    def is_end(self, end: Mapping[str, Any]) -> bool:
        """True if this is the end of the run."""
        if "steps" in end:
            return self.step >= end["steps"]
        return self.step > 0 and bool(self.state[2][0] >= end["t_end"])

    def text(self) -> str:
        """The checkpoint as JSON."""
        parts = [[number_text(x) for x in part] for part in self.state]
        return json.dumps({"step": self.step, "rows": self.rows, "state": parts})

    @classmethod
    def read(cls, text: str, digits: int | None) -> Checkpoint:
        """Inverse of `text`."""
        fields = json.loads(text)
        state = tuple(tuple(number_of(x, digits) for x in part) for part in fields["state"])
        return cls(int(fields["step"]), int(fields["rows"]), state)


# --- specification of a run -------------------------------------------------------------------------


def digest(text: str) -> str:
    """Short digest of a text: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_spec(problem: Problem, method: Method | None, **numbers: Any) -> dict[str, Any]:
    """All inputs that determine the bits of a run, except its end. JSON preserves doubles exactly."""
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


def events_spec(events: Sequence[Event]) -> list[str] | int:
    """The events of a run as names and digests; 0 if there are none."""
    return [
        f"{one.name} {digest(repr((one.text, one.parameters, one.direction, one.terminal)))}" for one in events
    ] or 0


CODE_NOT_STORED = "a Python function, which files do not hold"
"""Entry in a file instead of the formula, for a torque that is not a formula."""


def formula_text(field: Field, text: Any) -> str:
    """Digest of the text of a field's formula and of its rows of data, or `CODE_NOT_STORED` if it is not a formula."""
    data = [part.digest for part in field.values.values() if isinstance(part, Rows)]
    return CODE_NOT_STORED if field.opaque else digest(repr((text, data) if data else text))


def _is_there(path: Any) -> bool:
    """Whether there is a file of a run to this path, finished or not."""
    return isinstance(path, str | Path) and trajectory_store.existing(Path(path)) is not None


def check_resumable(field: Field | None, path: Any) -> None:
    """Refuse to resume a file whose torque is not a formula: torques cannot then be compared."""
    if field is not None and field.opaque and _is_there(path):
        raise InputError(
            f"{path} cannot be resumed: {field.untraced[0].no_formula}, and a file does not hold Python functions, so "
            "that nobody knows whether it is the same torque; run it from the start with overwrite=True"
        )


def check_same_control(is_formula: bool, path: Any) -> None:
    """Refuse to resume a file whose controller is not a formula: files hold neither its code nor what it remembers."""
    if not is_formula and _is_there(path):
        raise InputError(
            f"{path} cannot be resumed: its controller is called as plain Python, and a file holds neither its code "
            "nor what it remembers; run it from the start with overwrite=True, or write the controller as a formula "
            "with its memory declared by ph.controller"
        )


@functools.cache
def software() -> str:
    """Software and hardware in use: versions, a digest of the source of this library, and the processor."""
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
    """The value by name, or the entries of nested lists by name and indices."""
    if not isinstance(value, list):
        return {name: value}
    return {key: leaf for i, item in enumerate(value) for key, leaf in _leaves(f"{name}[{i}]", item).items()}


def _flat(how: Mapping[str, Any]) -> dict[str, Any]:
    return {key: leaf for name, value in how.items() for key, leaf in _leaves(name, value).items()}


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Differences of two runs, as "name = value" for each of them; doubles are compared bit by bit."""
    a, b = _flat(then), _flat(now)
    names = [n for n in dict.fromkeys([*a, *b]) if json.dumps(a.get(n)) != json.dumps(b.get(n))]
    plain = [n for n in names if n not in CODE]
    if plain:  # a plain value tells the user more than a digest
        return [_assignment(n, a.get(n)) for n in plain], [_assignment(n, b.get(n)) for n in plain]
    return [f"one {CODE[n]}" for n in names], [f"another {CODE[n]}" for n in names]


def _assignment(name: str, value: Any) -> str:
    if value is None:
        return f"no {name}"
    return f"{name} = {value}"


def check_same(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume a run that was started with other inputs, and name the differences."""
    old, new = differences(then, now)
    if old:
        raise different(path, " and ".join(old), " and ".join(new))


def different(path: Path, then: str, now: str) -> InputError:
    """Error for a file of a run other than the requested one."""
    return InputError(
        f"{path} was begun with {then}, and this run has {now}; resume it with the original settings, or choose "
        "another name"
    )


def run_end(count: int, end: float) -> dict[str, Any]:
    """End of a run: the number of steps, or the end time if the steps vary."""
    return {"steps": count} if end == math.inf else {"t_end": end}


def check_end(path: Path, how: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse an end that is earlier than the recorded one, or of the other kind (steps or time)."""
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
    """Initial attributes of a file; `end` is omitted for a file that is written as a whole."""
    attrs = {RUN_SPEC: json.dumps(how), SOFTWARE: software()}
    return attrs if end is None else attrs | {RUN_END: json.dumps(end)}


# --- resuming from a file ---------------------------------------------------------------------------


def run_attribute(path: Path, attrs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read an attribute of a file that records how its run was started or where it ends."""
    if name not in attrs:
        raise not_begun(path)
    try:
        return dict(json.loads(attrs[name]))
    except (TypeError, ValueError) as problem:
        raise damaged(path, problem) from problem


def not_begun(path: Path) -> InputError:
    """Error for a file that does not record how its run was started."""
    return InputError(
        f"{path} cannot be resumed: it does not record how its run was started (it was written by save or export, or "
        "by an early version); load it, choose another name or give overwrite=True (--overwrite)"
    )


def resume_from(
    path: Path, attrs: Mapping[str, Any], how: Mapping[str, Any], end: Mapping[str, Any], rows: int
) -> Checkpoint | None:
    """Checkpoint in a file of `rows` rows, checked to be of the requested run; None if there is none yet."""
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
    """Error for a file whose run attributes are not valid."""
    return integrity.damaged(path, f"how it was begun and where it stands cannot be read ({integrity.line(problem)})")


def coefficients(method: Method) -> str | None:
    """Digest of the coefficients of a method, for files; None if its name identifies the method."""
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
