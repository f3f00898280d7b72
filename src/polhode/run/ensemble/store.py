"""The store of an ensemble during a run: create it, write it shard by shard, resume it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import _version
from ..._extras import needed
from ...errors import InputError
from ...physics.control.controller import control_in
from ...physics.observers.event import Event
from ...results.ensemble import NOT_YET, Ensemble
from ...results.store import atomic, checkpoint, event_files, file_format, integrity
from ...results.store.ensemble_store import (
    CHECKED,
    FORMAT,
    SAID,
    VARIABLES,
    _where,
    body_axis,
    bounds,
    check_constant,
    check_units,
    described,
    dims_of,
    is_finished,
    labelled,
    missing,
    opened,
    state_variables,
    states_attribute,
    statistics_names,
)
from ...results.store.integrity import CHECKSUMS, DIGEST, Damage
from ...results.store.targets import consolidated
from .. import control
from . import kept_times
from .batch import BodyBatch
from .task import Task

INPUTS = {"own": "axes of the bodies", "quaternion": "attitudes", "momentum": "momenta", "dt": "dt", "values": "params"}
"""Arrays of a `BodyBatch` that are stored unchanged, besides the moments, and their names for users."""


def create(path: Path, task: Task, shard_size: int, labels: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> None:
    """Create a store for a task, with no shard done, atomically. The caller holds its lock."""
    zarr = needed("zarr")

    new = atomic.hidden(path)
    try:
        root = zarr.open_group(new, mode="w", zarr_format=3)
        rows = len(task.kept if task.per_body_times else task.shown)
        sizes = {"time": rows, "body": task.batch.number, **file_format.SIZES}
        observed = {} if task.wanted is None else task.wanted.sizes
        for name in (*VARIABLES, *_adaptive_variables(task), *statistics_names(observed)):
            _variable(root, name, dims_of(name, task.per_body_times, observed), sizes, shard_size)
        shapes = _states(task)
        sizes |= file_format.sizes(tuple(shapes.items()))
        for name, (dims, _) in _state_variables(task).items():
            _variable(root, name, dims, sizes, shard_size)
        constant = {"moments": np.broadcast_to(task.batch.moments, (task.batch.number, 3)), **labels}
        if not task.per_body_times:
            constant["t"] = task.shown
        _create_labels(root, labels, shard_size)
        inputs, checks = root.create_group("inputs"), root.create_group("checks")
        for name in INPUTS:
            if (array := getattr(task.batch, name)) is not None:
                chunks = (min(len(array), shard_size), *(max(n, 1) for n in array.shape[1:]))
                integrity.created(inputs, name, compressed=False, shape=array.shape, dtype="f8", chunks=chunks)
                constant[f"inputs/{name}"] = array
        for name, values in constant.items():
            integrity.writable(root, name)[...] = values
        written = _shard_variables(task, observed)
        shape = -(-task.batch.number // shard_size), len(written)
        integrity.created(checks, "units", compressed=False, shape=shape, dtype="u4", chunks=(1, shape[1]))
        sums = {name: integrity.checksum(values) for name, values in constant.items()}
        mine = {"unit": shard_size, "status": "running", CHECKED: " ".join(written)} | states_attribute(shapes)
        consolidated(root)
        integrity.replace_attributes(
            new, SAID | description(task) | mine | {CHECKSUMS: integrity.checksums_text(sums)} | dict(attrs)
        )
        atomic.replace(path, new)
    finally:
        atomic.discard(new)


def _shard_variables(task: Task, observed: Mapping[str, int]) -> list[str]:
    """Return the variables that a shard writes; the last one marks it as done."""
    own = ["t"] if task.per_body_times else []
    more = [*own, *_adaptive_variables(task), *statistics_names(observed), *_state_variables(task)]
    return ["quaternion", "momentum", "energy_change", *more, "failed"]


def _states(task: Task) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of what a controller holds."""
    field = task.batch.field
    return {} if field is None else {name: np.shape(value) for name, value in field.states.items()}


