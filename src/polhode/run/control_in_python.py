"""Samples of a controller in plain Python, between compiled spans of steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.so3 import conj, matrix, mul, rotate, times
from ..numbers import floats
from ..physics.control.controller import PERIOD, control_in
from ..physics.fields.kernels import formula_kernel
from ..physics.problem import Problem
from .system import compiled


class InPython:
    """Samples of a controller in plain Python; `fault` is what went wrong."""

    def __init__(self, problem: Problem) -> None:
        control = control_in(problem.field)
        assert control is not None
        self.control, self.fault = control.alone, ""
        self._own: Any = problem.axes_quaternion
        self._to_user: Any = conj(self._own) if self._own else ()  # type: ignore[arg-type]
        self._inverse = problem.kernel_data(floats.number)[1][1]
        template = control.template
        self._function, self._takes = template.function, template.state_used
        fixed = [name for name in template.arguments if name in (*template.own, PERIOD)]
        self._constants = {name: _array(control.values[name]) for name in fixed}
        self._is_simple = not template.memory and not template.actuators
        self._memory = [part for part in _parts(template.initial) if part[0] in template.arguments]
        if template.actuators:
            text = control.alone.commanded_text
            self.control.command = compiled(lambda: formula_kernel(text, floats.number), "commands", repr(text))

    def __call__(self, t: float, y: Any, system: Any) -> Any:
        """Return the state with the numbers after a sample; they are NaN if the function fails."""
        try:
            return y[0], y[1], self.numbers(t, y, "")
        except InputError as fault:
            self.fault = str(fault)
            return y[0], y[1], (math.nan,) * len(y[2])

    def numbers(self, t: float, y: Any, place: str) -> tuple[float, ...]:
        """Return commands and memory after a sample; messages name the `place`."""
        q, omega, control = y[0], times(self._inverse, y[1]), self.control
        if self._own:
            q, omega = mul(q, self._to_user), rotate(self._own, omega)
        R = matrix(q)
        if control.kinds == (np.array,):
            value = self._called(t, R, omega, y[2])
        else:
            value = control.called(t, R, omega, control.with_states(y[2]), place or f"at t = {t:g}")
        listed = value.tolist() if type(value) is np.ndarray else value
        if (
            self._is_simple and isinstance(listed, list | tuple) and len(listed) == 3
        ):  # the usual answer, without detours
            a, b, c = listed
            if type(a) is type(b) is type(c) is float and a - a == 0.0 == b - b == c - c:
                return a, b, c
        return control.sampled(value, omega, y[2], place or f"at t = {t:g}")

    def _called(self, t: float, R: Any, omega: Any, z: Any) -> Any:
        """Return the value of a function that takes arrays."""
        state: dict[str, Any] = {"t": t, "R": np.array(R), "omega": np.array(omega)}
        given = {name: state[name] for name in self._takes}
        for name, first, last, shape in self._memory:
            given[name] = np.array(z[first:last]).reshape(shape) if shape else z[first]
        try:
            return self._function(**given, **self._constants)
        except Exception as problem:
            raise self.control.template.user.raised(problem, f"at t = {t:g}") from problem


def _parts(initial: Mapping[str, Any]) -> list[tuple[str, int, int, tuple[int, ...]]]:
    """Return names, places (first and last + 1) and shapes of the states of a controller."""
    found, first = [], 0
    for name, value in initial.items():
        last = first + np.size(value)
        found.append((name, first, last, np.shape(value)))
        first = last
    return found


def _array(value: Any) -> Any:
    return np.array(value) if isinstance(value, tuple) else value
