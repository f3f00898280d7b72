"""Files of runs that are written at the end, as a whole: adaptive ones, and those with dense output or events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import StepError
from ..results.store import checkpoint, trajectory_store
from ..results.trajectory import Trajectory


def written(out: Any, overwrite: bool, resume: bool, how: dict[str, Any], run: Callable[[], Trajectory]) -> Trajectory:
    """Run and write the result; with `resume`, return the result of a complete file of the same run.

    `how` are the inputs that determine the run (`checkpoint.run_spec`). The states before a failed step are written.
    """
    with trajectory_store.reserved(out):
        if resume:
            there = trajectory_store.existing(trajectory_store.folder_checked(out))
            whole = None if there is None else _same_run(there, how)
            if whole is not None and whole.status == "finished":
                return whole
            overwrite = whole is not None
        path = trajectory_store.new_path(out, overwrite)
        attrs = checkpoint.initial_attributes(how)
        try:
            sol = run()
        except StepError as failed:
            if failed.partial is not None:
                trajectory_store.save(failed.partial, path, overwrite, attrs)
            raise
        trajectory_store.save(sol, path, overwrite, attrs)
        return sol


def _same_run(path: Path, how: dict[str, Any]) -> Trajectory:
    """Return the trajectory of a file written at the end of a run; refuse one of another run."""
    whole, attrs = trajectory_store.read(path)
    checkpoint.check_same(path, checkpoint.run_attribute(path, attrs, checkpoint.RUN_SPEC), how)
    whole.stored.checked(0)
    return whole
