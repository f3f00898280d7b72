"""Files of runs that are written at the end, as a whole: adaptive ones, and those with dense output or events.

Until then, the file of an adaptive run that takes longer than a second holds its journal (`run.journal`), with which
the run can be continued after any interruption.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import StepError
from ..results.recorder import NOTHING
from ..results.store import checkpoint, trajectory_store
from ..results.trajectory import Trajectory
from . import adaptive
from .journal import Journal


def written(
    out: Any, overwrite: bool, resume: bool, how: dict[str, Any], run: Callable[[], Trajectory],
    growing: Callable[..., Journal] | None = None, attributes: Mapping[str, str] = NOTHING,
) -> Trajectory:  # fmt: skip
    """Run and write the result; with `resume`, return the result of a complete file of the same run.

    `how` are the inputs that determine the run (`checkpoint.run_spec`). The states before a failed step are written.
    `growing(path, attrs, found)` makes the journal of a run; `attributes` are further ones of the file.
    """
    with trajectory_store.reserved(out):
        unfinished = None
        if resume:
            there = trajectory_store.existing(trajectory_store.folder_checked(out))
            whole = None if there is None else _same_run(there, how)
            if whole is not None and whole.status == "finished":
                return whole
            overwrite = whole is not None
            same_software = whole is not None and whole.stored.attrs.get(checkpoint.SOFTWARE) == checkpoint.software()
            unfinished = whole.stored if whole is not None and same_software else None
        path = trajectory_store.new_path(out, overwrite)
        attrs = checkpoint.initial_attributes(how) | dict(attributes)
        journal = None if growing is None else growing(path, attrs, unfinished)
        try:
            with contextlib.nullcontext() if journal is None else adaptive.journaled(journal):
                sol = run()
        except StepError as failed:
            if failed.partial is not None:
                trajectory_store.save(failed.partial, path, overwrite or _began(journal), attrs)
            raise
        except BaseException:
            if journal is not None:
                journal.stop()
            raise
        if journal is not None and journal.earlier:
            sol.info = dataclasses.replace(sol.info, seconds=sol.seconds + journal.earlier)
        trajectory_store.save(sol, path, overwrite or _began(journal), attrs)
        return sol


def _began(journal: Journal | None) -> bool:
    """Return whether the file of this run exists, unfinished."""
    return journal is not None and journal.writer is not None


def _same_run(path: Path, how: dict[str, Any]) -> Trajectory:
    """Return the trajectory of a file written at the end of a run; refuse one of another run."""
    whole, attrs = trajectory_store.read(path)
    checkpoint.check_same(path, checkpoint.run_attribute(path, attrs, checkpoint.RUN_SPEC), how)
    whole.stored.checked(0)
    return whole
