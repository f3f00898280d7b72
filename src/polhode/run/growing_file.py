"""Files of runs with equal steps: they grow during the run, and hold the state from which it can be continued."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..physics.problem import Problem
from ..results import recorder
from ..results.store import checkpoint, trajectory_store
from ..results.trajectory import Info, Trajectory
from .fixed_step import RunState


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a run goes: into memory, into a new file, or on in the file of a run that was stopped."""

    out: Any = None
    overwrite: bool = False
    resume: bool = False

    def recorder(
        self, problem: Problem, state: RunState[Problem], info: Info, spec: Callable[[], dict[str, Any]],
        attributes: Callable[[], dict[str, str]],
    ) -> recorder.Recorder[Trajectory] | Trajectory:  # fmt: skip
        """Return the recorder of a run, with `state` moved to the checkpoint in its file; or a run that is complete.

        For files, `spec` gives the inputs that determine the run (`checkpoint.run_spec`), and `attributes` further
        attributes of a new file.
        """
        if self.out is None:
            return recorder.recorder(problem, info, None, self.overwrite)
        how, last = spec(), checkpoint.run_end(state.count, state.end)
        path = trajectory_store.folder_checked(self.out)
        found = recorder.continued(problem, path, how, last) if self.resume else None
        if found is None:
            attrs = checkpoint.initial_attributes(how, last) | attributes()
            return recorder.recorder(problem, info, self.out, self.overwrite, attrs)
        mark = found.mark if isinstance(found, recorder.Disk) else None
        if mark is not None:
            state.done, state.y = mark.step, mark.state
        return found
