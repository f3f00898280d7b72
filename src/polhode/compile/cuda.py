"""The loop over steps for many bodies on an NVIDIA card: one thread a body, chunks of bodies that fit the card.

A chunk lies in page-locked memory while it travels, and two chunks take turns, each on a stream of its own: one is
copied to or from the card while the other is computed. The kernels are those of the CPU, in double precision; only
where a sum and a product are fused may differ, so results agree to round-off.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..errors import InputError
from ..kernels.loops import ROTATION, StateSpace, stepping, write_timed_row
from ..physics.observers.statistics import Watch
from . import numba_target
from .batch.fixed_step import watched
from .batch.layout import INERTIA, INVERSE, PARAMETERS, STATE, Sizes, hand_all_over, lay_out, padded, sizes

THREADS = 128
"""Threads of a block."""

CHUNK = 1 << 17
"""Bodies of a chunk at most: a thousand for every multiprocessor of the largest cards, and no more, since what the
first chunk needs to come and the last to go is not overlapped (H200: whole runs then reach 0.97 of the kernels' own
speed, with eight times as many 0.78)."""

STAGED = 1 << 29
"""Bytes of page-locked memory a chunk may take: the operating system cannot move it, so it is not for the taking."""

SHARE = 0.8
"""Part of the card's free memory that is used."""

cuda: Any = None
"""numba.cuda, once `card` has imported it; a name of this module, because that is what numba's simulator replaces."""

CLOCKED = StateSpace(ROTATION.is_valid, ROTATION.renormalise, write_timed_row)
"""Every body has its own time, which is written behind its state; runs end by the number of steps."""


def _imported() -> Any:
    """numba.cuda; up to 0.30 numba-cuda asks numpy, when it first compiles, for a name that numpy 2.5 has dropped."""
    vars(np).setdefault("row_stack", np.vstack)
    return importlib.import_module("numba.cuda")


def card() -> Any:
    """numba.cuda with a card that works (or numba's simulator of one); what is missing is said in an InputError."""
    global cuda
    get = "pip install 'polhode[cuda]'"
    try:
        cuda = _imported()
    except ImportError as fault:
        raise InputError(f"device='cuda' needs numba-cuda, which cannot be imported ({fault}); {get}") from None
    if cuda.is_available():
        return cuda
    reason = str(cuda.cuda_error() or "no GPU was found").strip().splitlines()[0]
    raise InputError(
        f"device='cuda' needs an NVIDIA GPU, its driver and numba-cuda ({get}), and numba finds no usable GPU: "
        f"{reason} Without a GPU use device='cpu'"
    )


def _behind(rows: Any, j: int) -> Any:
    return rows[0, j]


def _put_behind(rows: Any, j: int, v: Any) -> None:
    rows[0, j] = v


_read_behind, _write_behind = (register_jitable(**numba_target.INNER)(f) for f in (_behind, _put_behind))


def _tuple_function(first: str, count: int) -> Callable[..., Any]:
    """Compiled function (data, k) -> the numbers `first`, first + 1, ... of body k."""
    items = "".join(f"data[{first} + {j}, k], " for j in range(count))
    space: dict[str, Any] = {}
    exec(f"def made(data, k):\n    return ({items})\n", space)  # made of our own words only
    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(space["made"])
    return made


def _reader(parameters: int) -> Callable[..., Any]:
    """Compiled function (data, k) -> state and system of body k."""
    q, m = _tuple_function(str(STATE), 4), _tuple_function(str(STATE + 4), 3)
    moments, inverses = _tuple_function(str(INERTIA), 3), _tuple_function(str(INVERSE), 3)
    values = _tuple_function(str(PARAMETERS), parameters)

    def read(data: Any, k: int) -> Any:
        return (q(data, k), m(data, k)), (moments(data, k), inverses(data, k), values(data, k))

    made: Callable[..., Any] = register_jitable(**numba_target.INNER)(read)
    return made


