"""Data layout of an ensemble: conversion between arrays with one row per body and SIMD lanes.

`given` is a tuple of arrays with one row per body, or one row for all: quaternions and momenta in the users' axes,
principal moments, parameters of the field, axes (a quaternion from principal to user axes, or no column), the step, the
number of steps, and then one row for all bodies for each column of the field's data. `data` has one row per number and
one column per body, in principal axes.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from ...kernels.loops import COLUMNS
from ...kernels.so3 import conj, mul, rotate, unrotate
from ...numbers import floats
from ...numbers.dispatch import NO_FMA
from ...numbers.primitives import all_lanes, where
from ...symbolic.expression import compiled, source, symbol
from .. import numba_target
from ..kept_memory import HOST, Block
from ..program import program
from ..simd.vector_types import LANES, load, store, stream
from ..threads import share_evenly
from . import few_bodies
from .places import ATTITUDE, AXES, DT, INERTIA, INVERSE, MOMENTS, MOMENTUM, PARAMETERS, STATE, STEPS, VALUES

FEW, MANY = 1024, 1 << 18
"""Most bodies that NumPy always converts, and that it converts before a conversion is compiled; the bits are the same.

NumPy takes 0.2 microseconds for a body, the compiled conversions a tenth of it after two seconds of compiling.
"""

CONVERTED: collections.Counter[Hashable] = collections.Counter()
"""Number of bodies that NumPy has converted in this process, for each conversion."""

LEAST = 512
"""Fewest groups of lanes for a thread in a pass over all bodies: they take about 0.1 ms."""

EVERYBODY = np.empty(0, dtype=np.int64)
"""Natural order of the bodies (no permutation)."""


class Sizes(NamedTuple):
    """Numbers of the field's parameters, and of the axes: four or none.

    `data` are the places of columns of data among the parameters; `values` has a placeholder there. `states` are the
    places of the initial states of the field.
    """

    values: int
    axes: int
    data: tuple[int, ...] = ()
    states: tuple[int, ...] = ()

    @property
    def parameters(self) -> int:
        """Count of the numbers in the system that a torque can read."""
        return self.values + self.axes

    @property
    def dt(self) -> int:
        """The row of the step; the row of the number of steps follows."""
        return PARAMETERS + self.parameters

    @property
    def rows(self) -> int:
        """Rows of `data`."""
        return self.dt + 2


def sizes(given: tuple[np.ndarray, ...], data: tuple[int, ...] = (), states: tuple[int, ...] = ()) -> Sizes:
    """Count the parameters and axes of `given`; `data` and `states` are places among the parameters."""
    return Sizes(given[VALUES].shape[1], given[AXES].shape[1], data, states)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as callable from compiled code only."""
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(function)
    return made


def borrowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as callable from compiled code only, which does not count references to its arrays."""
    made: Callable[..., Any] = register_jitable(**numba_target.BORROWING)(function)
    return made


def one_by_one(function: Callable[..., Any], *widths: int) -> Callable[..., Any]:
    """Compile a kernel of tuples as straight-line code without fused multiply-add: the same bits as NumPy."""
    names = [chr(ord("a") + i) for i in range(len(widths))]
    symbols = [tuple(symbol(f"{x}{j}") for j in range(n)) for x, n in zip(names, widths, strict=True)]
    unpack = {f"{x}{j}": f"{x}[{j}]" for x, n in zip(names, widths, strict=True) for j in range(n)}
    made = compiled(*source("straight", ", ".join(names), unpack, function(*symbols)), floats.number)
    NO_FMA.add(made)
    return made


def compiled_if_worthwhile(make: Callable[[], Any], number: int, *shortcut: Hashable, total: int = 0) -> Any:
    """The compiled conversion of some bodies; None if it would have to be compiled and NumPy is sooner done.

    They may be a part of `total` bodies.
    """
    if max(number, total) <= FEW:
        return None
    made = program(make, *shortcut)
    if not made.is_warm:
        CONVERTED[shortcut] += number
        if CONVERTED[shortcut] <= MANY:
            return None
    return made.run


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Array to be filled that begins with a cache line, so that no vector lies in two of them."""
    size = 8 * math.prod(shape)
    return HOST.empty(shape) if size >= HOST.least else Block(size, HOST.grain).memory.view(float).reshape(shape)


def padded(number: int) -> int:
    """The next multiple of LANES."""
    return number + -number % LANES


# --- parts of compiled code -------------------------------------------------------------------------


@borrowing
def named(k: int, order: Any, number: int, bodies: Any) -> None:
    """Fill `bodies` with the bodies at positions k, k + 1, ...; beyond the end the last one is repeated."""
    for lane in range(LANES):
        i = min(k + lane, number - 1)
        bodies[lane] = order[i] if len(order) else i