def _state_variables(task: Task) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the variables of these, without values."""
    return state_variables({name: np.empty((0, 0, *shape)) for name, shape in _states(task).items()})


def _adaptive_variables(task: Task) -> list[str]:
    """Return the further variables of runs to a tolerance."""
    steps = [] if task.tolerance is None else ["steps"]
    return steps if task.tol is None else [*steps, "error_estimate"]


def _variable(root: Any, name: str, dims: tuple[str, ...], sizes: Mapping[str, int], shard_size: int) -> None:
    """Create an empty array; the doubles of a motion do not compress, so they are stored uncompressed."""
    largest = {"time": file_format.ROWS_PER_CHUNK, "body": shard_size}
    shape = tuple(sizes[d] for d in dims)
    attributes = labelled(name) | ({"coordinates": "t"} if "time" in dims and name != "t" else {})
    whole = name in ("failed", "steps")
    integrity.created(
        root, name, compressed=False, shape=shape, dtype="i8" if whole else "f8",
        chunks=tuple(min(largest.get(d, n), n) for d, n in zip(dims, shape, strict=True)),
        fill_value=NOT_YET if whole else np.nan, dimension_names=dims, attributes=attributes,
    )  # fmt: skip


def _create_labels(root: Any, labels: Mapping[str, np.ndarray], shard_size: int) -> None:
    """Create the names of components and axes, and arrays for the values varied by a sweep, one per body."""
    for name, words in file_format.LABELS.items():
        integrity.created_words(root, name, (name,), words)
    for name, values in labels.items():
        integrity.created(
            root, name, compressed=False, shape=values.shape, chunks=(min(shard_size, len(values)),), dtype="f8",
            dimension_names=("body",), attributes={"long_name": f"{name}, varied by the sweep"},
        )  # fmt: skip
    for name, array in root.arrays() if labels else ():
        if name not in labels and tuple(array.metadata.dimension_names) == ("body",):
            array.attrs["coordinates"] = " ".join(labels)


def description(task: Task) -> dict[str, Any]:
    """Describe a run, apart from arrays, in the user's terms: all of it must be the same on resume."""
    field, law = task.model.field, control_in(task.model.field)
    formula = "" if field is None else checkpoint.formula_text(field, field.text[0])
    return {
        "polhode_version": _version.__version__,
        "method": task.method.name,
        "coefficients": checkpoint.coefficients(task.method) or "",
        "field": "" if field is None else field.name,
        "field_formula": formula,
        "control_formula": "" if law is None else checkpoint.digest(repr(control.texts(law.alone))),
        "parameters": [] if field is None else list(field.values),
        "device": task.device,
        "steps": task.count,
        "every": task.every,
        "t0": task.t0,
        "bodies": task.batch.number,
        "own_dt": task.batch.per_body_dt,
        "own_axes": task.batch.own is not None,
        "statistics": "" if task.wanted is None else " ".join(task.wanted.sizes),
        "statistics_formula": "" if task.wanted is None else checkpoint.digest(task.wanted.structure),
        "tol": "" if task.tol is None else task.tol,
        "step_tol": "" if task.step_tol is None else task.step_tol,
        "longest_step": "" if task.longest is None else " ".join(map(repr, np.unique(task.longest).tolist())),
        "times": "" if task.stops is None else " ".join(map(repr, task.stops.tolist())),
        "kept_times": "" if task.asked is None else " ".join(map(repr, task.asked.tolist())),
        "events": " ".join(event.name for event in task.events),
        "events_formula": checkpoint.digest(repr([_formula(event) for event in task.events])) if task.events else "",
    }


def _formula(event: Event) -> tuple[Any, ...]:
    """Return what determines the zeros of an event."""
    return event.text, event.parameters, event.direction


def read_batch(root: Any, number: int, field: Any) -> BodyBatch:
    """Read the bodies of a shard."""
    begin, end = bounds(root, number)
    path = Path(root.store.root)
    metadata = integrity.arrays(described(path))
    given = {}
    for name in (*INPUTS, "moments"):
        if name == "own" and not root.attrs["own_axes"]:
            continue
        full = name if name == "moments" else f"inputs/{name}"
        own = root[full].shape[0] > 1
        chunk = number if own else 0
        try:
            integrity.check_chunks(path, full, metadata[full], functools.partial(_is_chunk, chunk))
            given[name] = root[full][begin:end] if own else root[full][:]
        except (Damage, KeyError, ValueError) as problem:
            raise integrity.damaged(path, integrity.line(problem)) from problem
    moments, axes = np.broadcast_to(given.pop("moments"), (end - begin, 3)), given.pop("own", None)
    return BodyBatch(
        moments=moments, own=axes, field=field, number=end - begin, per_body_dt=root.attrs["own_dt"], **given
    )


def _is_chunk(number: int, index: tuple[int, ...]) -> bool:
    return index[0] == number


def write(root: Any, number: int, task: Task, part: Ensemble) -> None:
    """Write the results of a shard, and once they are on the disk, mark it as done."""
    part = kept_times.selected(task, part)
    arrays = {"quaternion": part.quaternion, "momentum": part.momentum, "energy_change": _energy_change(task, part)}
    if task.per_body_times:
        arrays["t"] = part.t
    arrays |= {name: getattr(part, name) for name in _adaptive_variables(task)}
    arrays |= {name: values for name, (_, values) in state_variables(part.states).items()}
    for name, one in part.statistics.items():
        arrays |= dict(zip(statistics_names([name]), vars(one).values(), strict=True))
    _check_same_store(root)
    for name, values in arrays.items():
        integrity.writable(root, name)[_where(root, name, number)] = values
    if task.events:
        event_files.write(Path(root.store.root), number, part.events)
    arrays["failed"] = part.failed
    sums = [integrity.checksum(arrays[name], axis=body_axis(name)) for name in root.attrs[CHECKED].split()]
    integrity.writable(root, "checks/units")[number] = np.array(sums, dtype=np.uint32)
    _to_disk(Path(root.store.root), number, [name for name in arrays if name != "failed"])
    _check_same_store(root)
    integrity.writable(root, "failed")[_where(root, "failed", number)] = part.failed


