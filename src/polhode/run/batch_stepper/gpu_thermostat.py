"""A thermostat of bodies in arrays on a GPU: kinetic energies are summed there, and only their sums are sent.

The sums have a fixed order, which depends on the number of bodies alone, so a run can be repeated bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .rescaled import Coupled

if TYPE_CHECKING:
    from .gpu_trial import Trial

PARTS, LAST = 1 << 16, 1 << 8
"""Number of partial sums over bodies, and of the sums over these that are sent to the processor."""


class CardCoupling(Coupled):
    """A thermostat and the bodies of a call whose momenta it rescales."""

    def __init__(self, thermostat: Any, trial: Trial) -> None:
        masses = None if trial.translation is None else trial.translation.stepper.masses
        super().__init__(thermostat, trial.gpu.stepper, masses)
        self.trial, self.groups = trial, 1 if masses is None else 2
        self.sums, self.found = trial.gpu.once(("memory of sums", self.groups), self._memory)

    def _memory(self) -> tuple[Any, Any]:
        """Return memory for sums: of the GPU, and memory that the processor reads, too."""
        cuda, groups = self.trial.gpu.cuda, self.groups
        return (
            cuda.device_array((groups, PARTS), dtype=np.float64), cuda.mapped_array((groups, LAST), dtype=np.float64)
        )  # fmt: skip

    def __call__(self) -> None:
        """Rescale the momenta over half a step."""
        from ...compile.cuda_motion import rescaling

        trial, layout = self.trial, self.trial.gpu.stepper.form.layout
        factors = self.factors(trial.h / 2, self._twice_kinetic())
        for vectors, factor in zip(trial.seen[1::2], factors, strict=True):
            trial.launch(rescaling, (layout,), vectors, factor)

    def _twice_kinetic(self) -> list[float]:
        """Twice the kinetic energies of translation (with masses) and of rotation; waits for the GPU."""
        from ...compile.cuda_motion import rotational, summing, translational

        trial, gpu, form = self.trial, self.trial.gpu, self.trial.gpu.stepper.form
        parts = min(PARTS, gpu.number)
        last, (inertia, axes) = min(LAST, parts), gpu.constants
        if trial.translation is not None:
            run = gpu.kernel(translational, form)
            masses = trial.translation.masses
            gpu.launch(run, trial.stream, trial.seen[1], masses, self.sums, 0, parts, gpu.number, threads=parts)
        run, row = gpu.kernel(rotational, form, gpu.turned), self.groups - 1
        gpu.launch(run, trial.stream, trial.v, inertia, axes, self.sums, row, parts, gpu.number, threads=parts)
        run = gpu.kernel(summing)
        gpu.launch(run, trial.stream, self.sums, self.found, self.groups, last, parts, threads=last)
        gpu.wait(trial.stream)
        return [float(np.sum(self.found[row, :last])) for row in range(self.groups)]
