"""Samples of a controller in plain Python, between compiled spans of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import conj, matrix, mul, rotate, times
from ..numbers import floats
from ..physics.control.controller import PERIOD, control_in
from ..physics.problem import Problem


class InPython:
    """Samples of a controller in plain Python; `fault` is what went wrong.

    A function that returns three floats, the usual answer, is called without the detours that find mistakes.
    """

    def __init__(self, problem: Problem) -> None:
        control = control_in(problem.field)
        assert control is not None
        self.control, self.fault = control, ""
        self._own: Any = problem.axes_quaternion
        self._to_user: Any = conj(self._own) if self._own else ()  # type: ignore[arg-type]
        self._inverse = problem.kernel_data(floats.number)[1][1]
        template = control.template
        fixed = [name for name in template.arguments if name in (*template.own, PERIOD)]
        self._constants = {name: _array(control.values[name]) for name in fixed}
        self._is_simple = not template.memory and not template.actuators
        self._arrays_fit = False

    def __call__(self, t: float, y: Any, system: Any) -> Any:
        """Return the state with the numbers after a sample; they are NaN if the function fails."""
        try:
            return y[0], y[1], self.numbers(t, y, "")
        except InputError as fault:
            self.fault = str(fault)
            return y[0], y[1], (math.nan,) * len(y[2])

    def numbers(self, t: float, y: Any, place: str) -> tuple[float, ...]:
        """Return commands and memory after a sample; messages name the `place`."""
        q, omega = y[0], times(self._inverse, y[1])
        if self._own:
            q, omega = mul(q, self._to_user), rotate(self._own, omega)
        R, control = matrix(q), self.control
        if self._is_simple and self._arrays_fit:
            found = self._called(t, R, omega)
            if found is not None:
                return found
        found = control.sampled(t, R, omega, control.with_states(y[2]), place or f"at t = {t:g}")
        self._arrays_fit = control._kinds == (np.array,)
        return found

    def _called(self, t: float, R: Any, omega: Any) -> tuple[float, ...] | None:
        """Return the torque, if the function returns an array of three finite numbers."""
        arguments: dict[str, Any] = {"t": t, "R": np.array(R), "omega": np.array(omega)}
        takes = self.control.template.state_used
        try:
            value = self.control.template.function(**{name: arguments[name] for name in takes}, **self._constants)
            a, b, c = value.tolist() if type(value) is np.ndarray else value
            a, b, c = float(a), float(b), float(c)
        except Exception as problem:
            raise self.control.template.user.raised(problem, f"at t = {t:g}") from problem
        return (a, b, c) if a - a == 0.0 == b - b == c - c else None


def _array(value: Any) -> Any:
    return np.array(value) if isinstance(value, tuple) else value