def loop(
    step: Callable[..., Any],
    torque: Callable[..., Any],
    size: Sizes,
    start: Callable[..., Any],
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    clock: bool = False,
    watch: Watch | None = None,
) -> Any:
    """The run of one chunk, a kernel of numba-cuda; `start` makes a state of (q, m).

    ``run[blocks, threads, stream](t0, every, number, data, rows, failed)`` takes body k of `number` from column k of
    `data` and writes its i-th state kept to ``rows[i, :, k]``. Where a step fails, ``failed[k]`` gets its number,
    counting from 1, and the last row of that body its last good state; rows between are NaN.
    With statistics there is one row, of the last state and the numbers folded so far.
    """
    card()
    plain = CLOCKED if clock else ROTATION
    space, opened = watched(plain, watch, _read_behind, _write_behind, clock)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, space, before, after))
    numba_target.teach()  # the kernels `stepping` made
    read, write, dt = _reader(size.parameters), plain.write, size.dt

    def run(t0: Any, every: int, number: int, data: Any, rows: Any, failed: Any) -> None:
        k = cuda.grid(1)
        if k < number:
            y, system = read(data, k)
            own, count = rows[:, :, k], int(data[dt + 1, k])
            opened(own, t0, y, system)
            last, reached, filled, _, fine = advance(data[dt, k], t0, 0, count, every, count, start(y), system, own)
            failed[k] = -1
            if not fine:
                failed[k] = reached + 1
                for i in range(filled, own.shape[0] - 1):
                    for j in range(own.shape[1]):
                        own[i, j] = np.nan
                write(own, own.shape[0] - 1, last)

    return cuda.jit(run)


class _Slot:
    """One of the two places a chunk is worked at: page-locked memory, memory on the card, and a stream."""

    def __init__(self, numbers: int, kept: int, columns: int, chunk: int) -> None:
        self.stream = cuda.stream()
        self.chunk, width = chunk, padded(chunk)
        shapes = ((numbers, width), float), ((kept, columns, width), float), ((width,), np.int64)
        self.data, self.rows, self.failed = (cuda.pinned_array(shape, dtype=kind) for shape, kind in shapes)
        self.on_card = [cuda.device_array(shape, dtype=kind) for shape, kind in shapes]
        self.first, self.width = 0, 0

    def send(self, run: Any, t0: float, every: int, given: Any, order: np.ndarray, first: int, number: int) -> None:
        """Begin the chunk of bodies from the place `first` on; nothing here waits for the card."""
        self.first, self.width = first, min(self.chunk, number - first)
        lay_out(given, order, number, self.data, first)
        sent, rows, failed = self.on_card
        sent.copy_to_device(self.data, stream=self.stream)
        blocks = -(-self.width // THREADS)
        with warnings.catch_warnings():  # few bodies are no fault
            warnings.filterwarnings("ignore", message=".*under-utilization")
            run[blocks, min(THREADS, self.width), self.stream](t0, every, self.width, sent, rows, failed)
        rows.copy_to_host(self.rows, stream=self.stream)
        failed.copy_to_host(self.failed, stream=self.stream)

    def fetch(self, given: Any, order: np.ndarray, q: Any, m: Any, extra_columns: Any, failed: np.ndarray) -> None:
        """Wait for the chunk, and put its results where they belong."""
        self.stream.synchronize()
        end = self.first + self.width
        hand_all_over(given, order, self.rows, self.first, end, (q, m, extra_columns))
        failed[order[self.first : end] if len(order) else slice(self.first, end)] = self.failed[: self.width]


def chunk_size(numbers: int, free: int) -> int:
    """Bodies of a chunk, so that two chunks of `numbers` doubles a body fit the free memory of the card."""
    return int(max(1, min(CHUNK, STAGED // (8 * numbers), SHARE * free // (2 * 8 * numbers))))


def run_on_card(
    run: Any, t0: float, every: int, given: tuple[np.ndarray, ...], order: np.ndarray, columns: int, found: Any
) -> None:
    """Run all bodies in chunks, into the arrays `found` of the result."""
    card()
    numbers, number, kept = sizes(given).rows, len(found[-1]), len(found[0]) - 1
    free = cuda.current_context().get_memory_info()[0]
    chunk = min(number, chunk_size(numbers + kept * columns + 1, free))
    firsts = range(0, number, chunk)
    slots = [_Slot(numbers, kept, columns, chunk) for _ in firsts[:2]]
    for i, first in enumerate(firsts):
        slot = slots[i % 2]
        if i >= 2:
            slot.fetch(given, order, *found)
        slot.send(run, t0, every, given, order, first, number)
    for i in range(max(0, len(firsts) - 2), len(firsts)):
        slots[i % 2].fetch(given, order, *found)
