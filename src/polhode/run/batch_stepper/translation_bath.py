"""The heat bath of the translation of many bodies: friction, and the noise of its temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...physics.fields.heat_bath import FIRST, FRICTION, KT, SEED, STREAM, BathField, of_each
from ..ensemble.batch import parameters_of

VECTORS = 64
"""Vectors of normal numbers of a step before those of the translation: the rotation never draws as many."""

SHARED = 1024
"""Bodies from which on several cores share the work."""


class TranslationBath:
    """Friction and noise of the momenta: dp = -R Gamma R^T v dt + R sqrt(2 kT Gamma) dW, Gamma in the body.

    Attributes
    ----------
    is_isotropic : whether Gamma of every body is the same in all directions, so that attitudes do not matter
    """

    def __init__(self, field: Any, params: dict[str, Any] | None, number: int, velocities: bool) -> None:
        if not isinstance(field, BathField):
            raise InputError(
                "translation_bath must be ph.fields.heat_bath(kT=..., friction=...), with the friction a force for "
                f"each unit of velocity; got {type(field).__name__}",
                "translation_bath",
            )
        self.field, self.values = parameters_of(field, params or {}, number)
        self.velocities = velocities
        self._columns = np.empty((0, 0))
        self._matrices: dict[Any, np.ndarray] = {}
        tensors = self.values[:, FRICTION:SEED].reshape(-1, 3, 3)
        self.is_isotropic = bool((tensors == tensors[:, :1, :1] * np.eye(3)).all())

    def of_bodies(self, number: int) -> np.ndarray:
        """Return the parameters, one row for each and one column for each body."""
        if self._columns.shape[1] != number:
            assert self.field is not None
            self._columns = np.ascontiguousarray(of_each(self.field, self.values, number).T)
            self._matrices = {}
        return self._columns

    def relax(self, p: np.ndarray, q: Any, h: Any, masses: Any, made: int, drawn: int) -> None:
        """Make the exact step of friction and noise over h, for momenta or velocities with one row for each body.

        q : attitudes, scalar first, unless the friction is isotropic
        made : number of steps made before; drawn : number of such steps in this step of the scheme before
        """
        from ...compile.batch import translation_noise
        from ...compile.lazily import program

        number, velocities, columns = len(p), self.velocities, self.of_bodies(len(p))
        each = [np.ascontiguousarray(np.broadcast_to(x, (number,)), dtype=float) for x in (h, masses)]
        counters = columns[SEED], columns[STREAM], columns[FIRST] + made, VECTORS + drawn
        if self.is_isotropic:
            run = program(lambda: translation_noise.loop(velocities), "noise of translation", velocities).run
            given: tuple[Any, ...] = (*each, columns[KT], columns[FRICTION], *counters)
        else:
            run = program(translation_noise.turned_loop, "anisotropic noise of translation").run
            given = np.stack(q, axis=-1), self._matrices_for(each, columns), *counters
        _on_cores(run, number, p, *given)

    def _matrices_for(self, each: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
        """The matrices of steps h of bodies with these masses, which are kept for the next call."""
        from ...compile.batch import translation_noise
        from ...compile.lazily import program

        key = tuple(x.tobytes() for x in each)
        if key not in self._matrices:
            matrices, velocities = np.empty((columns.shape[1], 18)), self.velocities
            fill = program(
                lambda: translation_noise.relaxations(velocities), "relaxation of translation", velocities
            ).run  # fmt: skip
            _on_cores(fill, len(matrices), *each, columns[KT], columns[FRICTION:SEED], matrices)
            self._matrices = {key: matrices}
        return self._matrices[key]


def _on_cores(run: Any, number: int, *given: Any) -> None:
    """Run a loop over all bodies, on several cores if there are many."""
    from ...compile.threads import share_out

    if number < SHARED:
        run(*given, 0, number)
    else:
        share_out(lambda begin, end: run(*given, begin, end), number)
