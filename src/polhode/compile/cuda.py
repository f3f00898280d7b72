"""The loop over steps for an ensemble on an NVIDIA GPU: one thread per body, in chunks that fit the GPU memory.

Chunks take turns, each on its own stream: some are copied to or from the GPU while another is computed. Copies pass
through page-locked memory, unless the results of many bodies lie in it themselves (`cuda_direct`). The kernels are
those of the CPU, in double precision. Only the placement of fused multiply-adds may differ, so results agree to
round-off.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..errors import InputError
from ..kernels.loops import ROTATION, StateSpace, stepping, with_states, write_timed_row
from ..kernels.sampled import sampling
from ..physics.observers.statistics import Watch, same_system
from . import cuda_direct, numba_target
from .batch.fixed_step import states_of, watched
from .batch.layout import Sizes, hand_all_over, inner, lay_out, padded, sizes
from .batch.places import COLUMNS_OF_DATA, INERTIA, INVERSE, PARAMETERS, STATE
from .clock import jitted

THREADS = 128
"""Threads per block."""

CHUNK, SMALL_CHUNK = 1 << 19, 1 << 17
"""Most bodies of a chunk, and of one for which fewer bodies are divided in two: the copies of the first and the last
chunk are not overlapped, and with smaller ones the threads of the host have too little to do at a time. A million heavy
tops take 34 ms with chunks of 1 << 19, 42 with half of that, 53 with a quarter, and 38 in one (H200, 16 cores)."""

IN_FLIGHT = 4
"""Chunks in flight if the GPU copies results to their arrays by itself; a million heavy tops are not faster with six or
eight (H200)."""

STAGED = 1 << 29
"""Most bytes of page-locked memory of a chunk. The operating system cannot swap it out, so it is limited."""

SPARED = 1 << 27
"""Most bytes of a chunk whose buffers are kept for the next run: to lock pages takes longer than to run a million
bodies to a moderate accuracy."""

SHARE = 0.8
"""Fraction of the free GPU memory that is used."""

cuda: Any = None
"""numba.cuda after `card` has imported it; a module global, because numba's simulator replaces it by name."""

CLOCKED = StateSpace(ROTATION.is_valid, ROTATION.renormalise, write_timed_row)
"""State space with one time per body, written after its state; runs end by the number of steps."""


def _imported() -> Any:
    """Import numba.cuda. Up to version 0.30 its first compilation needs a numpy name that numpy 2.5 removed."""
    vars(np).setdefault("row_stack", np.vstack)
    return importlib.import_module("numba.cuda")


def card() -> Any:
    """numba.cuda with a working GPU (or numba's simulator); an InputError says what is missing."""
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


def from_text(arguments: str, body: str) -> Callable[..., Any]:
    """Compiled function of a text, which depends on sizes alone."""
    space: dict[str, Any] = {"np": np}
    exec(f"def made({arguments}):\n    {body}\n", space)  # the text contains no user input
    return inner(space["made"])


def _tuple_function(first: str, count: int) -> Callable[..., Any]:
    """Compiled function (data, k) -> the numbers `first`, `first` + 1, ... of body k."""
    return from_text("data, k", f"return ({''.join(f'data[{first} + {j}, k], ' for j in range(count))})")


def reader(size: Sizes) -> Callable[..., Any]:
    """Compiled function (data, k, tables) -> state and system of body k; `tables` are the rows of data of its field."""
    q, m = _tuple_function(str(STATE), 4), _tuple_function(str(STATE + 4), 3)
    moments, inverses = _tuple_function(str(INERTIA), 3), _tuple_function(str(INVERSE), 3)
    at = {place: f"tables[{i}][0]" for i, place in enumerate(size.data)}
    items = "".join(f"{at.get(j, f'data[{PARAMETERS + j}, k]')}, " for j in range(size.parameters))
    values, state = from_text("data, k, tables", f"return ({items})"), states_of(size)

    def read(data: Any, k: int, tables: Any) -> Any:
        system = moments(data, k), inverses(data, k), values(data, k, tables)
        return state((q(data, k), m(data, k)), system), system

    return inner(read)


