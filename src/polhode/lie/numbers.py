"""Matrices in doubles or with any number of digits: NumPy arrays of floats, complex numbers or mpmath numbers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..numbers import floats
from ..numbers.precision import guarded
from ..physics.validate import number_of_digits
from ..taylor import interpreter


class Numbers:
    """A number type for matrices: conversion of exact numbers, arrays, the exponential, Taylor arithmetic."""

    digits: int | None = None
    number: Callable[[Any], Any] = staticmethod(floats.number)
    arithmetic = interpreter.DOUBLES
    bits = 53
    reach = 1.0

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next number."""
        return 2.0 ** (1 - self.bits)

    def precision(self) -> AbstractContextManager[None]:
        """Set the working precision to the requested digits and a few more."""
        return guarded(self.digits)

    def array(self, real: Any, imag: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return numbers as an array, complex if there are imaginary parts."""
        parts = np.array(real, dtype=float).reshape(shape)
        return parts + 1j * np.array(imag, dtype=float).reshape(shape) if len(imag) else parts

    def parts(self, y: np.ndarray) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the entries, row by row: real parts, and imaginary parts if there are any."""
        flat = y.ravel()
        return tuple(flat.real.tolist()), tuple(flat.imag.tolist()) if np.iscomplexobj(y) else ()

    def public(self, y: np.ndarray) -> np.ndarray:
        """Return the array in the form for users."""
        return y

    def exp(self, A: np.ndarray) -> np.ndarray:
        """Matrix exponential: Taylor series of A/2^s, squared s times; the norm of A/2^s is at most `reach`."""
        size, one = float(np.abs(A).sum(axis=1).max()), np.eye(len(A), dtype=int)
        if not 0 < size < math.inf:
            return one + size * A
        squarings = max(0, math.ceil(math.log2(size / self.reach)))
        gained, terms = 0.0, 0
        while gained < self.bits:
            terms += 1
            gained += math.log2(terms) - math.log2(size) + squarings
        part, total = A / 2**squarings, one
        for k in range(terms, 0, -1):
            total = one + part @ total / k
        for _ in range(squarings):
            total = total @ total
        return np.asarray(total)


class Digits(Numbers):
    """mpmath numbers with a given number of digits."""

    def __init__(self, digits: Any) -> None:
        from ..numbers.multiprecision import mp, number

        self.digits, self.number = number_of_digits(digits), number
        self.arithmetic = interpreter.MULTIPRECISION
        with self.precision():
            self.bits = int(mp.prec)
            self.reach = 2.0 ** (-math.isqrt(self.bits) // 2)  # balances squarings and terms

    def array(self, real: Any, imag: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return numbers as an array of mpmath numbers."""
        from ..numbers.multiprecision import mp

        entries = [self.number(x) for x in real]
        if len(imag):
            entries = [mp.mpc(a, self.number(b)) for a, b in zip(entries, imag, strict=True)]
        array = np.empty(len(entries), dtype=object)
        array[:] = entries
        return array.reshape(shape)

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """The same; on complex groups nothing else would notice a velocity that has become complex."""
        from ..numbers.multiprecision import real

        with super().precision(), real():
            yield

    def parts(self, y: np.ndarray) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the entries, row by row: real parts, and imaginary parts if there are any."""
        flat = y.ravel().tolist()
        imag = tuple(x.imag for x in flat) if any(hasattr(x, "_mpc_") for x in flat) else ()
        return tuple(x.real for x in flat), imag

    def public(self, y: np.ndarray) -> np.ndarray:
        """Return the array with numbers of ``import mpmath``."""
        from ..numbers.multiprecision import public

        return np.asarray(public(y))

    def exp(self, A: np.ndarray) -> np.ndarray:
        """Matrix exponential, with extra bits because each squaring doubles relative errors."""
        from ..numbers.multiprecision import mp

        with mp.extraprec(16 + math.isqrt(self.bits)):
            result = super().exp(A)
        return np.asarray(+result)


def numbers_for(digits: Any) -> Numbers:
    """Return the number type with these digits; doubles for None."""
    return Numbers() if digits is None else Digits(digits)
