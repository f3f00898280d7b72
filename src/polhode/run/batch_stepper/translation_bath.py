"""The heat bath of the translation of many bodies: isotropic friction, and the noise of its temperature."""

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
    """Friction and noise of the momenta: dp = -friction v dt + sqrt(2 kT friction) dW."""

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
        self._check_isotropic()

    def _check_isotropic(self) -> None:
        tensors = self.values[:, FRICTION:SEED].reshape(-1, 3, 3)
        bad = np.flatnonzero((tensors != tensors[:, :1, :1] * np.eye(3)).any(axis=(1, 2)))
        if len(bad):
            raise InputError(
                "the friction of translation_bath must be one number, the same in all directions; that of body "
                f"{bad[0]} is {tensors[bad[0]].tolist()}",
                "translation_bath",
            )

    def of_bodies(self, number: int) -> np.ndarray:
        """Return the parameters, one row for each and one column for each body."""
        if self._columns.shape[1] != number:
            assert self.field is not None
            self._columns = np.ascontiguousarray(of_each(self.field, self.values, number).T)
        return self._columns

    def relax(self, p: np.ndarray, h: Any, masses: Any, made: int, drawn: int) -> None:
        """Make the exact step of friction and noise over h, for momenta or velocities with one row for each body.

        made : number of steps made before; drawn : number of such steps in this step of the scheme before
        """
        from ...compile.batch import translation_noise
        from ...compile.program import program
        from ...compile.threads import share_out

        number, velocities, columns = len(p), self.velocities, self.of_bodies(len(p))
        each = [np.ascontiguousarray(np.broadcast_to(x, (number,)), dtype=float) for x in (h, masses)]
        run = program(lambda: translation_noise.loop(velocities), "noise of translation", velocities).run
        given = (*each, *(columns[i] for i in (KT, FRICTION, SEED, STREAM)), columns[FIRST] + made, VECTORS + drawn)
        if number < SHARED:
            run(p, *given, 0, number)
        else:
            share_out(lambda begin, end: run(p, *given, begin, end), number)
