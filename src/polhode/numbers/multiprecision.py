"""mpmath numbers as a number type, with a separate working precision in each thread.

The precision of mpmath belongs to its context, and the whole process shares the context of ``import mpmath``.
Runs with `digits` therefore use private contexts, one for each thread (`working`): the user's precision neither changes
nor matters, and threads with different digits do not disturb one another. Outside of `working`, the same functions use
the context of ``import mpmath``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np

from .dispatch import Floats, register
from .primitives import FUNCTIONS

_free: list[Any] = []
"""Contexts of threads that have ended, for reuse: each has number types, which are never unregistered."""


class _Private:
    """The context of one thread; when the thread ends, another one may reuse it."""

    def __init__(self) -> None:
        self.free = _free  # modules are emptied before the last thread ends
        try:
            self.context = _free.pop()
        except IndexError:
            self.context = mpmath.MPContext()
            register(self.context.mpf, Mp)

    def __del__(self) -> None:
        self.free.append(self.context)


class _Thread(threading.local):
    current: Any = mpmath.mp
    private: _Private | None = None


_thread = _Thread()


class _Current:
    """The current context of this thread, with all functions of mpmath under their names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_thread.current, name)


mp: Any = _Current()


@contextlib.contextmanager
def working(digits: int) -> Iterator[None]:
    """Set the working precision of this thread. Numbers that leave the block must pass through `public`."""
    if _thread.private is None:
        _thread.private = _Private()
    outer, context = _thread.current, _thread.private.context
    _thread.current = context
    try:
        with context.workdps(digits):
            yield
    finally:
        _thread.current = outer


@contextlib.contextmanager
def real() -> Iterator[None]:
    """Let functions of real numbers that have no real value raise ValueError, as those of floats do."""
    context = _thread.current
    before, context.trap_complex = context.trap_complex, True
    try:
        yield
    finally:
        context.trap_complex = before


def public(value: Any) -> Any:
    """Convert a number, or an array of numbers, to the context of ``import mpmath``, with all digits."""
    if isinstance(value, np.ndarray):
        numbers = np.empty(value.size, dtype=object)
        numbers[:] = [public(x) for x in value.ravel()]
        return numbers.reshape(value.shape)
    if hasattr(value, "_mpc_"):
        return mpmath.mp.make_mpc(value._mpc_)
    return mpmath.mp.make_mpf(value._mpf_) if hasattr(value, "_mpf_") else value


class Mp:
    """mpmath's functions under the names kernels use."""

    @staticmethod
    def epsilon() -> Any:
        """Distance from 1 to the next number at the working precision."""
        return +mp.eps

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        """Choose by a condition."""
        return yes if condition else no

    bracket, whole = Floats.bracket, Floats.whole


def _function(name: str) -> Any:
    return staticmethod(lambda *arguments: getattr(_thread.current, name)(*arguments))


for _name in FUNCTIONS:
    setattr(Mp, _name, _function(_name))

register(mpmath.mpf, Mp)


def number(value: Any) -> Any:
    """Return an integer, a float (converted exactly), or a named constant in the working precision.

    A column of data becomes a tuple of such numbers.
    """
    if isinstance(value, np.ndarray):
        return tuple(map(mp.mpf, value.tolist()))
    return +getattr(mp, value) if isinstance(value, str) else mp.mpf(value)
