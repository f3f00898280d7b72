"""TOML files checked by a model: every error names file, line and key, what was expected and what to do."""

from __future__ import annotations

import difflib
import importlib.util
import json
import tomllib
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from .. import _files
from ..errors import InputError
from ..physics.fields import FieldTemplate

Model = TypeVar("Model", bound="Strict")
Made = TypeVar("Made")
Place = tuple[str | int, ...]
"""Keys and list indices, from the outermost table inwards."""

Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=1)]
Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
Quaternion = Annotated[list[float], Field(min_length=4, max_length=4)]

LONGEST = 60
"""Most characters of a wrong value that an error shows."""


class Strict(BaseModel):
    """A table that rejects unknown keys and converts only whole numbers to floats."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Fault(ValueError):
    """An error in one key, named with dots: ``run.dt``, ``field.0.mgl``."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key

    @property
    def location(self) -> Place:
        """The key as a path."""
        if not self.key:
            return ()
        return tuple(int(key) if key.isdigit() else key for key in self.key.split("."))


def key(expected: str, example: Any, **limits: Any) -> Any:
    """An optional key: its description (for errors and the schema), and an example."""
    extra = limits.pop("schema", {})

    def absent(schema: dict[str, Any]) -> None:
        _without_null(schema)
        schema.update(extra)

    return Field(None, description=expected, examples=[example], json_schema_extra=absent, **limits)


def table(expected: str) -> Any:
    """A table that may be absent, annotated as ``Part | None``."""
    return Field(None, description=expected, json_schema_extra=_without_null)


def _without_null(schema: dict[str, Any]) -> None:
    """TOML has no null: what may be absent is not required."""
    schema.pop("default", None)
    if "anyOf" in schema:
        kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
        schema.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def needed(expected: str, example: Any, **limits: Any) -> Any:
    """A required key: its description, and an example."""
    return Field(description=expected, examples=[example], **limits)


def at(table: str, make: Callable[[], Made], keys: Any = (), main: str | None = None) -> Made:
    """Call `make`; an error is reported at its own key if that is among `keys`, else at `main` or the table."""
    try:
        return make()
    except Fault:
        raise
    except (InputError, OSError) as problem:
        own = getattr(problem, "key", "")
        key = own if own in keys else main
        raise Fault(f"{table}.{key}" if key else table, str(problem)) from None


def within(table: str, make: Callable[..., Any], values: Any) -> Any:
    """Apply `make` to a table; errors name the table."""
    try:
        return make(values)
    except Fault as fault:
        raise Fault(f"{table}.{fault.key}" if fault.key else table, str(fault)) from None


def one_of(part: Strict, table: str, *keys: str, none: bool = False) -> str | None:
    """The key of a table that is present, of which there must be exactly one (with `none`: at most one)."""
    present = [name for name in keys if getattr(part, name) is not None]
    choice = ", ".join(keys)
    if len(present) > 1:
        allowed = "at most" if none else "exactly"
        raise Fault(
            f"{table}.{present[-1]}",
            f"give {allowed} one of {choice}; got {' and '.join(present)}: remove all but one",
        )
    if not present and not none:
        info = type(part).model_fields[keys[0]]
        example = f"{keys[0]} = {toml((info.examples or [None])[0])}"
        raise Fault(table, f"give exactly one of {choice}; got none of them: write for example {example}")
    return present[0] if present else None


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path, model: type[Model], make: Callable[[Model, str], Made]) -> Made:
    """Apply `make` to the checked contents and the text of a file; errors are reported with file, line and key."""
    text = _text(path)
    try:
        table = tomllib.loads(text + "\n")  # so that an error in a last line without a newline has its line number too
    except RecursionError:
        raise InputError(f"{path} cannot be read: its lists are nested too deeply") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}; strings need quotes, lists need [ ]") from None
    except ValueError:
        raise InputError(f"{path} has a whole number of thousands of digits; write it as a float") from None
    try:
        return make(validated(model, table), text)
    except Fault as fault:
        location, what = fault.location, str(fault)
    except InputError as problem:
        location, what = (), str(problem)
    raise InputError(f"{path}{line_of(text, location)}: {named(location)}{what}") from None


def validated(model: type[Model], table: Any) -> Model:
    """The validated contents of a table; errors are raised as `Fault`."""
    try:
        return model.model_validate(table)
    except ValidationError as problem:
        # Report an unknown key first: it may be a misspelling of the missing one.
        worst = sorted(problem.errors(), key=lambda error: error["type"] != "extra_forbidden")[0]
    inner = worst.get("ctx", {}).get("error")
    if isinstance(inner, Fault):
        raise inner
    location, what = _fault_of(model, worst)
    raise Fault(".".join(map(str, location)), what)


def _text(path: Path) -> str:
    try:
        return _files.text_of(path, "utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}") from None


# --- line numbers of keys ---------------------------------------------------------------------------


def line_of(text: str, location: Place) -> str:
    """The line of a key as ", line N"; if the key is absent, the line of its table; empty if that is absent too."""
    lines = dict(reversed(list(places(text))))  # the first of several
    for end in range(len(location), 0, -1):
        for found in (location[:end], tuple(part for part in location[:end] if isinstance(part, str))):
            if found in lines:
                return f", line {lines[found]}"
    return ""


