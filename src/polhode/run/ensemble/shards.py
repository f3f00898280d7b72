"""Ensembles in shards: each is run on one thread and writes its own part of the store, here or on a cluster."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import dataclasses
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import _version
from ...compile import notice
from ...compile.clock import Stopwatch
from ...errors import InputError, ResultWarning, StepError
from ...methods import Method, methods
from ...physics.fields import Field
from ...physics.observers.event import Event
from ...physics.observers.statistics import Watch
from ...physics.problem import Problem
from ...physics.validate import whole_number
from ...results.ensemble import Ensemble
from ...results.progress import Progress
from ...results.store import atomic, ensemble_files, trajectory_store
from ...results.store import ensemble_store as crowd_store
from ...results.store.checkpoint import coefficients
from . import kept_times, shard_checkpoint, store
from .task import Task

BODY_STEPS = {"cpu": 5e7, "cuda": 2e10}
"""Largest number of body-steps in a shard, by device: half a second to a few seconds."""

ROW_BYTES = {"cpu": 3.2e7, "cuda": 5e8}
"""Largest size in bytes of the stored states of a shard, which needs about four times as much memory."""

ADAPTIVE_STEP = 50.0
"""Work of an adaptive run for each radian and each kept time, in equal steps: a few steps of high order, repeated."""

NUMBERS, LANES = 7, 16
"""Numbers in a state, and the largest number of lanes: the default shard size is a multiple of it."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that is needed to run a shard on any machine that can access the store; small, and can be pickled."""

    path: str
    method: str | Method
    body: Any
    field: Field | None
    start: tuple[Any, Any]
    t0: float
    count: int
    every: int
    device: str
    wanted: Watch | None
    version: str
    tolerance: float | None = None
    longest: np.ndarray | None = None
    tol: float | None = None
    stops: np.ndarray | None = None
    asked: np.ndarray | None = None
    step_tol: float | None = None
    events: tuple[Event, ...] = ()

    def task(self, root: Any, number: int) -> Task:
        """Read a shard from the store."""
        quaternion, momentum = self.start
        model = Problem(self.body, attitude=quaternion, momentum=momentum, t0=self.t0).in_field(self.field)
        batch = store.read_batch(root, number, self.field)
        begin, end = crowd_store.bounds(root, number)
        longest = self.longest if self.longest is None or len(self.longest) == 1 else self.longest[begin:end]
        return Task(
            batch, methods[self.method], model, self.t0, self.count, self.every, self.device, self.wanted,
            tolerance=self.tolerance, longest=longest, tol=self.tol, stops=self.stops, asked=self.asked,
            step_tol=self.step_tol, events=self.events,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Done:
    """A shard in the store, with the seconds to run and write it, and the seconds of compilation."""

    number: int
    seconds: float
    compile_seconds: float


def plan(task: Task, path: Path) -> Plan:
    """Return the plan of a task's shards, which can be pickled."""
    model, method = task.model, task.method
    known = coefficients(method) is None
    return Plan(
        str(path.absolute()), method.name if known else method, model.body, model.field,
        (model.quaternion, model.momentum), task.t0,
        task.count, task.every, task.device, task.wanted, _version.__version__, task.tolerance, task.longest, task.tol,
        task.stops, task.asked, task.step_tol, task.events,
    )  # fmt: skip


def run_shard(plan: Plan, number: int, stop: threading.Event | None = None) -> Done:
    """Run and write a shard unless it is done; on one thread, because other shards run in parallel.

    If told to stop, it saves a checkpoint and raises `Stopped`.
    """
    watch = Stopwatch()
    path = Path(plan.path)
    if plan.version != _version.__version__:
        raise InputError(
            f"a worker has polhode {_version.__version__}, but the run was started by {plan.version}; install one "
            "version "
            "everywhere"
        )
    if not path.is_dir():
        raise InputError(f"a worker cannot see {path}; the store must be in a folder shared by all workers")
    root = crowd_store.opened(path, "r+")
    if not crowd_store.is_done(root, number):
        task = plan.task(root, number)
        part = task.run() if plan.device != "cpu" else shard_checkpoint.run(task, path, number, stop)
        store.write(root, number, task, part)
        shard_checkpoint.remove(path, number)
    return Done(number, watch.seconds, watch.compile_seconds)


def default_shard_size(task: Task) -> int:
    """Return the number of bodies in a shard, as large as the bounds above allow."""
    kept = kept_times.inner(task).kept if task.stops is not None else task.kept
    rows = 8 * (len(kept) * NUMBERS + task.extra_columns)
    most = min(BODY_STEPS[task.device] / _body_steps(task), ROW_BYTES[task.device] / rows)
    return min(max(int(most) // LANES, 1) * LANES, task.batch.number)


def _body_steps(task: Task) -> float:
    """Return the work of a body, in equal steps; that of adaptive steps is estimated from the initial speed."""
    if task.tolerance is None:
        return task.count
    turned = float(task.batch.speeds().mean()) * abs(float(task.batch.dt[0]))
    return ADAPTIVE_STEP * (1 + len(task.times()) + turned)


def cores() -> int:
    """Return the number of cores this process may use."""
    from ...compile import threads

    return threads.cores()


def on_cores(plan: Plan, todo: list[int]) -> Generator[Done, None, None]:
    """Run shards on the cores of this machine, or one after another on its GPU."""
    threads = 1 if plan.device != "cpu" else min(cores(), len(todo))
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(contextvars.copy_context().run, run_shard, plan, number, stop) for number in todo]
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield done.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def run(
    task: Task, out: str | Path | None, *, overwrite: bool = False, resume: bool = False, scheduler: Any = None,
    shard_size: int | None = None, progress: Any = None, labels: Mapping[str, np.ndarray] | None = None,
    attrs: Mapping[str, Any] | None = None, tell: Callable[[Done], Any] | None = None,
) -> Ensemble:  # fmt: skip
    """Run a task shard by shard into a new store, or into the store of an interrupted run."""
    path = output_path(out, overwrite, resume)
    shard_size = None if shard_size is None else whole_number("unit", shard_size)
    size = default_shard_size(task) if shard_size is None else min(shard_size, task.batch.number)
    with _workers(scheduler) as workers:
        try:
            with atomic.writing(path):
                if resume and path.exists():
                    store.check_same(path, task, shard_size and size, labels or {})
                    _repair(path)
                else:
                    trajectory_store.new_path(path, overwrite)  # checked again, now under the lock
                    store.create(path, task, size, labels or {}, attrs or {})
                _work(plan(task, path), path, workers, progress, tell)
        except OSError as fault:
            raise _stopped_writing(path, fault) from fault
    return ensemble_files.StoredEnsemble(path, task.batch.bodies)


def _repair(path: Path) -> None:
    """Prepare a store for resuming: remove the remains of a killed writer, and unmark damaged shards."""
    atomic.tidy_within(path)
    if bad := store.repair(path):
        warnings.warn(
            f"{path} was damaged: {len(bad)} shards (the first is number {bad[0]}) do not match their checksums "
            "and are run again",
            ResultWarning,
            stacklevel=5,
        )


def output_path(out: str | Path | None, overwrite: bool, resume: bool) -> Path:
    """Return the checked path of the store."""
    if out is None:
        raise InputError("a scheduler needs out='crowd.zarr': the workers write to a shared store")
    if overwrite and resume:
        raise InputError("give overwrite or resume, not both: a run is either restarted or resumed")
    path = trajectory_store.checked(out)
    if path.suffix != ".zarr":
        raise InputError(f"an ensemble is written to a .zarr store; save the result as {path.name} afterwards")
    if resume and path.exists():
        return path
    return trajectory_store.new_path(path, overwrite)


def _workers(
    scheduler: Any,
) -> contextlib.AbstractContextManager[Callable[[Plan, list[int]], Generator[Done, None, None]]]:
    """Return the function that runs shards: on the cores of this machine, or on a cluster."""
    if scheduler is None:
        return contextlib.nullcontext(on_cores)
    from . import dask

    return dask.connected(scheduler)


def _work(plan: Plan, path: Path, workers: Any, progress: Any, tell: Callable[[Done], Any] | None) -> None:
    """Run the missing shards, and record the seconds without compilation."""
    todo = crowd_store.missing(path)
    root = crowd_store.opened(path)
    total = -(-root.attrs["bodies"] // root.attrs["unit"])
    if not todo and crowd_store.is_finished(path):
        return
    began, compiling = time.perf_counter(), 0.0
    bar = Progress(progress, f"{root.attrs['bodies']} bodies", total)
    coming, method = workers(plan, todo), getattr(plan.method, "name", str(plan.method))
    try:
        with notice.about(notice.named(method, plan), bar.visible):
            for n, done in enumerate(coming if todo else (), total - len(todo) + 1):
                bar.update(n)
                compiling = max(compiling, done.compile_seconds)  # the first shards share one compilation
                if tell is not None:
                    tell(done)
    finally:
        coming.close()  # also after an exception: stops all writers
        bar.close()
    shard_checkpoint.remove_all(path)
    store.finish(path, time.perf_counter() - began - compiling)


def _stopped_writing(path: Path, fault: OSError) -> StepError:
    """Return the error for a disk that is full or no longer accessible."""
    why = fault.strerror or str(fault)
    try:
        left = f"{len(crowd_store.missing(path))} shards are missing; free disk space and use resume=True (--resume)"
    except InputError:
        left = "nothing is kept"
    return StepError(f"{path} cannot be written ({why}); {left}")