def loop(
    step: Callable[..., Any],
    torque: Callable[..., Any],
    size: Sizes,
    start: Callable[..., Any],
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    clock: bool = False,
    watch: Watch | None = None,
    kept: int = 0,
    system_of: Callable[..., Any] = same_system,
    sample: Callable[..., Any] | None = None,
    steps_per_sample: Callable[..., Any] | None = None,
) -> Any:
    """The run of one chunk, a kernel of numba-cuda; `start` makes a state from (q, m).

    ``run[blocks, threads, stream](t0, every, number, data, rows, failed, tables)`` reads body k of `number` from column
    k of `data` and writes its i-th output state to ``rows[i, :, k]``. If a step fails, ``failed[k]`` gets its number,
    counting from 1, and the last row of that body its last good state; rows between are NaN.
    With statistics there is one row: the last state and the accumulated numbers. A tangent, or the first `kept` numbers
    in the memory of the method, are written after the state (with a `clock`, its time). `system_of` is the system that
    statistics read (`Watch.state_space`). With a controller, `sample` is the kernel of a sample, and
    ``steps_per_sample(h, system)`` the number of steps in a period.
    """
    card()
    behind = len(size.states) or kept
    plain = CLOCKED if clock else with_states(behind) if behind else ROTATION
    space, opened = watched(plain, watch, _read_behind, _write_behind, clock, kept, len(size.states), system_of)
    advance = register_jitable(**numba_target.INNER)(stepping(step, torque, space, before, after))
    if sample is not None:
        assert steps_per_sample is not None
        controlled = sampling(advance, sample, space, steps_per_sample, at_start=True)
        advance = register_jitable(**numba_target.INNER)(controlled)
    numba_target.teach()  # the kernels `stepping` made
    read, write, dt = reader(size), plain.write, size.dt

    def run(t0: Any, every: int, number: int, data: Any, rows: Any, failed: Any, tables: Any) -> None:
        k = cuda.grid(1)
        if k < number:
            y, system = read(data, k, tables)
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

    return jitted(cuda, run)


_SPARE: dict[tuple[Any, ...], list[_Slot]] = {}
"""Buffers of the last run, by thread, GPU, number, shape and type; a run takes them out and puts them back."""

Launch = Callable[..., None]
"""launch(stream, bodies, data, rows, failed, tickets) starts a kernel for one chunk."""


class Tickets:
    """A counter in the memory of the GPU, from which threads draw the numbers of their next bodies.

    It is never set back, which would take a copy before every run: `drawn` is how many numbers earlier runs have drawn.
    """

    def __init__(self) -> None:
        self.counter, self.drawn = cuda.to_device(np.zeros(1, np.int64)), 0


class _Slot:
    """Buffers of one of the two chunks in flight: page-locked memory, GPU memory, and a stream."""

    def __init__(self, numbers: int, kept: int, columns: int, chunk: int) -> None:
        self.stream = cuda.stream()
        self.chunk, width = chunk, padded(chunk)
        shapes = ((numbers, width), float), ((kept, columns, width), float), ((width,), np.int64)
        self.data, self.rows, self.failed = (cuda.pinned_array(shape, dtype=kind) for shape, kind in shapes)
        self.on_device = [cuda.device_array(shape, dtype=kind) for shape, kind in shapes]
        self.tickets = Tickets()
        self.first, self.width = 0, 0

    def send(self, launch: Launch, given: Any, order: np.ndarray, found: Any, first: int, number: int) -> None:
        """Start the chunk of bodies that begins at position `first`; asynchronous."""
        self.first, self.width = first, min(self.chunk, number - first)
        lay_out(given, order, number, self.data, first)
        sent, rows, failed = self.on_device
        sent.copy_to_device(self.data, stream=self.stream)
        with warnings.catch_warnings():  # a small ensemble is not an error
            warnings.filterwarnings("ignore", message=".*under-utilization")
            launch(self.stream, self.width, *self.on_device, self.tickets)
        rows.copy_to_host(self.rows, stream=self.stream)
        failed.copy_to_host(self.failed, stream=self.stream)

    def fetch(self, given: Any, order: np.ndarray, q: Any, m: Any, extra_columns: Any, failed: np.ndarray) -> None:
        """Wait for the chunk and copy its results to the result arrays."""
        self.stream.synchronize()
        end = self.first + self.width
        hand_all_over(given, order, self.rows, self.first, end, (q, m, extra_columns))
        failed[order[self.first : end] if len(order) else slice(self.first, end)] = self.failed[: self.width]