def places(text: str) -> Iterator[tuple[Place, int]]:
    """Every key and table of a valid file with its line. A statement is the fewest lines that are TOML themselves."""
    lines, begin, counts = text.split("\n"), 0, dict[Place, int]()
    table: Place = ()
    while begin < len(lines):
        end, parsed = _statement(lines, begin)
        head = lines[begin].lstrip()
        if head.startswith("["):
            table = _numbered(_longest(parsed), counts, more=head.startswith("[["))
            yield table, begin + 1
            yield tuple(part for part in table if isinstance(part, str)), begin + 1
        else:
            for location in _keys(parsed):
                yield (*table, *location), begin + 1
        begin = end


def _statement(lines: list[str], begin: int) -> tuple[int, dict[str, Any]]:
    """The line after the statement that begins here, and its parsed content."""
    for end in range(begin + 1, len(lines) + 1):
        if end > begin + 1 and lines[end - 1].rstrip().endswith(","):
            continue  # inside a list; skipping these lines keeps long lists fast
        try:
            return end, tomllib.loads("\n".join(lines[begin:end]))
        except tomllib.TOMLDecodeError:
            continue
    return len(lines), {}


def _keys(parsed: Any, above: Place = ()) -> Iterator[Place]:
    if isinstance(parsed, dict):
        for key, inner in parsed.items():
            yield (*above, key)
            yield from _keys(inner, (*above, key))


def _longest(parsed: Any) -> tuple[str, ...]:
    """The keys of a header: ``[a.b]`` is read as {a: {b: {}}}."""
    if isinstance(parsed, list):
        return _longest(parsed[0])
    return next(((key, *_longest(inner)) for key, inner in parsed.items()), ())


def _numbered(keys: tuple[str, ...], counts: dict[Place, int], more: bool) -> Place:
    """The path of a header's table, with its index if it is one of several."""
    location: Place = ()
    for i, key in enumerate(keys):
        location = (*location, key)
        if more and i == len(keys) - 1:
            counts[location] = counts.get(location, -1) + 1
        if location in counts:
            location = (*location, counts[location])
    return location


# --- messages ---------------------------------------------------------------------------------------


def named(location: Place) -> str:
    """The key as the start of a message, "run.dt: "."""
    keys = ".".join(part for part in location if isinstance(part, str))
    return f"{keys}: " if keys else ""


def toml(value: Any) -> str:
    """Format a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def nearest(key: str, known: list[str]) -> str:
    """A hint for an unknown key."""
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"


def _fault_of(model: type[Strict], error: Any) -> tuple[Place, str]:
    """Place of an error, and its message: what was expected, what was found, what to do."""
    loc = error["loc"]
    owner, info, location = _declared(model, loc)
    if error["type"] == "extra_forbidden":
        key = str(loc[-1])
        elsewhere = [table for table, inner in _tables(model) if key in inner.model_fields]
        near = f"it belongs in [{elsewhere[0]}]" if elsewhere else nearest(key, _words(owner))
        kind = "table" if len(loc) == 1 and isinstance(error["input"], dict) else "key"
        return loc, f"there is no such {kind} here; {near}"
    if error["type"] == "value_error":
        return location, str(error["ctx"]["error"])
    expected = info.description if info else "a different value"
    example = f"; write for example {location[-1]} = {toml(info.examples[0])}" if info and info.examples else ""
    if error["type"] == "missing":
        return location, f"is missing; it is {expected}{example}"
    got = toml(error["input"])
    return location, f"must be {expected}; got {got[:LONGEST]}{'...' * (len(got) > LONGEST)}{example}"


def _words(model: type[Strict]) -> list[str]:
    """The keys of a table as written in a file."""
    return [info.alias or name for name, info in model.model_fields.items()]


def _declared(model: type[Strict], loc: Place) -> tuple[type[Strict], FieldInfo | None, Place]:
    """The model that declares a key, the declaration, and the location cut off after the key's name."""
    info: FieldInfo | None = None
    location: Place = ()
    for i, part in enumerate(loc):
        model = (_inner(info.annotation) if info else None) or model
        if isinstance(part, str):
            known = dict(zip(_words(model), model.model_fields.values(), strict=True))
            if part not in known:
                break
            info, location = known[part], loc[: i + 1]
    return model, info, location


def _tables(model: type[Strict]) -> Iterator[tuple[str, type[Strict]]]:
    for name, info in model.model_fields.items():
        inner = _inner(info.annotation)
        if inner:
            yield name, inner


def _inner(annotation: Any) -> type[Strict] | None:
    """The model of a table, or of the items of a list of tables."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation if issubclass(annotation, Strict) else None
    return next((found for part in typing.get_args(annotation) if (found := _inner(part))), None)


# --- fields in the user's own Python files ----------------------------------------------------------


def python_field(where: str, folder: Path) -> FieldTemplate:
    """Load the torque or potential ``file.py:name``. This RUNS the file: use it only for trusted files."""
    file, colon, name = where.rpartition(":")
    path = folder / file
    spec = importlib.util.spec_from_file_location(f"_polhode_{path.stem}", path) if colon else None
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"expected a Python file and a name, such as mine.py:drag; there is no such file: {where!r}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise InputError(f"{path} cannot be run: {type(problem).__name__} {problem}") from problem
    found = getattr(module, name, None)
    if not isinstance(found, FieldTemplate):
        raise InputError(f"{path} has no torque or potential {name!r}; make it with @ph.torque or @ph.potential")
    return found