def taking(width: int) -> Callable[..., Any]:
    """Compiled function that copies rows of bodies into lanes: ``data[first + j, at + lane]``."""

    def take(array: Any, bodies: Any, data: Any, first: int, at: int) -> None:
        several = len(array) > 1
        for lane in range(LANES):
            i = bodies[lane] if several else 0
            for j in range(width):
                data[first + j, at + lane] = array[i, j]

    return borrowing(take)


_take1, _take3, _take4 = taking(1), taking(3), taking(4)


@inner
def three(data: Any, first: int, at: int) -> Any:
    """A 3-vector of each body, in lanes."""
    return load(data[first], at), load(data[first + 1], at), load(data[first + 2], at)


@inner
def four(data: Any, first: int, at: int) -> Any:
    """A quaternion of each body, in lanes."""
    return load(data[first], at), load(data[first + 1], at), load(data[first + 2], at), load(data[first + 3], at)


attitude_in, vector_out, vector_in, attitude_out = (
    one_by_one(mul, 4, 4),
    one_by_one(rotate, 4, 3),
    one_by_one(unrotate, 4, 3),
    one_by_one(lambda q, a: mul(q, conj(a)), 4, 4),
)


def laying(size: Sizes) -> Callable[..., Any]:
    """Compiled function (given, bodies, data, at) that fills the columns of some bodies."""
    values, axes, dt, turned = taking(size.values), PARAMETERS + size.values, size.dt, size.axes > 0

    def turn(data: Any, at: int) -> Any:
        a = four(data, axes, at)
        q, m = attitude_in(four(data, STATE, at), a), vector_in(a, three(data, STATE + 4, at))
        for j in range(4):
            store(data[STATE + j], at, q[j])
        return m

    def keep(data: Any, at: int) -> Any:
        return three(data, STATE + 4, at)

    momentum, take_axes = inner(turn if turned else keep), taking(size.axes)

    def lay(given: Any, bodies: Any, data: Any, at: int) -> None:
        _take4(given[ATTITUDE], bodies, data, STATE, at)
        _take3(given[MOMENTUM], bodies, data, STATE + 4, at)
        _take3(given[MOMENTS], bodies, data, INERTIA, at)
        values(given[VALUES], bodies, data, PARAMETERS, at)
        take_axes(given[AXES], bodies, data, axes, at)
        _take1(given[DT], bodies, data, dt, at)
        _take1(given[STEPS], bodies, data, dt + 1, at)
        m, moments = momentum(data, at), three(data, INERTIA, at)
        for j in range(3):  # a linear body has no momentum along its axis, and its zero moment is never a divisor
            there = moments[j] > 0
            store(data[STATE + 4 + j], at, where(there, m[j], 0.0))
            store(data[INVERSE + j], at, where(there, 1 / moments[j], 0.0))

    return borrowing(lay)


def turning_back(size: Sizes) -> Callable[..., Any]:
    """Compiled function (rows, at, data, column) that rotates output states into the users' axes, read from `data`."""
    axes = PARAMETERS + size.values

    def turn(rows: Any, at: int, data: Any, column: int) -> None:
        a = four(data, axes, column)
        for i in range(len(rows)):
            q, m = attitude_out(four(rows[i], 0, at), a), vector_out(a, three(rows[i], 4, at))
            for j in range(4):
                store(rows[i, j], at, q[j])
            for j in range(3):
                store(rows[i, 4 + j], at, m[j])

    def keep(rows: Any, at: int, data: Any, column: int) -> None:
        pass

    return borrowing(turn if size.axes else keep)


@borrowing
def copied(array: Any, bodies: Any, low: int, high: int, out: Any, width: int) -> None:
    """Copy rows of bodies (or the one row for all) into another array."""
    several = len(array) > 1
    for lane in range(low, high):
        body = bodies[lane]
        row, there = array[body if several else 0], out[body]
        for j in range(width):
            there[j] = row[j]


@borrowing
def from_lanes(block: Any, first: int, at: int, bodies: Any, low: int, high: int, out: Any, width: int) -> None:
    """Copy numbers in lanes into rows of bodies."""
    for lane in range(low, high):
        there = out[bodies[lane]]
        for j in range(width):
            there[j] = block[first + j, at + lane]


@borrowing
def hand_over(
    given: Any, bodies: Any, low: int, high: int, rows: Any, at: int, q: Any, m: Any, extra_columns: Any
) -> None:
    """Copy initial and output states of the bodies in the lanes from `low` to `high` to the result arrays."""
    copied(given[ATTITUDE], bodies, low, high, q[0], 4)
    copied(given[MOMENTUM], bodies, low, high, m[0], 3)
    for n in range(len(rows)):
        from_lanes(rows[n], 0, at, bodies, low, high, q[n + 1], 4)
        from_lanes(rows[n], 4, at, bodies, low, high, m[n + 1], 3)
        from_lanes(rows[n], COLUMNS, at, bodies, low, high, extra_columns[n], extra_columns.shape[2])


# --- passes over all bodies -------------------------------------------------------------------------


