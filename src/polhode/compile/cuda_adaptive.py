"""The loop over adaptive steps for an ensemble on an NVIDIA GPU: every thread has its own time and its own steps.

A thread whose body is finished takes the next body, so the threads of a warp do not wait for the one with the most
steps. Loading a body and attempting a step are parts of one loop: were they two nested loops, all threads of a warp
would leave the inner one together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from ..kernels.loops import COLUMNS, ROTATION, STALLED, attempting_steps, first_step, weights_of_errors, with_states
from . import cuda as fixed
from . import numba_target
from .batch.adaptive_step import BEHIND, MOST
from .batch.layout import Sizes
from .clock import jitted

cuda: Any = None
"""numba.cuda after `loop` has imported it; a module global, because numba's simulator replaces it by name."""

REGISTERS, MOST_REGISTERS = 1 << 16, 255
"""Registers of a multiprocessor, which are given to threads by eights, and most of a thread."""

BLOCKS = (128, 256)
"""Threads per block. Among those with as many threads at once the larger ones are 3 % faster (H200)."""


def _number_of(ends: Any) -> int:
    return len(ends)


def _time(ends: Any, i: int) -> Any:
    return ends[i]


def _one(end: Any) -> int:
    return 1


def _only(end: Any, i: int) -> Any:
    return end


def _writer(count: int) -> Callable[..., Any]:
    """Compiled function (row, k, y, steps, largest) that writes the result of body k.

    A tangent of `count` numbers follows the number of steps and the largest momentum, as in lanes.
    """
    numbers = (
        *(f"y[0][{j}]" for j in range(4)), *(f"y[1][{j}]" for j in range(3)), "steps", "largest",
        *(f"y[2][{j}]" for j in range(count)),
    )  # fmt: skip
    lines = "; ".join(f"row[{j}, k] = {number}" for j, number in enumerate(numbers))
    return fixed.from_text("row, k, y, steps, largest", lines)


def loop(controlled_step: Callable[..., Any], size: Sizes, several: bool) -> Any:
    """The run of one chunk with an embedded pair, a kernel of numba-cuda.

    `ends` are the kept times, an array if there are `several`; a single one is a number, because the array and the
    index of the next time would take registers, and a third of the speed at moderate accuracy.

    ``run[blocks, threads, stream](t0, ends, longest, tolerance, angle, number, data, rows, failed, drawn, counter,
    tables)`` integrates the bodies of the columns of `data`; `tables` are the rows of data of their field. `angle` is
    that of the first step. The first bodies are those with the numbers of the threads; the further ones are drawn from
    ``counter[0]``, which is `drawn` at the start, and greater by the number of bodies at the end. The column
    of a body in ``rows[i]`` gets the state at ``ends[i]``, the number of steps and the largest momentum until then, and
    its tangent if it has one. If no further step succeeds, ``failed[k]`` gets the number of that step, counting from 1,
    the last row the last good state, and the rows between are NaN.
    """
    global cuda
    cuda = fixed.card()
    count = len(size.states)
    space, columns = with_states(count) if count else ROTATION, COLUMNS + BEHIND + count
    attempt_step = register_jitable(**numba_target.INNER)(attempting_steps(controlled_step, space))
    numba_target.teach()  # the kernels made above
    read, write = fixed.reader(size), _writer(count)
    number_of, time = map(register_jitable(**numba_target.INNER), (_number_of, _time) if several else (_one, _only))

    def run(
        t0: Any, ends: Any, longest: Any, tolerance: Any, angle: Any, number: int, data: Any, rows: Any, failed: Any,
        drawn: int, counter: Any, tables: Any,
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k >= number:
            return
        last, leg = number_of(ends) - 1, 0
        end, until = time(ends, last), time(ends, 0)
        span = min(until - t0, longest)
        y, system = read(data, k, tables)
        t, square, steps, stalls = t0, 0.0, 0, 0
        proposal = first_step(angle, span, y[1], system)
        # drawn long before it is needed: the answer takes as long as half a step
        ahead = cuda.gridsize(1) - drawn
        following = ahead + cuda.atomic.add(counter, 0, 1)
        while k < number:
            weights, square = weights_of_errors(tolerance, end - t, y[1], square, system)
            new, now, proposal, counts = attempt_step(t, until, longest, proposal, y, system, weights, 0)
            if counts:
                y, t, steps, stalls = new, now, steps + 1, 0
            else:
                stalls += 1
            if t >= until and leg < last:
                write(rows[leg], k, y, steps, math.sqrt(square))
                leg += 1
                until = time(ends, leg)
            if t >= end or stalls >= STALLED or steps >= MOST:
                for i in range(leg, last):
                    for j in range(columns):
                        rows[i, j, k] = np.nan
                write(rows[last], k, y, steps, math.sqrt(square))
                failed[k] = -1 if t >= end else steps + 1
                k = following
                if k < number:
                    following = ahead + cuda.atomic.add(counter, 0, 1)
                    y, system = read(data, k, tables)
                    t, square, steps, stalls, leg, until = t0, 0.0, 0, 0, 0, time(ends, 0)
                    proposal = first_step(angle, span, y[1], system)

    return jitted(cuda, run)


def resident(run: Any) -> tuple[int, int]:
    """Threads of a block, and blocks that the GPU can hold at once, by their registers; for numba's simulator one."""
    if not hasattr(run, "get_regs_per_thread"):
        return fixed.THREADS, 1
    threads, blocks = _in_multiprocessor(run, len(run.overloads))
    return threads, blocks * int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


@functools.lru_cache(maxsize=64)
def _in_multiprocessor(run: Any, compiled: int) -> tuple[int, int]:
    """Threads of a block and blocks in a multiprocessor of a kernel, compiled for some types of arguments."""
    registers = max(run.get_regs_per_thread().values(), default=MOST_REGISTERS)  # nothing before it is compiled
    each = -(-registers // 8) * 8
    blocks = {threads: REGISTERS // (each * threads) for threads in BLOCKS}
    threads = max(BLOCKS, key=lambda threads: (threads * blocks[threads], threads))
    return threads, max(1, blocks[threads])


def has_several(ends: Any) -> bool:
    """Return whether there are several kept times: an array of them, not one number."""
    return np.ndim(ends) > 0


def launch(
    run: Any, times: tuple[float, Any, float], tolerance: float, angle: float, stream: Any, width: int, data: Any,
    rows: Any, failed: Any, tickets: fixed.Tickets, tables: tuple[Any, ...] = (),
) -> None:  # fmt: skip
    """Start the run of `width` bodies, with as many threads as the GPU can hold; `times` as for `run_on_card`."""
    t0, ends, longest = times
    ends = cuda.to_device(np.asarray(ends, dtype=float), stream=stream) if has_several(ends) else float(ends)
    threads, most = resident(run)
    threads = min(threads, width)
    blocks = min(-(-width // threads), most)
    drawn, tickets.drawn = tickets.drawn, tickets.drawn + width
    run[blocks, threads, stream](
        t0, ends, longest, tolerance, angle, width, data, rows, failed, drawn, tickets.counter, tables
    )


def run_on_card(
    run: Any, times: tuple[float, Any, float], tolerance: float, angle: float, given: tuple[np.ndarray, ...],
    order: np.ndarray, found: Any,
) -> None:  # fmt: skip
    """Run all bodies in chunks.

    `times` are the start, the end or all kept times, and the longest step; `found` are the result arrays.
    """
    start = functools.partial(launch, run, times, tolerance, angle, tables=fixed.tables_of(given))
    fixed.run_in_chunks(start, given, order, COLUMNS + max(BEHIND, found[2].shape[2]), found)
