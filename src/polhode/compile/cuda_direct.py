"""Chunks of a run on an NVIDIA GPU whose results lie in page-locked memory: the GPU copies between it and the arrays.

The threads of the host only fill in the initial states of the results, from where they are copied to the GPU. Two small
kernels on the GPU convert between rows of bodies and the columns that the loops read and write.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from ..kernels.loops import COLUMNS
from . import page_locked
from .batch.places import ATTITUDE, AXES, DT, INERTIA, INVERSE, MOMENTS, MOMENTUM, PARAMETERS, STATE, STEPS, VALUES
from .clock import jitted
from .threads import share_evenly

cuda: Any = None
"""numba.cuda after `Chunk` has taken it; a module global, because numba's simulator replaces it by name."""

THREADS = 128
"""Threads per block."""

SENT = (ATTITUDE, MOMENTUM, MOMENTS, VALUES, DT, STEPS)
"""The arrays of the bodies that are sent."""

FEWEST = 1 << 16
"""Fewest bodies for a thread in a pass over memory."""


def fits(given: tuple[np.ndarray, ...], order: np.ndarray, found: Any) -> bool:
    """Return whether a run can use these chunks: results in page-locked memory, in the order and axes of the loops."""
    locked = all(not array.size or page_locked.is_locked(array) for array in found)
    return locked and not len(order) and not given[AXES].shape[1]


def _to_columns(
    number: int, values: int, q: Any, m: Any, moments: Any, parameters: Any, dt: Any, steps: Any, data: Any,
    q_rows: Any, m_rows: Any,
) -> None:  # fmt: skip
    """Fill the columns of the bodies, as `layout.lay_out` does, and the initial states of the results.

    Arrays have one row for each body, or one for all.
    """
    k = cuda.grid(1)
    if k < number:
        for j in range(4):
            data[STATE + j, k] = q_rows[0, k, j] = q[min(k, q.shape[0] - 1), j]
        i = min(k, moments.shape[0] - 1)
        for j in range(3):  # a linear body has no momentum along its axis, and its zero moment is never a divisor
            there = moments[i, j] > 0
            m_rows[0, k, j] = m[min(k, m.shape[0] - 1), j]
            data[STATE + 4 + j, k] = m_rows[0, k, j] if there else 0.0
            data[INERTIA + j, k] = moments[i, j]
            data[INVERSE + j, k] = 1 / moments[i, j] if there else 0.0
        for j in range(values):
            data[PARAMETERS + j, k] = parameters[min(k, parameters.shape[0] - 1), j]
        data[PARAMETERS + values, k] = dt[min(k, dt.shape[0] - 1), 0]
        data[PARAMETERS + values + 1, k] = steps[min(k, steps.shape[0] - 1), 0]


def _to_rows(number: int, more: int, columns: Any, q_rows: Any, m_rows: Any, extra_columns: Any) -> None:
    """Fill the rows of the results, as `layout.hand_all_over` does."""
    k = cuda.grid(1)
    if k < number:
        for n in range(columns.shape[0]):
            for j in range(4):
                q_rows[n + 1, k, j] = columns[n, j, k]
            for j in range(3):
                m_rows[n + 1, k, j] = columns[n, 4 + j, k]
            for j in range(more):
                extra_columns[n, k, j] = columns[n, COLUMNS + j, k]


@functools.cache
def _kernels() -> tuple[Any, Any]:
    """The two kernels."""
    return jitted(cuda, _to_columns), jitted(cuda, _to_rows)


class Chunk:
    """Buffers of a chunk in flight: GPU memory, a stream, and page-locked memory for input that is not locked."""

    def __init__(
        self, card: Any, tickets: Any, given: tuple[np.ndarray, ...], found: Any, size: int, rows: int, columns: int
    ) -> None:  # fmt: skip
        global cuda
        cuda = card
        self.driver = importlib.import_module("numba.cuda.cudadrv.driver")  # methods of arrays take ten times as long
        self.stream, self.size = cuda.stream(), size
        shapes = [(size if len(given[k]) > 1 else 1, max(1, given[k].shape[1])) for k in SENT]
        self.given = [cuda.device_array(shape) for shape in shapes]
        self.flat = [array.reshape(-1) for array in self.given]
        self.data = cuda.device_array((rows, size))
        self.columns = cuda.device_array((len(found[2]), columns, size))
        self.rows = [cuda.device_array((len(x), size, max(1, x.shape[2])), dtype=x.dtype) for x in found[:3]]
        self.parts = [[array[n].reshape(-1) for n in range(len(array))] for array in self.rows]
        self.failed, self.tickets = cuda.device_array(size, dtype=np.int64), tickets
        self.staged: dict[int, np.ndarray] = {}

    def send(
        self, launch: Any, given: tuple[np.ndarray, ...], order: np.ndarray, found: Any, first: int, number: int
    ) -> None:  # fmt: skip
        """Start the chunk of bodies that begins at `first`; asynchronous."""
        width = min(self.size, number - first)
        for k, there in zip(SENT, self.flat, strict=True):
            if given[k].size:
                source = self._in_locked_memory(k, given[k], first, width)
                self.driver.host_to_device(there, source.reshape(-1), source.nbytes, self.stream)
        to_columns, to_rows = (kernel[-(-width // THREADS), THREADS, self.stream] for kernel in _kernels())
        to_columns(width, given[VALUES].shape[1], *self.given, self.data, *self.rows[:2])
        launch(self.stream, width, self.data, self.columns, self.failed, self.tickets)
        to_rows(width, found[2].shape[2], self.columns, *self.rows)
        *states, failed = found
        starts = given[ATTITUDE].ctypes.data, given[MOMENTUM].ctypes.data
        for there, results in zip(self.parts, states, strict=True):
            for row, target in zip(there, results, strict=True):
                if target.ctypes.data not in starts:  # those are the states at the start, in the results already
                    self._receive(row, target[first : first + width])
        self._receive(self.failed, failed[first : first + width])

    def _in_locked_memory(self, k: int, array: np.ndarray, first: int, width: int) -> np.ndarray:
        """Return the rows of the bodies of the chunk, or the one row for all."""
        if len(array) == 1:
            return array
        part = array[first : first + width]
        if page_locked.is_locked(part):
            return part
        if k not in self.staged:
            self.staged[k] = page_locked.empty(lambda: cuda, (self.size, array.shape[1]))
        staged = self.staged[k][:width]
        share_evenly(lambda begin, end: np.copyto(staged[begin:end], part[begin:end]), width, FEWEST)
        return staged

    def _receive(self, there: Any, target: np.ndarray) -> None:
        if target.size:
            self.driver.device_to_host(target.reshape(-1), there, target.nbytes, self.stream)

    def fetch(self, *run: Any) -> None:
        """Wait for the results of the chunk."""
        self.stream.synchronize()