def _check_same_store(root: Any) -> None:
    """Refuse to write if another run has replaced the opened store."""
    path = Path(root.store.root)
    if described(path)["attributes"].get(DIGEST) != root.attrs[DIGEST]:
        raise InputError(f"{path} was replaced by another run; the results of this run are not written")


def _energy_change(task: Task, part: Ensemble) -> np.ndarray:
    with np.errstate(all="ignore"):
        energy = task.batch.energies(part.quaternion, part.momentum)
        change, scale = np.nanmax(np.abs(energy - energy[0]), axis=0), np.abs(energy[0])
        return np.asarray(np.where(scale > 0, change / scale, change))


def _to_disk(folder: Path, number: int, names: list[str]) -> None:
    """Wait until the chunks of a shard are on the disk, so that a power cut cannot leave its mark without them."""
    for name in (*names, "checks/units"):
        position = f"*/{number}" if body_axis(name) else f"{number}"
        for place in (folder / name / "c").glob(position):
            atomic.sync(place.iterdir() if place.is_dir() else (place,))


def finish(path: Path, seconds: float) -> None:
    """Record that all shards are done, and the seconds of the last run."""
    integrity.replace_attributes(path, described(path)["attributes"] | {"seconds": seconds, "status": "finished"})


def repair(path: Path) -> list[int]:
    """Remove the marks of damaged shards, so that they are run again; return their numbers."""
    bad = check_units(path)
    for number in bad:
        (path / "failed" / "c" / str(number)).unlink(missing_ok=True)
    if is_finished(path) and (bad or missing(path)):
        integrity.replace_attributes(path, described(path)["attributes"] | {"status": "running"})
    return bad


def check_same(path: Path, task: Task, shard_size: int | None, labels: Mapping[str, np.ndarray]) -> None:
    """Refuse to resume a store that is damaged or has different inputs, and name the difference."""
    root = opened(path)
    if root.attrs["format"] != FORMAT:
        raise InputError(
            f"{path} was written by an earlier version, without checksums, and cannot be resumed; load it, and "
            "choose another name or give overwrite=True (--overwrite)"
        )
    if CHECKED not in root.attrs:
        raise checkpoint.not_begun(path)
    now = description(task) | ({} if shard_size is None else {"unit": shard_size})
    checkpoint.check_same(path, *(_in_words({name: of.get(name) for name in now}) for of in (root.attrs, now)))
    check_constant(path, root)
    given = task.batch
    shape = (given.number, 3)
    _check_array(path, "bodies", root["moments"], np.broadcast_to(given.moments, shape))
    for name, word in INPUTS.items():
        if (now := getattr(given, name)) is not None:
            _check_array(path, word, root["inputs"][name], now)
    for name, values in labels.items():
        if name not in root:
            raise checkpoint.different(path, f"no {name} varied", f"{name} varied")
        _check_array(path, name, root[name], values)


_WORDS = {
    "field_formula": "formula",
    "control_formula": "formula of the controller",
    "bodies": "number of bodies",
    "own_dt": "dt for each body",
    "own_axes": "axes for each body",
    "polhode_version": "polhode",
    "longest_step": "longest step",
    "kept_times": "times of the states",
    "events_formula": "formula of an event",
}


def _in_words(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a description for `checkpoint.check_same`: empty values, and those that old versions lack, are None."""
    return {_WORDS.get(name, name): None if x is False or x in ("", []) else x for name, x in attrs.items()}


def _check_array(path: Path, name: str, then: Any, now: np.ndarray) -> None:
    """Compare two arrays with a row for each body, or one for all, exactly, in blocks of bounded size."""
    if then.shape[1:] != now.shape[1:]:
        raise checkpoint.different(path, f"{name} of shape {then.shape}", f"{name} of shape {now.shape}")
    block = max(then.chunks[0], 1 << 16)
    for begin in range(0, max(then.shape[0], len(now)), block):
        a, b = (x[begin : begin + block] if x.shape[0] > 1 else x[:] for x in (then, now))
        a, b = np.broadcast_arrays(a, b)
        rows = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
        if rows.size:
            i = int(rows[0])
            old, new = (f"{name} = {np.squeeze(x[i]).tolist()} of body {begin + i}" for x in (a, b))
            raise checkpoint.different(path, old, new)