def _laying_out(size: Sizes) -> Callable[..., Any]:
    lay = laying(size)

    def lay_out(given: Any, order: Any, number: int, data: Any, first: int, begin: int, end: int) -> None:
        bodies = np.empty(LANES, np.int64)
        for g in range(begin, end):
            named(first + g * LANES, order, number, bodies)
            lay(given, bodies, data, g * LANES)

    return lay_out


def lay_out(
    given: tuple[np.ndarray, ...], order: np.ndarray, number: int, data: np.ndarray, first: int = 0, total: int = 0
) -> None:
    """Fill `data`, whose width is a multiple of LANES, with the bodies from position `first`, a part of `total`."""
    size = sizes(given)
    run = compiled_if_worthwhile(lambda: _laying_out(size), data.shape[1], "lay out", size, total=total)
    if run is None:
        few_bodies.lay_out(given, order, number, data, first)
        return
    groups = data.shape[1] // LANES
    share_evenly(lambda begin, end: run(given, order, number, data, first, begin, end), groups, LEAST)


def _handing_over(size: Sizes) -> Callable[..., Any]:
    turn_back, take_axes, axes = turning_back(size), taking(size.axes), PARAMETERS + size.values

    def hand_all_over(
        given: Any,
        order: Any,
        rows: Any,
        first: int,
        last: int,
        q: Any,
        m: Any,
        extra_columns: Any,
        begin: int,
        end: int,
    ) -> None:
        bodies, block = np.empty(LANES, np.int64), np.empty((axes + 4, LANES))
        for g in range(begin, end):
            at = g * LANES
            named(first + at, order, last, bodies)
            take_axes(given[AXES], bodies, block, axes, 0)
            turn_back(rows, at, block, 0)
            hand_over(given, bodies, 0, min(LANES, last - first - at), rows, at, q, m, extra_columns)

    return hand_all_over


def hand_all_over(
    given: tuple[np.ndarray, ...], order: np.ndarray, rows: np.ndarray, first: int, last: int, found: Any,
    total: int = 0,
) -> None:  # fmt: skip
    """Copy the output states of the bodies at positions `first` to `last`, a part of `total`, to the result arrays."""
    size = sizes(given)
    run = compiled_if_worthwhile(lambda: _handing_over(size), rows.shape[2], "hand over", size, total=total)
    if run is None:
        few_bodies.hand_all_over(given, order, rows, first, last, found)
        return
    groups = rows.shape[2] // LANES
    share_evenly(lambda begin, end: run(given, order, rows, first, last, *found, begin, end), groups, LEAST)


# --- checks -----------------------------------------------------------------------------------------


def checking(holds: Callable[..., Any], width: int, change: Callable[..., Any]) -> Callable[..., Any]:
    """Function (array, out, begin, end, streams) that changes some groups of rows; False if a condition does not hold.

    The array has at least LANES rows. The last group is that of its last rows, some of which are changed twice.
    If it `streams`, `out` begins with a cache line and is written past the caches.
    """
    read, condition = three if width == 3 else four, one_by_one(lambda v: (holds(v),), width)
    straight, size = one_by_one(change, width), LANES * width

    def check(array: Any, out: Any, begin: int, end: int, streams: bool) -> bool:
        block, turned, fine = np.empty((width, LANES)), np.empty(size), True
        whole = out.reshape(-1)
        for g in range(begin, end):
            first = min(g * LANES, len(array) - LANES)
            rows = array[first : first + LANES]
            for lane in range(LANES):
                for j in range(width):
                    block[j, lane] = rows[lane, j]
            v = read(block, 0, 0)
            fine &= all_lanes(condition(v)[0])
            new = straight(v)
            for j in range(width):
                store(block[j], 0, new[j])
            for lane in range(LANES):
                for j in range(width):
                    turned[lane * width + j] = block[j, lane]
            if streams and first == g * LANES:
                for k in range(0, size, LANES):
                    stream(whole, first * width + k, load(turned, k))
            else:
                for k in range(0, size, LANES):
                    store(whole, first * width + k, load(turned, k))
        return fine

    return check


def changed(
    holds: Callable[..., Any], change: Callable[..., Any], array: np.ndarray,
    empty: Callable[..., np.ndarray] = np.empty,
) -> np.ndarray | None:  # fmt: skip
    """Apply a kernel of three or four numbers to every row if a condition holds for all rows; else return None.

    `empty` makes the new array.
    """
    width, fine = array.shape[1], list[bool]()
    run = compiled_if_worthwhile(lambda: checking(holds, width, change), len(array), "look", holds, width, change)
    if run is None:
        return few_bodies.changed(holds, change, array)
    out = empty(array.shape)
    given = np.require(array, float, ("C", "W"))
    groups = padded(len(array)) // LANES
    share_evenly(lambda begin, end: fine.append(run(given, out, begin, end, False)), groups, LEAST)
    return out if all(fine) else None