def chunk_size(numbers: int, free: int, parts: int = 2) -> int:
    """Bodies per chunk, such that some chunks of `numbers` doubles per body fit the free GPU memory."""
    return int(max(1, min(2 * CHUNK // parts, STAGED // (8 * numbers), SHARE * free // (parts * 8 * numbers))))


def tables_of(given: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """Return the rows of data of a field in the memory of the GPU; waits until they are there, for all streams."""
    tables = tuple(cuda.to_device(np.ascontiguousarray(x)) for x in given[COLUMNS_OF_DATA:])
    if tables:
        cuda.synchronize()
    return tables


def run_on_card(
    run: Any, t0: float, every: int, given: tuple[np.ndarray, ...], order: np.ndarray, columns: int, found: Any
) -> None:
    """Run all bodies in chunks; `found` are the result arrays."""
    tables = tables_of(given)

    def launch(stream: Any, width: int, data: Any, rows: Any, failed: Any, tickets: Tickets) -> None:
        run[-(-width // THREADS), min(THREADS, width), stream](t0, every, width, data, rows, failed, tables)

    run_in_chunks(launch, given, order, columns, found)


def run_in_chunks(launch: Launch, given: tuple[np.ndarray, ...], order: np.ndarray, columns: int, found: Any) -> None:
    """Run a kernel for all bodies in chunks."""
    card()
    numbers, number, kept = sizes(given).rows, len(found[-1]), len(found[0]) - 1
    direct = cuda_direct.fits(given, order, found)
    parts, of_body = (IN_FLIGHT, 2 * (numbers + kept * columns)) if direct else (2, numbers + kept * columns + 1)
    free = cuda.current_context().get_memory_info()[0]
    part = max(SMALL_CHUNK, 1 << ((number - 1) // parts).bit_length())  # a power of two: it serves other numbers too
    chunk = min(number, part, chunk_size(of_body, free, parts))
    firsts = range(0, number, chunk)
    device = getattr(getattr(cuda.current_context(), "device", None), "id", 0)  # numba's simulator has none
    several = tuple(len(array) > 1 for array in given) if direct else ()
    extra = found[2].shape[2], found[2].dtype.str
    key = (threading.get_ident(), device, len(firsts[:parts]), numbers, kept, columns, *extra, chunk, *several)

    def made() -> Any:
        if direct:
            return cuda_direct.Chunk(cuda, Tickets(), given, found, chunk, numbers, columns)
        return _Slot(numbers, kept, columns, chunk)

    slots = _SPARE.pop(key, []) or [made() for _ in firsts[:parts]]
    try:
        _run_in_turn(slots, firsts, launch, given, order, found)
    except BaseException:
        for slot in slots:
            slot.stream.synchronize()  # nothing may write to arrays that the caller is about to drop
        raise
    if 8 * chunk * of_body <= SPARED:
        _SPARE.clear()
        _SPARE[key] = slots


def _run_in_turn(slots: list[Any], firsts: range, launch: Launch, given: Any, order: np.ndarray, found: Any) -> None:
    """Run the chunks that begin at `firsts`, as many at a time as there are slots."""
    for i, first in enumerate(firsts):
        slot = slots[i % len(slots)]
        if i >= len(slots):
            slot.fetch(given, order, *found)
        slot.send(launch, given, order, found, first, firsts.stop)
    for i in range(max(0, len(firsts) - len(slots)), len(firsts)):
        slots[i % len(slots)].fetch(given, order, *found)
